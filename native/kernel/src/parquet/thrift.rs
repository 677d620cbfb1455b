//! Thrift's compact protocol, walked to a bounded depth and without believing a number: a length or a count is held
//! against the bytes that are left before anything is sized by it (thrift, "Thrift Compact protocol encoding").

use crate::parquet::bits::from_zigzag;

/// What a field or an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThriftKind {
    True,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

impl ThriftKind {
    fn of(code: u8) -> Option<ThriftKind> {
        Some(match code {
            1 => ThriftKind::True,
            2 => ThriftKind::False,
            3 => ThriftKind::Byte,
            4 => ThriftKind::I16,
            5 => ThriftKind::I32,
            6 => ThriftKind::I64,
            7 => ThriftKind::Double,
            8 => ThriftKind::Binary,
            9 | 10 => ThriftKind::List,
            11 => ThriftKind::Map,
            12 => ThriftKind::Struct,
            13 => ThriftKind::Uuid,
            _ => return None,
        })
    }
}

/// Structs, lists and maps around a value at most: those of Parquet nest eight deep.
const MAX_DEPTH: usize = 32;

/// A place in bytes of the protocol. Every method gives `None` where the bytes are not of it.
#[derive(Debug, Clone, Copy)]
pub struct Walker<'a> {
    bytes: &'a [u8],
}

/// The fields of one struct, which are walked in their order.
#[derive(Debug, Default)]
pub struct Fields {
    last: i16,
}

impl<'a> Walker<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Walker { bytes }
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// The next field of a struct, `Some(None)` at its end. Ids must rise, as every writer has them: no field stands
    /// twice.
    pub fn field(&mut self, fields: &mut Fields) -> Option<Option<(i16, ThriftKind)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let id = match head >> 4 {
            0 => i16::try_from(self.number()?).ok()?,
            delta => fields.last.checked_add(i16::from(delta))?,
        };
        if id <= fields.last {
            return None;
        }
        fields.last = id;
        Some(Some((id, ThriftKind::of(head & 15)?)))
    }

    /// A number of 16, 32 or 64 bits.
    pub fn number(&mut self) -> Option<i64> {
        self.varint().map(from_zigzag)
    }

    /// A number that must be one of 32 bits.
    pub fn int(&mut self) -> Option<i32> {
        self.number()?.try_into().ok()
    }

    /// Text or bytes.
    pub fn binary(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (found, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(found)
    }

    /// What a list holds and how much of it: no more than there are bytes for.
    pub fn list(&mut self) -> Option<(ThriftKind, usize)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.varint()?).ok()?,
            count => usize::from(count),
        };
        // Of an empty list it does not matter what it would hold.
        if count == 0 {
            return Some((ThriftKind::Struct, 0));
        }
        (count <= self.left()).then_some((ThriftKind::of(head & 15)?, count))
    }

    /// A list of which each element is a struct.
    pub fn structs(&mut self) -> Option<usize> {
        match self.list()? {
            (ThriftKind::Struct, count) => Some(count),
            (_, count) => (count == 0).then_some(0),
        }
    }

    /// Passes over the value of a field.
    pub fn skip(&mut self, kind: ThriftKind) -> Option<()> {
        self.pass(kind, true, MAX_DEPTH)
    }

    /// Passes over a value with at most so many containers in each other; a boolean is a part of its field's head, and a
    /// byte in a list.
    fn pass(&mut self, kind: ThriftKind, in_field: bool, depth: usize) -> Option<()> {
        match kind {
            ThriftKind::True | ThriftKind::False if in_field => {}
            ThriftKind::True | ThriftKind::False | ThriftKind::Byte => _ = self.byte()?,
            ThriftKind::I16 | ThriftKind::I32 | ThriftKind::I64 => _ = self.varint()?,
            ThriftKind::Double => self.advance(8)?,
            ThriftKind::Uuid => self.advance(16)?,
            ThriftKind::Binary => _ = self.binary()?,
            ThriftKind::Struct => {
                let depth = depth.checked_sub(1)?;
                let mut fields = Fields::default();
                while let Some((_, kind)) = self.field(&mut fields)? {
                    self.pass(kind, true, depth)?;
                }
            }
            ThriftKind::List => {
                let depth = depth.checked_sub(1)?;
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.pass(kind, false, depth))?;
            }
            ThriftKind::Map => {
                let depth = depth.checked_sub(1)?;
                let count = usize::try_from(self.varint()?).ok()?;
                if count > self.left() {
                    return None;
                }
                let kinds = if count > 0 { self.byte()? } else { 0x11 };
                let (key, value) = (ThriftKind::of(kinds >> 4)?, ThriftKind::of(kinds & 15)?);
                for _ in 0..count {
                    self.pass(key, false, depth)?;
                    self.pass(value, false, depth)?;
                }
            }
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    fn advance(&mut self, count: usize) -> Option<()> {
        self.bytes = self.bytes.get(count..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        if let Some((&byte, rest)) = self.bytes.split_first()
            && byte < 0x80
        {
            self.bytes = rest;
            return Some(u64::from(byte));
        }
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_kinds_are_passed_over() {
        // {1: true, 2: [struct{}, struct{}], 3: {"a": 1}, 4: uuid, 5: 1.0, 6: [true]}, and a byte behind it.
        let mut bytes = vec![0x11, 0x19, 0x2c, 0, 0, 0x1b, 1, 0x85, 1, b'a', 2, 0x1d];
        bytes.extend([0; 16]);
        bytes.extend([0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x19, 0x11, 1, 0, 99]);
        let mut walker = Walker::new(&bytes);
        walker.skip(ThriftKind::Struct).unwrap();
        assert_eq!(walker.left(), 1);
        for cut in 0..bytes.len() - 1 {
            assert!(Walker::new(&bytes[..cut]).skip(ThriftKind::Struct).is_none(), "{cut}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_before_anything_is_sized_by_it() {
        let deep = [0x1c].repeat(1 << 20);
        let counts: [&[u8]; 5] = [
            &[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0], // 2^31 structs
            &[0x18, 0xff, 0xff, 0xff, 0xff, 7, 0],       // a text of 2^31 bytes
            &[0x1b, 0xff, 0xff, 0xff, 0xff, 7, 0x55, 0], // a map
            &[0x15, 2, 0x05, 2, 2, 0],                   // a field that stands twice
            &deep,
        ];
        for bytes in counts {
            assert!(Walker::new(bytes).skip(ThriftKind::Struct).is_none());
        }
        assert!(Walker::new(&[0xff; 11]).number().is_none());
    }
}
