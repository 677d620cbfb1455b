//! Columns with few values in a row group, or none: their definition levels are those of the structs around them.
//!
//! A shredded column has a `value` beside each `typed_value`, mostly null, and paths that few rows have. The library
//! would walk all rows of all structs around each of them. Here levels are counted once for each struct that may be
//! null, the few values are kept until the row group ends, and the library's column writers get both; columns of one
//! struct without any value share their pages. A column that gets more values is handed over with its rows so far
//! ([`Sparse::so_far`]).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayBuilder, ArrayRef, AsArray, BinaryBuilder, StructArray, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use parquet::basic::{Compression, Type as Physical};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::parquet::write::bounds::leaf_count;
use crate::parquet::write::pages::{Chunk, Compressor, Pages, renamed};

/// Of so many rows one may have a value.
const ROWS_PER_VALUE: usize = 32;

/// The structs that may be null, outside lists, and the leaves of a file, with the rows of the row group so far.
pub struct Sparse {
    /// In the order of a walk from the top; the first stands for the rows.
    groups: Vec<Group>,
    /// In the order of the file's columns.
    leaves: Vec<Leaf>,
}

#[derive(Default)]
struct Group {
    /// The definition level of a row that has it.
    full: u8,
    /// Of the rows of the row group so far.
    levels: Vec<u8>,
}

struct Leaf {
    /// The nearest struct around it that may be null.
    group: usize,
    /// From the top down to the leaf itself; empty where its column cannot be sparse: in a list, or required.
    way: Vec<FieldRef>,
    /// Its values so far and their rows, while it is sparse.
    values: Vec<ByteArray>,
    at: Vec<usize>,
}

impl Sparse {
    pub fn new(schema: &Schema) -> Self {
        let mut sparse = Sparse { groups: vec![Group::default()], leaves: Vec::new() };
        for field in schema.fields() {
            sparse.add(field, 0, &mut Vec::new());
        }
        sparse
    }

    fn add(&mut self, field: &FieldRef, group: usize, way: &mut Vec<FieldRef>) {
        way.push(field.clone());
        match field.data_type() {
            DataType::Struct(fields) => {
                let group = if field.is_nullable() {
                    let full = self.groups.get(group).map_or(0, |g| g.full).saturating_add(1);
                    self.groups.push(Group { full, levels: Vec::new() });
                    self.groups.len() - 1
                } else {
                    group
                };
                fields.iter().for_each(|field| self.add(field, group, way));
            }
            data_type => {
                // Definition levels are counted in a byte.
                let shallow = self.groups.get(group).is_some_and(|g| g.full < u8::MAX - 1);
                let plain = !data_type.is_nested() && !matches!(data_type, DataType::Dictionary(_, _));
                let may = plain && shallow && field.is_nullable();
                for _ in 0..leaf_count(data_type) {
                    let way = if may { way.clone() } else { Vec::new() };
                    self.leaves.push(Leaf { group, way, values: Vec::new(), at: Vec::new() });
                }
            }
        }
        way.pop();
    }

    /// Whether the column may be left to this one while it has few values.
    pub fn may_be_sparse(&self, leaf: usize) -> bool {
        self.leaves.get(leaf).is_some_and(|leaf| !leaf.way.is_empty())
    }

