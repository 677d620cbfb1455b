//! What is wrong with a file's variants, all of it: schema first, then every value of every row.
//!
//! Reading refuses what has no one meaning and stops at the first; this lists what a rule forbids, whether reading
//! tolerates it or not, and goes on. Memory is flat: one decoded batch of one column at a time, and of each kind of
//! violation the first few with a count of all.
//!
//! - `schema`: groups, their children, annotations and types (rules 1, 2, 12, 21, 29, 34)
//! - `values`: the rows (rules 3 to 16, 20, 22 to 37)
//! - `bounds`: the footer's bounds and null counts against the rows

mod bounds;
mod schema;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::DecodeResult;
use parquet::arrow::push_decoder::ParquetPushDecoder;

use crate::check::bounds::FooterBounds;
use crate::check::values::Walker;
use crate::error::{Code, Error, Result};
use crate::parquet::decoder::batch_size;
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;

/// Rows and bytes that are decoded at a time.
const ROWS: usize = 8192;
const BYTES: usize = 32 << 20;

/// A kind of violation: a stable word, and the rule of the checklist that it breaks, where it is one.
pub type Kind = (&'static str, Option<u8>);

/// A column of the file that cannot be decoded.
const UNREADABLE: Kind = ("unreadable", None);

struct Violation {
    kind: Kind,
    path: String,
    row_group: Option<usize>,
    row: Option<u64>,
    found: String,
}

/// Violations, the first `limit` of each kind kept.
pub struct Findings {
    limit: u64,
    kept: Vec<Violation>,
    totals: BTreeMap<Kind, u64>,
    row_group: Option<usize>,
}

impl Findings {
    /// `row` counts in the file; `found` is made only for those that are kept.
    fn add(&mut self, kind: Kind, path: &str, row: Option<u64>, found: impl FnOnce() -> String) {
        let total = self.totals.entry(kind).or_default();
        *total += 1;
        if *total <= self.limit {
            let (path, found) = (path.to_string(), found());
            self.kept.push(Violation { kind, path, row_group: self.row_group, row, found });
        }
    }

    fn take(&mut self) -> Result<RecordBatch> {
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

fn batch(names: &[&str], columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    let fields = names.iter().zip(&columns).map(|(name, column)| {
        let nullable = matches!(*name, "rule" | "row_group" | "row");
        Field::new(*name, column.data_type().clone(), nullable)
    });
    debug_assert!(columns.iter().all(|c| matches!(c.data_type(), DataType::Utf8 | DataType::Int64)));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)?)
}

/// A running check of one file.
pub struct Check {
    file: Arc<FileReader>,
    findings: Findings,
    started: bool,
    group: usize,
    column: usize,
    /// The first row of the row group in the file, and the rows of the column that were checked.
    first_row: u64,
    given: u64,
    current: Option<(ParquetPushDecoder, Walker, FooterBounds)>,
}

impl Check {
    pub fn new(file: Arc<FileReader>, limit: u64) -> Self {
        let findings = Findings { limit, kept: Vec::new(), totals: BTreeMap::new(), row_group: None };
        Check { file, findings, started: false, group: 0, column: 0, first_row: 0, given: 0, current: None }
    }

    /// Goes on for one batch of one column; the violations found in it (`kind`, `rule`, `path`, `row_group`, `row`,
    /// `found`), maybe none. `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if !self.started {
            self.started = true;
            schema::check(&self.file, &mut self.findings);
            return self.findings.take().map(Some);
        }
        let file = self.file.clone();
        match guard(file.name(), || self.step()) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            // A failing disk says nothing about the file.
            Err(e) if e.code == Code::Io => return Err(e),
            // What cannot be decoded is a violation, and the other columns may be sound.
            Err(e) => self.unreadable(&e),
        }
        self.findings.take().map(Some)
    }

    /// How many violations of each kind there were: `kind`, `rule`, `count`.
    pub fn totals(&self) -> Result<RecordBatch> {
        let totals = &self.findings.totals;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(totals.keys().map(|kind| Some(kind.0)).collect::<StringArray>()),
            Arc::new(totals.keys().map(|kind| kind.1.map(i64::from)).collect::<Int64Array>()),
            Arc::new(totals.values().map(|count| Some(*count as i64)).collect::<Int64Array>()),
        ];
        batch(&["kind", "rule", "count"], columns)
    }

    /// One batch; false when the file is over.
    fn step(&mut self) -> Result<bool> {
        let Some(group) = self.file.metadata().row_groups().get(self.group) else { return Ok(false) };
        let Some(node) = self.file.columns().get(self.column) else {
            self.first_row += group.num_rows().max(0) as u64;
            (self.group, self.column) = (self.group + 1, 0);
            return Ok(true);
        };
        self.findings.row_group = Some(self.group);
        let (decoder, walker, bounds) = match &mut self.current {
            Some(current) => current,
            None => {
                let leaves: Vec<usize> = node.leaves.clone().collect();
                // Pages are held against their index, where there is one.
                self.file.load_pages(&[self.group], &leaves, false)?;
                let decoder = self.file.decoder(self.group, &leaves, batch_size(group, &leaves, ROWS, BYTES))?;
                self.given = 0;
                let bounds = FooterBounds::open(&self.file, self.group, node, &mut self.findings)?;
                self.current.insert((decoder, Walker::default(), bounds))
            }
        };
        match decoder.try_decode()? {
            DecodeResult::NeedsData(ranges) => {
                let leaves: Vec<usize> = node.leaves.clone().collect();
                let bytes = self.file.fetch_pages(self.group, &leaves, &ranges)?;
                decoder.push_ranges(ranges, bytes)?;
            }
            DecodeResult::Data(batch) => {
                if let Some(array) = batch.columns().first() {
                    let name = node.field.name();
                    walker.check(&node.field, array, name, self.first_row + self.given, &mut self.findings);
                    bounds.add(node, array, self.given, &mut self.findings)?;
                }
                self.given += batch.num_rows() as u64;
            }
            DecodeResult::Finished => {
                if let Some((.., bounds)) = self.current.take() {
                    bounds.finish(&mut self.findings);
                }
                self.column += 1;
            }
        }
        Ok(true)
    }

    fn unreadable(&mut self, error: &Error) {
        let name = self.file.columns().get(self.column).map_or("", |node| node.field.name().as_str());
        self.findings.row_group = Some(self.group);
        self.findings.add(UNREADABLE, name, None, || error.message.clone());
        self.current = None;
        self.column += 1;
    }
}
