//! What a tree does not type, as Variant value bytes: a whole subtree of the tape, or the fields of an object that
//! the tree does not name.
//!
//! Two passes over the flat tape, no recursion: sizes from the last node to the first (a container's children come
//! after it), then bytes from the first to the last. Values stand in document order, field ids in the order of the
//! names (rules 10 and 11).

use crate::shred::dictionary::{Dictionary, push, width_of};
use crate::tape::{Kind, Node, TapeView};

/// Reusable storage of the two passes.
#[derive(Default)]
pub struct Residual {
    /// By node, counted from the subtree's first: the bytes of its encoding.
    sizes: Vec<u32>,
    fields: Vec<Entry>,
}

/// A field of an object: its name and where its value begins.
#[derive(Clone, Copy)]
struct Entry {
    name: u32,
    id: u32,
    offset: u32,
}

/// The variable parts of a container's encoding.
struct Shape {
    count: usize,
    /// Bytes of a field id; 0 for arrays.
    id_width: usize,
    offset_width: usize,
    data: usize,
}

impl Shape {
    fn large(&self) -> bool {
        self.count > 255
    }

    fn header(&self) -> usize {
        let count = if self.large() { 4 } else { 1 };
        1 + count + self.id_width * self.count + self.offset_width * (self.count + 1)
    }

    fn write_start(&self, out: &mut Vec<u8>) {
        let offset = self.offset_width as u8 - 1;
        let large = self.large() as u8;
        out.push(match self.id_width {
            0 => 3 | offset << 2 | large << 4,
            id => 2 | offset << 2 | (id as u8 - 1) << 4 | large << 6,
        });
        push(out, self.count as u64, if self.large() { 4 } else { 1 });
    }
}

impl Residual {
    /// The subtree at `at`.
    pub fn subtree(&mut self, view: &TapeView, dictionary: &mut Dictionary, at: usize, out: &mut Vec<u8>) {
        let Some(node) = view.nodes.get(at) else { return };
        if !node.is_container() {
            return scalar(view, node, out);
        }
        self.measure(view, dictionary, at, node.next(at));
        self.write(view, dictionary, at, node.next(at), at, out);
    }

    /// An object of the fields at `fields`.
    pub fn object(&mut self, view: &TapeView, dictionary: &mut Dictionary, fields: &[u32], out: &mut Vec<u8>) {
        let Some((&first, &last)) = fields.first().zip(fields.last()) else { return };
        let (first, last) = (first as usize, last as usize);
        let Some(end) = view.nodes.get(last).map(|n| n.next(last)) else { return };
        // Every field is measured in one run; shredded siblings between them are never measured nor named.
        self.sizes.clear();
        self.sizes.resize(end - first, 0);
        for &field in fields {
            let field = field as usize;
            let end = view.nodes.get(field).map_or(field, |n| n.next(field));
            self.measure_run(view, dictionary, field, end, first);
        }
        let children = fields.iter().map(|&f| f as usize);
        let shape = self.gather(view, dictionary, children, first);
        self.write_object(view, &shape, out);
        for &field in fields {
            let field = field as usize;
            let end = view.nodes.get(field).map_or(field, |n| n.next(field));
            self.write(view, dictionary, field, end, first, out);
        }
    }

    fn measure(&mut self, view: &TapeView, dictionary: &mut Dictionary, at: usize, end: usize) {
        self.sizes.clear();
        self.sizes.resize(end - at, 0);
        self.measure_run(view, dictionary, at, end, at);
    }

    fn measure_run(&mut self, view: &TapeView, dictionary: &mut Dictionary, at: usize, end: usize, base: usize) {
        // Names first and forwards, so that a row's dictionary grows in document order.
        for node in view.nodes.get(at + 1..end).unwrap_or_default() {
            if node.name != crate::names::NO_NAME {
                dictionary.id(node.name);
            }
        }
        for index in (at..end).rev() {
            let Some(node) = view.nodes.get(index) else { continue };
            let size = if node.is_container() {
                let shape = self.shape(view, dictionary, index, node, base);
                shape.header() + shape.data
            } else {
                scalar_size(view, node)
            };
            if let Some(slot) = self.sizes.get_mut(index - base) {
                *slot = size as u32;
            }
        }
    }

    fn size(&self, index: usize, base: usize) -> usize {
        self.sizes.get(index - base).copied().unwrap_or(0) as usize
    }

    fn shape(&self, view: &TapeView, dictionary: &mut Dictionary, at: usize, node: &Node, base: usize) -> Shape {
        let (mut data, mut most) = (0, 0);
        let mut child = at + 1;
        for _ in 0..node.a {
            let Some(c) = view.nodes.get(child) else { break };
            data += self.size(child, base);
            if node.kind == Kind::Object {
                most = most.max(dictionary.id(c.name));
            }
            child = c.next(child);
        }
        let id_width = if node.kind == Kind::Object { width_of(most.into()) } else { 0 };
        Shape { count: node.a as usize, id_width, offset_width: width_of(data as u64), data }
    }

    /// Fills `fields` with an object's children, in the order of their names.
    fn gather(
        &mut self,
        view: &TapeView,
        dictionary: &mut Dictionary,
        children: impl Iterator<Item = usize>,
        base: usize,
    ) -> Shape {
        self.fields.clear();
        let (mut offset, mut most) = (0, 0);
        for child in children {
            let Some(node) = view.nodes.get(child) else { continue };
            let id = dictionary.id(node.name);
            most = most.max(id);
            self.fields.push(Entry { name: node.name, id, offset: offset as u32 });
            offset += self.size(child, base);
        }
        self.fields.sort_unstable_by(|a, b| view.names.get(a.name).as_bytes().cmp(view.names.get(b.name).as_bytes()));
        Shape {
            count: self.fields.len(),
            id_width: width_of(most.into()),
            offset_width: width_of(offset as u64),
            data: offset,
        }
    }

