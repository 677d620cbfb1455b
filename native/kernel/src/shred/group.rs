//! One level of a shredded column: where a value goes, and what is left of it.
//!
//! | value    | typed_value | meaning                                          |
//! |----------|-------------|--------------------------------------------------|
//! | null     | null        | missing: object fields only (rule 22)            |
//! | set      | null        | any other type, a JSON null too (rules 23 and 27) |
//! | null     | set         | the shredded type (rule 24)                      |
//! | object   | object      | shredded fields here, the others there (rule 25) |
//!
//! The early layout says the same with other names (`layout/mod.rs`).
//!
//! Every level below the root without an array between has the row's index; elements of an array are counted.

use std::sync::Arc;

use arrow::array::ListArray;
use arrow::buffer::{OffsetBuffer, ScalarBuffer};

use crate::codec::dictionary::Dictionary;
use crate::codec::encode::ValueWriter;
use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::names::Names;
use crate::rows::Column;
use crate::shred::column::{Bits, Bytes, LeafBuilder};
use crate::tape::{Kind, TapeView};
use crate::tree::Tree;

const NONE: u32 = u32::MAX;

/// What writing a row needs besides the columns.
pub struct Row<'a> {
    pub view: TapeView<'a>,
    pub dictionary: &'a mut Dictionary,
    pub residual: &'a mut ValueWriter,
    /// A stack: fields that the objects being written leave over.
    pub left: &'a mut Vec<u32>,
    /// Room for a value whose metadata stands before it (early layout); `None` where rows have metadata.
    pub own: Option<&'a mut Vec<u8>>,
}

/// The columns of one level.
pub struct Group {
    tree: Tree,
    layout: Layout,
    value: Bytes,
    typed: Typed,
}

enum Typed {
    None,
    Leaf(LeafBuilder),
    Object(Object),
    Array(Box<Array>),
}

struct Object {
    valid: Bits,
    /// By name id: the position in `fields`.
    slots: Vec<u32>,
    fields: Vec<Group>,
}

struct Array {
    valid: Bits,
    offsets: Vec<i32>,
    element: Group,
    elements: usize,
}

impl Row<'_> {
    /// The fields that were left over since the stack was so high, as an object.
    fn left_over(&mut self, since: usize, out: &mut Vec<u8>) {
        let (view, left) = (self.view, self.left.get(since..).unwrap_or_default());
        match &mut self.own {
            None => self.residual.object(&view, self.dictionary, left, out),
            Some(own) => {
                self.residual.object(&view, self.dictionary, left, own);
                self.dictionary.finish_row(view.names, out);
                out.append(own);
            }
        }
    }

    /// The subtree at `at`.
    fn whole(&mut self, at: usize, out: &mut Vec<u8>) {
        let view = self.view;
        match &mut self.own {
            None => self.residual.subtree(&view, self.dictionary, at, out),
            Some(own) => {
                self.residual.subtree(&view, self.dictionary, at, own);
                self.dictionary.finish_row(view.names, out);
                out.append(own);
            }
        }
    }
}

impl Group {
    /// Compiles a tree; its names get ids.
    pub fn new(tree: &Tree, layout: Layout, names: &mut Names) -> Self {
        let typed = if let Some(fields) = &tree.object {
            let mut slots = Vec::new();
            for (position, field) in fields.iter().enumerate() {
                let id = names.intern(&field.name) as usize;
                if slots.len() <= id {
                    slots.resize(id + 1, NONE);
                }
                slots[id] = position as u32;
            }
            let fields = fields.iter().map(|f| Group::new(&f.tree, layout, names)).collect();
            Typed::Object(Object { valid: Bits::default(), slots, fields })
        } else if let Some(element) = &tree.array {
            let element = Group::new(element, layout, names);
            Typed::Array(Box::new(Array { valid: Bits::default(), offsets: vec![0], element, elements: 0 }))
        } else {
            tree.leaf.map_or(Typed::None, |leaf| Typed::Leaf(LeafBuilder::new(leaf)))
        };
        Group { tree: tree.clone(), layout, value: Bytes::default(), typed }
    }

    /// Writes the tape's subtree at `at` as the value with this index.
    #[inline]
    pub fn put(&mut self, row: &mut Row, at: usize, index: usize) -> Result<()> {
        let Some(node) = row.view.nodes.get(at) else { return Ok(()) };
        // Most values are leaves: no call for a level stands before them.
        if let Typed::Leaf(leaf) = &mut self.typed
            && leaf.put(&row.view, node, index)?
        {
            return Ok(());
        }
        self.put_other(row, at, node.kind, index)
    }

