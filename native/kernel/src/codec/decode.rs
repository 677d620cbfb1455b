//! A Variant, metadata and value, becomes a tape; no byte is used before it is validated (rules 3 to 18), nothing
//! recurses, and the work is linear (`children`). Object ids out of order are read all the same and reported.

use crate::codec::children::{Children, check_ids, id};
use crate::codec::head::{check_decimal, cut, fault, head, too_deep};
use crate::codec::metadata::{parse, ranks};
use crate::codec::primitive::id as kind;
use crate::codec::recent::Recent;
use crate::error::{Code, Error, Result};
use crate::limits::MAX_VALUE_DEPTH;
use crate::names::{Mark, NO_NAME, Names};
use crate::path::{push_index, push_key};
use crate::tape::{Kind, Node, Tape};
use crate::text::utf8::is_utf8;

/// What was accepted although the specification says otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tolerated {
    /// An object's ids are not in the order of their names (rule 10).
    pub unsorted_ids: bool,
}

#[derive(Default)]
pub struct VariantDecoder {
    /// Metadata seen lately, so that each is read and hashed by name once.
    recent: Recent<u8, ResolvedNames, { 16 << 20 }>,
    mark: Mark,
    stack: Vec<Frame>,
    /// Field ids to sort.
    ids: Vec<u32>,
}

struct Frame {
    children: Children,
    node: u32,
    /// Name of the child that was begun last.
    name: u32,
}

impl VariantDecoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Fills `tape` (cleared first); read it with `tape.view(value, names)`. Always hand in the same `names`.
    /// An error carries the rule, the offset in `value` (or in `metadata`, for rules 3 to 5) and the JSON path.
    pub fn decode(&mut self, metadata: &[u8], value: &[u8], tape: &mut Tape, names: &mut Names) -> Result<Tolerated> {
        tape.clear();
        self.stack.clear();
        self.load(metadata, names)?;
        if value.len() > u32::MAX as usize / 2 {
            return Err(Error::new(Code::TooLarge, "one value exceeds 2 GiB"));
        }
        let mut findings = Tolerated::default();
        self.walk(value, tape, &mut findings).map_err(|e| match self.path(names) {
            Some(path) => e.path(path),
            None => e,
        })?;
        Ok(findings)
    }

    fn load(&mut self, metadata: &[u8], names: &mut Names) -> Result<()> {
        if self.mark != names.mark() {
            self.recent.clear();
            self.mark = names.mark();
        }
        if self.recent.find(metadata) {
            return Ok(());
        }
        let resolved = resolve(metadata, names)?;
        let cost = metadata.len() + 8 * resolved.fields.len();
        self.recent.insert(metadata, resolved, cost);
        Ok(())
    }

    fn walk(&mut self, value: &[u8], tape: &mut Tape, findings: &mut Tolerated) -> Result<()> {
        let end = self.one(value, 0, NO_NAME, tape, findings)?;
        if end != value.len() {
            return Err(fault(15, end, "bytes follow the end of the value"));
        }
        while let Some(frame) = self.stack.last_mut() {
            let index = frame.children.begun;
            let Some(child) = frame.children.begin(value)? else {
                let (node, end) = (frame.node as usize, tape.nodes.len() as u32);
                if let Some(node) = tape.nodes.get_mut(node) {
                    (node.a, node.b) = (index as u32, end);
                }
                self.stack.pop();
                continue;
            };
            let mut name = NO_NAME;
            if frame.children.head.object {
                let field = id(value, &frame.children.head, index)? as usize;
                name = self.recent.current().and_then(|(_, d)| d.fields.get(field).copied()).unwrap_or(NO_NAME);
                frame.name = name;
            }
            let depth = self.stack.len();
            let end = self.one(value, child, name, tape, findings)?;
            // `one` may have opened a frame above the parent's.
            if let Some(parent) = self.stack.get_mut(depth - 1) {
                parent.children.took(child, end)?;
            }
        }
        Ok(())
    }

    /// Reads the value at `at`: a scalar whole, of a container the head; gives the end of the value.
    #[inline]
    fn one(&mut self, value: &[u8], at: usize, name: u32, tape: &mut Tape, findings: &mut Tolerated) -> Result<usize> {
        let first = *value.get(at).ok_or_else(|| cut(at))?;
        match first & 3 {
            0 => primitive(value, at, first >> 2, name, tape),
            1 => text(value, at, at + 1, (first >> 2) as usize, name, tape),
            _ => self.open(value, at, name, tape, findings),
        }
    }

    fn open(&mut self, value: &[u8], at: usize, name: u32, tape: &mut Tape, findings: &mut Tolerated) -> Result<usize> {
        if self.stack.len() >= MAX_VALUE_DEPTH {
            return Err(too_deep(at));
        }
        let head = head(value, at)?;
        if head.count > head.end - head.body {
            // Every child takes a byte at least.
            return Err(fault(15, at, "an object or array has more children than bytes"));
        }
        if head.object
            && let Some((_, dictionary)) = self.recent.current()
        {
            let rank = |id: u32| dictionary.ranks.get(id as usize).copied();
            findings.unsorted_ids |= !check_ids(value, at, &head, &mut self.ids, rank)?;
        }
        let kind = if head.object { Kind::Object } else { Kind::Array };
        let node = tape.nodes.len() as u32;
        self.stack.push(Frame { children: Children::of(head), node, name: NO_NAME });
        tape.nodes.push(Node::new(kind, name));
        Ok(head.end)
    }

    /// Where the walk stands, as a JSON path; `None` at the root.
    #[cold]
    fn path(&self, names: &Names) -> Option<String> {
        let mut path = String::from("$");
        for frame in self.stack.iter().filter(|f| f.children.begun > 0) {
            if frame.children.head.object {
                push_key(&mut path, names.get(frame.name));
            } else {
                push_index(&mut path, frame.children.begun - 1);
            }
        }
        (path.len() > 1).then_some(path)
    }
}

