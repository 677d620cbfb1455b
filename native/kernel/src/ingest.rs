//! The hot path: rows of JSON become columns in the standard layout without being a Variant in between.
//!
//! Bad rows stop the reading or are kept aside, as the reader was told. A batch ends by rows, by bytes or by time,
//! so that control goes back to whoever may want to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::error::Result;
use crate::infer::{COMMON_ROWS, Left, Limits, Sample};
use crate::json::{JsonParser, Next, ParseOptions, ReaderOptions, RowReader};
use crate::layout::standard::mark;
use crate::limits::MAX_TREE_DEPTH;
use crate::names::Names;
use crate::rows::Rows;
use crate::shred::{BLOCK, Shredder};
use crate::tape::{Tape, Tapes};
use crate::tree::Tree;

/// A batch is handed over after this time at the latest, whatever it holds.
const PATIENCE: Duration = Duration::from_millis(500);
/// Rows between two looks at the clock and the bytes.
const STRIDE: usize = 128;
/// Text of rows that wait for each other, about; and that of a row that does not wait: its tape is large too, and stays so.
const BLOCK_BYTES: usize = 64 << 10;
const LARGE_ROW: usize = 16 << 10;

pub struct JsonIngest {
    column: String,
    reader: RowReader,
    parser: JsonParser,
    tape: Tape,
    /// Rows that are not in the columns yet.
    rows: Tapes,
    names: Names,
    /// Names for the shared dictionary, from the rows that were looked at last.
    common: Option<Vec<String>>,
    plan: Option<Plan>,
    views: bool,
}

/// What one tree needs.
struct Plan {
    tree: Tree,
    schema: SchemaRef,
    shredder: Shredder,
}

impl JsonIngest {
    /// `column` names the variant column of the batches.
    pub fn new(column: &str, reader: ReaderOptions, parse: ParseOptions) -> Result<Self> {
        Ok(JsonIngest {
            column: column.to_owned(),
            reader: RowReader::new(reader)?,
            parser: JsonParser::new(parse),
            tape: Tape::default(),
            rows: Tapes::default(),
            names: Names::new(),
            common: None,
            plan: None,
            views: false,
        })
    }

    /// Whether the metadata of shredded rows are views of the one that rows share ([`Shredder::with_views`]).
    pub fn with_views(self, views: bool) -> Self {
        JsonIngest { views, ..self }
    }

    pub fn reader(&mut self) -> &mut RowReader {
        &mut self.reader
    }

    pub fn bytes_read(&self) -> u64 {
        self.reader.bytes_read()
    }

    pub fn rows(&self) -> u64 {
        self.reader.rows()
    }

    pub fn wants_input(&self) -> bool {
        self.reader.wants_input()
    }

    /// The tree of the rows to come, which are kept and read again. Rows that are no documents are passed over:
    /// they are reported when they are read. Beside it the paths that did not become typed columns.
    pub fn infer(&mut self, limits: Limits) -> Result<(Tree, Vec<Left>)> {
        let sample = self.look_ahead(limits)?;
        let found = sample.tree(&self.names)?;
        self.common = Some(sample.common_names(&self.names));
        Ok(found)
    }

    fn look_ahead(&mut self, limits: Limits) -> Result<Sample> {
        // A sample counts by the ids of its names: it begins with none, and the plan must be made anew after it.
        self.plan = None;
        self.rows.clear();
        self.names.truncate(0);
        let mut sample = Sample::new(limits)?;
        self.reader.mark();
        while !sample.is_full() {
            let text = match self.reader.next_row()? {
                Next::Row(text) => text,
                Next::Bad(_) => continue,
                Next::NeedInput | Next::End => break,
            };
            if self.parser.parse(text, &mut self.tape, &mut self.names).is_ok() {
                sample.add(&self.tape.view_text(text, &self.names));
            }
        }
        self.reader.rewind();
        Ok(sample)
    }

