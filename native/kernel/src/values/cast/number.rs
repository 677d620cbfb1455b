//! Any scalar as a number, as Spark's try-cast gives it: fractions are cut towards zero, what does not fit fails,
//! decimals round half up.

use crate::tape::Scalar;
use crate::text::java;
use crate::values::cast::text;

const MICROS: i64 = 1_000_000;

/// As a 32-bit integer; narrower targets check their range on the result. Spark takes a decimal through a double on the way
/// here, which may round it up, but not on the way to 64 bits.
pub fn to_i32(scalar: &Scalar) -> Option<i32> {
    let whole = match *scalar {
        Scalar::Decimal(unscaled, scale) => float_to_i64(decimal_to_f64(unscaled, scale)?)?,
        _ => to_i64(scalar)?,
    };
    i32::try_from(whole).ok()
}

/// As a 64-bit integer.
pub fn to_i64(scalar: &Scalar) -> Option<i64> {
    match *scalar {
        Scalar::Boolean(v) => Some(v as i64),
        Scalar::Int(v) => Some(v),
        Scalar::Decimal(unscaled, scale) => i64::try_from(unscaled / pow10(scale as u32)?).ok(),
        Scalar::Float(v) => float_to_i64(v as f64),
        Scalar::Double(v) => float_to_i64(v),
        Scalar::Timestamp(v) => Some(v.div_euclid(MICROS)),
        Scalar::Str(s) => text::to_i64(s),
        _ => None,
    }
}

/// Java's narrowing saturates, and the check before it compares with 2^63 as a double: exactly 2^63 passes.
pub fn float_to_i64(value: f64) -> Option<i64> {
    (value.floor() <= i64::MAX as f64 && value.ceil() >= i64::MIN as f64).then_some(value as i64)
}

pub fn to_f64(scalar: &Scalar) -> Option<f64> {
    match *scalar {
        Scalar::Boolean(v) => Some(v as i64 as f64),
        Scalar::Int(v) => Some(v as f64),
        Scalar::Decimal(unscaled, scale) => decimal_to_f64(unscaled, scale),
        Scalar::Float(v) => Some(v as f64),
        Scalar::Double(v) => Some(v),
        Scalar::Timestamp(v) => Some(v as f64 / MICROS as f64),
        Scalar::Str(s) => text::to_f64(s),
        _ => None,
    }
}

pub fn to_f32(scalar: &Scalar) -> Option<f32> {
    match *scalar {
        Scalar::Boolean(v) => Some(v as i64 as f32),
        Scalar::Int(v) => Some(v as f32),
        Scalar::Decimal(unscaled, scale) => decimal_text(unscaled, scale).parse().ok(),
        Scalar::Float(v) => Some(v),
        Scalar::Double(v) => Some(v as f32),
        Scalar::Timestamp(v) => Some((v as f64 / MICROS as f64) as f32),
        Scalar::Str(s) => text::to_f32(s),
        _ => None,
    }
}

/// The double next to a decimal. A quotient is rounded once: where both numbers are doubles themselves it is the one that
/// the text would give.
fn decimal_to_f64(unscaled: i128, scale: u8) -> Option<f64> {
    /// Powers of ten that are doubles.
    const POWERS: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    ];
    match POWERS.get(scale as usize) {
        Some(power) if unscaled.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS => Some(unscaled as i64 as f64 / power),
        _ => decimal_text(unscaled, scale).parse().ok(),
    }
}

fn decimal_text(unscaled: i128, scale: u8) -> String {
    format!("{unscaled}e-{scale}")
}

/// The unscaled value with `scale` digits after the point; `None` beyond `precision` digits.
pub fn to_decimal(scalar: &Scalar, precision: u8, scale: u8) -> Option<i128> {
    let number = match *scalar {
        Scalar::Boolean(v) => Number::of(v as i128, 0),
        Scalar::Int(v) => Number::of(v as i128, 0),
        Scalar::Decimal(unscaled, scale) => Number::of(unscaled, scale as i64),
        Scalar::Float(v) => Number::of_double(v as f64)?,
        Scalar::Double(v) => Number::of_double(v)?,
        Scalar::Timestamp(v) => Number::of(v as i128, 6),
        Scalar::Str(s) => Number::parse(text::trim_java(s))?,
        _ => return None,
    };
    number.rescale(precision, scale)
}

pub fn pow10(exponent: u32) -> Option<i128> {
    10i128.checked_pow(exponent)
}

/// A decimal number of any length: digits without leading zeros, times ten to the minus `scale`.
pub struct Number {
    negative: bool,
    digits: Vec<u8>,
    scale: i64,
}

impl Number {
    fn of(unscaled: i128, scale: i64) -> Self {
        let digits = unscaled.unsigned_abs().to_string().into_bytes();
        Number { negative: unscaled < 0, digits, scale }
    }

    /// By the shortest text of the double, as Scala's BigDecimal takes it.
    fn of_double(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let mut text = Vec::new();
        java::push_double(&mut text, value);
        Self::parse(std::str::from_utf8(&text).ok()?)
    }

    /// The grammar of Java's BigDecimal: sign, digits with a point anywhere, exponent.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (rest.get(..at)?, integer(rest.get(at + 1..)?)?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut digits = Vec::with_capacity(mantissa.len());
        for character in whole.chars().chain(fraction.chars()) {
            digits.push(b'0' + text::digit(character)?);
        }
        let zeros = digits.iter().take_while(|d| **d == b'0').count();
        digits.drain(..zeros);
        Some(Number { negative, digits, scale: fraction.chars().count() as i64 - exponent })
    }

    /// Rounds half up (away from zero) to `scale`; `None` beyond `precision` digits.
    pub fn rescale(mut self, precision: u8, scale: u8) -> Option<i128> {
        if self.digits.iter().all(|d| *d == b'0') {
            return Some(0);
        }
        // Digits before the target's last place; more than any precision fails before memory is spent.
        let keep = self.digits.len() as i64 - (self.scale - scale as i64);
        if keep > 39 {
            return None;
        }
        if keep < 0 {
            return Some(0);
        }
        let keep = keep as usize;
        let round = self.digits.get(keep).is_some_and(|d| *d >= b'5');
        self.digits.resize(keep, b'0');
        let mut value =
            self.digits.iter().try_fold(0i128, |v, d| v.checked_mul(10)?.checked_add((d - b'0') as i128))?;
        value = value.checked_add(round as i128)?;
        if value >= pow10(precision as u32)? {
            return None;
        }
        Some(if self.negative { -value } else { value })
    }
}

/// An exponent as Java takes it: at most ten digits that fit 32 bits.
fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value: i64 =
        digits.trim_start_matches('0').get(..).map(|d| if d.is_empty() { "0" } else { d })?.parse().ok()?;
    (value <= i32::MAX as i64).then_some(if text.starts_with('-') { -value } else { value })
}
