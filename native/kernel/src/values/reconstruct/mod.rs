//! Storage layout → unshredded variant: the rows of a shredded column as (metadata, value) again.
//!
//! The `metadata` of a row is kept as it is: it names every field, shredded or not (rules 19, 20). Values are put
//! together row by row: `fields` says which fields an object of a row has, 64 rows at a time; `walk` goes over them and
//! finds whatever is wrong; `variant` writes each value once, where it stays, and `text` as JSON. Rows that have the same
//! levels (`outlines`, `seen`) become Variants by a template instead (`by_template`, `template`, `leaves`, `stamp`),
//! which leaves to the walk what is no typed leaf and no simple residual. Columns of the early layout have no templates.
//! Field ids are resolved once per distinct metadata. Recursion is over the tree, never over data: whatever stands in a
//! `value` is validated and copied as bytes.

mod bits;
mod by_template;
mod fields;
mod leaves;
mod metadata;
mod outlines;
mod seen;
mod stamp;
mod template;
mod text;
mod variant;
mod walk;

pub use metadata::Metadata;
pub use text::JsonText;
pub use variant::VariantBytes;
pub use walk::Writer;

use std::any::Any;

use arrow_array::cast::AsArray;
use arrow_array::{BinaryArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

use crate::codec::known::KnownNames;
use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::layout::standard::METADATA;
use crate::values::bytes::build_variant;
use crate::values::level::{Level, VariantColumn};
use crate::values::reconstruct::by_template::{AHEAD, ByTemplate};
use crate::values::reconstruct::walk::{Tools, Walk};
use crate::values::standardize::standardize_column;

/// Reconstructs every row; null rows stay null. `path` names the column in errors.
pub fn unshred(array: &StructArray, path: &str) -> Result<StructArray> {
    let metadata = array.column_by_name(METADATA).and_then(|metadata| metadata.as_binary_opt::<i32>());
    if let Some(metadata) = metadata.filter(|_| Layout::of(array.fields()) == Layout::Standard) {
        return unshred_levels(&VariantColumn::open_levels(array, path)?, Metadata::Plain(metadata));
    }
    let column = VariantColumn::open(array, path)?;
    let column = if column.root.layout == Layout::Early { standardize_column(&column)?.column } else { column };
    let metadata = column.metadata.as_ref().ok_or_else(|| {
        let message = format!("the variant column {} has no metadata", column.root.path);
        Error::new(Code::MalformedShredding, message).rule(2).path(&column.root.path)
    })?;
    unshred_levels(&column, Metadata::Views(metadata))
}

/// The same for levels whose values are all under the row's metadata.
fn unshred_levels(column: &VariantColumn, metadata: Metadata<'_>) -> Result<StructArray> {
    let root = &column.root;
    let rows = (0..column.len as u32).filter(|&row| !column.is_null(row as usize));
    let spots: Vec<Spot> = rows.map(|row| Spot { slot: row, metadata: row, row }).collect();
    let mut values = Values::to(VariantBytes::default());
    let mut reconstructor = Reconstructor::new(root);
    reconstructor.write(root, metadata, &spots, &mut values)?;
    let (bytes, ends) = (values.bytes.finish(), spread(&column.nulls, values.ends));
    let values = BinaryArray::try_new(OffsetBuffer::new(ScalarBuffer::from(ends)), bytes.into(), None)?;
    let metadata = metadata.plain(column.len, column.nulls.as_ref(), reconstructor.misled())?;
    build_variant(&metadata, values, column.nulls.clone())
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

/// A value that is wanted: its slot of the level, where the metadata is that it is under, and the row that errors name.
#[derive(Clone, Copy)]
pub struct Spot {
    pub slot: u32,
    pub metadata: u32,
    pub row: u32,
}

/// Values one after the other.
pub struct Values<W> {
    bytes: W,
    /// Where each ends.
    ends: Vec<i32>,
}

impl<W: Writer> Values<W> {
    /// None yet.
    pub fn to(bytes: W) -> Self {
        Values { bytes, ends: Vec::new() }
    }

    pub fn clear(&mut self) {
        self.bytes.truncate(0);
        self.ends.clear();
    }

    /// The value of this number.
    pub fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end as usize);
        self.ends.get(number).map_or(&[], |&end| self.bytes.get(start, end as usize))
    }
}

