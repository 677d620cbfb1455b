//! How a file shreds its variants: every node of the tree with its type, how many of its values are typed, how many lie
//! in its residual, of other types or as rare fields of typed objects, and what both cost on disk.
//!
//! Counts come from the footer where it has them (the null counts of the leaves), otherwise from decoding one
//! column of the node.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::file::metadata::RowGroupMetaData;

use crate::error::Result;
use crate::layout::Layout;
use crate::layout::standard::is_variant;
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::level::{LevelColumns, layout};
use crate::parquet::schema::Node;
use crate::path::{Shredded, push_key};

#[derive(Default)]
struct Report {
    columns: Vec<String>,
    paths: Vec<String>,
    types: Vec<String>,
    typed_rows: Vec<i64>,
    residual_rows: Vec<i64>,
    other_rows: Vec<i64>,
    typed_bytes: Vec<i64>,
    residual_bytes: Vec<i64>,
}

impl FileReader {
    /// One row a node: `column`, `path` (RFC 9535 normalized), `type`, `typed_rows`, `residual_rows`,
    /// `other_rows` (those of the residual that are not typed too), `typed_bytes` and `residual_bytes` (compressed; those
    /// of an object or array are the sum of its children).
    pub fn inspect(self: &Arc<Self>) -> Result<RecordBatch> {
        guard(self.name(), || {
            let mut report = Report::default();
            for node in self.columns() {
                self.inspect_column(node, node.field.name(), &[], &mut report)?;
            }
            report.finish()
        })
    }

    fn inspect_column(self: &Arc<Self>, node: &Node, name: &str, above: &[Move], report: &mut Report) -> Result<()> {
        let mut moves = above.to_vec();
        moves.push(Move::Child(node.field.name().clone()));
        if is_variant(&node.field) {
            return self.inspect_level(node, layout(node), name, "$", &moves, report);
        }
        if node.is_struct() {
            for child in &node.children {
                self.inspect_column(child, &format!("{name}.{}", child.field.name()), &moves, report)?;
            }
        }
        Ok(())
    }

    fn inspect_level(
        self: &Arc<Self>,
        node: &Node,
        layout: Layout,
        column: &str,
        path: &str,
        at: &[Move],
        report: &mut Report,
    ) -> Result<()> {
        let columns = LevelColumns::of(node, layout);
        report.columns.push(column.to_string());
        report.paths.push(path.to_string());
        let mut types: Vec<String> = Vec::new();
        types.extend(columns.object.map(|_| "object".to_string()));
        types.extend(columns.array.map(|_| "array".to_string()));
        types.extend(columns.leaf.map(|leaf| leaf.field.data_type().to_string()));
        report.types.push(if types.is_empty() { "variant".to_string() } else { types.join(" or ") });
        let with =
            |child: &Node| at.iter().cloned().chain([Move::Child(child.field.name().clone())]).collect::<Vec<_>>();
        let typed = [columns.object, columns.array, columns.leaf];
        let typed: Vec<&Node> = typed.into_iter().flatten().collect();
        let rows = typed.iter().map(|typed| self.count(typed, &with(typed))).sum::<Result<i64>>()?;
        report.typed_rows.push(rows);
        let residual = columns.residual.map_or(Ok(0), |value| self.count(value, &with(value)))?;
        report.residual_rows.push(residual);
        report.other_rows.push(match (columns.object, columns.residual) {
            (Some(object), Some(value)) if residual > 0 => self.others(object, value, at)?,
            _ => residual,
        });
        let mut residual = columns.residual.map_or(0, |v| self.bytes(v));
        if path == "$" {
            residual += node.child("metadata").map_or(0, |m| self.bytes(m));
        }
        report.residual_bytes.push(residual);
        report.typed_bytes.push(typed.iter().map(|t| self.bytes(t)).sum());
        if let Some(object) = columns.object {
            for field in &object.children {
                let name = field.field.name();
                let mut below = with(object);
                below.push(Move::Child(name.clone()));
                let mut path = path.to_string();
                push_key(&mut path, name);
                self.inspect_level(field, layout, column, &path, &below, report)?;
            }
        }
        if let (Some(array), Some(element)) = (columns.array, columns.element()) {
            let mut below = with(array);
            below.push(Move::Elements);
            self.inspect_level(element.group, layout, column, &format!("{path}[*]"), &below, report)?;
        }
        Ok(())
    }

