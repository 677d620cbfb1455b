//! Dates and timestamps of files that follow the calendar of old Sparks: Julian before 15 October 1582, and in
//! timestamps before 1900 the offsets of Java's old zones. They become what Spark reads: the same local date and time
//! in the proleptic Gregorian calendar.
//!
//! The rule is Spark's (`DataSourceUtils.getRebaseSpec`, `RebaseDateTime`): a file of Spark follows the old calendar
//! when its version is below 3.0.0 (3.1.0 for INT96) or a key of its footer says so; a file of anybody else does not.
//! `julian_zones.txt` is the table of `RebaseDateTime` (Apache Spark, Apache-2.0) in short, one line for zones that
//! agree: the old offset in seconds, what is added to an instant, the instants at which that changes, the zones.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_schema::{DataType, TimeUnit};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::ParquetMetaData;

use crate::error::{Code, Error, Result};
use crate::parquet::physical::Raw;
use crate::text::zone::{DAY, Zone, days_from_civil};

/// The first day of the Gregorian calendar, 1582-10-15.
const FIRST_GREGORIAN_DAY: i64 = -141_427;
/// 1900-01-01T00:00:00Z: from here on both calendars and all zones agree.
const AGREED: i64 = -2_208_988_800;

const ZONES: &str = include_str!("julian_zones.txt");

/// What one zone does to instants before 1900.
#[derive(Debug, Clone, Default)]
struct OldZone {
    offset: i64,
    added: i64,
    /// From this instant on another number is added.
    changes: Vec<(i64, i64)>,
}

impl OldZone {
    /// By Spark's name of the zone; offsets have no history.
    fn find(name: &str) -> Option<OldZone> {
        for line in ZONES.lines() {
            let mut words = line.split(' ');
            let (Some(offset), Some(added), Some(changes)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            if words.any(|zone| zone == name) {
                let pairs = changes.split(',').filter_map(|pair| pair.split_once(':'));
                let changes = pairs.map(|(at, to)| Some((at.parse().ok()?, to.parse().ok()?)));
                let changes = changes.collect::<Option<Vec<_>>>()?;
                return Some(OldZone { offset: offset.parse().ok()?, added: added.parse().ok()?, changes });
            }
        }
        match Zone::find(name)? {
            Zone::Fixed(offset) => Some(OldZone { offset: offset.into(), ..OldZone::default() }),
            Zone::Named(_) => None,
        }
    }

    /// The seconds to be added to an instant, given in whole seconds.
    fn shift(&self, second: i64) -> i64 {
        let day = (second + self.offset).div_euclid(DAY);
        if day < FIRST_GREGORIAN_DAY {
            return (gregorian(day) - day) * DAY + self.added;
        }
        self.changes.iter().rev().find(|(at, _)| second >= *at).map_or(self.added, |(_, added)| *added)
    }
}

/// What has to be done to the values of one file.
#[derive(Debug, Clone)]
pub struct Legacy {
    dates: bool,
    timestamps: bool,
    /// `None` where the footer names no zone that is known.
    zone: Option<OldZone>,
    file: String,
}

impl Legacy {
    /// `None` for the files of today.
    pub fn of(metadata: &ParquetMetaData, file: &str) -> Option<Legacy> {
        let footer = metadata.file_metadata();
        let pairs = footer.key_value_metadata()?;
        let find = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
        let version = find("org.apache.spark.version")?;
        let dates = version < "3.0.0" || find("org.apache.spark.legacyDateTime").is_some();
        let int96 = version < "3.1.0" || find("org.apache.spark.legacyINT96").is_some();
        let columns = footer.schema_descr().columns();
        // A writer has one form for all timestamps.
        let timestamps = if columns.iter().any(|c| c.physical_type() == PhysicalType::INT96) { int96 } else { dates };
        let zone = find("org.apache.spark.timeZone").and_then(OldZone::find);
        (dates || timestamps).then(|| Legacy { dates, timestamps, zone, file: file.to_owned() })
    }

    fn concerns(&self, data_type: &DataType) -> bool {
        match data_type {
            DataType::Date32 => self.dates,
            DataType::Timestamp(_, Some(_)) => self.timestamps,
            _ => false,
        }
    }

    /// Whether equal values of that type may be stored as other ones.
    pub fn may_differ(&self, data_type: &DataType) -> bool {
        self.concerns(data_type)
    }

