//! Tape to value bytes: a whole subtree, or an object of some of its fields.
//!
//! Two passes over the flat tape, no recursion: sizes from the last node to the first (a container's children come
//! after it), then bytes from the first to the last. Values stand in document order, field ids in the order of the
//! names (rules 10 and 11).

use crate::codec::dictionary::{Dictionary, OwnDictionaries};
use crate::codec::primitive::{Header, decimal_width, int_width, push_scalar, push_string, push_uint, string_size};
use crate::names::NO_NAME;
use crate::tape::{Kind, Node, Scalar, TapeView};

/// Reusable storage of the two passes.
#[derive(Default)]
pub struct ValueWriter {
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

impl ValueWriter {
    /// The subtree at `at`.
    pub fn subtree(&mut self, view: &TapeView, dictionary: &mut Dictionary, at: usize, out: &mut Vec<u8>) {
        let Some(node) = view.nodes.get(at) else { return };
        if !node.is_container() {
            return scalar(view, node, out);
        }
        let inside = view.nodes.get(at + 1..node.next(at)).unwrap_or_default();
        if node.kind == Kind::Object && !inside.iter().any(Node::is_container) {
            return self.flat_object(view, dictionary, at, node, out);
        }
        self.measure(view, dictionary, at, node.next(at));
        out.reserve(self.size_of(at, at));
        self.write(view, dictionary, at, node.next(at), at, out);
    }

    /// An object without containers in it, the most frequent one: all is known after one look at its fields.
    fn flat_object(&mut self, view: &TapeView, dictionary: &mut Dictionary, at: usize, node: &Node, out: &mut Vec<u8>) {
        let (header, bytes) =
            gather(&mut self.fields, view, dictionary, children(view, at, node), |_, node| size(view, node));
        out.reserve(header.size() + bytes);
        self.write_object(&header, bytes, out);
        for (_, node) in children(view, at, node) {
            scalar(view, node, out);
        }
    }

    /// Bytes of the subtree at `at`.
    pub fn size(&mut self, view: &TapeView, dictionary: &mut Dictionary, at: usize) -> usize {
        self.measure(view, dictionary, at, view.nodes.get(at).map_or(at, |node| node.next(at)));
        self.size_of(at, at)
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
        let children = fields.iter().filter_map(|&f| Some((f as usize, view.nodes.get(f as usize)?)));
        let sizes = &self.sizes;
        let (header, data) = gather(&mut self.fields, view, dictionary, children, |at, _| size_at(sizes, at, first));
        self.write_object(&header, data, out);
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
        let run = if dictionary.is_complete() { at + 1..at + 1 } else { at + 1..end };
        for node in view.nodes.get(run).unwrap_or_default() {
            if node.name != NO_NAME {
                dictionary.id(node.name);
            }
        }
        for index in (at..end).rev() {
            let Some(node) = view.nodes.get(index) else { continue };
            let size = if node.is_container() {
                let (header, data) = self.header(view, dictionary, index, node, base);
                header.size() + data
            } else {
                size(view, node)
            };
            if let Some(slot) = self.sizes.get_mut(index - base) {
                *slot = size as u32;
            }
        }
    }

    fn size_of(&self, index: usize, base: usize) -> usize {
        size_at(&self.sizes, index, base)
    }

    /// The header of the container at `at`, whose children are measured, and the bytes of its children.
    fn header(
        &self,
        view: &TapeView,
        dictionary: &mut Dictionary,
        at: usize,
        node: &Node,
        base: usize,
    ) -> (Header, usize) {
        let (mut data, mut most) = (0, 0);
        for (child, child_node) in children(view, at, node) {
            data += self.size_of(child, base);
            if node.kind == Kind::Object {
                most = most.max(dictionary.id(child_node.name));
            }
        }
        (Header::new(node.a as usize, (node.kind == Kind::Object).then_some(most), data), data)
    }

