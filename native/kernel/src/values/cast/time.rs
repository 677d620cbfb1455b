//! Dates and timestamps: between each other with a zone, and from the texts that Spark reads (its functions
//! `stringToDate`, `parseTimestampString`, `stringToTimestamp`).

use std::time::{SystemTime, UNIX_EPOCH};

use crate::tape::Scalar;
use crate::text::zone::{DAY, Zone, civil, days_from_civil, days_in_month};
use crate::values::cast::number::{float_to_i64, pow10};
use crate::values::cast::text::trim_all;

const MICROS: i64 = 1_000_000;

pub fn to_date(scalar: &Scalar, zone: &Zone) -> Option<i32> {
    match *scalar {
        Scalar::Date(days) => Some(days),
        Scalar::Timestamp(micros) => {
            let seconds = micros.div_euclid(MICROS);
            i32::try_from((seconds + zone.offset_at(seconds) as i64).div_euclid(DAY)).ok()
        }
        Scalar::TimestampNtz(micros) => i32::try_from(micros.div_euclid(DAY * MICROS)).ok(),
        Scalar::Str(text) => parse_date(text),
        _ => None,
    }
}

pub fn to_timestamp(scalar: &Scalar, zone: &Zone) -> Option<i64> {
    match *scalar {
        Scalar::Timestamp(micros) => Some(micros),
        Scalar::TimestampNtz(micros) => instant_micros(micros, zone),
        Scalar::Date(days) => zone.instant_of(days as i64 * DAY).checked_mul(MICROS),
        Scalar::Int(seconds) => seconds.checked_mul(MICROS),
        Scalar::Decimal(unscaled, scale) => match scale.checked_sub(6) {
            Some(cut) => i64::try_from(unscaled / pow10(cut as u32)?).ok(),
            None => i64::try_from(unscaled.checked_mul(pow10(6 - scale as u32)?)?).ok(),
        },
        Scalar::Float(seconds) => from_seconds(seconds as f64),
        Scalar::Double(seconds) => from_seconds(seconds),
        Scalar::Str(text) => parse_timestamp(text, zone),
        _ => None,
    }
}

pub fn to_timestamp_ntz(scalar: &Scalar, zone: &Zone) -> Option<i64> {
    match *scalar {
        Scalar::TimestampNtz(micros) => Some(micros),
        Scalar::Timestamp(micros) => local_micros(micros, zone),
        Scalar::Date(days) => (days as i64 * DAY).checked_mul(MICROS),
        Scalar::Str(text) => {
            let parsed = Parsed::read(text)?;
            if parsed.time_only {
                return None;
            }
            parsed.zone?;
            let (seconds, fraction) = parsed.local()?;
            micros(seconds, fraction)
        }
        _ => None,
    }
}

fn from_seconds(seconds: f64) -> Option<i64> {
    float_to_i64(seconds * MICROS as f64)
}

/// The wall clock of an instant.
fn local_micros(micros: i64, zone: &Zone) -> Option<i64> {
    micros.checked_add(zone.offset_at(micros.div_euclid(MICROS)) as i64 * MICROS)
}

fn instant_micros(local: i64, zone: &Zone) -> Option<i64> {
    micros(zone.instant_of(local.div_euclid(MICROS)), local.rem_euclid(MICROS))
}

/// In wide numbers, for the seconds of the least timestamp are already out of range.
fn micros(seconds: i64, micros: i64) -> Option<i64> {
    i64::try_from(seconds as i128 * MICROS as i128 + micros as i128).ok()
}

/// `[+-]y…[-m[m][-d[d]]]`, years of 4 to 7 digits; after a whole date a space or `T` begins what is ignored.
pub fn parse_date(text: &str) -> Option<i32> {
    let bytes = trim_all(text).as_bytes();
    let (sign, mut at) = sign(bytes);
    bytes.get(at)?;
    let mut segments = [1i64; 3];
    let (mut i, mut value, mut digits) = (0, 0i64, 0);
    let valid = |i: usize, digits: usize| if i == 0 { (4..=7).contains(&digits) } else { (1..=2).contains(&digits) };
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'T' => break,
            b'-' if i < 2 => {
                if !valid(i, digits) {
                    return None;
                }
                *segments.get_mut(i)? = value;
                (i, value, digits) = (i + 1, 0, 0);
            }
            b'0'..=b'9' if digits < 8 => {
                value = value * 10 + (byte - b'0') as i64;
                digits += 1;
            }
            _ => return None,
        }
        at += 1;
    }
    if !valid(i, digits) || (i < 2 && at < bytes.len()) {
        return None;
    }
    *segments.get_mut(i)? = value;
    i32::try_from(date(sign * segments[0], segments[1], segments[2])?).ok()
}

