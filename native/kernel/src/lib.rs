//! The byte-level kernel of mica: JSON, Variant, the shredding layouts and Parquet, over Arrow batches.
//!
//! It knows bytes, types and files; no Delta, no Spark, no SQL. `docs/architecture.md` names the modules, and
//! `tests/architecture.rs` holds who may import whom.
//!
//! ```text
//! JSON text ─┐                      ┌─ infer ──▶ Tree
//!            ├─▶ Tape (validated) ──┼─ shred ──▶ columns ──▶ write (Parquet) ──▶ bounds
//! Variant  ──┘                      ├─ encode ─▶ Variant
//!                                   └─ print ──▶ text
//! Parquet ──▶ read ──▶ columns ──▶ reconstruct ──▶ Variant
//!                         └──────▶ extract ──▶ one path, cast
//! ```

pub mod batch;
pub mod check;
pub mod codec;
pub mod convert;
mod copy;
pub mod error;
pub mod flavour;
pub mod infer;
pub mod ingest;
pub mod item;
pub mod json;
pub mod layout;
pub mod limits;
pub mod names;
pub mod parquet;
pub mod path;
pub mod read;
pub mod rows;
mod shared;
pub mod shred;
pub mod tape;
pub mod text;
pub mod tree;
pub mod values;

pub use error::{Code, Error, Result};
