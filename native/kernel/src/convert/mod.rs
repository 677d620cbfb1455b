//! Variant columns from one spelling to another.
//!
//! - `shred`: the columns of a batch, by a tree
//! - `moving`: column by column, early to standard and back, or as it stands, by the tree that the column has
//! - `strict`: which rows of a standard column may stand as they do
//! - `fit`: early columns without the residuals that hold nothing
//! - `pages`: whole files, page by page, no value decoded

pub mod fit;
pub mod moving;
pub mod pages;
pub mod shred;
mod strict;
