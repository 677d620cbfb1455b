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
//!
//! The levels of a tree are one list, and know each other by their places in it.

use std::sync::Arc;

use arrow_array::ListArray;
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

use crate::codec::dictionary::Dictionary;
use crate::codec::encode::ValueWriter;
use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::names::Names;
use crate::rows::Column;
use crate::shred::column::{Bits, Bytes, LeafBuilder};
use crate::tape::{Kind, Node, TapeView};
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

/// The levels of a tree. The first is the root.
pub struct Groups(Vec<Group>);

/// The columns of one level.
struct Group {
    tree: Tree,
    layout: Layout,
    value: Bytes,
    typed: Typed,
}

enum Typed {
    None,
    Leaf(LeafBuilder),
    Object(Object),
    Array(Array),
}

struct Object {
    valid: Bits,
    /// By name id: the field's level.
    slots: Vec<u32>,
    fields: Vec<u32>,
}

struct Array {
    valid: Bits,
    offsets: Vec<i32>,
    element: u32,
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

impl Groups {
    /// Compiles a tree; its names get ids.
    pub fn new(tree: &Tree, layout: Layout, names: &mut Names) -> Self {
        let mut groups = Groups(Vec::new());
        groups.add(tree, layout, names);
        groups
    }

    fn add(&mut self, tree: &Tree, layout: Layout, names: &mut Names) -> u32 {
        let place = self.0.len();
        self.0.push(Group { tree: tree.clone(), layout, value: Bytes::default(), typed: Typed::None });
        let typed = if let Some(fields) = &tree.object {
            let mut slots = Vec::new();
            let ids: Vec<_> = fields.iter().map(|field| names.intern(&field.name) as usize).collect();
            let fields: Vec<_> = fields.iter().map(|field| self.add(&field.tree, layout, names)).collect();
            for (id, &field) in ids.into_iter().zip(&fields) {
                if slots.len() <= id {
                    slots.resize(id + 1, NONE);
                }
                slots[id] = field;
            }
            Typed::Object(Object { valid: Bits::default(), slots, fields })
        } else if let Some(element) = &tree.array {
            let element = self.add(element, layout, names);
            Typed::Array(Array { valid: Bits::default(), offsets: vec![0], element, elements: 0 })
        } else {
            tree.leaf.map_or(Typed::None, |leaf| Typed::Leaf(LeafBuilder::new(leaf)))
        };
        if let Some(group) = self.0.get_mut(place) {
            group.typed = typed;
        }
        place as u32
    }

    /// Writes the tape's row as the value with this index.
    pub fn put_row(&mut self, row: &mut Row, index: usize) -> Result<()> {
        self.put(0, row, 0, index)
    }

    /// Writes the tape's subtree at `at` as the value with this index of a level.
    #[inline]
    pub fn put(&mut self, place: u32, row: &mut Row, at: usize, index: usize) -> Result<()> {
        let Some(node) = row.view.nodes.get(at) else { return Ok(()) };
        let Some(group) = self.0.get_mut(place as usize) else { return Ok(()) };
        // Most values are leaves: no call for a level stands before them.
        if let Typed::Leaf(leaf) = &mut group.typed
            && leaf.put(&row.view, node, index)?
        {
            return Ok(());
        }
        self.put_other(place, row, at, node.kind, index)
    }

    /// Puts the nodes of these rows, a bit each, if the level is a leaf that takes them; gives the rows of the others. The
    /// first row that may be is the value with the index `first`; `node` says which node of a row.
    pub fn put_leaves(
        &mut self,
        place: u32,
        rows: u64,
        first: usize,
        views: &[TapeView],
        node: impl Fn(usize) -> usize,
    ) -> Result<u64> {
        let Some(Group { typed: Typed::Leaf(leaf), .. }) = self.0.get_mut(place as usize) else { return Ok(rows) };
        match leaf {
            // Most are texts: what others need is not looked at between those.
            LeafBuilder::String(column) => {
                each(rows, views, node, |view, node, row| column.put_text(view, node, first + row))
            }
            leaf => each(rows, views, node, |view, node, row| leaf.put(view, node, first + row)),
        }
    }

    /// The same of a value that no leaf takes.
    #[inline(never)]
    fn put_other(&mut self, place: u32, row: &mut Row, at: usize, kind: Kind, index: usize) -> Result<()> {
        let Some(group) = self.0.get_mut(place as usize) else { return Ok(()) };
        match (&mut group.typed, kind) {
            (Typed::Object(object), Kind::Object) => {
                object.valid.mark(index);
                let left_before = row.left.len();
                self.put_fields(place, row, at, index)?;
                self.put_left(place, row, left_before, index)
            }
            (Typed::Array(array), Kind::Array) => {
                array.begin(index);
                self.put_elements(place, row, at)
            }
            _ => group.value.put_with(index, |out| row.whole(at, out)),
        }
    }

    /// Whether the level is one of objects.
    pub fn is_object(&self, place: u32) -> bool {
        self.0.get(place as usize).is_some_and(|group| matches!(group.typed, Typed::Object(_)))
    }

    /// These rows, a bit each, are objects, whose fields follow; the first that may be is the value with this index.
    pub fn mark_objects(&mut self, place: u32, first: usize, rows: u64) {
        if let Some(Group { typed: Typed::Object(object), .. }) = self.0.get_mut(place as usize) {
            object.valid.mark_all(first, rows);
        }
    }

