//! The metadata of the row at hand, resolved once per distinct metadata: rows mostly share one, so its bytes
//! are compared with those of the row before. Holds names by id, and ids by shredded field.

use hashbrown::HashMap;

use crate::error::{Code, Error, Result};

#[derive(Default)]
pub struct Dictionary {
    bytes: Vec<u8>,
    loaded: bool,
    /// Byte range of each name in `bytes`, by field id.
    names: Vec<(u32, u32)>,
    /// Wanted names: number by text, then the levels of that name, then the field id in this metadata.
    wanted: HashMap<Vec<u8>, u32>,
    by_level: Vec<u32>,
    ids: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Dictionary {
    /// Announces a shredded field before the first [`Dictionary::load`].
    pub fn want(&mut self, name: &str, level: usize) {
        let next = self.wanted.len() as u32;
        let number = *self.wanted.entry(name.as_bytes().to_vec()).or_insert(next);
        if self.by_level.len() <= level {
            self.by_level.resize(level + 1, NONE);
        }
        self.by_level[level] = number;
        self.ids.resize(self.wanted.len(), NONE);
    }

    /// The field id of a shredded field's name in the metadata loaded last.
    pub fn id_of_level(&self, level: usize) -> Option<u32> {
        let number = *self.by_level.get(level)?;
        self.ids.get(number as usize).copied().filter(|&id| id != NONE)
    }

    /// The name with this id; empty for an id that the metadata does not have (validation refused it before).
    pub fn name(&self, id: u32) -> &[u8] {
        self.names.get(id as usize).map_or(&[], |&(start, end)| &self.bytes[start as usize..end as usize])
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn metadata(&self) -> &[u8] {
        &self.bytes
    }

    pub fn load(&mut self, metadata: &[u8]) -> Result<()> {
        if self.loaded && self.bytes == metadata {
            return Ok(());
        }
        self.loaded = false;
        self.bytes.clear();
        self.bytes.extend_from_slice(metadata);
        self.names.clear();
        self.ids.fill(NONE);
        parse(&self.bytes, &mut self.names)?;
        for (id, &(start, end)) in self.names.iter().enumerate() {
            if let Some(&number) = self.wanted.get(&self.bytes[start as usize..end as usize]) {
                // A dictionary that holds a name twice is legal when unsorted: the first id stands for it.
                let slot = &mut self.ids[number as usize];
                if *slot == NONE {
                    *slot = id as u32;
                }
            }
        }
        self.loaded = true;
        Ok(())
    }
}

fn malformed(rule: u8, offset: usize, message: &str) -> Error {
    Error::new(Code::MalformedVariant, message).rule(rule).offset(offset as u64)
}

/// VariantEncoding.md, "Metadata encoding" (rules 3 to 5).
pub fn parse(bytes: &[u8], names: &mut Vec<(u32, u32)>) -> Result<()> {
    let Some(&header) = bytes.first() else {
        return Err(malformed(3, 0, "the variant metadata is empty"));
    };
    if header & 0x0f != 1 {
        return Err(malformed(3, 0, "the variant metadata has a version other than 1"));
    }
    let sorted = header & 0x10 != 0;
    let width = (header >> 6) as usize + 1;
    let read = |at: usize| -> Result<u32> {
        let slice = bytes.get(at..at + width).ok_or_else(|| malformed(4, at, "the variant metadata is cut short"))?;
        let mut four = [0u8; 4];
        four[..width].copy_from_slice(slice);
        Ok(u32::from_le_bytes(four))
    };
    let count = read(1)? as usize;
    let first = 1 + width + (count + 1) * width;
    if first > bytes.len() {
        return Err(malformed(4, 1, "the variant metadata is cut short"));
    }
    let mut at = 1 + width;
    let mut start = read(at)? as usize;
    if start != 0 {
        return Err(malformed(4, at, "the first offset of the variant metadata is not 0"));
    }
    let text = std::str::from_utf8(&bytes[first..])
        .map_err(|_| malformed(5, first, "a field name in the variant metadata is no UTF-8"))?;
    names.reserve(count);
    let mut previous: Option<&str> = None;
    for _ in 0..count {
        at += width;
        let end = read(at)? as usize;
        if end < start {
            return Err(malformed(4, at, "the offsets of the variant metadata go backwards"));
        }
        let name = text.get(start..end).ok_or_else(|| {
            malformed(4, at, "an offset of the variant metadata is beyond its bytes or splits a character")
        })?;
        if sorted {
            if previous.is_some_and(|p| p.as_bytes() >= name.as_bytes()) {
                return Err(malformed(5, at, "the variant metadata says that it is sorted, and is not"));
            }
            previous = Some(name);
        }
        names.push(((first + start) as u32, (first + end) as u32));
        start = end;
    }
    if first + start != bytes.len() {
        return Err(malformed(4, at, "the last offset of the variant metadata is not its length"));
    }
    Ok(())
}
