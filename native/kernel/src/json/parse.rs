//! One JSON document becomes one tape, with the semantics of Spark's `parse_json`, and without recursion. Two
//! differences, both towards refusing: text after the document is an error (Spark ignores it, and so does
//! `ignore_rest`), and so is a value beyond the size limit.

use crate::codec::encode::variant_size;
use crate::error::{Code, Error, Result};
use crate::json::keys::KeyGuess;
use crate::json::leaf::{byte, leaf, shown, token};
use crate::json::scan::{bad, bad_string, string_stop, unescape};
use crate::json::shapes::{Frame, Shapes};
use crate::names::{NO_NAME, Names};
use crate::tape::{Kind, Node, Tape};

/// What a second value under the same key of one object does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateKeys {
    Error,
    LastWins,
}

#[derive(Debug, Clone, Copy)]
pub struct ParseOptions {
    pub duplicate_keys: DuplicateKeys,
    /// Bytes of metadata and value together.
    pub max_size: usize,
    /// Objects and arrays around a value, itself included.
    pub max_depth: usize,
    /// Whether text after the document is ignored where Spark's parser (Jackson) ignores it: only white space ends a
    /// number, and nothing that could belong to a word ends a literal.
    pub ignore_rest: bool,
}

impl Default for ParseOptions {
    fn default() -> Self {
        ParseOptions { duplicate_keys: DuplicateKeys::Error, max_size: 16 << 20, max_depth: 1000, ignore_rest: false }
    }
}

/// A document is never more than this many times as large as a Variant than as text, so that the exact size need
/// be known for large documents only: `1,` is the worst case of a value (2 bytes and an offset of 4).
const GROWTH: usize = 8;

/// Offsets in a tape are 32 bits wide.
const MAX_TEXT: usize = u32::MAX as usize / 2;

pub struct JsonParser {
    options: ParseOptions,
    stack: Vec<Frame>,
    keys: KeyGuess,
    shapes: Shapes,
    seen: Vec<u64>,
    serial: u64,
    name: String,
    /// Nodes of members that a later one of the same name replaces: spans, an outer one behind those inside of it.
    replaced: Vec<(usize, usize)>,
}

impl JsonParser {
    pub fn new(options: ParseOptions) -> Self {
        JsonParser {
            options,
            stack: Vec::new(),
            keys: KeyGuess::default(),
            shapes: Shapes::default(),
            seen: Vec::new(),
            serial: 0,
            name: String::new(),
            replaced: Vec::new(),
        }
    }

    pub fn options(&self) -> &ParseOptions {
        &self.options
    }

    /// Fills `tape` (cleared first) with the document in `text`; its names go to `names`. Read the tape with
    /// `tape.view_text(text, names)`. An error carries the offset in bytes from the start of `text`.
    pub fn parse(&mut self, text: &str, tape: &mut Tape, names: &mut Names) -> Result<()> {
        tape.clear();
        self.stack.clear();
        self.replaced.clear();
        self.keys.start(names);
        self.shapes.start(names);
        if text.len() > MAX_TEXT {
            return Err(too_large(text.len(), self.options.max_size));
        }
        let end = self.document(text, tape, names)?;
        if !self.replaced.is_empty() {
            self.drop_replaced(tape);
        }
        let bytes = text.as_bytes();
        let (_, rest) = token(bytes, end);
        let ignored = self.options.ignore_rest && (rest > end || ends(tape, byte(bytes, end)));
        let end = rest;
        if end < bytes.len() && !ignored {
            return Err(bad(end, format!("found {} after the end of the document", shown(text, end))));
        }
        if text.len() > self.options.max_size / GROWTH {
            let size = variant_size(&tape.view(bytes, names), 0);
            if size > self.options.max_size {
                return Err(too_large(size, self.options.max_size));
            }
        }
        Ok(())
    }

    fn document(&mut self, text: &str, tape: &mut Tape, names: &mut Names) -> Result<usize> {
        let followed = self.shapes.follow(text, tape)?;
        if followed.is_whole {
            return Ok(followed.at);
        }
        let known = tape.nodes.len();
        self.keys.resume(self.shapes.open(&followed, &mut self.stack));
        let end = self.rest(text, followed.at, known > 0, tape, names)?;
        if self.replaced.is_empty() {
            self.shapes.learn(text, &followed, end, (&tape.nodes, known));
        }
        Ok(end)
    }