fn primitive(value: &[u8], at: usize, type_id: u8, name: u32, tape: &mut Tape) -> Result<usize> {
    let body = at + 1;
    let node = match type_id {
        kind::NULL => Node::new(Kind::Null, name),
        kind::TRUE => Node::new(Kind::True, name),
        kind::FALSE => Node::new(Kind::False, name),
        kind::INT8 => int(i8::from_le_bytes(fixed(value, body)?) as i64, 1, name),
        kind::INT16 => int(i16::from_le_bytes(fixed(value, body)?) as i64, 2, name),
        kind::INT32 => int(i32::from_le_bytes(fixed(value, body)?) as i64, 4, name),
        kind::INT64 => int(i64::from_le_bytes(fixed(value, body)?), 8, name),
        kind::DECIMAL4 => {
            let unscaled = i32::from_le_bytes(fixed(value, body + 1)?);
            return decimal(value, at, 4, unscaled as i128, name, tape);
        }
        kind::DECIMAL8 => {
            let unscaled = i64::from_le_bytes(fixed(value, body + 1)?);
            return decimal(value, at, 8, unscaled as i128, name, tape);
        }
        kind::DECIMAL16 => {
            let unscaled = i128::from_le_bytes(fixed(value, body + 1)?);
            return decimal(value, at, 16, unscaled, name, tape);
        }
        kind::FLOAT => Node::with_bits(Kind::Float, name, u32::from_le_bytes(fixed(value, body)?) as u64),
        kind::DATE => Node::with_bits(Kind::Date, name, u32::from_le_bytes(fixed(value, body)?) as u64),
        kind::DOUBLE => wide(value, body, Kind::Double, name)?,
        kind::TIMESTAMP => wide(value, body, Kind::Timestamp, name)?,
        kind::TIMESTAMP_NTZ => wide(value, body, Kind::TimestampNtz, name)?,
        kind::TIMESTAMP_NANOS => wide(value, body, Kind::TimestampNanos, name)?,
        kind::TIMESTAMP_NTZ_NANOS => wide(value, body, Kind::TimestampNtzNanos, name)?,
        kind::TIME => wide(value, body, Kind::Time, name)?,
        kind::UUID => {
            let number = u128::from_be_bytes(fixed(value, body)?);
            tape.wide.push(number as i128);
            Node::with_bits(Kind::Uuid, name, tape.wide.len() as u64 - 1)
        }
        kind::STRING => {
            let len = u32::from_le_bytes(fixed(value, body)?) as usize;
            return text(value, at, body + 4, len, name, tape);
        }
        kind::BINARY => {
            let len = u32::from_le_bytes(fixed(value, body)?) as usize;
            let end = body + 4 + len;
            value.get(body + 4..end).ok_or_else(|| cut(at))?;
            tape.nodes.push(Node::with_range(Kind::Binary, name, body + 4, len, false));
            return Ok(end);
        }
        unknown => return Err(fault(7, at, format!("the primitive type {unknown} is unknown"))),
    };
    tape.nodes.push(node);
    Ok(body + width(type_id))
}

