//! The typed leaves of all levels that lie in objects alone, by how a value becomes bytes: texts, values of a fixed
//! width behind a byte that says their type, and others.

use std::ops::Range;

use arrow_array::types::{ArrowPrimitiveType, ByteArrayType};
use arrow_array::{Array, GenericByteArray, PrimitiveArray};
use arrow_buffer::{Buffer, OffsetBuffer};

use crate::codec::primitive::id;
use crate::values::leaf::{Leaf, LeafValues};
use crate::values::level::Level;
use crate::values::reconstruct::outlines::Outlines;

/// Bytes that come into the cache at once, and how many of these are asked for in a column: what is beyond would not stay.
const LINE: usize = 64;
const LINES: usize = 512;

/// Where the values of a leaf are.
#[derive(Clone, Copy)]
pub enum Place {
    Text(u32),
    Eight(u32),
    Other(u32),
}

pub struct LeafTexts {
    /// How many levels after the first one theirs is.
    level: usize,
    pub ends: OffsetBuffer<i32>,
    pub bytes: Buffer,
}

impl LeafTexts {
    fn of<T: ByteArrayType<Offset = i32>>(level: usize, array: &GenericByteArray<T>) -> Self {
        LeafTexts { level, ends: array.offsets().clone(), bytes: array.values().clone() }
    }

    #[inline(always)]
    pub fn get(&self, slot: usize) -> Option<&[u8]> {
        let [start, end] = *self.ends.get(slot..)?.first_chunk()?;
        self.bytes.get(start as usize..end as usize)
    }

    /// Loads what these slots have, and gives something of it.
    fn fetch(&self, slots: Range<usize>) -> u8 {
        let (bytes, seen) = fetch_ends(&self.ends, slots);
        let lines = self.bytes.get(bytes).unwrap_or(&[]).chunks(LINE).take(LINES);
        lines.fold(seen, |seen, line| seen ^ line[0])
    }
}

/// The range that the slots have of what lies behind these ends, and something of them.
fn fetch_ends(ends: &OffsetBuffer<i32>, slots: Range<usize>) -> (Range<usize>, u8) {
    let ends = ends.get(slots.start..=slots.end.min(ends.len() - 1)).unwrap_or(&[]);
    let seen = ends.chunks(LINE / 4).fold(0, |seen, ends| seen ^ ends[0] as u8);
    let (Some(&start), Some(&end)) = (ends.first(), ends.last()) else { return (0..0, 0) };
    (start as usize..end as usize, seen)
}

/// Values of eight bytes, little-endian, and the byte before each.
pub struct Eights {
    level: usize,
    pub first: u8,
    pub values: Buffer,
}

/// Where the elements of arrays are, and if they are texts, those.
struct LeafList {
    level: usize,
    ends: OffsetBuffer<i32>,
    texts: Option<LeafTexts>,
}

#[derive(Default)]
pub struct Leaves {
    /// By the number of the level.
    places: Vec<Option<Place>>,
    pub texts: Vec<LeafTexts>,
    pub eights: Vec<Eights>,
    pub others: Vec<Leaf>,
    lists: Vec<LeafList>,
    /// What is not typed, and which of these a level has, by its number.
    pub residuals: Vec<LeafTexts>,
    residual_places: Vec<Option<u32>>,
}

impl Leaves {
    pub fn of(level: &Level) -> Self {
        let mut leaves = Leaves::default();
        leaves.add(level, level.number);
        leaves
    }

    /// Of the leaf of the level that is so many after the first one.
    pub fn place(&self, level: usize) -> Option<Place> {
        self.places.get(level).copied().flatten()
    }

    /// The residuals of the level that is so many after the first one.
    pub fn residual(&self, level: usize) -> Option<u32> {
        self.residual_places.get(level).copied().flatten()
    }

    /// Brings what these slots have into the cache, where it is loaded in any order. The outlines are of their block.
    pub fn fetch(&self, slots: Range<usize>, outlines: &Outlines) {
        let mut seen = 0;
        let texts = self.texts.iter().filter(|texts| outlines.has_leaf(texts.level));
        for texts in texts.chain(self.residuals.iter().filter(|values| outlines.has_odd(values.level))) {
            seen ^= texts.fetch(slots.clone());
        }
        for list in self.lists.iter().filter(|list| outlines.has_odd(list.level)) {
            let (elements, some) = fetch_ends(&list.ends, slots.clone());
            seen ^= some ^ list.texts.as_ref().map_or(0, |texts| texts.fetch(elements));
        }
        for values in self.eights.iter().filter(|values| outlines.has_leaf(values.level)) {
            let bytes = values.values.get(8 * slots.start..).unwrap_or(&[]);
            bytes.chunks(LINE).take(8).for_each(|line| seen ^= line[0]);
        }
        std::hint::black_box(seen);
    }

    fn add(&mut self, level: &Level, first: usize) {
        let number = level.number - first;
        if self.places.len() <= number {
            self.places.resize(number + 1, None);
            self.residual_places.resize(number + 1, None);
        }
        if let Some(leaf) = &level.leaf {
            self.places[number] = Some(self.put(leaf, number));
        }
        if let Some(value) = level.value.as_ref().filter(|value| value.null_count() < value.len()) {
            self.residual_places[number] = Some(self.residuals.len() as u32);
            self.residuals.push(LeafTexts::of(number, value));
        }
        if let Some(array) = &level.array {
            let texts = match array.element.leaf.as_ref().map(|leaf| &leaf.values) {
                Some(LeafValues::String(a)) => Some(LeafTexts::of(number, a)),
                _ => None,
            };
            self.lists.push(LeafList { level: number, ends: array.offsets.clone(), texts });
        }
        for field in level.object.iter().flat_map(|object| &object.fields) {
            self.add(&field.level, first);
        }
    }

    fn put(&mut self, leaf: &Leaf, level: usize) -> Place {
        match &leaf.values {
            LeafValues::String(a) => {
                self.texts.push(LeafTexts::of(level, a));
                Place::Text(self.texts.len() as u32 - 1)
            }
            // In memory as in a Variant.
            _ if cfg!(target_endian = "big") => self.other(leaf),
            LeafValues::Int64(a) => self.eight(level, id::INT64, a),
            LeafValues::Double(a) => self.eight(level, id::DOUBLE, a),
            LeafValues::Micros(a, true) => self.eight(level, id::TIMESTAMP, a),
            LeafValues::Micros(a, false) => self.eight(level, id::TIMESTAMP_NTZ, a),
            LeafValues::Nanos(a, true) => self.eight(level, id::TIMESTAMP_NANOS, a),
            LeafValues::Nanos(a, false) => self.eight(level, id::TIMESTAMP_NTZ_NANOS, a),
            LeafValues::Time(a) => self.eight(level, id::TIME, a),
            _ => self.other(leaf),
        }
    }

    fn other(&mut self, leaf: &Leaf) -> Place {
        self.others.push(leaf.clone());
        Place::Other(self.others.len() as u32 - 1)
    }

    fn eight<T: ArrowPrimitiveType>(&mut self, level: usize, id: u8, array: &PrimitiveArray<T>) -> Place {
        self.eights.push(Eights { level, first: id << 2, values: array.values().inner().clone() });
        Place::Eight(self.eights.len() as u32 - 1)
    }
}
