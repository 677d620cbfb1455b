//! Which fields of an object are there, slot by slot: one bit a field. The bits are those of the columns, read in blocks
//! of 64 slots and turned around, so that a row looks at the fields that it has and at no other.

use arrow_array::Array;
use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::values::level::{Level, ObjectColumn};

/// Slots of a block, and fields of a group.
const BLOCK: usize = 64;

/// One bit a slot of a column.
enum Bits {
    Nowhere,
    Everywhere,
    Where(Vec<u64>),
}

impl Bits {
    #[inline]
    fn block(&self, number: usize) -> u64 {
        match self {
            Bits::Nowhere => 0,
            Bits::Everywhere => u64::MAX,
            Bits::Where(blocks) => blocks.get(number).copied().unwrap_or(0),
        }
    }

    /// Where nothing is null, of nulls that may be absent.
    fn valid(nulls: Option<&NullBuffer>) -> Self {
        match nulls {
            None => Bits::Everywhere,
            Some(nulls) if nulls.null_count() == 0 => Bits::Everywhere,
            Some(nulls) if nulls.null_count() == nulls.len() => Bits::Nowhere,
            Some(nulls) => Bits::Where(blocks(nulls.inner())),
        }
    }

    fn or(self, other: Bits) -> Self {
        match (self, other) {
            (Bits::Everywhere, _) | (_, Bits::Everywhere) => Bits::Everywhere,
            (Bits::Nowhere, one) | (one, Bits::Nowhere) => one,
            (Bits::Where(one), Bits::Where(other)) => Bits::each(one, &other, |a, b| a | b),
        }
    }

    fn and(self, other: &Bits) -> Self {
        match (self, other) {
            (Bits::Nowhere, _) | (_, Bits::Nowhere) => Bits::Nowhere,
            (one, Bits::Everywhere) => one,
            (Bits::Everywhere, Bits::Where(other)) => Bits::Where(other.clone()),
            (Bits::Where(one), Bits::Where(other)) => Bits::each(one, other, |a, b| a & b),
        }
    }

    fn and_not(self, other: &Bits) -> Self {
        match (self, other) {
            (one, Bits::Nowhere) => one,
            (Bits::Nowhere, _) | (_, Bits::Everywhere) => Bits::Nowhere,
            (Bits::Everywhere, Bits::Where(other)) => Bits::Where(other.iter().map(|bits| !bits).collect()),
            (Bits::Where(one), Bits::Where(other)) => Bits::each(one, other, |a, b| a & !b),
        }
    }

    fn each(mut one: Vec<u64>, other: &[u64], of: impl Fn(u64, u64) -> u64) -> Self {
        one.iter_mut().zip(other).for_each(|(one, other)| *one = of(*one, *other));
        Bits::Where(one)
    }
}

fn blocks(bits: &BooleanBuffer) -> Vec<u64> {
    bits.bit_chunks().iter_padded().collect()
}

/// One field of an object.
struct Column {
    /// Where it is at all; elsewhere it is missing (rule 22).
    present: Bits,
    /// Where it is a typed leaf and nothing else.
    typed: Bits,
}

impl Column {
    fn of(level: &Level) -> Self {
        let there = Bits::valid(level.nulls.as_ref());
        let value = level.value.as_ref().map_or(Bits::Nowhere, |value| Bits::valid(value.nulls()));
        let leaf = level.leaf.as_ref().map_or(Bits::Nowhere, |leaf| Bits::valid(leaf.array.nulls()));
        let object = level.object.as_ref().map_or(Bits::Nowhere, |object| Bits::valid(object.nulls.as_ref()));
        let array = level.array.as_ref().map_or(Bits::Nowhere, |array| Bits::valid(array.nulls.as_ref()));
        let typed = level.leaf.as_ref().map_or(Bits::Nowhere, |leaf| Bits::valid(leaf.array.nulls()));
        let typed = typed.and_not(&value).and(&there);
        Column { present: leaf.or(object).or(array).or(value).and(&there), typed }
    }
}

/// The fields of one object column.
#[derive(Default)]
pub struct Fields {
    columns: Vec<Column>,
    /// The block that is turned around.
    block: Option<usize>,
    /// By group of 64 fields, by slot.
    groups: Vec<[Group; BLOCK]>,
}

/// Of 64 fields those that a slot has, and those of them that are typed leaves.
#[derive(Default, Clone, Copy)]
pub struct Group {
    pub present: u64,
    pub typed: u64,
}

impl Fields {
    pub fn of(object: &ObjectColumn) -> Self {
        let columns: Vec<Column> = object.fields.iter().map(|field| Column::of(&field.level)).collect();
        let groups = vec![[Group::default(); BLOCK]; columns.len().div_ceil(BLOCK)];
        Fields { columns, block: None, groups }
    }

    /// Makes the slot readable; gives the number of groups.
    #[inline]
    pub fn seek(&mut self, slot: usize) -> usize {
        if self.block != Some(slot / BLOCK) {
            self.turn(slot / BLOCK);
        }
        self.groups.len()
    }

    /// A group of a slot that was sought.
    #[inline]
    pub fn group(&self, number: usize, slot: usize) -> Group {
        self.groups.get(number).map_or(Group::default(), |group| group[slot % BLOCK])
    }

    /// Whether the slot that was sought has this field.
    pub fn has(&self, rank: usize, slot: usize) -> bool {
        self.group(rank / BLOCK, slot).present >> (rank % BLOCK) & 1 == 1
    }

    fn turn(&mut self, block: usize) {
        self.block = Some(block);
        for (group, columns) in self.groups.iter_mut().zip(self.columns.chunks(BLOCK)) {
            *group = [Group::default(); BLOCK];
            for (eight, columns) in columns.chunks(8).enumerate() {
                let (mut present, mut typed) = ([0; 8], [0; 8]);
                for (at, column) in columns.iter().enumerate() {
                    present[at] = column.present.block(block);
                    typed[at] = column.typed.block(block);
                }
                scatter(&present, |slot, bits| group[slot].present |= bits << (8 * eight));
                scatter(&typed, |slot, bits| group[slot].typed |= bits << (8 * eight));
            }
        }
    }
}

/// Calls with the bits of each slot: bit n is that of column n.
fn scatter(columns: &[u64; 8], mut put: impl FnMut(usize, u64)) {
    if columns == &[0; 8] {
        return;
    }
    let bytes = columns.map(u64::to_le_bytes);
    for eight in 0..8 {
        let slots = transposed(u64::from_le_bytes(bytes.map(|column| column[eight]))).to_le_bytes();
        for (at, bits) in slots.into_iter().enumerate() {
            put(8 * eight + at, bits.into());
        }
    }
}

/// Eight bytes of eight bits, rows as columns (Hacker's Delight, 7-3).
fn transposed(mut bits: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
        let swapped = (bits ^ (bits >> shift)) & mask;
        bits ^= swapped ^ (swapped << shift);
    }
    bits
}