    /// The same of a value that no leaf takes.
    #[inline(never)]
    fn put_other(&mut self, row: &mut Row, at: usize, kind: Kind, index: usize) -> Result<()> {
        match (&mut self.typed, kind) {
            (Typed::Object(object), Kind::Object) => {
                let left_before = row.left.len();
                object.put(row, at, index)?;
                if row.left.len() > left_before {
                    self.value.put_with(index, |out| row.left_over(left_before, out))?;
                    row.left.truncate(left_before);
                }
                return Ok(());
            }
            (Typed::Array(array), Kind::Array) => return array.put(row, at, index),
            _ => {}
        }
        self.value.put_with(index, |out| row.whole(at, out))
    }

    /// Writes a value that this level does not type.
    pub fn put_whole(&mut self, index: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.value.put_with(index, write)
    }

    /// Bytes buffered, about.
    pub fn byte_len(&self) -> usize {
        let typed = match &self.typed {
            Typed::None => 0,
            Typed::Leaf(leaf) => leaf.byte_len(),
            Typed::Object(object) => object.fields.iter().map(Group::byte_len).sum(),
            Typed::Array(array) => 4 * array.offsets.len() + array.element.byte_len(),
        };
        self.value.byte_len() + typed
    }

    /// The columns `value` and, where there is one, `typed_value`, of `len` rows.
    pub fn finish(&mut self, len: usize) -> Result<impl Iterator<Item = Column>> {
        let typed = match &mut self.typed {
            Typed::None => None,
            Typed::Leaf(leaf) => Some(leaf.finish(len)?),
            Typed::Object(object) => Some(object.finish(len)?),
            Typed::Array(array) => Some(array.finish(&self.tree, self.layout, len)?),
        };
        Ok(std::iter::once(self.value.finish(len)).chain(typed))
    }

    fn finish_struct(&mut self, len: usize) -> Result<Column> {
        Ok(Column::Struct { children: self.finish(len)?.collect(), nulls: None, len })
    }
}

impl Object {
    fn put(&mut self, row: &mut Row, at: usize, index: usize) -> Result<()> {
        self.valid.mark(index);
        let Some(count) = row.view.nodes.get(at).map(|n| n.a) else { return Ok(()) };
        let mut child = at + 1;
        for _ in 0..count {
            let Some(node) = row.view.nodes.get(child) else { break };
            let slot = self.slots.get(node.name as usize).copied().unwrap_or(NONE);
            match self.fields.get_mut(slot as usize) {
                Some(field) => field.put(row, child, index)?,
                None => row.left.push(child as u32),
            }
            child = node.next(child);
        }
        Ok(())
    }

    fn finish(&mut self, len: usize) -> Result<Column> {
        let children = self.fields.iter_mut().map(|field| field.finish_struct(len)).collect::<Result<_>>()?;
        Ok(Column::Struct { children, nulls: self.valid.finish(len), len })
    }
}

impl Array {
    fn put(&mut self, row: &mut Row, at: usize, index: usize) -> Result<()> {
        let Some(count) = row.view.nodes.get(at).map(|n| n.a) else { return Ok(()) };
        self.valid.mark(index);
        if self.offsets.len() <= index {
            self.offsets.resize(index + 1, self.elements as i32);
        }
        let mut child = at + 1;
        for _ in 0..count {
            let Some(node) = row.view.nodes.get(child) else { break };
            self.element.put(row, child, self.elements)?;
            self.elements += 1;
            child = node.next(child);
        }
        let Ok(end) = i32::try_from(self.elements) else {
            let message = "one array column of one batch exceeds 2^31 elements: pass fewer rows at a time";
            return Err(Error::new(Code::TooLarge, message));
        };
        self.offsets.push(end);
        Ok(())
    }

    fn finish(&mut self, tree: &Tree, layout: Layout, len: usize) -> Result<Column> {
        let mut offsets = std::mem::replace(&mut self.offsets, vec![0]);
        offsets.resize(len + 1, self.elements as i32);
        let elements = self.element.finish_struct(std::mem::take(&mut self.elements))?;
        let Some(element) = &tree.array else {
            return Err(Error::new(Code::InvalidArgument, "columns of an array that is not in the tree"));
        };
        let field = layout.element_field(element);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let elements = elements.to_array(&field)?;
        Ok(Column::Array(Arc::new(ListArray::try_new(field, offsets, elements, self.valid.finish(len))?)))
    }
}
