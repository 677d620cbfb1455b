//! How deep things may nest: the text of the encoding has no limit, these are ours.

/// Objects and arrays around a value (rule 18).
pub const MAX_VALUE_DEPTH: usize = 1000;

/// Levels of a shredding tree. Deeper trees are refused wherever they come from: recursion over a tree is then safe
/// everywhere.
pub const MAX_TREE_DEPTH: usize = 100;
