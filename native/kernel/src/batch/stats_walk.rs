//! Finds the leaves in one text of statistics.
//!
//! A text is walked once, from brace to brace; values that are not asked for are passed over, not built. If a key
//! occurs twice, the last one counts.

use crate::json::scan::{string_stop, unescape};

/// Where a value stands in its text; a string without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    Missing,
    Number(usize, usize),
    Plain(usize, usize),
    /// A string with an escape, from its first byte on.
    Escaped(usize),
}

/// A place in the tree of the keys asked for. The leaves below it are `first..end` in the order of their keys; those
/// that end here are the first `own` of them.
struct Place {
    children: Vec<(String, usize)>,
    first: usize,
    own: usize,
    end: usize,
}

/// A string or number of a text that was walked: without its quotes.
#[derive(Clone, Copy)]
pub struct Slot {
    pub start: usize,
    pub end: usize,
    pub number: bool,
}

pub struct Walk {
    places: Vec<Place>,
    /// The leaves of the last text, in the order of their keys.
    pub found: Vec<Token>,
    /// Its values, and what keys there are inside of values that nobody asked for, in the order of the text.
    pub slots: Vec<Slot>,
    open: Vec<usize>,
    scratch: Vec<u8>,
}

impl Walk {
    /// For leaves with these keys, which are sorted.
    pub fn new(sorted: &[&[String]]) -> Self {
        let mut places = vec![Place { children: Vec::new(), first: 0, own: 0, end: sorted.len() }];
        for (slot, keys) in sorted.iter().enumerate() {
            let mut at = 0;
            for key in *keys {
                let fresh = places.len();
                let Some(place) = places.get_mut(at) else { break };
                let known = place.children.iter().find(|(name, _)| name == key).map(|&(_, child)| child);
                if known.is_none() {
                    place.children.push((key.clone(), fresh));
                    places.push(Place { children: Vec::new(), first: slot, own: 0, end: slot });
                }
                at = known.unwrap_or(fresh);
                if let Some(place) = places.get_mut(at) {
                    place.end = slot + 1;
                }
            }
            if let Some(place) = places.get_mut(at) {
                place.own += 1;
            }
        }
        let found = vec![Token::Missing; sorted.len()];
        Walk { places, found, slots: Vec::new(), open: Vec::new(), scratch: Vec::new() }
    }

    /// Walks a whole text; false, and nothing found, if it is no object.
    pub fn text(&mut self, bytes: &[u8]) -> bool {
        self.found.fill(Token::Missing);
        let whole = self.object(bytes).is_some();
        if !whole {
            self.found.fill(Token::Missing);
        }
        whole
    }

    fn object(&mut self, bytes: &[u8]) -> Option<()> {
        self.slots.clear();
        self.open.clear();
        self.open.push(0);
        let mut at = blank(bytes, 0);
        (bytes.get(at)? == &b'{').then_some(())?;
        let mut first = true;
        at = blank(bytes, at + 1);
        loop {
            if bytes.get(at)? == &b'}' {
                self.open.pop();
                at = blank(bytes, at + 1);
                if self.open.is_empty() {
                    return (at == bytes.len()).then_some(());
                }
                first = false;
                continue;
            }
            if !first {
                (bytes.get(at)? == &b',').then_some(())?;
                at = blank(bytes, at + 1);
            }
            let (child, after) = self.key(bytes, at)?;
            at = blank(bytes, after);
            (bytes.get(at)? == &b':').then_some(())?;
            at = blank(bytes, at + 1);
            let Some(place) = child.and_then(|child| self.places.get(child)) else {
                at = blank(bytes, passed(bytes, at, &mut self.slots)?);
                first = false;
                continue;
            };
            self.found.get_mut(place.first..place.end)?.fill(Token::Missing);
            if bytes.get(at)? == &b'{' && !place.children.is_empty() {
                self.open.push(child?);
                at = blank(bytes, at + 1);
                first = true;
                continue;
            }
            let end = passed(bytes, at, &mut self.slots)?;
            let token = match bytes.get(at)? {
                b'"' if string_stop(bytes, at + 1) + 1 == end => Token::Plain(at + 1, end - 1),
                b'"' => Token::Escaped(at + 1),
                b'-' | b'0'..=b'9' => Token::Number(at, end),
                _ => Token::Missing,
            };
            self.found.get_mut(place.first..place.first + place.own)?.fill(token);
            at = blank(bytes, end);
            first = false;
        }
    }

    /// The place that the key at `at` leads to, if any, and the byte after the key.
    fn key(&mut self, bytes: &[u8], at: usize) -> Option<(Option<usize>, usize)> {
        (bytes.get(at)? == &b'"').then_some(())?;
        let stop = string_stop(bytes, at + 1);
        let (key, after) = if bytes.get(stop)? == &b'"' {
            (bytes.get(at + 1..stop)?, stop + 1)
        } else {
            self.scratch.clear();
            let after = unescape(bytes, at + 1, &mut self.scratch).ok()?;
            (self.scratch.as_slice(), after)
        };
        let place = self.places.get(*self.open.last()?)?;
        let child = place.children.iter().find(|(name, _)| name.as_bytes() == key).map(|&(_, child)| child);
        Some((child, after))
    }
}

fn blank(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The byte after the value at `at`. Inside of what is passed over only strings and the number of brackets are looked at.
fn passed(bytes: &[u8], mut at: usize, slots: &mut Vec<Slot>) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match bytes.get(at)? {
            b'"' => {
                let end = string_end(bytes, at + 1)?;
                slots.push(Slot { start: at + 1, end: end - 1, number: false });
                at = end;
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth > 0 => at += 1,
            byte => {
                let end = literal_end(bytes, at)?;
                if !byte.is_ascii_alphabetic() {
                    slots.push(Slot { start: at, end, number: true });
                }
                at = end;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = string_stop(bytes, at);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => return None,
        }
    }
}

/// The end of a number or of `true`, `false`, `null`.
pub fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let first = *bytes.get(at)?;
    if first.is_ascii_alphabetic() {
        let rest = bytes.get(at..)?;
        let word = [b"true".as_slice(), b"false", b"null"].into_iter().find(|word| rest.starts_with(word))?;
        return Some(at + word.len());
    }
    let digits = |start: usize| {
        let mut end = start;
        while bytes.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        (end > start).then_some(end)
    };
    let mut end = digits(at + (first == b'-') as usize)?;
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        end = digits(end + 1 + matches!(bytes.get(end + 1), Some(b'+' | b'-')) as usize)?;
    }
    Some(end)
}
