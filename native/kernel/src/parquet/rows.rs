//! Rows of a file as ranges: sorted, without overlap, half open. Pure arithmetic.

use std::ops::Range;

use arrow_array::{Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_select::filter::prep_null_mask_filter;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};

use crate::error::{Code, Error, Result};

pub type Rows = Vec<Range<u64>>;

pub fn count(rows: &[Range<u64>]) -> u64 {
    rows.iter().map(|r| r.end - r.start).sum()
}

/// Ranges that a caller gives for the `total` rows of what `name` names.
pub fn check(rows: &[Range<u64>], total: u64, name: &str) -> Result<()> {
    let mut end = 0;
    for range in rows {
        if range.start < end || range.end < range.start || range.end > total {
            let message = format!("row ranges must be sorted, without overlap and within the {total} rows of {name}");
            return Err(Error::new(Code::InvalidArgument, message));
        }
        end = range.end;
    }
    Ok(())
}

/// The parts of the ranges that lie in `first..end`.
pub fn clip(rows: &[Range<u64>], first: u64, end: u64) -> Rows {
    let from = rows.partition_point(|r| r.end <= first);
    rows[from..]
        .iter()
        .take_while(|r| r.start < end)
        .map(|r| r.start.max(first)..r.end.min(end))
        .filter(|r| r.start < r.end)
        .collect()
}

/// The first `most` rows.
pub fn head(rows: &[Range<u64>], most: u64) -> Rows {
    let mut left = most;
    let mut found = Vec::new();
    for range in rows {
        let taken = left.min(range.end - range.start);
        if taken == 0 {
            break;
        }
        found.push(range.start..range.start + taken);
        left -= taken;
    }
    found
}

/// The rows without the first `given`.
pub fn after(rows: &[Range<u64>], mut given: u64) -> Rows {
    let mut left = Vec::with_capacity(rows.len());
    for range in rows {
        let skipped = given.min(range.end - range.start);
        given -= skipped;
        if range.start + skipped < range.end {
            left.push(range.start + skipped..range.end);
        }
    }
    left
}

/// The row of the file that is the `at`-th of these.
pub fn absolute(rows: &[Range<u64>], mut at: u64) -> u64 {
    for range in rows {
        let len = range.end - range.start;
        if at < len {
            return range.start + at;
        }
        at -= len;
    }
    rows.last().map_or(0, |r| r.end)
}

/// Of the rows from the `from`-th on, those where the mask is true, appended to `found`. Null is not true.
pub fn masked(rows: &[Range<u64>], from: u64, mask: &BooleanArray, found: &mut Rows) {
    let mask = if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() };
    let mut left = after(rows, from).into_iter();
    let (mut at, mut here) = (0u64, left.next());
    for (start, end) in mask.values().set_slices() {
        let (mut start, end) = (start as u64, end as u64);
        while start < end {
            let Some(range) = here.clone() else { return };
            let len = range.end - range.start;
            if start >= at + len {
                at += len;
                here = left.next();
                continue;
            }
            let stop = end.min(at + len);
            push(found, range.start + (start - at)..range.start + (stop - at));
            start = stop;
        }
    }
}

/// Appends a range that lies behind all others.
pub fn push(rows: &mut Rows, range: Range<u64>) {
    match rows.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => rows.push(range),
    }
}

/// Below this mean length of its runs the library reads all pages of a selection and masks their rows
/// (`RowSelectionPolicy`), so all of them have to be there.
const MASKED_BELOW: u64 = 32;

