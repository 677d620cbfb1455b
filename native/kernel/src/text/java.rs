//! Values spelled as Java spells them, because that is what Spark's `to_json` and its casts to string print.
//! Doubles are the shortest text that reads back as the same number, as Java has it since version 19.

use std::fmt::LowerExp;
use std::io::Write;
use std::str::FromStr;

use crate::text::zone::{DAY, Zone, civil};

pub fn push_int(out: &mut Vec<u8>, value: i64) {
    if (0..10).contains(&value) {
        return out.push(b'0' + value as u8);
    }
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = value.unsigned_abs();
    while rest >= 10 {
        let two = (rest % 100) as u8;
        rest /= 100;
        at -= 2;
        if let Some(slot) = buffer.get_mut(at..at + 2) {
            slot.copy_from_slice(&[b'0' + two / 10, b'0' + two % 10]);
        }
    }
    if rest > 0 {
        at -= 1;
        if let Some(slot) = buffer.get_mut(at) {
            *slot = b'0' + rest as u8;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(buffer.get(at..).unwrap_or(&[]));
}

/// `BigDecimal.toPlainString`.
pub fn push_decimal(out: &mut Vec<u8>, unscaled: i128, scale: u8) {
    let scale = scale as usize;
    if scale == 0
        && let Ok(small) = i64::try_from(unscaled)
    {
        return push_int(out, small);
    }
    let digits = unscaled.unsigned_abs().to_string();
    if unscaled < 0 {
        out.push(b'-');
    }
    if scale == 0 {
        return out.extend_from_slice(digits.as_bytes());
    }
    match digits.len().checked_sub(scale) {
        Some(whole) if whole > 0 => {
            let (whole, fraction) = digits.split_at(whole);
            out.extend_from_slice(whole.as_bytes());
            out.push(b'.');
            out.extend_from_slice(fraction.as_bytes());
        }
        _ => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + scale - digits.len(), b'0');
            out.extend_from_slice(digits.as_bytes());
        }
    }
}

/// `BigDecimal.stripTrailingZeros`, with no negative scale.
pub fn strip_zeros(mut unscaled: i128, mut scale: u8) -> (i128, u8) {
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    (unscaled, scale)
}

/// `Double.toString`.
pub fn push_double(out: &mut Vec<u8>, value: f64) {
    push_shortest(out, value, value, 15);
}

/// `Float.toString`.
pub fn push_float(out: &mut Vec<u8>, value: f32) {
    push_shortest(out, value, value.into(), 6);
}

/// The shortest text that reads back as `value`; `wide` is the same number, for what float and double have in common.
/// Texts of up to `least` digits are all different numbers, so that nothing shorter stands halfway between two.
fn push_shortest<T: LowerExp + FromStr + PartialEq>(out: &mut Vec<u8>, value: T, wide: f64, least: usize) {
    if wide.is_finite() && wide != 0.0 {
        let mut text = Short::default();
        // A text of one digit may be longer than it must be for accuracy: Java prefers the nearest of two digits.
        let _ = write!(text, "{value:e}");
        if text.digits() == 1 {
            let mut two = Short::default();
            let _ = write!(two, "{value:.1e}");
            if two.text().parse().is_ok_and(|read: T| read == value) {
                text = two;
            }
        } else if text.digits() >= least && may_be_halfway(wide) {
            // Exact formatting rounds half to even; where the nearest text is another number, the first one stands.
            let mut even = Short::default();
            let _ = write!(even, "{value:.*e}", text.digits() - 1);
            if even.text().parse().is_ok_and(|read: T| read == value) {
                text = even;
            }
        }
        return push_scientific(out, text.text());
    }
    if wide.is_sign_negative() && !wide.is_nan() {
        out.push(b'-');
    }
    out.extend_from_slice(if wide.is_nan() {
        b"NaN"
    } else if wide == 0.0 {
        b"0.0"
    } else {
        b"Infinity"
    });
}

/// Whether a number may stand halfway between two texts of equal length, of which Java takes the even one: its digits
/// then end in a 5 behind the 17 that are ever needed, so `m * 2^q` (m odd) has q >= -25, for 5^25 < 10^18 < 5^26.
fn may_be_halfway(value: f64) -> bool {
    let bits = value.to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1075;
    exponent + mantissa.trailing_zeros() as i32 >= -25
}

