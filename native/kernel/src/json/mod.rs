//! JSON text to tapes: `parse` reads one document, `reader` cuts files and streams into documents.

pub mod format;
pub mod input;
pub mod keys;
pub mod number;
pub mod parse;
pub mod reader;
pub mod scan;
pub mod split;
pub mod utf8;

pub use input::Compression;
pub use parse::{DuplicateKeys, JsonParser, ParseOptions};
pub use reader::{BadRow, Format, Next, OnError, ReaderOptions, RowReader};
