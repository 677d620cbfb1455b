//! Columns outside lists, by the structs around them: the definition levels of a leaf are those of its struct, and one
//! more where it has a value.
//!
//! A shredded column has a `value` beside each `typed_value`, mostly null, and paths that few rows have. The library
//! would walk all rows of all structs around each of them. Here levels are counted once for each struct that may be
//! null, and the writers of columns get them ([`byte_arrays`](super::byte_arrays)). The values of columns that have few
//! are kept until the row group ends; columns of one struct without any value share their pages. A column that gets more
//! values is handed over with its rows so far.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StructArray, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::basic::{Compression, Type as Physical};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::ColumnDescPtr;

use crate::parquet::write::bounds::leaf_count;
use crate::parquet::write::byte_arrays::{ByteArrayColumn, Given};
use crate::parquet::write::encoding::is_byte_array;
use crate::parquet::write::pages::{Chunk, Compressor, Pages, renamed};
use crate::parquet::write::room::{Room, raise, uneven};
use crate::rows::Column;

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
    /// From the top down to the leaf itself; empty where its levels are not those of the struct: in a list, or deeper
    /// than a byte counts.
    way: Vec<FieldRef>,
    /// Its values so far and their rows, while it is sparse.
    values: Vec<Vec<u8>>,
    at: Vec<usize>,
}

impl Leaf {
    fn field(&self) -> Option<&FieldRef> {
        self.way.last()
    }

    fn is_nullable(&self) -> bool {
        self.field().is_some_and(|field| field.is_nullable())
    }
}

/// How a leaf is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By the library's writer of arrays.
    Arrays,
    /// By [`ByteArrayColumn`].
    Bytes,
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
                for _ in 0..leaf_count(data_type) {
                    let way = if plain && shallow { way.clone() } else { Vec::new() };
                    self.leaves.push(Leaf { group, way, values: Vec::new(), at: Vec::new() });
                }
            }
        }
        way.pop();
    }

    /// Whether the column may be left to this one while it has few values.
    pub fn may_be_sparse(&self, leaf: usize) -> bool {
        self.leaves.get(leaf).is_some_and(Leaf::is_nullable)
    }

    /// Whether the leaf is of byte arrays whose levels are known here.
    pub fn is_bytes(&self, leaf: usize) -> bool {
        let field = self.leaves.get(leaf).and_then(Leaf::field);
        field.is_some_and(|field| is_byte_array(field.data_type()))
    }

    /// Counts the rows of a batch, keeps the values of those leaves that are `sparse` so far and have few here too, and
    /// gives the others, by the way each is written.
    pub fn split<'a>(
        &mut self,
        columns: impl Iterator<Item = (&'a FieldRef, &'a Column)>,
        rows: usize,
        sparse: &[bool],
        ways: &[Way],
    ) -> Result<Present> {
        let before = self.rows();
        if let Some(all) = self.groups.first_mut() {
            all.levels.resize(before + rows, 0);
        }
        let (leaves, bytes) = (Vec::new(), Vec::new());
        let mut walk = Walk { of: self, sparse, ways, before, group: 0, leaf: 0, leaves, bytes };
        let columns = columns.map(|(field, column)| walk.visit(field, column, 0));
        let columns = columns.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
        Ok(Present { columns, leaves: walk.leaves, bytes: walk.bytes })
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.groups.first().map_or(0, |all| all.levels.len())
    }

    /// The rows of a leaf from `before` on: its levels, and where it has values.
    pub fn rows_of(&self, leaf: usize, before: usize, values: &Column, room: &mut Room) -> Result<()> {
        room.clear();
        let Some(leaf) = self.leaves.get(leaf) else { return Ok(()) };
        let Some(Group { full, levels }) = self.groups.get(leaf.group) else { return Ok(()) };
        let around = levels.get(before..).unwrap_or(&[]);
        match values {
            Column::Bytes { placed, rows } => room.fill(around, *full, leaf.is_nullable(), placed.places_of(rows)),
            array => {
                room.find(around, *full, leaf.is_nullable(), array.nulls().as_ref());
                Ok(())
            }
        }
    }

    /// Writes the first `rows` of a sparse column of byte arrays.
    pub fn write_so_far(
        &mut self,
        leaf: usize,
        rows: usize,
        column: &mut ByteArrayColumn,
        compressor: &mut Compressor,
    ) -> Result<()> {
        let Some(Leaf { group, values, at, .. }) = self.leaves.get_mut(leaf) else { return Ok(()) };
        let (values, at) = (std::mem::take(values), std::mem::take(at));
        let Some(Group { levels, .. }) = self.groups.get(*group) else { return Ok(()) };
        write_kept(levels.get(..rows).unwrap_or(levels), (&values, &at), true, column, compressor)
    }

    /// The first `rows` of a sparse column without values, for a writer of arrays: nulls under the structs around them.
    pub fn so_far(&self, leaf: usize, rows: usize) -> Result<Option<(FieldRef, ArrayRef)>> {
        let Some(Leaf { group, way, .. }) = self.leaves.get(leaf) else { return Ok(None) };
        let (Some((leaf, around)), Some(group)) = (way.split_last(), self.groups.get(*group)) else { return Ok(None) };
        let levels = group.levels.get(..rows).unwrap_or(&group.levels);
        let mut full = group.full;
        let (mut field, mut array) = (leaf.clone(), new_null_array(leaf.data_type(), levels.len()));
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
        self.leaves.iter().flat_map(|leaf| &leaf.values).map(Vec::len).sum()
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

/// What is to be written of a batch.
pub struct Present {
    /// For the library's writers: columns without their other leaves, and the numbers of the leaves that they have.
    pub columns: Vec<(FieldRef, ArrayRef)>,
    pub leaves: Vec<usize>,
    /// Leaves of byte arrays, by number.
    pub bytes: Vec<(usize, Column)>,
}

/// One batch.
struct Walk<'a> {
    of: &'a mut Sparse,
    sparse: &'a [bool],
    ways: &'a [Way],
    /// Rows before the batch.
    before: usize,
    /// The last struct that may be null, and the next leaf.
    group: usize,
    leaf: usize,
    leaves: Vec<usize>,
    bytes: Vec<(usize, Column)>,
}

