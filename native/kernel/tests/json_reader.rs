//! Rows come out of files whatever their framing, compression, split or feeding, and bad ones with their place.

use std::io::Write;

use crate::common::random::Random;
use mica_kernel::json::{Compression, Format, JsonParser, Next, OnError, ParseOptions, ReaderOptions, RowReader};
use mica_kernel::names::Names;
use mica_kernel::tape::Tape;
use mica_kernel::{Code, Result};

fn options(format: Format, compression: Compression) -> ReaderOptions {
    ReaderOptions {
        name: "test.json".into(),
        format,
        compression,
        path: None,
        start: 0,
        end: None,
        on_error: OnError::Fail,
        replace_invalid_utf8: false,
        max_row: 1 << 20,
    }
}

/// Feeds the bytes in pieces and collects the rows.
fn rows(options: ReaderOptions, bytes: &[u8], piece: usize) -> Result<Vec<String>> {
    fed(&mut RowReader::new(options)?, bytes, piece)
}

/// The rows that the reader has, which gets the bytes in pieces.
fn fed(reader: &mut RowReader, bytes: &[u8], piece: usize) -> Result<Vec<String>> {
    let mut pieces = bytes.chunks(piece);
    let mut rows = Vec::new();
    loop {
        match reader.next_row()? {
            Next::Row(text) => rows.push(text.to_string()),
            Next::Bad(error) => reader.reject(error)?,
            Next::NeedInput => match pieces.next() {
                Some(piece) => reader.feed(piece)?,
                None => reader.finish(),
            },
            Next::End => return Ok(rows),
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const LINES: &[u8] = b"\xef\xbb\xbf{\"a\":1}\r\n\n  \t\r\n{\"a\":\"\xc3\xa9\"}\n[1, 2]";

#[test]
fn lines_are_rows_however_they_are_fed() {
    for piece in [1, 2, 3, 7, 1000] {
        let got = rows(options(Format::Ndjson, Compression::None), LINES, piece).unwrap();
        assert_eq!(got, ["{\"a\":1}", "{\"a\":\"é\"}", "[1, 2]"]);
    }
    assert!(rows(options(Format::Ndjson, Compression::None), b"", 1).unwrap().is_empty());
}

#[test]
fn compressed_members_and_frames_follow_each_other_and_must_be_whole() {
    let packed = [gzip(&LINES[..9]), gzip(&LINES[9..])].concat();
    let frames = [zstd::encode_all(&LINES[..9], 3).unwrap(), zstd::encode_all(&LINES[9..], 3).unwrap()].concat();
    let first = [gzip(&LINES[..9]).len(), zstd::encode_all(&LINES[..9], 3).unwrap().len()];
    for ((codec, bytes), first) in [(Compression::Gzip, packed), (Compression::Zstd, frames)].into_iter().zip(first) {
        for piece in [1, 5, 1000] {
            assert_eq!(rows(options(Format::Ndjson, codec), &bytes, piece).unwrap().len(), 3);
        }
        for cut in 1..bytes.len() {
            let got = rows(options(Format::Ndjson, codec), &bytes[..cut], 1000);
            // A cut between two members leaves a whole file.
            if let Err(e) = got {
                assert_eq!(e.code, Code::CorruptFile, "cut at {cut}: {e}");
            } else {
                assert_eq!(cut, first, "{codec:?} of {}", bytes.len());
            }
        }
        assert!(rows(options(Format::Ndjson, codec), &bytes[..bytes.len() - 1], 1000).is_err());
        assert!(rows(options(Format::Ndjson, codec), b"{\"a\":1}\n", 1000).is_err());
    }
}

#[test]
fn zeros_may_follow_the_last_member_of_gzip_and_nothing_else() {
    let whole = [gzip(&LINES[..9]), gzip(&LINES[9..])].concat();
    let read = |tail: &[u8], piece| rows(options(Format::Ndjson, Compression::Gzip), &[&whole, tail].concat(), piece);
    for piece in [1, 7, 1000] {
        for zeros in [1, 7, 512, 100_000] {
            assert_eq!(read(&vec![0; zeros], piece).unwrap().len(), 3, "{zeros} zeros in pieces of {piece}");
        }
        for tail in [&b"\0\0x"[..], b"x", b"trash and more of it", &[&[0; 20_000][..], &whole].concat()] {
            let error = read(tail, piece).unwrap_err();
            assert!(error.message.contains("not gzip follow its last member"), "{error}");
        }
        assert!(read(&whole[..5], piece).unwrap_err().message.contains("ends early"));
        let mut wrong = whole.clone();
        *wrong.last_mut().unwrap() ^= 1;
        let error = rows(options(Format::Ndjson, Compression::Gzip), &wrong, piece).unwrap_err();
        assert!(error.message.contains("its checksum or length differs"), "{error}");
        assert!(rows(options(Format::Ndjson, Compression::Gzip), &[0; 100], piece).is_err(), "zeros alone are no gzip");
        assert!(rows(options(Format::Ndjson, Compression::Gzip), &gzip(b""), piece).unwrap().is_empty());
    }
}

#[test]
fn an_array_or_values_are_rows() {
    let text = b" [ {\"a\": [1, \"]}\\\"\"]} ,\n[2], \"x, y\", 3 , null] ";
    for piece in [1, 2, 5, 1000] {
        let got = rows(options(Format::Json, Compression::None), text, piece).unwrap();
        assert_eq!(got, ["{\"a\": [1, \"]}\\\"\"]}", "[2]", "\"x, y\"", "3", "null"]);
        let got = rows(options(Format::Json, Compression::None), b"{\n\"a\":1}\n{\"b\":2} 5", piece).unwrap();
        assert_eq!(got, ["{\n\"a\":1}", "{\"b\":2}", "5"]);
    }
    for bad in [&b"[1 2]"[..], b"[1,]", b"[,1]", b"[1", b"[", b"]", b"[1]]", b"{},{}"] {
        assert!(rows(options(Format::Json, Compression::None), bad, 1000).is_err(), "{}", String::from_utf8_lossy(bad));
    }
}

#[test]
fn splits_of_a_file_give_every_line_once() {
    let text: String = (0..50).map(|i| format!("{{\"i\":{i}}}{}\n", " ".repeat(i % 7))).collect();
    let path = std::env::temp_dir().join(format!("mica-split-{}.ndjson", std::process::id()));
    std::fs::write(&path, &text).unwrap();
    for size in [1, 3, 10, 37, 1000] {
        let mut all = Vec::new();
        for start in (0..text.len() as u64).step_by(size) {
            let mut split = options(Format::Ndjson, Compression::None);
            split.path = Some(path.to_string_lossy().into());
            (split.start, split.end) = (start, Some(start + size as u64));
            all.extend(rows(split, b"", 1).unwrap().into_iter().map(|row| row.trim().to_string()));
        }
        assert_eq!(all, text.lines().map(|l| l.trim().to_string()).collect::<Vec<_>>(), "splits of {size}");
    }
    let mut split = options(Format::Ndjson, Compression::None);
    split.path = Some(path.to_string_lossy().into());
    split.start = 100;
    let mut reader = RowReader::new(split).unwrap();
    let Next::Row(first) = reader.next_row().unwrap() else { panic!("a row") };
    let line = 1 + text.lines().position(|l| l.trim_end() == first.trim_end()).unwrap();
    let error =
        JsonParser::new(ParseOptions::default()).parse("{", &mut Tape::default(), &mut Names::new()).unwrap_err();
    assert!(reader.reject(error).unwrap_err().message.contains(&format!("line {line}, column 2")));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn marked_rows_come_again() {
    let mut reader = RowReader::new(options(Format::Ndjson, Compression::None)).unwrap();
    reader.mark();
    reader.feed(LINES).unwrap();
    reader.finish();
    for _ in 0..2 {
        let mut count = 0;
        while let Next::Row(text) = reader.next_row().unwrap() {
            assert!(!text.starts_with('\u{feff}'));
            count += 1;
        }
        assert_eq!((count, reader.rows()), (3, 3));
        reader.rewind();
    }
}

#[test]
fn bad_rows_are_kept_aside_with_their_place() {
    let mut opts = options(Format::Json, Compression::None);
    opts.on_error = OnError::Collect;
    let mut reader = RowReader::new(opts).unwrap();
    reader.feed(b"[{\"a\":1},\n  {\"b\":1,\n \"c\":x}, 5]").unwrap();
    reader.finish();
    let (mut parser, mut tape, mut names) = (JsonParser::new(ParseOptions::default()), Tape::default(), Names::new());
    let mut good = 0;
    while let Next::Row(text) = reader.next_row().unwrap() {
        match parser.parse(text, &mut tape, &mut names) {
            Ok(()) => good += 1,
            Err(e) => reader.reject(e).unwrap(),
        }
    }
    let bad = reader.take_bad();
    assert_eq!((good, bad.len()), (2, 1));
    assert_eq!((bad[0].line, bad[0].column, bad[0].offset), (3, 6, 12));
    assert_eq!(bad[0].text, b"{\"b\":1,\n \"c\":x}");
}

#[test]
fn a_row_beyond_the_limit_is_refused_before_it_fills_memory() {
    let long = vec![b' '; 3 << 20];
    let error = rows(options(Format::Ndjson, Compression::None), &long, 1 << 16).unwrap_err();
    assert_eq!(error.code, Code::TooLarge);
}

#[test]
fn a_line_beyond_the_limit_is_kept_aside_by_its_first_bytes_and_those_after_it_are_read() {
    let long = |first: char| format!("{{\"{first}\": \"{}\"}}", "x".repeat(3 << 20));
    let lines = ["{\"i\": 0}", &long('a'), "{\"i\": 1}", &long('b'), &long('c'), "", "{\"i\": 2}"];
    let text = lines.join("\n");
    let offsets = [1, 3, 4].map(|line| lines[..line].iter().map(|line| line.len() as u64 + 1).sum::<u64>());
    for (end, piece) in ["", "\n"].into_iter().flat_map(|end| [1 << 12, 1 << 16, 99_991].map(|piece| (end, piece))) {
        for format in [Format::Ndjson, Format::Auto] {
            let bytes = format!("{text}{end}").into_bytes();
            let opts = ReaderOptions { on_error: OnError::Collect, ..options(format, Compression::None) };
            let mut reader = RowReader::new(opts).unwrap();
            let good = fed(&mut reader, &bytes, piece).unwrap();
            assert_eq!(
                (good.join(""), reader.rows()),
                ("{\"i\": 0}{\"i\": 1}{\"i\": 2}".into(), 6),
                "{piece} {format:?}"
            );
            let bad = reader.take_bad();
            assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [2, 4, 5]);
            assert_eq!(bad.iter().map(|bad| bad.offset).collect::<Vec<_>>(), offsets);
            for (bad, line) in bad.iter().zip([1, 3, 4]) {
                assert_eq!((bad.column, bad.reason.as_str()), (1, "a row is longer than 1048576 bytes"));
                assert!(bad.text == lines[line].as_bytes()[..64 << 10]);
            }
        }
    }
}

#[test]
fn a_sample_ends_before_a_line_beyond_the_limit() {
    let opts = ReaderOptions { on_error: OnError::Collect, ..options(Format::Ndjson, Compression::None) };
    let mut reader = RowReader::new(opts).unwrap();
    reader.feed(format!("1\n2\n{}\n3\n", "x".repeat(3 << 20)).as_bytes()).unwrap();
    reader.finish();
    let mut found = Vec::new();
    for _ in 0..2 {
        reader.mark();
        while let Next::Row(text) = reader.next_row().unwrap() {
            found.push(text.to_string());
        }
        reader.rewind();
    }
    found.extend(fed(&mut reader, b"", 1).unwrap());
    assert_eq!(found, ["1", "2", "1", "2", "1", "2", "3"]);
    assert_eq!(reader.take_bad().iter().map(|bad| bad.line).collect::<Vec<_>>(), [3]);
}

/// A bad line: its number, its place, and its text.
type Bad = (u64, u64, Vec<u8>);

/// Read in splits, each after it was sampled or not: the rows, and the bad lines.
fn in_splits(path: &str, step: u64, max_row: usize, sampled: bool) -> (Vec<String>, Vec<Bad>) {
    let size = std::fs::metadata(path).unwrap().len();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for start in (0..size).step_by(step as usize) {
        let opts = ReaderOptions {
            path: Some(path.into()),
            start,
            end: Some(start + step),
            on_error: OnError::Collect,
            max_row,
            ..options(Format::Ndjson, Compression::None)
        };
        let mut reader = RowReader::new(opts).unwrap();
        if sampled {
            reader.mark();
            while let Next::Row(_) | Next::Bad(_) = reader.next_row().unwrap() {}
            reader.rewind();
        }
        good.extend(fed(&mut reader, b"", 1).unwrap());
        bad.extend(reader.take_bad().into_iter().map(|bad| (bad.line, bad.offset, bad.text)));
    }
    (good, bad)
}

#[test]
fn long_lines_are_those_of_the_splits_that_they_begin_in_wherever_they_are() {
    let random = &mut Random::new(3);
    let path = std::env::temp_dir().join(format!("mica-long-lines-{}.json", std::process::id()));
    for max_row in [4 << 10, 100 << 10, 1 << 20] {
        let (mut text, mut good, mut bad) = (Vec::new(), Vec::new(), Vec::new());
        for line in 1..60 {
            let length = match random.next(6) {
                0 => max_row - 2 + random.next(5),
                1 => random.next(3 * max_row),
                _ => 1 + random.next(900),
            };
            let filling = if random.next(9) == 0 { b' ' } else { b'x' };
            let mut row = vec![filling; length];
            // What ends a line with its newline is of the line.
            if random.next(4) == 0 {
                row.pop();
                row.push(b'\r');
            }
            let offset = text.len() as u64;
            text.extend_from_slice(&row);
            text.push(b'\n');
            if length > max_row {
                bad.push((line, offset, row[..length.min(64 << 10)].to_vec()));
            } else if row.first() == Some(&b'x') {
                let text = String::from_utf8(row).unwrap();
                good.push(text.strip_suffix('\r').map_or(text.clone(), str::to_owned));
            }
        }
        std::fs::write(&path, &text).unwrap();
        for (step, sampled) in [(text.len(), true), (5 << 20, true), (700_001, false), (70_001, true), (9_001, false)] {
            let found = in_splits(path.to_str().unwrap(), step as u64, max_row, sampled);
            assert!(found.0 == good, "{max_row} {step}");
            let places = |bad: &[Bad]| bad.iter().map(|bad| (bad.0, bad.1, bad.2.len())).collect::<Vec<_>>();
            assert_eq!(places(&found.1), places(&bad), "{max_row} {step}");
            assert!(found.1 == bad);
        }
        for piece in [1000, 1 << 20, text.len()] {
            let opts =
                ReaderOptions { on_error: OnError::Collect, max_row, ..options(Format::Ndjson, Compression::None) };
            assert!(rows(opts, &text, piece).unwrap() == good);
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn bytes_that_are_no_utf8_are_refused_with_their_place_or_replaced() {
    let bytes = b"{\"a\":1}\n{\"a\":\"\xc3\xa9 \xff\"}\n";
    let error = rows(options(Format::Ndjson, Compression::None), bytes, 1000).unwrap_err();
    assert_eq!(error.code, Code::InvalidUtf8);
    assert_eq!(error.message, "test.json, line 2, column 10: the byte 0xff is not UTF-8 here");
    let mut opts = options(Format::Ndjson, Compression::None);
    opts.replace_invalid_utf8 = true;
    assert_eq!(rows(opts, bytes, 1000).unwrap(), ["{\"a\":1}", "{\"a\":\"é \u{fffd}\"}"]);
    // The place of what is no JSON is one in the line, not in the text that was made of it.
    let mut opts = options(Format::Ndjson, Compression::None);
    (opts.replace_invalid_utf8, opts.on_error) = (true, OnError::Collect);
    let mut reader = RowReader::new(opts).unwrap();
    reader.feed(b"{\"k\":\"\xff\xff\xff\xff\", x}").unwrap();
    reader.finish();
    let Next::Row(text) = reader.next_row().unwrap() else { panic!() };
    let parsed = JsonParser::new(ParseOptions::default()).parse(text, &mut Tape::default(), &mut Names::new());
    reader.reject(parsed.unwrap_err()).unwrap();
    assert_eq!(reader.take_bad()[0].column, 14);
}
