//! Which fields of an object are there, slot by slot: one bit a field. The bits are those of the columns, read in blocks
//! of 64 slots and turned around, so that a row looks at the fields that it has and at no other.

use arrow_array::Array;

use crate::values::level::{Level, ObjectColumn};
use crate::values::reconstruct::bits::{BLOCK, Bits, turn};

/// Slots of a block that are read by themselves.
const SINGLES: usize = 2;

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
    /// The block of the slot that was sought last, and whether it is turned around: before a third one is sought, each is
    /// read by itself.
    block: Option<usize>,
    sought: usize,
    /// By group of 64 fields, by slot.
    present: Vec<[u64; BLOCK]>,
    typed: Vec<[u64; BLOCK]>,
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
        let groups = vec![[0; BLOCK]; columns.len().div_ceil(BLOCK)];
        Fields { columns, block: None, sought: 0, present: groups.clone(), typed: groups }
    }

    /// Makes the slot readable; gives the number of groups.
    #[inline]
    pub fn seek(&mut self, slot: usize) -> usize {
        if self.block != Some(slot / BLOCK) {
            (self.block, self.sought) = (Some(slot / BLOCK), 0);
        }
        if self.sought <= SINGLES {
            self.sought += 1;
            if self.sought <= SINGLES { self.read(slot) } else { self.turn(slot / BLOCK) }
        }
        self.present.len()
    }

    /// A group of a slot that was sought.
    #[inline]
    pub fn group(&self, number: usize, slot: usize) -> Group {
        let bits = |groups: &[[u64; BLOCK]]| groups.get(number).map_or(0, |group| group[slot % BLOCK]);
        Group { present: bits(&self.present), typed: bits(&self.typed) }
    }

    /// Whether the slot that was sought has this field.
    pub fn has(&self, rank: usize, slot: usize) -> bool {
        self.group(rank / BLOCK, slot).present >> (rank % BLOCK) & 1 == 1
    }

    fn read(&mut self, slot: usize) {
        let (block, at) = (slot / BLOCK, slot % BLOCK);
        let groups = self.present.iter_mut().zip(&mut self.typed);
        for ((present, typed), columns) in groups.zip(self.columns.chunks(BLOCK)) {
            let (mut one, mut other) = (0, 0);
            for column in columns.iter().rev() {
                one = one << 1 | column.present.block(block) >> at & 1;
                other = other << 1 | column.typed.block(block) >> at & 1;
            }
            (present[at], typed[at]) = (one, other);
        }
    }

    fn turn(&mut self, block: usize) {
        let groups = self.present.iter_mut().zip(&mut self.typed);
        for ((present, typed), columns) in groups.zip(self.columns.chunks(BLOCK)) {
            let mut bits = [[0; BLOCK]; 2];
            for (at, column) in columns.iter().enumerate() {
                (bits[0][at], bits[1][at]) = (column.present.block(block), column.typed.block(block));
            }
            turn(&bits[0][..columns.len()], present);
            // Fields are mostly typed wherever they are.
            if bits[0] == bits[1] {
                *typed = *present;
            } else {
                turn(&bits[1][..columns.len()], typed);
            }
        }
    }
}
