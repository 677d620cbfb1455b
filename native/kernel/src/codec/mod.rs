//! The bytes of a Variant (Parquet, "VariantEncoding"), and of the early layout's `untyped_value`.
//!
//! - `head`, `primitive`: what a value's first bytes say, read and written; `metadata`: the bytes of a metadata
//! - `encode`: tape to value, by a `dictionary` of the names that rows have
//! - `children`: what every walk over the bytes checks of an object or array
//! - `decode`: value to tape, validated; `validate`: a value that stays bytes, by the `known` names of its metadata;
//!   `simple`: the same for most of them, in one pass
//! - `recent`: what was made of metadata and of names that were seen lately
//! - `untyped`: metadata and value in one

pub mod children;
pub mod decode;
pub mod dictionary;
pub mod encode;
pub mod head;
pub mod known;
pub mod metadata;
pub mod primitive;
pub mod recent;
pub mod simple;
pub mod untyped;
pub mod validate;
