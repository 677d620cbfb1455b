//! The metadata of the row at hand, resolved once per distinct metadata: rows mostly share one, or alternate between
//! few. Holds names by id, and ids by shredded field.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::error::{Code, Error, Result};

#[derive(Default)]
pub struct Dictionary {
    /// Those seen lately, by their bytes, and the place of the one loaded last.
    seen: Vec<Loaded>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    bytes: usize,
    current: usize,
    /// Wanted names: number by text, then the levels of that name.
    wanted: HashMap<Vec<u8>, u32>,
    by_level: Vec<u32>,
}

/// One metadata.
#[derive(Default)]
struct Loaded {
    bytes: Vec<u8>,
    /// Byte range of each name in `bytes`, by field id.
    names: Vec<(u32, u32)>,
    /// Field ids by the number of a wanted name.
    ids: Vec<u32>,
}

const NONE: u32 = u32::MAX;
/// How many are kept, and their bytes.
const MAX_SEEN: usize = 1024;
const MAX_BYTES: usize = 4 << 20;

impl Dictionary {
    /// Announces a shredded field before the first [`Dictionary::load`].
    pub fn want(&mut self, name: &str, level: usize) {
        let next = self.wanted.len() as u32;
        let number = *self.wanted.entry(name.as_bytes().to_vec()).or_insert(next);
        if self.by_level.len() <= level {
            self.by_level.resize(level + 1, NONE);
        }
        self.by_level[level] = number;
    }

    #[inline]
    fn current(&self) -> Option<&Loaded> {
        self.seen.get(self.current)
    }

    /// The field id of a shredded field's name in the metadata loaded last.
    #[inline]
    pub fn id_of_level(&self, level: usize) -> Option<u32> {
        let number = *self.by_level.get(level)?;
        self.current()?.ids.get(number as usize).copied().filter(|&id| id != NONE)
    }

    /// The name with this id; empty for an id that the metadata does not have (validation refused it before).
    #[inline]
    pub fn name(&self, id: u32) -> &[u8] {
        let Some(loaded) = self.current() else { return &[] };
        loaded.names.get(id as usize).map_or(&[], |&(start, end)| &loaded.bytes[start as usize..end as usize])
    }

    /// Number of names.
    #[inline]
    pub fn len(&self) -> usize {
        self.current().map_or(0, |loaded| loaded.names.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn metadata(&self) -> &[u8] {
        self.current().map_or(&[], |loaded| &loaded.bytes)
    }

    #[inline]
    pub fn load(&mut self, metadata: &[u8]) -> Result<()> {
        if self.current().is_some_and(|loaded| loaded.bytes == metadata) {
            return Ok(());
        }
        self.change(metadata)
    }

    fn change(&mut self, metadata: &[u8]) -> Result<()> {
        let hash = self.hasher.hash_one(metadata);
        let seen = &self.seen;
        let same = |&at: &u32| seen.get(at as usize).is_some_and(|loaded| loaded.bytes == metadata);
        if let Some(&at) = self.table.find(hash, same) {
            self.current = at as usize;
            return Ok(());
        }
        let loaded = self.resolve(metadata)?;
        if self.seen.len() >= MAX_SEEN || self.bytes > MAX_BYTES {
            self.seen.clear();
            self.table.clear();
            self.bytes = 0;
        }
        self.current = self.seen.len();
        self.bytes += metadata.len() + 8 * loaded.names.len() + 4 * loaded.ids.len();
        self.seen.push(loaded);
        let (seen, hasher) = (&self.seen, &self.hasher);
        let rehash = |&at: &u32| hasher.hash_one(seen.get(at as usize).map_or(&[][..], |loaded| &loaded.bytes));
        self.table.insert_unique(hash, self.current as u32, rehash);
        Ok(())
    }

    fn resolve(&self, metadata: &[u8]) -> Result<Loaded> {
        let mut names = Vec::new();
        parse(metadata, &mut names)?;
        let mut ids = vec![NONE; self.wanted.len()];
        for (id, &(start, end)) in names.iter().enumerate() {
            if let Some(&number) = self.wanted.get(&metadata[start as usize..end as usize]) {
                // A dictionary that holds a name twice is legal when unsorted: the first id stands for it.
                let slot = &mut ids[number as usize];
                if *slot == NONE {
                    *slot = id as u32;
                }
            }
        }
        Ok(Loaded { bytes: metadata.to_vec(), names, ids })
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
