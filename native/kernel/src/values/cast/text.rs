//! Strings as numbers and booleans, with the grammars of Spark and of the Java functions that it calls.

/// Spark trims white space and control characters of ASCII (`UTF8String.trimAll`).
pub fn trim_all(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ' || c == '\x7f')
}

/// Java's `String.trim`.
pub fn trim_java(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ')
}

pub fn to_bool(text: &str) -> Option<bool> {
    let text = trim_all(text);
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["t", "true", "y", "yes", "1"]) {
        Some(true)
    } else if is(&["f", "false", "n", "no", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// A sign and digits, nothing else.
pub fn to_i64(text: &str) -> Option<i64> {
    let text = trim_all(text);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

pub fn to_f64(text: &str) -> Option<f64> {
    match special(text) {
        Some(value) => Some(value),
        None => literal(text)?.parse().ok().or_else(|| hex(trim_java(text))),
    }
}

pub fn to_f32(text: &str) -> Option<f32> {
    match special(text) {
        Some(value) => Some(value as f32),
        None => literal(text)?.parse().ok().or_else(|| hex(trim_java(text)).map(|v| v as f32)),
    }
}

fn special(text: &str) -> Option<f64> {
    let text = trim_java(text);
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("inf") || is("+inf") || is("infinity") || is("+infinity") {
        Some(f64::INFINITY)
    } else if is("-inf") || is("-infinity") {
        Some(f64::NEG_INFINITY)
    } else if is("nan") || matches!(text, "+NaN" | "-NaN") {
        Some(f64::NAN)
    } else {
        None
    }
}

/// Java's decimal literals: digits with a point anywhere, an exponent, a type letter behind. The text without
/// that letter, or an empty one for what Rust would read and Java would not.
fn literal(text: &str) -> Option<&str> {
    let text = trim_java(text);
    let text = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    Some(if plain { text } else { "" })
}

/// Java's hexadecimal literals: `0x1.8p3`. Of more than 15 significant digits it matters whether any is there.
fn hex(text: &str) -> Option<f64> {
    let text = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let rest = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"))?;
    let (mantissa, exponent) = rest.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    let (first, rest) = significant.split_at(significant.len().min(15));
    let value = if first.is_empty() { 0 } else { u64::from_str_radix(first, 16).ok()? };
    let value = value << 1 | u64::from(rest.bytes().any(|b| b != b'0'));
    let exponent: i32 = exponent.parse().ok()?;
    let shift = 4 * (rest.len() as i32 - fraction.len() as i32) - 1;
    Some(sign * scaled(value, exponent.checked_add(shift)?))
}

/// The value times a power of two, rounded once, to the nearest and to an even one of two.
fn scaled(value: u64, exponent: i32) -> f64 {
    let bits = 64 - value.leading_zeros() as i32;
    // Numbers below the least normal one have fewer bits.
    let kept = 53.min(bits.saturating_add(exponent).saturating_add(1074)).max(0);
    let cut = bits - kept;
    let (value, exponent) = match cut {
        ..=0 => (value, exponent),
        65.. => (0, exponent),
        _ => {
            let wide = u128::from(value);
            let (whole, rest, half) = ((wide >> cut) as u64, wide & ((1 << cut) - 1), 1 << (cut - 1));
            (whole + u64::from(rest > half || (rest == half && whole & 1 == 1)), exponent.saturating_add(cut))
        }
    };
    // Exact in steps that neither reach infinity nor zero before the value does.
    let (mut found, mut left) = (value as f64, exponent.clamp(-3000, 3000));
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        found *= 2f64.powi(step);
        left -= step;
    }
    found
}

/// Java's BigDecimal reads the decimal digits of every script; here those that begin at a known zero.
pub fn digit(character: char) -> Option<u8> {
    if character.is_ascii_digit() {
        return Some(character as u8 - b'0');
    }
    const ZEROS: [u32; 20] = [
        0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
        0x1040, 0x17e0, 0x1810, 0xff10,
    ];
    ZEROS.iter().find_map(|zero| (character as u32).checked_sub(*zero).filter(|d| *d < 10).map(|d| d as u8))
}
