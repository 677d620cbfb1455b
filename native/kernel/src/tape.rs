//! The tape: one row as a flat run of nodes, in document order. JSON text and Variant bytes both become a
//! tape (validated on the way); inference, shredding, encoding and printing walk one. Being flat, nothing
//! that walks it needs recursion, whatever the depth.
//!
//! ```text
//! {"a": [1, "x"], "b": null}
//!   0 Object  name -    count 2  end 5
//!   1 Array   name a    count 2  end 4
//!   2 Int     name -    1
//!   3 Str     name -    "x"
//!   4 Null    name b
//! ```

use crate::names::Names;

/// The types of a Variant, integers and decimals each as one kind: their width is a matter of the encoding,
/// not of the value (rule 17), except that `width` below remembers it for those who must keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    Null,
    True,
    False,
    /// Payload: the value. `aux`: bytes of the encoding it came from (1, 2, 4, 8), 0 when it came from JSON.
    Int,
    /// Payload: index into `wide` of the unscaled value. `aux`: the scale.
    Decimal,
    Float,
    Double,
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since the epoch, UTC.
    Timestamp,
    /// Microseconds since the epoch, no zone.
    TimestampNtz,
    /// Nanoseconds since the epoch, UTC.
    TimestampNanos,
    /// Nanoseconds since the epoch, no zone.
    TimestampNtzNanos,
    /// Microseconds since midnight.
    Time,
    /// Payload: index into `wide` of the big-endian number.
    Uuid,
    /// Payload: a range. `aux`: 0 when it lies in the source, 1 in the scratch text.
    Str,
    Binary,
    Object,
    Array,
}

/// 16 bytes. `name` is the field's name in its parent object, or [`NO_NAME`](crate::names::NO_NAME).
#[derive(Debug, Clone, Copy)]
pub struct Node {
    pub kind: Kind,
    pub aux: u8,
    pub name: u32,
    /// Containers: number of children. Ranges: first byte. Otherwise the low half of the payload.
    pub a: u32,
    /// Containers: index one past the last node of the subtree. Ranges: length. Otherwise the high half.
    pub b: u32,
}

impl Node {
    pub fn new(kind: Kind, name: u32) -> Self {
        Node { kind, aux: 0, name, a: 0, b: 0 }
    }

    pub fn with_bits(kind: Kind, name: u32, bits: u64) -> Self {
        Node { kind, aux: 0, name, a: bits as u32, b: (bits >> 32) as u32 }
    }

    pub fn with_range(kind: Kind, name: u32, start: usize, len: usize, in_scratch: bool) -> Self {
        Node { kind, aux: in_scratch as u8, name, a: start as u32, b: len as u32 }
    }

    pub fn bits(&self) -> u64 {
        self.a as u64 | (self.b as u64) << 32
    }

    pub fn int(&self) -> i64 {
        self.bits() as i64
    }

    pub fn double(&self) -> f64 {
        f64::from_bits(self.bits())
    }

    pub fn float(&self) -> f32 {
        f32::from_bits(self.a)
    }

    pub fn is_container(&self) -> bool {
        matches!(self.kind, Kind::Object | Kind::Array)
    }

    /// Index of the node after this one's subtree, for a node that stands at `at`.
    pub fn next(&self, at: usize) -> usize {
        if self.is_container() { self.b as usize } else { at + 1 }
    }
}

/// The reusable storage of one row. Whoever fills it clears it first. The source bytes (a JSON line, a
/// Variant value) stay with the caller; [`Tape::view`] joins both for reading.
#[derive(Default)]
pub struct Tape {
    pub nodes: Vec<Node>,
    /// Unescaped strings.
    pub scratch: Vec<u8>,
    /// Decimals and UUIDs.
    pub wide: Vec<i128>,
    /// What is known of the nodes, if anything.
    pub shape: Option<Shape>,
}

/// Rows of one shape have nodes of the same names, as many children and the same ends: they differ in the leaves' kinds
/// and values. No two sources of shapes have the same serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub source: u64,
    pub number: u32,
}

impl Tape {
    pub fn clear(&mut self) {
        self.shape = None;
        self.nodes.clear();
        self.scratch.clear();
        self.wide.clear();
    }

    pub fn view<'a>(&'a self, source: &'a [u8], names: &'a Names) -> TapeView<'a> {
        let Tape { nodes, scratch, wide, shape } = self;
        TapeView { nodes, scratch, wide, shape: *shape, source, text: None, names }
    }

    /// The same of a source that is text: its strings need no look at their bytes.
    pub fn view_text<'a>(&'a self, text: &'a str, names: &'a Names) -> TapeView<'a> {
        TapeView { text: Some(text), ..self.view(text.as_bytes(), names) }
    }
}

