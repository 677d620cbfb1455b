//! The bytes of a Variant (Parquet, "VariantEncoding"), and of the early layout's `untyped_value`.

pub mod decode;
pub mod dictionary;
pub mod encode;
pub mod head;
pub mod metadata;
pub mod primitive;
pub mod residual;
pub mod untyped;
