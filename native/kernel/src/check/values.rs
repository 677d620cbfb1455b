//! The rows of a variant column against the rules, level by level of its tree: at each level all rows that reach it.
//!
//! Arrays are looked at by their own shape, not through `level`, for a column that cannot be read must be checked all
//! the same. Recursion is over the schema, whose depth is bounded, never over data.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, StructArray};
use arrow_schema::{DataType, Field};

use crate::check::findings::{Findings, ViolationKind};
use crate::codec::head::{head, number};
use crate::codec::known::{KnownNames, RowNames};
use crate::codec::validate::{FieldSpan, Validator};
use crate::error::{Code, Error, Result};
use crate::flavour;
use crate::layout::Layout;
use crate::layout::standard::{METADATA, TYPED_VALUE, VALUE, is_variant};
use crate::limits::MAX_TREE_DEPTH;
use crate::values::level::VariantColumn;
use crate::values::reconstruct::unshred;
use crate::values::standardize::standardize_column;

const NO_METADATA: ViolationKind = ("null_metadata", Some(2));
const NO_VALUE: ViolationKind = ("null_value", Some(2));
const UNSORTED: ViolationKind = ("unsorted_ids", Some(10));
const BAD_NAMES: &str = "metadata_names";
const NAMES_NOT_SORTED: ViolationKind = (BAD_NAMES, Some(5));
const UTF16: ViolationKind = ("utf16_order", Some(10));
const NOT_IN_METADATA: ViolationKind = ("name_not_in_metadata", Some(20));
const MISSING_ROOT: ViolationKind = ("missing_value", Some(22));
const BOTH: ViolationKind = ("value_and_typed_value", Some(25));
const NULL_ELEMENT: ViolationKind = ("null_group", Some(29));
const BOTH_ARRAY: ViolationKind = ("value_and_typed_value", Some(30));
const ARRAY_IN_VALUE: ViolationKind = ("array_in_value", Some(30));
const MISSING_ELEMENT: ViolationKind = ("missing_element", Some(31));
const OBJECT_IN_VALUE: ViolationKind = ("object_in_value", Some(32));
const EMPTY_IN_VALUE: ViolationKind = ("object_in_value", Some(33));
const NULL_GROUP: ViolationKind = ("null_group", Some(34));
const IN_RESIDUAL: ViolationKind = ("shredded_field_in_value", Some(35));
const RESIDUAL_NO_OBJECT: ViolationKind = ("residual_no_object", Some(36));
const IN_BOTH: ViolationKind = ("field_in_both", Some(37));

/// A row that the table of `values/early.rs` refuses.
const EARLY: ViolationKind = ("early_row", None);

/// A row of a level: its place in the level's arrays, and the row of the batch that it belongs to.
type Slot = (u32, u32);

/// Holds what is reused between batches of one column.
#[derive(Default)]
pub struct RowChecker {
    residual: Validator,
    entries: Vec<FieldSpan>,
    /// Each distinct metadata of the batch.
    names: Vec<KnownNames>,
    /// Its number, by row of the batch; `None` where the metadata is broken, which was reported.
    of_row: Vec<Option<u32>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Field,
    Element,
}

impl RowChecker {
    /// Checks every variant in the column; `first_row` is the number of its first row in the file.
    pub fn check(&mut self, field: &Field, array: &ArrayRef, path: &str, first_row: u64, findings: &mut Findings) {
        let slots: Vec<Slot> = (0..array.len() as u32).map(|row| (row, row)).collect();
        self.descend(field, array, path, &slots, first_row, findings);
    }

    /// Finds variants inside of structs, lists and maps.
    fn descend(
        &mut self,
        field: &Field,
        array: &ArrayRef,
        path: &str,
        slots: &[Slot],
        first_row: u64,
        findings: &mut Findings,
    ) {
        let live: Vec<Slot> = slots.iter().copied().filter(|slot| array.is_valid(slot.0 as usize)).collect();
        if live.is_empty() {
            return;
        }
        match (field.data_type(), array.data_type()) {
            (DataType::Struct(_), DataType::Struct(_)) if is_variant(field) => {
                self.column(array.as_struct(), path, &live, first_row, findings);
            }
            (DataType::Struct(children), DataType::Struct(_)) => {
                for child in children {
                    if let Some(column) = array.as_struct().column_by_name(child.name()) {
                        let path = format!("{path}.{}", child.name());
                        self.descend(child, column, &path, &live, first_row, findings);
                    }
                }
            }
            (DataType::List(element), DataType::List(_)) => {
                let list = array.as_list::<i32>();
                let inner = elements(&live, list.value_offsets());
                let path = format!("{path}.list.{}", element.name());
                self.descend(element, list.values(), &path, &inner, first_row, findings);
            }
            (DataType::Map(entries, _), DataType::Map(..)) => {
                let map = array.as_map();
                let inner = elements(&live, map.value_offsets());
                let values: ArrayRef = std::sync::Arc::new(map.entries().clone());
                let path = format!("{path}.{}", entries.name());
                self.descend(entries, &values, &path, &inner, first_row, findings);
            }
            _ => {}
        }
    }

