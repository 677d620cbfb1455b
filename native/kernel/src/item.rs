//! What is asked of a file or of a batch.

use arrow_schema::DataType;

use crate::layout::Layout;
use crate::path::Step;

/// What one output column is.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Name of the output column; the mask of failed casts gets a `!` after it.
    pub name: String,
    pub column: Vec<String>,
    pub kind: ItemKind,
    /// Row groups in which no value of a path's typed leaf matters: it is not read there, and rows that have one give
    /// null (`FileReader::may_contain`).
    pub untyped_in: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ItemKind {
    /// The whole column; variants in it unshredded.
    Whole,
    /// The whole column; variants in it shredded as they are, in this layout. A mask besides says which rows became
    /// whole Variants on the way.
    Moved(Layout),
    /// A variant column, true where it is not null; where only that matters.
    There,
    /// A path of a variant column.
    Path { steps: Vec<Step>, target: Target },
}

impl Item {
    /// Whether both ask for the same values, whatever they call them, and whatever does not matter.
    pub fn same(&self, other: &Item) -> bool {
        self.column == other.column && self.kind == other.kind
    }

    /// The column as people write it.
    pub fn path(&self) -> String {
        self.column.join(".")
    }
}

/// What a path's values become.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A Variant again: SQL NULL where the path is missing, Variant null where it is a JSON null.
    Variant,
    /// An Arrow type, cast as Spark's `try_variant_get` does.
    Type(DataType),
    /// The text that Spark's `to_json` makes of the Variant: SQL NULL where the path is missing.
    Json,
}
