//! The type of a Variant as text, as Spark's `schema_of_variant` shows it: what a value physically is, an array's
//! elements merged into one type. Nothing recurses: types stand in an arena, and merging keeps a list of what is left.
//!
//! Merging, from `findTightestCommonType` and `JsonInferSchema.compatibleType`: VOID gives way to anything; BIGINT,
//! FLOAT and DOUBLE widen in this order; a decimal takes a BIGINT as its 20 digits; decimals become one that holds
//! both, or DOUBLE beyond 38 digits; DATE, TIMESTAMP_NTZ and TIMESTAMP widen in this order; objects unite their
//! fields; anything else is VARIANT. (Keys that differ in case alone are kept apart always; Spark, which folds case,
//! sometimes shows one of them.)

use hashbrown::HashMap;

use crate::error::Result;
use crate::limits::check_room;
use crate::names::Names;
use crate::tape::{Scalar, TapeView};
use crate::text::java;

type Id = usize;

#[derive(Debug, Clone, PartialEq)]
enum Type {
    Void,
    /// A type that merges by its place in a list, or with itself alone.
    Named(&'static str),
    /// Precision and scale.
    Decimal(u32, u32),
    Array(Id),
    Object(Fields),
    Variant,
}

/// Fields by name (an id of [`Names`]), sorted when they are shown.
#[derive(Debug, Clone, PartialEq, Default)]
struct Fields {
    list: Vec<(u32, Id)>,
    /// The same to be found by name, once others are merged into them.
    by_name: HashMap<u32, Id>,
}

impl Fields {
    fn push(&mut self, name: u32, id: Id) {
        self.list.push((name, id));
        if !self.by_name.is_empty() {
            self.by_name.insert(name, id);
        }
    }

    fn find(&mut self, name: u32) -> Option<Id> {
        if self.by_name.is_empty() {
            self.by_name.extend(self.list.iter().copied());
        }
        self.by_name.get(&name).copied()
    }
}

const NUMBERS: [&str; 3] = ["BIGINT", "FLOAT", "DOUBLE"];
const TIMES: [&str; 3] = ["DATE", "TIMESTAMP_NTZ", "TIMESTAMP"];
/// Digits of a BIGINT as a decimal.
const LONG_DIGITS: u32 = 20;
const MAX_DIGITS: u32 = 38;

/// Reusable: keep one and describe many rows.
#[derive(Default)]
pub struct TypePrinter {
    types: Vec<Type>,
}

impl TypePrinter {
    /// Appends the type of the value at node `at`, which no column holds if its names are long and many.
    pub fn print(&mut self, view: &TapeView, at: usize, out: &mut Vec<u8>) -> Result<()> {
        self.types.clear();
        let root = self.describe(view, at);
        self.write(root, view.names, out)
    }

    fn add(&mut self, found: Type) -> Id {
        self.types.push(found);
        self.types.len() - 1
    }

    fn get(&self, id: Id) -> &Type {
        self.types.get(id).unwrap_or(&Type::Variant)
    }

    fn take(&mut self, id: Id) -> Type {
        self.types.get_mut(id).map_or(Type::Variant, |slot| std::mem::replace(slot, Type::Void))
    }

    fn set(&mut self, id: Id, found: Type) {
        if let Some(slot) = self.types.get_mut(id) {
            *slot = found;
        }
    }

    /// Node by node; a container is complete, and goes to its parent, where its subtree ends.
    fn describe(&mut self, view: &TapeView, at: usize) -> Id {
        let end = view.nodes.get(at).map_or(at, |node| node.next(at));
        let mut open: Vec<(usize, u32, Id)> = Vec::new();
        let mut root = None;
        for (i, node) in view.nodes.iter().enumerate().take(end).skip(at) {
            self.close(&mut open, i);
            let scalar = view.scalar(node);
            let id = match &scalar {
                Some(scalar) => self.add(leaf(scalar)),
                None if node.kind == crate::tape::Kind::Array => {
                    let element = self.add(Type::Void);
                    self.add(Type::Array(element))
                }
                None => self.add(Type::Object(Fields::default())),
            };
            root.get_or_insert(id);
            match scalar {
                Some(_) => self.attach(open.last().map(|(_, _, id)| *id), node.name, id),
                None => open.push((node.b as usize, node.name, id)),
            }
        }
        self.close(&mut open, end);
        root.unwrap_or(0)
    }

    fn close(&mut self, open: &mut Vec<(usize, u32, Id)>, at: usize) {
        while let Some(&(end, name, id)) = open.last()
            && end <= at
        {
            open.pop();
            self.attach(open.last().map(|(_, _, parent)| *parent), name, id);
        }
    }

    fn attach(&mut self, parent: Option<Id>, name: u32, child: Id) {
        let Some(parent) = parent else { return };
        match self.types.get_mut(parent) {
            Some(Type::Object(fields)) => fields.push(name, child),
            Some(Type::Array(element)) => {
                let element = *element;
                self.merge(element, child);
            }
            _ => {}
        }
    }