    /// Reads on at `at`: a value, or what follows one that `ended` there.
    fn rest(
        &mut self,
        text: &str,
        mut at: usize,
        mut ended: bool,
        tape: &mut Tape,
        names: &mut Names,
    ) -> Result<usize> {
        let bytes = text.as_bytes();
        let mut name = NO_NAME;
        'value: loop {
            if !std::mem::take(&mut ended) {
                let (first, start) = token(bytes, at);
                match first {
                    b'{' => {
                        self.open(Kind::Object, start, name, tape)?;
                        let (next, place) = token(bytes, start + 1);
                        if next != b'}' {
                            (name, at) = self.key(text, next, place, names)?;
                            continue 'value;
                        }
                        self.close(place, tape, names)?;
                        at = place + 1;
                    }
                    b'[' => {
                        self.open(Kind::Array, start, name, tape)?;
                        let (next, place) = token(bytes, start + 1);
                        if next != b']' {
                            (name, at) = (NO_NAME, place);
                            continue 'value;
                        }
                        self.close(place, tape, names)?;
                        at = place + 1;
                    }
                    _ => at = leaf(text, first, start, name, tape)?,
                }
            }
            // A value has ended: what follows depends on what it stands in.
            loop {
                let Some(frame) = self.stack.last_mut() else { return Ok(at) };
                frame.count += 1;
                let object = frame.object;
                let (next, place) = token(bytes, at);
                match next {
                    b',' if object => {
                        let (next, place) = token(bytes, place + 1);
                        (name, at) = self.key(text, next, place, names)?;
                        continue 'value;
                    }
                    b',' => {
                        (name, at) = (NO_NAME, place + 1);
                        continue 'value;
                    }
                    b'}' if object => self.close(place, tape, names)?,
                    b']' if !object => self.close(place, tape, names)?,
                    _ => return Err(unclosed(text, place, object)),
                }
                at = place + 1;
            }
        }
    }

    fn open(&mut self, kind: Kind, at: usize, name: u32, tape: &mut Tape) -> Result<()> {
        if self.stack.len() >= self.options.max_depth {
            let message = format!("objects and arrays nest deeper than {} levels", self.options.max_depth);
            return Err(Error::new(Code::TooDeep, message).offset(at as u64));
        }
        let node = tape.nodes.len() as u32;
        self.stack.push(Frame { node, count: 0, object: kind == Kind::Object, bits: 0, clash: false });
        tape.nodes.push(Node::new(kind, name));
        Ok(())
    }

    fn close(&mut self, at: usize, tape: &mut Tape, names: &Names) -> Result<()> {
        let Some(mut frame) = self.stack.pop() else { return Ok(()) };
        if frame.clash
            && let Some(name) = self.duplicate(frame.node as usize, tape, names)
        {
            if self.options.duplicate_keys == DuplicateKeys::Error {
                let message = format!("the key {:?} occurs twice in one object", names.get(name));
                return Err(Error::new(Code::DuplicateKey, message).rule(12).offset(at as u64));
            }
            frame.count = self.keep_last(frame.node as usize, tape);
        }
        let end = tape.nodes.len() as u32;
        if let Some(node) = tape.nodes.get_mut(frame.node as usize) {
            node.a = frame.count;
            node.b = end;
        }
        Ok(())
    }

    /// The key that begins with a byte at `at`, and its colon: its name and the place after the colon.
    #[inline(always)]
    fn key(&mut self, text: &str, first: u8, at: usize, names: &mut Names) -> Result<(u32, usize)> {
        let bytes = text.as_bytes();
        if first != b'"' {
            return Err(bad(at, format!("expected a key in double quotes, found {}", shown(text, at))));
        }
        let (id, end) = match self.keys.guess(bytes, at + 1, names) {
            Some(found) => found,
            None => self.new_key(text, at + 1, names)?,
        };
        if let Some(frame) = self.stack.last_mut() {
            let bit = 1u64 << (id & 63);
            frame.clash |= frame.bits & bit != 0;
            frame.bits |= bit;
        }
        let (next, colon) = token(bytes, end);
        if next != b':' {
            return Err(bad(colon, format!("expected ':' after a key, found {}", shown(text, colon))));
        }
        Ok((id, colon + 1))
    }

    #[inline(never)]
    fn new_key(&mut self, text: &str, start: usize, names: &mut Names) -> Result<(u32, usize)> {
        let bytes = text.as_bytes();
        let stop = string_stop(bytes, start);
        let (id, end) = match bytes.get(stop) {
            Some(b'"') => (names.intern(text.get(start..stop).unwrap_or("")), stop + 1),
            Some(b'\\') => {
                let mut raw = std::mem::take(&mut self.name).into_bytes();
                raw.clear();
                let end = unescape(bytes, start, &mut raw)?;
                // Whole characters were appended, each valid: this only moves the buffer back.
                self.name = String::from_utf8(raw).unwrap_or_default();
                (names.intern(&self.name), end)
            }
            _ => return Err(bad_string(bytes, stop)),
        };
        self.keys.learn(id, names);
        Ok((id, end))
    }

    /// A name that two children of the still open object at `object` share.
    #[inline(never)]
    fn duplicate(&mut self, object: usize, tape: &Tape, names: &Names) -> Option<u32> {
        self.serial += 1;
        if self.seen.len() < names.len() {
            self.seen.resize(names.len(), 0);
        }
        let mut at = object + 1;
        while let Some(node) = tape.nodes.get(at) {
            let seen = self.seen.get_mut(node.name as usize)?;
            if std::mem::replace(seen, self.serial) == self.serial {
                return Some(node.name);
            }
            at = node.next(at);
        }
        None
    }

    /// Notes all but the last of the children that share a name as replaced; returns how many are left.
    #[cold]
    fn keep_last(&mut self, object: usize, tape: &Tape) -> u32 {
        let mut spans = Vec::new();
        let mut at = object + 1;
        while let Some(node) = tape.nodes.get(at) {
            spans.push((at, node.next(at), node.name));
            at = node.next(at);
        }
        self.serial += 1;
        let mut kept: Vec<_> = Vec::new();
        for &span in spans.iter().rev() {
            if let Some(seen) = self.seen.get_mut(span.2 as usize)
                && std::mem::replace(seen, self.serial) != self.serial
            {
                kept.push(span);
            }
        }
        let mut kept_from = kept.len();
        for &(start, end, _) in &spans {
            match kept.get(kept_from.wrapping_sub(1)) {
                Some(&(first, ..)) if first == start => kept_from -= 1,
                _ => self.replaced.push((start, end)),
            }
        }
        kept.len() as u32
    }

    /// Takes the replaced members out of the tape, all in one pass.
    #[cold]
    fn drop_replaced(&mut self, tape: &mut Tape) {
        self.replaced.sort_unstable_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
        let nodes = &mut tape.nodes;
        // By node, how many before it go.
        let mut gone = vec![0u32; nodes.len() + 1];
        let (mut next, mut until, mut count) = (0, 0, 0);
        for (at, slot) in gone.iter_mut().enumerate() {
            while let Some(&(start, end)) = self.replaced.get(next)
                && start <= at
            {
                until = until.max(end);
                next += 1;
            }
            *slot = count;
            count += u32::from(at < until);
        }
        let mut to = 0;
        for at in 0..nodes.len() {
            if gone[at + 1] > gone[at] {
                continue;
            }
            let mut node = nodes[at];
            if node.is_container() {
                node.b -= gone.get(node.b as usize).copied().unwrap_or(0);
            }
            nodes[to] = node;
            to += 1;
        }
        nodes.truncate(to);
    }
}

/// Whether the document in the tape may be followed by this byte, which is not white space.
fn ends(tape: &Tape, next: u8) -> bool {
    match tape.nodes.first().map(|node| node.kind) {
        Some(Kind::Str | Kind::Object | Kind::Array) => true,
        Some(Kind::True | Kind::False | Kind::Null) => !(next.is_ascii_alphanumeric() || next == b'_' || next >= 0x7f),
        _ => false,
    }
}

#[cold]
fn unclosed(text: &str, at: usize, object: bool) -> Error {
    let (what, close) = if object { ("a member", '}') } else { ("an element", ']') };
    bad(at, format!("expected ',' or '{close}' after {what}, found {}", shown(text, at)))
}

#[cold]
fn too_large(size: usize, limit: usize) -> Error {
    Error::new(Code::TooLarge, format!("a value has {size} bytes, more than the limit of {limit}"))
}
