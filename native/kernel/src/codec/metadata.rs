//! The bytes of a metadata, read and written (VariantEncoding.md, "Metadata encoding").

use crate::codec::head::number;
use crate::codec::primitive::{push_uint, uint_width};
use crate::error::{Code, Error, Result};
use crate::names::Names;

/// The metadata of a value that names no field.
pub const NO_NAMES: &[u8] = &[1, 0, 0];

const SORTED: u8 = 1 << 4;

/// Appends metadata of version 1, in the smallest widths: header, size, offsets, the names' bytes.
pub fn write(names: &Names, ids: &[u32], sorted: bool, out: &mut Vec<u8>) {
    let text: usize = ids.iter().map(|&id| names.get(id).len()).sum();
    let width = uint_width(text.max(ids.len()));
    out.push(1 | if sorted { SORTED } else { 0 } | (width as u8 - 1) << 6);
    push_uint(out, ids.len(), width);
    let mut end = 0;
    push_uint(out, end, width);
    for &id in ids {
        end += names.get(id).len();
        push_uint(out, end, width);
    }
    for &id in ids {
        out.extend_from_slice(names.get(id).as_bytes());
    }
}

/// The places of names among all of a metadata in the order of their bytes, the same for equal names. To compare them is
/// to compare the names, however long these are.
pub fn ranks(bytes: &[u8], names: &[(u32, u32)]) -> Vec<u32> {
    let text = |id: u32| names.get(id as usize).and_then(|&(start, end)| bytes.get(start as usize..end as usize));
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    order.sort_by(|&a, &b| text(a).cmp(&text(b)));
    let mut ranks = vec![0; names.len()];
    let mut last: Option<(u32, u32)> = None;
    for (place, &id) in order.iter().enumerate() {
        let rank = match last {
            Some((before, rank)) if text(before) == text(id) => rank,
            _ => place as u32,
        };
        if let Some(slot) = ranks.get_mut(id as usize) {
            *slot = rank;
        }
        last = Some((id, rank));
    }
    ranks
}

/// Whether a metadata says that its names are sorted. Nobody relies on it: Iceberg 1.11 says so of names in the order
/// of UTF-16. It is asked for to tell who says it wrongly.
pub fn is_sorted(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|header| header & SORTED != 0)
}

/// Takes the word on the order of its names from a metadata, given its header: without it they may be in any.
pub fn unmark(header: &mut u8) {
    *header &= !SORTED;
}

/// The length of the metadata that `bytes` begin with, by its own header; nothing beyond it is validated.
pub fn length(bytes: &[u8]) -> Result<usize> {
    let header = *bytes.first().ok_or_else(|| malformed(3, 0, "the variant metadata is empty"))?;
    if header & 0x0f != 1 {
        return Err(malformed(3, 0, "the variant metadata has a version other than 1"));
    }
    let width = (header >> 6) as usize + 1;
    let count = number(bytes, 1, width)? as usize;
    let text = number(bytes, 1 + width + count * width, width)? as usize;
    Ok(1 + (count + 2) * width + text)
}

fn malformed(rule: u8, offset: usize, message: &str) -> Error {
    Error::new(Code::MalformedVariant, message).rule(rule).offset(offset as u64)
}

/// Validates a metadata (rules 3 to 5, but for what it says of its order) and gives the byte range of each name.
pub fn parse(bytes: &[u8], names: &mut Vec<(u32, u32)>) -> Result<()> {
    let Some(&header) = bytes.first() else {
        return Err(malformed(3, 0, "the variant metadata is empty"));
    };
    if header & 0x0f != 1 {
        return Err(malformed(3, 0, "the variant metadata has a version other than 1"));
    }
    let width = (header >> 6) as usize + 1;
    let read = |at: usize| -> Result<u32> {
        let slice = bytes.get(at..at + width).ok_or_else(|| malformed(4, at, "the variant metadata is truncated"))?;
        let mut four = [0u8; 4];
        four[..width].copy_from_slice(slice);
        Ok(u32::from_le_bytes(four))
    };
    let count = read(1)? as usize;
    let first = 1 + width + (count + 1) * width;
    if first > bytes.len() {
        return Err(malformed(4, 1, "the variant metadata is truncated"));
    }
    let mut at = 1 + width;
    let mut start = read(at)? as usize;
    if start != 0 {
        return Err(malformed(4, at, "the first offset of the variant metadata is not 0"));
    }
    let text = std::str::from_utf8(&bytes[first..])
        .map_err(|_| malformed(5, first, "a field name in the variant metadata is not UTF-8"))?;
    names.reserve(count);
    for _ in 0..count {
        at += width;
        let end = read(at)? as usize;
        if end < start {
            return Err(malformed(4, at, "the offsets of the variant metadata go backwards"));
        }
        if text.get(start..end).is_none() {
            let message = "an offset of the variant metadata is beyond its bytes or splits a character";
            return Err(malformed(4, at, message));
        }
        names.push(((first + start) as u32, (first + end) as u32));
        start = end;
    }
    if first + start != bytes.len() {
        return Err(malformed(4, at, "the last offset of the variant metadata is not its length"));
    }
    Ok(())
}
