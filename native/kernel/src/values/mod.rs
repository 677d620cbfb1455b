//! Shredded columns as values: Arrow arrays opened as a tree of levels, and what is read from it.
//!
//! - `level`: the tree over arrays, standard and early; `leaf`: its typed leaves, of which `coded` texts lie in a dictionary; `early`, `shape`: what a row of a level may hold
//! - `standardize`: an early column as levels under one metadata a row
//! - `bytes`: Variants under construction; `reconstruct`: levels to unshredded Variants; `nested`: the same wherever they stand in a column
//! - `extract`, `find`: one path as a column; `cast`, `nested_cast`: its values as another type

pub mod bytes;
pub mod cast;
pub mod coded;
pub mod early;
pub mod extract;
pub mod find;
pub mod leaf;
pub mod level;
pub mod nested;
pub mod nested_cast;
pub mod reconstruct;
pub mod shape;
pub mod standardize;
