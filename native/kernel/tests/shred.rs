//! Shredding keeps every value, and puts each where rules 19 to 40 want it.

use crate::common::{infer, our_models, plain_models, shred, some};
use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::datatypes::{DataType, Field, Int64Type};
use mica_kernel::error::Result;
use mica_kernel::infer::Limits;
use mica_kernel::json::{JsonParser, ParseOptions};
use mica_kernel::names::Names;
use mica_kernel::shred::Shredder;
use mica_kernel::tape::Tapes;
use mica_kernel::tree::Tree;
use proptest::prelude::*;

fn tree(data_type: &DataType) -> Tree {
    Tree::from_arrow(data_type).unwrap()
}

fn object(fields: &[(&str, DataType)]) -> DataType {
    DataType::Struct(fields.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect())
}

fn list(element: DataType) -> DataType {
    DataType::new_list(element, true)
}

fn child(array: &dyn Array, path: &str) -> ArrayRef {
    let mut at: ArrayRef = arrow::array::make_array(array.to_data());
    for name in path.split('/') {
        at = match at.data_type() {
            DataType::List(_) => at.as_list::<i32>().values().as_struct().column_by_name(name).unwrap().clone(),
            _ => at.as_struct().column_by_name(name).unwrap_or_else(|| panic!("no {name}")).clone(),
        };
    }
    at
}

/// The lines come back as they were.
fn kept(lines: &[Option<&str>], data_type: &DataType, common: &[&str]) -> StructArray {
    let column = shred(lines, &tree(data_type), common).unwrap();
    assert_eq!(our_models(&column), plain_models(lines), "tree {data_type}");
    column
}

#[test]
fn rule_23_and_24_a_value_of_the_type_is_typed_and_any_other_is_not() {
    let lines = some(&["1", "\"a\"", "1.00", "1.5", "null", "true", "9223372036854775807", "9223372036854775808"]);
    let column = kept(&lines, &DataType::Int64, &[]);
    let typed = child(&column, "typed_value");
    let values: Vec<Option<i64>> = typed.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(values, [Some(1), None, Some(1), None, None, None, Some(i64::MAX), None]);
    assert_eq!(child(&column, "value").null_count(), 3);
}

#[test]
fn rule_17_integers_and_decimals_are_widened_without_loss_only() {
    let lines = some(&["123", "1.50", "1.505", "99999999.99", "-7", "1e2", "0"]);
    let column = kept(&lines, &DataType::Decimal128(9, 2), &[]);
    let typed = child(&column, "typed_value");
    let valid: Vec<bool> = (0..lines.len()).map(|row| typed.is_valid(row)).collect();
    assert_eq!(valid, [true, true, false, false, true, false, true]);
}

#[test]
fn rule_28_a_sql_null_is_a_null_group_and_a_json_null_is_not() {
    let lines = [Some("null"), None, Some("{\"a\": null}"), Some("{}"), None];
    let column = kept(&lines, &object(&[("a", DataType::Int64)]), &[]);
    assert_eq!(column.null_count(), 2);
    assert_eq!(child(&column, "value").as_binary::<i32>().value(0), [0]);
    assert_eq!(child(&column, "typed_value/a/value").as_binary::<i32>().value(2), [0]);
}

#[test]
fn rule_32_an_object_is_typed_even_when_it_is_empty_or_has_other_fields_only() {
    let lines = some(&["{}", "{\"b\": 1}", "{\"a\": 1}", "[]", "{\"b\": {}, \"a\": \"x\"}"]);
    let column = kept(&lines, &object(&[("a", DataType::Int64)]), &[]);
    let typed = child(&column, "typed_value");
    assert_eq!((0..5).map(|row| typed.is_valid(row)).collect::<Vec<_>>(), [true, true, true, false, true]);
    let value = child(&column, "value");
    assert_eq!((0..5).map(|row| value.is_valid(row)).collect::<Vec<_>>(), [false, true, false, true, true]);
}

#[test]
fn rule_31_elements_of_other_types_stand_in_their_value_and_none_is_missing() {
    let lines = some(&["[1, \"x\", null, [2], {}]", "[]", "{\"a\": [1]}", "7"]);
    let column = kept(&lines, &list(DataType::Int64), &[]);
    let (value, typed) = (child(&column, "typed_value/value"), child(&column, "typed_value/typed_value"));
    assert_eq!(value.len(), 5);
    assert!((0..5).all(|i| value.is_valid(i) != typed.is_valid(i)));
}

