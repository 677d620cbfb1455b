//! The first pass: what each slot of a block holds, and how many bytes that takes, from the leaves up. Whatever is
//! wrong with a value is found here: its shape, its residuals, the names of its fields.

use arrow::array::Array;

use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::values::level::{FieldColumn, Level, ListColumn, ObjectColumn, is_null};
use crate::values::reconstruct::block::{Block, names_of};
use crate::values::reconstruct::leaves;
use crate::values::reconstruct::part::{Entry, Leaves, Outline, Part, Partial, any_in};
use crate::values::shape::{check_shape, conflict, in_both, is_object};

/// Elements of one level that a block of several values may have.
const MAX_ELEMENTS: usize = 1 << 16;

impl Block {
    /// Measures the items of a part, whose slots are set. `picked`: each of them is known to hold something.
    pub fn measure(&mut self, level: &Level, part: &mut Part, picked: bool) -> Result<()> {
        part.clear();
        sort(level, &self.outlines[level.number], part, picked)?;
        if !matches!(part.leaves, Leaves::All) {
            // One byte: the Variant null, where nothing is and something has to be (rule 26).
            part.sizes.resize(part.slots.len(), 1);
        }
        if let Some(leaf) = &level.leaf {
            leaves::measure(leaf, part);
        }
        self.measure_residuals(level, part)?;
        if let Some(object) = &level.object {
            self.measure_objects(level, object, part)?;
        }
        if let Some(array) = &level.array {
            self.measure_arrays(array, part)?;
        }
        Ok(())
    }

    fn measure_residuals(&mut self, level: &Level, part: &mut Part) -> Result<()> {
        let Some(values) = &level.value else { return Ok(()) };
        for at in 0..part.residuals.len() {
            let item = part.residuals[at];
            let value = values.value(part.slots[item as usize] as usize);
            check_shape(level, value)?;
            let names = self.names.of(names_of(self.one, part, item));
            let residual = self.residual.at_depth(level.depth);
            residual.validate(names, value).map_err(|e| e.path(level.value_path()))?;
            part.sizes[item as usize] = value.len() as u32;
            if !residual.unsorted().is_empty() {
                part.healed_residuals.push((item, part.healed.len() as u32));
                residual.copy(names, value, &mut part.healed).map_err(|e| e.path(level.value_path()))?;
            }
        }
        Ok(())
    }

    fn measure_objects(&mut self, level: &Level, object: &ObjectColumn, part: &mut Part) -> Result<()> {
        if part.objects.items.is_empty() {
            return Ok(());
        }
        if self.outlines[level.number].value {
            for at in 0..part.objects.items.len() {
                self.open_residual(level, object, part, at)?;
            }
        }
        for field in &object.fields {
            let number = field.level.number;
            let mut child = std::mem::take(&mut self.parts[number]);
            self.outlines[number].pick(&mut part.objects, &mut child);
            let named = self.name_children(field, part, &mut child);
            self.parts[number] = child;
            named?;
        }
        for field in &object.fields {
            let number = field.level.number;
            if self.parts[number].slots.is_empty() {
                continue;
            }
            let mut child = std::mem::take(&mut self.parts[number]);
            let measured = self.measure(&field.level, &mut child, true);
            child.add_to(&mut part.objects.heads);
            self.parts[number] = child;
            measured?;
        }
        set_sizes(part, true)
    }

    /// What the residual of a partial object adds to it.
    fn open_residual(&mut self, level: &Level, object: &ObjectColumn, part: &mut Part, at: usize) -> Result<()> {
        let slot = part.objects.slots[at] as usize;
        let Some(value) = level.value.as_ref().filter(|v| v.is_valid(slot)).map(|v| v.value(slot)) else {
            return Ok(());
        };
        if !is_object(value) {
            let message = format!("{} has shredded fields and a value that is not an object", level.path);
            return Err(Error::new(Code::MalformedShredding, message).rule(36).path(level.value_path()));
        }
        let fail = |e: Error| e.path(level.value_path());
        let names = self.names.of(names_of(self.one, part, part.objects.items[at]));
        let residual = self.residual.at_depth(level.depth);
        self.spans.clear();
        residual.open_object(names, value, &mut self.spans).map_err(fail)?;
        let next = part.entries.len() as u32;
        let head = &mut part.objects.heads[at];
        for span in &self.spans {
            let name = names.name(span.id);
            let rank = match object.fields.binary_search_by(|field| field.name.as_bytes().cmp(name)) {
                Err(rank) => rank,
                Ok(rank) => {
                    let field = &object.fields[rank];
                    let present = self.outlines[field.level.number].presence.at(slot);
                    // The early layout may hold a shredded field in `untyped_value`, where `object` lacks it.
                    if present || level.layout != Layout::Early {
                        return Err(in_both(level, &field.name, present));
                    }
                    rank
                }
            };
            let (mut start, mut end) = (span.start, span.end);
            if span.unsorted {
                let bytes = value.get(start as usize..end as usize).unwrap_or(&[]);
                start = part.healed.len() as u32;
                residual.copy(names, bytes, &mut part.healed).map_err(fail)?;
                end = part.healed.len() as u32;
            }
            head.add(end - start);
            head.largest = head.largest.max(span.id);
            part.entries.push(Entry { id: span.id, rank: rank as u32, start, end, healed: span.unsorted });
        }
        part.partial.push(Partial { object: at as u32, next, end: part.entries.len() as u32 });
        Ok(())
    }

