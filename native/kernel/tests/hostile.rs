//! Whatever bytes come in, nothing panics, and what is accepted is sound: it is read back as the same value.

use crate::common::random::Random;
use mica_kernel::codec::decode::VariantDecoder;
use mica_kernel::codec::dictionary::OwnDictionaries;
use mica_kernel::codec::encode::ValueWriter;
use mica_kernel::json::print::JsonPrinter;
use mica_kernel::json::variant::VariantPrinter;
use mica_kernel::json::{DuplicateKeys, JsonParser, ParseOptions};
use mica_kernel::names::Names;
use mica_kernel::tape::Tape;
use mica_kernel::text::zone::Zone;
use mica_kernel::values::cast::CastBuilder;
use proptest::prelude::*;

#[derive(Default)]
struct Room {
    tape: Tape,
    names: Names,
    decoder: VariantDecoder,
    printer: JsonPrinter,
    direct: VariantPrinter,
    cache: OwnDictionaries,
    encoder: ValueWriter,
}

impl Room {
    fn json(&mut self, metadata: &[u8], value: &[u8]) -> Option<String> {
        let (mut out, mut direct) = (Vec::new(), Vec::new());
        let printed = self.direct.print(metadata, value, &Zone::UTC, &mut direct);
        let decoded = self.decoder.decode(metadata, value, &mut self.tape, &mut self.names);
        assert_eq!(printed.is_ok(), decoded.is_ok());
        decoded.ok()?;
        self.printer.print(&self.tape.view(value, &self.names), 0, &Zone::UTC, &mut out).unwrap();
        assert_eq!(direct, out, "without a tape and with one");
        Some(String::from_utf8(out).unwrap())
    }

    fn encode(&mut self, source: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let view = self.tape.view(source, &self.names);
        let dictionary = self.cache.of(&view, 0);
        let mut value = Vec::new();
        self.encoder.subtree(&view, dictionary, 0, &mut value);
        (dictionary.base_bytes().to_vec(), value)
    }
}

const SEEDS: [&str; 6] = [
    r#"{"a":1,"b":[true,null,-1.5,"x",{"c":{}}],"":"é\ud83d\ude00","z":12345678901234567890}"#,
    r#"[1e5,0.1,-0.0,"\u0000\n",9223372036854775808,[[[[]]]]]"#,
    r#"{"did":"did:plc:abc","time_us":1732206349000167,"commit":{"rev":"3l","record":{"$type":"x","langs":["en"]}}}"#,
    r#"{"k1":1,"k2":{"k1":2,"k2":[]},"k10":"0123456789012345678901234567890123456789012345678901234567890123456789"}"#,
    "123",
    "\"\"",
];

#[test]
fn mutated_json_is_refused_or_read_soundly() {
    let (mut random, mut room, mut accepted) = (Random::new(1), Room::default(), 0);
    let mut parser = JsonParser::new(ParseOptions { duplicate_keys: DuplicateKeys::LastWins, ..Default::default() });
    for case in 0..60_000 {
        let mut bytes = SEEDS[case % SEEDS.len()].as_bytes().to_vec();
        random.damage(&mut bytes);
        let Ok(text) = std::str::from_utf8(&bytes) else { continue };
        if parser.parse(text, &mut room.tape, &mut room.names).is_err() {
            // serde_json knows no lone surrogates either; ours refuses nothing that it takes.
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "refused {text}");
            continue;
        }
        accepted += 1;
        let oracle: Result<serde_json::Value, _> = serde_json::from_str(text);
        let (metadata, value) = room.encode(&bytes);
        let printed = room.json(&metadata, &value).expect("what we write we read");
        if let Ok(expected) = oracle {
            let again: serde_json::Value = serde_json::from_str(&printed).unwrap();
            assert!(same(&again, &expected), "{text} became {printed}");
        }
    }
    assert!(accepted > 5_000, "{accepted}");
}

/// Equal but for how numbers are spelled.
fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value::*;
    match (a, b) {
        (Number(a), Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            a == b || (a - b).abs() <= a.abs() * 1e-12
        }
        (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Object(a), Object(b)) => a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w))),
        // A number beyond doubles prints as a string.
        (String(a), Number(_)) => a.ends_with("Infinity"),
        _ => a == b,
    }
}

