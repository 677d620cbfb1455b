//! Variant columns of a record batch: a tree from a sample of one, and shredding of any of them, nested in structs
//! too. Variants inside lists and maps stay as they are.
//!
//! Every row is decoded, so validated, on the way (rules 3 to 18). A column that is shredded by the wanted tree
//! already is passed on; one that is shredded otherwise is put together again first.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema};

use crate::codec::decode::VariantDecoder;
use crate::error::{Code, Error, Result};
use crate::flavour;
use crate::infer::{COMMON_ROWS, Left, Limits, Sample, max_depth_at};
use crate::layout::Layout;
use crate::layout::standard::{METADATA, VALUE, is_variant, mark, tree_of, with_views};
use crate::names::Names;
use crate::rows::Rows;
use crate::shred::Shredder;
use crate::tape::Tape;
use crate::tree::Tree;
use crate::values::reconstruct::unshred;

/// The tree of the variant column at `path`, names from the top, and the paths that did not become typed columns.
pub fn infer_column(batch: &RecordBatch, path: &[String], limits: Limits) -> Result<(Tree, Vec<Left>)> {
    let limits = Limits { max_depth: limits.max_depth.min(max_depth_at(path.len())), ..limits };
    let (mut sample, mut names) = (Sample::new(limits)?, Names::new());
    let (array, nulls) = find(batch, path)?;
    let column = Column::open(&array, nulls, &path.join("."))?;
    let (mut decoder, mut tape) = (VariantDecoder::new(), Tape::default());
    for row in 0..column.len() {
        if sample.is_full() {
            break;
        }
        if let Some(value) = column.decode(row, &mut decoder, &mut tape, &mut names)? {
            sample.add(&tape.view(value, &names));
        }
    }
    sample.tree(&names)
}

/// The batch with the columns at these paths in a layout of their trees.
pub fn shred_batch(batch: &RecordBatch, trees: &[(Vec<String>, Tree)], layout: Layout) -> Result<RecordBatch> {
    shredded(batch, trees, layout, false)
}

/// The same for rows that stay in the kernel: metadata are views, since rows mostly share one.
pub fn shred_rows(rows: &Rows, trees: &[(Vec<String>, Tree)], layout: Layout) -> Result<Rows> {
    Ok(Rows::from(&shredded(&rows.to_batch()?, trees, layout, true)?))
}

