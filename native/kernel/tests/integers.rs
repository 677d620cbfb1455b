//! Integers that are packed by their differences, read without the library's decoder beside it: files as many writers make
//! them, and damaged ones.

use std::sync::Arc;

use crate::common::random::Random;
use crate::texts::{batch, damaged, file, joined, path, read, some_of};
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;

/// Numbers near each other, far from each other, of all 64 bits, equal ones; nulls alone, in runs, of whole pages.
fn integers(random: &mut Random, rows: usize, nulls: bool) -> ArrayRef {
    let bits = [0, 1, 7, 20, 33, 57, 64][random.next(7)];
    let (often, mut there, mut last) = ([1, 3, 40, 3000][random.next(4)], true, 0i64);
    let mut row = |random: &mut Random| {
        if nulls && random.next(often) == 0 {
            there = random.next(3) > 0;
        }
        let wide = random.next(1 << 32) as u64 | (random.next(1 << 32) as u64) << 32;
        last = last.wrapping_add((wide & u64::MAX.checked_shr(64 - bits).unwrap_or(0)) as i64).wrapping_sub(3);
        there.then_some(last)
    };
    Arc::new((0..rows).map(|_| row(random)).collect::<Int64Array>())
}

#[test]
fn integers_come_back_whatever_their_pages() {
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let rows = some_of(random, &[40, 900, 6000]);
        let batch = batch(random, rows, integers);
        let bytes = Bytes::from(file(random, &batch, Some(Encoding::DELTA_BINARY_PACKED)));
        let max_rows = some_of(random, &[7, 700, 9000]);
        for (column, wanted) in
            [("required", batch.column(0).clone()), ("optional", batch.column(1).clone()), ("v", path(&batch))]
        {
            let found = read(&bytes, column, DataType::Int64, max_rows);
            let found = found.unwrap_or_else(|e| panic!("seed {seed}, {column}: {e:?}"));
            assert!(found.iter().all(|array| array.len() <= max_rows), "seed {seed}, {column}");
            assert_eq!(joined(&found).as_ref(), Some(&wanted), "seed {seed}, {column}");
        }
    }
}

#[test]
fn integers_of_damaged_pages_are_refused_or_those_that_the_library_reads() {
    let (read_by_both, refused, refused_here) = damaged(&DataType::Int64, |random| {
        let rows = 1 + random.next(300);
        let batch = batch(random, rows, integers);
        (rows, file(random, &batch, Some(Encoding::DELTA_BINARY_PACKED)))
    });
    assert!(read_by_both > 1000 && refused > 500, "{read_by_both} {refused}");
    assert!(refused_here * 20 < read_by_both, "{refused_here} were read by the library alone, {read_by_both} by both");
}
