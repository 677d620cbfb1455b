//! Values are put together in blocks; that must not be seen. Each row is what it is alone, whatever rows are around it:
//! rows without a value, with names of their own, with more fields than a byte counts, with large arrays, or malformed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::Fields;
use common::{infer, our_models, plain_models, shred};
use mica_kernel::infer::Limits;
use mica_kernel::values::reconstruct::unshred;

const ROWS: usize = 1500;

fn lines() -> Vec<Option<String>> {
    let line = |row: usize| match row {
        _ if row % 11 == 0 => None,
        700..=702 => Some(format!(r#"{{"id":{row},"list":[{}1]}}"#, "1,".repeat(40_000))),
        710 => Some(format!(r#"{{"id":1{}}}"#, (0..300).map(|n| format!(r#","w{n:03}":{n}"#)).collect::<String>())),
        _ if row % 13 == 0 => Some(format!(r#"[{row},"{}"]"#, "é".repeat(row % 90))),
        _ if row % 5 == 0 => Some(format!(r#"{{"id":"{row}","a{row}":{{"x":null}},"o":{{}},"z{row}":[]}}"#)),
        _ => Some(format!(
            r#"{{"id":{row},"text":"{}","o":{{"d":1.{row},"t":{}}},"list":[{row},{{"k":{row}}}]}}"#,
            "t".repeat(row % 70),
            row % 2 == 0
        )),
    };
    (0..ROWS).map(line).collect()
}

fn column(lines: &[Option<&str>]) -> StructArray {
    shred(lines, &infer(lines, Limits { typed_share: 0.5, ..Limits::default() }), &["x"]).unwrap()
}

#[test]
fn a_row_among_many_is_what_it_is_alone() {
    let lines = lines();
    let lines: Vec<Option<&str>> = lines.iter().map(Option::as_deref).collect();
    let column = column(&lines);
    assert!(our_models(&column) == plain_models(&lines));
    let (whole, bytes) =
        (unshred(&column, "v").unwrap(), |array: &StructArray| array.column(1).as_binary::<i32>().clone());
    let all = bytes(&whole);
    for row in (0..ROWS).filter(|row| row % 3 == 0 || (695..715).contains(row)) {
        let alone = unshred(&column.slice(row, 1), "v").unwrap();
        assert_eq!(alone.is_null(0), whole.is_null(row), "row {row}");
        assert!(whole.is_null(row) || bytes(&alone).value(0) == all.value(row), "row {row}");
    }
}

#[test]
fn the_first_malformed_row_is_the_one_that_is_named() {
    let lines = lines();
    let lines: Vec<Option<&str>> = lines.iter().map(Option::as_deref).collect();
    let column = column(&lines);
    for bad in [vec![1usize], vec![703, 704, 1400], vec![ROWS - 1]] {
        let (fields, mut columns, nulls) = column.clone().into_parts();
        let metadata = columns[0].to_data().into_builder();
        let there: NullBuffer = (0..ROWS).map(|row| !bad.contains(&row)).collect();
        let metadata: ArrayRef = arrow::array::make_array(metadata.nulls(Some(there)).build().unwrap());
        columns[0] = metadata;
        let fields: Fields = fields.iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true))).collect();
        let error = unshred(&StructArray::new(fields, columns, nulls), "v").unwrap_err();
        assert_eq!((error.rule, error.row), (Some(2), Some(bad[0] as u64)));
    }
}