/// Bytes of the payload of a primitive of fixed size.
fn width(type_id: u8) -> usize {
    match type_id {
        kind::NULL | kind::TRUE | kind::FALSE => 0,
        kind::INT8 => 1,
        kind::INT16 => 2,
        kind::INT32 | kind::FLOAT | kind::DATE => 4,
        kind::UUID => 16,
        _ => 8,
    }
}

fn int(value: i64, width: u8, name: u32) -> Node {
    Node { aux: width, ..Node::with_bits(Kind::Int, name, value as u64) }
}

fn wide(value: &[u8], at: usize, kind: Kind, name: u32) -> Result<Node> {
    Ok(Node::with_bits(kind, name, u64::from_le_bytes(fixed(value, at)?)))
}

fn decimal(value: &[u8], at: usize, width: usize, unscaled: i128, name: u32, tape: &mut Tape) -> Result<usize> {
    let scale = *value.get(at + 1).ok_or_else(|| cut(at))?;
    check_decimal(width, scale, unscaled, at)?;
    tape.wide.push(unscaled);
    tape.nodes.push(Node { aux: scale, ..Node::with_bits(Kind::Decimal, name, tape.wide.len() as u64 - 1) });
    Ok(at + 2 + width)
}

#[inline]
fn text(value: &[u8], at: usize, start: usize, len: usize, name: u32, tape: &mut Tape) -> Result<usize> {
    let bytes = value.get(start..start + len).ok_or_else(|| cut(at))?;
    if !is_utf8(bytes) {
        return Err(fault(6, at, "a string is not UTF-8"));
    }
    tape.nodes.push(Node::with_range(Kind::Str, name, start, len, false));
    Ok(start + len)
}

#[inline]
fn fixed<const N: usize>(value: &[u8], at: usize) -> Result<[u8; N]> {
    value.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().ok_or_else(|| cut(at))
}

/// A metadata resolved: its names as ids of [`Names`], and their ranks in byte order (equal for equal names).
struct ResolvedNames {
    fields: Vec<u32>,
    ranks: Vec<u32>,
}

fn resolve(metadata: &[u8], names: &mut Names) -> Result<ResolvedNames> {
    let mut ranges = Vec::new();
    parse(metadata, &mut ranges)?;
    let text = |range: &(u32, u32)| metadata.get(range.0 as usize..range.1 as usize).unwrap_or(&[]);
    let mut fields = Vec::with_capacity(ranges.len());
    for range in &ranges {
        let name = std::str::from_utf8(text(range)).map_err(|_| fault(5, 0, "a field name is not UTF-8"))?;
        fields.push(names.intern(name));
    }
    Ok(ResolvedNames { fields, ranks: ranks(metadata, &ranges) })
}