    fn write_object(&self, header: &Header, data: usize, out: &mut Vec<u8>) {
        header.push_start(out);
        for entry in &self.fields {
            push_uint(out, entry.id as usize, header.id_width.unwrap_or(1));
        }
        for entry in &self.fields {
            push_uint(out, entry.offset as usize, header.offset_width);
        }
        push_uint(out, data, header.offset_width);
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
                    let (fields, sizes) = (&mut self.fields, &self.sizes);
                    let children = children(view, index, node);
                    let (header, data) = gather(fields, view, dictionary, children, |at, _| size_at(sizes, at, base));
                    self.write_object(&header, data, out);
                }
                Kind::Array => {
                    let (header, data) = self.header(view, dictionary, index, node, base);
                    header.push_start(out);
                    let mut offset = 0;
                    for (child, _) in children(view, index, node) {
                        push_uint(out, offset, header.offset_width);
                        offset += self.size_of(child, base);
                    }
                    push_uint(out, data, header.offset_width);
                }
                _ => scalar(view, node, out),
            }
        }
    }
}

fn size_at(sizes: &[u32], index: usize, base: usize) -> usize {
    sizes.get(index - base).copied().unwrap_or(0) as usize
}

/// Fills `fields` with an object's children, in the order of their names; gives its header, and the bytes of them all.
#[inline]
fn gather<'a>(
    fields: &mut Vec<Entry>,
    view: &TapeView,
    dictionary: &mut Dictionary,
    children: impl Iterator<Item = (usize, &'a Node)>,
    size: impl Fn(usize, &Node) -> usize,
) -> (Header, usize) {
    fields.clear();
    let (mut offset, mut most, mut sorted) = (0, 0, true);
    for (child, node) in children {
        let id = dictionary.id(node.name);
        sorted &= fields.is_empty() || most < id;
        most = most.max(id);
        fields.push(Entry { name: node.name, id, offset: offset as u32 });
        offset += size(child, node);
    }
    if !dictionary.is_base(most) {
        let name = |entry: &Entry| view.names.get(entry.name).as_bytes();
        fields.sort_unstable_by(|a, b| name(a).cmp(name(b)));
    } else if !sorted {
        fields.sort_unstable_by_key(|entry| entry.id);
    }
    (Header::new(fields.len(), Some(most), offset), offset)
}

/// The children of the container at `at`, with their places.
fn children<'a>(view: &'a TapeView, at: usize, node: &Node) -> impl Iterator<Item = (usize, &'a Node)> {
    let mut child = at + 1;
    (0..node.a).map_while(move |_| {
        let (here, node) = (child, view.nodes.get(child)?);
        child = node.next(child);
        Some((here, node))
    })
}

fn size(view: &TapeView, node: &Node) -> usize {
    match node.kind {
        Kind::Null | Kind::True | Kind::False => 1,
        Kind::Int => 1 + int_width(node.int()).max(node.aux) as usize,
        Kind::Str => string_size(node.b as usize),
        Kind::Binary => 5 + node.b as usize,
        Kind::Decimal => 2 + decimal_width(view.wide(node), node.aux) as usize,
        Kind::Float | Kind::Date => 5,
        Kind::Uuid => 17,
        _ => 9,
    }
}

fn scalar(view: &TapeView, node: &Node, out: &mut Vec<u8>) {
    match node.kind {
        Kind::Str => push_string(out, view.bytes(node)),
        Kind::Int => push_scalar(out, &Scalar::Int(node.int()), node.aux),
        _ => push_scalar(out, &view.scalar(node).unwrap_or(Scalar::Null), 0),
    }
}

/// Bytes of metadata and value together of the subtree at `at`, with a dictionary of its own.
pub fn variant_size(view: &TapeView, at: usize) -> usize {
    let mut dictionaries = OwnDictionaries::default();
    let dictionary = dictionaries.of(view, at);
    dictionary.base_bytes().len() + ValueWriter::default().size(view, dictionary, at)
}