    /// Counts the rows of a batch, keeps the values of those leaves that are `sparse` so far and have few here too, and
    /// gives the others.
    pub fn split<'a>(
        &mut self,
        columns: impl Iterator<Item = (&'a FieldRef, &'a ArrayRef)>,
        rows: usize,
        sparse: &[bool],
    ) -> Result<Present> {
        let before = self.rows();
        if let Some(all) = self.groups.first_mut() {
            all.levels.resize(before + rows, 0);
        }
        let mut walk = Walk { of: self, sparse, before, group: 0, leaf: 0, broken: false, present: Vec::new() };
        let columns = columns.map(|(field, array)| walk.visit(field, array, 0));
        let columns = columns.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
        Ok(Present { columns, leaves: walk.present })
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.groups.first().map_or(0, |all| all.levels.len())
    }

    /// The first `rows` of a sparse column, for a writer of arrays: its values under the structs around them.
    pub fn so_far(&mut self, leaf: usize, rows: usize) -> Result<Option<(FieldRef, ArrayRef)>> {
        let Some(Leaf { group, way, values, at }) = self.leaves.get_mut(leaf) else { return Ok(None) };
        let (values, at) = (std::mem::take(values), std::mem::take(at));
        let (Some((leaf, around)), Some(group)) = (way.split_last(), self.groups.get(*group)) else { return Ok(None) };
        let levels = group.levels.get(..rows).unwrap_or(&group.levels);
        let mut full = group.full;
        let (mut field, mut array) = (leaf.clone(), scattered(leaf.data_type(), &values, &at, levels.len())?);
        for above in around.iter().rev() {
            let nulls = above.is_nullable().then(|| levels.iter().map(|&level| level >= full).collect::<NullBuffer>());
            full -= u8::from(above.is_nullable());
            let fields = Fields::from(vec![field]);
            let data_type = DataType::Struct(fields.clone());
            array = Arc::new(StructArray::try_new_with_length(fields, vec![array], nulls, levels.len())?);
            field = Arc::new(Field::new(above.name(), data_type, above.is_nullable()));
        }
        Ok(Some((field, array)))
    }

    /// Bytes of the values that are kept.
    pub fn bytes(&self) -> usize {
        self.leaves.iter().flat_map(|leaf| &leaf.values).map(ByteArray::len).sum()
    }

    /// Forgets the rows.
    pub fn clear(&mut self) {
        self.groups.iter_mut().for_each(|group| group.levels.clear());
        for leaf in &mut self.leaves {
            leaf.values.clear();
            leaf.at.clear();
        }
    }
}

/// Values at some of so many rows.
fn scattered(data_type: &DataType, values: &[ByteArray], at: &[usize], rows: usize) -> Result<ArrayRef> {
    if values.is_empty() {
        return Ok(new_null_array(data_type, rows));
    }
    let mut array = BinaryBuilder::new();
    for (value, &row) in values.iter().zip(at) {
        array.append_nulls(row - array.len());
        array.append_value(value.data());
    }
    array.append_nulls(rows - array.len());
    Ok(cast(&array.finish(), data_type)?)
}

/// What is to be written of a batch: columns without their sparse leaves, and the numbers of the leaves that they have.
pub struct Present {
    pub columns: Vec<(FieldRef, ArrayRef)>,
    pub leaves: Vec<usize>,
}

/// One batch.
struct Walk<'a> {
    of: &'a mut Sparse,
    sparse: &'a [bool],
    /// Rows before the batch.
    before: usize,
    /// The last struct that may be null, and the next leaf.
    group: usize,
    leaf: usize,
    /// Whether a struct around is null where it must not be: all of it goes to the library, which says so.
    broken: bool,
    present: Vec<usize>,
}

type Part = Option<(FieldRef, ArrayRef)>;

impl Walk<'_> {
    fn visit(&mut self, field: &FieldRef, array: &ArrayRef, group: usize) -> Result<Part> {
        let DataType::Struct(fields) = field.data_type() else { return Ok(self.leaf(field, array)) };
        let array_of = array.as_struct();
        let group = if field.is_nullable() { self.descend(array_of, group) } else { group };
        let broken = self.broken;
        self.broken |= !field.is_nullable() && array_of.null_count() > 0;
        let children = fields.iter().zip(array_of.columns()).map(|(field, array)| self.visit(field, array, group));
        let children = children.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
        self.broken = broken;
        let same = children.len() == fields.len()
            && children.iter().zip(array_of.columns()).all(|((_, ours), theirs)| Arc::ptr_eq(ours, theirs));
        if same {
            return Ok(Some((field.clone(), array.clone())));
        }
        if children.is_empty() {
            return Ok(None);
        }
        let (fields, arrays): (Vec<_>, Vec<_>) = children.into_iter().unzip();
        let fields = Fields::from(fields);
        let pruned = Field::new(field.name(), DataType::Struct(fields.clone()), field.is_nullable());
        let array = StructArray::try_new_with_length(fields, arrays, array_of.nulls().cloned(), array_of.len())?;
        Ok(Some((Arc::new(pruned), Arc::new(array))))
    }

    /// Counts the levels of the next struct that may be null.
    fn descend(&mut self, array: &StructArray, parent: usize) -> usize {
        self.group += 1;
        if let Some((above, [group, ..])) = self.of.groups.split_at_mut_checked(self.group)
            && let Some(parent) = above.get(parent)
        {
            let levels = parent.levels.get(self.before..).unwrap_or(&[]).iter();
            let full = parent.full;
            match array.nulls() {
                None => group.levels.extend(levels.map(|&level| level.saturating_add(u8::from(level == full)))),
                Some(nulls) => {
                    let here = levels.zip(nulls.iter());
                    group
                        .levels
                        .extend(here.map(|(&level, valid)| level.saturating_add(u8::from(valid && level == full))));
                }
            }
        }
        self.group
    }

    fn leaf(&mut self, field: &FieldRef, array: &ArrayRef) -> Part {
        let first = self.leaf;
        self.leaf += leaf_count(field.data_type());
        let sparse = !self.broken && self.sparse.get(first).copied().unwrap_or(false);
        if sparse && self.keep(first, array) {
            return None;
        }
        self.present.extend(first..self.leaf);
        Some((field.clone(), array.clone()))
    }

    /// Keeps the values of a sparse leaf if it stays one.
    fn keep(&mut self, leaf: usize, array: &ArrayRef) -> bool {
        let Some(leaf) = self.of.leaves.get_mut(leaf) else { return false };
        let found = array.len() - array.null_count();
        if found == 0 {
            return true;
        }
        let (Some(nulls), Some(group)) = (array.nulls(), self.of.groups.get(leaf.group)) else { return false };
        if (leaf.values.len() + found) * ROWS_PER_VALUE > self.before + array.len() {
            return false;
        }
        let levels = group.levels.get(self.before..).unwrap_or(&[]);
        // What a null struct hides is no value.
        let rows = nulls.valid_indices().filter(|&row| levels.get(row) == Some(&group.full));
        let mut put = |row: usize, value: &[u8]| {
            leaf.at.push(self.before + row);
            leaf.values.push(value.to_vec().into());
        };
        match array.data_type() {
            DataType::Binary => rows.for_each(|row| put(row, array.as_binary::<i32>().value(row))),
            DataType::Utf8 => rows.for_each(|row| put(row, array.as_string::<i32>().value(row).as_bytes())),
            _ => return false,
        }
        true
    }
}

