//! gzip, decoded as it comes: members follow each other, and zeros may follow the last one, as tapes and blocks of disks
//! leave them (RFC 1952, 2.2; `gzip -d` reads past them too). Anything else behind a member is an error.

use std::io::Write;

use flate2::write::GzDecoder;

use crate::error::{Code, Error, Result};

/// The first byte of a member.
const MAGIC: u8 = 0x1f;

#[derive(Default)]
pub struct Gzip {
    /// The member that is open.
    member: Option<Box<GzDecoder<Vec<u8>>>>,
    /// At least one member was whole.
    some: bool,
    /// Zeros have begun.
    padded: bool,
}

impl Gzip {
    /// Appends what the bytes become; all of them are taken.
    pub fn decode(&mut self, packed: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut rest = packed;
        while let Some(first) = rest.first() {
            if self.member.is_none() && self.some && *first != MAGIC {
                self.padded = true;
            }
            if self.padded {
                if rest.iter().all(|byte| *byte == 0) {
                    return Ok(());
                }
                return Err(corrupt("bytes that are not gzip follow its last member"));
            }
            let member = self.member.get_or_insert_with(|| Box::new(GzDecoder::new(Vec::new())));
            let begun = member.header().is_some();
            let taken = member.write(rest).map_err(|e| corrupt(&e.to_string()))?;
            out.append(member.get_mut());
            if taken == 0 && begun {
                self.close(out)?;
            }
            rest = rest.get(taken..).unwrap_or(&[]);
        }
        Ok(())
    }

    /// Checks that the stream is whole.
    pub fn end(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let Some(member) = &mut self.member else { return Ok(()) };
        // A member that is over takes nothing more: so a wrong checksum and a missing end are told apart.
        let over = member.header().is_some() && matches!(member.write(&[0]), Ok(0));
        if !over {
            return Err(Error::new(Code::CorruptFile, "the gzip stream ends early: the file is truncated"));
        }
        self.close(out)
    }

    fn close(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if let Some(mut member) = self.member.take() {
            member.try_finish().map_err(|_| corrupt("its checksum or length differs"))?;
            out.append(member.get_mut());
            self.some = true;
        }
        Ok(())
    }
}

fn corrupt(why: &str) -> Error {
    Error::new(Code::CorruptFile, format!("the gzip stream is corrupt: {why}"))
}
