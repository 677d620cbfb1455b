//! Storage layout → unshredded variant: the rows of a shredded column as (metadata, value) again.
//!
//! The metadata of a row is kept as it is: it names every field, shredded or not (rules 19, 20). Values are put together
//! block by block, and within a block level by level, column by column: `measure` finds what each slot holds and how
//! many bytes that takes, from the leaves up; then every place is known, and `write` fills them. Field ids are resolved
//! once per distinct metadata. Recursion is over the tree, never over data: whatever stands in a `value` is validated
//! and copied as bytes.
//!
//! A block that fails is tried again in halves, so that the error is that of the first row that has one, and what a
//! block takes in memory is bounded.

mod block;
mod leaves;
mod measure;
mod part;
mod write;

use arrow::array::{Array, BinaryArray, BinaryViewArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

use crate::codec::metadata::NO_NAMES;
use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::values::bytes::build_variant;
use crate::values::level::{Level, VariantColumn};
use crate::values::reconstruct::block::Block;
use crate::values::reconstruct::part::Part;
use crate::values::standardize::standardize_column;

/// Values of a block: what they take fits into the second level of a core's cache.
const BLOCK: usize = 256;

/// Kinds of metadata in a block that are compared with each other.
const MAX_KINDS: usize = 16;

/// What Arrow's offsets can address.
const MAX_BYTES: usize = i32::MAX as usize;

/// Reconstructs every row; null rows stay null. `path` names the column in errors.
pub fn unshred(array: &StructArray, path: &str) -> Result<StructArray> {
    unshred_column(&VariantColumn::open(array, path)?)
}

fn unshred_column(column: &VariantColumn) -> Result<StructArray> {
    if column.root.layout == Layout::Early {
        return unshred_levels(&standardize_column(column)?.column);
    }
    unshred_levels(column)
}

/// The same for levels whose values are all under the row's metadata.
fn unshred_levels(column: &VariantColumn) -> Result<StructArray> {
    let root = &column.root;
    let metadata = column.metadata.as_ref().ok_or_else(|| {
        let message = format!("the variant column {} has no metadata", root.path);
        Error::new(Code::MalformedShredding, message).rule(2).path(&root.path)
    })?;
    let rows = (0..column.len as u32).filter(|&row| !column.is_null(row as usize));
    let spots: Vec<Spot> = rows.map(|row| Spot { slot: row, metadata: row, row }).collect();
    let mut values = Values::default();
    Reconstructor::new(root).write(root, Some(metadata), &spots, &mut values)?;
    let (bytes, ends) = (values.bytes, spread(&column.nulls, values.ends));
    let values = BinaryArray::try_new(OffsetBuffer::new(ScalarBuffer::from(ends)), bytes.into(), None)?;
    build_variant(&plain(metadata, &column.nulls)?, values, column.nulls.clone())
}

/// Where each row's bytes begin and the last one's end, by the ends of those that are not null.
fn spread(nulls: &Option<NullBuffer>, ends: Vec<i32>) -> Vec<i32> {
    let mut offsets = Vec::with_capacity(nulls.as_ref().map_or(ends.len(), NullBuffer::len) + 1);
    offsets.push(0);
    let Some(nulls) = nulls else {
        offsets.extend(ends);
        return offsets;
    };
    let (mut ends, mut last) = (ends.into_iter(), 0);
    for there in nulls {
        last = if there { ends.next().unwrap_or(last) } else { last };
        offsets.push(last);
    }
    offsets
}

/// The metadata without what is beneath nulls.
fn plain(metadata: &BinaryViewArray, nulls: &Option<NullBuffer>) -> Result<BinaryArray> {
    let len = |row: usize| metadata.views().get(row).map_or(0, |view| *view as u32 as usize);
    let mut bytes = Vec::with_capacity((0..metadata.len()).map(len).sum());
    let mut offsets = Vec::with_capacity(metadata.len() + 1);
    offsets.push(0);
    for row in 0..metadata.len() {
        if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            bytes.extend_from_slice(metadata.value(row));
        }
        offsets.push(i32::try_from(bytes.len()).map_err(|_| too_large())?);
    }
    Ok(BinaryArray::try_new(OffsetBuffer::new(ScalarBuffer::from(offsets)), bytes.into(), None)?)
}

fn too_large() -> Error {
    Error::new(Code::TooLarge, "the values of one batch exceed 2 GiB: use smaller batches")
}

/// A value that is wanted: its slot of the level, where the metadata is that it is under, and the row that errors name.
#[derive(Clone, Copy)]
pub struct Spot {
    pub slot: u32,
    pub metadata: u32,
    pub row: u32,
}

/// Values one after the other.
#[derive(Default)]
pub struct Values {
    pub bytes: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<i32>,
}

impl Values {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The value of this number.
    pub fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end as usize);
        self.ends.get(number).and_then(|&end| self.bytes.get(start..end as usize)).unwrap_or(&[])
    }
}

