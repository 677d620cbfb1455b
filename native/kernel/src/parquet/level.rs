//! The levels of a variant column in a file's schema.

use arrow_schema::DataType;

use crate::layout::standard::is_variant;
use crate::layout::{Layout, early, standard};
use crate::parquet::schema::Node;
use crate::path::Shredded;

/// The layout of a variant column in the file.
pub fn layout(column: &Node) -> Layout {
    match column.field.data_type() {
        DataType::Struct(fields) if is_variant(&column.field) => Layout::of(fields),
        _ => Layout::Standard,
    }
}

/// The columns of one level in a file's schema.
#[derive(Clone, Copy)]
pub struct LevelColumns<'a> {
    pub group: &'a Node,
    layout: Layout,
    /// Untyped bytes: a leaf column.
    pub residual: Option<&'a Node>,
    /// A group whose children are the fields.
    pub object: Option<&'a Node>,
    /// A list whose one child is the element.
    pub array: Option<&'a Node>,
    pub leaf: Option<&'a Node>,
}

impl<'a> LevelColumns<'a> {
    pub fn of(level: &'a Node, layout: Layout) -> Self {
        let typed = level.child(standard::TYPED_VALUE);
        match layout {
            Layout::Standard => LevelColumns {
                group: level,
                layout,
                residual: level.child(standard::VALUE),
                object: typed.filter(|t| t.is_struct()),
                array: typed.filter(|t| t.is_list()),
                leaf: typed.filter(|t| t.is_leaf()),
            },
            Layout::Early => LevelColumns {
                group: level,
                layout,
                residual: level.child(early::UNTYPED_VALUE),
                object: level.child(early::OBJECT),
                array: level.child(early::ARRAY),
                leaf: typed,
            },
        }
    }
}

impl Shredded for LevelColumns<'_> {
    fn field(self, key: &str) -> Option<Self> {
        self.object.and_then(|object| object.child(key)).map(|field| LevelColumns::of(field, self.layout))
    }

    fn element(self) -> Option<Self> {
        self.array.and_then(|array| array.children.first()).map(|element| LevelColumns::of(element, self.layout))
    }
}
