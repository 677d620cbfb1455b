//! Which paths become columns, and of which type.

use crate::common::{infer, some};
use arrow::datatypes::DataType;
use mica_kernel::infer::rules::{Rule, Rules, Step, Wish};
use mica_kernel::infer::{Limits, Sample, Why, steer};
use mica_kernel::names::Names;
use mica_kernel::tree::{LeafType, Tree};

fn of(lines: &[String]) -> Tree {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    infer(&some(&lines), Limits::default())
}

fn field<'a>(tree: &'a Tree, name: &str) -> Option<&'a Tree> {
    tree.object.as_ref()?.iter().find(|f| f.name == name).map(|f| &f.tree)
}

fn leaf(tree: &Tree, name: &str) -> Option<LeafType> {
    field(tree, name).unwrap_or_else(|| panic!("no field {name}")).leaf
}

#[test]
fn a_path_of_three_values_in_four_of_one_type_is_typed() {
    let rows = |odd: usize| -> Vec<String> {
        (0..1000).map(|i| if i < odd { "{\"a\": 1}".into() } else { "{\"a\": \"x\"}".into() }).collect()
    };
    assert_eq!(leaf(&of(&rows(250)), "a"), Some(LeafType::String));
    assert_eq!(leaf(&of(&rows(251)), "a"), None);
    assert_eq!(leaf(&of(&rows(750)), "a"), Some(LeafType::Int64), "whatever the other values are");
    assert!(field(&of(&rows(500)), "a").is_some(), "a frequent path has a column even without a type");
}

#[test]
fn a_path_in_few_rows_is_typed_if_nearly_all_of_its_values_are_of_one_type() {
    let one_odd_in = |of: usize, every: usize| -> Vec<String> {
        let row = |i: usize| match i % every {
            0 if (i / every).is_multiple_of(of) => "{\"a\": 1, \"b\": 1}".into(),
            0 => "{\"a\": \"x\", \"b\": 1}".into(),
            _ => "{\"b\": 1}".into(),
        };
        (0..4000).map(row).collect()
    };
    assert_eq!(leaf(&of(&one_odd_in(10, 9)), "a"), Some(LeafType::String));
    assert!(field(&of(&one_odd_in(10, 11)), "a").is_some_and(Tree::is_untyped));
    assert_eq!(leaf(&of(&one_odd_in(1000, 11)), "a"), Some(LeafType::String));
}

#[test]
fn objects_and_arrays_that_are_most_of_a_paths_values_are_typed() {
    let rows = |others: usize| -> Vec<String> {
        let row = |i: usize| match i % 10 < others {
            true => format!("{{\"o\": \"s{i}\", \"a\": {i}}}"),
            false => format!("{{\"o\": {{\"x\": {i}}}, \"a\": [\"e\"]}}"),
        };
        (0..1000).map(row).collect()
    };
    let (most, fewer) = (of(&rows(2)), of(&rows(3)));
    assert_eq!(leaf(field(&most, "o").unwrap(), "x"), Some(LeafType::Int64));
    assert_eq!(field(&most, "a").and_then(|a| a.array.as_deref()).and_then(|e| e.leaf), Some(LeafType::String));
    assert!(["o", "a"].iter().all(|name| field(&fewer, name).is_some_and(Tree::is_untyped)));
}

#[test]
fn nulls_and_absence_do_not_count_against_a_type() {
    let rows: Vec<String> = (0..1000)
        .map(|i| match i % 3 {
            0 => "{\"a\": null, \"b\": 1}".into(),
            1 => "{\"b\": 1}".into(),
            _ => "{\"a\": 5, \"b\": 1}".into(),
        })
        .collect();
    assert_eq!(leaf(&of(&rows), "a"), Some(LeafType::Int64));
}

#[test]
fn integers_and_decimals_are_one_class_and_doubles_another() {
    let rows = |text: &dyn Fn(usize) -> String| (0..200).map(text).collect::<Vec<_>>();
    let mixed = rows(&|i| if i % 2 == 0 { format!("{{\"a\": {i}}}") } else { format!("{{\"a\": {i}.25}}") });
    assert_eq!(leaf(&of(&mixed), "a"), Some(LeafType::Decimal { precision: 18, scale: 2 }));
    let whole = rows(&|i| if i % 2 == 0 { format!("{{\"a\": {i}}}") } else { format!("{{\"a\": {i}.00}}") });
    assert_eq!(leaf(&of(&whole), "a"), Some(LeafType::Int64));
    let texts = rows(&|i| if i % 4 == 0 { "{\"a\": \"x\"}".into() } else { format!("{{\"a\": {i}}}") });
    assert_eq!(leaf(&of(&texts), "a"), Some(LeafType::Int64));
    let wide = rows(&|i| format!("{{\"a\": {}23456789012345.5678}}", i + 1));
    assert_eq!(leaf(&of(&wide), "a"), Some(LeafType::Decimal { precision: 38, scale: 4 }));
    let doubles = rows(&|i| if i % 2 == 0 { format!("{{\"a\": {i}}}") } else { format!("{{\"a\": {i}e0}}") });
    assert_eq!(leaf(&of(&doubles), "a"), None);
}

