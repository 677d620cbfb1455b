//! Rows of one input, one at a time, borrowed from one buffer: lines of NDJSON, or the values of a JSON file. Bad
//! rows stop the reading or are kept aside, with file, line, column and reason. Rows can be read again: see `mark`.

use crate::error::{Code, Error, Result};
use crate::json::format::{Detector, Format, is_blank, is_ndjson_name};
use crate::json::input::{Compression, Filled, Input, newlines};
use crate::json::split::{Cut, Splitter};
use crate::text::utf8::{bytes_before, decode_like_java};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    Fail,
    Collect,
}

pub struct ReaderOptions {
    /// What messages call the input.
    pub name: String,
    pub format: Format,
    pub compression: Compression,
    /// A local file; `None`: bytes are fed.
    pub path: Option<String>,
    /// A split owns the rows that begin in `[start, end)`; only plain NDJSON can be split. Fed bytes of a split
    /// with a start above 0 begin one byte before it.
    pub start: u64,
    pub end: Option<u64>,
    pub on_error: OnError,
    /// Whether bytes that are no UTF-8 become U+FFFD, as Spark's reader has them; else their row is a bad one.
    pub replace_invalid_utf8: bool,
    /// Longer rows are refused, so that the buffer stays in proportion.
    pub max_row: usize,
}

/// Rows kept aside at most, and their bytes, before somebody takes them.
const MAX_BAD: usize = 4096;
const MAX_BAD_BYTES: usize = 1 << 20;
/// Bytes of a line too long to be read that are kept aside, its first ones.
const MAX_CUT: usize = 64 << 10;
/// Bytes that are kept to be read again, whatever they hold: blank lines and bad ones are no rows of a sample.
const MAX_AHEAD: usize = 16 << 20;

/// A row that was no document.
#[derive(Debug, Clone)]
pub struct BadRow {
    /// From 1; unknown (0) in a split of fed bytes.
    pub line: u64,
    /// In bytes, from 1.
    pub column: u64,
    /// Of the row's first byte in the decompressed input.
    pub offset: u64,
    pub reason: String,
    pub text: Vec<u8>,
}

pub enum Next<'a> {
    Row(&'a str),
    /// A row that is no text, or a line too long to be read: see `reject`.
    Bad(Error),
    /// Feed more bytes, or finish.
    NeedInput,
    End,
}

/// A place between two rows.
#[derive(Clone, Copy, Default)]
struct Cursor {
    /// In the buffer.
    at: usize,
    /// No line ends before this place.
    searched: usize,
    /// Newlines before `at`, and the place after the last of them, counted from the input's start.
    lines: u64,
    line_start: u64,
    rows: u64,
    /// What stands before the first row has been skipped.
    started: bool,
    /// Within a line that is not read: the split before this one owns it, or it is too long.
    in_passed_line: bool,
    splitter: Splitter,
}

#[derive(Clone, Copy, Default)]
struct RowPlace {
    start: usize,
    end: usize,
    lines: u64,
    line_start: u64,
}

pub struct RowReader {
    options: ReaderOptions,
    input: Input,
    buffer: Vec<u8>,
    /// Place of the buffer's first byte in the input.
    base: u64,
    cursor: Cursor,
    mark: Option<Cursor>,
    row: RowPlace,
    ended: bool,
    detector: Detector,
    /// The row, when its bytes were no UTF-8.
    repaired: String,
    bad: Vec<BadRow>,
    bad_bytes: usize,
    first_line: Option<u64>,
}

/// ```text
/// loop {
///     match reader.next_row()? {
///         Next::Row(text) => match parser.parse(text, &mut tape, &mut names) {
///             Ok(()) => use(tape.view_text(text, &names)),
///             Err(e) => reader.reject(e)?,
///         },
///         Next::NeedInput | Next::End => break,
///     }
/// }
/// ```
impl RowReader {
    pub fn new(options: ReaderOptions) -> Result<Self> {
        let split = options.start > 0 || options.end.is_some();
        if split && (options.format != Format::Ndjson || options.compression != Compression::None) {
            return Err(Error::new(Code::InvalidArgument, "only plain NDJSON can be read by byte ranges"));
        }
        let from = options.start.saturating_sub(1);
        let input = match &options.path {
            Some(path) => Input::open(path, from, options.compression)?,
            None => Input::fed(options.compression)?,
        };
        let within = options.start > 0;
        let cursor = Cursor { line_start: from, started: within, in_passed_line: within, ..Cursor::default() };
        Ok(RowReader {
            options,
            input,
            buffer: Vec::new(),
            base: from,
            cursor,
            mark: None,
            row: RowPlace::default(),
            ended: false,
            detector: Detector::default(),
            repaired: String::new(),
            bad: Vec::new(),
            bad_bytes: 0,
            first_line: None,
        })
    }

