//! What is known of a level between the two passes over a block of values: which of its slots take part, what each
//! holds, how many bytes that takes, and where these begin.

use arrow::array::Array;
use arrow::buffer::{BooleanBuffer, NullBuffer};

use crate::codec::primitive::Header;
use crate::values::level::{Level, ObjectColumn};

/// A field that is in one of so many slots, or fewer, is looked for by its own bits.
const FEW: usize = 8;

/// No object is in this slot.
const ABSENT: u32 = u32::MAX;

/// Where a level holds anything at all; elsewhere an object field is missing (rule 22).
#[derive(Default, Clone)]
pub enum Presence {
    #[default]
    Nowhere,
    Everywhere,
    Where(BooleanBuffer),
}

impl Presence {
    fn of(level: &Level) -> Self {
        let leaf = level.leaf.as_ref().map(|leaf| leaf.array.nulls());
        let object = level.object.as_ref().map(|object| object.nulls.as_ref());
        let array = level.array.as_ref().map(|array| array.nulls.as_ref());
        let value = level.value.as_ref().map(|value| value.nulls());
        let mut found = Presence::Nowhere;
        for nulls in [leaf, object, array, value].into_iter().flatten() {
            found = match (found, nulls) {
                (Presence::Everywhere, _) | (_, None) => Presence::Everywhere,
                (found, Some(nulls)) if nulls.null_count() == nulls.len() => found,
                (Presence::Nowhere, Some(nulls)) => Presence::Where(nulls.inner().clone()),
                (Presence::Where(bits), Some(nulls)) => Presence::Where(&bits | nulls.inner()),
            };
        }
        match (found, &level.nulls) {
            (Presence::Everywhere, Some(nulls)) => Presence::Where(nulls.inner().clone()),
            (Presence::Where(bits), Some(nulls)) => Presence::Where(&bits & nulls.inner()),
            (found, _) => found,
        }
    }

    /// Where a level holds an object, or more.
    pub fn of_object(level: &Level, object: &ObjectColumn) -> Self {
        match NullBuffer::union(level.nulls.as_ref(), object.nulls.as_ref()) {
            None => Presence::Everywhere,
            Some(nulls) => Presence::Where(nulls.into_inner()),
        }
    }

    pub fn is_everywhere(&self) -> bool {
        matches!(self, Presence::Everywhere)
    }

    pub fn at(&self, slot: usize) -> bool {
        match self {
            Presence::Nowhere => false,
            Presence::Everywhere => true,
            Presence::Where(bits) => bits.value(slot),
        }
    }
}

/// What a level holds anywhere in the column.
#[derive(Default)]
pub struct Outline {
    pub presence: Presence,
    /// Of a field: where its object is.
    objects: Presence,
    /// Of a field: it is there wherever its object is; in few of all slots.
    always: bool,
    few: bool,
    pub leaf: bool,
    pub object: bool,
    pub array: bool,
    pub value: bool,
}

impl Outline {
    /// `objects`: where the object is that has it as a field.
    pub fn of(level: &Level, objects: &Presence) -> Self {
        let some = |nulls: Option<&NullBuffer>| nulls.is_none_or(|nulls| nulls.null_count() < nulls.len());
        let presence = Presence::of(level);
        let (always, few) = match (&presence, objects) {
            (Presence::Where(bits), Presence::Where(objects)) => {
                let there = (bits & objects).count_set_bits();
                (there == objects.count_set_bits(), bits.count_set_bits() < bits.len() / FEW)
            }
            (Presence::Where(bits), _) => (false, bits.count_set_bits() < bits.len() / FEW),
            _ => (presence.is_everywhere(), false),
        };
        Outline {
            objects: objects.clone(),
            always,
            few,
            leaf: level.leaf.as_ref().is_some_and(|leaf| some(leaf.array.nulls())),
            object: level.object.as_ref().is_some_and(|object| some(object.nulls.as_ref())),
            array: level.array.as_ref().is_some_and(|array| some(array.nulls.as_ref())),
            value: level.value.as_ref().is_some_and(|value| some(value.nulls())),
            presence,
        }
    }

    /// Whether the field is wherever its object is, from the first to the last of these slots.
    fn is_always(&self, slots: &[u32]) -> bool {
        let (Presence::Where(bits), false, Some((first, len))) = (&self.presence, self.few, range(slots)) else {
            return false;
        };
        let bits = bits.slice(first, len);
        match &self.objects {
            Presence::Nowhere => false,
            Presence::Everywhere => bits.count_set_bits() == len,
            Presence::Where(objects) => {
                let objects = objects.slice(first, len);
                (&bits & &objects).count_set_bits() == objects.count_set_bits()
            }
        }
    }

