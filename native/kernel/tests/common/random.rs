//! Mutations: a small generator of our own, because the count of cases matters more here than shrinking does, and every
//! case is made again from its number.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, ListArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::DataType;

pub struct Random(u64);

/// Bytes at which formats branch.
const ODD: [u8; 12] = [0, 1, 2, 3, 0x7f, 0x80, 0xff, b'"', 0x11, 0x40, 0x54, 0x15];

impl Random {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds are to differ from the first number on.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Random(mixed ^ mixed >> 27)
    }

    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below.max(1)
    }

    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.next(3) {
            let at = self.next(bytes.len() + 1);
            match self.next(7) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.next(8),
                1 if at < bytes.len() => bytes[at] = ODD[self.next(ODD.len())],
                2 => bytes.truncate(at),
                3 => bytes.insert(at, self.next(256) as u8),
                4 if at < bytes.len() => {
                    bytes.remove(at);
                }
                5 if at < bytes.len() => {
                    let from = self.next(bytes.len());
                    bytes[at] = bytes[from];
                }
                _ => {
                    let from = self.next(bytes.len() + 1).min(at);
                    let piece = bytes[from..at.min(bytes.len())].to_vec();
                    bytes.splice(at.min(bytes.len())..at.min(bytes.len()), piece);
                }
            }
        }
    }

    /// Half of the time the footer alone, whose numbers readers believe; the length of the footer stays right then.
    pub fn damage_file(&mut self, bytes: &mut Vec<u8>) {
        let size = bytes.len();
        let footer = match size.checked_sub(8).and_then(|at| bytes.get(at..at + 4)) {
            Some(length) => u32::from_le_bytes(length.try_into().unwrap()) as usize,
            None => 0,
        };
        if footer > 0 && footer + 12 <= size && self.next(2) == 0 {
            let start = size - 8 - footer;
            let mut part = bytes[start..size - 8].to_vec();
            self.damage(&mut part);
            let tail = [&(part.len() as u32).to_le_bytes()[..], b"PAR1"].concat();
            bytes.truncate(start);
            bytes.extend(part);
            bytes.extend(tail);
            return;
        }
        for _ in 0..1 + self.next(4) {
            let at = self.next(size);
            match self.next(8) {
                0 => return bytes.truncate(at),
                1..=3 => bytes[at] = ODD[self.next(ODD.len())],
                _ => bytes[at] = self.next(256) as u8,
            }
        }
    }

    /// The array with one binary cell, or one null mark, somewhere in it damaged.
    pub fn damaged(&mut self, array: &ArrayRef) -> ArrayRef {
        match array.data_type() {
            DataType::Binary => {
                let binary = array.as_binary::<i32>();
                let victim = self.next(array.len());
                let mut cells: Vec<Option<Vec<u8>>> = binary.iter().map(|cell| cell.map(<[u8]>::to_vec)).collect();
                match cells.get_mut(victim) {
                    Some(Some(bytes)) => self.damage(bytes),
                    // A value of two bytes too many, or an `untyped_value` of one byte, or of an object without fields.
                    Some(cell) if self.next(2) == 0 => *cell = Some(vec![[0u8, 2, 3, 12][self.next(4)], 0, 0]),
                    Some(cell) => *cell = Some(vec![1, 0, 0, [0u8, 2, 3, 12][self.next(4)], 0, 0]),
                    None => {}
                }
                Arc::new(cells.iter().map(|c| c.as_deref()).collect::<BinaryArray>())
            }
            DataType::Struct(fields) => {
                let group = array.as_struct();
                let at = self.next(group.num_columns() + 1);
                let mut columns = group.columns().to_vec();
                let mut nulls = group.nulls().cloned();
                if at < columns.len() {
                    columns[at] = self.damaged(&columns[at]);
                } else {
                    let flip = self.next(group.len());
                    let marks = (0..group.len()).map(|row| group.is_valid(row) != (row == flip));
                    nulls = Some(NullBuffer::from_iter(marks));
                }
                let fields = fields
                    .iter()
                    .zip(&columns)
                    .map(|(f, c)| f.as_ref().clone().with_nullable(true).with_data_type(c.data_type().clone()))
                    .collect::<Vec<_>>();
                Arc::new(StructArray::try_new(fields.into(), columns, nulls).unwrap())
            }
            DataType::List(element) => {
                let list = array.as_list::<i32>();
                let values = self.damaged(list.values());
                let element = element.as_ref().clone().with_data_type(values.data_type().clone()).with_nullable(true);
                let offsets = OffsetBuffer::new(ScalarBuffer::from(list.value_offsets().to_vec()));
                Arc::new(ListArray::try_new(Arc::new(element), offsets, values, list.nulls().cloned()).unwrap())
            }
            _ => array.clone(),
        }
    }
}
