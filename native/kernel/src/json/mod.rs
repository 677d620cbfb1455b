//! JSON text to tapes: `parse` reads one document, `reader` cuts files and streams into documents.

pub mod keys;
pub mod number;
pub mod parse;
pub mod scan;

pub use parse::{DuplicateKeys, JsonParser, ParseOptions};