    fn plan(&mut self, tree: &Tree) -> Result<()> {
        if self.plan.as_ref().is_some_and(|plan| plan.tree == *tree) {
            return Ok(());
        }
        if self.common.is_none() && !tree.is_untyped() {
            let limits = Limits { sample_rows: COMMON_ROWS, max_depth: MAX_TREE_DEPTH, ..Limits::default() };
            let sample = self.look_ahead(limits)?;
            self.common = Some(sample.common_names(&self.names));
        }
        self.names.truncate(0);
        let common = self.common.iter().flatten().map(String::as_str);
        let mut shredder = Shredder::new(tree, common, &mut self.names)?;
        if self.views {
            shredder = shredder.with_views();
        }
        let column = mark(Field::new(&self.column, shredder.data_type(), true));
        let schema = Arc::new(Schema::new(vec![column]));
        self.plan = Some(Plan { tree: tree.clone(), schema, shredder });
        Ok(())
    }

    /// The next rows, `None` after the last. A batch without rows means: feed more input, or call again.
    pub fn next_batch(&mut self, tree: &Tree, max_rows: usize, max_bytes: usize) -> Result<Option<Rows>> {
        self.plan(tree)?;
        let JsonIngest { reader, parser, rows, names, plan: Some(plan), .. } = self else { return Ok(None) };
        let shredder = &mut plan.shredder;
        let started = Instant::now();
        let (mut text_bytes, mut seen, mut ended) = (0, 0_usize, false);
        while shredder.rows() + rows.rows() < max_rows {
            if seen.is_multiple_of(STRIDE)
                && seen > 0
                && (shredder.byte_len() >= max_bytes || started.elapsed() >= PATIENCE)
            {
                break;
            }
            let error = match reader.next_row()? {
                Next::Row(text) => {
                    seen += 1;
                    text_bytes += text.len();
                    let alone = text.len() >= LARGE_ROW;
                    if alone {
                        put(rows, names, shredder)?;
                    }
                    let tape = rows.room();
                    match parser.parse(text, tape, names) {
                        Ok(()) if alone => shredder.append(&tape.view_text(text, names)).map(|()| None)?,
                        Ok(()) => {
                            rows.keep(text);
                            None
                        }
                        Err(error) => Some(error),
                    }
                }
                Next::Bad(error) => Some(error),
                Next::NeedInput => break,
                Next::End => {
                    ended = true;
                    break;
                }
            };
            if let Some(error) = error {
                reader.reject(error)?;
            }
            if rows.rows() == BLOCK || rows.bytes() >= BLOCK_BYTES || names.is_full() {
                put(rows, names, shredder)?;
            }
            if names.is_full() {
                names.truncate(shredder.names_len());
            }
            if text_bytes >= max_bytes || reader.bad_is_full() {
                break;
            }
        }
        put(rows, names, shredder)?;
        if ended && shredder.rows() == 0 {
            return Ok(None);
        }
        Ok(Some(Rows::of_one(plan.schema.clone(), shredder.finish_column()?)))
    }

    /// The bad rows since the last call: `file`, `line`, `column` and `offset` (bytes), `reason`, `text`.
    pub fn take_errors(&mut self) -> Result<RecordBatch> {
        let name = self.reader.name().to_owned();
        let bad = self.reader.take_bad();
        let number = |of: fn(&crate::json::BadRow) -> u64| -> Int64Array { bad.iter().map(|b| of(b) as i64).collect() };
        Ok(RecordBatch::try_from_iter([
            ("file", Arc::new(bad.iter().map(|_| Some(&name)).collect::<StringArray>()) as _),
            ("line", Arc::new(number(|b| b.line)) as _),
            ("column", Arc::new(number(|b| b.column)) as _),
            ("offset", Arc::new(number(|b| b.offset)) as _),
            ("reason", Arc::new(bad.iter().map(|b| Some(&b.reason)).collect::<StringArray>()) as _),
            ("text", Arc::new(bad.iter().map(|b| Some(&b.text)).collect::<BinaryArray>()) as _),
        ])?)
    }
}

/// Puts the rows that wait into columns.
fn put(rows: &mut Tapes, names: &Names, shredder: &mut Shredder) -> Result<()> {
    shredder.append_all(&rows.views(names))?;
    rows.clear();
    Ok(())
}
