//! The typed leaves of all levels that lie in objects alone, by how a value becomes bytes: texts, values of a fixed
//! width behind a byte that says their type, and others.

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, PrimitiveArray};
use arrow_buffer::{Buffer, OffsetBuffer};

use crate::codec::primitive::id;
use crate::values::leaf::{Leaf, LeafValues};
use crate::values::level::Level;
use crate::values::reconstruct::outlines::Outlines;

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
    #[inline(always)]
    pub fn get(&self, slot: usize) -> Option<&[u8]> {
        let [start, end] = *self.ends.get(slot..)?.first_chunk()?;
        self.bytes.get(start as usize..end as usize)
    }
}

/// Values of eight bytes, little-endian, and the byte before each.
pub struct Eights {
    level: usize,
    pub first: u8,
    pub values: Buffer,
}

#[derive(Default)]
pub struct Leaves {
    /// By the number of the level.
    places: Vec<Option<Place>>,
    pub texts: Vec<LeafTexts>,
    pub eights: Vec<Eights>,
    pub others: Vec<Leaf>,
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
    pub fn fetch(&self, slots: std::ops::Range<usize>, outlines: &Outlines) {
        let mut seen = 0;
        let texts = self.texts.iter().filter(|texts| outlines.has_leaf(texts.level));
        for texts in texts.chain(self.residuals.iter().filter(|values| outlines.has_odd(values.level))) {
            let last = slots.end.min(texts.ends.len() - 1);
            let Some(ends) = texts.ends.get(slots.start..=last) else { continue };
            for ends in ends.chunks(64 / 4) {
                seen ^= ends[0] as u8;
            }
            let (Some(&start), Some(&end)) = (ends.first(), ends.last()) else { continue };
            for line in texts.bytes.get(start as usize..end as usize).unwrap_or(&[]).chunks(64) {
                seen ^= line[0];
            }
        }
        for values in self.eights.iter().filter(|values| outlines.has_leaf(values.level)) {
            let bytes = values.values.get(8 * slots.start..).unwrap_or(&[]);
            bytes.chunks(64).take(8).for_each(|line| seen ^= line[0]);
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
            let (ends, bytes) = (value.offsets().clone(), value.values().clone());
            self.residual_places[number] = Some(self.residuals.len() as u32);
            self.residuals.push(LeafTexts { level: number, ends, bytes });
        }
        for field in level.object.iter().flat_map(|object| &object.fields) {
            self.add(&field.level, first);
        }
    }

    fn put(&mut self, leaf: &Leaf, level: usize) -> Place {
        match &leaf.values {
            LeafValues::String(a) => {
                self.texts.push(LeafTexts { level, ends: a.offsets().clone(), bytes: a.values().clone() });
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
