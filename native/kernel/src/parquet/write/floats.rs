//! The bounds of floats that a footer states: none where a NaN is among the values, or may be.
//!
//! The bounds leave NaN out, and only the order of the column says so (Parquet, IEEE_754_TOTAL_ORDER). parquet-java does not
//! know that order and takes bounds for true all the same where both are equal: Spark would skip the row group for `x > 1`.

use parquet::file::statistics::{Statistics, ValueStatistics};

/// The statistics as a footer may state them.
pub fn certain(statistics: Statistics) -> Statistics {
    match statistics {
        Statistics::Float(found) if found.nan_count_opt() != Some(0) => Statistics::Float(unbounded(&found)),
        Statistics::Double(found) if found.nan_count_opt() != Some(0) => Statistics::Double(unbounded(&found)),
        other => other,
    }
}

fn unbounded<T>(found: &ValueStatistics<T>) -> ValueStatistics<T> {
    ValueStatistics::new(None, None, found.distinct_count(), found.null_count_opt(), false)
        .with_nan_count(found.nan_count_opt())
}