#[test]
fn rule_20_every_name_is_in_the_metadata_and_rows_share_one_dictionary() {
    let lines = some(&["{\"a\": 1}", "{\"a\": 2, \"b\": 1}", "{\"zz\": {\"y\": 1}}", "{\"a\": 3}"]);
    let column = kept(&lines, &object(&[("a", DataType::Int64)]), &["b"]);
    let metadata = child(&column, "metadata");
    let metadata = metadata.as_binary::<i32>();
    assert_eq!(metadata.value(0), metadata.value(1));
    assert_eq!(metadata.value(0), metadata.value(3));
    assert_eq!(metadata.value(0)[0] & 0x10, 0x10, "the base is sorted and says so");
    assert_eq!(metadata.value(2)[0] & 0x10, 0, "names were appended");
}

#[test]
fn keys_are_user_data_whatever_they_are_called() {
    let names = ["", "_id", "a.b", "element", "it's", "list", "metadata", "typed_value", "value", "\u{1F98B}"];
    let fields: Vec<(&str, DataType)> = names.iter().map(|n| (*n, DataType::Int64)).collect();
    let text = format!("{{{}}}", names.iter().map(|n| format!("{n:?}: 1")).collect::<Vec<_>>().join(","));
    let lines = some(&[&text, "{\"value\": \"x\", \"typed_value\": {\"value\": 1}, \"\": [1]}"]);
    kept(&lines, &object(&fields), &[]);
    kept(&lines, &object(&[("value", object(&[("value", DataType::Int64)]))]), &[]);
    kept(&lines, &DataType::Null, &[]);
}

#[test]
fn objects_of_many_fields_and_long_values_keep_their_wide_headers() {
    let many = (0..70_000).map(|i| format!("\"k{i}\": {i}")).collect::<Vec<_>>().join(",");
    let many = format!("{{{many}, \"a\": 1}}");
    let long = format!("{{\"a\": 2, \"b\": \"{}\"}}", "x".repeat(100_000));
    let lines = [Some(many.as_str()), Some(long.as_str())];
    kept(&lines, &object(&[("a", DataType::Int64)]), &[]);
}

#[test]
fn paths_that_come_late_are_missing_before() {
    let mut lines = vec![Some("{\"a\": 1}"); 200];
    lines.extend([Some("{\"s\": \"x\", \"o\": {\"t\": true}, \"l\": [1]}"), None]);
    let fields = [
        ("a", DataType::Int64),
        ("s", DataType::Utf8),
        ("o", object(&[("t", DataType::Boolean)])),
        ("l", list(DataType::Int64)),
    ];
    let column = kept(&lines, &object(&fields), &[]);
    assert_eq!(child(&column, "typed_value/o/typed_value/t/typed_value").null_count(), 201);
}

#[test]
fn a_shredder_is_used_again_after_finish() {
    let mut names = mica_kernel::names::Names::new();
    let wanted = tree(&object(&[("a", list(DataType::Utf8)), ("b", DataType::Int64)]));
    let mut shredder = mica_kernel::shred::Shredder::new(&wanted, [], &mut names).unwrap();
    let lines = some(&["{\"a\": [\"x\", \"y\"], \"c\": 1}", "{\"b\": 1}", "[]"]);
    for _ in 0..3 {
        crate::common::each_row(&lines, &mut names, |tape, line, names| {
            shredder.append(&tape.unwrap().view(line.as_bytes(), names)).unwrap();
        });
        assert_eq!(our_models(&shredder.finish().unwrap()), plain_models(&lines));
    }
}