type Part = Option<(FieldRef, ArrayRef)>;

impl Walk<'_> {
    fn visit(&mut self, field: &FieldRef, column: &Column, group: usize) -> Result<Part> {
        let DataType::Struct(fields) = field.data_type() else { return self.leaf(field, column, group) };
        let nulls = column.nulls();
        self.require(field, nulls.as_ref(), group)?;
        let group = if field.is_nullable() { self.descend(nulls.as_ref(), group) } else { group };
        let mut children = Vec::with_capacity(fields.len());
        let mut same = true;
        for (at, field) in fields.iter().enumerate() {
            let child = column.child(at).ok_or_else(uneven)?;
            let part = self.visit(field, &child, group)?;
            same &= matches!((&part, &child), (Some((_, ours)), Column::Array(theirs)) if Arc::ptr_eq(ours, theirs));
            children.extend(part);
        }
        if let Column::Array(array) = column
            && same
        {
            return Ok(Some((field.clone(), array.clone())));
        }
        if children.is_empty() {
            return Ok(None);
        }
        let (fields, arrays): (Vec<_>, Vec<_>) = children.into_iter().unzip();
        let fields = Fields::from(fields);
        let pruned = Field::new(field.name(), DataType::Struct(fields.clone()), field.is_nullable());
        let array = StructArray::try_new_with_length(fields, arrays, nulls, column.len())?;
        Ok(Some((Arc::new(pruned), Arc::new(array))))
    }

    /// Counts the levels of the next struct that may be null.
    fn descend(&mut self, nulls: Option<&NullBuffer>, parent: usize) -> usize {
        self.group += 1;
        if let Some((above, [group, ..])) = self.of.groups.split_at_mut_checked(self.group)
            && let Some(parent) = above.get(parent)
        {
            let (levels, full) = (parent.levels.get(self.before..).unwrap_or(&[]), parent.full);
            raise(levels, full, nulls, &mut group.levels);
        }
        self.group
    }

    /// Refuses nulls of what must not be null, in rows that have all structs around it: as the library does, which may
    /// not get to see them.
    fn require(&self, field: &Field, nulls: Option<&NullBuffer>, group: usize) -> Result<()> {
        let Some(nulls) = nulls.filter(|nulls| !field.is_nullable() && nulls.null_count() > 0) else {
            return Ok(());
        };
        let Some(group) = self.of.groups.get(group) else { return Ok(()) };
        let around = group.levels.get(self.before..).unwrap_or(&[]);
        match around.iter().zip(nulls).position(|(&level, valid)| !valid && level == group.full) {
            None => Ok(()),
            Some(row) => {
                let message = format!("Found null at index {row} for required field '{}'", field.name());
                Err(ParquetError::General(message))
            }
        }
    }

    fn leaf(&mut self, field: &FieldRef, column: &Column, group: usize) -> Result<Part> {
        let first = self.leaf;
        self.leaf += leaf_count(field.data_type());
        if self.sparse.get(first) == Some(&true) && self.keep(first, column) {
            return Ok(None);
        }
        if self.ways.get(first) == Some(&Way::Bytes) {
            self.require(field, column.nulls().as_ref(), group)?;
            self.bytes.push((first, column.clone()));
            return Ok(None);
        }
        self.leaves.extend(first..self.leaf);
        let array = column.to_array(field).map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(Some((field.clone(), array)))
    }

    /// Keeps the values of a sparse leaf if it stays one.
    fn keep(&mut self, leaf: usize, column: &Column) -> bool {
        let Some(leaf) = self.of.leaves.get_mut(leaf) else { return false };
        let found = column.values();
        if found == 0 {
            return true;
        }
        let Some(group) = self.of.groups.get(leaf.group) else { return false };
        if (leaf.values.len() + found) * ROWS_PER_VALUE > self.before + column.len() {
            return false;
        }
        let levels = group.levels.get(self.before..).unwrap_or(&[]);
        let mut put = |row: usize, value: &[u8]| {
            // What a null struct hides is no value.
            if levels.get(row) == Some(&group.full) {
                leaf.at.push(self.before + row);
                leaf.values.push(value.to_vec());
            }
        };
        match column {
            Column::Bytes { placed, rows } => {
                let values = placed.places_of(rows).zip(placed.values_of(rows));
                values.for_each(|(row, at)| put(row, placed.value(at)));
            }
            Column::Array(array) => {
                let Some(nulls) = array.nulls() else { return false };
                match array.data_type() {
                    DataType::Binary => {
                        nulls.valid_indices().for_each(|row| put(row, array.as_binary::<i32>().value(row)));
                    }
                    DataType::Utf8 => {
                        let values = array.as_string::<i32>();
                        nulls.valid_indices().for_each(|row| put(row, values.value(row).as_bytes()));
                    }
                    _ => return false,
                }
            }
            Column::Struct { .. } => return false,
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
}

impl<'a> Chunks<'a> {
    pub fn new(of: &'a Sparse, properties: &'a WriterPropertiesPtr, compression: Compression) -> Self {
        Chunks { of, properties, compression, empty: HashMap::new() }
    }

    /// The chunk of one column; `bytes` writes it if it is of byte arrays.
    pub fn chunk(
        &mut self,
        leaf: usize,
        column: &ColumnDescPtr,
        bytes: Option<&mut ByteArrayColumn>,
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
        let (pages, close) = match bytes {
            Some(bytes) => {
                write_kept(&group.levels, (&leaf.values, &leaf.at), false, bytes, compressor)?;
                bytes.end_chunk(self.properties, self.compression, compressor)?
            }
            None => {
                let mut writer = ByteArrayColumn::without_values(column, self.properties);
                write_kept(&group.levels, (&[], &[]), false, &mut writer, compressor)?;
                writer.end_chunk(self.properties, self.compression, compressor)?
            }
        };
        if leaf.values.is_empty() {
            self.empty.insert(key, (pages.clone(), close.clone()));
        }
        pages.close(close).map(Some)
    }
}

/// Writes rows with the levels of the structs around, of which some have values: these at these rows.
fn write_kept(
    around: &[u8],
    (values, at): (&[Vec<u8>], &[usize]),
    may_be_even: bool,
    column: &mut ByteArrayColumn,
    compressor: &mut Compressor,
) -> Result<()> {
    let mut levels = around.to_vec();
    for &row in at {
        if let Some(level) = levels.get_mut(row) {
            *level += 1;
        }
    }
    let places: Vec<usize> = (0..values.len()).collect();
    let most_bytes = values.iter().map(|value| value.len() + size_of::<u32>()).sum();
    let value = |at: usize| values.get(at).map_or(&[][..], Vec::as_slice);
    column.write(&levels, &Given { places: &places, value, most_bytes, may_be_even }, compressor)
}