#[test]
fn a_few_wide_numbers_do_not_make_a_column_of_longs_wide() {
    let rows: Vec<String> = (0..1000)
        .map(|i| if i == 7 { "{\"a\": 1.5}".into() } else { format!("{{\"a\": {}}}", 1_732_206_349_000_000_i64 + i) })
        .collect();
    assert_eq!(leaf(&of(&rows), "a"), Some(LeafType::Int64));
}

#[test]
fn a_map_of_rare_keys_makes_no_columns() {
    let rows: Vec<String> = (0..2000)
        .map(|i| format!("{{\"id\": {i}, \"m\": {{\"k{}\": 1, \"j{}\": 2}}}}", i % 1500, i * 7 % 1999))
        .collect();
    let tree = of(&rows);
    assert_eq!(leaf(&tree, "id"), Some(LeafType::Int64));
    assert!(field(&tree, "m").is_some_and(Tree::is_untyped));
    assert!(of(&(0..2000).map(|i| format!("{{\"k{i}\": 1}}")).collect::<Vec<_>>()).is_untyped());
}

#[test]
fn a_rare_field_beside_frequent_ones_makes_no_column() {
    let rows: Vec<String> =
        (0..2000).map(|i| if i % 500 == 0 { "{\"a\": 1, \"rare\": 1}".into() } else { "{\"a\": 1}".into() }).collect();
    assert!(field(&of(&rows), "rare").is_none());
}

#[test]
fn arrays_are_typed_by_their_elements() {
    let rows: Vec<String> = (0..100)
        .map(|i| format!("{{\"o\": [{{\"x\": {i}}}, {{\"x\": 1, \"y\": \"s\"}}], \"mixed\": [1, \"a\"]}}"))
        .collect();
    let tree = of(&rows);
    let element = field(&tree, "o").and_then(|t| t.array.as_deref()).unwrap();
    assert_eq!(leaf(element, "x"), Some(LeafType::Int64));
    assert_eq!(leaf(element, "y"), Some(LeafType::String));
    assert!(field(&tree, "mixed").is_some_and(Tree::is_untyped));
}

