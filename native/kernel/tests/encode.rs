//! The encoding's rules on what we write: widths, order, duplicates, and the writer beside the tape encoder.

use mica_kernel::Code;
use mica_kernel::codec::decode::VariantDecoder;
use mica_kernel::codec::dictionary::{Dictionary, OwnDictionaries};
use mica_kernel::codec::encode::{ValueWriter, variant_size};
use mica_kernel::json::print::JsonPrinter;
use mica_kernel::json::{JsonParser, ParseOptions};
use mica_kernel::names::Names;
use mica_kernel::tape::Tape;
use mica_kernel::text::zone::Zone;

fn encode(text: &str) -> (Vec<u8>, Vec<u8>) {
    let (mut tape, mut names) = (Tape::default(), Names::new());
    JsonParser::new(ParseOptions::default()).parse(text, &mut tape, &mut names).unwrap();
    let view = tape.view(text.as_bytes(), &names);
    let mut cache = OwnDictionaries::default();
    let dictionary = cache.of(&view, 0);
    let mut value = Vec::new();
    ValueWriter::default().subtree(&view, dictionary, 0, &mut value);
    assert_eq!(variant_size(&view, 0), dictionary.base_bytes().len() + value.len());
    (dictionary.base_bytes().to_vec(), value)
}

fn print(metadata: &[u8], value: &[u8]) -> String {
    let (mut tape, mut names) = (Tape::default(), Names::new());
    let findings = VariantDecoder::new().decode(metadata, value, &mut tape, &mut names).unwrap();
    assert!(!findings.unsorted_ids);
    let mut out = Vec::new();
    JsonPrinter::new().print(&tape.view(value, &names), 0, &Zone::UTC, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn rule_10_keys_are_sorted_by_their_bytes_beyond_u_ffff_too() {
    let (metadata, value) = encode("{\"\u{1f600}\":1,\"\u{fffd}\":2,\"\":3,\"a\":4,\"B\":5}");
    assert_eq!(print(&metadata, &value), "{\"\":3,\"B\":5,\"a\":4,\"\u{fffd}\":2,\"\u{1f600}\":1}");
}

#[test]
fn rule_14_large_containers_count_in_four_bytes() {
    for count in [0, 1, 255, 256, 65_535, 65_536, 70_000] {
        let members: Vec<String> = (0..count).map(|i| format!("\"k{i:06}\":{i}")).collect();
        let text = format!("{{{}}}", members.join(","));
        let (metadata, value) = encode(&text);
        assert_eq!(print(&metadata, &value), text);
        assert_eq!(value[0] & 0x40 != 0, count > 255, "{count}");
        let elements: Vec<String> = (0..count).map(|i| i.to_string()).collect();
        let text = format!("[{}]", elements.join(","));
        let (metadata, value) = encode(&text);
        assert_eq!(print(&metadata, &value), text);
        assert_eq!(value[0] & 0x10 != 0, count > 255, "{count}");
    }
}

#[test]
fn rule_4_offsets_take_the_bytes_they_need() {
    for (length, width) in [(100, 1), (300, 2), (70_000, 3), (17_000_000, 4)] {
        let text = format!("[\"{}\"]", "x".repeat(length));
        let (mut tape, mut names) = (Tape::default(), Names::new());
        let options = ParseOptions { max_size: 128 << 20, ..ParseOptions::default() };
        JsonParser::new(options).parse(&text, &mut tape, &mut names).unwrap();
        let (metadata, value) = encode_with(&tape, &text, &names);
        assert_eq!((value[0] >> 2 & 3) + 1, width);
        assert_eq!(print(&metadata, &value), text);
    }
}

fn encode_with(tape: &Tape, text: &str, names: &Names) -> (Vec<u8>, Vec<u8>) {
    let view = tape.view(text.as_bytes(), names);
    let mut cache = OwnDictionaries::default();
    let dictionary = cache.of(&view, 0);
    let mut value = Vec::new();
    ValueWriter::default().subtree(&view, dictionary, 0, &mut value);
    (dictionary.base_bytes().to_vec(), value)
}

#[test]
fn rules_10_to_12_unsorted_ids_are_read_and_reported_and_duplicates_refused() {
    let metadata = [0x01, 2, 0, 1, 2, b'b', b'a'];
    let decode = |value: &[u8]| {
        let (mut tape, mut names) = (Tape::default(), Names::new());
        VariantDecoder::new().decode(&metadata, value, &mut tape, &mut names).map(|f| f.unsorted_ids)
    };
    assert!(!decode(&[2, 2, 1, 0, 0, 2, 4, 12, 1, 12, 2]).unwrap());
    assert!(!decode(&[2, 2, 1, 0, 2, 0, 4, 12, 1, 12, 2]).unwrap(), "offsets need not be monotonic");
    assert!(decode(&[2, 2, 0, 1, 0, 2, 4, 12, 1, 12, 2]).unwrap());
    assert_eq!(decode(&[2, 2, 1, 1, 0, 2, 4, 12, 1, 12, 2]).unwrap_err().rule, Some(12));
    assert_eq!(decode(&[2, 1, 2, 0, 2, 12, 1]).unwrap_err().code, Code::MalformedVariant);
    let error = decode(&[2, 1, 1, 0, 1, 21 << 2]).unwrap_err();
    assert_eq!((error.rule, error.path.as_deref()), (Some(7), Some("$['a']")));
}

#[test]
fn a_dictionary_is_sorted_until_a_row_adds_names() {
    let mut names = Names::new();
    let ids: Vec<u32> = ["b", "a", "unused", "0"].iter().map(|n| names.intern(n)).collect();
    let mut dictionary = Dictionary::new(&names, ids[..3].to_vec());
    assert_eq!(dictionary.base_bytes(), [0x11, 3, 0, 1, 2, 8, b'a', b'b', b'u', b'n', b'u', b's', b'e', b'd']);
    assert_eq!(ids.iter().map(|&id| dictionary.id(id)).collect::<Vec<_>>(), [1, 0, 2, 3]);
    let mut row = Vec::new();
    dictionary.finish_row(&names, &mut row);
    assert_eq!(row, [0x01, 4, 0, 1, 2, 8, 9, b'a', b'b', b'u', b'n', b'u', b's', b'e', b'd', b'0']);
    assert!(!dictionary.has_extra());
}
