//! A parser that has read other documents reads each one as a new parser does: nodes, names, and errors with their places.

use mica_kernel::json::{DuplicateKeys, JsonParser, ParseOptions};
use mica_kernel::names::{NO_NAME, Names};
use mica_kernel::tape::Tape;

const DOCUMENTS: &[&str] = &[
    r#"{"id":1,"kind":"post","body":{"text":"one","tags":["a","b"],"reply":{"to":5,"root":{"cid":"xyz"}}},"at":"now"}"#,
    r#"{"id":22,"kind":"like","body":{"subject":{"cid":"b","uri":"at://example/with/a/long/text/in/it"}},"at":"then"}"#,
    r#"{"id":-3,"kind":"gone","at":null}"#,
    r#"{"id":4.5,"kind":"post","body":{},"at":true}"#,
    r#"{"id":4.5e300,"kind":"post","body":{"text":"\u00e9\n\"","tags":[],"reply":null},"at":[[],{},[1,{"x":2},[]],{}]}"#,
    r#" { "id" : 12345678901234567890123 , "kind" : "a \\ b" , "body" : { "text" : "" } } "#,
    r#"{"a_key_of_many_bytes_that_no_block_holds":{"and_another_key_of_many_bytes":false},"é":"ü","k":"v"}"#,
    r#"{"id":1,"id":2,"kind":{"id":3,"id":{"id":4}},"at":1}"#,
    r#"{"\u0069d":7,"kind":"escaped"}"#,
    r#"[1,2,3,4,5,6,7,8,9,10,11,12,{"id":1}]"#,
    r#"[[[[[[[[[[[[[[[[[[[[{"id":1,"at":[]}]]]]]]]]]]]]]]]]]]]]"#,
    "{}",
    "[]",
    "17",
    r#""text""#,
    "null",
    "",
];

/// What comes of a document, as text.
fn read(parser: &mut JsonParser, text: &str, names: &mut Names) -> String {
    let mut tape = Tape::default();
    match parser.parse(text, &mut tape, names) {
        Err(error) => format!("{error:?}"),
        Ok(()) => {
            let view = tape.view_text(text, names);
            let named = |name| if name == NO_NAME { "-" } else { names.get(name) };
            let nodes = tape.nodes.iter().map(|node| (named(node.name), node, view.scalar(node)));
            format!("{:?}", nodes.collect::<Vec<_>>())
        }
    }
}

/// The documents, and what they are cut short and with other bytes in them.
fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    for document in DOCUMENTS {
        texts.push((*document).to_owned());
        for (at, character) in document.char_indices() {
            texts.push(document[..at].to_owned());
            let rest = &document[at + character.len_utf8()..];
            for other in ["", "\"", "\\", "{", "}", "[", "]", ",", ":", " ", "0", "-", "t", "\u{1}", "é", "{}", "  "] {
                texts.push(format!("{}{other}{rest}", &document[..at]));
            }
        }
    }
    texts
}

fn same_as_new(options: ParseOptions) {
    let texts = texts();
    let mut names = Names::new();
    let mut parser = JsonParser::new(options);
    // In another order than they were made, the whole documents among them again and again.
    for step in [1, 7, 61] {
        for at in 0..texts.len() {
            let text = &texts[at * step % texts.len()];
            for text in [text, DOCUMENTS[at % DOCUMENTS.len()]] {
                let found = read(&mut parser, text, &mut names);
                assert_eq!(found, read(&mut JsonParser::new(options), text, &mut names), "{text}");
            }
        }
        names.truncate(3);
    }
}

#[test]
fn documents_are_read_as_a_new_parser_reads_them() {
    same_as_new(ParseOptions::default());
}

#[test]
fn so_are_those_with_keys_that_come_twice() {
    same_as_new(ParseOptions { duplicate_keys: DuplicateKeys::LastWins, ..ParseOptions::default() });
}

#[test]
fn so_are_those_with_text_behind_them_and_those_beyond_the_limits() {
    same_as_new(ParseOptions { ignore_rest: true, ..ParseOptions::default() });
    same_as_new(ParseOptions { max_depth: 3, ..ParseOptions::default() });
    same_as_new(ParseOptions { max_size: 60, ..ParseOptions::default() });
}

#[test]
fn documents_of_any_number_of_shapes_are_read() {
    let mut names = Names::new();
    let mut parser = JsonParser::new(ParseOptions::default());
    for number in 0..4000_u32 {
        let keys = (0..12).filter(|bit| number & (1 << bit) != 0);
        let members = keys.map(|bit| format!("\"k{bit}\":{}", ["1", "\"x\"", "{\"y\":[2,3]}"][bit % 3]));
        let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
        let found = read(&mut parser, &text, &mut names);
        assert_eq!(found, read(&mut JsonParser::new(ParseOptions::default()), &text, &mut names), "{text}");
    }
}
