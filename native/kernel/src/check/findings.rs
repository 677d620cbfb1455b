//! Violations, collected: of each kind the first few, and a count of all.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::error::Result;

/// A kind of violation: a stable word, and the rule of the checklist that it breaks, where it is one.
pub type ViolationKind = (&'static str, Option<u8>);

struct Violation {
    kind: ViolationKind,
    path: String,
    row_group: Option<usize>,
    row: Option<u64>,
    found: String,
}

/// Violations, the first `limit` of each kind kept.
pub struct Findings {
    limit: u64,
    kept: Vec<Violation>,
    pub totals: BTreeMap<ViolationKind, u64>,
    pub row_group: Option<usize>,
}

impl Findings {
    pub fn new(limit: u64) -> Self {
        Findings { limit, kept: Vec::new(), totals: BTreeMap::new(), row_group: None }
    }

    /// `row` counts in the file; `found` is made only for those that are kept.
    pub fn add(&mut self, kind: ViolationKind, path: &str, row: Option<u64>, found: impl FnOnce() -> String) {
        let total = self.totals.entry(kind).or_default();
        *total += 1;
        if *total <= self.limit {
            let (path, found) = (path.to_string(), found());
            self.kept.push(Violation { kind, path, row_group: self.row_group, row, found });
        }
    }

    pub fn take(&mut self) -> Result<RecordBatch> {
        let kept = std::mem::take(&mut self.kept);
        let text = |of: &dyn Fn(&Violation) -> &str| -> ArrayRef {
            Arc::new(kept.iter().map(|v| Some(of(v))).collect::<StringArray>())
        };
        let number = |of: &dyn Fn(&Violation) -> Option<i64>| -> ArrayRef {
            Arc::new(kept.iter().map(of).collect::<Int64Array>())
        };
        let columns = vec![
            text(&|v| v.kind.0),
            number(&|v| v.kind.1.map(i64::from)),
            text(&|v| &v.path),
            number(&|v| v.row_group.map(|group| group as i64)),
            number(&|v| v.row.map(|row| row as i64)),
            text(&|v| &v.found),
        ];
        let names = ["kind", "rule", "path", "row_group", "row", "found"];
        batch(&names, columns)
    }
}

pub fn batch(names: &[&str], columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    let fields = names.iter().zip(&columns).map(|(name, column)| {
        let nullable = matches!(*name, "rule" | "row_group" | "row");
        Field::new(*name, column.data_type().clone(), nullable)
    });
    debug_assert!(columns.iter().all(|c| matches!(c.data_type(), DataType::Utf8 | DataType::Int64)));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)?)
}