    /// Whether a bound of that type is a value of today's calendar.
    pub fn bound_holds(&self, data_type: &DataType, bound: Option<&Raw>) -> bool {
        let Some(Raw::Int(value)) = bound else { return true };
        !self.concerns(data_type)
            || match data_type {
                DataType::Timestamp(unit, _) => *value >= AGREED.saturating_mul(in_second(*unit)),
                _ => *value >= FIRST_GREGORIAN_DAY,
            }
    }

    /// The batch in today's calendar.
    pub fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().map(|column| self.array(column)).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
    }

    fn array(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let data_type = array.data_type();
        if data_type.is_nested() {
            let data = array.to_data();
            let children = data.child_data().iter().map(|child| Ok(self.array(&make_array(child.clone()))?.to_data()));
            let children = children.collect::<Result<_>>()?;
            return Ok(make_array(data.into_builder().child_data(children).build()?));
        }
        if !self.concerns(data_type) {
            return Ok(array.clone());
        }
        Ok(match data_type {
            DataType::Date32 => {
                let days = array.as_primitive::<Date32Type>();
                Arc::new(
                    days.unary::<_, Date32Type>(|day| {
                        gregorian(day.into()).clamp(i32::MIN.into(), i32::MAX.into()) as i32
                    }),
                )
            }
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let found = array.as_primitive::<TimestampMicrosecondType>();
                let made = found.try_unary::<_, TimestampMicrosecondType, Error>(|at| self.instant(at, 1_000_000))?;
                Arc::new(made.with_timezone_opt(zone.clone()))
            }
            DataType::Timestamp(TimeUnit::Millisecond, zone) => {
                let found = array.as_primitive::<TimestampMillisecondType>();
                let made = found.try_unary::<_, TimestampMillisecondType, Error>(|at| self.instant(at, 1_000))?;
                Arc::new(made.with_timezone_opt(zone.clone()))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                let found = array.as_primitive::<TimestampNanosecondType>();
                let made =
                    found.try_unary::<_, TimestampNanosecondType, Error>(|at| self.instant(at, 1_000_000_000))?;
                Arc::new(made.with_timezone_opt(zone.clone()))
            }
            _ => array.clone(),
        })
    }

    fn instant(&self, at: i64, unit: i64) -> Result<i64> {
        let second = at.div_euclid(unit);
        if second >= AGREED {
            return Ok(at);
        }
        let Some(zone) = &self.zone else {
            let message = format!(
                "{} holds timestamps before 1900 by the calendar of an old Spark, and its footer names no zone \
                 (org.apache.spark.timeZone) in which they could be read",
                self.file
            );
            return Err(Error::new(Code::UnsupportedType, message));
        };
        Ok(at.saturating_add(zone.shift(second).saturating_mul(unit)))
    }
}

fn in_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// The day of the same date in the proleptic Gregorian calendar; one that is missing there is the day after it.
fn gregorian(day: i64) -> i64 {
    if day >= FIRST_GREGORIAN_DAY {
        return day;
    }
    // Days since 1 March 4801 BC, in years that begin in March ("Julian day number", E. G. Richards).
    let days = day + 2_440_588 + 32_082;
    let year = (4 * days + 3).div_euclid(1461);
    let of_year = days - (1461 * year).div_euclid(4);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5;
    let (year, month) = (year - 4800 + month / 10, month + 3 - 12 * (month / 10));
    days_from_civil(year, month as u32, 1) + of_month
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_keeps_its_name() {
        // 1582-10-04 was the day before 1582-10-15; 1500-02-29, the day -171_596 of old, is no date any more.
        assert_eq!(gregorian(-141_428), days_from_civil(1582, 10, 4));
        assert_eq!(gregorian(-141_427), -141_427);
        assert_eq!(gregorian(-171_597), days_from_civil(1500, 2, 28));
        assert_eq!(gregorian(-171_596), days_from_civil(1500, 3, 1));
        assert_eq!(gregorian(-719_164), days_from_civil(1, 1, 1));
    }

    #[test]
    fn zones_are_those_of_the_table_or_offsets() {
        let los_angeles = OldZone::find("America/Los_Angeles").unwrap();
        assert_eq!(los_angeles.shift(-2_717_640_001), -422);
        assert_eq!(los_angeles.shift(-2_717_640_000), 0);
        assert_eq!(los_angeles.shift(-12_219_264_001), -864_422);
        assert_eq!(OldZone::find("+02:00").unwrap().shift(-12_219_300_001), -864_000);
        assert!(OldZone::find("Nowhere/At_All").is_none());
        assert_eq!(ZONES.lines().map(|line| line.split(' ').count() - 3).sum::<usize>(), 602);
    }
}
