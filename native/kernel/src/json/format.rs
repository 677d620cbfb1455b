//! Whether a text is NDJSON or one JSON array (or documents over several lines): by what all of it is, never by its
//! first byte alone.
//!
//! | the text | is |
//! |---|---|
//! | an array that ends on its first line, and more behind it | NDJSON: the array is a document |
//! | an array that ends on its first line, and nothing behind it | one array, or NDJSON where its name says so |
//! | an array that does not end on its first line | one array |
//! | the same, where its name says NDJSON, and a second line that is a document, or none | NDJSON: the line was cut short |
//! | a first line that ends with `{`, `[`, `,` or `:`, and a second that is no document | documents over several lines |
//! | anything else | NDJSON |
//!
//! No NDJSON line ends with `{`, `[`, `,` or `:`, but a line that was cut short may: the second line tells.

use crate::json::parse::{JsonParser, ParseOptions};
use crate::json::split::Inside;
use crate::names::Names;
use crate::tape::Tape;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A document a line; blank lines are skipped.
    Ndjson,
    /// One array whose elements are the rows, or values one after the other.
    Json,
    /// Whichever of both the whole input is: see [`Detector`].
    Auto,
}

/// The state between two looks at a text that grows: no byte is looked at twice but those of its first two lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Detector {
    begin: Option<usize>,
    /// Searched for the end of the first line so far.
    searched: usize,
    line_end: Option<usize>,
    inside: Inside,
    array_end: Option<usize>,
}

impl Detector {
    /// The format of the text, of which `bytes` is the beginning, or all of it where `last` is set; `None` as long as
    /// that is not certain. `named_ndjson`: the name of the file says NDJSON.
    pub fn look(&mut self, bytes: &[u8], last: bool, named_ndjson: bool) -> Option<Format> {
        let begin = match self.begin {
            Some(begin) => begin,
            None => match bytes.iter().position(|b| !is_blank(b)) {
                Some(begin) => {
                    self.inside = Inside::at(begin);
                    self.searched = begin;
                    *self.begin.insert(begin)
                }
                None => return last.then_some(Format::Ndjson),
            },
        };
        if self.line_end.is_none() {
            let found = memchr::memchr(b'\n', bytes.get(self.searched..).unwrap_or(&[]));
            self.line_end = found.map(|at| self.searched + at);
            self.searched = bytes.len();
        }
        match bytes.get(begin) {
            Some(b'[') => self.array(bytes, last, named_ndjson),
            Some(b'{') => self.object(bytes, last),
            _ => Some(Format::Ndjson),
        }
    }

    fn array(&mut self, bytes: &[u8], last: bool, named_ndjson: bool) -> Option<Format> {
        if self.array_end.is_none() {
            let line = bytes.get(..self.line_end.unwrap_or(bytes.len())).unwrap_or(bytes);
            self.array_end = self.inside.end(line);
        }
        let Some(end) = self.array_end else {
            let second = self.line_end.and_then(|end| second_line(bytes, end, last));
            return match second {
                Some(line) if named_ndjson && is_document(line) => Some(Format::Ndjson),
                Some(_) => Some(Format::Json),
                None if named_ndjson => last.then_some(Format::Ndjson),
                None => (self.line_end.is_some() || last).then_some(Format::Json),
            };
        };
        if bytes.get(end..).unwrap_or(&[]).iter().any(|b| !is_blank(b)) {
            return Some(Format::Ndjson);
        }
        last.then_some(if named_ndjson { Format::Ndjson } else { Format::Json })
    }

    fn object(&self, bytes: &[u8], last: bool) -> Option<Format> {
        let Some(end) = self.line_end else { return last.then_some(Format::Ndjson) };
        let open = bytes.get(..end).unwrap_or(&[]).iter().rfind(|b| !is_blank(b));
        if !matches!(open, Some(b'{' | b'[' | b',' | b':')) {
            return Some(Format::Ndjson);
        }
        match second_line(bytes, end, last) {
            Some(line) => Some(if is_document(line) { Format::Ndjson } else { Format::Json }),
            None => last.then_some(Format::Ndjson),
        }
    }

    /// Where so much of the text has been seen that its first line is too long for a row.
    pub fn settle(&self, bytes: &[u8]) -> Format {
        match self.begin.and_then(|begin| bytes.get(begin)) {
            Some(b'[') if self.array_end.is_none() => Format::Json,
            _ => Format::Ndjson,
        }
    }
}