    fn write_object(&self, _view: &TapeView, shape: &Shape, out: &mut Vec<u8>) {
        shape.write_start(out);
        for entry in &self.fields {
            push(out, entry.id.into(), shape.id_width);
        }
        for entry in &self.fields {
            push(out, entry.offset.into(), shape.offset_width);
        }
        push(out, shape.data as u64, shape.offset_width);
    }

    fn write(
        &mut self,
        view: &TapeView,
        dictionary: &mut Dictionary,
        at: usize,
        end: usize,
        base: usize,
        out: &mut Vec<u8>,
    ) {
        for index in at..end {
            let Some(node) = view.nodes.get(index) else { continue };
            match node.kind {
                Kind::Object => {
                    let shape = self.gather(view, dictionary, children(view, index, node), base);
                    self.write_object(view, &shape, out);
                }
                Kind::Array => {
                    let shape = self.shape(view, dictionary, index, node, base);
                    shape.write_start(out);
                    let mut offset = 0;
                    for child in children(view, index, node) {
                        push(out, offset as u64, shape.offset_width);
                        offset += self.size(child, base);
                    }
                    push(out, offset as u64, shape.offset_width);
                }
                _ => scalar(view, node, out),
            }
        }
    }
}

fn children<'a>(view: &'a TapeView, at: usize, node: &Node) -> impl Iterator<Item = usize> + 'a {
    let mut child = at + 1;
    (0..node.a).map_while(move |_| {
        let here = child;
        child = view.nodes.get(here)?.next(here);
        Some(here)
    })
}

const fn primitive(id: u8) -> u8 {
    id << 2
}

/// Bytes of an integer: as it came, or the fewest.
fn int_width(node: &Node) -> usize {
    let value = node.int();
    let fewest = if i8::try_from(value).is_ok() {
        1
    } else if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    };
    fewest.max(node.aux as usize)
}

fn decimal_width(unscaled: i128, scale: u8) -> usize {
    const NINE: u128 = 999_999_999;
    const EIGHTEEN: u128 = 999_999_999_999_999_999;
    match unscaled.unsigned_abs() {
        digits if digits <= NINE && scale <= 9 => 4,
        digits if digits <= EIGHTEEN && scale <= 18 => 8,
        _ => 16,
    }
}

fn scalar_size(view: &TapeView, node: &Node) -> usize {
    1 + match node.kind {
        Kind::Null | Kind::True | Kind::False | Kind::Object | Kind::Array => 0,
        Kind::Int => int_width(node),
        Kind::Decimal => 1 + decimal_width(view.wide(node), node.aux),
        Kind::Float | Kind::Date => 4,
        Kind::Double
        | Kind::Timestamp
        | Kind::TimestampNtz
        | Kind::TimestampNanos
        | Kind::TimestampNtzNanos
        | Kind::Time => 8,
        Kind::Uuid => 16,
        Kind::Str if view.bytes(node).len() <= 63 => view.bytes(node).len(),
        Kind::Str | Kind::Binary => 4 + view.bytes(node).len(),
    }
}

fn scalar(view: &TapeView, node: &Node, out: &mut Vec<u8>) {
    match node.kind {
        Kind::Null | Kind::Object | Kind::Array => out.push(primitive(0)),
        Kind::True => out.push(primitive(1)),
        Kind::False => out.push(primitive(2)),
        Kind::Int => {
            let width = int_width(node);
            out.push(primitive(3 + width.trailing_zeros() as u8));
            push(out, node.bits(), width);
        }
        Kind::Decimal => {
            let unscaled = view.wide(node);
            let width = decimal_width(unscaled, node.aux);
            out.push(primitive(6 + width.trailing_zeros() as u8));
            out.push(node.aux);
            out.extend_from_slice(unscaled.to_le_bytes().get(..width).unwrap_or_default());
        }
        Kind::Float => fixed(out, 14, node.bits(), 4),
        Kind::Double => fixed(out, 7, node.bits(), 8),
        Kind::Date => fixed(out, 11, node.bits(), 4),
        Kind::Timestamp => fixed(out, 12, node.bits(), 8),
        Kind::TimestampNtz => fixed(out, 13, node.bits(), 8),
        Kind::Time => fixed(out, 17, node.bits(), 8),
        Kind::TimestampNanos => fixed(out, 18, node.bits(), 8),
        Kind::TimestampNtzNanos => fixed(out, 19, node.bits(), 8),
        Kind::Uuid => {
            out.push(primitive(20));
            out.extend_from_slice(&view.wide(node).to_be_bytes());
        }
        Kind::Str => {
            let bytes = view.bytes(node);
            if bytes.len() <= 63 {
                out.push(1 | (bytes.len() as u8) << 2);
                out.extend_from_slice(bytes);
            } else {
                long(out, 16, bytes);
            }
        }
        Kind::Binary => long(out, 15, view.bytes(node)),
    }
}

fn fixed(out: &mut Vec<u8>, id: u8, bits: u64, width: usize) {
    out.push(primitive(id));
    push(out, bits, width);
}

fn long(out: &mut Vec<u8>, id: u8, bytes: &[u8]) {
    out.push(primitive(id));
    push(out, bytes.len() as u64, 4);
    out.extend_from_slice(bytes);
}