    /// One variant column; all its slots are groups that are not null.
    fn column(&mut self, group: &StructArray, path: &str, slots: &[Slot], first_row: u64, findings: &mut Findings) {
        if Layout::of(group.fields()) == Layout::Early {
            return early_column(group, path, slots, first_row, findings);
        }
        let (mut known, rows) = (HashMap::new(), slots.len());
        self.names.clear();
        self.of_row.clear();
        self.of_row.resize(rows, None);
        let metadata = group.column_by_name(METADATA).and_then(binary);
        let inner = format!("{path}.{METADATA}");
        for (at, &(slot, row)) in slots.iter().enumerate() {
            let row = Some(first_row + row as u64);
            let Some(metadata) = &metadata else { continue };
            if metadata.is_null(slot as usize) {
                findings.add(NO_METADATA, &inner, row, || "a variant that is not null has no metadata".into());
                continue;
            }
            let bytes = metadata.value(slot as usize);
            if let Some(found) = known.get(bytes) {
                self.of_row[at] = *found;
                continue;
            }
            let mut dictionary = KnownNames::default();
            let number = match dictionary.load(bytes) {
                Ok(_) => {
                    if dictionary.misled() {
                        findings.add(NAMES_NOT_SORTED, &inner, row, || {
                            "it says that its names are sorted, which they are not".into()
                        });
                    }
                    self.names.push(dictionary);
                    Some(self.names.len() as u32 - 1)
                }
                Err(e) => {
                    report(&e, &inner, row, findings);
                    None
                }
            };
            known.insert(bytes, number);
            self.of_row[at] = number;
        }
        // Below, a slot's row is its number among the variants, which finds its metadata and its row in the file.
        let live: Vec<Slot> = slots.iter().enumerate().map(|(at, slot)| (slot.0, at as u32)).collect();
        let rows: Vec<u64> = slots.iter().map(|slot| first_row + slot.1 as u64).collect();
        self.level(group, path, Place::Root, &live, &rows, 0, findings);
    }

    #[allow(clippy::too_many_arguments)]
    fn level(
        &mut self,
        group: &StructArray,
        path: &str,
        place: Place,
        slots: &[Slot],
        rows: &[u64],
        depth: usize,
        findings: &mut Findings,
    ) {
        // Deeper ones were named when the schema was checked.
        if slots.is_empty() || depth > MAX_TREE_DEPTH {
            return;
        }
        let value = group.column_by_name(VALUE).and_then(binary);
        let typed = group.column_by_name(TYPED_VALUE);
        let value_path = format!("{path}.{VALUE}");
        let typed_path = format!("{path}.{TYPED_VALUE}");
        let (is_object, is_array) = typed.map_or((false, false), |typed| {
            (matches!(typed.data_type(), DataType::Struct(_)), matches!(typed.data_type(), DataType::List(_)))
        });
        let mut below: Vec<Slot> = Vec::new();
        for &(slot, at) in slots {
            let row = rows.get(at as usize).copied();
            let i = slot as usize;
            if place != Place::Root && group.is_null(i) {
                let kind = if place == Place::Field { NULL_GROUP } else { NULL_ELEMENT };
                findings.add(kind, path, row, || "a group that must not be null is null".into());
                continue;
            }
            let bytes = value.as_ref().filter(|v| v.is_valid(i)).map(|v| v.value(i));
            let is_typed = typed.is_some_and(|typed| typed.is_valid(i));
            if is_typed && (is_object || is_array) {
                below.push((slot, at));
            }
            match bytes {
                None if is_typed || place == Place::Field => {}
                None if place == Place::Element => {
                    let found = || "an element with neither value nor typed_value".into();
                    findings.add(MISSING_ELEMENT, path, row, found);
                }
                None if typed.is_none() => {
                    findings.add(NO_VALUE, &value_path, row, || "a variant that is not null has no value".into());
                }
                None => {
                    let found = || "a variant with neither value nor typed_value".into();
                    findings.add(MISSING_ROOT, path, row, found);
                }
                Some(bytes) => {
                    if let Some(kind) = conflict(bytes, is_typed, is_object, is_array) {
                        let found = || format!("value has {}", kind_of(bytes));
                        findings.add(kind, &value_path, row, found);
                    }
                    self.value(bytes, at, depth, &value_path, row, findings);
                }
            }
        }
        if is_object && let Some(object) = typed.and_then(|typed| typed.as_struct_opt()) {
            self.object(object, value.as_ref(), path, &below, rows, depth, findings);
        } else if is_array
            && let Some(list) = typed.and_then(|typed| typed.as_list_opt::<i32>())
            && let Some(element) = list.values().as_struct_opt()
        {
            let inner = elements(&below, list.value_offsets());
            let path = format!("{typed_path}.list.element");
            self.level(element, &path, Place::Element, &inner, rows, depth + 1, findings);
        }
    }

