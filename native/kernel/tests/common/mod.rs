//! What the tests of columns share: JSON lines in, shredded columns and models out.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod memory;
pub mod model;
pub mod random;
pub mod sound;
pub mod thrift;

use arrow::array::{Array, AsArray, StructArray};
use mica_kernel::Result;
use mica_kernel::codec::decode::VariantDecoder;
use mica_kernel::infer::{Limits, Sample};
use mica_kernel::json::{JsonParser, ParseOptions};
use mica_kernel::names::Names;
use mica_kernel::shred::Shredder;
use mica_kernel::tape::Tape;
use mica_kernel::tree::Tree;
use model::{Model, of_tape};

/// Calls `each` with the tape of every line; `None` stands for a SQL NULL.
pub fn each_row(lines: &[Option<&str>], names: &mut Names, mut each: impl FnMut(Option<&Tape>, &str, &Names)) {
    let (mut parser, mut tape) = (JsonParser::new(ParseOptions::default()), Tape::default());
    for line in lines {
        match line {
            Some(line) => {
                parser.parse(line, &mut tape, names).unwrap_or_else(|e| panic!("{line}: {e}"));
                each(Some(&tape), line, names);
            }
            None => each(None, "", names),
        }
    }
}

pub fn some<'a>(lines: &[&'a str]) -> Vec<Option<&'a str>> {
    lines.iter().copied().map(Some).collect()
}

pub fn infer(lines: &[Option<&str>], limits: Limits) -> Tree {
    let (mut sample, mut names) = (Sample::new(limits).unwrap(), Names::new());
    each_row(lines, &mut names, |tape, line, names| {
        if let Some(tape) = tape {
            sample.add(&tape.view(line.as_bytes(), names));
        }
    });
    sample.tree(&names).unwrap().0
}

pub fn shred(lines: &[Option<&str>], tree: &Tree, common: &[&str]) -> Result<StructArray> {
    let mut names = Names::new();
    let mut shredder = Shredder::new(tree, common.iter().copied(), &mut names)?;
    each_row(lines, &mut names, |tape, line, names| match tape {
        Some(tape) => shredder.append(&tape.view(line.as_bytes(), names)).unwrap(),
        None => shredder.append_null(),
    });
    shredder.finish()
}

/// The rows as they were before anything happened to them.
pub fn plain_models(lines: &[Option<&str>]) -> Vec<Option<Model>> {
    let mut out = Vec::new();
    each_row(lines, &mut Names::new(), |tape, line, names| {
        out.push(tape.map(|tape| of_tape(&tape.view(line.as_bytes(), names), 0)));
    });
    out
}

/// The rows of a column in storage layout, put together by our own reader and validated.
pub fn our_models(column: &StructArray) -> Vec<Option<Model>> {
    let whole = mica_kernel::values::reconstruct::unshred(column, "v").unwrap();
    let metadata = whole.column_by_name("metadata").unwrap().as_binary::<i32>();
    let value = whole.column_by_name("value").unwrap().as_binary::<i32>();
    let (mut decoder, mut names, mut tape) = (VariantDecoder::new(), Names::new(), Tape::default());
    let row = |row: usize| {
        whole.is_valid(row).then(|| {
            decoder.decode(metadata.value(row), value.value(row), &mut tape, &mut names).unwrap();
            of_tape(&tape.view(value.value(row), &names), 0)
        })
    };
    (0..whole.len()).map(row).collect()
}