#[test]
fn mutated_variants_are_refused_or_read_soundly() {
    let (mut random, mut room, mut accepted) = (Random::new(2), Room::default(), 0);
    let mut parser = JsonParser::new(ParseOptions::default());
    let mut seeds = Vec::new();
    for seed in SEEDS {
        parser.parse(seed, &mut room.tape, &mut room.names).unwrap();
        seeds.push(room.encode(seed.as_bytes()));
    }
    for type_id in 0..=20u8 {
        let mut value = [vec![type_id << 2], vec![1; 16]].concat();
        if matches!(type_id, 15 | 16) {
            value[2..5].fill(0);
        }
        value.truncate(mica_kernel::codec::head::length(&value, 0).unwrap());
        seeds.push((vec![0x11, 0, 0], value));
    }
    let targets = [arrow::datatypes::DataType::Utf8, arrow::datatypes::DataType::Int64];
    for case in 0..120_000 {
        let (mut metadata, mut value) = seeds[case % seeds.len()].clone();
        if random.next(3) == 0 {
            random.damage(&mut metadata);
        } else {
            random.damage(&mut value);
        }
        let Some(printed) = room.json(&metadata, &value) else { continue };
        accepted += 1;
        let view = room.tape.view(&value, &room.names);
        for target in &targets {
            let mut builder = CastBuilder::new(target, Zone::UTC).unwrap();
            (0..view.nodes.len()).for_each(|at| {
                builder.append_node(&view, at).unwrap();
            });
            assert_eq!(builder.finish().0.len(), view.nodes.len());
        }
        let (metadata, value) = room.encode(&value);
        let again = room.json(&metadata, &value).expect("what we write we read");
        // Written again, objects are sorted: compare without order.
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(parse(&again), parse(&printed));
        room.names.truncate(1000);
    }
    assert!(accepted > 10_000, "{accepted}");
}

#[test]
fn depth_is_refused_without_recursion() {
    let mut value = vec![3, 0, 0];
    let mut room = Room::default();
    for depth in 1..=1001 {
        let inner = value.len() as u32;
        assert_eq!(room.json(&[0x11, 0, 0], &value).is_some(), depth <= 1000, "{depth}");
        value = [vec![3 | 3 << 2, 1], 0u32.to_le_bytes().to_vec(), inner.to_le_bytes().to_vec(), value].concat();
    }
}

#[test]
fn children_that_share_bytes_cost_no_more_than_their_bytes() {
    // Arrays whose two elements are the same bytes: 2^30 leaves if it were followed.
    let mut value = vec![0u8];
    for _ in 0..30 {
        let inner = value.len() as u32;
        let offsets = [0u32, 0, inner].map(u32::to_le_bytes).concat();
        value = [vec![3 | 3 << 2, 2], offsets, value].concat();
    }
    assert!(Room::default().json(&[0x11, 0, 0], &value).is_none());
}

fn document() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-1e6..1e6f64).prop_map(Into::into),
        ".{0,80}".prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 300, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Into::into),
            prop::collection::btree_map(".{0,20}", inner, 0..20)
                .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_document_survives(document in document()) {
        let text = document.to_string();
        let mut room = Room::default();
        JsonParser::new(ParseOptions::default()).parse(&text, &mut room.tape, &mut room.names).unwrap();
        let (metadata, value) = room.encode(text.as_bytes());
        let printed = room.json(&metadata, &value).unwrap();
        prop_assert!(same(&serde_json::from_str(&printed).unwrap(), &document), "{text} became {printed}");
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in "[\\[\\]{}\",:0-9eE.+\\\\a-f -]{0,40}") {
        let mut room = Room::default();
        let ours = JsonParser::new(ParseOptions { duplicate_keys: DuplicateKeys::LastWins, ..Default::default() })
            .parse(&text, &mut room.tape, &mut room.names);
        prop_assert_eq!(ours.is_ok(), serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
    }
}