    /// How many levels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn put_fields(&mut self, place: u32, row: &mut Row, at: usize, index: usize) -> Result<()> {
        let Some(count) = row.view.nodes.get(at).map(|n| n.a) else { return Ok(()) };
        let mut child = at + 1;
        for _ in 0..count {
            let Some(node) = row.view.nodes.get(child) else { break };
            match self.field(place, node.name) {
                Some(field) => self.put(field, row, child, index)?,
                None => row.left.push(child as u32),
            }
            child = node.next(child);
        }
        Ok(())
    }

    /// The level of the field of this name.
    pub fn field(&self, place: u32, name: u32) -> Option<u32> {
        match &self.0.get(place as usize)?.typed {
            Typed::Object(object) => object.slots.get(name as usize).copied().filter(|&field| field != NONE),
            _ => None,
        }
    }

    /// Writes the fields of an object that were left over since the stack was so high.
    pub fn put_left(&mut self, place: u32, row: &mut Row, since: usize, index: usize) -> Result<()> {
        if row.left.len() > since
            && let Some(group) = self.0.get_mut(place as usize)
        {
            group.value.put_with(index, |out| row.left_over(since, out))?;
            row.left.truncate(since);
        }
        Ok(())
    }

    fn put_elements(&mut self, place: u32, row: &mut Row, at: usize) -> Result<()> {
        let Some(count) = row.view.nodes.get(at).map(|n| n.a) else { return Ok(()) };
        let Some((element, first)) = self.array(place).map(|array| (array.element, array.elements)) else {
            return Ok(());
        };
        let (mut child, mut elements) = (at + 1, first);
        for _ in 0..count {
            let Some(node) = row.view.nodes.get(child) else { break };
            self.put(element, row, child, elements)?;
            elements += 1;
            child = node.next(child);
        }
        self.array(place).map_or(Ok(()), |array| array.end(elements))
    }

    fn array(&mut self, place: u32) -> Option<&mut Array> {
        match &mut self.0.get_mut(place as usize)?.typed {
            Typed::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Writes a row that the root does not type.
    pub fn put_whole(&mut self, index: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.0.first_mut().map_or(Ok(()), |root| root.value.put_with(index, write))
    }

    /// Bytes buffered, about.
    pub fn byte_len(&self) -> usize {
        self.0.iter().map(Group::byte_len).sum()
    }

    /// The columns `value` and, where there is one, `typed_value`, of `len` rows.
    pub fn finish(&mut self, len: usize) -> Result<Vec<Column>> {
        self.finish_level(0, len)
    }

    fn finish_level(&mut self, place: u32, len: usize) -> Result<Vec<Column>> {
        let Some(group) = self.0.get_mut(place as usize) else { return Ok(Vec::new()) };
        let value = group.value.finish(len);
        let typed = match &mut group.typed {
            Typed::None => None,
            Typed::Leaf(leaf) => Some(leaf.finish(len)?),
            Typed::Object(object) => {
                let (fields, nulls) = (object.fields.clone(), object.valid.finish(len));
                let children = fields.iter().map(|&field| self.finish_struct(field, len)).collect::<Result<_>>()?;
                Some(Column::Struct { children, nulls, len })
            }
            Typed::Array(array) => {
                let (element, elements) = (array.element, std::mem::take(&mut array.elements));
                let mut offsets = std::mem::replace(&mut array.offsets, vec![0]);
                offsets.resize(len + 1, elements as i32);
                let nulls = array.valid.finish(len);
                let Some(field) = group.tree.array.as_ref().map(|element| group.layout.element_field(element)) else {
                    return Err(Error::new(Code::InvalidArgument, "columns of an array that is not in the tree"));
                };
                let elements = self.finish_struct(element, elements)?.to_array(&field)?;
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                Some(Column::Array(Arc::new(ListArray::try_new(field, offsets, elements, nulls)?)))
            }
        };
        Ok(std::iter::once(value).chain(typed).collect())
    }

    fn finish_struct(&mut self, place: u32, len: usize) -> Result<Column> {
        Ok(Column::Struct { children: self.finish_level(place, len)?, nulls: None, len })
    }
}

/// Puts the node of each row; gives the rows whose nodes were not taken.
#[inline(always)]
fn each(
    mut rows: u64,
    views: &[TapeView],
    node: impl Fn(usize) -> usize,
    mut put: impl FnMut(&TapeView, &Node, usize) -> Result<bool>,
) -> Result<u64> {
    let mut others = 0;
    while rows != 0 {
        let row = rows.trailing_zeros() as usize;
        rows &= rows - 1;
        let Some(view) = views.get(row) else { break };
        let taken = match view.nodes.get(node(row)) {
            Some(node) => put(view, node, row)?,
            None => false,
        };
        others |= u64::from(!taken) << row;
    }
    Ok(others)
}

impl Group {
    fn byte_len(&self) -> usize {
        let typed = match &self.typed {
            Typed::None | Typed::Object(_) => 0,
            Typed::Leaf(leaf) => leaf.byte_len(),
            Typed::Array(array) => 4 * array.offsets.len(),
        };
        self.value.byte_len() + typed
    }
}

impl Array {
    /// A value of this index begins.
    fn begin(&mut self, index: usize) {
        self.valid.mark(index);
        if self.offsets.len() <= index {
            self.offsets.resize(index + 1, self.elements as i32);
        }
    }

    /// It ends; there are so many elements now.
    fn end(&mut self, elements: usize) -> Result<()> {
        self.elements = elements;
        let Ok(end) = i32::try_from(elements) else {
            let message = "one array column of one batch exceeds 2^31 elements: pass fewer rows at a time";
            return Err(Error::new(Code::TooLarge, message));
        };
        self.offsets.push(end);
        Ok(())
    }
}