    /// A shredded object: its residual beside its fields, the names of its fields, and the fields.
    #[allow(clippy::too_many_arguments)]
    fn object(
        &mut self,
        object: &StructArray,
        value: Option<&BinaryArray>,
        path: &str,
        slots: &[Slot],
        rows: &[u64],
        depth: usize,
        findings: &mut Findings,
    ) {
        let fields: HashMap<&str, &ArrayRef> =
            object.fields().iter().map(|f| f.name().as_str()).zip(object.columns()).collect();
        for &(slot, at) in slots {
            let Some(bytes) = value.filter(|v| v.is_valid(slot as usize)).map(|v| v.value(slot as usize)) else {
                continue;
            };
            let Some(names) = self
                .of_row
                .get(at as usize)
                .copied()
                .flatten()
                .and_then(|n| self.names.get(n as usize))
                .map(KnownNames::current)
            else {
                continue;
            };
            self.entries.clear();
            if !is_object(bytes) || self.residual.at_depth(depth).open_object(names, bytes, &mut self.entries).is_err()
            {
                continue;
            }
            for entry in &self.entries {
                let Ok(name) = std::str::from_utf8(names.name(entry.id)) else { continue };
                let Some(field) = fields.get(name) else { continue };
                let kind = if present(field, slot as usize) { IN_BOTH } else { IN_RESIDUAL };
                let row = rows.get(at as usize).copied();
                let found = || format!("the residual has the field {name:?}, which is also shredded");
                findings.add(kind, &format!("{path}.{VALUE}"), row, found);
            }
        }
        for (field, column) in object.fields().iter().zip(object.columns()) {
            let inner = format!("{path}.{TYPED_VALUE}.{}", field.name());
            let Some(group) = column.as_struct_opt() else { continue };
            self.names_of(field.name(), column, &inner, slots, rows, findings);
            self.level(group, &inner, Place::Field, slots, rows, depth + 1, findings);
        }
    }

    /// Every field that a row has is named by the row's metadata.
    fn names_of(
        &self,
        name: &str,
        column: &ArrayRef,
        path: &str,
        slots: &[Slot],
        rows: &[u64],
        findings: &mut Findings,
    ) {
        // By distinct metadata: most rows share one.
        let mut known: Vec<Option<bool>> = vec![None; self.names.len()];
        for &(slot, at) in slots {
            let Some(number) = self.of_row.get(at as usize).copied().flatten() else { continue };
            let Some(slot_of) = known.get_mut(number as usize) else { continue };
            let has = *slot_of.get_or_insert_with(|| {
                self.names.get(number as usize).is_none_or(|names| holds(names.current(), name.as_bytes()))
            });
            if !has && present(column, slot as usize) {
                let row = rows.get(at as usize).copied();
                findings.add(NOT_IN_METADATA, path, row, || format!("the metadata lacks {name:?}"));
            }
        }
    }

    /// The bytes of one value: rules 6 to 16 and 20; ids out of order are told apart.
    fn value(&mut self, bytes: &[u8], at: u32, depth: usize, path: &str, row: Option<u64>, findings: &mut Findings) {
        let names = self.of_row.get(at as usize).copied().flatten().and_then(|n| self.names.get(n as usize));
        let Some(names) = names.map(KnownNames::current) else { return };
        match self.residual.at_depth(depth).validate(names, bytes) {
            Err(e) => report(&e, path, row, findings),
            Ok(()) => {
                if let Some(&object) = self.residual.unsorted().first() {
                    let utf16 = is_utf16_order(names, bytes, object as usize);
                    let order = if utf16 { "by UTF-16, not by UTF-8" } else { "by nothing" };
                    let kind = if utf16 { UTF16 } else { UNSORTED };
                    findings.add(kind, path, row, || {
                        format!("the object at byte {object} of the value has its fields ordered {order}")
                    });
                }
            }
        }
    }
}

/// The kind of a violation of the encoding; the words follow the rules.
fn report(error: &Error, path: &str, row: Option<u64>, findings: &mut Findings) {
    let word = match error.rule {
        Some(3) => "metadata_version",
        Some(4) => "metadata_offsets",
        Some(5) => BAD_NAMES,
        Some(6) => "string_not_utf8",
        Some(7) => "unknown_type",
        Some(8) => "decimal",
        Some(12) => "name_twice",
        Some(15) => "wrong_length",
        Some(18) => "too_deep",
        Some(20) => "name_not_in_metadata",
        _ => "malformed",
    };
    findings.add((word, error.rule), path, row, || match error.offset {
        Some(offset) => format!("{} (byte {offset})", error.message),
        None => error.message.clone(),
    });
}