    /// Those of the objects that have the field, as slots and owners of its part.
    pub fn pick(&self, objects: &mut Containers, part: &mut Part) {
        part.slots.clear();
        part.owners.clear();
        part.all = self.always || self.is_always(&objects.slots);
        if part.all {
            return part.slots.extend_from_slice(&objects.slots);
        }
        let Presence::Where(bits) = &self.presence else { return };
        if self.few {
            let first = objects.slots.first().copied().unwrap_or(0);
            let places = objects.places();
            for slot in bits.slice(first as usize, places.len()).set_indices_u32() {
                let owner = places[slot as usize];
                if owner != ABSENT {
                    part.slots.push(first + slot);
                    part.owners.push(owner);
                }
            }
            return;
        }
        for (owner, &slot) in objects.slots.iter().enumerate() {
            if bits.value(slot as usize) {
                part.slots.push(slot);
                part.owners.push(owner as u32);
            }
        }
    }
}

/// The slots from the first to the last of these.
fn range(slots: &[u32]) -> Option<(usize, usize)> {
    let (first, last) = (*slots.first()?, *slots.last()?);
    Some((first as usize, (last.checked_sub(first)?) as usize + 1))
}

/// Whether any of these slots, or one between them, is not null.
pub fn any_in(nulls: Option<&NullBuffer>, slots: &[u32]) -> bool {
    match (nulls, range(slots)) {
        (Some(nulls), Some((first, len))) => nulls.inner().slice(first, len).count_set_bits() > 0,
        _ => true,
    }
}

/// One level's part of a block. An item is a slot that takes part, by its place in `slots`.
#[derive(Default)]
pub struct Part {
    pub slots: Vec<u32>,
    /// Each slot is of one object, in their order: `owners` is empty then.
    pub all: bool,
    /// The number, among the objects or arrays of the level above, of the one that holds the slot.
    pub owners: Vec<u32>,
    /// Of a field: the id of its name, where all metadata agree on it.
    pub id: Option<u32>,
    /// The number of the metadata, where the block has several and it matters.
    pub names: Vec<u32>,
    pub sizes: Vec<u32>,
    pub starts: Vec<u32>,
    /// Items by what they hold; the others are the Variant null.
    pub leaves: Leaves,
    pub residuals: Vec<u32>,
    pub objects: Containers,
    pub arrays: Containers,
    /// The fields of partial objects that are in their residuals, object by object, in the order of their names.
    pub partial: Vec<Partial>,
    pub entries: Vec<Entry>,
    /// Bytes that are not taken as they are because ids were out of order, and the residuals that are in them.
    pub healed: Vec<u8>,
    pub healed_residuals: Vec<(u32, u32)>,
}

impl Part {
    pub fn clear(&mut self) {
        self.sizes.clear();
        self.leaves = Leaves::default();
        self.residuals.clear();
        self.objects.clear();
        self.arrays.clear();
        self.partial.clear();
        self.entries.clear();
        self.healed.clear();
        self.healed_residuals.clear();
    }

    /// The number of the object or array that holds the slot at this place.
    #[inline]
    pub fn owner(&self, place: usize) -> usize {
        if self.all { place } else { self.owners[place] as usize }
    }

    /// Adds the sizes of the items, and of whatever is in them, to what holds them.
    pub fn add_to(&self, heads: &mut [Head]) {
        if self.all {
            heads.iter_mut().zip(&self.sizes).for_each(|(head, &size)| head.add(size));
        } else {
            for (&owner, &size) in self.owners.iter().zip(&self.sizes) {
                heads[owner as usize].add(size);
            }
        }
    }
}

/// The items of a part that are typed leaves.
pub enum Leaves {
    All,
    Some(Vec<u32>),
}

impl Default for Leaves {
    fn default() -> Self {
        Leaves::Some(Vec::new())
    }
}

/// The objects of a part, or its arrays.
#[derive(Default)]
pub struct Containers {
    pub items: Vec<u32>,
    pub slots: Vec<u32>,
    pub heads: Vec<Head>,
    places: Vec<u32>,
    /// The children of all, one container after the other: field ids, and where each child ends in its container.
    ids: Vec<u32>,
    ends: Vec<u32>,
}

