//! Column to column: a variant column of one layout as one of the other, by the tree that it has, or a standard one as
//! it stands. Typed columns stay what they are, and of the untyped values the names find another place: one metadata a
//! row in the standard layout, one in each `untyped_value` in the early one. Only rows that the standard layout cannot
//! hold as they stand (an object in `untyped_value` where objects are shredded, a shredded field in it, a level of
//! several shapes) become whole Variants on the way; they are counted.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, ListArray, StructArray, UInt32Array, make_array, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field as ArrowField, FieldRef};
use arrow_select::interleave::interleave;
use arrow_select::take::take;

use crate::convert::shred::shred_column;
use crate::convert::strict::{clear_beyond_precision, strict_rows};
use crate::error::{Error, Result};
use crate::layout::early::{malformed, tree_of as early_tree};
use crate::layout::standard::{is_variant, mark, with_views};
use crate::layout::{Layout, standard};
use crate::names::Names;
use crate::shred::column::Bytes;
use crate::tree::Tree;
use crate::values::level::{Level, VariantColumn, is_null};
use crate::values::nested::{holds_variant, unshred_nested, unshredded_field};
use crate::values::reconstruct::unshred;
use crate::values::shape::check_shape;
use crate::values::standardize::{Rewriter, compose, standardize_column};

/// The field, its values and which rows became whole Variants. Variants inside of structs move too; those inside of
/// lists and maps, which no writer of mica shreds, are unshredded.
pub fn move_nested(
    field: &FieldRef,
    array: &ArrayRef,
    layout: Layout,
    path: &str,
) -> Result<(FieldRef, ArrayRef, Vec<bool>)> {
    let mut rebuilt = vec![false; array.len()];
    let Some(group) = array.as_struct_opt().filter(|_| holds_variant(field)) else {
        return Ok((unshredded_field(field), unshred_nested(field, array, path)?, rebuilt));
    };
    if is_variant(field) {
        let (moved, rebuilt) = move_column(group, layout, path)?;
        let made = Arc::new(mark(field.as_ref().clone().with_data_type(moved.data_type().clone())));
        return Ok((made, Arc::new(moved), rebuilt));
    }
    let DataType::Struct(children) = field.data_type() else { return Err(malformed(path, "no struct")) };
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for child in children {
        let at = format!("{path}.{}", child.name());
        let column = group.column_by_name(child.name()).ok_or_else(|| malformed(&at, format!("{at} was not read")))?;
        let (made, moved, inside) = move_nested(child, column, layout, &at)?;
        rebuilt.iter_mut().zip(inside).for_each(|(row, inside)| *row |= inside);
        fields.push(made);
        columns.push(moved);
    }
    let made = StructArray::try_new_with_length(fields.into(), columns, group.nulls().cloned(), group.len())?;
    let field = ArrowField::clone(field).with_data_type(made.data_type().clone());
    Ok((Arc::new(field), Arc::new(made), rebuilt))
}

fn move_column(group: &StructArray, to: Layout, path: &str) -> Result<(StructArray, Vec<bool>)> {
    let from = Layout::of(group.fields());
    let tree = match from {
        Layout::Standard => standard::tree_of(group.data_type()).map_err(|e| e.path(path))?,
        Layout::Early => early_tree(group.fields(), path)?,
    };
    let len = group.len();
    if tree.is_untyped() {
        return Ok((unshred(group, path)?, vec![false; len]));
    }
    let column = VariantColumn::open(group, path)?;
    match (from, to) {
        (Layout::Early, Layout::Standard) => {
            let made = standardize_column(&column)?;
            to_standard(group, &made.column, made.strict, &tree, path)
        }
        (Layout::Standard, Layout::Standard) => to_standard(group, &column, strict_rows(&column), &tree, path),
        (Layout::Standard, Layout::Early) => {
            let mut exact = vec![true; len];
            clear_beyond_precision(&column.root, None, &mut exact);
            if exact.contains(&false) {
                return Ok((whole(group, &tree, to, path)?, vec![true; len]));
            }
            let root = with_own_metadata(&column)?;
            let arrays = arrays(&root, &tree, to, len)?;
            let fields = to.column_fields(&tree);
            let moved = StructArray::try_new_with_length(fields, arrays, column.nulls.clone(), len)?;
            Ok((moved, vec![false; len]))
        }
        (Layout::Early, Layout::Early) => Ok((whole(group, &tree, to, path)?, vec![true; len])),
    }
}