/// JSON of a few names and shapes, so that trees and rows meet and miss each other.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i64>().prop_map(|i| i.to_string()),
        (-1000i64..1000).prop_map(|i| i.to_string()),
        (any::<i32>(), 0usize..12).prop_map(|(i, scale)| format!("{}.{:0width$}", i, 7, width = scale + 1)),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(|f| format!("{f:e}")),
        "[a-zé🦋]{0,5}".prop_map(|s| format!("{s:?}")),
        "[a-z]{60,70}".prop_map(|s| format!("{s:?}")),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let name = prop_oneof!["[ab]", Just("value".to_owned()), "[a-z]{0,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|v| format!("[{}]", v.join(","))),
            prop::collection::btree_map(name, inner, 0..6).prop_map(|fields| {
                let fields: Vec<String> = fields.iter().map(|(k, v)| format!("{k:?}:{v}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

fn any_tree() -> impl Strategy<Value = DataType> {
    let leaf = prop_oneof![
        Just(DataType::Null),
        Just(DataType::Boolean),
        Just(DataType::Int8),
        Just(DataType::Int16),
        Just(DataType::Int32),
        Just(DataType::Int64),
        Just(DataType::Float64),
        Just(DataType::Decimal128(9, 2)),
        Just(DataType::Decimal128(18, 5)),
        Just(DataType::Decimal128(38, 10)),
        Just(DataType::Utf8),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let name = prop_oneof!["[ab]", Just("value".to_owned()), "[a-z]{0,3}"];
        prop_oneof![
            inner.clone().prop_map(list),
            prop::collection::btree_map(name, inner, 1..5).prop_map(|fields| {
                DataType::Struct(fields.into_iter().map(|(k, t)| Field::new(k, t, true)).collect())
            }),
        ]
    })
}

type Make = fn(&Tree, [&'static str; 1], &mut Names) -> Result<Shredder>;

fn put_alike(documents: &[String], order: &[usize], pieces: &[usize], data_type: &DataType) {
    let lines: Vec<&str> = order.iter().map(|at| documents[at % documents.len()].as_str()).collect();
    for make in [Shredder::new, |tree: &Tree, _, names: &mut Names| Shredder::early(tree, names)] as [Make; 2] {
        let made = [true, false].map(|together| {
            let mut names = Names::new();
            let mut shredder = make(&tree(data_type), ["a"], &mut names).unwrap();
            let (mut parser, mut tapes) = (JsonParser::new(ParseOptions::default()), Tapes::default());
            let (mut rest, mut shapes, mut sizes) = (lines.as_slice(), 0, pieces.iter().cycle());
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                rest = behind;
                for line in piece {
                    parser.parse(line, tapes.room(), &mut names).unwrap();
                    tapes.keep(line);
                }
                let views = tapes.views(&names);
                shapes += views.iter().filter(|view| view.shape.is_some()).count();
                if together {
                    shredder.append_all(&views).unwrap();
                } else {
                    views.iter().for_each(|view| shredder.append(view).unwrap());
                }
                tapes.clear();
            }
            (shredder.finish().unwrap(), shapes)
        });
        let [(together, shapes), (alone, _)] = made;
        assert_eq!(together, alone);
        assert!(shapes > 0 || lines.len() < 3 * documents.len() || !documents[0].contains([':', ',']));
    }
}

/// Names of what is left come in the order of the document, whatever level it is of.
#[test]
fn names_of_a_row_in_a_block_are_in_the_order_of_the_document() {
    let given = |fields: Vec<(&str, DataType)>| {
        DataType::Struct(fields.into_iter().map(|(name, of)| Field::new(name, of, true)).collect())
    };
    let data_type = given(vec![("b", given(vec![("a", DataType::Null)])), ("value", DataType::Null)]);
    for document in [
        r#"{"b":{"c":null},"value":{"d":null}}"#,
        r#"{"value":{"d":null},"b":{"c":null}}"#,
        r#"{"x":{"y":1},"b":{"c":{"e":2},"a":{"f":1}},"value":{"d":null},"z":1}"#,
    ] {
        put_alike(&[document.to_owned()], &[0, 0, 0], &[1], &data_type);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_json_by_any_tree_comes_back(rows in prop::collection::vec(prop::option::weighted(0.9, json()), 1..12), data_type in any_tree()) {
        let lines: Vec<Option<&str>> = rows.iter().map(Option::as_deref).collect();
        kept(&lines, &data_type, &["a"]);
    }

    #[test]
    fn any_json_by_the_tree_of_its_own_rows_comes_back(rows in prop::collection::vec(prop::option::weighted(0.9, json()), 1..12)) {
        let lines: Vec<Option<&str>> = rows.iter().map(Option::as_deref).collect();
        let inferred = infer(&lines, Limits { typed_share: 0.6, ..Limits::default() });
        kept(&lines, &inferred.to_arrow().unwrap(), &[]);
    }
    /// Rows that are put in blocks, by their shapes, come to what each row comes to by itself: in both layouts, from any
    /// row on.
    #[test]
    fn rows_of_known_shapes_are_shredded_as_any(
        documents in prop::collection::vec(json(), 1..5),
        order in prop::collection::vec(0usize..5, 1..220),
        pieces in prop::collection::vec(1usize..100, 1..8),
        data_type in any_tree(),
    ) {
        put_alike(&documents, &order, &pieces, &data_type);
    }
}
