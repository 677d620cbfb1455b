//! The two spellings of one shredding tree, told apart by the names of a group's fields.
//!
//! | a level's         | standard                 | early           |
//! |-------------------|--------------------------|-----------------|
//! | untyped bytes     | `value`                  | `untyped_value` |
//! | object            | `typed_value`, a group   | `object`        |
//! | array             | `typed_value`, a LIST    | `array`         |
//! | leaf              | `typed_value`            | `typed_value`   |
//! | dictionary        | `metadata`, one a row    | in every `untyped_value` |
//!
//! A column without a typed place is spelled alike in both: `metadata` and `value`.

pub mod early;
pub mod recognise;
pub mod standard;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields};

use crate::error::Result;
use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    #[default]
    Standard,
    Early,
}

impl Layout {
    /// The layout of a variant column by its fields.
    pub fn of(fields: &Fields) -> Layout {
        if early::is_group(fields) { Layout::Early } else { Layout::Standard }
    }

    /// The tree of a variant column by its type, and the layout in which it is spelled.
    pub fn tree_of(column: &DataType, path: &str) -> Result<(Layout, Tree)> {
        match column {
            DataType::Struct(fields) if Layout::of(fields) == Layout::Early => {
                Ok((Layout::Early, early::tree_of(fields, path)?))
            }
            other => Ok((Layout::Standard, standard::tree_of(other).map_err(|e| e.path(path))?)),
        }
    }

    /// A variant column of this layout, marked as one.
    pub fn variant_field(self, name: &str, tree: &Tree, nullable: bool) -> ArrowField {
        standard::mark(ArrowField::new(name, DataType::Struct(self.column_fields(tree)), nullable))
    }

    pub fn column_fields(self, tree: &Tree) -> Fields {
        match self {
            Layout::Early if !tree.is_untyped() => early::group_fields(tree),
            _ => standard::column_fields(tree),
        }
    }

    /// The fields of a group below the column.
    pub fn group_fields(self, tree: &Tree) -> Fields {
        match self {
            Layout::Standard => standard::group_fields(tree),
            Layout::Early => early::group_fields(tree),
        }
    }

    /// The type of the typed place; `None` for an untyped tree.
    pub fn typed_type(self, tree: &Tree) -> Option<DataType> {
        match self {
            Layout::Standard => standard::typed_type(tree),
            Layout::Early => early::typed_field(tree).map(|f| f.data_type().clone()),
        }
    }

    pub fn element_field(self, element: &Tree) -> FieldRef {
        match self {
            Layout::Standard => standard::element_field(element),
            Layout::Early => early::element_field(element),
        }
    }
}
