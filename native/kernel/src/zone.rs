//! Time zones as Spark names them, and the calendar as Java counts it (proleptic Gregorian, any year).

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::error::{Code, Error, Result};

pub const DAY: i64 = 86_400;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Zone {
    /// Seconds east of UTC.
    Fixed(i32),
    Named(Tz),
}

/// Java's short names (`ZoneId.SHORT_IDS`), which Spark accepts.
const SHORT_IDS: [(&str, &str); 28] = [
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("EST", "-05:00"),
    ("HST", "-10:00"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("MST", "-07:00"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
];

impl Zone {
    pub const UTC: Zone = Zone::Fixed(0);

    pub fn parse(name: &str) -> Result<Zone> {
        Self::find(name)
            .ok_or_else(|| Error::new(Code::InvalidArgument, format!("{name:?} is no time zone that is known here")))
    }

    /// A region, a short name, `Z`, or an offset, alone or behind UTC, GMT or UT.
    pub fn find(name: &str) -> Option<Zone> {
        let name = SHORT_IDS.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| *long);
        if matches!(name, "Z" | "UTC" | "GMT" | "UT") {
            return Some(Zone::UTC);
        }
        if name.starts_with(['+', '-']) {
            return offset(name).map(Zone::Fixed);
        }
        for prefix in ["UTC", "GMT", "UT"] {
            if let Some(rest) = name.strip_prefix(prefix)
                && rest.starts_with(['+', '-'])
            {
                return offset(rest).map(Zone::Fixed);
            }
        }
        name.parse().ok().map(Zone::Named)
    }

    /// Seconds east of UTC at this instant, in seconds since the epoch.
    pub fn offset_at(&self, instant: i64) -> i32 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => match DateTime::from_timestamp(covered(instant), 0) {
                Some(time) => zone.offset_from_utc_datetime(&time.naive_utc()).fix().local_minus_utc(),
                None => 0,
            },
        }
    }

    /// The instant of a local time, both in seconds. As in Java, a time that the clocks skipped is moved on by the
    /// gap, and of two the earlier is meant: both come to the offset that held before the change.
    pub fn instant_of(&self, local: i64) -> i64 {
        let first = self.offset_at(local) as i64;
        let second = self.offset_at(local - first) as i64;
        let third = self.offset_at(local - second) as i64;
        if second == third {
            // A fixed point; in an overlap the other one may be the earlier instant.
            let before = self.offset_at(local - second - DAY / 4) as i64;
            let earlier = local - before;
            let valid = before > second && self.offset_at(earlier) as i64 == before;
            return if valid { earlier } else { local - second };
        }
        local - second.min(third)
    }
}

/// The zone data end in 2037 with rules that repeat by weekday: a later instant is judged by a year of the same
/// calendar before that, as Java's rules would.
fn covered(instant: i64) -> i64 {
    let days = instant.div_euclid(DAY);
    let (year, _, _) = civil(days);
    if year > 2037 {
        let first = days_from_civil(year, 1, 1);
        let like = |y: &i64| leap(*y) == leap(year) && (days_from_civil(*y, 1, 1) - first).rem_euclid(7) == 0;
        if let Some(same) = (2010..=2037).find(like) {
            return (days - first + days_from_civil(same, 1, 1)) * DAY + instant.rem_euclid(DAY);
        }
    }
    // Long before the first rule all zones keep local mean time.
    instant.max(-6_000_000_000_000)
}

/// `+h`, `+hh`, `+hh:mm`, `+h:mm`, `+hhmm`, `+hh:mm:ss`, `+hhmmss`, up to 18 hours.
fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        _ => (1, text.get(1..)?),
    };
    let parts: Vec<&str> = if rest.contains(':') {
        rest.split(':').collect()
    } else {
        match rest.len() {
            1 | 2 => vec![rest],
            4 => vec![rest.get(..2)?, rest.get(2..)?],
            6 => vec![rest.get(..2)?, rest.get(2..4)?, rest.get(4..)?],
            _ => return None,
        }
    };
    let mut seconds = 0;
    for (part, unit) in parts.iter().zip([3600, 60, 1]) {
        if part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let value: i32 = part.parse().ok()?;
        if unit < 3600 && value > 59 {
            return None;
        }
        seconds += value * unit;
    }
    (parts.len() <= 3 && seconds <= 18 * 3600).then_some(sign * seconds)
}

pub fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Year, month and day of a day counted from 1970-01-01: eras of 400 years that begin on March 1.
pub fn civil(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * month + 2) / 5 + 1) as u32;
    let month = if month < 10 { month + 3 } else { month - 9 } as u32;
    (year + era * 400 + (month <= 2) as i64, month, day)
}

/// The inverse of [`civil`]; month and day are taken as they are.
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = year - (month <= 2) as i64;
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let month = (month as i64 + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day as i64 - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
