//! Several files read as if they were one: their rows one after another, their row groups numbered through. What is
//! small in each, bounds, leaves to be judged and rows that passed, leaves the kernel in one batch for many of them.
//!
//! The columns of all are alike, apart from how their variants are shredded. Rows are judged, and come, in the order of
//! the files: who judges them may count them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::FieldRef;
use arrow_select::concat::concat_batches;

use crate::error::{Code, Error, Result};
use crate::item::Item;
use crate::layout::recognise::Early;
use crate::parquet::bloom::May;
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::rows::{self, Rows};
use crate::parquet::search::Search;
use crate::parquet::source::Source;
use crate::read::scan::{Scan, ScanOptions, ScanStep};
use crate::values::coded::written;
use crate::values::nested::unshredded_field;

/// Open files, at least one.
pub struct Files {
    first: Arc<FileReader>,
    /// Each file with the rows and row groups of all before it.
    files: Vec<Place>,
}

#[derive(Clone)]
struct Place {
    file: Arc<FileReader>,
    rows: Range<u64>,
    groups: usize,
}

impl Files {
    /// Opens the files in their order, up to one whose columns are others than the first one's.
    pub fn open(
        sources: impl IntoIterator<Item = Result<Box<dyn Source>>>,
        variants: &[Vec<String>],
        early: &Early,
    ) -> Result<Self> {
        let mut files: Vec<Place> = Vec::new();
        let (mut rows, mut groups) = (0, 0);
        for source in sources {
            let file = Arc::new(FileReader::open(source?, variants, early)?);
            if files.first().is_some_and(|first| columns(&first.file) != columns(&file)) {
                break;
            }
            let end = file.num_rows().saturating_add(rows);
            files.push(Place { file: file.clone(), rows: rows..end, groups });
            (rows, groups) = (end, groups + file.metadata().num_row_groups());
        }
        match files.first() {
            Some(place) => Ok(Files { first: place.file.clone(), files }),
            None => Err(Error::new(Code::InvalidArgument, "no file to open")),
        }
    }

    /// The first file, whose columns are those of all.
    pub fn first(&self) -> &Arc<FileReader> {
        &self.first
    }

    /// Where the rows of each file end.
    pub fn ends(&self) -> impl Iterator<Item = u64> {
        self.files.iter().map(|place| place.rows.end)
    }

    pub fn num_rows(&self) -> u64 {
        self.files.last().map_or(0, |place| place.rows.end)
    }

    pub fn bytes_read(&self) -> u64 {
        self.files.iter().map(|place| place.file.bytes_read()).sum()
    }

    /// As [`FileReader::row_groups`].
    pub fn row_groups(&self) -> Result<RecordBatch> {
        let found =
            self.files.iter().map(|place| place.shifted(place.file.row_groups()?)).collect::<Result<Vec<_>>>()?;
        one_of(found)
    }

    /// As [`FileReader::bounds`], a batch for each run of files in which the leaves have the same types.
    pub fn bounds(&self, leaves: &[Item], pages: bool, within: Option<&Rows>) -> Result<Vec<RecordBatch>> {
        let mut runs: Vec<Vec<RecordBatch>> = Vec::new();
        for place in &self.files {
            let within = within.map(|rows| place.own(rows));
            if self.files.len() > 1 && within.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            let leaves: Vec<Item> = leaves.iter().map(|leaf| place.asked(leaf)).collect();
            let found = place.shifted(place.file.bounds(&leaves, pages, within.as_ref())?)?;
            match runs.last_mut() {
                Some(run) if run.first().is_some_and(|b| b.schema() == found.schema()) => run.push(found),
                _ => runs.push(vec![found]),
            }
        }
        runs.into_iter().map(one_of).collect()
    }

    /// As [`FileReader::may_contain`].
    pub fn may_contain(&self, leaf: &Item, values: &ArrayRef, within: Option<&Rows>) -> Result<Vec<May>> {
        let mut may = Vec::new();
        for place in &self.files {
            let within = within.map(|rows| place.own(rows));
            may.extend(place.file.may_contain(&place.asked(leaf), values, within.as_ref())?);
        }
        Ok(may)
    }

