//! Whole batches, as Python hands them over.
//!
//! - `values`: JSON text to Variants and back; `type_text`: their types as text
//! - `cast`, `decimals`: plain columns to another type, and calculated with
//! - `stats`: leaves of the statistics of a log, by `stats_walk` and `stats_shape`; `bounds`: the bounds of Variant paths
//!   in them
//! - `edit`: Variants changed at a path; `place`: where a path leads in a row
//! - `late`: Variants without the types that the encoding got late; `nested`: those inside of lists and maps

pub mod bounds;
pub mod cast;
pub mod decimals;
pub mod edit;
pub mod late;
pub mod nested;
pub mod place;
pub mod stats;
mod stats_shape;
mod stats_walk;
pub mod type_text;
pub mod values;
