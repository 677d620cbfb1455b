//! Rows that are put together by the template of their shape are what the walk makes of each alone: the same bytes and
//! the same errors, whatever the levels hold.

use std::sync::Arc;

use crate::common::random::Random;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array,
    ListArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::Field;
use mica_kernel::values::reconstruct::unshred;

const ROWS: usize = 300;
/// Rows of a kind have the same levels, mostly.
const KINDS: usize = 4;
/// Around what the widths of lengths and offsets change at, and the pieces that texts are copied in.
const LENGTHS: [usize; 12] = [0, 1, 13, 31, 32, 33, 59, 63, 64, 100, 190, 300];

enum Node {
    /// A residual and nothing else.
    Untyped,
    Leaf(usize),
    Object(Vec<(String, Node)>),
    List(Box<Node>),
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Missing,
    Typed,
    Residual,
    /// Of an object, what has more fields; of others an error.
    Both,
}

/// Some names, and the id of one that no level has.
struct Dictionary {
    bytes: Vec<u8>,
    other: u32,
}

impl Dictionary {
    fn of(mut names: Vec<String>, more: usize, backwards: bool) -> Self {
        names.push("zz".into());
        names.extend((0..more).map(|number| format!("a{number:05}")));
        names.sort();
        names.dedup();
        if backwards {
            names.reverse();
        }
        let ends = names.iter().scan(0, |end, name| {
            *end += name.len() as u32;
            Some(*end)
        });
        let numbers = [names.len() as u32, 0].into_iter().chain(ends);
        let mut bytes = vec![0xc1];
        bytes.extend(numbers.flat_map(u32::to_le_bytes));
        bytes.extend(names.concat().bytes());
        Dictionary { bytes, other: names.iter().position(|name| name == "zz").unwrap() as u32 }
    }
}

struct Maker {
    random: Random,
    names: Vec<String>,
    dictionaries: Vec<Dictionary>,
    /// Of each slot its kind, and its dictionary.
    slots: Vec<(usize, usize)>,
    /// Of a thousand states so many are not those of their kind.
    odd: usize,
}

impl Maker {
    fn node(&mut self, depth: usize) -> Node {
        match self.random.next(10) {
            0 => Node::Untyped,
            7 if depth > 0 && depth < 4 => Node::List(Box::new(self.node(depth + 1))),
            7.. if depth < 12 => self.object(depth),
            _ => Node::Leaf(self.random.next(9)),
        }
    }

    fn object(&mut self, depth: usize) -> Node {
        let count = match depth {
            0 => [6, 12, 20, 300][self.random.next(16) % 4 * (self.random.next(4) / 3)],
            _ => [0, 1, 2, 5, 9][self.random.next(5)],
        };
        let first = self.names.len();
        self.names.extend((0..count).map(|number| format!("n{:04}", (first + number) * 7919 % 10_000)));
        let fields = (first..first + count).map(|at| {
            let deep = if count > 50 { Node::Leaf(self.random.next(9)) } else { self.node(depth + 1) };
            (self.names[at].clone(), deep)
        });
        Node::Object(fields.collect())
    }

    fn states(&mut self, node: &Node, top: bool, list: bool) -> Vec<State> {
        let any = |random: &mut Random| match (node, random.next(12)) {
            (_, 0..=2) if !top && !list => State::Missing,
            (Node::Untyped, _) => State::Residual,
            (Node::Object(_), 3) => State::Both,
            (_, 4) if !top => State::Residual,
            _ => State::Typed,
        };
        let of_kinds: [State; KINDS] = std::array::from_fn(|_| any(&mut self.random));
        let (random, odd) = (&mut self.random, self.odd);
        let slots = self.slots.iter().map(|&(kind, _)| match random.next(1000) < odd {
            true => any(random),
            false => of_kinds[kind],
        });
        slots.collect()
    }

    fn residual(&mut self, slot: usize, object: bool) -> Vec<u8> {
        let other = self.dictionaries[self.slots[slot].1].other.to_le_bytes();
        let text = |length: usize| [&[(length as u8) << 2 | 1][..], &vec![b'r'; length]].concat();
        match self.random.next(4) {
            _ if object => [&[0x32, 1][..], &other, &[0, 2, 12, 7]].concat(),
            0 => vec![0x0c, 5],
            1 => text(self.random.next(64)),
            2 => [&[0x40, 70, 0, 0, 0][..], &[b's'; 70]].concat(),
            _ => vec![3, 2, 0, 1, 3, 0, 0x0c, 9],
        }
    }

    /// A level as a group.
    fn level(&mut self, node: &Node, top: bool, list: bool) -> StructArray {
        let states = self.states(node, top, list);
        let value: Vec<Option<Vec<u8>>> = (0..states.len())
            .map(|slot| match states[slot] {
                State::Residual => Some(self.residual(slot, false)),
                State::Both => Some(self.residual(slot, true)),
                _ => None,
            })
            .collect();
        let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
        if top {
            let dictionary = |&(_, number): &(usize, usize)| &self.dictionaries[number].bytes[..];
            columns.push(("metadata", Arc::new(BinaryArray::from_iter_values(self.slots.iter().map(dictionary)))));
        }
        if value.iter().any(Option::is_some) || matches!(node, Node::Untyped) || self.random.next(2) == 0 {
            columns.push(("value", Arc::new(value.iter().map(Option::as_deref).collect::<BinaryArray>())));
        }
        let there: Vec<bool> = states.iter().map(|state| matches!(state, State::Typed | State::Both)).collect();
        if let Some(typed) = self.typed(node, &there) {
            columns.push(("typed_value", typed));
        }
        group(columns, None)
    }

