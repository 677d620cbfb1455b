//! Definition levels of one layout as those of the other, run by run, in the hybrid of runs and packed bits that data
//! pages hold (Parquet, "Run Length Encoding / Bit-Packing Hybrid").

use crate::error::{Code, Error, Result};
use crate::parquet::bits::{push_unsigned, width};

/// No level of the other layout.
const NONE: u8 = u8::MAX;
/// The highest level that is moved: wider ones take more than a byte.
const HIGHEST: usize = 254;

/// What the pages cannot say in the other layout: whoever decodes the columns can.
pub fn unfit() -> Error {
    Error::new(Code::DoesNotFit, "the pages cannot be copied to the other layout")
}

/// Which level each level becomes.
#[derive(Debug, Clone)]
pub struct LevelMap {
    to: [u8; 256],
    levels: usize,
    highest: usize,
}

impl LevelMap {
    /// `to` is indexed by the old level; `None` is a level that no value may have. `None` where levels are too high.
    pub fn new(to: &[Option<u16>], highest: u16) -> Option<Self> {
        if to.len() > HIGHEST + 1 || usize::from(highest) > HIGHEST {
            return None;
        }
        let mut table = [NONE; 256];
        for (slot, to) in table.iter_mut().zip(to) {
            *slot = to.map_or(NONE, |to| to as u8);
        }
        Some(LevelMap { to: table, levels: to.len(), highest: highest.into() })
    }

    /// How many old levels there are.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Counts of old levels as counts of new ones.
    pub fn histogram(&self, old: &[i64]) -> Vec<i64> {
        let mut new = vec![0; self.highest + 1];
        for (&count, &to) in old.iter().zip(&self.to) {
            if let Some(slot) = new.get_mut(usize::from(to)) {
                *slot += count;
            }
        }
        new
    }

    /// Rewrites `count` levels to `out` and adds them up, by old level, in `seen`. Fails for levels that have no
    /// counterpart or are none at all.
    pub fn rewrite(&self, mut bytes: &[u8], count: usize, out: &mut Vec<u8>, seen: &mut [i64]) -> Result<()> {
        let (from, to) = (width(self.levels - 1), width(self.highest));
        let mut left = count;
        while left > 0 {
            let (header, rest) = varint(bytes).ok_or_else(unfit)?;
            bytes = rest;
            let length = (header >> 1) as usize;
            if length == 0 {
                return Err(unfit());
            }
            if header & 1 == 0 {
                let (&level, rest) = bytes.split_first().ok_or_else(unfit)?;
                bytes = rest;
                let taken = length.min(left);
                *seen.get_mut(usize::from(level)).ok_or_else(unfit)? += taken as i64;
                match self.to[usize::from(level)] {
                    NONE => return Err(unfit()),
                    level => {
                        push_unsigned((taken as u64) << 1, out);
                        out.push(level);
                    }
                }
                left -= taken;
            } else {
                let groups = length.min(left.div_ceil(8));
                let packed = bytes.get(..groups * from).ok_or_else(unfit)?;
                bytes = bytes.get(length * from..).unwrap_or(&[]);
                push_unsigned((groups as u64) << 1 | 1, out);
                for group in packed.chunks_exact(from) {
                    self.group(group, left.min(8), to, out, seen)?;
                    left -= left.min(8);
                }
            }
        }
        Ok(())
    }

    /// Eight levels, of which the first `valid` count.
    #[inline]
    fn group(&self, packed: &[u8], valid: usize, to: usize, out: &mut Vec<u8>, seen: &mut [i64]) -> Result<()> {
        let mut word = [0; 8];
        word[..packed.len()].copy_from_slice(packed);
        let (mut word, from) = (u64::from_le_bytes(word), packed.len());
        let mask = (1u64 << from) - 1;
        let mut made = 0u64;
        for at in 0..valid {
            let level = (word & mask) as usize;
            word = word.checked_shr(from as u32).unwrap_or(0);
            let new = self.to[level];
            match seen.get_mut(level) {
                Some(count) if new != NONE => *count += 1,
                _ => return Err(unfit()),
            }
            made |= u64::from(new) << (at * to);
        }
        out.extend_from_slice(&made.to_le_bytes()[..to]);
        Ok(())
    }
}

fn varint(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some((u32::try_from(value).ok()?, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> LevelMap {
        LevelMap::new(&[Some(0), Some(2), None, Some(5)], 5).unwrap()
    }

    #[test]
    fn runs_and_packed_levels_are_mapped() {
        // A run of five 1s, then eight packed: 3 1 0 1 3 3 0 0, of which the last two are padding.
        let packed: u16 = 0b00_00_11_11_01_00_01_11;
        let mut bytes = vec![5 << 1, 1, 1 << 1 | 1];
        bytes.extend_from_slice(&packed.to_le_bytes());
        let (mut out, mut seen) = (Vec::new(), vec![0; 4]);
        map().rewrite(&bytes, 11, &mut out, &mut seen).unwrap();
        assert_eq!(seen, [1, 7, 0, 3]);
        assert_eq!(map().histogram(&seen), [1, 0, 7, 0, 0, 3]);
        let expected: u32 = [5, 2, 0, 2, 5, 5].iter().rev().fold(0, |word, level| word << 3 | level);
        assert_eq!(out, [&[5 << 1, 2, 1 << 1 | 1], &expected.to_le_bytes()[..3]].concat());
    }

    #[test]
    fn what_has_no_counterpart_or_is_cut_short_fails() {
        for bytes in [&[3 << 1, 2][..], &[3 << 1, 9], &[3 << 1], &[0, 1], &[3, 0xff], &[], &[0xff; 6]] {
            assert!(map().rewrite(bytes, 3, &mut Vec::new(), &mut [0; 4]).is_err(), "{bytes:?}");
        }
        assert!(LevelMap::new(&[Some(0); 256], 3).is_none());
        assert!(LevelMap::new(&[Some(0)], 255).is_none());
    }
}
