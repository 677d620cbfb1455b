//! `untyped_value`: a whole Variant in one binary, "the metadata and value of a normal Variant are concatenated".
//! Where the value begins is read from the metadata's own header, dictionary size and last offset.

use crate::codec::metadata::length;
use crate::error::{Code, Error, Result};

/// Metadata and value of an `untyped_value`; neither is validated beyond their border.
pub fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let at = length(bytes)?;
    match bytes.split_at_checked(at) {
        Some((_, [])) | None => {
            let message = format!("an untyped_value of {} bytes ends within its metadata or value", bytes.len());
            Err(Error::new(Code::MalformedVariant, message).rule(4).offset(at.min(bytes.len()) as u64))
        }
        Some(parts) => Ok(parts),
    }
}

/// Whether these bytes are the Variant null under an empty dictionary: the one spelling that mica writes, sorted or
/// not. It has no counterpart in any type but Variant.
pub fn is_null(bytes: &[u8]) -> bool {
    matches!(bytes, [0x01 | 0x11, 0, 0, 0])
}