    /// Merges the second type, which nobody asks for again, into the first.
    fn merge(&mut self, into: Id, from: Id) {
        let mut todo = vec![(into, from)];
        while let Some((into, from)) = todo.pop() {
            let (left, right) = (self.take(into), self.take(from));
            let merged = match (left, right) {
                (Type::Void, other) | (other, Type::Void) => other,
                (Type::Array(a), Type::Array(b)) => {
                    todo.push((a, b));
                    Type::Array(a)
                }
                (Type::Object(mut fields), Type::Object(others)) => {
                    for (name, id) in others.list {
                        match fields.find(name) {
                            Some(known) => todo.push((known, id)),
                            None => fields.push(name, id),
                        }
                    }
                    Type::Object(fields)
                }
                (a, b) => common(a, b),
            };
            self.set(into, merged);
        }
    }

    fn write(&self, root: Id, names: &Names, out: &mut Vec<u8>) -> Result<()> {
        enum Part<'a> {
            Type(Id),
            Text(&'a [u8]),
            Name(&'a str),
        }
        let mut todo = vec![Part::Type(root)];
        while let Some(part) = todo.pop() {
            check_room(out.len())?;
            let id = match part {
                Part::Text(text) => {
                    out.extend_from_slice(text);
                    continue;
                }
                Part::Name(name) => {
                    push_name(out, name);
                    continue;
                }
                Part::Type(id) => id,
            };
            match self.get(id) {
                Type::Void => out.extend_from_slice(b"VOID"),
                Type::Variant => out.extend_from_slice(b"VARIANT"),
                Type::Named(name) => out.extend_from_slice(name.as_bytes()),
                Type::Decimal(precision, scale) => {
                    out.extend_from_slice(b"DECIMAL(");
                    java::push_int(out, *precision as i64);
                    out.push(b',');
                    java::push_int(out, *scale as i64);
                    out.push(b')');
                }
                Type::Array(element) => {
                    out.extend_from_slice(b"ARRAY<");
                    todo.extend([Part::Text(b">"), Part::Type(*element)]);
                }
                Type::Object(fields) => {
                    out.extend_from_slice(b"OBJECT<");
                    let mut sorted: Vec<(&str, Id)> = fields.list.iter().map(|(n, id)| (names.get(*n), *id)).collect();
                    sorted.sort_unstable();
                    todo.push(Part::Text(b">"));
                    for (i, (name, id)) in sorted.into_iter().enumerate().rev() {
                        todo.extend([Part::Type(id), Part::Text(b": "), Part::Name(name)]);
                        if i > 0 {
                            todo.push(Part::Text(b", "));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn leaf(scalar: &Scalar) -> Type {
    Type::Named(match *scalar {
        Scalar::Null => return Type::Void,
        Scalar::Decimal(unscaled, scale) => {
            let (unscaled, scale) = java::strip_zeros(unscaled, scale);
            let digits = unscaled.unsigned_abs().to_string().len() as u32;
            return Type::Decimal(digits.max(scale as u32), scale as u32);
        }
        Scalar::Boolean(_) => "BOOLEAN",
        Scalar::Int(_) => "BIGINT",
        Scalar::Float(_) => "FLOAT",
        Scalar::Double(_) => "DOUBLE",
        Scalar::Date(_) => "DATE",
        Scalar::Timestamp(_) => "TIMESTAMP",
        Scalar::TimestampNtz(_) => "TIMESTAMP_NTZ",
        Scalar::Str(_) => "STRING",
        Scalar::Binary(_) => "BINARY",
        // Spark refuses these; they are shown by the standard's names.
        Scalar::TimestampNanos(_) => "TIMESTAMP(9)",
        Scalar::TimestampNtzNanos(_) => "TIMESTAMP_NTZ(9)",
        Scalar::Time(_) => "TIME",
        Scalar::Uuid(_) => "UUID",
    })
}

/// The common type of two that are neither VOID nor containers of one kind.
fn common(left: Type, right: Type) -> Type {
    match (left, right) {
        (a, b) if a == b => a,
        (Type::Named(a), Type::Named(b)) => {
            let later = |list: [&'static str; 3]| {
                let place = |name| list.iter().position(|known| *known == name);
                list.get(place(a)?.max(place(b)?)).copied()
            };
            later(NUMBERS).or_else(|| later(TIMES)).map_or(Type::Variant, Type::Named)
        }
        (Type::Decimal(p, s), Type::Named("BIGINT")) | (Type::Named("BIGINT"), Type::Decimal(p, s)) => {
            decimals(p, s, LONG_DIGITS, 0)
        }
        (Type::Decimal(..), Type::Named("FLOAT" | "DOUBLE")) | (Type::Named("FLOAT" | "DOUBLE"), Type::Decimal(..)) => {
            Type::Named("DOUBLE")
        }
        (Type::Decimal(p1, s1), Type::Decimal(p2, s2)) => decimals(p1, s1, p2, s2),
        _ => Type::Variant,
    }
}

fn decimals(p1: u32, s1: u32, p2: u32, s2: u32) -> Type {
    let scale = s1.max(s2);
    let whole = (p1 - s1).max(p2 - s2);
    if whole + scale > MAX_DIGITS { Type::Named("DOUBLE") } else { Type::Decimal(whole + scale, scale) }
}

/// A name in backticks unless it is a plain one (Spark's `quoteIfNeeded`).
fn push_name(out: &mut Vec<u8>, name: &str) {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = name.as_bytes();
    if bytes.first().is_some_and(|b| !b.is_ascii_digit()) && bytes.iter().all(|b| plain(*b)) {
        return out.extend_from_slice(bytes);
    }
    out.push(b'`');
    for &byte in bytes {
        if byte == b'`' {
            out.push(b'`');
        }
        out.push(byte);
    }
    out.push(b'`');
}
