//! The second pass: the bytes of a block's values, level by level. Each item's place is known from the sizes; what is
//! written of a container beside its children is its header.

use arrow::array::BinaryArray;

use crate::values::level::{Level, ListColumn, ObjectColumn};
use crate::values::reconstruct::block::Block;
use crate::values::reconstruct::leaves;
use crate::values::reconstruct::part::{Containers, Entry, Part};

impl Block {
    /// Writes the items of a part, whose `starts` are set, into `out`, which is zero there.
    pub fn write(&mut self, level: &Level, part: &mut Part, out: &mut [u8]) {
        if let Some(leaf) = &level.leaf {
            leaves::write(leaf, part, out);
        }
        if let Some(values) = &level.value {
            write_residuals(values, part, out);
        }
        if let Some(object) = &level.object {
            self.write_objects(level, object, part, out);
        }
        if let Some(array) = &level.array {
            self.write_arrays(array, part, out);
        }
    }

    fn write_objects(&mut self, level: &Level, object: &ObjectColumn, part: &mut Part, out: &mut [u8]) {
        if part.objects.items.is_empty() {
            return;
        }
        part.objects.begin(true, &part.starts);
        for (rank, field) in object.fields.iter().enumerate() {
            write_entries(level, part, rank as u32, out);
            let number = field.level.number;
            let mut child = std::mem::take(&mut self.parts[number]);
            if !child.slots.is_empty() {
                self.place(number, &mut part.objects, &mut child);
                self.write(&field.level, &mut child, out);
            }
            self.parts[number] = child;
        }
        write_entries(level, part, object.fields.len() as u32, out);
        part.objects.finish(true, out);
    }

    /// Finds places for the values of a field.
    fn place(&self, number: usize, objects: &mut Containers, child: &mut Part) {
        let id_in = |names: u32| self.names.of(names).id_of_level(number);
        let Part { all, owners, sizes, starts, names, id, .. } = child;
        let sizes = sizes.iter().enumerate();
        starts.clear();
        match (*id, *all) {
            (Some(id), true) => starts.extend(sizes.map(|(place, &size)| objects.child(place, id, size))),
            (Some(id), false) => {
                starts.extend(sizes.map(|(place, &size)| objects.child(owners[place] as usize, id, size)));
            }
            (None, all) => starts.extend(sizes.map(|(place, &size)| {
                let id = names.get(place).copied().and_then(id_in).unwrap_or(0);
                objects.child(if all { place } else { owners[place] as usize }, id, size)
            })),
        }
    }

    fn write_arrays(&mut self, array: &ListColumn, part: &mut Part, out: &mut [u8]) {
        if part.arrays.items.is_empty() {
            return;
        }
        part.arrays.begin(false, &part.starts);
        let mut child = std::mem::take(&mut self.parts[array.element.number]);
        let Part { owners, sizes, starts, .. } = &mut child;
        starts.clear();
        starts.extend(owners.iter().zip(sizes).map(|(&owner, &mut size)| part.arrays.child(owner as usize, 0, size)));
        self.write(&array.element, &mut child, out);
        self.parts[array.element.number] = child;
        part.arrays.finish(false, out);
    }
}

fn write_residuals(values: &BinaryArray, part: &Part, out: &mut [u8]) {
    let mut healed = part.healed_residuals.iter().peekable();
    for &item in &part.residuals {
        let at = item as usize;
        let (start, size) = (part.starts[at] as usize, part.sizes[at] as usize);
        let bytes = match healed.next_if(|(healed, _)| *healed == item) {
            Some(&(_, from)) => &part.healed[from as usize..from as usize + size],
            None => values.value(part.slots[at] as usize),
        };
        out[start..start + size].copy_from_slice(bytes);
    }
}

/// Writes the fields in residuals whose names come before that of the shredded field of this rank.
fn write_entries(level: &Level, part: &mut Part, rank: u32, out: &mut [u8]) {
    let Some(values) = level.value.as_ref().filter(|_| !part.partial.is_empty()) else { return };
    for partial in &mut part.partial {
        while partial.next < partial.end
            && let Some(&Entry { id, start, end, healed, .. }) =
                part.entries.get(partial.next as usize).filter(|entry| entry.rank <= rank)
        {
            let object = partial.object as usize;
            let to = part.objects.child(object, id, end - start) as usize;
            let all = if healed { &part.healed } else { values.value(part.objects.slots[object] as usize) };
            let bytes = &all[start as usize..end as usize];
            out[to..to + bytes.len()].copy_from_slice(bytes);
            partial.next += 1;
        }
    }
}
