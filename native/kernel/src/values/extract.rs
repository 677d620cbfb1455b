//! One path of a variant column as a column of its own: each row's value is taken from the typed leaf or from
//! the residual, and cast to the type asked for.
//!
//! A path that is in no value gives null; so does a JSON null. A path that ends on a shredded object or array
//! reconstructs that subtree. `failed` marks the values that are there and have no counterpart in the type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, make_array, new_null_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_data::transform::{Capacities, MutableArrayData};
use arrow_schema::{DataType, Field};
use arrow_select::nullif::nullif;

use crate::codec::decode::VariantDecoder;
use crate::codec::head::scalar;
use crate::codec::metadata::NO_NAMES;
use crate::error::Result;
use crate::item::Target;
use crate::json::print::push_scalar;
use crate::json::variant::VariantPrinter;
use crate::layout::Layout;
use crate::layout::standard::mark;
use crate::names::Names;
use crate::path::{Step, levels};
use crate::tape::{Scalar, Tape};
use crate::text::zone::Zone;
use crate::values::bytes::{ByteColumn, TextColumn, build_variant};
use crate::values::cast::CastBuilder;
use crate::values::coded::CodedTexts;
use crate::values::find::{Finder, Found};
use crate::values::leaf::{Leaf, LeafValues};
use crate::values::level::{Level, VariantColumn};
use crate::values::nested_cast::{NestedBuilder, is_nested};
use crate::values::reconstruct::{JsonText, VariantBytes};

pub struct Extracted {
    pub values: ArrayRef,
    pub failed: BooleanArray,
    variant: bool,
}

impl Extracted {
    pub fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.values.data_type().clone(), true);
        if self.variant { mark(field) } else { field }
    }

    /// The same without codes.
    pub fn written(self) -> Result<Self> {
        match CodedTexts::open(&self.values) {
            Some(coded) => Ok(Extracted { values: coded.written()?, ..self }),
            None => Ok(self),
        }
    }
}

/// A residual that holds a value in one row of so many, or in fewer, is looked at in these rows alone.
const FEW: usize = 4;

/// The values at a path. Texts may come as codes of a dictionary.
pub fn extract_path(column: &VariantColumn, steps: &[Step], target: &Target, timezone: &str) -> Result<Extracted> {
    let mut finder = Finder::new(column, steps);
    match target {
        Target::Variant => extract_variant(column, &mut finder),
        Target::Json => extract_json(column, &mut finder, timezone),
        Target::Type(wanted) if is_nested(wanted) => extract_nested(column, &mut finder, wanted, timezone),
        Target::Type(wanted) => match typed(column, steps) {
            Some(typed) => extract_typed(column, &mut finder, &typed, wanted, timezone),
            None => extract_cast(column, &mut finder, wanted, 0..column.len, timezone),
        },
    }
}

/// A level whose typed leaf answers a path in most rows.
struct Typed<'a> {
    level: &'a Level,
    /// Where the path leads to the level at all.
    nulls: Option<NullBuffer>,
    /// The rows of which the residual has to be looked at, and what is there.
    untyped: Vec<usize>,
}

