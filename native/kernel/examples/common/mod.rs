//! Ratios that hold on a machine with other work: rounds in which each contender runs once, one after the other, timed
//! by the processor's time of this thread where the system tells it (Linux), else by the clock.

pub mod clock;

use std::error::Error;
use std::hint::black_box;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use mica_kernel::batch::values::variant_to_json;
use mica_kernel::text::zone::Zone;
use mica_memory as _;
use serde_json::Value;

use self::clock::Clock;

pub type Work<'a> = Box<dyn FnMut() -> Result<(), Box<dyn Error>> + 'a>;

/// The work of doing something with each of some things, whose results nobody uses.
pub fn each<'a, T, R>(things: &'a [T], act: impl Fn(&T) -> Result<R, Box<dyn Error>> + 'a) -> Work<'a> {
    Box::new(move || {
        things.iter().try_for_each(|thing| {
            black_box(act(thing)?);
            Ok(())
        })
    })
}

/// Runs ours and theirs `rounds` times in turns and prints the medians and the ratio of each round.
pub fn compare(
    what: &str,
    bytes: usize,
    rounds: usize,
    mut ours: Work,
    mut theirs: Work,
) -> Result<(), Box<dyn Error>> {
    let clock = Clock::start();
    let mut times = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        let start = clock.read();
        ours()?;
        let middle = clock.read();
        theirs()?;
        let (mine, other) = ((middle - start).as_secs_f64(), (clock.read() - middle).as_secs_f64());
        times.0.push(mine);
        times.1.push(other);
        times.2.push(other / mine);
    }
    let (mine, other, ratios) = (median(&mut times.0), median(&mut times.1), median(&mut times.2));
    let (low, high) = (times.2.first().copied().unwrap_or(0.0), times.2.last().copied().unwrap_or(0.0));
    let speed = |seconds: f64| bytes as f64 / seconds / 1e6;
    println!("{what}");
    println!("  mica     {mine:7.3} s  {:6.0} MB/s", speed(mine));
    println!("  arrow-rs {other:7.3} s  {:6.0} MB/s", speed(other));
    println!("  {ratios:.2} times as fast (median of {rounds} rounds, {low:.2} to {high:.2})");
    Ok(())
}

fn median(of: &mut [f64]) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(0.0)
}

/// Fails where two columns of unshredded variants do not print the same JSON, row for row.
pub fn same(what: &str, ours: &ArrayRef, theirs: &ArrayRef) -> Result<(), Box<dyn Error>> {
    let (ours, theirs) = (json(ours)?, json(theirs)?);
    same_texts(what, &ours, &theirs)
}

pub fn same_texts(what: &str, ours: &StringArray, theirs: &StringArray) -> Result<(), Box<dyn Error>> {
    if ours.len() != theirs.len() {
        return Err(format!("{what}: {} rows and {}", ours.len(), theirs.len()).into());
    }
    match ours.iter().zip(theirs).position(|(a, b)| a != b && !alike(a, b)) {
        Some(row) => {
            let (a, b) = (ours.value(row), theirs.value(row));
            Err(format!("{what}: row {row} differs\n  mica     {a}\n  arrow-rs {b}").into())
        }
        None => Ok(()),
    }
}

/// Whether two texts are the same JSON, but for a last digit: arrow-rs makes doubles of decimals.
fn alike(ours: Option<&str>, theirs: Option<&str>) -> bool {
    let read = |text: Option<&str>| serde_json::from_str(text?).ok();
    read(ours).zip(read(theirs)).is_some_and(|(a, b)| near(&a, &b))
}

fn near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| near(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b)),
        (Value::Number(a), Value::Number(b)) => {
            let numbers = a.as_f64().zip(b.as_f64());
            a == b || numbers.is_some_and(|(a, b)| (a - b).abs() <= 1e-12 * a.abs())
        }
        _ => a == b,
    }
}

fn json(variants: &ArrayRef) -> Result<StringArray, Box<dyn Error>> {
    let field = Field::new("v", variants.data_type().clone(), true);
    let batch = RecordBatch::try_new(Schema::new(vec![field]).into(), vec![variants.clone()])?;
    let texts = variant_to_json(&batch, &Zone::UTC)?;
    let texts = arrow::compute::cast(texts.column(0), &DataType::Utf8)?;
    Ok(StringArray::from(texts.to_data()))
}
