//! The footer's own bounds against the rows: minimum, maximum and null count of a row group (statistics) and of its
//! pages (column index), for every leaf column.
//!
//! A bound holds when no value lies beyond it; one that is wider than it needs to be, or absent, is no violation. NaN
//! lies beyond nothing and -0.0 equals 0.0, as writers leave them out. Rule 41 rests on the null counts of `value`. Where
//! a list lies above, writers differ in what they count: there a row group must not state more nulls than there can be.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayAccessor, ArrayRef, downcast_primitive_array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::check::findings::{Findings, ViolationKind};
use crate::error::{Code, Result};
use crate::json::print::push_plain;
use crate::parquet::bounds::{Bound, Span, chunk_bound, page_bound, trusted};
use crate::parquet::file::FileReader;
use crate::parquet::physical::raw_array;
use crate::parquet::schema::Node;
use crate::text::zone::Zone;
use crate::values::leaf::Leaf;

const ROW_GROUP: ViolationKind = ("row_group_bound", None);
const PAGE: ViolationKind = ("page_bound", None);
const NULLS: ViolationKind = ("footer_null_count", None);
const PAGES: ViolationKind = ("page_index", None);

/// Characters of a value that a finding shows.
const SHOWN: usize = 80;

/// The bounds of one column's leaves in one row group, and what the rows were so far.
pub struct FooterBounds {
    leaves: Vec<CheckedLeaf>,
    first_row: u64,
}

struct CheckedLeaf {
    path: String,
    column: usize,
    in_list: bool,
    /// Of the chunk, nulls counted.
    values: i64,
    /// The row group first, then its pages.
    spans: Vec<Bounded>,
}

/// Rows of the row group with what is said of them.
struct Bounded {
    kind: ViolationKind,
    what: String,
    rows: Range<u64>,
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
    null_count: Option<i64>,
    /// Whether the column index takes the page for one without a value.
    null_page: bool,
    nulls: i64,
    /// Values that are not null.
    present: i64,
    /// What was reported of it: beyond the minimum, beyond the maximum.
    told: [bool; 2],
}

/// One level of a batch: where the slots of each row begin, where they are not the rows themselves, and what is null
/// above.
struct Level<'a> {
    node: &'a Node,
    array: ArrayRef,
    starts: Option<Vec<usize>>,
    nulls: Option<NullBuffer>,
}

impl FooterBounds {
    /// Reads the bounds; a page index that cannot be read is a finding.
    pub fn open(file: &FileReader, group: usize, node: &Node, findings: &mut Findings) -> Result<Self> {
        let columns: Vec<usize> = node.leaves.clone().collect();
        let pages = match file.load_pages(&[group], &columns, true) {
            Err(e) if e.code == Code::Io => return Err(e),
            Err(e) => {
                findings.add(PAGES, node.field.name(), None, || e.message.clone());
                false
            }
            Ok(()) => true,
        };
        let mut bounds = FooterBounds { leaves: Vec::new(), first_row: file.first_row(group) };
        let mut work = vec![(node, false)];
        while let Some((node, in_list)) = work.pop() {
            if node.is_leaf() {
                bounds.leaves.push(CheckedLeaf::open(file, group, node, in_list, pages, findings)?);
            }
            work.extend(node.children.iter().map(|child| (child, in_list || !node.is_struct())));
        }
        Ok(bounds)
    }

