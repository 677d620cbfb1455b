//! The rows of a file as batches, in one pass: per window of a row group the leaves of the filter are decoded and
//! handed out to be judged, then the pages of the other columns that hold passing rows, and nothing else.
//!
//! Each leaf column is decoded once: what the filter read is kept for the rows that pass, as it was read where an
//! output is built on it, and as it was extracted where an output asks for the same. Memory is that of a window:
//! row groups whose columns would take more are cut, where the file says where its pages begin.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use arrow_select::filter::filter_record_batch;
use parquet::file::metadata::RowGroupMetaData;

use crate::error::{Code, Error, Result};
use crate::item::{Item, ItemKind};
use crate::parquet::chunks::Manner;
use crate::parquet::decoder::{Decoder, Window, batch_size, group_bytes};
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::rows::Rows;
use crate::parquet::{projection, rows};
use crate::read::asked::check;
use crate::read::items::{Answers, answer, column_at, columns_of, takes_codes};
use crate::read::kept::{Kept, take, take_all};
use crate::read::merge;
use crate::read::texts::Texts;
use crate::values::coded::written;

/// What the columns of a window may take decoded.
const WINDOW_BYTES: u64 = 256 << 20;
/// What is put together of several columns is put together while they are in the cache: their rows take about half of
/// this decoded, unless that would be fewer rows than these.
const CACHED_BYTES: usize = 16 << 20;
const CACHED_ROWS: usize = 1024;
/// Rows of the first window where only some rows are asked for; each window after it is as much larger.
const LIMITED_ROWS: u64 = 16 << 10;
const LIMITED_GROWTH: u64 = 4;

#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// Rows of the file, sorted and without overlap; `None` for all.
    pub ranges: Option<Vec<Range<u64>>>,
    /// How many rows are wanted, of those that pass.
    pub limit: Option<u64>,
    /// What the filter asks of texts: batches in which that decides are not handed out.
    pub texts: Texts,
    pub max_rows: usize,
    pub max_bytes: usize,
    pub timezone: String,
}

impl Default for ScanOptions {
    fn default() -> Self {
        let (max_rows, max_bytes) = (1 << 16, 64 << 20);
        ScanOptions { ranges: None, limit: None, texts: Texts::default(), max_rows, max_bytes, timezone: "UTC".into() }
    }
}

/// What a scan gives next.
#[derive(Debug)]
pub enum ScanStep {
    /// The filter's items of some rows; [`Scan::keep`] says which of them pass.
    Judge(RecordBatch),
    /// The items of rows that passed.
    Rows(RecordBatch),
}

/// A running scan.
pub struct Scan {
    file: Arc<FileReader>,
    filter: Vec<Item>,
    items: Vec<Item>,
    options: ScanOptions,
    /// Rows still wanted.
    left: u64,
    next_row: u64,
    next_group: usize,
    windows: u32,
    state: State,
}

enum State {
    Between,
    Judging(Judging),
    Reading { decoder: Decoder, kept: Kept },
    Over,
}

/// The filter of one window at work.
struct Judging {
    decoder: Decoder,
    /// Leaf columns that the outputs need besides those that the filter gives, and how they are decoded.
    rest: Vec<usize>,
    rest_manner: Manner,
    /// Leaf columns of the filter that outputs are built on.
    reused: Vec<usize>,
    waiting: Option<Waiting>,
    passing: Rows,
    kept: Kept,
}

/// A batch whose judgement is awaited.
struct Waiting {
    start: u64,
    raw: RecordBatch,
    extracted: RecordBatch,
}

impl Scan {
    /// `items` are given for the rows that pass `filter`; without a filter all do.
    pub fn new(file: Arc<FileReader>, items: Vec<Item>, filter: Vec<Item>, options: ScanOptions) -> Result<Self> {
        options.ranges.iter().try_for_each(|ranges| rows::check(ranges, file.num_rows(), file.name()))?;
        items.iter().chain(&filter).try_for_each(|item| check(&file, item))?;
        let left = options.limit.unwrap_or(u64::MAX);
        Ok(Scan { file, filter, items, options, left, next_row: 0, next_group: 0, windows: 0, state: State::Between })
    }

    /// The next step; `None` when the scan is over. After an error the scan is over too.
    pub fn step(&mut self) -> Result<Option<ScanStep>> {
        let file = self.file.clone();
        let result = guard(file.name(), || self.advance());
        if !matches!(result, Ok(Some(_))) {
            self.state = State::Over;
        }
        result
    }

