//! Values that are neither objects nor arrays, and what stands before them.

use crate::error::Result;
use crate::json::number::number;
use crate::json::scan::{bad, bad_string, string_stop, unescape};
use crate::tape::{Kind, Node, Tape};

/// Reads the leaf whose first byte stands at `at`, pushes its node, returns the place after it.
#[inline(always)]
pub fn leaf(text: &str, first: u8, at: usize, name: u32, tape: &mut Tape) -> Result<usize> {
    if first == b'"' { string(text.as_bytes(), at + 1, name, tape) } else { no_string(text, first, at, name, tape) }
}

/// Most leaves are strings: what the others need is not at hand between those.
#[inline(never)]
fn no_string(text: &str, first: u8, at: usize, name: u32, tape: &mut Tape) -> Result<usize> {
    match first {
        b'-' | b'0'..=b'9' => number(text, at, name, tape),
        _ => literal(text, at, name, tape),
    }
}

/// Whether a leaf may begin with it.
#[inline(always)]
pub fn begins_leaf(byte: u8) -> bool {
    byte == b'"' || begins_no_string(byte)
}

#[inline(never)]
fn begins_no_string(byte: u8) -> bool {
    matches!(byte, b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
}

/// The byte at `at`; 0, which stands nowhere outside strings, beyond the end.
#[inline(always)]
pub fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// The next byte that is no white space, and its place; 0 beyond the end.
#[inline(always)]
pub fn token(bytes: &[u8], at: usize) -> (u8, usize) {
    match bytes.get(at) {
        Some(&byte) if byte > b' ' => (byte, at),
        _ => spaced_token(bytes, at),
    }
}

#[inline(never)]
fn spaced_token(bytes: &[u8], mut at: usize) -> (u8, usize) {
    while matches!(byte(bytes, at), b' ' | b'\n' | b'\r' | b'\t') {
        at += 1;
    }
    (byte(bytes, at), at)
}

#[inline(always)]
fn string(bytes: &[u8], start: usize, name: u32, tape: &mut Tape) -> Result<usize> {
    let stop = string_stop(bytes, start);
    if byte(bytes, stop) == b'"' {
        tape.nodes.push(Node::with_range(Kind::Str, name, start, stop - start, false));
        return Ok(stop + 1);
    }
    escaped_string(bytes, start, stop, name, tape)
}

#[inline(never)]
fn escaped_string(bytes: &[u8], start: usize, stop: usize, name: u32, tape: &mut Tape) -> Result<usize> {
    if byte(bytes, stop) != b'\\' {
        return Err(bad_string(bytes, stop));
    }
    let from = tape.scratch.len();
    let end = unescape(bytes, start, &mut tape.scratch)?;
    tape.nodes.push(Node::with_range(Kind::Str, name, from, tape.scratch.len() - from, true));
    Ok(end)
}

#[inline(never)]
fn literal(text: &str, at: usize, name: u32, tape: &mut Tape) -> Result<usize> {
    let rest = text.as_bytes().get(at..).unwrap_or(&[]);
    let (kind, len) = if rest.starts_with(b"true") {
        (Kind::True, 4)
    } else if rest.starts_with(b"false") {
        (Kind::False, 5)
    } else if rest.starts_with(b"null") {
        (Kind::Null, 4)
    } else {
        return Err(bad(at, format!("expected a value, found {}", shown(text, at))));
    };
    tape.nodes.push(Node::new(kind, name));
    Ok(at + len)
}

/// What stands at `at`, for a message.
#[cold]
pub fn shown(text: &str, at: usize) -> String {
    match text.get(at..).and_then(|rest| rest.chars().next()) {
        Some(character) => format!("{character:?}"),
        None => "the end of the text".into(),
    }
}
