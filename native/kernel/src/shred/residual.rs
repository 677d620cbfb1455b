//! What a tree does not type, as Variant value bytes: a whole subtree of the tape, or the fields of an object that
//! the tree does not name.
//!
//! Two passes over the flat tape, no recursion: sizes from the last node to the first (a container's children come
//! after it), then bytes from the first to the last. Values stand in document order, field ids in the order of the
//! names (rules 10 and 11).

use crate::codec::primitive::{Header, int_width, push_scalar, push_string, push_uint, scalar_size, string_size};
use crate::names::NO_NAME;
use crate::shred::dictionary::Dictionary;
use crate::tape::{Kind, Node, Scalar, TapeView};

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
    offset: usize,
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
        let (header, data) = self.gather(view, dictionary, children, first);
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
        for node in view.nodes.get(at + 1..end).unwrap_or_default() {
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

    fn size(&self, index: usize, base: usize) -> usize {
        self.sizes.get(index - base).copied().unwrap_or(0) as usize
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
        for child in children(view, at, node) {
            data += self.size(child, base);
            if node.kind == Kind::Object {
                most = most.max(view.nodes.get(child).map_or(0, |c| dictionary.id(c.name)));
            }
        }
        (Header::new(node.a as usize, (node.kind == Kind::Object).then_some(most), data), data)
    }

    /// Fills `fields` with an object's children, in the order of their names.
    fn gather(
        &mut self,
        view: &TapeView,
        dictionary: &mut Dictionary,
        children: impl Iterator<Item = usize>,
        base: usize,
    ) -> (Header, usize) {
        self.fields.clear();
        let (mut offset, mut most) = (0, 0);
        for child in children {
            let Some(node) = view.nodes.get(child) else { continue };
            let id = dictionary.id(node.name);
            most = most.max(id);
            self.fields.push(Entry { name: node.name, id, offset });
            offset += self.size(child, base);
        }
        self.fields.sort_unstable_by(|a, b| view.names.get(a.name).as_bytes().cmp(view.names.get(b.name).as_bytes()));
        (Header::new(self.fields.len(), Some(most), offset), offset)
    }

    fn write_object(&self, header: &Header, data: usize, out: &mut Vec<u8>) {
        header.push_start(out);
        for entry in &self.fields {
            push_uint(out, entry.id as usize, header.id_width.unwrap_or(1));
        }
        for entry in &self.fields {
            push_uint(out, entry.offset, header.offset_width);
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
                    let (header, data) = self.gather(view, dictionary, children(view, index, node), base);
                    self.write_object(&header, data, out);
                }
                Kind::Array => {
                    let (header, data) = self.header(view, dictionary, index, node, base);
                    header.push_start(out);
                    let mut offset = 0;
                    for child in children(view, index, node) {
                        push_uint(out, offset, header.offset_width);
                        offset += self.size(child, base);
                    }
                    push_uint(out, data, header.offset_width);
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

fn size(view: &TapeView, node: &Node) -> usize {
    match node.kind {
        Kind::Str => string_size(node.b as usize),
        Kind::Int => 1 + int_width(node.int()).max(node.aux) as usize,
        _ => view.scalar(node).map_or(1, |scalar| scalar_size(&scalar, 0)),
    }
}

fn scalar(view: &TapeView, node: &Node, out: &mut Vec<u8>) {
    match node.kind {
        Kind::Str => push_string(out, view.bytes(node)),
        Kind::Int => push_scalar(out, &Scalar::Int(node.int()), node.aux),
        _ => push_scalar(out, &view.scalar(node).unwrap_or(Scalar::Null), 0),
    }
}