impl Containers {
    /// By slot, from the first one on, the number of the object that is there.
    fn places(&mut self) -> &[u32] {
        if self.places.is_empty()
            && let Some((first, len)) = range(&self.slots)
        {
            self.places.resize(len, ABSENT);
            for (place, slot) in self.slots.iter().enumerate() {
                self.places[*slot as usize - first] = place as u32;
            }
        }
        &self.places
    }

    fn clear(&mut self) {
        self.places.clear();
        self.items.clear();
        self.slots.clear();
        self.heads.clear();
    }

    pub fn push(&mut self, item: u32, slot: u32) {
        self.items.push(item);
        self.slots.push(slot);
        self.heads.push(Head::default());
    }

    /// Finds places for what is in each, whose items begin at `starts`.
    pub fn begin(&mut self, object: bool, starts: &[u32]) {
        let mut children = 0;
        for (head, &item) in self.heads.iter_mut().zip(&self.items) {
            head.next = children;
            head.body = starts[item as usize] + head.header(object).size() as u32;
            children += head.count;
        }
        self.ids.resize(children as usize, 0);
        self.ends.resize(children as usize, 0);
    }

    /// The next child of one of them; gives the place of its value.
    #[inline]
    pub fn child(&mut self, at: usize, id: u32, size: u32) -> u32 {
        let head = &mut self.heads[at];
        let (start, child) = (head.body + head.end, head.next as usize);
        head.end += size;
        head.next += 1;
        self.ids[child] = id;
        self.ends[child] = head.end;
        start
    }

    /// Writes the headers, after the last child.
    pub fn finish(&self, object: bool, out: &mut [u8]) {
        for head in &self.heads {
            let children = (head.next - head.count) as usize..head.next as usize;
            let header = head.header(object);
            let body = head.body as usize;
            let Some(mut to) = out.get_mut(body - header.size()..body) else { continue };
            to[0] = header.first();
            to[1] = header.count as u8;
            to = &mut to[2..];
            if header.large {
                to[..3].copy_from_slice(&(head.count >> 8).to_le_bytes()[..3]);
                to = &mut to[3..];
            }
            let (ids, offsets) = to.split_at_mut(header.count * header.id_width.unwrap_or(0));
            put(ids, &self.ids[children.clone()], header.id_width.unwrap_or(0));
            // The first offset is 0, as the bytes are.
            put(&mut offsets[header.offset_width..], &self.ends[children], header.offset_width);
        }
    }

    /// All slots of a part.
    pub fn extend(&mut self, slots: &[u32]) {
        self.items.extend(0..slots.len() as u32);
        self.slots.extend_from_slice(slots);
        self.heads.resize(slots.len(), Head::default());
    }
}

/// What is in an object or array, and where its next child goes.
#[derive(Default, Clone, Copy)]
pub struct Head {
    pub count: u32,
    /// The largest field id.
    pub largest: u32,
    /// Bytes of the children.
    pub data: u64,
    next: u32,
    body: u32,
    end: u32,
}

impl Head {
    #[inline]
    pub fn add(&mut self, size: u32) {
        self.count += 1;
        self.data += u64::from(size);
    }

    #[inline]
    fn header(&self, object: bool) -> Header {
        Header::new(self.count as usize, object.then_some(self.largest), self.data as usize)
    }

    /// Bytes of the header and of all children.
    #[inline]
    pub fn size(&self, object: bool) -> u64 {
        self.header(object).size() as u64 + self.data
    }
}

/// Numbers of so many bytes, little-endian.
#[inline]
fn put(out: &mut [u8], numbers: &[u32], width: usize) {
    match width {
        0 => {}
        1 => out.iter_mut().zip(numbers).for_each(|(to, &number)| *to = number as u8),
        2 => {
            for (to, &number) in out.as_chunks_mut::<2>().0.iter_mut().zip(numbers) {
                *to = (number as u16).to_le_bytes();
            }
        }
        width => {
            for (to, number) in out.chunks_exact_mut(width).zip(numbers) {
                to.copy_from_slice(&number.to_le_bytes()[..width]);
            }
        }
    }
}

/// An object in two parts: its number among the objects, and its entries that are not written yet.
pub struct Partial {
    pub object: u32,
    pub next: u32,
    pub end: u32,
}

/// A field of a partial object that is in its residual.
pub struct Entry {
    pub id: u32,
    /// How many shredded fields have smaller names.
    pub rank: u32,
    /// Its bytes: in the slot's `value`, or in `Part::healed`.
    pub start: u32,
    pub end: u32,
    pub healed: bool,
}
