//! The typed leaves of all levels that lie in objects alone, by how a value becomes bytes: texts, values of a fixed
//! width behind a byte that says their type, and others.

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, PrimitiveArray};
use arrow_buffer::{Buffer, OffsetBuffer};

use crate::codec::primitive::id;
use crate::values::leaf::{Leaf, LeafValues};
use crate::values::level::Level;

/// Where the values of a leaf are.
#[derive(Clone, Copy)]
pub enum Place {
    Text(u32),
    Eight(u32),
    Other(u32),
}

pub struct LeafTexts {
    pub ends: OffsetBuffer<i32>,
    pub bytes: Buffer,
}

/// Values of eight bytes, little-endian, and the byte before each.
pub struct Eights {
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
    /// What is not typed.
    residuals: Vec<LeafTexts>,
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

    /// Brings the texts and residuals of these slots into the cache, where they are loaded in any order.
    pub fn fetch(&self, slots: std::ops::Range<usize>) {
        let mut seen = 0;
        for texts in self.texts.iter().chain(&self.residuals) {
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
        for values in &self.eights {
            let bytes = values.values.get(8 * slots.start..).unwrap_or(&[]);
            bytes.chunks(64).take(8).for_each(|line| seen ^= line[0]);
        }
        std::hint::black_box(seen);
    }

    fn add(&mut self, level: &Level, first: usize) {
        if let Some(leaf) = &level.leaf {
            let number = level.number - first;
            let place = self.put(leaf);
            if self.places.len() <= number {
                self.places.resize(number + 1, None);
            }
            self.places[number] = Some(place);
        }
        if let Some(value) = level.value.as_ref().filter(|value| value.null_count() < value.len()) {
            self.residuals.push(LeafTexts { ends: value.offsets().clone(), bytes: value.values().clone() });
        }
        for field in level.object.iter().flat_map(|object| &object.fields) {
            self.add(&field.level, first);
        }
    }

    fn put(&mut self, leaf: &Leaf) -> Place {
        match &leaf.values {
            LeafValues::String(a) => {
                self.texts.push(LeafTexts { ends: a.offsets().clone(), bytes: a.values().clone() });
                Place::Text(self.texts.len() as u32 - 1)
            }
            // In memory as in a Variant.
            _ if cfg!(target_endian = "big") => self.other(leaf),
            LeafValues::Int64(a) => self.eight(id::INT64, a),
            LeafValues::Double(a) => self.eight(id::DOUBLE, a),
            LeafValues::Micros(a, true) => self.eight(id::TIMESTAMP, a),
            LeafValues::Micros(a, false) => self.eight(id::TIMESTAMP_NTZ, a),
            LeafValues::Nanos(a, true) => self.eight(id::TIMESTAMP_NANOS, a),
            LeafValues::Nanos(a, false) => self.eight(id::TIMESTAMP_NTZ_NANOS, a),
            LeafValues::Time(a) => self.eight(id::TIME, a),
            _ => self.other(leaf),
        }
    }

    fn other(&mut self, leaf: &Leaf) -> Place {
        self.others.push(leaf.clone());
        Place::Other(self.others.len() as u32 - 1)
    }

    fn eight<T: ArrowPrimitiveType>(&mut self, id: u8, array: &PrimitiveArray<T>) -> Place {
        self.eights.push(Eights { first: id << 2, values: array.values().inner().clone() });
        Place::Eight(self.eights.len() as u32 - 1)
    }
}
