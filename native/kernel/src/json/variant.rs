//! The bytes of a Variant to JSON text, spelled as `print` spells it, without a tape between: one walk validates the
//! bytes (`children`) and prints them. Field names are escaped once per distinct metadata. Without recursion.

use crate::codec::children::{Children, id};
use crate::codec::decode::VariantDecoder;
use crate::codec::head::{check_scalar, cut, fault, head, length, scalar, too_deep};
use crate::codec::known::{KnownNames, RowNames};
use crate::error::{Error, Result};
use crate::json::print::{make_room, push_key, push_quoted, push_scalar};
use crate::limits::MAX_VALUE_DEPTH;
use crate::names::Names;
use crate::tape::Tape;
use crate::text::utf8::is_utf8;
use crate::text::zone::Zone;

/// Reusable: keep one and print many rows.
#[derive(Default)]
pub struct VariantPrinter {
    names: KnownNames,
    /// By number of the metadata; of numbers that were not forgotten since `forgotten`.
    keys: Vec<Option<Keys>>,
    forgotten: usize,
    walk: Walk,
}

/// The names of one metadata as they stand in a text: quoted, with the colon.
struct Keys {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Keys {
    fn of(names: RowNames<'_>) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(names.len()));
        for id in 0..names.len() {
            push_quoted(&mut bytes, names.name(id as u32));
            bytes.push(b':');
            ends.push(bytes.len());
        }
        Keys { bytes, ends }
    }

    #[inline]
    fn get(&self, id: usize) -> &[u8] {
        let start = id.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(id).and_then(|&end| self.bytes.get(start..end)).unwrap_or(&[])
    }
}

impl VariantPrinter {
    /// Appends the text of a value; appends nothing where metadata or value break a rule of the encoding (3 to 18).
    pub fn print(&mut self, metadata: &[u8], value: &[u8], zone: &Zone, out: &mut Vec<u8>) -> Result<()> {
        let number = self.names.load(metadata)? as usize;
        let names = self.names.current();
        if self.forgotten != self.names.forgotten() {
            self.forgotten = self.names.forgotten();
            self.keys.clear();
        }
        if self.keys.len() <= number {
            self.keys.resize_with(number + 1, || None);
        }
        let Some(slot) = self.keys.get_mut(number) else { return Ok(()) };
        let keys = slot.get_or_insert_with(|| Keys::of(names));
        let start = out.len();
        let key = |id: usize, out: &mut Vec<u8>| {
            let key = keys.get(id);
            make_room(out, key.len(), key.len())?;
            out.extend_from_slice(key);
            Ok(())
        };
        self.walk.print(value, (names, key), zone, out).map_err(|error| {
            out.truncate(start);
            placed(metadata, value, error)
        })
    }
}

/// The same for values whose names are at hand, and of which few follow each other under one metadata.
#[derive(Default)]
pub struct ResidualPrinter {
    walk: Walk,
}

impl ResidualPrinter {
    /// Appends the text of a value.
    pub fn print(&mut self, names: RowNames<'_>, value: &[u8], zone: &Zone, out: &mut Vec<u8>) -> Result<()> {
        let key = |id: usize, out: &mut Vec<u8>| push_key(out, names.name(id as u32));
        self.walk.print(value, (names, key), zone, out)
    }
}

/// The error of a value that is refused, with its path inside of the value.
#[cold]
fn placed(metadata: &[u8], value: &[u8], error: Error) -> Error {
    let (mut tape, mut names) = (Tape::default(), Names::new());
    VariantDecoder::new().decode(metadata, value, &mut tape, &mut names).err().unwrap_or(error)
}

#[derive(Default)]
struct Walk {
    /// The children of the open containers that are left.
    open: Vec<Children>,
    /// Field ids to sort.
    ids: Vec<u32>,
}

impl Walk {
    fn print(
        &mut self,
        value: &[u8],
        (names, key): (RowNames<'_>, impl Fn(usize, &mut Vec<u8>) -> Result<()>),
        zone: &Zone,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.open.clear();
        let end = self.one(value, 0, names, zone, out)?;
        if end != value.len() {
            return Err(fault(15, end, "bytes follow the end of the value"));
        }
        while let Some(children) = self.open.last_mut() {
            let index = children.begun;
            let Some(child) = children.begin(value)? else {
                out.push(if children.head.object { b'}' } else { b']' });
                self.open.pop();
                continue;
            };
            if index > 0 {
                out.push(b',');
            }
            if children.head.object {
                key(id(value, &children.head, index)? as usize, out)?;
            }
            let parent = self.open.len() - 1;
            let end = self.one(value, child, names, zone, out)?;
            if let Some(parent) = self.open.get_mut(parent) {
                parent.took(child, end)?;
            }
        }
        Ok(())
    }

    /// The value at `at`: a scalar whole, a container up to its first child; gives the end of the value.
    #[inline]
    fn one(&mut self, value: &[u8], at: usize, names: RowNames<'_>, zone: &Zone, out: &mut Vec<u8>) -> Result<usize> {
        let first = *value.get(at).ok_or_else(|| cut(at))?;
        if first & 2 == 2 {
            return self.open(value, at, names, out);
        }
        let end = at + length(value, at)?;
        let bytes = value.get(at..end).ok_or_else(|| cut(at))?;
        let text = match bytes {
            [first, text @ ..] if first & 3 == 1 => text,
            [0x40, _, _, _, _, text @ ..] => text,
            _ => {
                check_scalar(bytes, at)?;
                if let Some(scalar) = scalar(bytes) {
                    push_scalar(out, &scalar, zone);
                }
                return Ok(end);
            }
        };
        if !is_utf8(text) {
            return Err(fault(6, at, "a string is not UTF-8"));
        }
        push_quoted(out, text);
        Ok(end)
    }

    fn open(&mut self, value: &[u8], at: usize, names: RowNames<'_>, out: &mut Vec<u8>) -> Result<usize> {
        if self.open.len() >= MAX_VALUE_DEPTH {
            return Err(too_deep(at));
        }
        let head = head(value, at)?;
        if head.object {
            // Whatever their order is, they are printed in it.
            names.check_ids(value, at, &head, &mut self.ids)?;
        }
        out.push(if head.object { b'{' } else { b'[' });
        self.open.push(Children::of(head));
        Ok(head.end)
    }
}
