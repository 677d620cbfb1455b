//! Definition levels that become one bit each on their way to the library's decoders: whether the value is there.
//!
//! In a column without repetition, a level says how many of the groups around a value are there. A reader of the values
//! alone needs one bit of that, from which the library makes nulls without a list of numbers.
//! (Parquet, "Run Length Encoding / Bit-Packing Hybrid".)

use bytes::{BufMut, Bytes, BytesMut};
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::errors::{ParquetError, Result as ParquetResult};

use crate::parquet::bits::{push_unsigned, unsigned, width};

/// The highest level that is read here: its eight fill a word.
pub const MAX_LEVEL: i16 = 0xff;

/// The page with one bit a level, of which the highest is `highest`.
pub fn one_bit(page: Page, highest: i16) -> ParquetResult<Page> {
    page_of_bits(page, highest)
        .ok_or_else(|| ParquetError::EOF("a page has fewer definition levels than it states, or other ones".into()))
}

/// The page with other levels; `None` where it lacks some, or where they are encoded as no levels are.
fn page_of_bits(mut page: Page, highest: i16) -> Option<Page> {
    match &mut page {
        Page::DictionaryPage { .. } => {}
        Page::DataPage { buf, num_values, def_level_encoding: Encoding::RLE, .. } => {
            let end = (u32::from_le_bytes(*buf.first_chunk()?) as usize).checked_add(4)?;
            let mut bits = vec![0; 4];
            push_bits(buf.get(4..end)?, highest, u64::from(*num_values), &mut bits)?;
            let length = u32::try_from(bits.len() - 4).ok()?;
            bits[..4].copy_from_slice(&length.to_le_bytes());
            *buf = replaced(std::mem::take(buf), 0, end, &bits);
        }
        Page::DataPage { .. } => return None,
        Page::DataPageV2 { buf, num_values, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let start = *rep_levels_byte_len as usize;
            let end = start.checked_add(*def_levels_byte_len as usize)?;
            let mut bits = Vec::new();
            push_bits(buf.get(start..end)?, highest, u64::from(*num_values), &mut bits)?;
            *def_levels_byte_len = u32::try_from(bits.len()).ok()?;
            // No level repeats: nothing of worth stands before.
            *rep_levels_byte_len = 0;
            *buf = replaced(std::mem::take(buf), 0, end, &bits);
        }
    }
    Some(page)
}

/// The bytes with others in the place of `start..end`: nothing moves where they are the only owner and these fit.
fn replaced(bytes: Bytes, start: usize, end: usize, with: &[u8]) -> Bytes {
    match bytes.try_into_mut() {
        Ok(mut own) if start == 0 && with.len() <= end => {
            own[end - with.len()..end].copy_from_slice(with);
            own.freeze().slice(end - with.len()..)
        }
        Ok(own) => joined(&own[..start], with, &own[end..]),
        Err(shared) => joined(&shared[..start], with, &shared[end..]),
    }
}

fn joined(before: &[u8], with: &[u8], after: &[u8]) -> Bytes {
    let mut all = BytesMut::with_capacity(before.len() + with.len() + after.len());
    [before, with, after].into_iter().for_each(|part| all.put_slice(part));
    all.freeze()
}

/// Appends the runs of `count` levels, run by run; `None` where there are fewer.
fn push_bits(mut levels: &[u8], highest: i16, count: u64, out: &mut Vec<u8>) -> Option<()> {
    let width = width(highest as usize);
    let mut left = count;
    while left > 0 {
        let (rest, header) = unsigned(levels)?;
        let length = header >> 1;
        if length == 0 {
            return None;
        }
        if header & 1 == 0 {
            let (&level, rest) = rest.split_first()?;
            levels = rest;
            let taken = length.min(left);
            push_unsigned(taken << 1, out);
            out.push(u8::from(i16::from(level) == highest));
            left -= taken;
        } else {
            let groups = length.min(left.div_ceil(8));
            let taken = left.min(groups.saturating_mul(8));
            let end = usize::try_from(groups).ok()?.checked_mul(width)?.min(rest.len());
            let (packed, rest) = rest.split_at_checked(end)?;
            // What fills the last group need not be there.
            if (packed.len() * 8 / width) < usize::try_from(taken).ok()? {
                return None;
            }
            push_packed(packed, highest, groups, out);
            levels = rest;
            left -= taken;
        }
    }
    Some(())
}

/// Appends one run of so many groups of eight levels; what is beyond the bytes is not there.
fn push_packed(packed: &[u8], highest: i16, groups: u64, out: &mut Vec<u8>) {
    push_unsigned(groups << 1 | 1, out);
    let end = out.len() + groups as usize;
    match width(highest as usize) {
        2 => push_groups::<2>(packed, highest, out),
        3 => push_groups::<3>(packed, highest, out),
        4 => push_groups::<4>(packed, highest, out),
        5 => push_groups::<5>(packed, highest, out),
        6 => push_groups::<6>(packed, highest, out),
        7 => push_groups::<7>(packed, highest, out),
        8 => push_groups::<8>(packed, highest, out),
        _ => push_groups::<1>(packed, highest, out),
    }
    out.resize(end, 0);
}

fn push_groups<const WIDTH: usize>(packed: &[u8], highest: i16, out: &mut Vec<u8>) {
    let (groups, rest) = packed.as_chunks::<WIDTH>();
    out.extend(groups.iter().map(|group| bits_of(*group, highest)));
    if !rest.is_empty() {
        let mut last = [0; WIDTH];
        last[..rest.len()].copy_from_slice(rest);
        out.push(bits_of(last, highest));
    }
}

