//! Variant columns from one spelling to another.
//!
//! - `shred`: the columns of a batch, by a tree
//! - `moving`: column by column, early to standard and back, by the tree that the column has
//! - `fit`: early columns without the residuals that hold nothing
//! - `pages`: whole files, page by page, no value decoded

pub mod fit;
pub mod moving;
pub mod pages;
pub mod shred;
