//! A value built call by call into one growing buffer. Children are written where they will most likely stay:
//! the header's size is foretold from the last container at the same depth, and moved only when that was wrong.

use crate::error::{Code, Error, Result};
use crate::tape::Scalar;

use super::{Header, push_scalar, push_uint};

/// Writes values one after the other; [`VariantWriter::len`] between two of them is an offset of a binary column.
///
/// ```text
/// begin_object(); field(id, rank); scalar(..); field(id, rank); begin_array(); scalar(..); end()?; end()?
/// ```
/// In an array every value written is an element; in an object each needs a `field` before it.
#[derive(Default)]
pub struct VariantWriter {
    out: Vec<u8>,
    frames: Vec<Frame>,
    entries: Vec<Entry>,
    /// By depth: bytes of the header of the container that stood there last.
    foretold: Vec<u32>,
    header: Vec<u8>,
}

struct Frame {
    start: usize,
    data: usize,
    first_entry: usize,
    object: bool,
}

#[derive(Clone, Copy)]
struct Entry {
    rank: u32,
    id: u32,
    offset: u32,
}

impl VariantWriter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// All bytes written since the last `take`.
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Hands over what was written and begins anew.
    pub fn take(&mut self) -> Vec<u8> {
        self.frames.clear();
        self.entries.clear();
        std::mem::take(&mut self.out)
    }

    /// Drops everything after `len` bytes: a value begun and given up.
    pub fn truncate(&mut self, len: usize) {
        self.frames.clear();
        self.entries.clear();
        self.out.truncate(len);
    }

    pub fn begin_object(&mut self) {
        self.begin(true);
    }

    pub fn begin_array(&mut self) {
        self.begin(false);
    }

    fn begin(&mut self, object: bool) {
        self.element();
        let start = self.out.len();
        let gap = self.foretold.get(self.frames.len()).copied().unwrap_or(if object { 3 } else { 2 });
        self.out.resize(start + gap as usize, 0);
        self.frames.push(Frame { start, data: self.out.len(), first_entry: self.entries.len(), object });
    }

    /// The next value is the field with this id in the metadata; `rank` orders names by their bytes (for a sorted
    /// dictionary it is the id).
    #[inline]
    pub fn field(&mut self, id: u32, rank: u32) {
        if let Some(frame) = self.frames.last() {
            let offset = (self.out.len() - frame.data) as u32;
            self.entries.push(Entry { rank, id, offset });
        }
    }

    #[inline]
    fn element(&mut self) {
        if let Some(frame) = self.frames.last()
            && !frame.object
        {
            let offset = (self.out.len() - frame.data) as u32;
            self.entries.push(Entry { rank: 0, id: 0, offset });
        }
    }

    #[inline]
    pub fn scalar(&mut self, scalar: &Scalar) {
        self.scalar_of_width(scalar, 0);
    }

    /// As `scalar`, with integers in at least `width` bytes.
    #[inline]
    pub fn scalar_of_width(&mut self, scalar: &Scalar, width: u8) {
        self.element();
        push_scalar(&mut self.out, scalar, width);
    }

    /// A value that is encoded already, with field ids of the same metadata.
    #[inline]
    pub fn raw(&mut self, value: &[u8]) {
        self.element();
        self.out.extend_from_slice(value);
    }

    /// Lets another encoder append one value.
    pub fn with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        self.element();
        write(&mut self.out)
    }

    /// Closes the innermost container. Two fields of one rank are an error (rule 12).
    pub fn end(&mut self) -> Result<()> {
        let Some(frame) = self.frames.pop() else {
            return Err(Error::new(Code::InvalidArgument, "a container was closed that was never opened"));
        };
        let data = self.out.len() - frame.data;
        if data > u32::MAX as usize {
            return Err(Error::new(Code::TooLarge, "a value is beyond 4 GiB"));
        }
        let entries = self.entries.get_mut(frame.first_entry..).unwrap_or(&mut []);
        if frame.object && !entries.is_sorted_by(|a, b| a.rank < b.rank) {
            entries.sort_unstable_by_key(|e| e.rank);
            if entries.windows(2).any(|pair| pair[0].rank == pair[1].rank) {
                return Err(Error::new(Code::MalformedVariant, "a field name stands twice in one object").rule(12));
            }
        }
        let max_id = frame.object.then(|| entries.iter().map(|e| e.id).max().unwrap_or(0));
        let header = Header::new(entries.len(), max_id, data);
        self.header.clear();
        header.push_start(&mut self.header);
        if let Some(width) = header.id_width {
            entries.iter().for_each(|e| push_uint(&mut self.header, e.id as usize, width));
        }
        entries.iter().for_each(|e| push_uint(&mut self.header, e.offset as usize, header.offset_width));
        push_uint(&mut self.header, data, header.offset_width);
        self.entries.truncate(frame.first_entry);
        self.place(&frame, data);
        Ok(())
    }

    fn place(&mut self, frame: &Frame, data: usize) {
        let depth = self.frames.len();
        if self.foretold.len() <= depth {
            self.foretold.resize(depth + 1, 2);
        }
        if let Some(foretold) = self.foretold.get_mut(depth) {
            *foretold = self.header.len() as u32;
        }
        let to = frame.start + self.header.len();
        if to != frame.data {
            if to > frame.data {
                self.out.resize(to + data, 0);
            }
            self.out.copy_within(frame.data..frame.data + data, to);
            self.out.truncate(to + data);
        }
        if let Some(gap) = self.out.get_mut(frame.start..to) {
            gap.copy_from_slice(&self.header);
        }
    }
}