/// Which of eight levels are the highest.
#[inline(always)]
fn bits_of<const WIDTH: usize>(group: [u8; WIDTH], highest: i16) -> u8 {
    let mut word = [0; 8];
    word[..WIDTH].copy_from_slice(&group);
    let (word, mask) = (u64::from_le_bytes(word), u64::MAX >> (64 - WIDTH));
    (0..8).fold(0, |bits, at| bits | u8::from(word >> (at * WIDTH) & mask == highest as u64) << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What runs of one bit say.
    fn bits(mut runs: &[u8], count: usize) -> Vec<bool> {
        let mut found = Vec::new();
        while let Some((rest, header)) = unsigned(runs).filter(|_| found.len() < count) {
            let length = (header >> 1) as usize;
            if header & 1 == 0 {
                found.extend(vec![rest[0] == 1; length]);
                runs = &rest[1..];
            } else {
                found.extend((0..8 * length).map(|at| rest[at / 8] >> (at % 8) & 1 == 1));
                runs = &rest[length..];
            }
        }
        found.truncate(count);
        found
    }

    /// Levels in runs as they are written: equal ones counted, others packed by eights.
    fn runs(levels: &[i16], highest: i16) -> Vec<u8> {
        let (width, mut out, mut at) = (width(highest as usize), Vec::new(), 0);
        while at < levels.len() {
            let equal = levels[at..].iter().take_while(|level| **level == levels[at]).count();
            if equal >= 5 || equal == levels.len() - at {
                push_unsigned((equal as u64) << 1, &mut out);
                out.push(levels[at] as u8);
                at += equal;
                continue;
            }
            let eight = &levels[at..levels.len().min(at + 8)];
            let word = eight.iter().enumerate().fold(0u64, |word, (n, level)| word | (*level as u64) << (n * width));
            out.push(3);
            out.extend_from_slice(&word.to_le_bytes()[..width]);
            at += eight.len();
        }
        out
    }

    #[test]
    fn levels_become_bits_whatever_their_width_and_runs_and_lacking_ones_are_found() {
        for highest in [1, 2, 3, 4, 7, 8, 20, 60, 100, MAX_LEVEL] {
            let levels: Vec<i16> = (0..2000i32)
                .map(|row| if row % 97 < 40 { highest } else { (row * row % 7 % (i32::from(highest) + 1)) as i16 })
                .collect();
            let written = runs(&levels, highest);
            let wanted: Vec<bool> = levels.iter().map(|level| *level == highest).collect();
            for count in [2000, 1999, 1234, 8, 1] {
                let mut out = Vec::new();
                assert_eq!(push_bits(&written, highest, count as u64, &mut out), Some(()));
                assert_eq!(bits(&out, count), wanted[..count], "{highest}");
                assert!(out.len() <= written.len());
            }
            for cut in 0..written.len() {
                let mut out = Vec::new();
                // What fills the last group may lack.
                match push_bits(&written[..cut], highest, 2000, &mut out) {
                    None => {}
                    Some(()) => assert_eq!((cut > written.len() - 8, bits(&out, 2000)), (true, wanted.clone())),
                }
            }
        }
        assert_eq!(push_bits(&[0, 0], 3, 1, &mut Vec::new()), None);
        assert_eq!(push_bits(&[0xff; 12], 3, 1, &mut Vec::new()), None);
    }

    #[test]
    #[allow(deprecated)]
    fn pages_keep_their_values_be_their_bytes_shared_or_not() {
        let levels = [3, 3, 0, 1, 2, 3, 3, 3, 3, 3, 2];
        let rle = runs(&levels.map(|level| level as i16), 3);
        let first = |encoding| Page::DataPage {
            buf: [&(rle.len() as u32).to_le_bytes()[..], &rle, b"values"].concat().into(),
            num_values: 11,
            encoding: Encoding::PLAIN,
            def_level_encoding: encoding,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let second = Page::DataPageV2 {
            buf: [&[9, 9], &rle[..], b"values"].concat().into(),
            num_values: 11,
            encoding: Encoding::PLAIN,
            num_nulls: 4,
            num_rows: 11,
            def_levels_byte_len: rle.len() as u32,
            rep_levels_byte_len: 2,
            is_compressed: false,
            statistics: None,
        };
        let wanted: Vec<bool> = levels.iter().map(|level| *level == 3).collect();
        for page in [first(Encoding::RLE), second] {
            for shared in [false, true] {
                let held = shared.then(|| page.buffer().clone());
                let page = if shared { page.clone() } else { unique(&page) };
                let Some(found) = page_of_bits(page, 3) else { panic!("{held:?}") };
                let bytes = found.buffer().clone();
                let (start, end) = match found {
                    Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len: 0, .. } => (0, def_levels_byte_len),
                    Page::DataPage { def_level_encoding: Encoding::RLE, .. } => {
                        (4, 4 + u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
                    }
                    other => panic!("{other:?}"),
                };
                assert_eq!(bits(&bytes[start..end as usize], 11), wanted);
                assert_eq!(&bytes[end as usize..], b"values");
            }
        }
        // No levels are encoded so.
        for encoding in [Encoding::BIT_PACKED, Encoding::PLAIN_DICTIONARY, Encoding::DELTA_BYTE_ARRAY] {
            assert!(page_of_bits(first(encoding), 3).is_none());
        }
    }

    fn unique(page: &Page) -> Page {
        let mut page = page.clone();
        if let Page::DataPage { buf, .. } | Page::DataPageV2 { buf, .. } = &mut page {
            *buf = buf.to_vec().into();
        }
        page
    }
}
