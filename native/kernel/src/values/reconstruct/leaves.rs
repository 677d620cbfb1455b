//! Typed leaves as Variants: the bytes that each takes, then the bytes, in the column's own type: shredding widened the
//! values, and the specification reads them back as that type.

use crate::codec::primitive::{MAX_SHORT_STRING, decimal_width, id, string_size};
use crate::values::leaf::{Leaf, LeafValues};
use crate::values::reconstruct::part::{Leaves, Part};

/// Sets the sizes of the items that are leaves.
pub fn measure(leaf: &Leaf, part: &mut Part) {
    match &leaf.values {
        LeafValues::Boolean(_) => sizes(part, |_| 1),
        LeafValues::Int8(_) => sizes(part, |_| 2),
        LeafValues::Int16(_) => sizes(part, |_| 3),
        LeafValues::Int32(_) | LeafValues::Float(_) | LeafValues::Date(_) => sizes(part, |_| 5),
        LeafValues::Int64(_)
        | LeafValues::Double(_)
        | LeafValues::Micros(..)
        | LeafValues::Nanos(..)
        | LeafValues::Time(_) => sizes(part, |_| 9),
        LeafValues::Uuid(_) => sizes(part, |_| 17),
        LeafValues::Decimal(a, _, scale) => {
            sizes(part, |slot| 2 + u32::from(decimal_width(a.value(slot), *scale).max(leaf.width())));
        }
        LeafValues::String(a) => sizes(part, |slot| string_size(a.value_length(slot) as usize) as u32),
        LeafValues::Binary(a) => sizes(part, |slot| 5 + a.value_length(slot) as u32),
    }
}

#[inline]
fn sizes(part: &mut Part, size: impl Fn(usize) -> u32) {
    let Part { leaves, slots, sizes, .. } = part;
    match leaves {
        Leaves::All => sizes.extend(slots.iter().map(|&slot| size(slot as usize))),
        Leaves::Some(items) => {
            for &item in items.iter() {
                sizes[item as usize] = size(slots[item as usize] as usize);
            }
        }
    }
}

/// Writes the items that are leaves.
pub fn write(leaf: &Leaf, part: &Part, out: &mut [u8]) {
    match &leaf.values {
        LeafValues::Boolean(a) => {
            each(part, out, |slot, to| fixed(to, if a.value(slot) { id::TRUE } else { id::FALSE }, []));
        }
        LeafValues::Int8(a) => each(part, out, |slot, to| fixed(to, id::INT8, a.value(slot).to_le_bytes())),
        LeafValues::Int16(a) => each(part, out, |slot, to| fixed(to, id::INT16, a.value(slot).to_le_bytes())),
        LeafValues::Int32(a) => each(part, out, |slot, to| fixed(to, id::INT32, a.value(slot).to_le_bytes())),
        LeafValues::Int64(a) => each(part, out, |slot, to| fixed(to, id::INT64, a.value(slot).to_le_bytes())),
        LeafValues::Float(a) => each(part, out, |slot, to| fixed(to, id::FLOAT, a.value(slot).to_le_bytes())),
        LeafValues::Double(a) => each(part, out, |slot, to| fixed(to, id::DOUBLE, a.value(slot).to_le_bytes())),
        LeafValues::Date(a) => each(part, out, |slot, to| fixed(to, id::DATE, a.value(slot).to_le_bytes())),
        LeafValues::Micros(a, utc) => {
            let id = if *utc { id::TIMESTAMP } else { id::TIMESTAMP_NTZ };
            each(part, out, |slot, to| fixed(to, id, a.value(slot).to_le_bytes()));
        }
        LeafValues::Nanos(a, utc) => {
            let id = if *utc { id::TIMESTAMP_NANOS } else { id::TIMESTAMP_NTZ_NANOS };
            each(part, out, |slot, to| fixed(to, id, a.value(slot).to_le_bytes()));
        }
        LeafValues::Time(a) => each(part, out, |slot, to| fixed(to, id::TIME, a.value(slot).to_le_bytes())),
        LeafValues::Uuid(a) => each(part, out, |slot, to| follow(to, id::UUID << 2, a.value(slot))),
        LeafValues::Decimal(a, _, scale) => each(part, out, |slot, to| {
            let id = match to.len() {
                6 => id::DECIMAL4,
                10 => id::DECIMAL8,
                _ => id::DECIMAL16,
            };
            if let [first, second, rest @ ..] = to {
                (*first, *second) = (id << 2, *scale);
                rest.copy_from_slice(&a.value(slot).to_le_bytes()[..rest.len()]);
            }
        }),
        LeafValues::String(a) => {
            each(part, out, |slot, to| match a.value(slot).as_bytes() {
                short if short.len() <= MAX_SHORT_STRING => follow(to, (short.len() as u8) << 2 | 1, short),
                long => follow_length(to, id::STRING, long),
            });
        }
        LeafValues::Binary(a) => each(part, out, |slot, to| follow_length(to, id::BINARY, a.value(slot))),
    }
}

#[inline]
fn each(part: &Part, out: &mut [u8], write: impl Fn(usize, &mut [u8])) {
    let Part { leaves, slots, sizes, starts, .. } = part;
    let mut one = |slot: u32, start: u32, size: u32| {
        write(slot as usize, &mut out[start as usize..start as usize + size as usize]);
    };
    match leaves {
        Leaves::All => {
            for ((&slot, &start), &size) in slots.iter().zip(starts).zip(sizes) {
                one(slot, start, size);
            }
        }
        Leaves::Some(items) => {
            for &item in items {
                let item = item as usize;
                one(slots[item], starts[item], sizes[item]);
            }
        }
    }
}

#[inline]
fn fixed<const N: usize>(to: &mut [u8], id: u8, bytes: [u8; N]) {
    if let [first, rest @ ..] = to {
        *first = id << 2;
        rest.copy_from_slice(&bytes);
    }
}

#[inline]
fn follow(to: &mut [u8], header: u8, bytes: &[u8]) {
    if let [first, rest @ ..] = to {
        *first = header;
        copy_short(rest, bytes);
    }
}

#[inline]
fn follow_length(to: &mut [u8], id: u8, bytes: &[u8]) {
    if let [first, rest @ ..] = to
        && let Some((length, rest)) = rest.split_first_chunk_mut::<4>()
    {
        *first = id << 2;
        *length = (bytes.len() as u32).to_le_bytes();
        rest.copy_from_slice(bytes);
    }
}

/// Copies a few bytes without a call: the first and the last of them, which may overlap.
#[inline]
fn copy_short(to: &mut [u8], from: &[u8]) {
    match from.len() {
        8..16 => ends::<8>(to, from),
        16..32 => ends::<16>(to, from),
        32..=64 => ends::<32>(to, from),
        _ => to.copy_from_slice(from),
    }
}

#[inline]
fn ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
        if let Some(to) = to.first_chunk_mut::<N>() {
            *to = *first;
        }
        if let Some(to) = to.last_chunk_mut::<N>() {
            *to = *last;
        }
    }
}