    /// Holds a batch against them: rows from `given` of the row group.
    pub fn add(&mut self, node: &Node, array: &ArrayRef, given: u64, findings: &mut Findings) -> Result<()> {
        let rows = array.len();
        let mut work = vec![Level { node, array: array.clone(), starts: None, nulls: None }];
        while let Some(Level { node, array, starts, nulls }) = work.pop() {
            let nulls = NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref());
            match array.data_type() {
                DataType::Struct(_) => {
                    for (child, column) in node.children.iter().zip(array.as_struct().columns()) {
                        let (array, starts, nulls) = (column.clone(), starts.clone(), nulls.clone());
                        work.push(Level { node: child, array, starts, nulls });
                    }
                }
                DataType::List(_) => {
                    let list = array.as_list::<i32>();
                    let starts = Some(inner_starts(starts, list.value_offsets(), rows));
                    let elements = node.children.iter().map(|child| (child, list.values().clone()));
                    work.extend(elements.map(|(node, array)| Level {
                        node,
                        array,
                        starts: starts.clone(),
                        nulls: None,
                    }));
                }
                DataType::Map(..) => {
                    let map = array.as_map();
                    let starts = Some(inner_starts(starts, map.value_offsets(), rows));
                    let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
                    let entries = node.children.iter().map(|child| (child, entries.clone()));
                    work.extend(entries.map(|(node, array)| Level {
                        node,
                        array,
                        starts: starts.clone(),
                        nulls: None,
                    }));
                }
                _ => {
                    let leaf = self.leaves.iter_mut().find(|leaf| leaf.column == node.leaves.start);
                    if let Some(leaf) = leaf {
                        leaf.add(&array, starts.as_deref(), nulls.as_ref(), rows, given, self.first_row, findings)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The row group is over: its null counts are known.
    pub fn finish(self, findings: &mut Findings) {
        for leaf in &self.leaves {
            for span in leaf.spans.iter().filter(|span| leaf.in_list && span.null_page && span.present > 0) {
                let row = Some(self.first_row + span.rows.start);
                let found =
                    || format!("{} is one of nulls in the column index, but has {} values", span.what, span.present);
                findings.add(NULLS, &leaf.path, row, found);
            }
            for span in leaf.spans.iter().filter(|span| !leaf.in_list || span.kind == ROW_GROUP) {
                let nulls = if leaf.in_list { leaf.values - span.present } else { span.nulls };
                let wrong = |&said: &i64| if leaf.in_list { said > nulls } else { said != nulls };
                let Some(said) = span.null_count.filter(wrong) else { continue };
                let row = Some(self.first_row + span.rows.start);
                findings.add(NULLS, &leaf.path, row, || {
                    format!("{} states {said} nulls, but there are {nulls}", span.what)
                });
            }
        }
    }
}

/// Where the slots of each row begin one list deeper.
fn inner_starts(starts: Option<Vec<usize>>, offsets: &[i32], rows: usize) -> Vec<usize> {
    let at = |slot: usize| offsets.get(slot).map_or(0, |&offset| offset as usize);
    match starts {
        Some(starts) => starts.into_iter().map(at).collect(),
        None => (0..=rows).map(at).collect(),
    }
}

impl CheckedLeaf {
    fn open(
        file: &FileReader,
        group: usize,
        node: &Node,
        in_list: bool,
        pages: bool,
        findings: &mut Findings,
    ) -> Result<Self> {
        let (column, metadata) = (node.leaves.start, file.metadata());
        let schema = metadata.file_metadata().schema_descr();
        let path = if column < schema.num_columns() { schema.column(column).path().string() } else { String::new() };
        let mut leaf = CheckedLeaf { path, column, in_list, values: 0, spans: Vec::new() };
        let Some(meta) = metadata.row_groups().get(group) else { return Ok(leaf) };
        leaf.values = meta.columns().get(column).map_or(0, |chunk| chunk.num_values());
        let (rows, first) = (meta.num_rows().max(0) as u64, file.first_row(group));
        let what = "the row group".to_string();
        leaf.said(ROW_GROUP, what, 0..rows, chunk_bound(meta, column, rows), metadata_trusts(file, node), node)?;
        let index = metadata.page_index_for_row_group(group);
        let Some(locations) = index.page_locations(column).filter(|_| pages) else { return Ok(leaf) };
        let starts: Vec<u64> = locations.iter().map(|page| page.first_row_index.max(0) as u64).collect();
        let rises = starts.first().is_none_or(|&start| start == 0) && starts.windows(2).all(|w| w[0] < w[1]);
        if !rises || starts.last().is_some_and(|&last| last >= rows) {
            findings.add(PAGES, &leaf.path, None, || format!("the pages begin at the rows {starts:?} of {rows}"));
            return Ok(leaf);
        }
        for (number, &start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(rows);
            let span = Span { group, first: first + start, rows: end - start };
            if let Some(bound) = page_bound(metadata, &span, start, column) {
                leaf.said(PAGE, format!("page {number}"), start..end, bound, metadata_trusts(file, node), node)?;
                let null_page = index.column_index(column).is_some_and(|pages| pages.is_null_page(number));
                leaf.spans.last_mut().into_iter().for_each(|span| span.null_page = null_page);
            }
        }
        Ok(leaf)
    }

    fn said(
        &mut self,
        kind: ViolationKind,
        what: String,
        rows: Range<u64>,
        bound: Bound,
        ordered: bool,
        node: &Node,
    ) -> Result<()> {
        let side = |raw: Option<&_>| -> Result<Option<ArrayRef>> {
            let (array, _) = raw_array(node.field.data_type(), std::iter::once(raw))?;
            Ok(Some(array).filter(|array| ordered && array.is_valid(0)))
        };
        let (min, max) = (side(bound.min.as_ref())?, side(bound.max.as_ref())?);
        let null_count = bound.null_count;
        let (null_page, nulls, present, told) = (false, 0, 0, [false; 2]);
        self.spans.push(Bounded { kind, what, rows, min, max, null_count, null_page, nulls, present, told });
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn add(
        &mut self,
        array: &ArrayRef,
        starts: Option<&[usize]>,
        nulls: Option<&NullBuffer>,
        rows: usize,
        given: u64,
        first_row: u64,
        findings: &mut Findings,
    ) -> Result<()> {
        for span in &mut self.spans {
            let from = span.rows.start.clamp(given, given + rows as u64) - given;
            let to = span.rows.end.clamp(given, given + rows as u64) - given;
            let slot = |row: u64| starts.map_or(row as usize, |s| s.get(row as usize).copied().unwrap_or(0));
            let (from, to) = (slot(from), slot(to));
            if from >= to || to > array.len() {
                continue;
            }
            let (values, nulls) = (array.slice(from, to - from), nulls.map(|n| n.slice(from, to - from)));
            let missing = nulls.as_ref().map_or(0, |n| n.null_count() as i64);
            span.nulls += missing;
            span.present += (to - from) as i64 - missing;
            for (side, below) in [(0, true), (1, false)] {
                let bound = if below { &span.min } else { &span.max };
                let Some(bound) = bound.as_ref().filter(|_| !span.told[side]) else { continue };
                let Some(at) = first_beyond(&values, bound, below, nulls.as_ref()) else { continue };
                span.told[side] = true;
                let row =
                    starts.map_or(from + at, |s| s.partition_point(|&start| start <= from + at).saturating_sub(1));
                let name = if below { "minimum" } else { "maximum" };
                let found =
                    || format!("{} has the {name} {}, but contains {}", span.what, shown(bound, 0), shown(&values, at));
                findings.add(span.kind, &self.path, Some(first_row + given + row as u64), found);
            }
        }
        Ok(())
    }
}

fn metadata_trusts(file: &FileReader, node: &Node) -> bool {
    trusted(file.metadata(), node.leaves.start, node.field.data_type())
}

/// The first value that lies beyond the bound. A type without an order has none.
fn first_beyond(values: &dyn Array, bound: &dyn Array, below: bool, nulls: Option<&NullBuffer>) -> Option<usize> {
    if values.data_type() != bound.data_type() {
        return None;
    }
    downcast_primitive_array! {
        (values, bound) => first(values, bound, below, nulls),
        (DataType::Boolean, _) => first(values.as_boolean(), bound.as_boolean(), below, nulls),
        (DataType::Utf8, _) => first(values.as_string::<i32>(), bound.as_string::<i32>(), below, nulls),
        (DataType::Binary, _) => first(values.as_binary::<i32>(), bound.as_binary::<i32>(), below, nulls),
        (DataType::FixedSizeBinary(_), _) => {
            first(values.as_fixed_size_binary(), bound.as_fixed_size_binary(), below, nulls)
        },
        _ => None,
    }
}

fn first<A: ArrayAccessor<Item: PartialOrd>>(
    values: A,
    bound: A,
    below: bool,
    nulls: Option<&NullBuffer>,
) -> Option<usize> {
    let bound = bound.value(0);
    (0..values.len()).find(|&at| {
        let value = values.value(at);
        (if below { value < bound } else { value > bound })
            && values.is_valid(at)
            && nulls.is_none_or(|nulls| nulls.is_valid(at))
    })
}

fn shown(array: &ArrayRef, at: usize) -> String {
    let mut text = Vec::new();
    if let Ok(leaf) = Leaf::open(array, "") {
        push_plain(&mut text, &leaf.scalar(at), &Zone::UTC);
    }
    let text = String::from_utf8_lossy(&text);
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.into_owned(),
    }
}
