//! The outlines that rows had, by metadata, and their templates. An outline gets its template when rows had it some times.
//! Where too few rows have the outline of others, all are forgotten, and none is looked for in many rows.

use crate::values::reconstruct::template::Template;

/// Outlines that are known at once, and places in the table for them.
const MAX_KEPT: usize = 512;
const TABLE: usize = 2048;

/// Rows with an outline before it gets a template.
const ROWS: u32 = 2;

/// Of so many rows a third should have been written by a template; else none is looked for in so many others, each time more.
const TRIED: usize = 128;
const RESTED: usize = 4096;
const MOST_RESTED: usize = 1 << 16;

/// An outline under one metadata.
struct Known {
    metadata: u32,
    key: Vec<u64>,
    rows: u32,
    /// None before it is made, or where there is none.
    template: Option<Template>,
}

#[derive(Default)]
pub struct Seen {
    outlines: Vec<Known>,
    /// By hash: which outline, counted from 1.
    table: Vec<u16>,
    tried: usize,
    found: usize,
    /// Rows in which none is looked for, and of how many they are.
    rest: usize,
    rested: usize,
}

impl Seen {
    pub fn clear(&mut self) {
        self.outlines.clear();
        self.table.fill(0);
    }

    /// Whether no template is to be looked for.
    #[inline]
    pub fn rests(&mut self) -> bool {
        if self.rest == 0 {
            return false;
        }
        self.rest -= 1;
        true
    }

    #[cold]
    fn judge(&mut self) {
        if self.found < TRIED / 3 {
            self.rested = (2 * self.rested).clamp(RESTED, MOST_RESTED);
            self.rest = self.rested;
            self.clear();
        } else {
            self.rested = 0;
        }
        (self.tried, self.found) = (0, 0);
    }

    /// The template of an outline; `make` is asked for it once.
    #[inline]
    pub fn find(
        &mut self,
        metadata: u32,
        key: impl Iterator<Item = u64> + Clone,
        make: impl FnOnce(&[u64]) -> Option<Template>,
    ) -> Option<&mut Template> {
        self.tried += 1;
        if self.tried == TRIED {
            self.judge();
        }
        if self.table.is_empty() {
            self.table.resize(TABLE, 0);
        }
        let mut at = hash(metadata, key.clone());
        let number = loop {
            at %= TABLE;
            let number = self.table[at] as usize;
            let Some(known) = self.outlines.get(number.wrapping_sub(1)) else { break 0 };
            if known.metadata == metadata && known.key.iter().copied().eq(key.clone()) {
                break number;
            }
            at += 1;
        };
        if number == 0 {
            if self.outlines.len() < MAX_KEPT {
                self.add(at, metadata, key.collect());
            }
            return None;
        }
        let known = self.outlines.get_mut(number - 1)?;
        if known.rows < ROWS {
            known.rows += 1;
            if known.rows == ROWS {
                known.template = make(&known.key);
            }
        }
        known.template.as_mut().filter(|template| template.pays())
    }

    /// A row was written by the template that was found for it. One that does not fit counts as if there was none.
    #[inline]
    pub fn fitted(&mut self) {
        self.found += 1;
    }

    #[cold]
    fn add(&mut self, at: usize, metadata: u32, key: Vec<u64>) {
        self.outlines.push(Known { metadata, key, rows: 0, template: None });
        self.table[at] = self.outlines.len() as u16;
    }
}

#[inline]
fn hash(metadata: u32, key: impl Iterator<Item = u64>) -> usize {
    let mixed = key.fold(metadata as u64, |mixed, word| {
        let product = u128::from(mixed.rotate_left(32) ^ word) * 0x9e37_79b9_7f4a_7c15;
        (product >> 64) as u64 ^ product as u64
    });
    mixed as usize
}
