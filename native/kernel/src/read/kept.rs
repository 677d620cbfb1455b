//! What a filter read, of rows that passed and were not given yet.
//!
//! Batches are joined to those that are decoded beside them, as long as Arrow's offsets reach.

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;

use crate::error::Result;

/// Bytes of texts that are joined at most, where more than one batch is.
const MAX_JOINED: usize = 1 << 30;

/// As read, and as extracted.
#[derive(Default)]
pub struct Kept {
    pub raw: Vec<RecordBatch>,
    pub extracted: Vec<RecordBatch>,
    /// What was decoded beside them, of rows that were too large to be given at once.
    pub rest: Option<RecordBatch>,
}

impl Kept {
    /// How many of the next `rows` can be joined: all of them, unless texts are so large that Arrow's offsets end.
    pub fn joined(&self, rows: usize) -> usize {
        fit(&self.raw, rows, MAX_JOINED).min(fit(&self.extracted, rows, MAX_JOINED))
    }
}

/// Of the next `rows` those of whole batches, of one at least, that take `most` bytes.
fn fit(batches: &[RecordBatch], rows: usize, most: usize) -> usize {
    let (mut found, mut bytes) = (0, 0);
    for batch in batches {
        bytes += batch.get_array_memory_size();
        if found >= rows || (found > 0 && bytes > most) {
            break;
        }
        found += batch.num_rows();
    }
    if batches.is_empty() { rows } else { found.clamp(1, rows) }
}

/// The first `rows` rows of the batches, which are taken out of them; `None` where there are no batches at all.
pub fn take(batches: &mut Vec<RecordBatch>, rows: usize) -> Result<Option<RecordBatch>> {
    let (mut found, mut left) = (Vec::new(), rows);
    while left > 0
        && let Some(first) = batches.first_mut()
    {
        let taken = left.min(first.num_rows());
        found.push(first.slice(0, taken));
        left -= taken;
        if taken == first.num_rows() {
            batches.remove(0);
        } else {
            *first = first.slice(taken, first.num_rows() - taken);
        }
    }
    join_batches(found)
}

pub fn take_all(batches: &mut Vec<RecordBatch>) -> Result<Option<RecordBatch>> {
    join_batches(std::mem::take(batches))
}

fn join_batches(mut batches: Vec<RecordBatch>) -> Result<Option<RecordBatch>> {
    if batches.len() <= 1 {
        return Ok(batches.pop());
    }
    let schema = batches[0].schema();
    Ok(Some(concat_batches(&schema, &batches)?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int64Array;

    use super::*;

    fn batch(rows: i64) -> RecordBatch {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(0..rows)) as _)]).unwrap()
    }

    #[test]
    fn rows_of_whole_batches_fit() {
        let batches = [batch(3), batch(4), batch(5)];
        let all: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        assert_eq!(fit(&batches, 10, all), 10);
        assert_eq!(fit(&batches, 10, all - 1), 7);
        assert_eq!(fit(&batches, 2, 0), 2);
        assert_eq!(fit(&batches, 10, 0), 3);
        assert_eq!(fit(&[], 10, 0), 10);
    }
}
