//! Shredding: rows of tapes become the columns of a layout (standard: rules 19 to 40).
//!
//! A [`Shredder`] is a tree compiled over the ids of one [`Names`]: finding a field's column is an array index by
//! name id, nothing is hashed or compared per row. Give it tapes of that same `Names` only, and never let it forget
//! ids below [`Shredder::names_len`].

mod block;
pub mod column;
mod group;
mod metadata;
mod plan;

use arrow_array::StructArray;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, Fields};

use crate::codec::dictionary::{Dictionary, OwnDictionaries};
use crate::codec::encode::ValueWriter;
use crate::error::Result;
use crate::layout::Layout;
use crate::layout::standard::{check_tree, with_views};
use crate::names::Names;
use crate::rows::Column;
use crate::shred::block::Blocks;
use crate::shred::column::{Bits, Bytes};
use crate::shred::group::{Groups, Row};
use crate::shred::metadata::Metadata;
use crate::tape::TapeView;
use crate::tree::Tree;

pub use crate::shred::block::BLOCK;

pub struct Shredder {
    layout: Layout,
    fields: Fields,
    levels: Groups,
    blocks: Blocks,
    /// For an untyped tree: each row has the metadata of its own names, as any unshredded Variant.
    whole: Option<(OwnDictionaries, Bytes)>,
    metadata: Metadata,
    valid: Bits,
    rows: usize,
    dictionary: Dictionary,
    residual: ValueWriter,
    left: Vec<u32>,
    own: Vec<u8>,
    names_len: usize,
}

impl Shredder {
    /// Compiles `tree` for the standard layout. `common` names go into the dictionary that rows share, besides the
    /// tree's own.
    pub fn new<'a>(tree: &Tree, common: impl IntoIterator<Item = &'a str>, names: &mut Names) -> Result<Self> {
        Self::with_layout(Layout::Standard, tree, common, names)
    }

    /// The early layout has no dictionary that rows share: every `untyped_value` brings the names that it needs.
    pub fn early(tree: &Tree, names: &mut Names) -> Result<Self> {
        let mut shredder = Self::with_layout(Layout::Early, tree, [], names)?;
        shredder.dictionary = Dictionary::new(names, Vec::new());
        Ok(shredder)
    }

    fn with_layout<'a>(
        layout: Layout,
        tree: &Tree,
        common: impl IntoIterator<Item = &'a str>,
        names: &mut Names,
    ) -> Result<Self> {
        check_tree(tree)?;
        let levels = Groups::new(tree, layout, names);
        let mut base = Vec::new();
        tree_names(tree, names, &mut base);
        base.extend(common.into_iter().map(|name| names.intern(name)));
        Ok(Shredder {
            layout,
            fields: layout.column_fields(tree),
            levels,
            blocks: Blocks::default(),
            whole: tree.is_untyped().then(Default::default),
            metadata: Metadata::default(),
            valid: Bits::default(),
            rows: 0,
            dictionary: Dictionary::new(names, base),
            residual: ValueWriter::default(),
            left: Vec::new(),
            own: Vec::new(),
            names_len: names.len(),
        })
    }

    /// Metadata are views from now on (Arrow's `BinaryView`); of an untyped tree they stay what they are.
    pub fn with_views(mut self) -> Self {
        if self.layout == Layout::Standard && self.whole.is_none() {
            self.fields = with_views(&self.fields);
        }
        self
    }

    /// The names that this shredder relies on have ids below this.
    pub fn names_len(&self) -> usize {
        self.names_len
    }

    pub fn data_type(&self) -> DataType {
        DataType::Struct(self.fields.clone())
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes buffered, about: for cutting batches.
    pub fn byte_len(&self) -> usize {
        let own = self.whole.as_ref().map_or(0, |(_, metadata)| metadata.byte_len());
        own + self.metadata.byte_len() + self.levels.byte_len()
    }

    /// Adds the row that the tape holds.
    pub fn append(&mut self, view: &TapeView) -> Result<()> {
        let index = self.rows;
        if let Some((dictionaries, metadata)) = &mut self.whole {
            let dictionary = dictionaries.of(view, 0);
            metadata.put(index, dictionary.base_bytes())?;
            self.levels.put_whole(index, |out| self.residual.subtree(view, dictionary, 0, out))?;
            self.valid.mark(index);
            self.rows += 1;
            return Ok(());
        }
        let mut row = Row {
            view: *view,
            dictionary: &mut self.dictionary,
            residual: &mut self.residual,
            left: &mut self.left,
            own: (self.layout == Layout::Early).then_some(&mut self.own),
        };
        self.levels.put_row(&mut row, index)?;
        if self.layout == Layout::Standard {
            self.metadata.put(index, &mut self.dictionary, view.names)?;
        }
        self.valid.mark(index);
        self.rows += 1;
        Ok(())
    }

    /// Adds rows, which may be many: [`BLOCK`] of known shapes at a time are put level by level.
    pub fn append_all(&mut self, views: &[TapeView]) -> Result<()> {
        let as_blocks = self.whole.is_none() && self.layout == Layout::Standard;
        let source = |view: &TapeView| view.shape.filter(|_| as_blocks).map(|shape| shape.source);
        for alike in views.chunk_by(|one, other| source(one) == source(other)) {
            if alike.first().and_then(source).is_some() {
                alike.chunks(BLOCK).try_for_each(|block| self.append_block(block))?;
            } else {
                alike.iter().try_for_each(|view| self.append(view))?;
            }
        }
        Ok(())
    }

    fn append_block(&mut self, views: &[TapeView]) -> Result<()> {
        let first = self.rows;
        let left = self.blocks.put(&mut self.levels, views, first)?;
        for (number, view) in views.iter().enumerate() {
            if left >> number & 1 == 1 {
                let mut row = Row {
                    view: *view,
                    dictionary: &mut self.dictionary,
                    residual: &mut self.residual,
                    left: &mut self.left,
                    own: None,
                };
                self.blocks.put_left(&mut self.levels, &mut row, number, first + number)?;
            }
            self.metadata.put(first + number, &mut self.dictionary, view.names)?;
        }
        self.valid.mark_all(first, u64::MAX >> (BLOCK - views.len()));
        self.rows += views.len();
        Ok(())
    }

    /// Adds a SQL NULL: a null group (rule 28).
    pub fn append_null(&mut self) {
        self.rows += 1;
    }

    /// The rows since the last call as one column; the shredder is empty afterwards.
    pub fn finish_column(&mut self) -> Result<Column> {
        let len = std::mem::take(&mut self.rows);
        let metadata = match &mut self.whole {
            Some((_, metadata)) => Some(metadata.finish(len)),
            None => (self.layout == Layout::Standard).then(|| self.metadata.finish(len)),
        };
        let children = metadata.into_iter().chain(self.levels.finish(len)?).collect();
        Ok(Column::Struct { children, nulls: self.valid.finish(len), len })
    }

    /// The same as an array.
    pub fn finish(&mut self) -> Result<StructArray> {
        let array = self.finish_column()?.to_array(&Field::new("", self.data_type(), true))?;
        Ok(array.as_struct().clone())
    }
}

fn tree_names(tree: &Tree, names: &mut Names, out: &mut Vec<u32>) {
    for field in tree.object.iter().flatten() {
        out.push(names.intern(&field.name));
        tree_names(&field.tree, names, out);
    }
    if let Some(element) = &tree.array {
        tree_names(element, names, out);
    }
}