/// Before so many rows no template pays.
const TEMPLATES_FROM: usize = 32;

/// Writes values of one level, and of all below it. Holds what is remembered between rows.
pub struct Reconstructor {
    names: KnownNames,
    tools: Tools,
    /// Once there were [some](TEMPLATES_FROM) rows at once.
    templates: Option<ByTemplate>,
    /// How often metadata were forgotten.
    forgotten: usize,
}

impl Reconstructor {
    pub fn new(level: &Level) -> Self {
        let mut names = KnownNames::default();
        want(level, &mut names);
        Reconstructor { names, tools: Tools::of(level), templates: None, forgotten: 0 }
    }

    /// Whether a metadata of them said wrongly that its names are sorted.
    pub fn misled(&self) -> bool {
        self.names.misled()
    }

    /// Appends the values of the level at these slots; `level` is the one that this was made for.
    pub fn write<W: Writer>(
        &mut self,
        level: &Level,
        metadata: Metadata<'_>,
        spots: &[Spot],
        out: &mut Values<W>,
    ) -> Result<()> {
        out.ends.reserve(spots.len());
        let (mut last, mut number, start) = (0, 0, out.bytes.written());
        for (done, spot) in spots.iter().enumerate() {
            out.bytes.ready(start, done, spots.len() - done);
            // Rows that share a view mostly follow each other.
            if done == 0 || !metadata.is_same(last, spot.metadata) {
                number = self.load(level, metadata, spot).map_err(|e| e.row(spot.row.into()))?;
            }
            last = spot.metadata;
            if done == TEMPLATES_FROM && self.templates.is_none() && (&out.bytes as &dyn Any).is::<VariantBytes>() {
                self.templates = ByTemplate::of(level);
            }
            let before = out.bytes.written();
            if let Err(e) = self.row(level, &spots[done..], number, &mut out.bytes) {
                self.tools.forget();
                out.bytes.truncate(before);
                return Err(e.row(spot.row.into()));
            }
            out.ends.push(i32::try_from(out.bytes.written()).map_err(|_| Error::no_room())?);
        }
        Ok(())
    }

    /// Appends the value of the first of these.
    #[inline]
    fn row<W: Writer>(&mut self, level: &Level, spots: &[Spot], number: u32, to: &mut W) -> Result<()> {
        let Reconstructor { names, tools, templates, .. } = self;
        let names = names.of(number);
        let slot = |at: usize| spots.get(at).map(|spot: &Spot| spot.slot);
        let (first, to_any) = (slot(0).unwrap_or(0) as usize, to as &mut dyn Any);
        if let Some(templates) = templates
            && !templates.rests()
            && let Some(to) = to_any.downcast_mut()
            && templates.write(level, (first, slot(AHEAD)), (number, &names), tools, to)?
        {
            return Ok(());
        }
        Walk { tools, names, to }.value(level, first)
    }

    fn load(&mut self, level: &Level, metadata: Metadata<'_>, spot: &Spot) -> Result<u32> {
        let row = spot.metadata as usize;
        if metadata.is_null(row) {
            let message = "a variant that is not null has no metadata";
            return Err(Error::new(Code::MalformedShredding, message).rule(2).path(format!("{}.metadata", level.path)));
        }
        let number = self.names.load(metadata.get(row)).map_err(|e| e.path(&level.path))?;
        // Their numbers stand for others now.
        if self.forgotten != self.names.forgotten() {
            self.forgotten = self.names.forgotten();
            self.templates.iter_mut().for_each(ByTemplate::clear);
        }
        Ok(number)
    }
}

/// Announces the fields below a level.
pub fn want(level: &Level, names: &mut KnownNames) {
    for field in level.object.iter().flat_map(|object| &object.fields) {
        names.want(&field.name, field.level.number);
        want(&field.level, names);
    }
    if let Some(array) = &level.array {
        want(&array.element, names);
    }
}
