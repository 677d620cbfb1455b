//! Small numbers as runs and packed bits (Parquet, Encodings.md, "RLE/Bit-Packing Hybrid").
//!
//! The library's encoder takes numbers one by one, of 64 bits each. Here eight are compared, and those that differ packed,
//! at once. The runs begin and end where the library's do.

use crate::parquet::bits::{pack, push_unsigned};

/// Numbers that are packed together.
const GROUP: usize = 8;
/// Groups of a packed run: their number and a bit beside it fit a byte.
const PACKED_GROUPS: usize = 63;

pub trait Number: Copy + Default + Into<u32> + Eq {
    /// Appends groups of numbers of so many bits.
    fn pack(groups: &[[Self; GROUP]], width: usize, out: &mut Vec<u8>);
}

impl Number for u32 {
    fn pack(groups: &[[u32; GROUP]], width: usize, out: &mut Vec<u8>) {
        pack(groups.as_flattened(), width, out);
    }
}

/// Eight of these are a word.
impl Number for u8 {
    fn pack(groups: &[[u8; GROUP]], width: usize, out: &mut Vec<u8>) {
        let bits = width as u32;
        for group in groups {
            let bytes = u64::from_le_bytes(*group);
            // Each halving brings neighbours together: bytes to pairs, pairs to fours, fours to eight.
            let pairs = bytes & 0x00ff_00ff_00ff_00ff | (bytes & 0xff00_ff00_ff00_ff00) >> (8 - bits);
            let fours = pairs & 0x0000_ffff_0000_ffff | (pairs & 0xffff_0000_ffff_0000) >> (16 - 2 * bits);
            let eight = fours & 0xffff_ffff | (fours >> 32) << (4 * bits);
            let end = out.len() + width;
            out.extend_from_slice(&eight.to_le_bytes());
            out.truncate(end);
        }
    }
}

/// Appends the numbers, of so many bits, and names each run to `found`. Says how many are in none.
pub fn encode<N: Number>(numbers: &[N], width: usize, out: &mut Vec<u8>, mut found: impl FnMut(N, usize)) -> usize {
    let (mut rest, mut packed, mut in_none) = (numbers, 0, 0);
    while let Some(group) = rest.get(packed..packed + GROUP) {
        let number = group[0];
        let is_run = group == [number; GROUP];
        if !is_run {
            packed += GROUP;
        }
        if is_run || packed == PACKED_GROUPS * GROUP {
            let (before, here) = rest.split_at(packed);
            push_packed(before, width, out);
            in_none += packed;
            (rest, packed) = (here, 0);
        }
        if is_run {
            let groups = rest.chunks_exact(GROUP).take_while(|group| *group == [number; GROUP]).count() * GROUP;
            let run = groups + rest[groups..].iter().take_while(|&&other| other == number).count();
            push_run(number, run, width, out);
            found(number, run);
            rest = &rest[run..];
        }
    }
    match rest {
        [number, others @ ..] if packed == 0 && others.iter().all(|other| other == number) => {
            push_run(*number, rest.len(), width, out);
            found(*number, rest.len());
            in_none
        }
        _ => {
            push_packed(rest, width, out);
            in_none + rest.len()
        }
    }
}

fn push_run<N: Number>(number: N, run: usize, width: usize, out: &mut Vec<u8>) {
    push_unsigned((run as u64) << 1, out);
    let bytes: [u8; 4] = number.into().to_le_bytes();
    out.extend(bytes.iter().take(width.div_ceil(8)));
}

/// A run of packed groups, filled up with zeros; nothing if there is none.
fn push_packed<N: Number>(numbers: &[N], width: usize, out: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    out.push((numbers.len().div_ceil(GROUP) << 1 | 1) as u8);
    let (groups, rest) = numbers.as_chunks::<GROUP>();
    N::pack(groups, width, out);
    if !rest.is_empty() {
        let mut last = [N::default(); GROUP];
        last[..rest.len()].copy_from_slice(rest);
        N::pack(&[last], width, out);
    }
}

/// No fewer bytes than so many numbers take.
pub fn most_bytes(count: usize, width: usize) -> usize {
    count.div_ceil(GROUP) * (1 + width.max(width.div_ceil(8)))
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;

    use super::super::library::{PAGE_ROWS, page, random};
    use super::{encode, most_bytes};
    use crate::parquet::bits::width;

    /// Numbers below `below` in runs of many lengths.
    fn numbers(seed: u64, below: u32) -> Vec<u32> {
        let mut next = random(seed);
        let (mut numbers, longest) = (Vec::new(), [1, 3, 9, 20, 600][next(5) as usize]);
        for _ in 0..1 + next(1500) {
            let number = next(below.into()) as u32;
            numbers.extend((0..=next(longest)).map(|_| number));
        }
        numbers.truncate(PAGE_ROWS);
        numbers
    }

    /// The library's encoder is the measure: of the numbers of a dictionary in the order in which they came.
    #[test]
    fn runs_are_those_of_the_library() {
        for (seed, below) in (0..60).flat_map(|seed| [1, 2, 3, 6, 15, 40, 254, 70_000].map(|below| (seed, below))) {
            let mut order = Vec::new();
            let code = |number: u32| {
                let known = order.iter().position(|&other| other == number);
                known.unwrap_or_else(|| {
                    order.push(number);
                    order.len() - 1
                }) as u32
            };
            let codes: Vec<u32> = numbers(seed, below).into_iter().map(code).collect();
            let (width, values) = (width(order.len() - 1), codes.iter().map(|&code| code as i32).collect::<Vec<_>>());
            let (mut bytes, mut in_runs) = (vec![width as u8], 0);
            let in_none = encode(&codes, width, &mut bytes, |_, run| in_runs += run);
            assert_eq!(in_runs + in_none, codes.len());
            assert!(bytes.len() <= 1 + most_bytes(codes.len(), width));
            assert_eq!(bytes, page(&values, Encoding::RLE_DICTIONARY), "seed {seed}, below {below}");
        }
    }

    #[test]
    fn numbers_of_a_byte_are_packed_alike() {
        for (seed, below) in (0..60).flat_map(|seed| [1, 2, 3, 6, 15, 40, 254].map(|below| (seed, below))) {
            let wide = numbers(seed, below);
            let narrow: Vec<u8> = wide.iter().map(|&number| number as u8).collect();
            let (mut bytes, mut same) = (Vec::new(), Vec::new());
            encode(&wide, width(below as usize), &mut bytes, |_, _| {});
            encode(&narrow, width(below as usize), &mut same, |_, _| {});
            assert_eq!(bytes, same);
        }
    }
}