/// The chunks of the sparse columns of a row group.
pub struct Chunks<'a> {
    of: &'a Sparse,
    properties: &'a WriterPropertiesPtr,
    compression: Compression,
    /// Those without a value, by group and physical type.
    empty: HashMap<(usize, Physical), (Pages, ColumnCloseResult)>,
    levels: Vec<i16>,
}

impl<'a> Chunks<'a> {
    pub fn new(of: &'a Sparse, properties: &'a WriterPropertiesPtr, compression: Compression) -> Self {
        Chunks { of, properties, compression, empty: HashMap::new(), levels: Vec::new() }
    }

    /// The chunk of one column.
    pub fn chunk(
        &mut self,
        leaf: usize,
        column: &ColumnDescPtr,
        compressor: &mut Compressor,
    ) -> Result<Option<(Chunk, ColumnCloseResult)>> {
        let Some(leaf) = self.of.leaves.get(leaf) else { return Ok(None) };
        let key = (leaf.group, column.physical_type());
        if leaf.values.is_empty()
            && let Some((pages, close)) = self.empty.get(&key)
        {
            let mut close = close.clone();
            close.metadata = renamed(&close.metadata, column)?;
            return pages.clone().close(close).map(Some);
        }
        let Some(group) = self.of.groups.get(leaf.group) else { return Ok(None) };
        self.levels.clear();
        self.levels.extend(group.levels.iter().map(|&level| i16::from(level)));
        for &row in &leaf.at {
            if let Some(level) = self.levels.get_mut(row) {
                *level += 1;
            }
        }
        let mut plain = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut plain));
        let mut writer = get_column_writer(column.clone(), self.properties.clone(), pages);
        write(&mut writer, &leaf.values, &self.levels)?;
        let mut close = writer.close()?;
        close.metadata = close.metadata.into_builder().set_compression(self.compression).build()?;
        let pages = compressor.pages(plain.into_inner()?.into())?;
        if leaf.values.is_empty() {
            self.empty.insert(key, (pages.clone(), close.clone()));
        }
        pages.close(close).map(Some)
    }
}

/// Only columns of bytes have values here.
fn write(writer: &mut ColumnWriter, values: &[ByteArray], levels: &[i16]) -> Result<()> {
    match writer {
        ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(values, Some(levels), None)?,
        ColumnWriter::BoolColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
        ColumnWriter::Int32ColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
        ColumnWriter::Int64ColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
        ColumnWriter::Int96ColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
        ColumnWriter::FloatColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
        ColumnWriter::DoubleColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
        ColumnWriter::FixedLenByteArrayColumnWriter(writer) => writer.write_batch(&[], Some(levels), None)?,
    };
    Ok(())
}
