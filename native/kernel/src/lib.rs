//! The byte-level kernel of mica: JSON, Variant, the shredding layouts and Parquet, over Arrow batches.
//!
//! It knows bytes, types and files; no Delta, no Spark, no SQL.
//!
//! ```text
//! JSON text ─┐                      ┌─ infer ──▶ Tree
//!            ├─▶ Tape (validated) ──┼─ shred ──▶ columns ──▶ write (Parquet) ──▶ bounds
//! Variant  ──┘                      ├─ encode ─▶ Variant
//!                                   └─ to_json ▶ text
//! Parquet ──▶ read ──▶ columns ──▶ reconstruct ──▶ Variant
//!                         └──────▶ extract ──▶ one path, cast
//! ```

pub mod batch;
pub mod bounds;
pub mod cast;
pub mod check;
pub mod decimals;
pub mod decode;
pub mod dictionary;
pub mod early;
pub mod encode;
pub mod error;
pub mod extract;
pub mod infer;
pub mod ingest;
pub mod inspect;
pub mod java;
pub mod json;
pub mod late;
pub mod layout;
pub mod level;
pub mod names;
pub mod parquet_schema;
pub mod read;
pub mod reconstruct;
pub mod residual;
pub mod shred;
pub mod source;
pub mod standard;
pub mod tape;
pub mod to_json;
pub mod transcribe;
pub mod tree;
pub mod type_text;
pub mod utf8;
pub mod validate;
pub mod values;
pub mod write;
pub mod zone;

pub use error::{Code, Error, Result};
