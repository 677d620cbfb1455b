//! Variants changed at a path: the corners that the Python tests (`tests/property/test_variant_edits.py`) do not reach.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use mica_kernel::Code;
use mica_kernel::batch::edit::{Edit, edit};
use mica_kernel::batch::values::{json_to_variant, validate, variant_to_json};
use mica_kernel::json::ParseOptions;
use mica_kernel::path::Step;
use mica_kernel::text::zone::Zone;
use proptest::prelude::*;

fn variants(texts: &[&str]) -> ArrayRef {
    let schema = Schema::new(vec![Field::new("json", DataType::Utf8, true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(StringArray::from(texts.to_vec()))]).unwrap();
    json_to_variant(&batch, ParseOptions::default()).unwrap().column(0).clone()
}

fn pair(documents: &[&str], new: &str) -> RecordBatch {
    let values = variants(&vec![new; documents.len()]);
    RecordBatch::try_from_iter([("v", variants(documents)), ("new", values)]).unwrap()
}

fn texts(made: &RecordBatch) -> Vec<Option<String>> {
    let column = made.project(&[0]).unwrap();
    validate(&column).unwrap();
    let texts = variant_to_json(&column, &Zone::UTC).unwrap();
    texts.column(0).as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn what_would_be_too_deep_or_too_large_is_refused() {
    let deep = format!("{}1{}", "[".repeat(999), "]".repeat(999));
    let path = |length: usize| vec![vec![Step::Key("a".into()); length]];
    let set = Edit::Set { create: true };
    assert!(edit(&pair(&["{}"], &deep), set, &path(1)).is_ok());
    assert_eq!(edit(&pair(&["{}"], &deep), set, &path(2)).unwrap_err().code, Code::TooDeep);
    assert_eq!(edit(&pair(&["{}"], "1"), set, &path(1001)).unwrap_err().code, Code::TooDeep);
    let far = vec![vec![Step::Index(usize::MAX)]];
    assert_eq!(edit(&pair(&["[]"], "1"), Edit::Insert, &far).unwrap_err().code, Code::TooLarge);
}

#[test]
fn rows_that_do_not_change_keep_their_bytes() {
    let batch = pair(&["{\"a\":1,\"b\":[true]}", "7"], "1");
    let made = edit(&batch, Edit::Delete, &[vec![Step::Key("c".into())]]).unwrap();
    assert_eq!(
        made.column(0).as_struct().column(0).as_binary::<i32>(),
        batch.column(0).as_struct().column(0).as_binary::<i32>()
    );
    assert_eq!(
        made.column(0).as_struct().column(1).as_binary::<i32>(),
        batch.column(0).as_struct().column(1).as_binary::<i32>()
    );
}

#[test]
fn a_wrong_call_is_an_error() {
    let batch = pair(&["{}"], "1");
    assert_eq!(edit(&batch, Edit::Insert, &[]).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(edit(&batch.project(&[0]).unwrap(), Edit::Append, &[vec![]]).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(Edit::parse("move", true).unwrap_err().code, Code::InvalidArgument);
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof!["[abc]".prop_map(Step::Key), (0usize..5).prop_map(Step::Index)];
    prop::collection::vec(step, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is set is there, what is deleted afterwards is gone, and the rest is what it was.
    #[test]
    fn what_is_inserted_can_be_deleted(path in steps(), row in 0usize..4) {
        let documents = ["{}", "{\"a\":{\"b\":1},\"b\":[1,{\"c\":null},[2,3]]}", "[0,[1,[2,{\"a\":[]}]]]", "null"];
        let batch = pair(&[documents[row]], "{\"new\":[1.5,\"text\",null]}");
        let paths = vec![path];
        let made = edit(&batch, Edit::Insert, &paths).unwrap();
        if made.column(1).as_boolean().value(0) {
            prop_assert!(made.column(0).is_null(0));
        } else {
            let there = texts(&made)[0].as_ref().unwrap().contains("{\"new\":[1.5,\"text\",null]}");
            prop_assert!(there);
            let gone = edit(&made, Edit::Delete, &paths).unwrap();
            let there = texts(&gone)[0].as_ref().unwrap().contains("new");
            prop_assert!(!there);
        }
    }
}