    /// As [`FileReader::search`], one file after another.
    pub fn search(&self, leaf: &Item, search: &mut Search, within: &Rows) -> Result<Rows> {
        let mut found = Rows::new();
        for place in &self.files {
            let own = place.own(within);
            let left = if own.is_empty() { own } else { place.file.search(&place.asked(leaf), search, &own)? };
            let before = place.rows.start;
            left.into_iter().for_each(|r| rows::push(&mut found, r.start + before..r.end + before));
        }
        Ok(found)
    }

    /// As [`Scan::new`].
    pub fn scan(&self, items: &[Item], filter: &[Item], options: &ScanOptions) -> Result<FilesScan> {
        options.ranges.iter().try_for_each(|ranges| rows::check(ranges, self.num_rows(), self.first.name()))?;
        if options.limit.is_some() && self.files.len() > 1 {
            return Err(Error::new(Code::InvalidArgument, "a scan with a limit reads one file"));
        }
        let mut coming = VecDeque::new();
        for place in &self.files {
            let ranges = options.ranges.as_ref().map(|rows| place.own(rows));
            if self.files.len() > 1 && ranges.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            let asked = |items: &[Item]| items.iter().map(|item| place.asked(item)).collect();
            let options = ScanOptions { ranges, ..options.clone() };
            coming.push_back(Scan::new(place.file.clone(), asked(items), asked(filter), options)?);
        }
        let (name, rows, bytes) = (self.first.name().to_string(), options.max_rows, options.max_bytes);
        Ok(FilesScan { name, coming, running: Vec::new(), rows, bytes })
    }
}

impl Place {
    /// Rows of all files as rows of this one.
    fn own(&self, rows: &Rows) -> Rows {
        let own = rows::clip(rows, self.rows.start, self.rows.end);
        own.into_iter().map(|r| r.start - self.rows.start..r.end - self.rows.start).collect()
    }

    /// The item with the row groups of this file.
    fn asked(&self, item: &Item) -> Item {
        let all = self.groups..self.groups + self.file.metadata().num_row_groups();
        let own = item.untyped_in.iter().filter(|group| all.contains(group)).map(|group| group - self.groups);
        Item { untyped_in: own.collect(), ..item.clone() }
    }

    /// `row_group` and `first_row` of this file as those of all.
    fn shifted(&self, found: RecordBatch) -> Result<RecordBatch> {
        if self.rows.start == 0 && self.groups == 0 {
            return Ok(found);
        }
        let (groups, rows) = (self.groups as i32, self.rows.start as i64);
        let mut arrays = found.columns().to_vec();
        if let [group, first, ..] = arrays.as_mut_slice() {
            *group = Arc::new(group.as_primitive::<Int32Type>().unary::<_, Int32Type>(|g| g.saturating_add(groups)));
            *first = Arc::new(first.as_primitive::<Int64Type>().unary::<_, Int64Type>(|r| r.saturating_add(rows)));
        }
        Ok(RecordBatch::try_new(found.schema(), arrays)?)
    }
}

/// The columns as scans give them.
fn columns(file: &FileReader) -> Vec<FieldRef> {
    file.schema().fields().iter().map(unshredded_field).collect()
}

fn one_of(mut batches: Vec<RecordBatch>) -> Result<RecordBatch> {
    match batches.as_slice() {
        [_] => Ok(batches.swap_remove(0)),
        [first, ..] => Ok(concat_batches(&first.schema(), &batches)?),
        [] => Err(Error::new(Code::InvalidArgument, "no batch of any file")),
    }
}

/// A running scan of several files.
pub struct FilesScan {
    /// What errors call the files.
    name: String,
    coming: VecDeque<Scan>,
    running: Vec<Running>,
    /// So much goes into one batch, if it comes from several files.
    rows: usize,
    bytes: usize,
}

struct Running {
    scan: Scan,
    /// What waits for a judgement, until it is handed out.
    asked: Option<RecordBatch>,
    /// How many of its rows wait for one.
    waiting: Option<usize>,
    /// Whether more of its rows will: those of the files after it wait until then, so that all are judged in order.
    more: bool,
    given: Vec<RecordBatch>,
    over: bool,
}

