//! Numbers as Spark's `parse_json` reads them: an integer is an Int, beyond 64 bits a Decimal; a fraction without
//! an exponent is a Decimal while precision and scale stay within 38; all else is a Double.

use crate::error::Result;
use crate::json::scan::{bad, word};
use crate::tape::{Kind, Node, Tape};

const MAX_DIGITS: usize = 38;

/// Reads the number that begins at `at` (a digit or a minus sign), pushes its node, returns the place after it.
#[inline]
pub fn number(text: &str, at: usize, name: u32, tape: &mut Tape) -> Result<usize> {
    let bytes = text.as_bytes();
    let negative = bytes.get(at) == Some(&b'-');
    let first = at + negative as usize;
    let (value, end) = digits(bytes, first, 0);
    let count = end - first;
    if count == 0 {
        return Err(bad(end, "a minus sign must be followed by a digit".into()));
    }
    if count > 1 && bytes.get(first) == Some(&b'0') {
        return Err(bad(first, "a number must not begin with 0".into()));
    }
    match bytes.get(end) {
        Some(b'.' | b'e' | b'E') => fraction(text, at, first, end, value, name, tape),
        _ if count <= 18 => {
            let value = value as i64;
            let value = if negative { -value } else { value };
            tape.nodes.push(Node::with_bits(Kind::Int, name, value as u64));
            Ok(end)
        }
        _ => {
            big_integer(text, at, end, name, tape);
            Ok(end)
        }
    }
}

/// Reads digits onto `value` (which wraps: callers count the digits).
#[inline(always)]
fn digits(bytes: &[u8], mut at: usize, mut value: u64) -> (u64, usize) {
    while let Some(word) = word(bytes, at) {
        if !eight_digits(word) {
            break;
        }
        value = value.wrapping_mul(100_000_000).wrapping_add(eight_digit_value(word));
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(digit as u64);
        at += 1;
    }
    (value, at)
}

#[inline(always)]
fn eight_digits(word: u64) -> bool {
    let high = word & 0xf0f0_f0f0_f0f0_f0f0;
    let carried = word.wrapping_add(0x0606_0606_0606_0606) & 0xf0f0_f0f0_f0f0_f0f0;
    high == 0x3030_3030_3030_3030 && carried == 0x3030_3030_3030_3030
}

/// Eight ASCII digits at once: pairs, then fours, then all.
#[inline(always)]
fn eight_digit_value(word: u64) -> u64 {
    let word = word & 0x0f0f_0f0f_0f0f_0f0f;
    let word = word.wrapping_mul(2561) >> 8;
    let word = (word & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    (word & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32
}

#[cold]
fn big_integer(text: &str, at: usize, end: usize, name: u32, tape: &mut Tape) {
    let literal = text.get(at..end).unwrap_or("");
    if let Ok(value) = literal.parse::<i64>() {
        tape.nodes.push(Node::with_bits(Kind::Int, name, value as u64));
    } else if literal.trim_start_matches('-').len() <= MAX_DIGITS {
        decimal(literal.parse().unwrap_or(0), 0, name, tape);
    } else {
        double(literal, name, tape);
    }
}

fn fraction(text: &str, at: usize, first: usize, dot: usize, value: u64, name: u32, tape: &mut Tape) -> Result<usize> {
    let bytes = text.as_bytes();
    let (mut end, mut value, mut scale) = (dot, value, 0);
    if bytes.get(dot) == Some(&b'.') {
        (value, end) = digits(bytes, dot + 1, value);
        scale = end - dot - 1;
        if scale == 0 {
            return Err(bad(end, "a decimal point must be followed by a digit".into()));
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = matches!(bytes.get(end + 1), Some(b'+' | b'-')) as usize;
        let from = end + 1 + sign;
        end = digits(bytes, from, 0).1;
        if end == from {
            return Err(bad(end, "an exponent needs a digit".into()));
        }
        double(text.get(at..end).unwrap_or(""), name, tape);
        return Ok(end);
    }
    let negative = first > at;
    if end - first <= 19 {
        // At most 18 digits: the sum above has not wrapped.
        let value = value as i128;
        decimal(if negative { -value } else { value }, scale as u8, name, tape);
    } else if let Some(value) = wide(bytes, first, end).filter(|_| scale <= MAX_DIGITS) {
        decimal(if negative { -value } else { value }, scale as u8, name, tape);
    } else {
        double(text.get(at..end).unwrap_or(""), name, tape);
    }
    Ok(end)
}

/// The digits between two places as one number, without regard to the point; `None` beyond 38 significant ones.
fn wide(bytes: &[u8], first: usize, end: usize) -> Option<i128> {
    let (mut value, mut precision) = (0i128, 0);
    for &byte in bytes.get(first..end)?.iter().filter(|b| b.is_ascii_digit()) {
        precision += (value != 0 || byte != b'0') as usize;
        if precision > MAX_DIGITS {
            return None;
        }
        value = value * 10 + (byte - b'0') as i128;
    }
    Some(value)
}

fn decimal(unscaled: i128, scale: u8, name: u32, tape: &mut Tape) {
    let at = tape.wide.len() as u64;
    tape.wide.push(unscaled);
    tape.nodes.push(Node { aux: scale, ..Node::with_bits(Kind::Decimal, name, at) });
}

fn double(literal: &str, name: u32, tape: &mut Tape) {
    // The grammar has been checked: what is left always parses, to infinity if it must.
    let value = literal.parse::<f64>().unwrap_or(f64::NAN);
    tape.nodes.push(Node::with_bits(Kind::Double, name, value.to_bits()));
}