    pub fn name(&self) -> &str {
        &self.options.name
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        self.input.feed(bytes)
    }

    pub fn finish(&mut self) {
        self.input.finish();
    }

    pub fn wants_input(&self) -> bool {
        !self.ended && self.input.is_dry()
    }

    /// Before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.input.bytes_read()
    }

    /// Rows handed out so far, bad ones included.
    pub fn rows(&self) -> u64 {
        self.cursor.rows
    }

    /// Keeps all rows from here on, until `rewind` gives them again.
    pub fn mark(&mut self) {
        self.mark = Some(self.cursor);
    }

    pub fn rewind(&mut self) {
        if let Some(mark) = self.mark.take() {
            self.cursor = mark;
            self.cursor.splitter.rewind();
            self.ended = false;
        }
    }

    /// The next row.
    pub fn next_row(&mut self) -> Result<Next<'_>> {
        loop {
            match self.find()? {
                Cut::Row(start, end) => {
                    self.cursor.rows += 1;
                    if self.row.end - self.row.start > self.options.max_row && self.options.format == Format::Ndjson {
                        return Ok(Next::Bad(self.cut_row()));
                    }
                    let bytes = self.buffer.get(start..end).unwrap_or(&[]);
                    match simdutf8::basic::from_utf8(bytes) {
                        Ok(text) => return Ok(Next::Row(text)),
                        Err(_) if !self.options.replace_invalid_utf8 => return Ok(Next::Bad(not_utf8(bytes))),
                        Err(_) => {
                            self.repaired.clear();
                            decode_like_java(bytes, &mut self.repaired);
                            return Ok(Next::Row(&self.repaired));
                        }
                    }
                }
                Cut::End => {
                    self.ended = true;
                    return Ok(Next::End);
                }
                Cut::More(_) if self.mark.is_some_and(|mark| self.cursor.at - mark.at > MAX_AHEAD) => {
                    return Ok(Next::NeedInput);
                }
                Cut::More(needed) if self.is_too_long(needed) && self.options.format == Format::Ndjson => {
                    // A sample ends before it: what is kept to be read again would be too much.
                    return Ok(if self.mark.is_some() { Next::NeedInput } else { Next::Bad(self.pass_long_line()) });
                }
                Cut::More(needed) => {
                    if self.more(needed)? == Filled::Dry {
                        return Ok(Next::NeedInput);
                    }
                }
            }
        }
    }

    /// What to do with the row handed out last, which is no document: an error with its place, or kept aside.
    pub fn reject(&mut self, error: Error) -> Result<()> {
        let row = self.row;
        let text = self.buffer.get(row.start..row.end).unwrap_or(&[]);
        let at = match error.offset.unwrap_or(0) as usize {
            // The row that was parsed is a repaired text.
            at if self.options.replace_invalid_utf8 => bytes_before(text, at),
            at => at,
        };
        let before = text.get(..at).unwrap_or(text);
        let newlines = memchr::memchr_iter(b'\n', before).count() as u64;
        let column = match memchr::memrchr(b'\n', before) {
            Some(at) => before.len() - at,
            None => (self.base + row.start as u64 - row.line_start) as usize + before.len() + 1,
        } as u64;
        let offset = self.base + row.start as u64;
        let bad = BadRow { line: 0, column, offset, reason: error.message.clone(), text: text.to_vec() };
        let line = self.first_line()?.map_or(0, |first| first + row.lines + newlines);
        if self.options.on_error == OnError::Collect {
            self.bad_bytes += bad.text.len() + bad.reason.len();
            self.bad.push(BadRow { line, ..bad });
            return Ok(());
        }
        Err(self.located(error, line, column, offset))
    }

    fn located(&self, error: Error, line: u64, column: u64, offset: u64) -> Error {
        let name = &self.options.name;
        let place = match line {
            0 => format!("{name}, in the line that begins at byte {offset}, column {column}"),
            _ => format!("{name}, line {line}, column {column}"),
        };
        let message = format!("{place}: {}", error.message);
        Error { message, path: error.path.or_else(|| Some(name.clone())), ..error }
    }

    /// Whether the rows kept aside should be taken before more are read.
    pub fn bad_is_full(&self) -> bool {
        self.bad.len() >= MAX_BAD || self.bad_bytes >= MAX_BAD_BYTES
    }

    /// The rows kept aside since the last call.
    pub fn take_bad(&mut self) -> Vec<BadRow> {
        self.bad_bytes = 0;
        std::mem::take(&mut self.bad)
    }

    /// The number of the split's first line: a local file is counted through when somebody needs to know.
    fn first_line(&mut self) -> Result<Option<u64>> {
        if self.first_line.is_none() {
            self.first_line = match (&self.options.path, self.options.start) {
                (_, 0) => Some(1),
                (None, _) => return Ok(None),
                (Some(path), start) => Some(1 + newlines(path, start - 1)?),
            };
        }
        Ok(self.first_line)
    }

    fn find(&mut self) -> Result<Cut> {
        if !self.cursor.started && !self.start() {
            return Ok(Cut::More(0));
        }
        match self.options.format {
            Format::Ndjson => self.find_line(),
            Format::Json => self.find_value(),
            Format::Auto => {
                self.pass_blanks();
                if let Some(format) = self.detect() {
                    self.options.format = format;
                    return self.find();
                }
                // Nothing is too long before it is known what a row is.
                Ok(Cut::More(self.buffer.len()))
            }
        }
    }

    /// Blanks before the first row are nobody's, however many they are.
    fn pass_blanks(&mut self) {
        let text = self.buffer.get(self.cursor.at..).unwrap_or(&[]);
        // Ends at the first byte that is not blank.
        if text.iter().all(is_blank) {
            self.pass(self.buffer.len());
        }
    }

    /// What the input is, once that is certain.
    fn detect(&mut self) -> Option<Format> {
        let text = self.buffer.get(self.cursor.at..).unwrap_or(&[]);
        let found = self.detector.look(text, self.ended, is_ndjson_name(&self.options.name));
        found.or_else(|| (text.len() > self.options.max_row).then(|| self.detector.settle(text)))
    }

    /// Skips a byte order mark before the first row. False: not enough bytes yet.
    fn start(&mut self) -> bool {
        if self.buffer.len() < 3 && !self.ended {
            return false;
        }
        if self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.cursor.at = 3;
            self.cursor.line_start = 3;
        }
        self.cursor.started = true;
        true
    }

    fn skip_to(&mut self, at: usize, newlines: u64) {
        self.cursor.at = at;
        self.cursor.lines += newlines;
        self.cursor.line_start = self.base + at as u64;
    }

    fn find_line(&mut self) -> Result<Cut> {
        loop {
            let start = self.cursor.at;
            if self.options.end.is_some_and(|end| self.base + start as u64 >= end) {
                return Ok(Cut::End);
            }
            if self.cursor.in_passed_line {
                let Some(end) = memchr::memchr(b'\n', self.buffer.get(start..).unwrap_or(&[])) else {
                    self.cursor.at = self.buffer.len();
                    return Ok(if self.ended { Cut::End } else { Cut::More(self.cursor.at) });
                };
                self.cursor.in_passed_line = false;
                self.skip_to(start + end + 1, 1);
                continue;
            }
            let rest = self.buffer.get(start..).unwrap_or(&[]);
            let from = self.cursor.searched.max(start);
            let (end, next) = match memchr::memchr(b'\n', self.buffer.get(from..).unwrap_or(&[])) {
                Some(at) => (from + at, from + at + 1),
                None if !self.ended => {
                    self.cursor.searched = self.buffer.len();
                    return Ok(Cut::More(start));
                }
                None if rest.is_empty() => return Ok(Cut::End),
                None => (self.buffer.len(), self.buffer.len()),
            };
            let line = self.buffer.get(start..end).unwrap_or(&[]);
            let blank = line.iter().all(is_blank);
            let carriage = line.ends_with(b"\r") as usize;
            self.row = RowPlace { start, end, lines: self.cursor.lines, line_start: self.base + start as u64 };
            self.skip_to(next, 1);
            if !blank || end - start > self.options.max_row {
                return Ok(Cut::Row(start, end - carriage));
            }
        }
    }

    fn find_value(&mut self) -> Result<Cut> {
        let found = match self.cursor.splitter.find(&self.buffer, self.cursor.at, self.ended) {
            Ok(found) => found,
            Err(e) => {
                let at = e.offset.unwrap_or(0) as usize;
                self.pass(at);
                let line = self.first_line()?.unwrap_or(1) + self.cursor.lines;
                let offset = self.base + at as u64;
                return Err(self.located(e, line, offset - self.cursor.line_start + 1, offset));
            }
        };
        match found {
            Cut::Row(start, end) => {
                self.pass(start);
                self.row = RowPlace { start, end, lines: self.cursor.lines, line_start: self.cursor.line_start };
                self.pass(end);
            }
            Cut::More(to) => self.pass(to),
            // The bracket that closed the array is passed too: it is no text after the array when asked again.
            Cut::End => self.pass(self.buffer.len()),
        }
        Ok(found)
    }

    /// Moves the cursor on, counting lines.
    fn pass(&mut self, to: usize) {
        let passed = self.buffer.get(self.cursor.at..to).unwrap_or(&[]);
        if let Some(last) = memchr::memrchr(b'\n', passed) {
            self.cursor.lines += memchr::memchr_iter(b'\n', passed).count() as u64;
            self.cursor.line_start = self.base + (self.cursor.at + last + 1) as u64;
        }
        self.cursor.at = self.cursor.at.max(to);
    }

    /// Whether a row that is not whole yet is too long: its first bytes, which are kept, are here then.
    fn is_too_long(&self, needed: usize) -> bool {
        self.buffer.len().saturating_sub(needed) > self.options.max_row.max(MAX_CUT)
    }

    /// The error of the row at hand, which is too long: its first bytes are kept.
    fn cut_row(&mut self) -> Error {
        self.row.end = self.row.end.min(self.row.start + MAX_CUT);
        self.too_long()
    }

    fn too_long(&self) -> Error {
        Error::new(Code::TooLarge, format!("a row is longer than {} bytes", self.options.max_row))
    }

    /// The line that begins here is handed out as a bad one, and its rest is passed.
    fn pass_long_line(&mut self) -> Error {
        let (start, end) = (self.cursor.at, self.buffer.len());
        self.row = RowPlace { start, end, lines: self.cursor.lines, line_start: self.base + start as u64 };
        self.cursor.at = end;
        self.cursor.in_passed_line = true;
        self.cursor.rows += 1;
        self.cut_row()
    }

    /// Gets more bytes behind those from `needed` on.
    fn more(&mut self, needed: usize) -> Result<Filled> {
        if self.is_too_long(needed) {
            let offset = self.base + needed as u64;
            let line = self.first_line()?.map_or(0, |first| first + self.cursor.lines);
            return Err(self.located(self.too_long(), line, 1, offset));
        }
        let keep = self.mark.map_or(self.cursor.at, |mark| mark.at.min(self.cursor.at));
        if keep > 0 {
            self.buffer.drain(..keep);
            self.base += keep as u64;
            self.cursor.shift(keep);
            if let Some(mark) = &mut self.mark {
                mark.shift(keep);
            }
        }
        let have = self.base + self.buffer.len() as u64;
        // Beyond the end of a split only the rest of its last line is needed.
        let limit = self.options.end.map_or(u64::MAX, |end| if have < end { end - have } else { 64 << 10 });
        let name = self.options.name.clone();
        let filled = self.input.fill(&mut self.buffer, limit).map_err(|e| {
            let message = if e.message.contains(&name) { e.message.clone() } else { format!("{name}: {}", e.message) };
            Error { message, ..e }.path(name)
        })?;
        self.ended |= filled == Filled::End;
        Ok(filled)
    }
}

impl Cursor {
    fn shift(&mut self, count: usize) {
        self.at -= count;
        self.searched = self.searched.saturating_sub(count);
        self.splitter.shift(count);
    }
}

/// The error of a row that is no UTF-8, with the place of its first wrong byte.
#[cold]
fn not_utf8(row: &[u8]) -> Error {
    let at = std::str::from_utf8(row).err().map_or(0, |e| e.valid_up_to());
    let byte = row.get(at).copied().unwrap_or(0);
    Error::new(Code::InvalidUtf8, format!("the byte 0x{byte:02x} is not UTF-8 here")).offset(at as u64)
}