#[test]
fn limits_keep_the_most_frequent_leaves_and_do_not_depend_on_the_order_of_names() {
    let rows: Vec<String> =
        (0..100)
            .map(|i| {
                if i % 2 == 0 {
                    "{\"d\": 1, \"c\": 1, \"b\": 1, \"a\": 1}".into()
                } else {
                    "{\"c\": 1, \"b\": 2}".into()
                }
            })
            .collect();
    let lines: Vec<&str> = rows.iter().map(String::as_str).collect();
    let tree = infer(&some(&lines), Limits { max_fields: 3, ..Limits::default() });
    assert_eq!(tree.object.unwrap().iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn depth_ends_the_tree() {
    let line = format!("{}1{}", "{\"a\":".repeat(30), "}".repeat(30));
    let tree = infer(&some(&[line.as_str(); 20]), Limits { max_depth: 3, ..Limits::default() });
    let at = field(field(field(&tree, "a").unwrap(), "a").unwrap(), "a").unwrap();
    assert!(at.is_untyped());
}

#[test]
fn nothing_to_learn_gives_an_untyped_tree() {
    assert_eq!(infer(&[], Limits::default()).to_arrow().unwrap(), DataType::Null);
    assert_eq!(infer(&some(&["null", "{}", "[]"]), Limits::default()).to_arrow().unwrap(), DataType::Null);
    assert_eq!(infer(&some(&["1", "2"]), Limits::default()).leaf, Some(LeafType::Int64));
    assert!(Sample::new(Limits { min_share: 1.5, ..Limits::default() }).is_err());
}

#[test]
fn a_key_with_a_nul_is_no_column_and_is_kept() {
    let lines = some(&["{\"\\u0000\": 1, \"a\": 2}"; 10]);
    let tree = infer(&lines, Limits::default());
    assert_eq!(tree.object.as_ref().unwrap().iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(
        crate::common::our_models(&crate::common::shred(&lines, &tree, &[]).unwrap()),
        crate::common::plain_models(&lines)
    );
    assert!(infer(&some(&["{\"\\u0000\": 1}"; 10]), Limits::default()).is_untyped());
}

fn ruled(lines: &[&str], rules: Vec<(Vec<Step>, Wish)>, max_fields: usize) -> Tree {
    let rules = rules.into_iter().map(|(steps, wish)| Rule { steps, wish }).collect();
    infer(&some(lines), Limits { max_fields, rules: Rules::new(rules).into(), ..Limits::default() })
}

fn name(text: &str) -> Step {
    Step::Name(text.into())
}

fn glob(text: &str) -> Step {
    Step::Glob(text.into())
}

fn shown(tree: &Tree) -> String {
    format!("{}", tree.to_arrow().unwrap())
}

#[test]
fn the_rule_that_matches_deepest_holds_then_the_one_of_the_most_exact_last_step_then_the_last() {
    let lines = ["{\"a\": {\"x\": 1, \"y\": {\"z\": 2}}, \"b\": {\"x\": 3, \"y\": 4, \"secret\": 5}, \"list\": [{\"x\": 1, \"y\": 2}]}";
        20];
    let tree = ruled(
        &lines,
        vec![
            (vec![name("a"), name("y")], Wish::Infer),
            (vec![glob("*")], Wish::Skip),
            (vec![glob("b*"), glob("*")], Wish::Skip),
            (vec![name("b"), glob("*")], Wish::Infer),
            (vec![Step::Any, name("secret")], Wish::Skip),
            (vec![name("b"), glob("se*")], Wish::Infer),
            (vec![Step::Any, Step::Element, name("x")], Wish::Infer),
        ],
        300,
    );
    assert_eq!(
        shown(&tree),
        "Struct(\"a\": Struct(\"y\": Struct(\"z\": Int64)), \"b\": Struct(\"x\": Int64, \"y\": Int64), \
         \"list\": List(Struct(\"x\": Int64)))"
    );
}

#[test]
fn an_exact_type_is_a_column_whatever_rows_hold_and_a_type_of_a_pattern_only_where_paths_are_frequent() {
    let lines: Vec<String> = (0..200).map(|i| format!("{{\"a\": \"s\", \"n_id\": {i}, \"k{i}_id\": 1}}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let string = || Wish::Type(Tree::leaf(LeafType::String));
    let tree = ruled(
        &lines,
        vec![
            (vec![glob("*_id")], string()),
            (vec![name("a"), name("b")], string()),
            (vec![name("g"), Step::Element], string()),
        ],
        1,
    );
    // Exact ones are beyond every limit, and take the room of others.
    assert_eq!(shown(&tree), "Struct(\"a\": Struct(\"b\": Utf8), \"g\": List(Utf8))");
    let tree = ruled(&lines, vec![(vec![glob("*_id")], string())], 300);
    assert_eq!(shown(&tree), "Struct(\"a\": Utf8, \"n_id\": Utf8)");
}

#[test]
fn a_rule_limits_columns_below_what_it_matches_and_those_in_the_most_rows_stay() {
    let rows = |i: usize| {
        format!("{{\"a\": {{\"x\": 1, \"y\": 1{}}}, \"b\": 1}}", if i.is_multiple_of(2) { ", \"z\": 1" } else { "" })
    };
    let lines: Vec<String> = (0..100).map(rows).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let tree = ruled(&lines, vec![(vec![name("a")], Wish::Most(2))], 300);
    assert_eq!(shown(&tree), "Struct(\"a\": Struct(\"x\": Int64, \"y\": Int64), \"b\": Int64)");
    let (mut sample, mut names) = (Sample::new(Limits { max_fields: 1, ..Limits::default() }).unwrap(), Names::new());
    crate::common::each_row(&some(&lines), &mut names, |tape, line, names| {
        sample.add(&tape.unwrap().view(line.as_bytes(), names));
    });
    let (_, left) = sample.tree(&names).unwrap();
    assert_eq!(
        left.iter().map(|l| (l.why, l.rows)).collect::<Vec<_>>(),
        [(Why::Most(None), 100), (Why::Most(None), 100), (Why::Most(None), 50)]
    );
}

#[test]
fn a_tree_of_a_file_loses_what_rules_skip_and_gets_types_that_they_give() {
    let tree = infer(&some(&["{\"a\": {\"x\": 1, \"y\": 1}, \"l\": [[1]]}"; 20]), Limits::default());
    let rules = vec![
        Rule { steps: vec![name("a"), name("x")], wish: Wish::Skip },
        Rule { steps: vec![name("l"), Step::Element, Step::Element], wish: Wish::Type(Tree::leaf(LeafType::Double)) },
    ];
    let steered = steer(tree, &Rules::new(rules)).unwrap();
    assert_eq!(shown(&steered), "Struct(\"a\": Struct(\"y\": Int64), \"l\": List(List(Float64)))");
}

#[test]
fn of_names_that_differ_in_case_alone_the_one_in_more_rows_has_a_column() {
    let rows: Vec<String> = (0..100)
        .map(|i| if i < 60 { r#"{"k":1,"K":2,"É":3,"é":4}"#.into() } else { r#"{"K":5,"o":{"a":1,"A":2}}"#.into() })
        .collect();
    let tree = of(&rows);
    assert_eq!(leaf(&tree, "K"), Some(LeafType::Int64));
    assert!(field(&tree, "k").is_none());
    assert!(field(&tree, "É").is_some() && field(&tree, "é").is_some(), "DuckDB folds ASCII alone");
    let o = field(&tree, "o").unwrap();
    assert!(field(o, "A").is_some() && field(o, "a").is_none(), "of as many the first by name");
}