/// Through whole Variants.
fn whole(group: &StructArray, tree: &Tree, to: Layout, path: &str) -> Result<StructArray> {
    let variants = unshred(group, path)?;
    shred_column(&variants, variants.nulls().cloned(), tree, to, true, path)
}

/// The column of levels that are the standard layout's, with whole Variants on the way where a row is not `strict`.
/// Metadata are views, since rows mostly share one.
fn to_standard(
    group: &StructArray,
    column: &VariantColumn,
    mut strict: Vec<bool>,
    tree: &Tree,
    path: &str,
) -> Result<(StructArray, Vec<bool>)> {
    let len = column.len;
    clear_beyond_precision(&column.root, None, &mut strict);
    let rebuilt: Vec<bool> = strict.into_iter().map(|strict| !strict).collect();
    let slow = rebuilt.iter().filter(|slow| **slow).count();
    if slow == len && len > 0 {
        return Ok((whole(group, tree, Layout::Standard, path)?, rebuilt));
    }
    let absent = || malformed(path, format!("{path} has no metadata"));
    let (views, buffers, _) = column.metadata.clone().ok_or_else(absent)?.into_parts();
    let mut columns: Vec<ArrayRef> = vec![Arc::new(BinaryViewArray::try_new(views, buffers, None)?)];
    columns.extend(arrays(&column.root, tree, Layout::Standard, len)?);
    let fields = with_views(&Layout::Standard.column_fields(tree));
    let fast = StructArray::try_new_with_length(fields, columns, column.nulls.clone(), len)?;
    if slow == 0 {
        return Ok((fast, rebuilt));
    }
    let rows: UInt32Array = (0..len as u32).filter(|&row| rebuilt[row as usize]).collect();
    let some = take(group, &rows, None)?;
    let built = whole(some.as_struct(), tree, Layout::Standard, path).map_err(|e| outer(e, &rows))?;
    let mut next = 0;
    let places: Vec<(usize, usize)> = rebuilt
        .iter()
        .enumerate()
        .map(|(row, slow)| {
            next += *slow as usize;
            if *slow { (1, next - 1) } else { (0, row) }
        })
        .collect();
    let joined = interleave(&[&fast as &dyn Array, &built], &places)?;
    Ok((joined.as_struct().clone(), rebuilt))
}

fn outer(mut error: Error, rows: &UInt32Array) -> Error {
    error.row = error.row.and_then(|row| rows.values().get(row as usize)).map(|&row| row.into());
    error
}