    /// The names of the slots of a field, under which metadata they are; every one has the field's name.
    fn name_children(&self, field: &FieldColumn, part: &mut Part, child: &mut Part) -> Result<()> {
        let number = field.level.number;
        let missing = || {
            let message = format!("the metadata lacks the shredded field {:?}", field.name);
            Error::new(Code::MalformedShredding, message).rule(20).path(&field.level.path)
        };
        child.names.clear();
        child.id = self.id_of(number);
        let level = &field.level;
        let outline = &self.outlines[number];
        let alone = child.id.is_some() && level.object.is_none() && level.array.is_none() && !outline.value;
        if self.one.is_none() && !alone {
            let (all, owners) = (child.all, &child.owners);
            let owner = |place: usize| if all { place } else { owners[place] as usize };
            let names = |place| part.names[part.objects.items[owner(place)] as usize];
            child.names.extend((0..child.slots.len()).map(names));
        }
        if child.id.is_some() && !self.wide {
            return Ok(());
        }
        for place in 0..child.slots.len() {
            let names = |names: u32| self.names.of(names).id_of_level(number);
            let id = child.id.or_else(|| names(names_of(self.one, child, place as u32))).ok_or_else(missing)?;
            let head = &mut part.objects.heads[child.owner(place)];
            head.largest = head.largest.max(id);
        }
        Ok(())
    }

    fn measure_arrays(&mut self, array: &ListColumn, part: &mut Part) -> Result<()> {
        if part.arrays.items.is_empty() {
            return Ok(());
        }
        let mut child = std::mem::take(&mut self.parts[array.element.number]);
        let measured = self.measure_elements(array, part, &mut child);
        self.parts[array.element.number] = child;
        measured?;
        set_sizes(part, false)
    }

    fn measure_elements(&mut self, array: &ListColumn, part: &mut Part, child: &mut Part) -> Result<()> {
        child.slots.clear();
        child.owners.clear();
        child.names.clear();
        child.all = false;
        for (at, (&item, &slot)) in part.arrays.items.iter().zip(&part.arrays.slots).enumerate() {
            let (first, end) = array.range(slot as usize);
            if self.values > 1 && child.slots.len() + (end - first) > MAX_ELEMENTS {
                return Err(Error::new(Code::TooLarge, "the arrays of several values are too large at once"));
            }
            child.slots.extend(first as u32..end as u32);
            child.owners.resize(child.slots.len(), at as u32);
            if self.one.is_none() {
                child.names.resize(child.slots.len(), part.names[item as usize]);
            }
        }
        self.measure(&array.element, child, false)?;
        child.add_to(&mut part.arrays.heads);
        Ok(())
    }
}

/// Tells apart what the slots hold.
fn sort(level: &Level, outline: &Outline, part: &mut Part, picked: bool) -> Result<()> {
    let values = level.value.as_ref().filter(|_| outline.value);
    let value = values.is_some_and(|values| any_in(values.nulls(), &part.slots));
    if picked || outline.presence.is_everywhere() {
        // Whatever is there is of one kind.
        let all = 0..part.slots.len() as u32;
        let one = match (outline.leaf, outline.object, outline.array, value) {
            (true, false, false, false) => {
                part.leaves = Leaves::All;
                true
            }
            (false, true, false, false) => {
                part.objects.extend(&part.slots);
                true
            }
            (false, false, true, false) => {
                part.arrays.extend(&part.slots);
                true
            }
            (false, false, false, true) => {
                part.residuals.extend(all);
                true
            }
            _ => false,
        };
        if one {
            return Ok(());
        }
    }
    let mut leaves = Vec::new();
    let leaf = level.leaf.as_ref().filter(|_| outline.leaf).map(|leaf| leaf.array.nulls());
    let object = level.object.as_ref().filter(|_| outline.object);
    let array = level.array.as_ref().filter(|_| outline.array);
    for (item, &slot) in part.slots.iter().enumerate() {
        let (item, at) = (item as u32, slot as usize);
        if is_null(&level.nulls, at) {
            continue;
        }
        let value = value && level.has_value(at);
        if leaf.is_some_and(|nulls| nulls.is_none_or(|n| n.is_valid(at))) {
            if value {
                return Err(conflict(level, "a typed value that is not an object"));
            }
            leaves.push(item);
        } else if object.is_some_and(|object| !is_null(&object.nulls, at)) {
            part.objects.push(item, slot);
        } else if array.is_some_and(|array| !is_null(&array.nulls, at)) {
            if value {
                return Err(conflict(level, "an array").rule(30));
            }
            part.arrays.push(item, slot);
        } else if value {
            part.residuals.push(item);
        }
    }
    part.leaves = Leaves::Some(leaves);
    Ok(())
}

fn set_sizes(part: &mut Part, object: bool) -> Result<()> {
    let containers = if object { &mut part.objects } else { &mut part.arrays };
    for (head, &item) in containers.heads.iter().zip(&containers.items) {
        let too_large = |_| Error::new(Code::TooLarge, "one value exceeds 4 GiB");
        part.sizes[item as usize] = u32::try_from(head.size(object)).map_err(too_large)?;
    }
    Ok(())
}
