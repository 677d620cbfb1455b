//! Writing the Variant encoding, always in its smallest widths: `dictionary` writes metadata, `tape` turns a tape
//! into a value. This file knows the bytes of one scalar and one header.

use crate::copy::push;
use crate::tape::Scalar;

/// Primitive type ids of the encoding (rule 7).
pub mod id {
    pub const NULL: u8 = 0;
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const INT8: u8 = 3;
    pub const INT16: u8 = 4;
    pub const INT32: u8 = 5;
    pub const INT64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const DECIMAL4: u8 = 8;
    pub const DECIMAL8: u8 = 9;
    pub const DECIMAL16: u8 = 10;
    pub const DATE: u8 = 11;
    pub const TIMESTAMP: u8 = 12;
    pub const TIMESTAMP_NTZ: u8 = 13;
    pub const FLOAT: u8 = 14;
    pub const BINARY: u8 = 15;
    pub const STRING: u8 = 16;
    pub const TIME: u8 = 17;
    pub const TIMESTAMP_NANOS: u8 = 18;
    pub const TIMESTAMP_NTZ_NANOS: u8 = 19;
    pub const UUID: u8 = 20;
}

/// Strings of up to this many bytes carry their length in the header (rule 6).
pub const MAX_SHORT_STRING: usize = 63;

/// Bytes that an integer takes at least: 1, 2, 4 or 8.
#[inline]
pub fn int_width(value: i64) -> u8 {
    if value as i8 as i64 == value {
        1
    } else if value as i16 as i64 == value {
        2
    } else if value as i32 as i64 == value {
        4
    } else {
        8
    }
}

/// Bytes that the unscaled value of a decimal takes: by precision and scale, 9, 18 or 38 digits (rule 8).
#[inline]
pub fn decimal_width(unscaled: i128, scale: u8) -> u8 {
    let digits = unscaled.unsigned_abs();
    if scale <= 9 && digits < 1_000_000_000 {
        4
    } else if scale <= 18 && digits < 1_000_000_000_000_000_000 {
        8
    } else {
        16
    }
}

/// Bytes from 1 to 4 that hold `value`.
#[inline]
pub fn uint_width(value: usize) -> usize {
    match value {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

#[inline]
pub fn push_uint(out: &mut Vec<u8>, value: usize, width: usize) {
    let bytes = (value as u32).to_le_bytes();
    match width {
        1 => out.push(bytes[0]),
        2 => out.extend_from_slice(&[bytes[0], bytes[1]]),
        3 => out.extend_from_slice(&[bytes[0], bytes[1], bytes[2]]),
        _ => out.extend_from_slice(&bytes),
    }
}

#[inline]
pub fn string_size(len: usize) -> usize {
    if len <= MAX_SHORT_STRING { 1 + len } else { 5 + len }
}

/// Appends the value bytes of a scalar; an integer or decimal takes at least `width` bytes.
#[inline]
pub fn push_scalar(out: &mut Vec<u8>, scalar: &Scalar, width: u8) {
    match *scalar {
        Scalar::Null => out.push(id::NULL << 2),
        Scalar::Boolean(true) => out.push(id::TRUE << 2),
        Scalar::Boolean(false) => out.push(id::FALSE << 2),
        Scalar::Int(v) => {
            let (type_id, width) = match int_width(v).max(width) {
                1 => (id::INT8, 1),
                2 => (id::INT16, 2),
                4 => (id::INT32, 4),
                _ => (id::INT64, 8),
            };
            out.push(type_id << 2);
            out.extend_from_slice(v.to_le_bytes().get(..width).unwrap_or(&[]));
        }
        Scalar::Decimal(v, scale) => {
            let (type_id, width) = match decimal_width(v, scale).max(width) {
                4 => (id::DECIMAL4, 4),
                8 => (id::DECIMAL8, 8),
                _ => (id::DECIMAL16, 16),
            };
            out.extend_from_slice(&[type_id << 2, scale]);
            out.extend_from_slice(v.to_le_bytes().get(..width).unwrap_or(&[]));
        }
        Scalar::Float(v) => push_fixed(out, id::FLOAT, &v.to_le_bytes()),
        Scalar::Double(v) => push_fixed(out, id::DOUBLE, &v.to_le_bytes()),
        Scalar::Date(v) => push_fixed(out, id::DATE, &v.to_le_bytes()),
        Scalar::Timestamp(v) => push_fixed(out, id::TIMESTAMP, &v.to_le_bytes()),
        Scalar::TimestampNtz(v) => push_fixed(out, id::TIMESTAMP_NTZ, &v.to_le_bytes()),
        Scalar::TimestampNanos(v) => push_fixed(out, id::TIMESTAMP_NANOS, &v.to_le_bytes()),
        Scalar::TimestampNtzNanos(v) => push_fixed(out, id::TIMESTAMP_NTZ_NANOS, &v.to_le_bytes()),
        Scalar::Time(v) => push_fixed(out, id::TIME, &v.to_le_bytes()),
        Scalar::Uuid(v) => push_fixed(out, id::UUID, &v.to_be_bytes()),
        Scalar::Str(s) => push_string(out, s.as_bytes()),
        Scalar::Binary(b) => {
            push_fixed(out, id::BINARY, &(b.len() as u32).to_le_bytes());
            out.extend_from_slice(b);
        }
    }
}

#[inline]
fn push_fixed(out: &mut Vec<u8>, type_id: u8, bytes: &[u8]) {
    out.push(type_id << 2);
    out.extend_from_slice(bytes);
}

/// Appends a string value; `text` is UTF-8.
#[inline]
pub fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    if text.len() <= MAX_SHORT_STRING {
        out.push((text.len() as u8) << 2 | 1);
    } else {
        push_fixed(out, id::STRING, &(text.len() as u32).to_le_bytes());
    }
    push(out, text);
}

/// The widths of a container's header. `fields` is `None` for an array, else the largest field id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub count: usize,
    pub large: bool,
    pub id_width: Option<usize>,
    pub offset_width: usize,
}

impl Header {
    pub fn new(count: usize, max_id: Option<u32>, data: usize) -> Self {
        Header {
            count,
            large: count > 255,
            id_width: max_id.map(|id| uint_width(id as usize)),
            offset_width: uint_width(data),
        }
    }

    /// Bytes of the header: everything before the children.
    pub fn size(&self) -> usize {
        let count = if self.large { 4 } else { 1 };
        1 + count + self.count * self.id_width.unwrap_or(0) + (self.count + 1) * self.offset_width
    }

    /// The first byte.
    pub fn first(&self) -> u8 {
        let offset = (self.offset_width - 1) as u8;
        match self.id_width {
            Some(id) => 2 | offset << 2 | ((id - 1) as u8) << 4 | (self.large as u8) << 6,
            None => 3 | offset << 2 | (self.large as u8) << 4,
        }
    }

    /// Appends the first byte and the number of children; ids and offsets follow.
    pub fn push_start(&self, out: &mut Vec<u8>) {
        out.push(self.first());
        push_uint(out, self.count, if self.large { 4 } else { 1 });
    }
}
