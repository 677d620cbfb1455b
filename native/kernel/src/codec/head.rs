//! What the bytes of a value say of it before it is read: its length, the parts of an object or array, a primitive.

use crate::error::{Code, Error, Result};
use crate::limits::MAX_VALUE_DEPTH;
use crate::tape::Scalar;

/// The head of an object or array.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    pub object: bool,
    pub count: usize,
    pub ids: usize,
    pub id_width: usize,
    pub offsets: usize,
    pub offset_width: usize,
    pub body: usize,
    /// One past the last byte of the value.
    pub end: usize,
}

/// A little-endian number of 1 to 4 bytes.
#[inline]
pub fn number(value: &[u8], at: usize, width: usize) -> Result<u32> {
    // Nearly always bytes follow: one load of four, of which some count.
    match value.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        Some(four) => Ok(u32::from_le_bytes(*four) & u32::MAX.unbounded_shr(32 - 8 * width as u32)),
        None => last_number(value, at, width),
    }
}

#[cold]
fn last_number(value: &[u8], at: usize, width: usize) -> Result<u32> {
    let bytes = value.get(at..at + width).ok_or_else(|| cut(at))?;
    let mut four = [0u8; 4];
    four[..width].copy_from_slice(bytes);
    Ok(u32::from_le_bytes(four))
}

pub fn is_container(value: &[u8], at: usize) -> bool {
    value.get(at).is_some_and(|b| b & 2 == 2)
}

/// Reads the head of the container at `at`; its body lies within the bytes.
#[inline]
pub fn head(value: &[u8], at: usize) -> Result<Head> {
    let first = *value.get(at).ok_or_else(|| cut(at))?;
    let bits = first >> 2;
    let object = first & 3 == 2;
    let (large, id_width) = if object { (bits >> 4 & 1, (bits >> 2 & 3) as usize + 1) } else { (bits >> 2 & 1, 0) };
    let offset_width = (bits & 3) as usize + 1;
    let count_width = if large == 1 { 4 } else { 1 };
    let count = number(value, at + 1, count_width)? as usize;
    let ids = at + 1 + count_width;
    let offsets = ids + count * id_width;
    let body = offsets + (count + 1) * offset_width;
    if body > value.len() {
        return Err(cut(at));
    }
    let size = number(value, offsets + count * offset_width, offset_width)? as usize;
    let end = body + size;
    if end > value.len() {
        return Err(cut(at));
    }
    Ok(Head { object, count, ids, id_width, offsets, offset_width, body, end })
}

/// The length of the value at `at`, by its own header.
#[inline]
pub fn length(value: &[u8], at: usize) -> Result<usize> {
    let first = *value.get(at).ok_or_else(|| cut(at))?;
    Ok(match first & 3 {
        0 => match first >> 2 {
            0..=2 => 1,
            3 => 2,
            4 => 3,
            5 | 11 | 14 => 5,
            6 | 7 | 12 | 13 | 17 | 18 | 19 => 9,
            8 => 6,
            9 => 10,
            10 => 18,
            15 | 16 => 5 + number(value, at + 1, 4)? as usize,
            20 => 17,
            id => return Err(fault(7, at, format!("the primitive type {id} is unknown"))),
        },
        1 => 1 + (first >> 2) as usize,
        _ => head(value, at)?.end - at,
    })
}

/// Checks a primitive that is no string, whose bytes are these (rule 8).
#[inline]
pub fn check_scalar(bytes: &[u8], at: usize) -> Result<()> {
    match bytes {
        [0x20 | 0x24 | 0x28, scale, unscaled @ ..] => {
            check_decimal(unscaled.len(), *scale, sign_extended(unscaled), at)
        }
        _ => Ok(()),
    }
}

/// A validated primitive; `None` for objects and arrays.
pub fn scalar(bytes: &[u8]) -> Option<Scalar<'_>> {
    let (first, rest) = bytes.split_first()?;
    let text = |bytes| std::str::from_utf8(bytes).ok().map(Scalar::Str);
    let eight = || Some(i64::from_le_bytes(rest.try_into().ok()?));
    let four = || Some(i32::from_le_bytes(rest.try_into().ok()?));
    match (first & 3, first >> 2) {
        (1, _) => text(rest),
        (0, id) => match id {
            0 => Some(Scalar::Null),
            1 | 2 => Some(Scalar::Boolean(id == 1)),
            3 => Some(Scalar::Int(i8::from_le_bytes(rest.try_into().ok()?) as i64)),
            4 => Some(Scalar::Int(i16::from_le_bytes(rest.try_into().ok()?) as i64)),
            5 => four().map(|v| Scalar::Int(v as i64)),
            6 => eight().map(Scalar::Int),
            7 => eight().map(|v| Scalar::Double(f64::from_bits(v as u64))),
            8..=10 => {
                let (scale, unscaled) = rest.split_first()?;
                Some(Scalar::Decimal(sign_extended(unscaled), *scale))
            }
            11 => four().map(Scalar::Date),
            12 => eight().map(Scalar::Timestamp),
            13 => eight().map(Scalar::TimestampNtz),
            14 => four().map(|v| Scalar::Float(f32::from_bits(v as u32))),
            15 => rest.get(4..).map(Scalar::Binary),
            16 => text(rest.get(4..)?),
            17 => eight().map(Scalar::Time),
            18 => eight().map(Scalar::TimestampNanos),
            19 => eight().map(Scalar::TimestampNtzNanos),
            20 => Some(Scalar::Uuid(u128::from_be_bytes(rest.try_into().ok()?))),
            _ => None,
        },
        _ => None,
    }
}

/// A little-endian number of at most 16 bytes.
pub fn sign_extended(unscaled: &[u8]) -> i128 {
    let mut wide = [if unscaled.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 }; 16];
    let len = unscaled.len().min(16);
    wide[..len].copy_from_slice(&unscaled[..len]);
    i128::from_le_bytes(wide)
}

#[cold]
pub fn fault(rule: u8, offset: usize, message: impl Into<String>) -> Error {
    Error::new(Code::MalformedVariant, message).rule(rule).offset(offset as u64)
}

#[cold]
pub fn cut(at: usize) -> Error {
    fault(15, at, "the value is truncated")
}

/// An object or array has too many around it.
#[cold]
pub fn too_deep(at: usize) -> Error {
    let message = format!("objects and arrays nest deeper than {MAX_VALUE_DEPTH} levels");
    Error::new(Code::TooDeep, message).rule(18).offset(at as u64)
}

/// Scale and precision of a decimal whose unscaled value takes so many bytes (rule 8).
#[inline]
pub fn check_decimal(width: usize, scale: u8, unscaled: i128, at: usize) -> Result<()> {
    if scale > 38 {
        return Err(fault(8, at + 1, format!("a decimal has the scale {scale}, beyond 38")));
    }
    let digits = match width {
        4 => 9,
        8 => 18,
        _ => 38,
    };
    if unscaled.unsigned_abs() >= 10u128.pow(digits) {
        return Err(fault(8, at, format!("a decimal of {width} bytes has more than {digits} digits")));
    }
    Ok(())
}
