//! Thrift's compact protocol as a tree that can be damaged and written again: the sizes around a damaged part stay
//! right, so that whoever reads it gets as far as the damage.

use super::random::Random;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Bool(bool),
    /// Kind (3 to 6) and number.
    Int(u8, i64),
    Double([u8; 8]),
    Binary(Vec<u8>),
    List(u8, Vec<Value>),
    Struct(Vec<(i16, Value)>),
}

use Value::{Binary, Bool, Double, Int, List, Struct};

/// A struct, and how many bytes it takes.
pub fn parse(bytes: &[u8]) -> Option<(Value, usize)> {
    let mut at = 0;
    let value = read(bytes, &mut at, 12)?;
    Some((value, at))
}

fn byte(bytes: &[u8], at: &mut usize) -> Option<u8> {
    *at += 1;
    bytes.get(*at - 1).copied()
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(bytes, at)?;
        value |= u64::from(next & 0x7f) << shift;
        if next < 0x80 {
            return Some(value);
        }
    }
    None
}

fn read(bytes: &[u8], at: &mut usize, kind: u8) -> Option<Value> {
    Some(match kind {
        1 | 2 => Bool(byte(bytes, at)? == 1),
        3 => Int(3, i64::from(byte(bytes, at)? as i8)),
        4..=6 => {
            let raw = varint(bytes, at)?;
            Int(kind, (raw >> 1) as i64 ^ -((raw & 1) as i64))
        }
        7 => {
            *at += 8;
            Double(bytes.get(*at - 8..*at)?.try_into().ok()?)
        }
        8 => {
            let length = varint(bytes, at)? as usize;
            *at += length;
            Binary(bytes.get(*at - length..*at)?.to_vec())
        }
        9 => {
            let head = byte(bytes, at)?;
            let count = if head >> 4 == 15 { varint(bytes, at)? } else { u64::from(head >> 4) };
            List(head & 15, (0..count).map(|_| read(bytes, at, head & 15)).collect::<Option<_>>()?)
        }
        12 => {
            let (mut fields, mut last) = (Vec::new(), 0i16);
            loop {
                let head = byte(bytes, at)?;
                if head == 0 {
                    return Some(Struct(fields));
                }
                let id = match head >> 4 {
                    0 => match read(bytes, at, 4)? {
                        Int(_, id) => id as i16,
                        _ => return None,
                    },
                    delta => last + i16::from(delta),
                };
                last = id;
                let value = match head & 15 {
                    1 => Bool(true),
                    2 => Bool(false),
                    kind => read(bytes, at, kind)?,
                };
                fields.push((id, value));
            }
        }
        _ => return None,
    })
}