fn shredded(batch: &RecordBatch, trees: &[(Vec<String>, Tree)], layout: Layout, views: bool) -> Result<RecordBatch> {
    let mut fields = batch.schema().fields().to_vec();
    let mut columns = batch.columns().to_vec();
    for (path, tree) in trees {
        replace(&mut fields, &mut columns, None, path, path, (tree, layout, views))?;
    }
    let schema = Schema::new_with_metadata(fields, batch.schema().metadata().clone());
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

fn replace(
    fields: &mut [FieldRef],
    columns: &mut [ArrayRef],
    outer: Option<&NullBuffer>,
    rest: &[String],
    path: &[String],
    wanted: (&Tree, Layout, bool),
) -> Result<()> {
    let Some((name, rest)) = rest.split_first() else { return Err(no_column(path)) };
    let found = fields.iter_mut().zip(columns).find(|(field, _)| field.name() == name);
    let Some((field, column)) = found else { return Err(no_column(path)) };
    let Some(array) = column.as_struct_opt() else { return Err(no_variant(path, column.data_type())) };
    let nulls = NullBuffer::union(outer, array.nulls());
    if rest.is_empty() {
        let name = path.join(".");
        let (tree, layout, views) = wanted;
        let shredded = shred_column(array, nulls, tree, layout, views, &name)?;
        *field = Arc::new(mark(field.as_ref().clone().with_data_type(shredded.data_type().clone())));
        *column = Arc::new(shredded);
        return Ok(());
    }
    if is_variant(field) {
        return Err(no_column(path));
    }
    let mut inner_fields = array.fields().to_vec();
    let mut inner_columns = array.columns().to_vec();
    replace(&mut inner_fields, &mut inner_columns, nulls.as_ref(), rest, path, wanted)?;
    let data_type = DataType::Struct(inner_fields.into());
    let DataType::Struct(made) = &data_type else { return Err(no_column(path)) };
    *column =
        Arc::new(StructArray::try_new_with_length(made.clone(), inner_columns, array.nulls().cloned(), array.len())?);
    *field = Arc::new(ArrowField::clone(field).with_data_type(data_type));
    Ok(())
}

/// A column by a tree; `views` asks for metadata as views in the standard layout.
pub(crate) fn shred_column(
    array: &StructArray,
    nulls: Option<NullBuffer>,
    tree: &Tree,
    layout: Layout,
    views: bool,
    name: &str,
) -> Result<StructArray> {
    let (plain, found) = (layout.column_fields(tree), array.fields());
    if !tree.is_untyped() && (*found == plain || *found == with_views(&plain)) {
        return stored(array, if views { with_views(&plain) } else { plain });
    }
    let column = Column::open(array, nulls, name)?;
    let (mut decoder, mut tape, mut names) = (VariantDecoder::new(), Tape::default(), Names::new());
    let mut shredder = match layout {
        Layout::Early => Shredder::early(tree, &mut names)?,
        Layout::Standard => {
            let mut sample = Sample::new(Limits { max_depth: crate::limits::MAX_TREE_DEPTH, ..Limits::default() })?;
            for row in 0..column.len().min(COMMON_ROWS) {
                if sample.is_full() {
                    break;
                }
                if let Some(value) = column.decode(row, &mut decoder, &mut tape, &mut names)? {
                    sample.add(&tape.view(value, &names));
                }
            }
            let common = sample.common_names(&names);
            names = Names::new();
            decoder = VariantDecoder::new();
            let shredder = Shredder::new(tree, common.iter().map(String::as_str), &mut names)?;
            if views { shredder.with_views() } else { shredder }
        }
    };
    for row in 0..column.len() {
        match column.decode(row, &mut decoder, &mut tape, &mut names)? {
            Some(value) => shredder.append(&tape.view(value, &names)).map_err(|e| e.row(row as u64))?,
            None => shredder.append_null(),
        }
        if names.is_full() {
            names.truncate(shredder.names_len());
        }
    }
    shredder.finish()
}

/// The column as these fields have it, which differ at most in whether metadata are views.
fn stored(column: &StructArray, fields: Fields) -> Result<StructArray> {
    if *column.fields() == fields {
        return Ok(column.clone());
    }
    let (_, mut columns, nulls) = column.clone().into_parts();
    for (field, array) in fields.iter().zip(&mut columns).filter(|(field, _)| field.name() == METADATA) {
        let made: Option<ArrayRef> = match field.data_type() {
            DataType::BinaryView => flavour::binary_view(array).map(|made| Arc::new(made) as ArrayRef),
            _ => flavour::binary(array)?.map(|made| Arc::new(made) as ArrayRef),
        };
        *array = made.ok_or_else(|| Error::new(Code::MalformedShredding, "metadata is no binary").rule(2))?;
    }
    Ok(StructArray::try_new_with_length(fields, columns, nulls, column.len())?)
}

/// An unshredded variant column.
struct Column {
    metadata: BinaryArray,
    value: BinaryArray,
    nulls: Option<NullBuffer>,
    name: String,
}

impl Column {
    fn open(array: &StructArray, nulls: Option<NullBuffer>, name: &str) -> Result<Self> {
        // What is unshredded already is taken as it is; an early column has no tree of the standard layout.
        let whole = match Layout::of(array.fields()) {
            Layout::Standard if tree_of(array.data_type()).map_err(|e| e.path(name))?.is_untyped() => array.clone(),
            _ => unshred(array, name)?,
        };
        let part = |part: &str| {
            let missing = || Error::new(Code::MalformedShredding, format!("{name} has no {part}")).rule(2).path(name);
            flavour::binary(whole.column_by_name(part).ok_or_else(missing)?)?.ok_or_else(missing)
        };
        Ok(Column { metadata: part(METADATA)?, value: part(VALUE)?, nulls, name: name.to_owned() })
    }

    fn len(&self) -> usize {
        self.value.len()
    }

    /// Fills the tape with a row and gives its value bytes; `None` for a SQL NULL.
    fn decode<'a>(
        &'a self,
        row: usize,
        decoder: &mut VariantDecoder,
        tape: &mut Tape,
        names: &mut Names,
    ) -> Result<Option<&'a [u8]>> {
        if self.nulls.as_ref().is_some_and(|n| n.is_null(row)) {
            return Ok(None);
        }
        if self.metadata.is_null(row) || self.value.is_null(row) {
            let message = format!("a row of {} that is not null lacks metadata or value", self.name);
            return Err(Error::new(Code::MalformedShredding, message).rule(2).path(&self.name).row(row as u64));
        }
        let value = self.value.value(row);
        let decoded = decoder.decode(self.metadata.value(row), value, tape, names);
        decoded.map_err(|e| e.path(&self.name).row(row as u64))?;
        Ok(Some(value))
    }
}

/// A column by its names from the top, with the nulls of everything around it.
fn find(batch: &RecordBatch, path: &[String]) -> Result<(StructArray, Option<NullBuffer>)> {
    let mut nulls = None;
    let mut found: Option<StructArray> = None;
    for name in path {
        let column = match &found {
            None => batch.column_by_name(name),
            Some(array) => array.column_by_name(name),
        };
        let column = column.ok_or_else(|| no_column(path))?;
        let array = column.as_struct_opt().ok_or_else(|| no_variant(path, column.data_type()))?;
        nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
        found = Some(array.clone());
    }
    Ok((found.ok_or_else(|| no_column(path))?, nulls))
}

fn no_column(path: &[String]) -> Error {
    let name = path.join(".");
    Error::new(Code::InvalidArgument, format!("there is no variant column {name:?}")).path(name)
}

fn no_variant(path: &[String], data_type: &DataType) -> Error {
    let name = path.join(".");
    Error::new(Code::InvalidArgument, format!("column {name:?} is {data_type}, not a variant")).path(name)
}
