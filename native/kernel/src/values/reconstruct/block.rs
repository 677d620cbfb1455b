//! The state of one block of values between its two passes, `measure` and `write`.

use crate::codec::known::KnownNames;
use crate::codec::validate::{FieldSpan, Validator};
use crate::values::level::Level;
use crate::values::reconstruct::part::{Outline, Part, Presence};

pub struct Block {
    pub names: KnownNames,
    pub residual: Validator,
    /// By level number, as the parts.
    pub outlines: Vec<Outline>,
    pub parts: Vec<Part>,
    /// How many values it has.
    pub values: usize,
    /// The numbers of the metadata that they are under, if these are few; and the number of the one, if it is one.
    pub kinds: Vec<u32>,
    pub one: Option<u32>,
    /// Whether a field id may take more than a byte.
    pub wide: bool,
    pub spans: Vec<FieldSpan>,
}

impl Block {
    /// For a level and all below it.
    pub fn new(level: &Level) -> Self {
        let mut block = Block {
            names: KnownNames::default(),
            residual: Validator::default(),
            outlines: Vec::new(),
            parts: Vec::new(),
            values: 0,
            kinds: Vec::new(),
            one: None,
            wide: false,
            spans: Vec::new(),
        };
        block.open(level, &Presence::Nowhere);
        block
    }

    /// The field id of a level's name, where all metadata agree on it.
    pub fn id_of(&self, level: usize) -> Option<u32> {
        let mut ids = self.kinds.iter().map(|&kind| self.names.of(kind).id_of_level(level));
        let first = ids.next()?;
        ids.all(|id| id == first).then_some(first)?
    }

    /// `objects`: where the object is that has the level as a field.
    fn open(&mut self, level: &Level, objects: &Presence) {
        while self.outlines.len() <= level.number {
            self.outlines.push(Outline::default());
            self.parts.push(Part::default());
        }
        self.outlines[level.number] = Outline::of(level, objects);
        if let Some(object) = &level.object {
            let objects = Presence::of_object(level, object);
            for field in &object.fields {
                self.names.want(&field.name, field.level.number);
                self.open(&field.level, &objects);
            }
        }
        if let Some(array) = &level.array {
            self.open(&array.element, &Presence::Nowhere);
        }
    }
}

/// The metadata of an item.
#[inline]
pub fn names_of(one: Option<u32>, part: &Part, item: u32) -> u32 {
    one.or_else(|| part.names.get(item as usize).copied()).unwrap_or(0)
}
