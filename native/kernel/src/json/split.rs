//! Where the rows of a JSON file begin and end: the elements of a top-level array, or the values at top level one
//! after the other. It counts brackets and skips strings, no more: the parser judges what is in between.

use crate::error::Result;
use crate::json::scan::{bad, string_stop};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Value,
    /// After `[`: an element or `]`.
    First,
    /// After `,`.
    Element,
    /// After an element: `,` or `]`.
    Comma,
    /// After the array that the text is.
    End,
}

/// The state between two calls; [`Splitter::find`] picks up where it ran out of bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Splitter {
    expect: Expect,
    inside: Option<Inside>,
    /// The text has begun with a value that is not the array of all rows.
    values: bool,
}

/// A value half seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inside {
    start: usize,
    at: usize,
    depth: usize,
    string: bool,
}

pub enum Cut {
    /// A row, as a range.
    Row(usize, usize),
    /// More bytes are needed; those before this place are done with.
    More(usize),
    /// Only white space was left, and the file is whole.
    End,
}

impl Splitter {
    /// Forgets a row half seen, whose bytes move: the scan begins again at its start.
    pub fn rewind(&mut self) {
        self.inside = None;
    }

    /// The bytes before `count` are gone.
    pub fn shift(&mut self, count: usize) {
        if let Some(inside) = &mut self.inside {
            inside.start = inside.start.saturating_sub(count);
            inside.at = inside.at.saturating_sub(count);
        }
    }

    /// The next row from `at` on; `last` says that no bytes will follow.
    pub fn find(&mut self, bytes: &[u8], mut at: usize, last: bool) -> Result<Cut> {
        loop {
            if let Some(mut inside) = self.inside {
                let end = inside.end(bytes);
                self.inside = Some(inside);
                return match end {
                    Some(end) => Ok(self.row(inside.start, end)),
                    None if last => Ok(self.row(inside.start, bytes.len())),
                    None => Ok(Cut::More(inside.start)),
                };
            }
            let Some(&byte) = bytes.get(at) else {
                return match (last, self.expect) {
                    (false, _) => Ok(Cut::More(at)),
                    (true, Expect::Value | Expect::End) => Ok(Cut::End),
                    (true, _) => Err(bad(at, "the text ends inside the array: the file is truncated".into())),
                };
            };
            match (byte, self.expect) {
                (b' ' | b'\t' | b'\n' | b'\r', _) => {}
                // Only an array that is the whole text holds rows; one behind another value is a row.
                (b'[', Expect::Value) if !self.values => self.expect = Expect::First,
                (b']', Expect::First | Expect::Comma) => self.expect = Expect::End,
                (_, Expect::End) => {
                    let message = "text after the array: a file is one array, or has one document per line";
                    return Err(bad(at, message.into()));
                }
                (b',', Expect::Comma) => self.expect = Expect::Element,
                (b',' | b']' | b'}', _) | (_, Expect::Comma) => {
                    let wanted = if self.expect == Expect::Comma { "',' or ']' after an element" } else { "a value" };
                    return Err(bad(at, format!("expected {wanted}, found {:?}", byte as char)));
                }
                _ => {
                    self.values |= self.expect == Expect::Value;
                    self.inside = Some(Inside::at(at));
                    continue;
                }
            }
            at += 1;
        }
    }

    fn row(&mut self, start: usize, end: usize) -> Cut {
        self.inside = None;
        if self.expect != Expect::Value {
            self.expect = Expect::Comma;
        }
        Cut::Row(start, end)
    }
}

impl Inside {
    /// A value that begins at a place.
    pub fn at(start: usize) -> Self {
        Inside { start, at: start, depth: 0, string: false }
    }

    /// The end of the value, or `None` when the bytes do not hold it.
    pub fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            if self.string {
                let stop = string_stop(bytes, self.at);
                match bytes.get(stop) {
                    None => {
                        self.at = stop;
                        return None;
                    }
                    Some(b'\\') if stop + 1 >= bytes.len() => {
                        self.at = stop;
                        return None;
                    }
                    Some(b'\\') => self.at = stop + 2,
                    Some(b'"') => {
                        self.string = false;
                        self.at = stop + 1;
                        if self.depth == 0 {
                            return Some(self.at);
                        }
                    }
                    Some(_) => self.at = stop + 1,
                }
                continue;
            }
            match *bytes.get(self.at)? {
                b'"' => self.string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return Some(self.at),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(self.at + 1);
                    }
                }
                b',' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => return Some(self.at),
                _ => {}
            }
            self.at += 1;
        }
    }
}
