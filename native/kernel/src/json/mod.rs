//! JSON text to tapes: `parse` reads one document, `reader` cuts files and streams into documents.

pub mod format;
mod gzip;
pub mod input;
pub mod keys;
mod leaf;
pub mod number;
pub mod parse;
pub mod print;
pub mod reader;
pub mod scan;
mod shapes;
pub mod split;
pub mod variant;

pub use crate::json::format::Format;
pub use crate::json::input::Compression;
pub use crate::json::parse::{DuplicateKeys, JsonParser, ParseOptions};
pub use crate::json::reader::{BadRow, Next, OnError, ReaderOptions, RowReader};