impl Value {
    fn kind(&self) -> u8 {
        match self {
            Bool(true) => 1,
            Bool(false) => 2,
            Int(kind, _) => *kind,
            Double(_) => 7,
            Binary(_) => 8,
            List(..) => 9,
            Struct(_) => 12,
        }
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Bool(value) => out.push(if *value { 1 } else { 2 }),
            Int(3, value) => out.push(*value as u8),
            Int(_, value) => push(out, (*value << 1 ^ *value >> 63) as u64),
            Double(bytes) => out.extend(bytes),
            Binary(bytes) => {
                push(out, bytes.len() as u64);
                out.extend(bytes);
            }
            List(kind, values) => {
                match values.len() {
                    count @ 0..15 => out.push((count as u8) << 4 | kind),
                    count => {
                        out.push(0xf0 | kind);
                        push(out, count as u64);
                    }
                }
                values.iter().for_each(|value| value.write(out));
            }
            Struct(fields) => {
                let mut last = 0;
                for (id, value) in fields {
                    match id - last {
                        delta @ 1..=15 => out.push((delta as u8) << 4 | value.kind()),
                        _ => {
                            out.push(value.kind());
                            Int(4, i64::from(*id)).write(out);
                        }
                    }
                    last = *id;
                    if !matches!(value, Bool(_)) {
                        value.write(out);
                    }
                }
                out.push(0);
            }
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// A field of a struct.
    pub fn field(&mut self, id: i16) -> &mut Value {
        match self {
            Struct(fields) => &mut fields.iter_mut().find(|(found, _)| *found == id).expect("the field").1,
            _ => panic!("no struct"),
        }
    }

    /// The elements of a list.
    pub fn elements(&mut self) -> &mut Vec<Value> {
        match self {
            List(_, values) => values,
            _ => panic!("no list"),
        }
    }

    /// Values in it, itself included.
    fn count(&self) -> usize {
        1 + match self {
            List(_, values) => values.iter().map(Value::count).sum::<usize>(),
            Struct(fields) => fields.iter().map(|(_, value)| value.count()).sum(),
            _ => 0,
        }
    }

    fn nth(&mut self, mut at: usize) -> &mut Value {
        if at == 0 {
            return self;
        }
        at -= 1;
        let below: Vec<&mut Value> = match self {
            List(_, values) => values.iter_mut().collect(),
            Struct(fields) => fields.iter_mut().map(|(_, value)| value).collect(),
            _ => vec![],
        };
        for value in below {
            let count = value.count();
            if at < count {
                return value.nth(at);
            }
            at -= count;
        }
        unreachable!("fewer values than counted")
    }

    /// One value somewhere in it becomes another.
    pub fn damage(&mut self, random: &mut Random) {
        const ODD: [i64; 12] =
            [0, 1, -1, 2, 3, 127, 32767, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN, 1_513_803_274];
        let count = self.count();
        let other = self.nth(random.next(count)).clone();
        match self.nth(random.next(count)) {
            Bool(value) => *value = !*value,
            Double(bytes) => bytes[random.next(8)] ^= 1 << random.next(8),
            Binary(bytes) => random.damage(bytes),
            Int(kind, value) => {
                let changed = match (random.next(5), other) {
                    (0, Int(_, other)) => other,
                    (1, _) => value.wrapping_add(1),
                    (2, _) => value.wrapping_sub(1),
                    (3, _) => value.wrapping_mul(2),
                    _ => ODD[random.next(ODD.len())],
                };
                *value = if *kind == 6 { changed } else { i64::from(changed as i32) };
            }
            List(kind, values) if !values.is_empty() => {
                let at = random.next(values.len());
                match random.next(5) {
                    0 => values.insert(at, values[at].clone()),
                    1 => _ = values.remove(at),
                    2 => values.truncate(at),
                    3 => values.swap(0, at),
                    _ if other.kind() == *kind => values[at] = other,
                    _ => {
                        let more = values.clone();
                        values.extend(more);
                    }
                }
            }
            List(..) => {}
            Struct(fields) if !fields.is_empty() => {
                let at = random.next(fields.len());
                match random.next(3) {
                    0 => _ = fields.remove(at),
                    1 => fields[at].1 = other,
                    _ => fields[at].0 += 1,
                }
            }
            Struct(_) => {}
        }
    }
}

fn push(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A file as its pages and its footer.
pub struct File {
    pub body: Vec<u8>,
    pub footer: Value,
}

impl File {
    pub fn of(bytes: &[u8]) -> Option<File> {
        let tail = bytes.len().checked_sub(8)?;
        let length = u32::from_le_bytes(bytes.get(tail..tail + 4)?.try_into().ok()?) as usize;
        let start = tail.checked_sub(length)?;
        Some(File { body: bytes[..start].to_vec(), footer: parse(&bytes[start..tail])?.0 })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let footer = self.footer.bytes();
        [&self.body[..], &footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
    }

    /// Where the pages of a chunk begin, with their headers and how long these are.
    pub fn pages(&mut self, group: usize, column: usize) -> Vec<(usize, Value, usize)> {
        let chunk = self.footer.field(4).elements()[group].field(1).elements()[column].field(3).clone();
        let Struct(fields) = &chunk else { return vec![] };
        let number = |id| {
            fields
                .iter()
                .find(|(f, _)| *f == id)
                .and_then(|(_, v)| if let Int(_, n) = v { Some(*n as usize) } else { None })
        };
        let Some(mut at) = number(11).or(number(9)) else { return vec![] };
        let end = at + number(7).unwrap_or(0);
        let mut pages = Vec::new();
        while at < end {
            let Some((header, length)) = self.body.get(at..).and_then(parse) else { break };
            let Struct(fields) = &header else { break };
            let size = fields
                .iter()
                .find(|(f, _)| *f == 3)
                .map_or(0, |(_, v)| if let Int(_, n) = v { *n as usize } else { 0 });
            pages.push((at, header.clone(), length));
            at += length + size;
        }
        pages
    }

    /// Puts another header in a page's place. It must be as long.
    pub fn replace(&mut self, at: usize, length: usize, header: &Value) -> bool {
        let bytes = header.bytes();
        if bytes.len() != length {
            return false;
        }
        self.body[at..at + length].copy_from_slice(&bytes);
        true
    }

    /// The footer or the header of a page, damaged in one place or two.
    pub fn damage(&mut self, random: &mut Random) {
        if random.next(2) == 0 {
            for _ in 0..1 + random.next(2) {
                self.footer.damage(random);
            }
            return;
        }
        let groups = self.footer.field(4).elements().len();
        if groups == 0 {
            return;
        }
        let group = random.next(groups);
        let columns = self.footer.field(4).elements()[group].field(1).elements().len();
        let mut pages = self.pages(group, random.next(columns));
        if pages.is_empty() {
            return;
        }
        let (at, header, length) = pages.swap_remove(random.next(pages.len()));
        for _ in 0..8 {
            let mut damaged = header.clone();
            damaged.damage(random);
            if damaged != header && self.replace(at, length, &damaged) {
                return;
            }
        }
    }
}
