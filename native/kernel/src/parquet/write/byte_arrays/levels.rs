//! Definition levels of a page, and how many rows have each.

use super::hybrid;
use crate::parquet::bits::width;

/// Bytes before the levels of a page, which say how many they are.
const LENGTH: usize = 4;

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
    let mut counts = vec![0; usize::from(max) + 1];
    let in_no_run = hybrid::encode(levels, width(max.into()), out, |level, run| {
        if let Some(count) = counts.get_mut(usize::from(level)) {
            *count += run as i64;
        }
    });
    if in_no_run > 0 {
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

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn levels_are_counted_in_runs_and_outside() {
        for (levels, counts) in [
            (&[2; 40][..], [0, 0, 40]),
            (&[0, 1, 2, 2, 1, 0, 2, 2, 0][..], [3, 2, 4]),
            (&[[1; 30], [2; 30]].concat(), [0, 30, 30]),
            (&[], [0, 0, 0]),
        ] {
            let mut page = vec![9];
            assert_eq!(encode(levels, 2, &mut page), counts);
            assert_eq!(page.len() - 5, u32::from_le_bytes(*page[1..].first_chunk().unwrap()) as usize);
        }
    }
}
