//! Definition levels of a page: runs and packed bits (Parquet, Encodings.md, "RLE/Bit-Packing Hybrid"), and how many rows
//! have each.
//!
//! The library's encoder takes levels one by one, as it takes any numbers. Levels are small: eight of them are compared,
//! and packed, as one word. The runs begin and end where the library's do.

use parquet::util::bit_util::num_required_bits;

use crate::parquet::varint::push_unsigned;

/// Bytes before the levels of a page, which say how many they are.
const LENGTH: usize = 4;
/// Levels that are packed together.
const GROUP: usize = 8;
/// Groups of a packed run: their number and a bit beside it fit a byte.
const PACKED_GROUPS: usize = 63;

/// How many are this one.
pub fn count(levels: &[u8], level: u8) -> usize {
    let counts = levels.chunks(128).map(|some| some.iter().map(|&other| u8::from(other == level)).sum::<u8>());
    counts.map(usize::from).sum()
}

/// Writes the levels of a page of the first version, their length in bytes before them; and says how many are each. None
/// is above `max`.
pub fn encode(levels: &[u8], max: u8, out: &mut Vec<u8>) -> Vec<i64> {
    let begin = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    let (width, counts) = (num_required_bits(max.into()), vec![0; usize::from(max) + 1]);
    let mut pages = Encoder { width, out, counts, has_packed: false };
    let (mut rest, mut packed) = (levels, 0);
    while let Some(group) = rest.get(packed..packed + GROUP) {
        let level = group[0];
        if group != [level; GROUP] {
            packed += GROUP;
        }
        if group == [level; GROUP] || packed == PACKED_GROUPS * GROUP {
            let (before, here) = rest.split_at(packed);
            pages.pack(before);
            (rest, packed) = (here, 0);
        }
        if group == [level; GROUP] {
            rest = pages.repeat(rest, level);
        }
    }
    match rest {
        [] => {}
        [level, others @ ..] if packed == 0 && others.iter().all(|other| other == level) => {
            pages.repeat(rest, *level);
        }
        _ => pages.pack(rest),
    }
    let Encoder { out, mut counts, has_packed, .. } = pages;
    if has_packed {
        count_all(levels, &mut counts);
    }
    let length = (out.len() - begin - LENGTH) as u32;
    out[begin..begin + LENGTH].copy_from_slice(&length.to_le_bytes());
    counts
}

/// Says how many are each, the highest first: the levels of values are the most. Packed runs are short and many, so that
/// to count each by itself takes longer.
fn count_all(levels: &[u8], counts: &mut [i64]) {
    counts.fill(0);
    let mut left = levels.len();
    for (level, slot) in counts.iter_mut().enumerate().rev() {
        let found = count(levels, level as u8);
        *slot = found as i64;
        left -= found;
        if left == 0 {
            return;
        }
    }
}

struct Encoder<'o> {
    /// Bits of a level.
    width: u8,
    out: &'o mut Vec<u8>,
    /// Of the runs.
    counts: Vec<i64>,
    /// Whether there are others, which have not been counted.
    has_packed: bool,
}

impl Encoder<'_> {
    /// A run of the level that these begin with; gives the levels after it.
    fn repeat<'a>(&mut self, levels: &'a [u8], level: u8) -> &'a [u8] {
        let groups = levels.chunks_exact(GROUP).take_while(|group| **group == [level; GROUP]).count() * GROUP;
        let (_, after) = levels.split_at(groups);
        let run = groups + after.iter().take_while(|&&other| other == level).count();
        push_unsigned((run as u64) << 1, self.out);
        self.out.push(level);
        if let Some(count) = self.counts.get_mut(usize::from(level)) {
            *count += run as i64;
        }
        &levels[run..]
    }

    /// A run of packed groups, filled up with zeros; nothing if there is none.
    fn pack(&mut self, levels: &[u8]) {
        if levels.is_empty() {
            return;
        }
        self.has_packed = true;
        self.out.push((levels.len().div_ceil(GROUP) << 1 | 1) as u8);
        let (groups, rest) = levels.as_chunks::<GROUP>();
        for group in groups {
            self.pack_group(group);
        }
        if !rest.is_empty() {
            let mut last = [0; GROUP];
            last[..rest.len()].copy_from_slice(rest);
            self.pack_group(&last);
        }
    }

    fn pack_group(&mut self, group: &[u8; GROUP]) {
        let width = u32::from(self.width);
        let bytes = u64::from_le_bytes(*group);
        // Each halving brings neighbours together: bytes to pairs, pairs to fours, fours to eight.
        let pairs = bytes & 0x00ff_00ff_00ff_00ff | (bytes & 0xff00_ff00_ff00_ff00) >> (8 - width);
        let fours = pairs & 0x0000_ffff_0000_ffff | (pairs & 0xffff_0000_ffff_0000) >> (16 - 2 * width);
        let eight = fours & 0xffff_ffff | (fours >> 32) << (4 * width);
        let end = self.out.len() + usize::from(self.width);
        self.out.extend_from_slice(&eight.to_le_bytes());
        self.out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use parquet::encodings::levels::LevelEncoder;

    use super::encode;

    /// Levels in runs of many lengths, by a sequence that looks like chance.
    fn levels(seed: u64, max: u8) -> Vec<u8> {
        let mut state = seed;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut out = Vec::new();
        let longest = [1, 3, 9, 20, 600][next(5) as usize];
        for _ in 0..next(1500) {
            let level = next(u64::from(max) + 1) as u8;
            out.extend((0..=next(longest)).map(|_| level));
        }
        out
    }

    /// The library's encoder is the measure.
    #[test]
    fn levels_are_those_of_the_library() {
        for (seed, max) in (0..60).flat_map(|seed| [1, 2, 3, 6, 15, 40, 254].map(|max| (seed, max))) {
            let levels = levels(seed, max);
            let wide: Vec<i16> = levels.iter().map(|&level| level.into()).collect();
            let (mut library, mut counts) = (LevelEncoder::v1_streaming(max.into()), vec![0; usize::from(max) + 1]);
            library.put_with_observer(&wide, |level, count| counts[level as usize] += count as i64);
            let mut bytes = Vec::new();
            assert_eq!(encode(&levels, max, &mut bytes), counts);
            assert_eq!(bytes, library.consume());
        }
    }
}
