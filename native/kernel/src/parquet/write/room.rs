//! The rows of one column outside lists: the definition level of each, and where its values are.

use arrow_buffer::NullBuffer;
use parquet::errors::{ParquetError, Result};

use crate::parquet::write::byte_arrays::count;

/// Room for the rows of a column: their levels, and the places of its values.
#[derive(Default)]
pub struct Room {
    pub levels: Vec<u8>,
    /// Where an array has values, and 0, 1, 2, … for values without nulls between them: the first `found` count.
    places: Vec<usize>,
    ordinals: Vec<usize>,
    found: usize,
    in_order: bool,
}

impl Room {
    /// Where it has values.
    pub fn places(&self) -> &[usize] {
        let places = if self.in_order { &self.ordinals } else { &self.places };
        places.get(..self.found).unwrap_or(&[])
    }

    pub fn clear(&mut self) {
        self.levels.clear();
        self.found = 0;
    }

    /// Rows with values at these places, and no nulls between the values, under structs with these levels.
    pub fn fill(
        &mut self,
        around: &[u8],
        full: u8,
        nullable: bool,
        places: impl ExactSizeIterator<Item = usize>,
    ) -> Result<()> {
        (self.in_order, self.found) = (true, places.len());
        self.ordinals.extend(self.ordinals.len()..self.found);
        self.levels.extend_from_slice(around);
        for place in places {
            match self.levels.get_mut(place) {
                Some(level) if *level == full => *level += u8::from(nullable),
                // The shredder puts values only where it puts the structs around them.
                _ => return Err(uneven()),
            }
        }
        if !nullable && count(around, full) != self.found {
            return Err(ParquetError::General("a column that must not be null has no value in some rows".into()));
        }
        Ok(())
    }

    /// The rows of an array with these nulls.
    pub fn find(&mut self, around: &[u8], full: u8, nullable: bool, nulls: Option<&NullBuffer>) {
        let top = full + u8::from(nullable);
        match nulls.filter(|nulls| nullable && nulls.null_count() > 0) {
            None if !nullable => self.levels.extend_from_slice(around),
            nulls => raise(around, full, nulls, &mut self.levels),
        }
        self.in_order = false;
        // What is behind the last place is left from other columns.
        self.places.resize(self.places.len().max(self.levels.len()), 0);
        for (row, &level) in self.levels.iter().enumerate() {
            if let Some(place) = self.places.get_mut(self.found) {
                *place = row;
            }
            self.found += usize::from(level == top);
        }
    }
}

/// Adds the levels with one more where they are `full` and the row has a value.
pub fn raise(levels: &[u8], full: u8, nulls: Option<&NullBuffer>, out: &mut Vec<u8>) {
    let Some(nulls) = nulls else {
        return out.extend(levels.iter().map(|&level| level.saturating_add(u8::from(level == full))));
    };
    let begin = out.len();
    out.extend_from_slice(levels);
    let raised = out.get_mut(begin..).unwrap_or_default();
    for (levels, word) in raised.chunks_mut(64).zip(nulls.inner().bit_chunks().iter_padded()) {
        let bits = word.to_le_bytes().map(spread);
        let (eights, rest) = levels.as_chunks_mut::<8>();
        for (levels, bits) in eights.iter_mut().zip(&bits) {
            raise_each(levels, full, bits);
        }
        raise_each(rest, full, bits.get(eights.len()).unwrap_or(&[0; 8]));
    }
}

#[inline]
fn raise_each(levels: &mut [u8], full: u8, bits: &[u8; 8]) {
    for (level, bit) in levels.iter_mut().zip(bits) {
        *level = level.saturating_add(u8::from(*level == full) & bit);
    }
}

/// A byte of 0 or 1 for each bit.
fn spread(bits: u8) -> [u8; 8] {
    let alone = (u64::from(bits) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    (((alone + 0x7f7f_7f7f_7f7f_7f7f) >> 7) & 0x0101_0101_0101_0101).to_le_bytes()
}

pub fn uneven() -> ParquetError {
    ParquetError::General("the rows have other columns than the file".into())
}