/// Whether the metadata names this.
fn holds(names: RowNames<'_>, name: &[u8]) -> bool {
    let count = names.len() as u32;
    if !names.is_sorted() {
        return (0..count).any(|id| names.name(id) == name);
    }
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if names.name(middle) < name { low = middle + 1 } else { high = middle }
    }
    low < count && names.name(low) == name
}

fn is_object(value: &[u8]) -> bool {
    value.first().is_some_and(|b| b & 3 == 2)
}

/// What may not stand in `value` where it stands.
fn conflict(value: &[u8], is_typed: bool, shreds_objects: bool, shreds_arrays: bool) -> Option<ViolationKind> {
    let basic = value.first().map(|b| b & 3);
    if is_typed {
        return match (shreds_objects, shreds_arrays) {
            (true, _) => (basic != Some(2)).then_some(RESIDUAL_NO_OBJECT),
            (_, true) => Some(BOTH_ARRAY),
            _ => Some(BOTH),
        };
    }
    match basic {
        Some(2) if shreds_objects => {
            let empty = head(value, 0).is_ok_and(|head| head.count == 0);
            Some(if empty { EMPTY_IN_VALUE } else { OBJECT_IN_VALUE })
        }
        Some(3) if shreds_arrays => Some(ARRAY_IN_VALUE),
        _ => None,
    }
}

fn kind_of(value: &[u8]) -> &'static str {
    match value.first().map(|b| b & 3) {
        Some(2) => "an object",
        Some(3) => "an array",
        Some(_) => "a primitive",
        None => "nothing",
    }
}

/// Whether a field group holds anything in this row.
fn present(field: &ArrayRef, slot: usize) -> bool {
    let Some(group) = field.as_struct_opt() else { return false };
    let valid = |name: &str| group.column_by_name(name).is_some_and(|column| column.is_valid(slot));
    group.is_valid(slot) && (valid(VALUE) || valid(TYPED_VALUE))
}

/// The elements of the lists in these slots; a list's offsets were checked when it was decoded.
fn elements(slots: &[Slot], offsets: &[i32]) -> Vec<Slot> {
    let range = |slot: u32| (offsets[slot as usize] as u32, offsets[slot as usize + 1] as u32);
    slots.iter().flat_map(|&(slot, row)| (range(slot).0..range(slot).1).map(move |element| (element, row))).collect()
}

fn binary(column: &ArrayRef) -> Option<BinaryArray> {
    flavour::binary(column).ok().flatten()
}

/// Whether the names of the object at `at` rise by UTF-16 units, which is how Java compares texts.
fn is_utf16_order(dictionary: RowNames<'_>, value: &[u8], at: usize) -> bool {
    let Ok(head) = head(value, at) else { return false };
    let name = |index: usize| {
        let id = number(value, head.ids + index * head.id_width, head.id_width).ok()?;
        std::str::from_utf8(dictionary.name(id)).ok()
    };
    (1..head.count).all(|index| match (name(index - 1), name(index)) {
        (Some(a), Some(b)) => a.encode_utf16().lt(b.encode_utf16()),
        _ => false,
    })
}

/// A column of the early layout: a row is sound where it can be put together of values whose ids are in order.
fn early_column(group: &StructArray, path: &str, slots: &[Slot], first_row: u64, findings: &mut Findings) {
    let unsorted = |group: &StructArray| -> Result<Vec<(usize, String)>> {
        unshred(group, path)?;
        Ok(standardize_column(&VariantColumn::open(group, path)?)?.unsorted)
    };
    // Halves that are sound are passed over, so that each bad row is found in a few steps.
    let mut todo = vec![slots];
    while let Some(part) = todo.pop() {
        let (Some(&(first, row)), Some(&(last, _))) = (part.first(), part.last()) else { continue };
        let found = unsorted(&group.slice(first as usize, (last - first) as usize + 1));
        if found.as_ref().is_ok_and(Vec::is_empty) {
            continue;
        }
        if part.len() > 1 {
            let (before, behind) = part.split_at(part.len() / 2);
            todo.extend([behind, before]);
            continue;
        }
        let row = Some(first_row + row as u64);
        for (_, place) in found.iter().flatten() {
            findings.add(UNSORTED, place, row, || "an object has its fields out of order".into());
        }
        if let Err(e) = found {
            let place = e.path.as_deref().unwrap_or(path);
            match e.code {
                Code::MalformedVariant => report(&e, place, row, findings),
                _ => findings.add(EARLY, place, row, || e.message.clone()),
            }
        }
    }
}
