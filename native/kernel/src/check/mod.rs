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
mod findings;
mod schema;
mod values;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use crate::check::bounds::FooterBounds;
use crate::check::findings::{Findings, ViolationKind, batch};
use crate::check::values::RowChecker;
use crate::error::{Code, Error, Result};
use crate::parquet::decoder::Decoder;
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::projection::single;

/// A column of the file that cannot be decoded.
const UNREADABLE: ViolationKind = ("unreadable", None);

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
    current: Option<(Decoder, RowChecker, FooterBounds)>,
}

impl Check {
    pub fn new(file: Arc<FileReader>, limit: u64) -> Self {
        let findings = Findings::new(limit);
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
                // A plain column takes no look at the others, of which there may be thousands.
                let alone = node.is_leaf() && single(&self.file, &leaves);
                // Pages are held against their index, where there is one.
                self.file.load_pages(&[self.group], &leaves, false)?;
                let decoder = self.file.decoder(self.group, leaves, alone)?;
                self.given = 0;
                let bounds = FooterBounds::open(&self.file, self.group, node, &mut self.findings)?;
                self.current.insert((decoder, RowChecker::default(), bounds))
            }
        };
        match decoder.next()? {
            Some(batch) => {
                if let Some(array) = batch.columns().first() {
                    let name = node.field.name();
                    walker.check(&node.field, array, name, self.first_row + self.given, &mut self.findings);
                    bounds.add(node, array, self.given, &mut self.findings)?;
                }
                self.given += batch.num_rows() as u64;
            }
            None => {
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
