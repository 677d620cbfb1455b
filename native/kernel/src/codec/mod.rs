//! The bytes of a Variant (Parquet, "VariantEncoding"), and of the early layout's `untyped_value`.

pub mod container;
pub mod decode;
pub mod dictionary;
pub mod encode;
pub mod head;
pub mod known;
pub mod metadata;
pub mod primitive;
pub mod recent;
pub mod untyped;
pub mod validate;