    fn typed(&mut self, node: &Node, there: &[bool]) -> Option<ArrayRef> {
        Some(match node {
            Node::Untyped => return None,
            Node::Leaf(kind) => self.leaf(*kind, there),
            Node::Object(fields) => {
                let columns = fields.iter().map(|(name, node)| {
                    let level: ArrayRef = Arc::new(self.level(node, false, false));
                    (name.as_str(), level)
                });
                let columns: Vec<_> = columns.collect();
                match columns.is_empty() {
                    true => {
                        Arc::new(StructArray::new_empty_fields(there.len(), Some(NullBuffer::from(there.to_vec()))))
                    }
                    false => Arc::new(group(columns, Some(NullBuffer::from(there.to_vec())))),
                }
            }
            Node::List(element) => {
                let lengths: Vec<usize> = there.iter().map(|&there| self.random.next(3) * usize::from(there)).collect();
                let slots = lengths.iter().zip(&self.slots).flat_map(|(&length, &slot)| vec![slot; length]).collect();
                let outer = std::mem::replace(&mut self.slots, slots);
                let elements = self.level(element, false, true);
                self.slots = outer;
                let field = Arc::new(Field::new("element", elements.data_type().clone(), true));
                let offsets = OffsetBuffer::from_lengths(lengths);
                Arc::new(ListArray::new(field, offsets, Arc::new(elements), Some(NullBuffer::from(there.to_vec()))))
            }
        })
    }

    fn leaf(&mut self, kind: usize, there: &[bool]) -> ArrayRef {
        let random = &mut self.random;
        let number = there.iter().map(|&there| there.then(|| random.next(1 << 30) as i64 - (1 << 29)));
        let numbers: Vec<Option<i64>> = number.collect();
        match kind {
            0 => Arc::new(numbers.into_iter().collect::<Int64Array>()),
            1 => Arc::new(numbers.into_iter().map(|n| n.map(|n| n as f64 / 3.0)).collect::<Float64Array>()),
            2 => Arc::new(numbers.into_iter().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
            3 => Arc::new(numbers.into_iter().map(|n| n.map(|n| n % 2 == 0)).collect::<BooleanArray>()),
            4 => {
                let wide = numbers.into_iter().map(|n| n.map(|n| i128::from(n) << (n & 63)));
                Arc::new(wide.collect::<Decimal128Array>().with_precision_and_scale(38, 3).unwrap())
            }
            5 => Arc::new(numbers.into_iter().collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
            6 => {
                let bytes = numbers.into_iter().map(|n| n.map(|n| vec![7; (n & 63) as usize]));
                Arc::new(bytes.collect::<Vec<_>>().iter().map(Option::as_deref).collect::<BinaryArray>())
            }
            _ => {
                let mut length = || match random.next(500) {
                    0 => 70_000,
                    _ => LENGTHS[random.next(LENGTHS.len())],
                };
                let texts = there.iter().map(|&there| there.then(|| "t".repeat(length())));
                Arc::new(texts.collect::<StringArray>())
            }
        }
    }
}

fn group(columns: Vec<(&str, ArrayRef)>, nulls: Option<NullBuffer>) -> StructArray {
    let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
    let fields: Vec<Field> = columns.iter().map(field).collect();
    StructArray::try_new(fields.into(), columns.into_iter().map(|(_, column)| column).collect(), nulls).unwrap()
}

fn column(seed: u64) -> StructArray {
    let mut random = Random::new(seed);
    // Kinds take turns, or rows of one follow each other.
    let run = [1, 50][random.next(2)];
    let slots = (0..ROWS).map(|row| (if run == 1 { random.next(KINDS) } else { row / run % KINDS }, row / 120 % 2));
    let (slots, odd) = (slots.collect(), [0, 3, 30][random.next(3)]);
    let mut maker = Maker { random, names: Vec::new(), dictionaries: Vec::new(), slots, odd };
    let tree = maker.object(0);
    let most = if seed == 7 { 70_000 } else { 300 };
    let (more, backwards) = ([0, 0, most][maker.random.next(3)], maker.random.next(2) == 0);
    let names = maker.names.clone();
    maker.dictionaries = vec![Dictionary::of(names.clone(), more, false), Dictionary::of(names, 1, backwards)];
    let column = maker.level(&tree, true, false);
    match maker.random.next(3) {
        0 => {
            let column: ArrayRef = Arc::new(column);
            maker.random.damaged(&column).as_struct().clone()
        }
        _ => column,
    }
}

fn assert_rows_alone(column: &StructArray) -> bool {
    let whole = unshred(column, "v");
    for row in 0..column.len() {
        match unshred(&column.slice(row, 1), "v") {
            Err(mut alone) => {
                alone.row = alone.row.map(|_| row as u64);
                assert_eq!(format!("{:?}", whole.unwrap_err()), format!("{alone:?}"));
                return false;
            }
            Ok(alone) => {
                let Ok(whole) = &whole else { continue };
                assert_eq!(whole.is_valid(row), alone.is_valid(0));
                for (ours, alone) in whole.columns().iter().zip(alone.columns()) {
                    assert!(ours.as_binary::<i32>().value(row) == alone.as_binary::<i32>().value(0), "row {row}");
                }
            }
        }
    }
    whole.unwrap();
    true
}

#[test]
fn rows_of_a_template_are_those_of_the_walk() {
    let sound = (0..100).filter(|&seed| assert_rows_alone(&column(seed))).count();
    assert!((10..90).contains(&sound), "{sound} columns are sound");
}