/// The rows as the Parquet library takes them, relative to a row group that is `first..end` of the file: as a mask where it
/// would make one of them.
pub fn selection(rows: &[Range<u64>], first: u64, end: u64) -> RowSelection {
    // Each range but the first lies behind a gap.
    let ends = [rows.first().is_some_and(|r| r.start > first), rows.last().is_none_or(|r| r.end < end)];
    let runs = (2 * rows.len() as u64).saturating_sub(1) + ends.into_iter().map(u64::from).sum::<u64>();
    if end.saturating_sub(first) <= (runs + 1) * MASKED_BELOW {
        return RowSelection::from_boolean_buffer(mask(rows, first, end));
    }
    let mut selectors = Vec::with_capacity(rows.len() * 2 + 1);
    let mut at = first;
    for range in rows {
        if range.start > at {
            selectors.push(RowSelector::skip((range.start - at) as usize));
        }
        selectors.push(RowSelector::select((range.end - range.start) as usize));
        at = range.end;
    }
    if at < end {
        selectors.push(RowSelector::skip((end - at) as usize));
    }
    RowSelection::from(selectors)
}

/// One bit for each of `first..end`.
fn mask(rows: &[Range<u64>], first: u64, end: u64) -> BooleanBuffer {
    let len = end.saturating_sub(first);
    let mut words = vec![0u64; len.div_ceil(64) as usize];
    for range in rows {
        let (mut at, stop) = (range.start.saturating_sub(first), range.end.saturating_sub(first));
        while at < stop {
            let bits = (64 - at % 64).min(stop - at);
            if let Some(word) = words.get_mut((at / 64) as usize) {
                *word |= (u64::MAX >> (64 - bits)) << (at % 64);
            }
            at += bits;
        }
    }
    BooleanBuffer::new(Buffer::from_vec(words), 0, len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_over_ranges_gives_their_rows() {
        let rows = vec![10..13, 20..24];
        let mask = BooleanArray::from(vec![Some(true), None, Some(true), Some(true), Some(false), Some(true)]);
        let mut found = Vec::new();
        masked(&rows, 0, &mask, &mut found);
        assert_eq!(found, vec![10..11, 12..13, 20..21, 22..23]);
        let mut later = Vec::new();
        masked(&rows, 2, &BooleanArray::from(vec![true, true, true]), &mut later);
        assert_eq!(later, vec![12..13, 20..22]);
    }

    #[test]
    fn heads_tails_and_clips_agree() {
        let rows = vec![0..5, 7..9, 100..200];
        for most in [0, 3, 5, 6, 7, 50, 107, 500] {
            let (head, tail) = (head(&rows, most), after(&rows, most));
            assert_eq!(count(&head) + count(&tail), count(&rows));
            assert_eq!(count(&head), most.min(count(&rows)));
            if let (Some(last), Some(first)) = (head.last(), tail.first()) {
                assert!(last.end <= first.start);
            }
        }
        assert_eq!(clip(&rows, 4, 8), vec![4..5, 7..8]);
        assert_eq!(absolute(&rows, 6), 8);
    }

    #[test]
    fn a_selection_is_the_same_as_a_mask_and_as_runs() {
        for step in 1..100u64 {
            for length in 1..=step {
                for (first, end) in [(0, 300), (7, 263), (64, 65 + step)] {
                    let starts = (first + step / 3..end).step_by(step as usize + 1);
                    let rows: Rows = starts.map(|start| start..(start + length).min(end)).collect();
                    let found = selection(&rows, first, end);
                    let mut at = first;
                    let mut ranges = Rows::new();
                    for run in found.iter() {
                        if !run.skip {
                            push(&mut ranges, at..at + run.row_count as u64);
                        }
                        at += run.row_count as u64;
                    }
                    assert_eq!((ranges, at), (rows, end), "{step} {length} {first} {end}");
                }
            }
        }
        // As the library decides it: at and around the mean length of 32.
        let runs = |length: u64| (0..10).map(|n| 2 * n * length..(2 * n + 1) * length).collect::<Rows>();
        assert!(selection(&runs(31), 0, 620).as_mask().is_some());
        assert!(selection(&runs(40), 0, 800).as_mask().is_none());
        assert_eq!(selection(&[], 0, 10).row_count(), 0);
    }
}