/// The level where the path ends, when all that its residual holds is in few rows.
fn typed<'a>(column: &'a VariantColumn, steps: &[Step]) -> Option<Typed<'a>> {
    let levels = levels(&column.root, steps);
    if levels.len() <= steps.len() || steps.iter().any(|step| matches!(step, Step::Index(_))) {
        return None;
    }
    let mut nulls = column.nulls.clone();
    for pair in levels.windows(2) {
        let (level, field) = (pair[0], pair[1]);
        // Residuals that were read although the path does not need them (another item does) are no obstacle as long as
        // they obey the rules; whether they do is checked by whoever reconstructs the column. But an early residual may
        // hold a shredded field, and a level of several shapes has rules to be checked.
        if level.layout == Layout::Early && holds_values(level) || level.has_several_shapes() {
            return None;
        }
        nulls = NullBuffer::union(nulls.as_ref(), level.object.as_ref().and_then(|object| object.nulls.as_ref()));
        nulls = NullBuffer::union(nulls.as_ref(), field.nulls.as_ref());
    }
    let level = levels.last()?;
    if level.object.is_some()
        || level.array.is_some()
        || level.has_several_shapes()
        || level.layout == Layout::Early && (level.leaf.is_none() || holds_values(level))
    {
        return None;
    }
    let untyped = match &level.value {
        Some(values) if (values.len() - values.null_count()) > values.len() / FEW => return None,
        Some(values) => match values.nulls() {
            Some(there) => there.valid_indices().collect(),
            None => (0..values.len()).collect(),
        },
        None => Vec::new(),
    };
    Some(Typed { level, nulls, untyped })
}

/// The typed leaf as one column, and row by row what the residual holds.
fn extract_typed(
    column: &VariantColumn,
    finder: &mut Finder<'_>,
    typed: &Typed<'_>,
    wanted: &DataType,
    timezone: &str,
) -> Result<Extracted> {
    let (values, failed) = match &typed.level.leaf {
        None => (new_null_array(wanted, column.len), None),
        Some(leaf) => cast_leaf(leaf, typed.nulls.as_ref(), wanted, timezone)?,
    };
    let failed = failed.unwrap_or_else(|| BooleanArray::new(BooleanBuffer::new_unset(column.len), None));
    if typed.untyped.is_empty() {
        return Ok(Extracted { values, failed, variant: false });
    }
    let Extracted { values, failed, .. } = Extracted { values, failed, variant: false }.written()?;
    let found = extract_cast(column, finder, wanted, typed.untyped.iter().copied(), timezone)?;
    let (whole, few) = (values.to_data(), found.values.to_data());
    let capacities = match wanted {
        DataType::Utf8 | DataType::Binary => {
            Capacities::Binary(column.len, Some([&whole, &few].iter().map(|data| data.buffers()[1].len()).sum()))
        }
        _ => Capacities::Array(column.len),
    };
    let mut merged = MutableArrayData::with_capacities(vec![&whole, &few], true, capacities);
    let (bits, _) = failed.into_parts();
    let mut failed = BooleanBufferBuilder::new(column.len);
    failed.append_buffer(&bits);
    let mut next = 0;
    for (at, &row) in typed.untyped.iter().enumerate() {
        merged.try_extend(0, next, row)?;
        merged.try_extend(1, at, at + 1)?;
        failed.set_bit(row, found.failed.value(at));
        next = row + 1;
    }
    merged.try_extend(0, next, column.len)?;
    let failed = BooleanArray::new(failed.finish(), None);
    Ok(Extracted { values: make_array(merged.freeze()), failed, variant: false })
}

/// A leaf where `nulls` is not null, cast, and which values failed; `None` where none can.
fn cast_leaf(
    leaf: &Leaf,
    nulls: Option<&NullBuffer>,
    wanted: &DataType,
    timezone: &str,
) -> Result<(ArrayRef, Option<BooleanArray>)> {
    let found = leaf.array.data_type();
    if found == wanted || widens(found, wanted) {
        let values = masked(&leaf.array, nulls)?;
        let values = match found {
            same if same == wanted => values,
            DataType::Int8 => widened(values.as_primitive::<Int8Type>(), wanted),
            DataType::Int16 => widened(values.as_primitive::<Int16Type>(), wanted),
            DataType::Int32 => widened(values.as_primitive::<Int32Type>(), wanted),
            _ => widened(values.as_primitive::<Int64Type>(), wanted),
        };
        return Ok((values, None));
    }
    if let LeafValues::Coded(coded) = &leaf.values {
        if wanted == &DataType::Utf8 {
            return Ok((masked(&leaf.array, nulls)?, None));
        }
        let coded = coded.masked(nulls);
        if coded.texts.len() <= coded.codes.len() {
            let mut casts = CastBuilder::new(wanted, Zone::parse(timezone)?)?;
            for text in coded.texts.iter().flatten() {
                casts.append(&Scalar::Str(text))?;
            }
            let (values, failed) = casts.finish();
            let (values, failed) = coded.spread(&values, &failed)?;
            return Ok((values, Some(failed)));
        }
    }
    let all = NullBuffer::union(nulls, leaf.array.nulls());
    let mut casts = CastBuilder::new(wanted, Zone::parse(timezone)?)?;
    for row in 0..leaf.array.len() {
        if all.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            casts.append_null();
        } else {
            casts.append(&leaf.scalar(row))?;
        }
    }
    let (values, failed) = casts.finish();
    Ok((values, Some(failed)))
}

