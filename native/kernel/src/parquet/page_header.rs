//! The header of a page (parquet.thrift, `PageHeader`).

use crate::parquet::thrift::{Fields, ThriftKind, Walker};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    Data,
    Index,
    Dictionary,
    DataV2 { rows: i32, repetition_bytes: i32, definition_bytes: i32, compressed: bool },
}

#[derive(Debug, Clone, Copy)]
pub struct PageHeader {
    pub kind: PageKind,
    /// Bytes of the header itself.
    pub length: usize,
    pub uncompressed: usize,
    pub compressed: usize,
    pub crc: Option<u32>,
    pub values: u64,
    /// As Parquet numbers encodings.
    pub encoding: i32,
    /// How the definition and the repetition levels of version 1 are encoded, whether the column has them or not.
    pub level_encodings: [Option<i32>; 2],
}

impl PageHeader {
    /// Bytes of levels that are stored as they are, before what may be compressed.
    pub fn levels(&self) -> usize {
        match self.kind {
            PageKind::DataV2 { repetition_bytes, definition_bytes, .. } => {
                (repetition_bytes + definition_bytes) as usize
            }
            _ => 0,
        }
    }
}

/// The header at the begin of `bytes`, whose page lies in them too; `None` where there is none.
pub fn page_header(bytes: &[u8]) -> Option<PageHeader> {
    let mut walker = Walker::new(bytes);
    let mut fields = Fields::default();
    let (mut page_type, mut uncompressed, mut compressed, mut crc) = (None, None, None, None);
    let (mut data, mut dictionary, mut data_v2) = (None, None, None);
    while let Some((id, kind)) = walker.field(&mut fields)? {
        match (id, kind) {
            (1, ThriftKind::I32) => page_type = Some(walker.int()?),
            (2, ThriftKind::I32) => uncompressed = Some(walker.int()?),
            (3, ThriftKind::I32) => compressed = Some(walker.int()?),
            (4, ThriftKind::I32) => crc = Some(walker.int()? as u32),
            (5, ThriftKind::Struct) => data = Some(numbers(&mut walker)?),
            (7, ThriftKind::Struct) => dictionary = Some(numbers(&mut walker)?),
            (8, ThriftKind::Struct) => data_v2 = Some(numbers(&mut walker)?),
            _ => walker.skip(kind)?,
        }
    }
    // Number of values and encoding are the first two numbers of both older headers.
    let (kind, values, encoding) = match page_type? {
        0 => data.map(|n| (PageKind::Data, n.of[1], n.of[2]))?,
        1 => (PageKind::Index, Some(0), Some(0)),
        2 => dictionary.map(|n| (PageKind::Dictionary, n.of[1], n.of[2]))?,
        3 => data_v2.map(|n| {
            let (rows, repetition_bytes, definition_bytes) = (n.of[3]?, n.of[6]?, n.of[5]?);
            let kind = PageKind::DataV2 { rows, repetition_bytes, definition_bytes, compressed: n.compressed };
            Some((kind, n.of[1], n.of[4]))
        })??,
        _ => return None,
    };
    let level_encodings = match (kind, data) {
        (PageKind::Data, Some(n)) => [n.of[3], n.of[4]],
        _ => [None; 2],
    };
    let length = bytes.len() - walker.left();
    let (uncompressed, compressed) = (usize::try_from(uncompressed?).ok()?, usize::try_from(compressed?).ok()?);
    let values = u64::try_from(values?).ok()?;
    if compressed > walker.left() {
        return None;
    }
    if let PageKind::DataV2 { rows, repetition_bytes, definition_bytes, .. } = kind {
        let levels = usize::try_from(repetition_bytes).ok()?.checked_add(usize::try_from(definition_bytes).ok()?)?;
        if rows < 0 || levels > compressed || levels > uncompressed {
            return None;
        }
    }
    Some(PageHeader { kind, length, uncompressed, compressed, crc, values, encoding: encoding?, level_encodings })
}

/// The numbers of one of the inner headers, by field.
#[derive(Clone, Copy)]
struct Numbers {
    of: [Option<i32>; 8],
    compressed: bool,
}

fn numbers(walker: &mut Walker) -> Option<Numbers> {
    let mut fields = Fields::default();
    let mut found = Numbers { of: [None; 8], compressed: true };
    while let Some((id, kind)) = walker.field(&mut fields)? {
        match kind {
            ThriftKind::I32 => *found.of.get_mut(usize::try_from(id).ok()?)? = Some(walker.int()?),
            ThriftKind::False if id == 7 => found.compressed = false,
            _ => walker.skip(kind)?,
        }
    }
    Some(found)
}
