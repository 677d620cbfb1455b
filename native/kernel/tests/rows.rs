//! Rows as a shredder hands them to a file's writer, beside the arrays that can be made of them.

use std::sync::Arc;

use crate::common::each_row;
use crate::common::random::Random;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use mica_kernel::infer::{Limits, Sample};
use mica_kernel::layout::standard::mark;
use mica_kernel::names::Names;
use mica_kernel::parquet::write::{FileWriter, WriteOptions, parse_compression};
use mica_kernel::rows::Rows;
use mica_kernel::shred::Shredder;
use mica_kernel::tree::Tree;

/// Values of few texts, of many, of none, that drift, in objects that are missing, and in arrays.
fn line(random: &mut Random) -> String {
    let text = |random: &mut Random| match random.next(4) {
        0 => "\"same\"".to_owned(),
        1 => format!("\"né \\\"{}\\\"\"", random.next(9)),
        _ => format!("\"did:plc:{:x}\"", random.next(1 << 40)),
    };
    let mut fields = Vec::new();
    for name in ["a", "b", "late"] {
        if random.next(5) > 0 && (name != "late" || random.next(80) == 0) {
            let value = if random.next(40) == 0 { "[1, {\"x\": null}]".to_owned() } else { text(random) };
            fields.push(format!("\"{name}\": {value}"));
        }
    }
    if random.next(3) > 0 {
        fields.push(format!(
            "\"o\": {{\"t\": {}, \"n\": {}, \"o\": {{\"t\": {}}}}}",
            text(random),
            random.next(9),
            text(random)
        ));
    }
    if random.next(3) == 0 {
        let items: Vec<_> = (0..random.next(4)).map(|_| text(random)).collect();
        fields.push(format!("\"l\": [{}]", items.join(",")));
    }
    if random.next(30) == 0 {
        fields.push(format!("\"extra{}\": {}", random.next(50), text(random)));
    }
    format!("{{{}}}", fields.join(","))
}

fn file(batches: Vec<Rows>, options: &WriteOptions) -> Vec<u8> {
    let mut writer = FileWriter::new(batches[0].schema().clone(), None, options.clone()).unwrap();
    batches.into_iter().for_each(|rows| writer.write(rows).unwrap());
    writer.close().unwrap();
    writer.take_bytes()
}

#[test]
fn a_file_of_a_shredder_s_rows_is_that_of_their_arrays() {
    for seed in 0..24 {
        let random = &mut Random::new(seed);
        let lines: Vec<String> = (0..300 + random.next(3000)).map(|_| line(random)).collect();
        let lines: Vec<Option<&str>> =
            lines.iter().map(|line| (random.next(50) > 0).then_some(line.as_str())).collect();
        let (mut sample, mut names) = (Sample::new(Limits::default()).unwrap(), Names::new());
        each_row(&lines, &mut names, |tape, line, names| {
            tape.into_iter().for_each(|tape| sample.add(&tape.view_text(line, names)));
        });
        let tree = if seed % 8 == 7 { Tree::untyped() } else { sample.tree(&names).unwrap().0 };
        let mut names = Names::new();
        let mut shredder = Shredder::new(&tree, ["extra1"], &mut names).unwrap();
        shredder = if seed % 2 == 0 { shredder.with_views() } else { shredder };
        let schema = Arc::new(Schema::new(vec![mark(Field::new("v", shredder.data_type(), true))]));
        let (mut rows, mut at) = (Vec::new(), 0);
        while at < lines.len() {
            let end = lines.len().min(at + 1 + random.next(900));
            each_row(&lines[at..end], &mut names, |tape, line, names| match tape {
                Some(tape) => shredder.append(&tape.view_text(line, names)).unwrap(),
                None => shredder.append_null(),
            });
            let made = Rows::of_one(schema.clone(), shredder.finish_column().unwrap());
            // In pieces, too: a writer cuts rows at its row groups, and so may whoever hands them on.
            let cut = random.next(made.len() + 1);
            rows.extend([made.slice(0, cut), made.slice(cut, usize::MAX)]);
            at = end;
        }
        rows.retain(|rows| !rows.is_empty());
        let arrays: Vec<RecordBatch> = rows.iter().map(|rows| rows.to_batch().unwrap()).collect();
        let options = WriteOptions {
            row_group_rows: [700, 64 << 10][random.next(2)],
            page_rows: [60, 20_000][random.next(2)],
            page_bytes: [900, 192 << 10][random.next(2)],
            dictionary_bytes: [2000, 4 << 20][random.next(2)],
            compression: parse_compression(["none", "zstd"][random.next(2)]).unwrap(),
            ..WriteOptions::default()
        };
        assert!(arrays.iter().zip(&rows).all(|(arrays, rows)| arrays.num_rows() == rows.len()));
        let of_arrays = file(arrays.iter().map(Rows::from).collect(), &options);
        assert!(file(rows, &options) == of_arrays, "seed {seed}");
    }
}