/// From Rust's `-d.ddde-x` to Java's spelling: plain from a thousandth to below ten millions.
fn push_scientific(out: &mut Vec<u8>, text: &str) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mantissa = match mantissa.strip_prefix('-') {
        Some(rest) => {
            out.push(b'-');
            rest
        }
        None => mantissa,
    };
    let mut digits = mantissa.bytes().filter(u8::is_ascii_digit);
    if (-3..7).contains(&exponent) {
        if exponent < 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-exponent - 1) as usize, b'0');
            out.extend(digits);
            return trim_zero(out);
        }
        for _ in 0..=exponent {
            out.push(digits.next().unwrap_or(b'0'));
        }
        out.push(b'.');
        push_fraction(out, digits);
    } else {
        out.push(digits.next().unwrap_or(b'0'));
        out.push(b'.');
        push_fraction(out, digits);
        out.push(b'E');
        push_int(out, exponent as i64);
    }
}

fn push_fraction(out: &mut Vec<u8>, digits: impl Iterator<Item = u8>) {
    let before = out.len();
    out.extend(digits);
    if out.len() == before {
        out.push(b'0');
    } else if out.len() > before + 1 {
        trim_zero(out);
    }
}

/// The two-digit form may end in a zero that says nothing.
fn trim_zero(out: &mut Vec<u8>) {
    if out.last() == Some(&b'0') {
        out.pop();
    }
}

#[derive(Default)]
struct Short {
    bytes: [u8; 32],
    len: usize,
}

impl Short {
    fn text(&self) -> &str {
        self.bytes.get(..self.len).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or("")
    }

    fn digits(&self) -> usize {
        self.text().bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count()
    }
}

impl Write for Short {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for &byte in bytes {
            if let Some(slot) = self.bytes.get_mut(self.len) {
                *slot = byte;
                self.len += 1;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `LocalDate.toString`: four digits of a year at least, a sign beyond 9999.
pub fn push_date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    if year < 0 {
        out.push(b'-');
    } else if year > 9999 {
        out.push(b'+');
    }
    let year = year.unsigned_abs();
    if year > 9999 {
        push_int(out, year as i64);
    } else {
        out.extend([1000, 100, 10, 1].map(|power| b'0' + (year / power % 10) as u8));
    }
    for part in [month, day] {
        out.extend_from_slice(&[b'-', b'0' + (part / 10) as u8, b'0' + (part % 10) as u8]);
    }
}

/// Seconds of a day as `HH:MM:SS`, with a fraction of as many digits as it needs.
pub fn push_time(out: &mut Vec<u8>, seconds: i64, nanos: u32) {
    for (i, part) in [seconds / 3600, seconds / 60 % 60, seconds % 60].into_iter().enumerate() {
        if i > 0 {
            out.push(b':');
        }
        out.extend_from_slice(&[b'0' + (part / 10) as u8, b'0' + (part % 10) as u8]);
    }
    if nanos > 0 {
        let mut digits = [0u8; 9];
        let mut rest = nanos;
        for slot in digits.iter_mut().rev() {
            *slot = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let len = 9 - digits.iter().rev().take_while(|d| **d == b'0').count();
        out.push(b'.');
        out.extend_from_slice(digits.get(..len).unwrap_or(&[]));
    }
}

/// A local time: date, space, time. `ticks` since the epoch, `per_second` of them.
pub fn push_local(out: &mut Vec<u8>, ticks: i64, per_second: i64, offset: i32) {
    let seconds = ticks.div_euclid(per_second) + offset as i64;
    let nanos = ticks.rem_euclid(per_second) * (1_000_000_000 / per_second);
    push_date(out, seconds.div_euclid(DAY));
    out.push(b' ');
    push_time(out, seconds.rem_euclid(DAY), nanos as u32);
}

/// A local time with the offset of its zone, as Spark's `to_json` of a Variant has it: `+00:00`.
pub fn push_zoned(out: &mut Vec<u8>, ticks: i64, per_second: i64, zone: &Zone) {
    let offset = zone.offset_at(ticks.div_euclid(per_second));
    push_local(out, ticks, per_second, offset);
    let minutes = offset.unsigned_abs() / 60;
    out.push(if offset < 0 && minutes > 0 { b'-' } else { b'+' });
    let parts = [minutes / 60, minutes % 60];
    out.extend_from_slice(&[b'0' + (parts[0] / 10) as u8, b'0' + (parts[0] % 10) as u8, b':']);
    out.extend_from_slice(&[b'0' + (parts[1] / 10) as u8, b'0' + (parts[1] % 10) as u8]);
}

pub fn push_uuid(out: &mut Vec<u8>, value: u128) {
    for (i, byte) in value.to_be_bytes().into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend([byte >> 4, byte & 15].map(|n| if n < 10 { b'0' + n } else { b'a' + n - 10 }));
    }
}

pub fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| chunk.get(i).copied().unwrap_or(0) as usize;
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS.get(bits >> (18 - 6 * i) & 63).copied().unwrap_or(b'=');
            out.push(if i <= chunk.len() { letter } else { b'=' });
        }
    }
}
