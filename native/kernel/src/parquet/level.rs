//! The levels of a variant column in a file's schema.

use arrow::datatypes::DataType;

use crate::layout::standard::is_variant;
use crate::layout::{Layout, early, standard};
use crate::parquet::schema::Node;

/// The layout of a variant column in the file.
pub fn layout(column: &Node) -> Layout {
    match column.field.data_type() {
        DataType::Struct(fields) if is_variant(&column.field) => Layout::of(fields),
        _ => Layout::Standard,
    }
}

/// The columns of one level in a file's schema.
pub struct Columns<'a> {
    /// Untyped bytes: a leaf column.
    pub residual: Option<&'a Node>,
    /// A group whose children are the fields.
    pub object: Option<&'a Node>,
    /// A list whose one child is the element.
    pub array: Option<&'a Node>,
    pub leaf: Option<&'a Node>,
}

impl<'a> Columns<'a> {
    pub fn of(level: &'a Node, layout: Layout) -> Self {
        let typed = level.child(standard::TYPED_VALUE);
        match layout {
            Layout::Standard => Columns {
                residual: level.child(standard::VALUE),
                object: typed.filter(|t| t.is_struct()),
                array: typed.filter(|t| t.is_list()),
                leaf: typed.filter(|t| t.is_leaf()),
            },
            Layout::Early => Columns {
                residual: level.child(early::UNTYPED_VALUE),
                object: level.child(early::OBJECT),
                array: level.child(early::ARRAY),
                leaf: typed,
            },
        }
    }

    /// The field of the shredded object with this name.
    pub fn field(&self, key: &str) -> Option<&'a Node> {
        self.object.and_then(|o| o.child(key))
    }

    pub fn element(&self) -> Option<&'a Node> {
        self.array.and_then(|a| a.children.first())
    }
}
