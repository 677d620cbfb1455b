//! Short byte strings, appended and compared in pieces of a fixed size. memcpy and memcmp are calls that branch on the length;
//! a piece of a fixed size is a load and a store, and two pieces may overlap.

/// Longer byte strings are left to memcpy and memcmp.
const SHORT: usize = 32;

/// Appends the bytes.
#[inline(always)]
pub fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        16..=SHORT => pieces::<16>(out, bytes),
        8..=15 => pieces::<8>(out, bytes),
        4..=7 => pieces::<4>(out, bytes),
        _ => out.extend_from_slice(bytes),
    }
}

/// Appends `length` of these bytes from `start` on: as one piece, if enough bytes follow to fill it.
#[inline(always)]
pub fn push_part(out: &mut Vec<u8>, bytes: &[u8], start: usize, length: usize) {
    if length <= SHORT
        && let Some(piece) = bytes.get(start..).and_then(|rest| rest.first_chunk::<SHORT>())
    {
        let end = out.len() + length;
        out.extend_from_slice(piece);
        out.truncate(end);
    } else {
        out.extend_from_slice(&bytes[start..start + length]);
    }
}

/// Whether both are the same bytes.
#[inline(always)]
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && match one.len() {
            16..=SHORT => both::<16>(one, other),
            8..=15 => both::<8>(one, other),
            4..=7 => both::<4>(one, other),
            _ => one == other,
        }
}

/// Whether the first and the last N bytes are the same, which may overlap and are all of both.
#[inline(always)]
fn both<const N: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<N>() == other.first_chunk() && one.last_chunk::<N>() == other.last_chunk()
}

/// In pieces of N bytes, the last of which may overlap the one before.
#[inline(always)]
fn pieces<const N: usize>(out: &mut Vec<u8>, bytes: &[u8]) {
    let (pieces, rest) = bytes.as_chunks::<N>();
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    if !rest.is_empty()
        && let Some(last) = bytes.last_chunk::<N>()
    {
        out.truncate(out.len() + rest.len() - N);
        out.extend_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use super::{push, push_part, same};

    #[test]
    fn bytes_are_the_same_where_each_is() {
        let bytes: Vec<u8> = (0..80).collect();
        for length in 0..=80 {
            assert!(same(&bytes[..length], &bytes[..length]));
            assert!(!same(&bytes[..length], &bytes[..length.saturating_sub(1)]) || length == 0);
            for at in 0..length {
                let mut other = bytes[..length].to_vec();
                other[at] ^= 0x80;
                assert!(!same(&bytes[..length], &other));
            }
        }
    }

    #[test]
    fn bytes_of_any_number_are_appended() {
        let bytes: Vec<u8> = (0..=255).collect();
        for (before, length) in [0, 1, 200].into_iter().flat_map(|before| (0..=256).map(move |length| (before, length)))
        {
            let mut out = vec![7; before];
            push(&mut out, &bytes[..length]);
            assert_eq!(out, [&vec![7; before], &bytes[..length]].concat());
            for start in [0, 5, 256 - length].into_iter().filter(|start| start + length <= 256) {
                let mut out = vec![7; before];
                push_part(&mut out, &bytes, start, length);
                assert_eq!(out, [&vec![7; before], &bytes[start..start + length]].concat());
            }
        }
    }
}