/// Writes values of one level, and of all below it. Holds what is remembered between blocks.
pub struct Reconstructor {
    block: Block,
    /// Values that were not too much for one block.
    rows: usize,
}

impl Reconstructor {
    pub fn new(level: &Level) -> Self {
        Reconstructor { block: Block::new(level), rows: BLOCK }
    }

    /// Appends the values of the level at these slots; `level` is the one that this was made for. Without `metadata`
    /// no value names a field.
    pub fn write(
        &mut self,
        level: &Level,
        metadata: Option<&BinaryViewArray>,
        spots: &[Spot],
        out: &mut Values,
    ) -> Result<()> {
        out.ends.reserve(spots.len());
        let mut left = spots;
        while let Some(first) = left.first() {
            let (now, later) = left.split_at(self.rows.min(left.len()));
            match self.write_block(level, metadata, (now, later.len()), out) {
                Ok(()) => {
                    left = later;
                    self.rows = BLOCK.min(self.rows + self.rows / 4 + 1);
                }
                Err(e) if now.len() == 1 => return Err(e.row(first.row.into())),
                Err(_) => self.rows = now.len() / 2,
            }
        }
        Ok(())
    }

    /// `spots`: those of the block, and how many more there are. Appends nothing where it fails.
    fn write_block(
        &mut self,
        level: &Level,
        metadata: Option<&BinaryViewArray>,
        spots: (&[Spot], usize),
        out: &mut Values,
    ) -> Result<()> {
        let mut part = std::mem::take(&mut self.block.parts[level.number]);
        let done = self.fill(level, metadata, spots, &mut part, out);
        self.block.parts[level.number] = part;
        done
    }

    fn fill(
        &mut self,
        level: &Level,
        metadata: Option<&BinaryViewArray>,
        (spots, left): (&[Spot], usize),
        part: &mut Part,
        out: &mut Values,
    ) -> Result<()> {
        self.load(level, metadata, spots, part)?;
        part.slots.clear();
        part.slots.extend(spots.iter().map(|spot| spot.slot));
        self.block.measure(level, part, false)?;
        let start = out.bytes.len();
        let end = part.sizes.iter().try_fold(start as u64, |end, &size| end.checked_add(size.into()));
        let end = end.and_then(|end| i32::try_from(end).ok()).ok_or_else(too_large)?;
        let mut at = start as i32;
        part.starts.clear();
        for &size in &part.sizes {
            part.starts.push(at as u32 - start as u32);
            at += size as i32;
            out.ends.push(at);
        }
        if end as usize > out.bytes.capacity() {
            // Room for the rest, if it is like this block.
            let more = (end as usize - start).saturating_mul(left.div_ceil(spots.len().max(1)) + 1);
            out.bytes.reserve(more.min(MAX_BYTES - start));
        }
        out.bytes.resize(end as usize, 0);
        self.block.write(level, part, &mut out.bytes[start..]);
        Ok(())
    }

    /// The numbers of the metadata of each value.
    fn load(
        &mut self,
        level: &Level,
        metadata: Option<&BinaryViewArray>,
        spots: &[Spot],
        part: &mut Part,
    ) -> Result<()> {
        let block = &mut self.block;
        (block.values, block.wide, block.one) = (spots.len(), false, None);
        part.names.clear();
        let forgotten = block.names.forgotten();
        block.kinds.clear();
        let (mut last, mut number) = (None, 0);
        for spot in spots {
            let row = spot.metadata as usize;
            let view = metadata.and_then(|metadata| metadata.views().get(row)).copied().unwrap_or(0);
            if metadata.is_some_and(|metadata| metadata.is_null(row)) {
                let message = "a variant that is not null has no metadata";
                return Err(Error::new(Code::MalformedShredding, message)
                    .rule(2)
                    .path(format!("{}.metadata", level.path)));
            }
            // Equal views are equal bytes; rows that share one mostly follow each other.
            if last != Some(view) {
                let bytes = metadata.map_or(NO_NAMES, |metadata| metadata.value(row));
                let found = block.names.load(bytes).map_err(|e| e.path(&level.path))?;
                (last, number) = (Some(view), found);
                if block.kinds.len() <= MAX_KINDS && !block.kinds.contains(&number) {
                    block.kinds.push(number);
                    block.wide |= block.names.current().len() > 256;
                }
            }
            part.names.push(number);
        }
        if forgotten != block.names.forgotten() && spots.len() > 1 {
            return Err(Error::new(Code::TooLarge, "several values have more names than are kept at once"));
        }
        match block.kinds.as_slice() {
            [one] => block.one = Some(*one),
            kinds if kinds.len() > MAX_KINDS => {
                block.kinds.clear();
                block.wide = true;
            }
            _ => {}
        }
        Ok(())
    }
}