/// The columns of a level in a layout: the residual, then the typed place.
fn arrays(level: &Level, tree: &Tree, layout: Layout, len: usize) -> Result<Vec<ArrayRef>> {
    let masked = |array: &dyn Array| -> Result<ArrayRef> {
        let data = array.to_data();
        if level.nulls.is_none() {
            return Ok(make_array(data)); // else its values are validated once more
        }
        let nulls = NullBuffer::union(array.nulls(), level.nulls.as_ref());
        Ok(make_array(data.into_builder().nulls(nulls).build()?))
    };
    let residual = match &level.value {
        Some(value) => masked(value)?,
        None => new_null_array(&DataType::Binary, len),
    };
    let group = |level: &Level, tree: &Tree, len: usize| -> Result<ArrayRef> {
        let columns = arrays(level, tree, layout, len)?;
        Ok(Arc::new(StructArray::try_new_with_length(layout.group_fields(tree), columns, None, len)?))
    };
    let absent = || malformed(&level.path, format!("{} lacks a field of its schema", level.path));
    let typed: Option<ArrayRef> = match (&tree.object, &tree.array, tree.leaf) {
        (Some(fields), _, _) => {
            let object = level.object.as_ref().ok_or_else(absent)?;
            let mut columns = Vec::with_capacity(fields.len());
            for field in fields {
                let below = object.find(&field.name).ok_or_else(absent)?;
                columns.push(group(&below.level, &field.tree, len)?);
            }
            let Some(DataType::Struct(types)) = layout.typed_type(tree) else { return Err(absent()) };
            let nulls = NullBuffer::union(object.nulls.as_ref(), level.nulls.as_ref());
            Some(Arc::new(StructArray::try_new_with_length(types, columns, nulls, len)?))
        }
        (_, Some(element), _) => {
            let list = level.array.as_ref().ok_or_else(absent)?;
            let slots = list.offsets.last() as usize;
            let values = group(&list.element, element, slots)?;
            let nulls = NullBuffer::union(list.nulls.as_ref(), level.nulls.as_ref());
            let field = layout.element_field(element);
            Some(Arc::new(ListArray::try_new(field, list.offsets.clone(), values, nulls)?))
        }
        (_, _, Some(_)) => Some(masked(&level.leaf.as_ref().ok_or_else(absent)?.array)?),
        _ => None,
    };
    Ok(std::iter::once(residual).chain(typed).collect())
}

/// A standard column's levels with every value under a metadata of its own.
fn with_own_metadata(column: &VariantColumn) -> Result<Level> {
    let mut root = column.root.clone();
    let mut owner = Owner { column, rewriter: Rewriter::new(Names::new(), Vec::new()), rewritten: Vec::new() };
    owner.visit(&mut root, None)?;
    Ok(root)
}

struct Owner<'a> {
    column: &'a VariantColumn,
    rewriter: Rewriter,
    rewritten: Vec<u8>,
}

impl Owner<'_> {
    fn visit(&mut self, level: &mut Level, starts: Option<&Vec<i32>>) -> Result<()> {
        if let Some(value) = level.value.clone().filter(|v| v.null_count() < v.len()) {
            let mut out = Bytes::default();
            for row in 0..self.column.len {
                let (first, end) = starts.map_or((row, row + 1), |s| (s[row] as usize, s[row + 1] as usize));
                for at in (first..end).filter(|&at| value.is_valid(at) && !is_null(&level.nulls, at)) {
                    if self.column.is_null(row) {
                        continue;
                    }
                    self.put(level, at, row, value.value(at), &mut out).map_err(|e| e.row(row as u64))?;
                }
            }
            level.value = Some(out.finish_binary(value.len())?.as_binary::<i32>().clone());
        } else {
            level.value = None;
        }
        for field in level.object.iter_mut().flat_map(|o| &mut o.fields) {
            self.visit(&mut field.level, starts)?;
        }
        if let Some(array) = &mut level.array {
            let below = compose(starts, array);
            self.visit(&mut array.element, Some(&below))?;
        }
        Ok(())
    }

    fn put(&mut self, level: &Level, at: usize, row: usize, value: &[u8], out: &mut Bytes) -> Result<()> {
        let fail = |e: Error| e.path(level.value_path());
        let metadata = match &self.column.metadata {
            Some(metadata) if metadata.is_valid(row) => metadata.value(row),
            _ => return Err(malformed(&level.path, "a variant that is not null has no metadata").rule(2)),
        };
        let (rewriter, rewritten) = (&mut self.rewriter, &mut self.rewritten);
        rewritten.clear();
        rewriter.put(metadata, value, rewritten).map_err(fail)?;
        if !level.is_typed(at) {
            check_shape(level, value)?;
        } else if value.first().is_none_or(|header| header & 3 != 2) || !rewriter.shreds_none(level) {
            let message = format!("{} has a field that is also shredded, or is not an object", level.value_path());
            return Err(malformed(&level.path, message).rule(25));
        }
        out.put_with(at, |out| {
            rewriter.finish_row(out);
            out.extend_from_slice(rewritten);
        })?;
        rewriter.forget();
        Ok(())
    }
}
