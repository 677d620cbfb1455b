//! Arithmetic of decimals, as Spark's `Decimal` calculates: exact in 256 bits, then rounded half up to the scale of the
//! result; a quotient is first cut half down at 39 digits after the point. What has more digits than the result's type,
//! and a division by zero, has no value.

use std::sync::Arc;

use arrow_array::builder::Decimal128Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, BooleanArray, Decimal128Array, RecordBatch};
use arrow_buffer::{BooleanBufferBuilder, i256};
use arrow_schema::{DataType, Field, Schema};

use crate::error::{Code, Error, Result};

/// The digits after the point that a quotient has before it is rounded.
const QUOTIENT_SCALE: u32 = 39;
/// The largest power of ten that, times 38 digits, fits 256 bits.
const STEP: u32 = 38;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub fn parse(mark: &str) -> Result<Self> {
        Ok(match mark {
            "+" => Operator::Add,
            "-" => Operator::Subtract,
            "*" => Operator::Multiply,
            "/" => Operator::Divide,
            "%" => Operator::Remainder,
            other => {
                return Err(Error::new(
                    Code::InvalidArgument,
                    format!("the operator must be +, -, *, / or %, got {other:?}"),
                ));
            }
        })
    }
}

/// Columns 0 and 1, decimals, as `values` of the type asked for and the mask `failed`.
pub fn calculate(batch: &RecordBatch, operator: Operator, precision: u8, scale: u8) -> Result<RecordBatch> {
    let (left, left_scale) = column(batch, 0)?;
    let (right, right_scale) = column(batch, 1)?;
    let rule = Rule::new(operator, left_scale, right_scale, precision as u32, scale as u32)
        .ok_or_else(|| argument("a decimal has at most 38 digits"))?;
    let mut values = Decimal128Builder::with_capacity(left.len()).with_precision_and_scale(precision, scale as i8)?;
    let mut failed = BooleanBufferBuilder::new(left.len());
    for (a, b) in left.iter().zip(right.iter()) {
        let found = a.zip(b).map(|(a, b)| rule.apply(a, b));
        values.append_option(found.flatten());
        failed.append(found == Some(None));
    }
    let values = values.finish();
    let fields =
        vec![Field::new("values", values.data_type().clone(), true), Field::new("failed", DataType::Boolean, false)];
    let failed = BooleanArray::new(failed.finish(), None);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(values), Arc::new(failed)])?)
}

fn column(batch: &RecordBatch, index: usize) -> Result<(&Decimal128Array, u32)> {
    let array = batch.columns().get(index).ok_or_else(|| argument("expected two columns"))?;
    match array.data_type() {
        DataType::Decimal128(_, scale) if (0..=38).contains(scale) => {
            Ok((array.as_primitive::<Decimal128Type>(), *scale as u32))
        }
        other => Err(argument(&format!("expected decimals, got {other}"))),
    }
}

fn argument(message: &str) -> Error {
    Error::new(Code::InvalidArgument, message)
}

fn pow10(exponent: u32) -> Option<i256> {
    i256::from_i128(10).checked_pow(exponent)
}

/// What is the same for every row.
struct Rule {
    operator: Operator,
    /// What brings both sides to one scale.
    align: (i256, i256),
    /// The steps of a long division.
    steps: Vec<i256>,
    rounding: Rounding,
    /// The first number with too many digits.
    limit: i256,
}

enum Rounding {
    Widen(i256),
    /// The unit of the result's scale, and half of it.
    Cut(i256, i256),
}

impl Rule {
    fn new(operator: Operator, left: u32, right: u32, precision: u32, scale: u32) -> Option<Self> {
        let common = left.max(right);
        let exact = match operator {
            Operator::Multiply => left + right,
            Operator::Divide => QUOTIENT_SCALE,
            _ => common,
        };
        let rounding = match exact.checked_sub(scale) {
            None | Some(0) => Rounding::Widen(pow10(scale - exact)?),
            Some(cut) => Rounding::Cut(pow10(cut)?, pow10(cut)?.checked_div(i256::from_i128(2))?),
        };
        let (mut steps, mut digits) = (Vec::new(), QUOTIENT_SCALE + right - left);
        while digits > 0 {
            steps.push(pow10(digits.min(STEP))?);
            digits -= digits.min(STEP);
        }
        let align = (pow10(common - left)?, pow10(common - right)?);
        Some(Rule { operator, align, steps, rounding, limit: pow10(precision)? })
    }

    /// The unscaled result of two unscaled values.
    fn apply(&self, left: i128, right: i128) -> Option<i128> {
        let (a, b) = (i256::from_i128(left), i256::from_i128(right));
        let aligned = || Some((a.checked_mul(self.align.0)?, b.checked_mul(self.align.1)?));
        let exact = match self.operator {
            Operator::Add => aligned().and_then(|(a, b)| a.checked_add(b)),
            Operator::Subtract => aligned().and_then(|(a, b)| a.checked_sub(b)),
            Operator::Multiply => a.checked_mul(b),
            Operator::Remainder => aligned().and_then(|(a, b)| a.checked_rem(b)),
            Operator::Divide => self.quotient(a, b),
        }?;
        let rounded = self.round(exact)?;
        if rounded.wrapping_abs() >= self.limit { None } else { rounded.to_i128() }
    }

    /// By long division, for the whole dividend may be beyond 256 bits; a quotient beyond them fits no type.
    fn quotient(&self, left: i256, right: i256) -> Option<i256> {
        let (a, b) = (left.wrapping_abs(), right.wrapping_abs());
        let (mut quotient, mut rest) = a.checked_div_rem(b)?;
        for step in &self.steps {
            let (digits, left) = rest.checked_mul(*step)?.checked_div_rem(b)?;
            quotient = quotient.checked_mul(*step)?.checked_add(digits)?;
            rest = left;
        }
        if rest.checked_add(rest)? > b {
            quotient = quotient.checked_add(i256::ONE)?;
        }
        Some(if left.is_negative() == right.is_negative() { quotient } else { quotient.wrapping_neg() })
    }

    /// Half up: away from zero.
    fn round(&self, value: i256) -> Option<i256> {
        let (unit, half) = match &self.rounding {
            Rounding::Widen(factor) => return value.checked_mul(*factor),
            Rounding::Cut(unit, half) => (*unit, *half),
        };
        let (whole, rest) = value.checked_div_rem(unit)?;
        if rest.wrapping_abs() < half {
            return Some(whole);
        }
        whole.checked_add(if value.is_negative() { i256::MINUS_ONE } else { i256::ONE })
    }
}
