//! A Parquet file: what is checked before the Parquet library sees it, what its footer and its pages say, and its leaf
//! columns decoded. No Variant is read here.
//!
//! - `source`, `parts`: where bytes come from; `file`: one open file; `file_schema`: what many share;
//!   `identity`, `opened`: what was opened before; `guard`: the library's panics are corrupt files;
//!   `unpacked`, `unzstd`, `unlz4`: pages decompressed
//! - `thrift`, `footer_check`, `page_header`, `page_check`: checked before anything trusts it
//! - `bits`, `packed`: numbers of few bits, numbers by their differences
//! - `footer`, `pages`: what stands behind the rows: the footer, and the parts of the page index that are needed
//! - `schema`: the schema as a tree over leaf columns; `residuals`: where a path's value may hide in an early column
//! - `level`, `resolve`: a path to its leaf column and the residuals that may hide its value
//! - `bounds`, `physical`, `bloom`, `cost`, `inspect`: what they say of leaves, and what reading would take
//! - `search`: the pages that may hold a text, by their bytes
//! - `projection`: the leaf columns that an item needs
//! - `rows`, `chunks`, `decoder`: fetched pages to batches of leaf columns; `changed`: pages that are changed on their
//!   way there; `coded`: texts decoded as codes; `alone`, `one_bit`: leaves without the nulls of the structs around
//!   them; `texts`, `hybrid`: texts of few values, which the library does not decode; `legacy`: dates and timestamps by the calendar of old Sparks;
//!   `padded`: Variants with bytes behind their ends
//! - `write`: rows to a file

pub(crate) mod alone;
pub(crate) mod bits;
pub mod bloom;
pub mod bounds;
pub(crate) mod changed;
pub(crate) mod chunks;
pub(crate) mod coded;
pub mod cost;
pub(crate) mod decoder;
pub mod file;
pub(crate) mod file_schema;
pub mod footer;
pub(crate) mod footer_check;
pub(crate) mod guard;
pub(crate) mod hybrid;
pub(crate) mod identity;
pub mod inspect;
pub(crate) mod integers;
pub(crate) mod leaf_pages;
pub mod legacy;
pub(crate) mod level;
pub(crate) mod one_bit;
pub(crate) mod opened;
pub(crate) mod packed;
pub(crate) mod padded;
pub(crate) mod page_check;
pub(crate) mod page_header;
pub(crate) mod page_index;
pub(crate) mod pages;
pub(crate) mod parts;
pub(crate) mod physical;
pub mod projection;
pub mod residuals;
pub(crate) mod resolve;
pub mod rows;
pub mod schema;
pub mod search;
pub mod source;
pub(crate) mod texts;
pub(crate) mod thrift;
pub(crate) mod unlz4;
pub(crate) mod unpack;
pub(crate) mod unpacked;
pub(crate) mod unzstd;
pub mod write;
