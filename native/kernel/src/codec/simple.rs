//! Values that one pass shows to be valid, as most are: a primitive, or an object of primitives with offsets of one
//! byte, whose fields lie in the order of their ids without gaps. What is not simple may be valid: `validate` decides,
//! and says what is wrong.

use crate::codec::known::RowNames;
use crate::codec::primitive::id;
use crate::limits::{MAX_TREE_DEPTH, MAX_VALUE_DEPTH};
use crate::text::utf8::is_utf8;

/// The first byte of an object with ids, offsets and a count of one byte each.
const NARROW_OBJECT: u8 = 2;

const STRING: u8 = id::STRING << 2;

// A level is never so deep that an object in its `value` is too deep (rule 18).
const _: () = assert!(MAX_TREE_DEPTH + 1 < MAX_VALUE_DEPTH);

/// Whether the value of a level is simple, and so valid under these names.
#[inline]
pub fn is_simple(names: &RowNames<'_>, value: &[u8]) -> bool {
    let end = match value {
        [NARROW_OBJECT, count, rest @ ..] => object(names, value, *count as usize, rest),
        _ => primitive(value, 0),
    };
    end == Some(value.len())
}

/// The end of the object; `rest` is what follows the count.
#[inline]
fn object(names: &RowNames<'_>, value: &[u8], count: usize, rest: &[u8]) -> Option<usize> {
    let (ids, rest) = rest.split_at_checked(count)?;
    let (offsets, rest) = rest.split_at_checked(count)?;
    let (&size, body) = rest.split_first()?;
    let first = value.len() - body.len();
    if !names.are_ascending(ids) {
        return None;
    }
    let mut end = first;
    for &offset in offsets {
        if first + offset as usize != end {
            return None;
        }
        end = primitive(value, end)?;
    }
    (first + size as usize == end).then_some(end)
}

/// The end of the primitive at this place; none of a decimal, whose digits are to be counted, nor of binary.
#[inline]
fn primitive(value: &[u8], at: usize) -> Option<usize> {
    let first = *value.get(at)?;
    let (start, len) = match first {
        _ if first & 3 == 1 => (at + 1, (first >> 2) as usize),
        STRING => (at + 5, u32::from_le_bytes(*value.get(at + 1..)?.first_chunk()?) as usize),
        _ if first & 3 == 0 => {
            let len = match first >> 2 {
                id::NULL | id::TRUE | id::FALSE => 1,
                id::INT8 => 2,
                id::INT16 => 3,
                id::INT32 | id::DATE | id::FLOAT => 5,
                id::INT64 | id::DOUBLE | id::TIMESTAMP | id::TIMESTAMP_NTZ => 9,
                _ => return None,
            };
            return (at + len <= value.len()).then_some(at + len);
        }
        _ => return None,
    };
    let text = value.get(start..start + len)?;
    is_utf8(text).then_some(start + len)
}

#[cfg(test)]
mod tests {
    use super::is_simple;
    use crate::codec::known::KnownNames;
    use crate::codec::validate::Validator;

    const SIMPLE: [&[u8]; 9] = [
        &[0],
        &[0x0c, 5],
        &[0x10, 5, 0],
        &[0x18, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x0d, 0xc3, 0xa4, b'b'],
        &[0x40, 2, 0, 0, 0, b'a', b'b'],
        &[2, 0, 0],
        // {a: "x", b: 7, c: "yz"} and {c: null}.
        &[2, 3, 0, 1, 2, 0, 2, 4, 11, 0x05, b'x', 0x0c, 7, 0x40, 2, 0, 0, 0, b'y', b'z'],
        &[2, 1, 2, 0, 1, 0],
    ];

    /// a, b, c and b, a, c.
    const METADATA: [&[u8]; 2] = [&[0x11, 3, 0, 1, 2, 3, b'a', b'b', b'c'], &[1, 3, 0, 1, 2, 3, b'b', b'a', b'c']];

    #[test]
    fn what_is_simple_is_valid_and_sorted() {
        for (number, metadata) in METADATA.into_iter().enumerate() {
            let mut known = KnownNames::default();
            known.load(metadata).unwrap();
            let mut validator = Validator::default();
            let mut check = |value: &[u8]| {
                let simple = is_simple(&known.current(), value);
                let valid = validator.validate(known.current(), value).is_ok() && validator.unsorted().is_empty();
                assert!(valid || !simple, "{value:?}");
                simple
            };
            for value in SIMPLE {
                assert_eq!(check(value), number == 0 || value[0] != 2, "{value:?}");
                for at in 0..value.len() {
                    assert!(!check(&value[..at]));
                    for byte in 0..=u8::MAX {
                        let mut other = value.to_vec();
                        other[at] = byte;
                        check(&other);
                        other.insert(at, byte);
                        check(&other);
                    }
                }
            }
            // A decimal of ten digits in four bytes, and an array.
            assert!(!check(&[0x20, 0, 255, 255, 255, 127]) && !check(&[3, 1, 0, 1, 0]));
        }
    }
}