/// The array with more nulls; its values are not validated again.
fn masked(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    let all = NullBuffer::union(nulls, array.nulls());
    match nulls {
        Some(nulls) if all.as_ref().map_or(0, NullBuffer::null_count) > array.null_count() => {
            Ok(nullif(array, &BooleanArray::new(!nulls.inner(), None))?)
        }
        _ => Ok(array.clone()),
    }
}

/// Numbers that become wider ones: no row fails.
fn widens(from: &DataType, to: &DataType) -> bool {
    let wider = to.is_signed_integer() && from.primitive_width() < to.primitive_width();
    from.is_signed_integer() && (wider || to == &DataType::Float64)
}

/// The integers as the wider numbers that `widens` says; `cast` would do it without optimisation (`native/Cargo.toml`).
fn widened<T: ArrowPrimitiveType<Native: Into<i64>>>(values: &PrimitiveArray<T>, wanted: &DataType) -> ArrayRef {
    match wanted {
        DataType::Int16 => Arc::new(values.unary::<_, Int16Type>(|v| v.into() as i16)),
        DataType::Int32 => Arc::new(values.unary::<_, Int32Type>(|v| v.into() as i32)),
        DataType::Int64 => Arc::new(values.unary::<_, Int64Type>(T::Native::into)),
        _ => Arc::new(values.unary::<_, Float64Type>(|v| v.into() as f64)),
    }
}

fn holds_values(level: &Level) -> bool {
    level.value.as_ref().is_some_and(|v| v.null_count() < v.len())
}

fn extract_variant(column: &VariantColumn, finder: &mut Finder<'_>) -> Result<Extracted> {
    let mut metadata = ByteColumn::new(column.len);
    let mut values = ByteColumn::new(column.len);
    let mut nulls = Vec::with_capacity(column.len);
    finder.each(0..column.len, Some(VariantBytes::default()), |finder, found| {
        let out = &mut values.bytes;
        // A leaf names no field: it needs nothing of the row's metadata, which was not validated for it.
        nulls.push(!matches!(found, Found::Missing));
        match found {
            Found::Missing | Found::Subtree(_) => {}
            Found::Leaf(leaf, at) => {
                leaf.write(at, out);
                metadata.bytes.extend_from_slice(NO_NAMES);
            }
            Found::Bytes { metadata: dictionary, value } => {
                finder.copy(dictionary, value, out)?;
                metadata.bytes.extend_from_slice(dictionary);
            }
            Found::Rebuilt { metadata: dictionary, value } => {
                out.extend_from_slice(value);
                metadata.bytes.extend_from_slice(dictionary);
            }
        }
        metadata.end_row()?;
        values.end_row()
    })?;
    if finder.misled() {
        metadata.unmark();
    }
    let values = build_variant(&metadata.finish()?, values.finish()?, Some(NullBuffer::from(nulls)))?;
    let failed = BooleanArray::new(BooleanBuffer::new_unset(column.len), None);
    Ok(Extracted { values: Arc::new(values), failed, variant: true })
}

