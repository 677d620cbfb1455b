//! Integers that are packed by their differences, read without the library's decoder beside it: files as many writers make
//! them, and damaged ones.

use std::sync::Arc;

use crate::common::random::Random;
use crate::texts::{come_back, damaged};
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;
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

const PACKED: Option<Encoding> = Some(Encoding::DELTA_BINARY_PACKED);

#[test]
fn integers_come_back_whatever_their_pages() {
    come_back(&DataType::Int64, PACKED, integers);
}

#[test]
fn integers_of_damaged_pages_are_refused_or_those_that_the_library_reads() {
    let (read_by_both, refused, refused_here) = damaged(&DataType::Int64, PACKED, integers);
    assert!(read_by_both > 1000 && refused > 500, "{read_by_both} {refused}");
    assert!(refused_here * 20 < read_by_both, "{refused_here} were read by the library alone, {read_by_both} by both");
}
