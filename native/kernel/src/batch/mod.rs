//! Whole batches, as Python hands them over.

pub mod decimals;
pub mod late;
pub mod nested;
pub mod type_text;
pub mod values;