/// Rows of JSON text one after the other, for those who take many at once.
#[derive(Default)]
pub struct Tapes {
    tapes: Vec<Tape>,
    texts: String,
    /// Where each row's text ends.
    ends: Vec<usize>,
}

impl Tapes {
    /// The tape for the next row. It counts once its text is kept.
    pub fn room(&mut self) -> &mut Tape {
        let rows = self.ends.len();
        if self.tapes.len() <= rows {
            self.tapes.resize_with(rows + 1, Tape::default);
        }
        &mut self.tapes[rows]
    }

    /// Adds the row whose tape was made of this text.
    pub fn keep(&mut self, text: &str) {
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
    }

    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of the rows' texts.
    pub fn bytes(&self) -> usize {
        self.texts.len()
    }

    pub fn views<'a>(&'a self, names: &'a Names) -> Vec<TapeView<'a>> {
        let mut start = 0;
        let text = |&end: &usize| self.texts.get(std::mem::replace(&mut start, end)..end).unwrap_or("");
        self.ends.iter().map(text).zip(&self.tapes).map(|(text, tape)| tape.view_text(text, names)).collect()
    }

    pub fn clear(&mut self) {
        self.texts.clear();
        self.ends.clear();
    }
}

/// A tape to read from: what inference, shredding, encoding and printing are given.
#[derive(Clone, Copy)]
pub struct TapeView<'a> {
    pub nodes: &'a [Node],
    pub scratch: &'a [u8],
    pub wide: &'a [i128],
    pub shape: Option<Shape>,
    pub source: &'a [u8],
    /// The source, where it is text.
    pub text: Option<&'a str>,
    pub names: &'a Names,
}

impl<'a> TapeView<'a> {
    /// The bytes of a string or binary node.
    pub fn bytes(&self, node: &Node) -> &'a [u8] {
        let store = if node.aux == 1 { self.scratch } else { self.source };
        let start = node.a as usize;
        store.get(start..start + node.b as usize).unwrap_or(&[])
    }

    /// The text of a string node; `None` if its bytes are none.
    #[inline]
    pub fn text(&self, node: &Node) -> Option<&'a str> {
        match self.text {
            Some(text) if node.aux == 0 => text.get(node.a as usize..node.a as usize + node.b as usize),
            _ => std::str::from_utf8(self.bytes(node)).ok(),
        }
    }

    /// The bytes of the text of a string node; `None` if they are none.
    #[inline]
    pub fn text_bytes(&self, node: &Node) -> Option<&'a [u8]> {
        match self.text {
            // A string of JSON text begins and ends at quotes.
            Some(text) if node.aux == 0 => text.as_bytes().get(node.a as usize..node.a as usize + node.b as usize),
            _ => self.text(node).map(str::as_bytes),
        }
    }

    /// The unscaled value of a decimal, or the number of a UUID.
    pub fn wide(&self, node: &Node) -> i128 {
        self.wide.get(node.a as usize).copied().unwrap_or(0)
    }

    /// A leaf as a value of its own; `None` for containers.
    pub fn scalar(&self, node: &Node) -> Option<Scalar<'a>> {
        Some(match node.kind {
            Kind::Null => Scalar::Null,
            Kind::True => Scalar::Boolean(true),
            Kind::False => Scalar::Boolean(false),
            Kind::Int => Scalar::Int(node.int()),
            Kind::Decimal => Scalar::Decimal(self.wide(node), node.aux),
            Kind::Float => Scalar::Float(node.float()),
            Kind::Double => Scalar::Double(node.double()),
            Kind::Date => Scalar::Date(node.a as i32),
            Kind::Timestamp => Scalar::Timestamp(node.int()),
            Kind::TimestampNtz => Scalar::TimestampNtz(node.int()),
            Kind::TimestampNanos => Scalar::TimestampNanos(node.int()),
            Kind::TimestampNtzNanos => Scalar::TimestampNtzNanos(node.int()),
            Kind::Time => Scalar::Time(node.int()),
            Kind::Uuid => Scalar::Uuid(self.wide(node) as u128),
            Kind::Str => Scalar::Str(self.text(node).unwrap_or("")),
            Kind::Binary => Scalar::Binary(self.bytes(node)),
            Kind::Object | Kind::Array => return None,
        })
    }
}

/// A primitive Variant, borrowed. Casts, bounds and printing take one, wherever it came from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'a> {
    Null,
    Boolean(bool),
    Int(i64),
    /// Unscaled value and scale.
    Decimal(i128, u8),
    Float(f32),
    Double(f64),
    Date(i32),
    Timestamp(i64),
    TimestampNtz(i64),
    TimestampNanos(i64),
    TimestampNtzNanos(i64),
    Time(i64),
    Uuid(u128),
    Str(&'a str),
    Binary(&'a [u8]),
}
