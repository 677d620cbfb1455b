//! The outline of a row: one bit a level that it has, and one if the level is odd, which holds something else than a typed
//! leaf or the fields of an object. Of all levels that lie in objects alone; rows of one outline differ in the values of
//! their leaves, and in what is odd. Made for 64 slots at once.

use arrow_array::Array;

use crate::values::level::Level;
use crate::values::reconstruct::bits::{BLOCK, Bits, turn};

/// One level.
struct Column {
    /// Where it is at all.
    present: Bits,
    /// Where it is a typed leaf and nothing else, or an object without a residual.
    plain: Bits,
    /// The level of the object that it is a field of.
    parent: usize,
}

/// The levels from one level on; their places count from that one's number.
pub struct Outlines {
    columns: Vec<Column>,
    block: Option<usize>,
    /// By group of 64 levels, by slot: first all that are present, then all that are odd.
    groups: Vec<[u64; BLOCK]>,
    /// Of the slots that were sought last, by level: where it is present, plain and odd.
    present: Vec<u64>,
    plain: Vec<u64>,
    odd: Vec<u64>,
}

impl Outlines {
    pub fn of(level: &Level) -> Self {
        let mut outlines = Outlines {
            columns: Vec::new(),
            block: None,
            groups: Vec::new(),
            present: Vec::new(),
            plain: Vec::new(),
            odd: Vec::new(),
        };
        outlines.add(level, level.number, 0);
        let levels = vec![0; outlines.columns.len()];
        (outlines.present, outlines.plain, outlines.odd) = (levels.clone(), levels.clone(), levels);
        outlines.groups = vec![[0; BLOCK]; 2 * outlines.columns.len().div_ceil(BLOCK)];
        outlines
    }

    fn add(&mut self, level: &Level, first: usize, parent: usize) {
        let place = level.number.saturating_sub(first);
        let there = Bits::valid(level.nulls.as_ref());
        let value = level.value.as_ref().map_or(Bits::Nowhere, |value| Bits::valid(value.nulls()));
        let leaf = level.leaf.as_ref().map_or(Bits::Nowhere, |leaf| Bits::valid(leaf.array.nulls()));
        let object = level.object.as_ref().map_or(Bits::Nowhere, |object| Bits::valid(object.nulls.as_ref()));
        let array = level.array.as_ref().map_or(Bits::Nowhere, |array| Bits::valid(array.nulls.as_ref()));
        let own = leaf.or(object);
        let plain = Bits::Everywhere.and(&own).and_not(&value).and(&there);
        // The first one is always written, be it null.
        let present = if place == 0 { Bits::Everywhere } else { own.or(array).or(value).and(&there) };
        if self.columns.len() <= place {
            let none = || Column { present: Bits::Nowhere, plain: Bits::Nowhere, parent: 0 };
            self.columns.resize_with(place + 1, none);
        }
        self.columns[place] = Column { present, plain, parent };
        for field in level.object.iter().flat_map(|object| &object.fields) {
            self.add(&field.level, first, place);
        }
    }

    /// Makes the slot readable; whether it is in another block than the one before.
    #[inline]
    pub fn seek(&mut self, slot: usize) -> bool {
        let other = self.block != Some(slot / BLOCK);
        if other {
            self.turn(slot / BLOCK);
        }
        other
    }

    /// Whether some slot of the block that was sought has this level, and as a typed leaf alone.
    #[inline]
    pub fn has_leaf(&self, place: usize) -> bool {
        self.plain.get(place).is_some_and(|&slots| slots != 0)
    }

    /// Whether it is odd in one.
    #[inline]
    pub fn has_odd(&self, place: usize) -> bool {
        self.odd.get(place).is_some_and(|&slots| slots != 0)
    }

    /// The bits of a slot that was sought.
    #[inline]
    pub fn key(&self, slot: usize) -> impl Iterator<Item = u64> + Clone {
        self.groups.iter().map(move |group| group[slot % BLOCK])
    }

    fn turn(&mut self, block: usize) {
        self.block = Some(block);
        self.groups.fill([0; BLOCK]);
        for (place, column) in self.columns.iter().enumerate() {
            let outer = if place == 0 { u64::MAX } else { self.plain[column.parent] };
            let present = column.present.block(block) & outer;
            let plain = present & column.plain.block(block);
            (self.present[place], self.plain[place], self.odd[place]) = (present, plain, present & !plain);
        }
        let columns = self.present.chunks(BLOCK).chain(self.odd.chunks(BLOCK));
        columns.zip(&mut self.groups).for_each(|(columns, rows)| turn(columns, rows));
    }
}