fn sign(bytes: &[u8]) -> (i64, usize) {
    match bytes.first() {
        Some(b'-') => (-1, 1),
        Some(b'+') => (1, 1),
        _ => (1, 0),
    }
}

fn date(year: i64, month: i64, day: i64) -> Option<i64> {
    let month = u32::try_from(month).ok().filter(|m| (1..=12).contains(m))?;
    let day = u32::try_from(day).ok().filter(|d| (1..=days_in_month(year, month)).contains(d))?;
    Some(days_from_civil(year, month, day))
}

fn parse_timestamp(text: &str, zone: &Zone) -> Option<i64> {
    let parsed = Parsed::read(text)?;
    let zone = parsed.zone?.unwrap_or(*zone);
    if parsed.time_only {
        // A time without a date means today, which no result that outlives the day may depend on; Spark does so.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
        let today = (now + zone.offset_at(now) as i64).div_euclid(DAY);
        let (year, month, day) = civil(today);
        let today = Parsed { date: [year, month as i64, day as i64], ..parsed };
        return today.instant(&zone);
    }
    parsed.instant(&zone)
}

/// The parts of a timestamp text. `zone` is `None` when the text names one that does not exist.
struct Parsed {
    date: [i64; 3],
    time: [i64; 4],
    zone: Option<Option<Zone>>,
    time_only: bool,
}

impl Parsed {
    /// Seconds of the wall clock, and microseconds of the second.
    fn local(&self) -> Option<(i64, i64)> {
        let [hour, minute, second, fraction] = self.time;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = date(self.date[0], self.date[1], self.date[2])?;
        Some((days * DAY + hour * 3600 + minute * 60 + second, fraction))
    }

    fn instant(&self, zone: &Zone) -> Option<i64> {
        let (seconds, fraction) = self.local()?;
        micros(zone.instant_of(seconds), fraction)
    }

    /// Spark's reader, segment by segment: 0 to 2 the date, 3 to 5 the time, 6 the fraction, 7 the zone.
    fn read(text: &str) -> Option<Self> {
        // Only the very first character may be the T of a time alone, before any trimming.
        let bare_time = text.starts_with('T');
        let text = trim_all(text);
        let bytes = text.as_bytes();
        let (sign, mut at) = sign(bytes);
        bytes.first()?;
        let signed = at > 0;
        let mut segments = [1, 1, 1, 0, 0, 0, 0, 0, 0i64];
        let (mut i, mut value, mut digits, mut fraction) = (0usize, 0i64, 0usize, 0u32);
        let mut time_only = false;
        let mut zone_text = None;
        while let Some(&byte) = bytes.get(at) {
            if byte.is_ascii_digit() {
                fraction += (i == 6) as u32;
                // More than six digits of a fraction are cut; other segments fail on their digits below.
                if i != 6 && digits < 8 || i == 6 && digits < 6 {
                    value = value * 10 + (byte - b'0') as i64;
                }
                digits += 1;
                at += 1;
                continue;
            }
            if at == 0 && byte == b'T' && bare_time {
                time_only = true;
                i = 3;
                at += 1;
                continue;
            }
            let mut close = i;
            let next = match (i, byte) {
                (0 | 1, b'-') => i + 1,
                (0, b':') if !signed => {
                    time_only = true;
                    close = 3;
                    4
                }
                (2, b' ' | b'T') | (3 | 4, b':') => i + 1,
                (5, b'.') => 6,
                (5 | 6, _) => {
                    zone_text = Some(text.get(at..)?);
                    7
                }
                _ => return None,
            };
            if !valid(close, digits) {
                return None;
            }
            *segments.get_mut(close)? = value;
            (i, value, digits) = (next, 0, 0);
            if zone_text.is_some() {
                break;
            }
            at += 1;
        }
        if !valid(i, digits) {
            return None;
        }
        *segments.get_mut(i)? = value;
        if fraction < 6 {
            segments[6] *= 10i64.pow(6 - fraction);
        }
        let zone = match zone_text {
            None => Some(None),
            Some(text) => zone(text).map(Some),
        };
        Some(Parsed {
            date: [sign * segments[0], segments[1], segments[2]],
            time: [segments[3], segments[4], segments[5], segments[6]],
            zone,
            time_only,
        })
    }
}

fn valid(segment: usize, digits: usize) -> bool {
    match segment {
        0 => (4..=6).contains(&digits),
        6 => true,
        7 => digits <= 2,
        _ => (1..=2).contains(&digits),
    }
}

/// A zone behind a time.
fn zone(text: &str) -> Option<Zone> {
    let text = text.trim_matches(|c: char| c <= ' ');
    if text.is_empty() {
        return None;
    }
    Zone::find(text)
}