    /// Says which rows of the last [`ScanStep::Judge`] pass: those where the mask is true, and neither false nor null.
    pub fn keep(&mut self, mask: &BooleanArray) -> Result<()> {
        let file = self.file.clone();
        let result = guard(file.name(), || self.keep_unguarded(mask));
        if result.is_err() {
            self.state = State::Over;
        }
        result
    }

    /// Whether the batch that waits for its judgement is the last that does.
    pub fn is_last(&mut self) -> Result<bool> {
        let State::Judging(judging) = &self.state else { return Ok(false) };
        Ok(judging.decoder.given() == rows::count(&judging.decoder.window().rows) && self.peek()?.is_none())
    }

    fn advance(&mut self) -> Result<Option<ScanStep>> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return Ok(None),
                State::Between => match self.next_window()? {
                    None => return Ok(None),
                    Some(window) => {
                        self.state = self.open(window)?;
                        self.announce_next()?;
                    }
                },
                State::Judging(judging) => {
                    if let Some(step) = self.judge(judging)? {
                        return Ok(Some(step));
                    }
                }
                State::Reading { mut decoder, mut kept } => {
                    let Some(batch) = kept.rest.take().map_or_else(|| decoder.next(), |rest| Ok(Some(rest)))? else {
                        self.state = State::Between;
                        continue;
                    };
                    let start = decoder.given() - batch.num_rows() as u64;
                    let rows = kept.joined(batch.num_rows());
                    if rows < batch.num_rows() {
                        kept.rest = Some(batch.slice(rows, batch.num_rows() - rows));
                    }
                    let batch = batch.slice(0, rows);
                    let raw = match take(&mut kept.raw, rows)? {
                        Some(raw) => merge::join(self.file.columns(), &raw, &batch)?,
                        None => batch,
                    };
                    let extracted = take(&mut kept.extracted, rows)?;
                    let found = self.outputs(&raw, extracted.as_ref(), decoder.window(), start)?;
                    self.state = State::Reading { decoder, kept };
                    return Ok(Some(ScanStep::Rows(found)));
                }
            }
        }
    }

    /// The next batch of a window's filter, if its texts do not decide; or, at the window's end or where enough rows
    /// passed, the reading of what passed.
    fn judge(&mut self, mut judging: Judging) -> Result<Option<ScanStep>> {
        if judging.waiting.is_some() {
            return Err(Error::new(Code::InvalidArgument, "the last batch has no mask yet"));
        }
        if judging.rest.is_empty() && (!judging.kept.raw.is_empty() || !judging.kept.extracted.is_empty()) {
            let raw = take_all(&mut judging.kept.raw)?;
            let extracted = take_all(&mut judging.kept.extracted)?;
            let rows = std::mem::take(&mut judging.passing);
            let empty = empty(rows::count(&rows) as usize)?;
            let window = Window { rows, ..judging.decoder.window().clone() };
            let found = self.outputs(raw.as_ref().unwrap_or(&empty), extracted.as_ref(), &window, 0)?;
            self.state = State::Judging(judging);
            return Ok(Some(ScanStep::Rows(found)));
        }
        let next = if self.left == 0 { None } else { judging.decoder.next()? };
        if let Some(raw) = next {
            let start = judging.decoder.given() - raw.num_rows() as u64;
            let extracted = self.answers(Answers::coded(), &self.filter, &raw, judging.decoder.window(), start)?;
            let decided = self.options.texts.judge(&self.filter, &extracted);
            judging.waiting = Some(Waiting { start, raw, extracted: extracted.clone() });
            self.state = State::Judging(judging);
            return match decided {
                Some(mask) => self.keep_unguarded(&mask).map(|()| None),
                None => Ok(Some(ScanStep::Judge(extracted))),
            };
        }
        self.state = State::Between;
        if !judging.passing.is_empty() {
            let window = Window { rows: judging.passing, ..judging.decoder.window().clone() };
            let decoder = self.decoder(judging.rest, window, judging.rest_manner)?;
            self.state = State::Reading { decoder, kept: judging.kept };
        }
        Ok(None)
    }

    fn keep_unguarded(&mut self, mask: &BooleanArray) -> Result<()> {
        let State::Judging(judging) = &mut self.state else {
            return Err(Error::new(Code::InvalidArgument, "no batch waits for a mask"));
        };
        let Some(Waiting { start, raw, extracted }) = judging.waiting.take() else {
            return Err(Error::new(Code::InvalidArgument, "no batch waits for a mask"));
        };
        if mask.len() != raw.num_rows() {
            let message = format!("a mask of {} rows for a batch of {}", mask.len(), raw.num_rows());
            return Err(Error::new(Code::InvalidArgument, message));
        }
        let passing = mask.true_count() as u64;
        let wanted = passing.min(self.left);
        if wanted == 0 {
            return Ok(());
        }
        self.left -= wanted;
        let window = &judging.decoder.window().rows;
        if wanted == passing {
            rows::masked(window, start, mask, &mut judging.passing);
        } else {
            let mut found = Vec::new();
            rows::masked(window, start, mask, &mut found);
            rows::head(&found, wanted).into_iter().for_each(|range| rows::push(&mut judging.passing, range));
        }
        let kept = |batch: RecordBatch| -> Result<RecordBatch> {
            let batch = if passing == batch.num_rows() as u64 { batch } else { filter_record_batch(&batch, mask)? };
            Ok(batch.slice(0, wanted as usize))
        };
        let columns = self.file.columns();
        if !judging.reused.is_empty() {
            judging.kept.raw.push(kept(merge::prune(columns, &raw, &judging.reused)?)?);
        }
        // Of the filter's columns those that outputs ask for too.
        let asked = self.filter.iter().filter(|judged| self.items.iter().any(|item| judged.same(item)));
        let names: Vec<&str> = asked.map(|judged| judged.name.as_str()).collect();
        if !names.is_empty() {
            judging.kept.extracted.push(written(&kept(columns_of(&extracted, &names)?)?)?);
        }
        Ok(())
    }

    /// Prepares the filter of a window, or without one the reading of its rows.
    fn open(&mut self, window: Window) -> Result<State> {
        if self.filter.is_empty() {
            let leaves = projection::leaves(&self.file, self.items.iter(), window.group);
            let rows = rows::head(&window.rows, self.left);
            self.left -= rows::count(&rows);
            let manner = self.manner(self.items.iter(), &leaves);
            let decoder = self.decoder(leaves, Window { rows, ..window }, manner)?;
            return Ok(State::Reading { decoder, kept: Kept::default() });
        }
        let judged = projection::leaves(&self.file, self.filter.iter(), window.group);
        let fresh = self.items.iter().filter(|item| !self.filter.iter().any(|f| f.same(item)));
        let needed = projection::leaves(&self.file, fresh.clone(), window.group);
        let mut reusable = Vec::new();
        merge::reusable(self.file.columns(), &mut reusable);
        let in_both = |leaf: &usize| judged.binary_search(leaf).is_ok() && reusable.binary_search(leaf).is_ok();
        let (reused, rest): (Vec<usize>, Vec<usize>) = needed.into_iter().partition(in_both);
        let (manner, rest_manner) = if reused.is_empty() {
            (self.manner(self.filter.iter(), &judged), self.manner(fresh, &rest))
        } else {
            // What both read is put together with either.
            let mut all = [&judged[..], &rest].concat();
            all.sort_unstable();
            let manner = self.manner(self.filter.iter().chain(fresh), &all);
            (manner, manner)
        };
        let decoder = self.decoder(judged, window, manner)?;
        let judging =
            Judging { decoder, rest, rest_manner, reused, waiting: None, passing: Vec::new(), kept: Kept::default() };
        Ok(State::Judging(judging))
    }

    /// Lets a slow source fetch what the next window begins with, while this one is decoded.
    fn announce_next(&mut self) -> Result<()> {
        if !self.file.plans() || self.options.limit.is_some() {
            return Ok(());
        }
        let Some(window) = self.peek()? else { return Ok(()) };
        let first = if self.filter.is_empty() { &self.items } else { &self.filter };
        let leaves = projection::leaves(&self.file, first.iter(), window.group);
        if leaves.is_empty() { Ok(()) } else { self.file.announce_batches(window.group, &leaves, window.part()) }
    }

    fn peek(&mut self) -> Result<Option<Window>> {
        let place = (self.next_row, self.next_group, self.windows);
        let next = self.next_window();
        (self.next_row, self.next_group, self.windows) = place;
        next
    }

    /// The next rows asked for: those of a row group, or as many of them as a window may hold.
    fn next_window(&mut self) -> Result<Option<Window>> {
        let file = self.file.clone();
        while let Some(group) = file.metadata().row_groups().get(self.next_group).filter(|_| self.left > 0) {
            let first = file.first_row(self.next_group);
            let bounds = first..first + group.num_rows().max(0) as u64;
            let from = self.next_row.max(bounds.start);
            let rows = match &self.options.ranges {
                Some(ranges) => rows::clip(ranges, from, bounds.end),
                None if from < bounds.end => vec![Range { start: from, end: bounds.end }],
                None => vec![],
            };
            if rows.is_empty() {
                self.next_group += 1;
                continue;
            }
            let index = self.next_group;
            let rows = rows::head(&rows, self.window_rows(group));
            self.next_row = rows.last().map_or(bounds.end, |r| r.end);
            self.windows = self.windows.saturating_add(1);
            return Ok(Some(Window { group: index, bounds, rows }));
        }
        Ok(None)
    }

    fn window_rows(&self, group: &RowGroupMetaData) -> u64 {
        let leaves = projection::leaves(&self.file, self.items.iter().chain(&self.filter), self.next_group);
        // Without an offset index a part of a column chunk costs all of it.
        if leaves.iter().any(|&leaf| group.columns().get(leaf).is_none_or(|c| c.offset_index_offset().is_none())) {
            return u64::MAX;
        }
        let all = group.num_rows().max(1) as u64;
        let by_memory = match group_bytes(group, &leaves) {
            bytes if bytes > WINDOW_BYTES => (all as u128 * WINDOW_BYTES as u128 / bytes as u128).max(1024) as u64,
            _ => u64::MAX,
        };
        let by_limit = match self.options.limit {
            Some(_) if !self.filter.is_empty() => {
                LIMITED_ROWS.saturating_mul(LIMITED_GROWTH.saturating_pow(self.windows))
            }
            _ => u64::MAX,
        };
        by_memory.min(by_limit)
    }

    /// How leaves are decoded out of which these items are answered.
    fn manner<'a>(&self, items: impl Iterator<Item = &'a Item>, leaves: &[usize]) -> Manner {
        let alone = projection::alone(&self.file, items, leaves);
        Manner { coded: takes_codes(&self.items, &self.filter), alone, stored: false }
    }

    fn decoder(&self, leaves: Vec<usize>, window: Window, manner: Manner) -> Result<Decoder> {
        let (mut rows, bytes) = (self.options.max_rows, self.options.max_bytes);
        if let Some(group) = self.file.metadata().row_groups().get(window.group).filter(|_| !manner.alone) {
            rows = rows.min(batch_size(group, &leaves, rows, CACHED_BYTES).max(CACHED_ROWS));
        }
        Decoder::new(self.file.clone(), leaves, window, rows, bytes, manner)
    }

    /// The outputs of decoded rows; what the filter extracted already is taken from there.
    fn outputs(
        &self,
        raw: &RecordBatch,
        extracted: Option<&RecordBatch>,
        window: &Window,
        start: u64,
    ) -> Result<RecordBatch> {
        let Some(extracted) = extracted else {
            return self.answers(Answers::default(), &self.items, raw, window, start);
        };
        let mut out = Answers::default();
        for item in &self.items {
            let Some(judged) = self.filter.iter().find(|f| f.same(item)) else {
                self.answer(item, raw, window, start, &mut out)?;
                continue;
            };
            for mark in ["", "!"] {
                let name = format!("{}{mark}", judged.name);
                if let Some((at, field)) = extracted.schema().column_with_name(&name) {
                    let field = field.clone().with_name(format!("{}{mark}", item.name));
                    out.push(field, extracted.column(at).clone());
                }
                if matches!(item.kind, ItemKind::Whole | ItemKind::There) {
                    break;
                }
            }
        }
        out.finish(raw.num_rows())
    }

    fn answers(
        &self,
        mut out: Answers,
        items: &[Item],
        raw: &RecordBatch,
        window: &Window,
        start: u64,
    ) -> Result<RecordBatch> {
        items.iter().try_for_each(|item| self.answer(item, raw, window, start, &mut out))?;
        out.finish(raw.num_rows())
    }

    fn answer(&self, item: &Item, raw: &RecordBatch, window: &Window, start: u64, out: &mut Answers) -> Result<()> {
        let Some(node) = self.file.find(&item.column) else { return Ok(()) };
        let column = column_at(raw, &item.column)?;
        let (rows, timezone) = (raw.num_rows(), &self.options.timezone);
        answer(item, &node.field, column.as_ref(), rows, timezone, out).map_err(|mut e| {
            e.row = e.row.map(|row| rows::absolute(&window.rows, start + row));
            e.message = format!("{} (row group {} of {})", e.message, window.group, self.file.name());
            e
        })
    }
}

fn empty(rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?)
}