/// The first line behind this place that is not blank, once it is whole; `None` if there is none yet.
fn second_line(bytes: &[u8], end: usize, last: bool) -> Option<&[u8]> {
    let rest = bytes.get(end..).unwrap_or(&[]);
    let rest = rest.iter().position(|b| !is_blank(b)).and_then(|begin| rest.get(begin..)).unwrap_or(&[]);
    match memchr::memchr(b'\n', rest) {
        Some(end) => rest.get(..end),
        None => (last && !rest.is_empty()).then_some(rest),
    }
}

fn is_document(line: &[u8]) -> bool {
    let end = line.iter().rposition(|b| !is_blank(b)).map_or(0, |last| last + 1);
    let Ok(text) = std::str::from_utf8(line.get(..end).unwrap_or(&[])) else { return false };
    JsonParser::new(ParseOptions::default()).parse(text, &mut Tape::default(), &mut Names::new()).is_ok()
}

/// Whether JSON has no other meaning for a byte than to stand between others. A form feed is none of these.
pub fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether the name of a file says NDJSON: `x.ndjson`, `x.jsonl.gz`.
pub fn is_ndjson_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = [".gz", ".gzip", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.ends_with(".ndjson") || name.ends_with(".jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_is(text: &str, named_ndjson: bool, format: Format) {
        let whole = Detector::default().look(text.as_bytes(), true, named_ndjson);
        assert_eq!(whole, Some(format), "{text:?}");
        // Byte by byte: what is certain early is what it is in the end.
        let mut detector = Detector::default();
        let early = (0..=text.len()).find_map(|end| detector.look(&text.as_bytes()[..end], false, named_ndjson));
        assert!(early.is_none_or(|early| early == format), "{text:?}: {early:?}");
    }

    #[test]
    fn a_text_is_what_all_of_it_is() {
        for (text, format) in [
            ("", Format::Ndjson),
            ("[1,2]\n[3,4]", Format::Ndjson),
            ("[1,2][3,4]", Format::Ndjson),
            ("[1,2] x", Format::Ndjson),
            ("\n [\"]\\\"\", {}]\n \n", Format::Json),
            ("[\n1]", Format::Json),
            ("[1,", Format::Json),
            ("[1,\n{\"a\":1}\n", Format::Json),
            ("{\"a\":1}\n[1,\n2]", Format::Ndjson),
            ("{\n\"a\":1}", Format::Json),
            ("{\"a\":[\n1]}\n", Format::Json),
            ("{\"a\":[\n{\"a\":1}\n", Format::Ndjson),
            ("{\"a\":[\n{\"a\":1}\u{c}\n", Format::Json),
            ("{\"a\":1,", Format::Ndjson),
            ("{\"a\":\n1}", Format::Json),
            ("17\n[1]", Format::Ndjson),
            ("\u{c}\n[1,\n2]", Format::Ndjson),
            ("[1]\n\u{c}", Format::Ndjson),
        ] {
            assert_is(text, false, format);
        }
    }

    #[test]
    fn the_name_decides_where_the_text_is_both() {
        assert_eq!(Detector::default().look(b"[1,2]\n", true, true), Some(Format::Ndjson));
        for (text, format) in [
            ("[1,\n2]\n", Format::Json),
            ("[1\n,2]\n", Format::Json),
            ("[{\"a\":\n5}]\n", Format::Json),
            ("[1,2\n{\"a\":1}\n", Format::Ndjson),
            ("[{\"a\":1\n\n{\"a\":1}", Format::Ndjson),
            ("[1,\n{\"a\":1}\n{\"a\":2}\n", Format::Ndjson),
            ("[1,\n{\"a\":1},\n{\"a\":2}]\n", Format::Json),
            ("[1,2\n", Format::Ndjson),
            ("[1,2", Format::Ndjson),
        ] {
            assert_is(text, true, format);
            assert_is(text, false, Format::Json);
        }
        for (name, ndjson) in [("a.NDJSON", true), ("b/x.jsonl.gz", true), ("a.json", false), ("a.json.zst", false)] {
            assert_eq!(is_ndjson_name(name), ndjson, "{name}");
        }
    }
}
