//! Where a path leads in a row, and what the row's metadata still holds of it.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, Field, Schema};

use crate::batch::values::parts_of;
use crate::codec::decode::VariantDecoder;
use crate::error::{Code, Error, Result};
use crate::names::{NO_NAME, Names};
use crate::path::Step;
use crate::tape::{Kind, Tape};

/// Where a path ends in a tape.
pub enum Place {
    /// At this node.
    Found(usize),
    /// The last container lacks the step of this number.
    Absent(usize),
    /// A value on the way is no container, or one of the other kind.
    Mismatch,
}

/// Follows the steps from the root; `parents` are the containers on the way.
pub fn find(tape: &Tape, names: &Names, steps: &[Step], parents: &mut Vec<usize>) -> Place {
    parents.clear();
    let mut at = 0;
    for (depth, step) in steps.iter().enumerate() {
        let kind = tape.nodes.get(at).map(|node| node.kind);
        if !matches!((step, kind), (Step::Key(_), Some(Kind::Object)) | (Step::Index(_), Some(Kind::Array))) {
            return Place::Mismatch;
        }
        parents.push(at);
        match child(tape, names, at, step) {
            Some(child) => at = child,
            None => return Place::Absent(depth),
        }
    }
    Place::Found(at)
}

fn child(tape: &Tape, names: &Names, container: usize, step: &Step) -> Option<usize> {
    let node = tape.nodes.get(container)?;
    let name = match step {
        Step::Key(key) => names.find(key)?,
        Step::Index(_) => NO_NAME,
    };
    let mut at = container + 1;
    for index in 0..node.a as usize {
        let child = tape.nodes.get(at)?;
        match step {
            Step::Key(_) if child.name == name => return Some(at),
            Step::Index(wanted) if *wanted == index => return Some(at),
            _ => at = child.next(at),
        }
    }
    None
}

/// Whether the metadata may hold the last name of a path although nothing in the row has it.
pub fn is_unused(tape: &Tape, names: &Names, metadata: &[u8], steps: &[Step]) -> bool {
    let Some(Step::Key(key)) = steps.last() else { return false };
    if key.is_empty() || memchr::memmem::find(metadata, key.as_bytes()).is_none() {
        return false;
    }
    let name = names.find(key).unwrap_or(NO_NAME);
    name == NO_NAME || tape.nodes.iter().all(|node| node.name != name)
}

/// Where a path stands in column 0, unshredded Variants: `value`, whether it leads to a value, and `name`, whether the
/// metadata holds its last key although nothing in the row has it.
pub fn traces(batch: &RecordBatch, steps: &[Step]) -> Result<RecordBatch> {
    let missing = || Error::new(Code::InvalidArgument, "the batch has too few columns");
    let (metadata, values, nulls) = parts_of(batch.columns().first().ok_or_else(missing)?)?;
    let (mut decoder, mut names, mut tape) = (VariantDecoder::new(), Names::default(), Tape::default());
    let mut parents = Vec::new();
    let (mut found, mut named) = (BooleanBufferBuilder::new(values.len()), BooleanBufferBuilder::new(values.len()));
    for row in 0..values.len() {
        let (mut value, mut name) = (false, false);
        if nulls.as_ref().is_none_or(|n| n.is_valid(row)) {
            if names.is_full() {
                names.truncate(0);
            }
            let bytes = metadata.value(row);
            decoder.decode(bytes, values.value(row), &mut tape, &mut names).map_err(|e| e.row(row as u64))?;
            value = matches!(find(&tape, &names, steps, &mut parents), Place::Found(_));
            name = !value && is_unused(&tape, &names, bytes, steps);
        }
        found.append(value);
        named.append(name);
    }
    let fields = vec![Field::new("value", DataType::Boolean, false), Field::new("name", DataType::Boolean, false)];
    let columns: Vec<ArrayRef> =
        vec![Arc::new(BooleanArray::new(found.finish(), None)), Arc::new(BooleanArray::new(named.finish(), None))];
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