    fn bytes(&self, node: &Node) -> i64 {
        let groups = self.metadata().row_groups().iter();
        groups.flat_map(|g| g.columns().get(node.leaves.clone())).flatten().map(|c| c.compressed_size()).sum()
    }

    /// Non-null values of a node, over all rows or elements.
    fn count(self: &Arc<Self>, node: &Node, moves: &[Move]) -> Result<i64> {
        let mut total = 0;
        for (index, group) in self.metadata().row_groups().iter().enumerate() {
            if node.is_leaf()
                && let Some(values) = stated(group, node.leaves.start)
            {
                total += values;
                continue;
            }
            let Some(leaf) = cheapest(node, group) else { continue };
            self.each_batch(index, &[leaf], |batch| {
                let rows: ArrayRef = Arc::new(StructArray::from(batch));
                if let Some(array) = follow(rows, moves) {
                    total += (array.len() - array.null_count()) as i64;
                }
                Ok(())
            })?;
        }
        Ok(total)
    }

    /// Values of a place with typed objects that are none: they stand in its residual as a whole.
    fn others(self: &Arc<Self>, object: &Node, residual: &Node, at: &[Move]) -> Result<i64> {
        let mut total = 0;
        for (index, group) in self.metadata().row_groups().iter().enumerate() {
            let value = residual.leaves.start;
            let Some(leaf) = cheapest(object, group).filter(|_| stated(group, value) != Some(0)) else { continue };
            self.each_batch(index, &[value, leaf], |batch| {
                let rows: ArrayRef = Arc::new(StructArray::from(batch));
                let place = follow(rows, at);
                let child = |node: &Node| place.as_ref()?.as_struct_opt()?.column_by_name(node.field.name());
                if let (Some(value), Some(object)) = (child(residual), child(object)) {
                    total += (0..value.len()).filter(|&row| value.is_valid(row) && object.is_null(row)).count() as i64;
                }
                Ok(())
            })?;
        }
        Ok(total)
    }
}

/// The values of a leaf that are not null, where the footer states how many are.
fn stated(group: &RowGroupMetaData, leaf: usize) -> Option<i64> {
    let column = group.columns().get(leaf)?;
    Some(column.num_values() - column.statistics()?.null_count_opt()? as i64)
}

/// The leaf below a node that takes the fewest bytes.
fn cheapest(node: &Node, group: &RowGroupMetaData) -> Option<usize> {
    let bytes = |leaf: &usize| group.columns().get(*leaf).map_or(i64::MAX, |c| c.compressed_size());
    node.leaves.clone().min_by_key(bytes)
}

/// A step down the arrays of a decoded column.
#[derive(Clone)]
enum Move {
    Child(String),
    Elements,
}

fn follow(mut array: ArrayRef, moves: &[Move]) -> Option<ArrayRef> {
    for step in moves {
        array = match step {
            Move::Child(name) => array.as_struct_opt()?.column_by_name(name)?.clone(),
            Move::Elements => match array.data_type() {
                DataType::List(_) => array.as_list::<i32>().values().clone(),
                DataType::LargeList(_) => array.as_list::<i64>().values().clone(),
                _ => return None,
            },
        };
    }
    Some(array)
}

impl Report {
    fn finish(self) -> Result<RecordBatch> {
        let texts = [("column", self.columns), ("path", self.paths), ("type", self.types)];
        let numbers = [
            ("typed_rows", self.typed_rows),
            ("residual_rows", self.residual_rows),
            ("other_rows", self.other_rows),
            ("typed_bytes", self.typed_bytes),
            ("residual_bytes", self.residual_bytes),
        ];
        let mut fields = Vec::new();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (name, values) in texts {
            fields.push(Field::new(name, DataType::Utf8, false));
            columns.push(Arc::new(StringArray::from(values)));
        }
        for (name, values) in numbers {
            fields.push(Field::new(name, DataType::Int64, false));
            columns.push(Arc::new(Int64Array::from(values)));
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}