impl FilesScan {
    /// As [`Scan::step`].
    pub fn step(&mut self) -> Result<Option<ScanStep>> {
        if self.running.is_empty() && self.coming.len() <= 1 {
            return self.coming.front_mut().map_or(Ok(None), Scan::step);
        }
        let name = self.name.clone();
        let result = guard(&name, || self.advance());
        if result.is_err() {
            self.coming.clear();
            self.running.clear();
        }
        result
    }

    /// As [`Scan::keep`].
    pub fn keep(&mut self, mask: &BooleanArray) -> Result<()> {
        let nothing = || Error::new(Code::InvalidArgument, "no batch waits for a mask");
        if self.running.is_empty() {
            return self.coming.front_mut().map_or_else(|| Err(nothing()), |scan| scan.keep(mask));
        }
        let waiting: usize = self.running.iter().filter_map(|one| one.waiting).sum();
        if mask.len() != waiting {
            let message = format!("a mask of {} rows for a batch of {waiting}", mask.len());
            return Err(Error::new(Code::InvalidArgument, message));
        }
        let mut start = 0;
        for one in &mut self.running {
            if let Some(rows) = one.waiting.take() {
                one.scan.keep(&mask.slice(start, rows))?;
                start += rows;
            }
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<Option<ScanStep>> {
        if self.running.iter().any(|one| one.waiting.is_some() && one.asked.is_none()) {
            return Err(Error::new(Code::InvalidArgument, "the last batch has no mask yet"));
        }
        loop {
            let mut held = self.held();
            for (number, one) in self.running.iter_mut().enumerate() {
                // What the first file gives can always be handed out.
                while one.goes_on() && (has_room(held, self.rows, self.bytes) || (number == 0 && one.given.is_empty()))
                {
                    one.step(&mut held)?;
                }
            }
            // Another file while there is room for its rows.
            while has_room(held, self.rows, self.bytes) && self.running.last().is_none_or(|one| !one.more) {
                let Some(scan) = self.coming.pop_front() else { break };
                let given = Vec::new();
                let mut one = Running { scan, asked: None, waiting: None, more: false, given, over: false };
                while one.goes_on() && has_room(held, self.rows, self.bytes) {
                    one.step(&mut held)?;
                }
                self.running.push(one);
            }
            let is_full = !has_room(held, self.rows, self.bytes);
            if is_full || self.running.iter().all(|one| one.asked.is_none()) {
                let given = self.first_rows();
                if !given.is_empty() {
                    return one_of(given).map(|batch| Some(ScanStep::Rows(batch)));
                }
            }
            let asked: Vec<RecordBatch> = self.running.iter_mut().filter_map(|one| one.asked.take()).collect();
            if !asked.is_empty() {
                return one_of(asked).map(|batch| Some(ScanStep::Judge(batch)));
            }
            if self.running.is_empty() && self.coming.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The rows that come next: those of the files that are over, and of the first one that is not.
    fn first_rows(&mut self) -> Vec<RecordBatch> {
        let mut found = Vec::new();
        while let Some(first) = self.running.first_mut() {
            found.append(&mut first.given);
            if !first.over {
                break;
            }
            self.running.remove(0);
        }
        found
    }

    /// The rows and bytes that are not handed out.
    fn held(&self) -> (usize, usize) {
        let all = self.running.iter().flat_map(|one| one.given.iter().chain(&one.asked));
        all.fold((0, 0), more)
    }
}

fn more((rows, bytes): (usize, usize), batch: &RecordBatch) -> (usize, usize) {
    (rows + batch.num_rows(), bytes + batch.get_array_memory_size())
}

fn has_room(held: (usize, usize), rows: usize, bytes: usize) -> bool {
    held.0 < rows && held.1 < bytes
}

impl Running {
    fn goes_on(&self) -> bool {
        !self.over && self.waiting.is_none()
    }

    fn step(&mut self, held: &mut (usize, usize)) -> Result<()> {
        match self.scan.step()? {
            Some(ScanStep::Rows(batch)) => {
                *held = more(*held, &batch);
                self.given.push(batch);
            }
            Some(ScanStep::Judge(batch)) => {
                // Each file has dictionaries of its own, or none.
                let batch = written(&batch)?;
                *held = more(*held, &batch);
                (self.waiting, self.more) = (Some(batch.num_rows()), !self.scan.is_last()?);
                self.asked = Some(batch);
            }
            None => (self.over, self.more) = (true, false),
        }
        Ok(())
    }
}