/// The texts of `to_json`. No value fails: what has a place in a Variant has a text.
fn extract_json(column: &VariantColumn, finder: &mut Finder<'_>, timezone: &str) -> Result<Extracted> {
    let zone = Zone::parse(timezone)?;
    let mut texts = TextColumn::new(column.len);
    let mut printer = VariantPrinter::default();
    finder.each(0..column.len, Some(JsonText::new(zone)), |_, found| {
        match found {
            Found::Missing | Found::Subtree(_) => return texts.append_null(),
            Found::Leaf(leaf, at) => push_scalar(&mut texts.row, &leaf.scalar(at), &zone),
            Found::Bytes { metadata, value } => printer.print(metadata, value, &zone, &mut texts.row)?,
            Found::Rebuilt { value, .. } => return texts.append(value),
        }
        texts.end_row()
    })?;
    let values = Arc::new(texts.finish());
    let failed = BooleanArray::new(BooleanBuffer::new_unset(column.len), None);
    Ok(Extracted { values, failed, variant: false })
}

fn extract_cast(
    _column: &VariantColumn,
    finder: &mut Finder<'_>,
    wanted: &DataType,
    rows: impl Iterator<Item = usize>,
    timezone: &str,
) -> Result<Extracted> {
    let zone = Zone::parse(timezone)?;
    let mut casts = CastBuilder::new(wanted, zone)?;
    let mut printer = VariantPrinter::default();
    // An object or array is text or nothing: only the text is worth the reconstruction.
    let text = (wanted == &DataType::Utf8).then(|| JsonText::new(zone));
    finder.each(rows, text, |_, found| {
        match found {
            Found::Missing => casts.append_null(),
            Found::Leaf(leaf, at) => {
                casts.append(&leaf.scalar(at))?;
            }
            Found::Bytes { metadata, value } => match scalar(value) {
                Some(scalar) => {
                    casts.append(&scalar)?;
                }
                None => casts.append_text(|zone, out| printer.print(metadata, value, zone, out))?,
            },
            Found::Subtree(_) => casts.append_failed(),
            Found::Rebuilt { value, .. } => casts.append_text(|_, out| {
                out.extend_from_slice(value);
                Ok(())
            })?,
        }
        Ok(())
    })?;
    let (values, failed) = casts.finish();
    Ok(Extracted { values, failed, variant: false })
}

/// Arrays, maps and structs: what a row has is put together, decoded and cast.
fn extract_nested(
    column: &VariantColumn,
    finder: &mut Finder<'_>,
    wanted: &DataType,
    timezone: &str,
) -> Result<Extracted> {
    let mut builder = NestedBuilder::new(wanted, Zone::parse(timezone)?)?;
    let mut failed = BooleanBufferBuilder::new(column.len);
    let (mut decoder, mut tape, mut names) = (VariantDecoder::new(), Tape::default(), Names::new());
    let mut leaf_bytes = Vec::new();
    finder.each(0..column.len, Some(VariantBytes::default()), |_, found| {
        let found = match found {
            Found::Missing | Found::Subtree(_) => None,
            Found::Leaf(leaf, at) => {
                leaf_bytes.clear();
                leaf.write(at, &mut leaf_bytes);
                Some((NO_NAMES, leaf_bytes.as_slice()))
            }
            Found::Bytes { metadata, value } | Found::Rebuilt { metadata, value } => Some((metadata, value)),
        };
        let fits = match found {
            None => {
                builder.append_null()?;
                true
            }
            Some((metadata, value)) => {
                if names.is_full() {
                    names.truncate(0);
                }
                decoder.decode(metadata, value, &mut tape, &mut names)?;
                builder.append(&tape.view(value, &names), 0)?
            }
        };
        failed.append(!fits);
        Ok(())
    })?;
    let failed = BooleanArray::new(failed.finish(), None);
    Ok(Extracted { values: builder.finish()?, failed, variant: false })
}
