//! What rows of one outline under one metadata have in common: the heads of their objects, and the order of what is in
//! them, as a list of steps without levels.

use crate::codec::known::RowNames;
use crate::codec::primitive::Header;
use crate::values::level::Level;
use crate::values::reconstruct::leaves::{Leaves, Place};

/// Bytes of a head that are copied at once.
pub const HEAD: usize = 32;

/// Deeper objects are left to the walk.
pub const DEPTH: usize = 8;

/// A template of fewer leaves costs as much as the walk.
const LEAVES: usize = 4;

/// A row that does not fit is written twice. A template is given up when so many rows did not fit, and as many more as an
/// eighth of those that did: a few large rows among many do not cost the others their template.
const MISFITS: usize = 2;
const FITS_PER_MISFIT: usize = 8;

/// What comes next in a row.
#[derive(Clone, Copy)]
pub enum Step {
    Text(u32),
    Eight(u32),
    /// Another leaf.
    Leaf(u32),
    /// A residual and nothing else, which the walk writes if it is not simple.
    Residual(u32),
    /// A level that the walk writes.
    Other(u32),
    Open(u32),
    Close(u32),
}

/// What objects of one place have in common.
pub struct ObjectHead {
    header: Header,
    /// The first byte, the number of fields and their ids, and as many bytes more as are copied at once.
    bytes: Vec<u8>,
    /// How many they are without those.
    pub len: usize,
    pub count: usize,
    /// Of the offsets in the widest one so far.
    pub width: usize,
}

impl ObjectHead {
    fn new(header: Header, ids: &[u32]) -> Self {
        let mut bytes = Vec::new();
        header.push_start(&mut bytes);
        let width = header.id_width.unwrap_or(0);
        ids.iter().for_each(|id| bytes.extend_from_slice(id.to_le_bytes().get(..width).unwrap_or(&[])));
        let len = bytes.len();
        bytes.resize(len.max(HEAD), 0);
        ObjectHead { header, bytes, len, count: ids.len(), width: header.offset_width }
    }

    #[inline(always)]
    pub fn first_bytes(&self) -> Option<&[u8; HEAD]> {
        self.bytes.first_chunk()
    }

    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    /// The first byte if offsets are of one byte.
    pub fn narrow_first(&self) -> u8 {
        Header { offset_width: 1, ..self.header }.first()
    }

    pub fn set_width(&mut self, width: usize) {
        self.header.offset_width = width;
        self.width = width;
        if let Some(first) = self.bytes.first_mut() {
            *first = self.header.first();
        }
    }
}

#[derive(Default)]
pub struct Template {
    pub steps: Vec<Step>,
    pub heads: Vec<ObjectHead>,
    pub others: Vec<Other>,
    /// Rows that fitted, and that did not.
    fits: usize,
    misfits: usize,
}

impl Template {
    /// For rows of an outline; none where a name is missing, or where it would be no faster than the walk.
    pub fn of(level: &Level, names: RowNames<'_>, leaves: &Leaves, outline: &[u64]) -> Option<Self> {
        Maker::make(level, names, leaves, outline)
    }

    #[inline]
    pub fn count(&mut self, fits: bool) {
        if fits {
            self.fits += 1;
        } else {
            self.misfits += 1;
        }
    }

    /// Whether so few rows did not fit that it pays to try the next one.
    #[inline]
    pub fn pays(&self) -> bool {
        self.misfits < MISFITS + self.fits / FITS_PER_MISFIT
    }
}

/// A level that the walk writes.
pub struct Other {
    /// The place of each field on the way to it.
    pub path: Vec<u32>,
    /// It is a residual and nothing else.
    pub untyped: bool,
    /// Of a [residual](Step::Residual), which one of the leaves' it is.
    pub residual: u32,
}

/// Makes one.
struct Maker<'a> {
    first: usize,
    names: RowNames<'a>,
    leaves: &'a Leaves,
    present: &'a [u64],
    odd: &'a [u64],
    path: Vec<u32>,
    leaf_steps: usize,
    made: Template,
}

impl<'a> Maker<'a> {
    fn make(level: &Level, names: RowNames<'a>, leaves: &'a Leaves, key: &'a [u64]) -> Option<Template> {
        let (present, odd) = key.split_at(key.len() / 2);
        let path = Vec::new();
        let mut maker =
            Maker { first: level.number, names, leaves, present, odd, path, leaf_steps: 0, made: Template::default() };
        maker.add(level)?;
        let (leaves, others) = (maker.leaf_steps, maker.made.others.len());
        (leaves >= LEAVES && leaves > others).then_some(maker.made)
    }

    fn has(bits: &[u64], place: usize) -> bool {
        bits.get(place / 64).is_some_and(|bits| bits >> (place % 64) & 1 == 1)
    }

    fn add(&mut self, level: &Level) -> Option<()> {
        let place = level.number - self.first;
        if Self::has(self.odd, place) || self.path.len() == DEPTH {
            let untyped = level.leaf.is_none() && level.object.is_none() && level.array.is_none();
            // The first of all levels is written where it is null, too.
            let untyped = untyped && place > 0 && Self::has(self.odd, place);
            let number = self.made.others.len() as u32;
            let residual = self.leaves.residual(place).filter(|_| untyped);
            self.made.steps.push(if residual.is_some() { Step::Residual(number) } else { Step::Other(number) });
            self.made.others.push(Other { path: self.path.clone(), untyped, residual: residual.unwrap_or(0) });
            return Some(());
        }
        let Some(object) = &level.object else {
            self.leaf_steps += 1;
            self.made.steps.push(match self.leaves.place(place)? {
                Place::Text(number) => Step::Text(number),
                Place::Eight(number) => Step::Eight(number),
                Place::Other(number) => Step::Leaf(number),
            });
            return Some(());
        };
        let fields = object.fields.iter().enumerate();
        let fields: Vec<_> = fields.filter(|(_, f)| Self::has(self.present, f.level.number - self.first)).collect();
        let ids = fields.iter().map(|(_, field)| self.names.id_of_level(field.level.number));
        let ids = ids.collect::<Option<Vec<u32>>>()?;
        // As the walk has it: only beyond a byte it matters which they are.
        let largest = if self.names.len() > 0x100 { ids.iter().copied().max().unwrap_or(0) } else { 0xff };
        let header = Header::new(ids.len(), Some(largest), 0);
        let number = self.made.heads.len() as u32;
        self.made.heads.push(ObjectHead::new(header, &ids));
        self.made.steps.push(Step::Open(number));
        for (rank, field) in fields {
            self.path.push(rank as u32);
            self.add(&field.level)?;
            self.path.pop();
        }
        self.made.steps.push(Step::Close(number));
        Some(())
    }
}
