//! Tape to JSON text, spelled as Spark's `to_json` spells a Variant: numbers without regard to their physical type
//! (`123` for a decimal 123.00), times in the session's zone, binary as base64. Types that Spark cannot print (time,
//! nanoseconds) follow the same pattern. Without recursion.

use crate::error::{Error, Result};
use crate::json::scan::{push_plain_text, string_stop};
use crate::limits::check_room;
use crate::tape::{Kind, Scalar, TapeView};
use crate::text::java;
use crate::text::zone::Zone;

/// Reusable: keep one and print many rows.
#[derive(Default)]
pub struct JsonPrinter {
    /// End and kind of the open containers.
    stack: Vec<(usize, Kind)>,
}

const MICROS: i64 = 1_000_000;
const NANOS: i64 = 1_000_000_000;

impl JsonPrinter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the text of the subtree at `at`, which no column holds if its names are long and many.
    pub fn print(&mut self, view: &TapeView, at: usize, zone: &Zone, out: &mut Vec<u8>) -> Result<()> {
        let end = view.nodes.get(at).map_or(at, |node| node.next(at));
        self.stack.clear();
        let mut first = true;
        for (i, node) in view.nodes.iter().enumerate().take(end).skip(at) {
            while let Some(&(end, kind)) = self.stack.last()
                && end == i
            {
                self.stack.pop();
                out.push(closing(kind));
                first = false;
            }
            if let Some(&(_, kind)) = self.stack.last() {
                if !first {
                    out.push(b',');
                }
                if kind == Kind::Object {
                    push_key(out, view.names.get(node.name).as_bytes())?;
                }
            }
            first = false;
            match node.kind {
                Kind::Object | Kind::Array => {
                    out.push(if node.kind == Kind::Object { b'{' } else { b'[' });
                    self.stack.push((node.b as usize, node.kind));
                    first = true;
                }
                Kind::Str => push_quoted(out, view.bytes(node)),
                _ => {
                    if let Some(scalar) = view.scalar(node) {
                        push_scalar(out, &scalar, zone);
                    }
                }
            }
        }
        while let Some((_, kind)) = self.stack.pop() {
            out.push(closing(kind));
        }
        Ok(())
    }
}

/// Appends a field's name, quoted, and the colon.
#[inline]
pub fn push_key(out: &mut Vec<u8>, name: &[u8]) -> Result<()> {
    // A byte may be escaped as six.
    make_room(out, name.len(), 6 * name.len() + 3)?;
    push_quoted(out, name);
    out.push(b':');
    Ok(())
}

/// Makes room for a field's name, which takes so many bytes at least and at most.
#[inline]
pub fn make_room(out: &mut Vec<u8>, least: usize, most: usize) -> Result<()> {
    check_room(out.len() + least)?;
    out.try_reserve(most).map_err(|_| Error::no_room())
}

fn closing(kind: Kind) -> u8 {
    if kind == Kind::Object { b'}' } else { b']' }
}

/// Appends one scalar as JSON.
pub fn push_scalar(out: &mut Vec<u8>, scalar: &Scalar, zone: &Zone) {
    let quoted = match scalar {
        Scalar::Null | Scalar::Boolean(_) | Scalar::Int(_) | Scalar::Decimal(..) => false,
        Scalar::Float(v) => !v.is_finite(),
        Scalar::Double(v) => !v.is_finite(),
        Scalar::Str(s) => return push_quoted(out, s.as_bytes()),
        _ => true,
    };
    if quoted {
        out.push(b'"');
    }
    push_plain(out, scalar, zone);
    if quoted {
        out.push(b'"');
    }
}

/// Appends a scalar's text without quotes; strings as they are.
pub fn push_plain(out: &mut Vec<u8>, scalar: &Scalar, zone: &Zone) {
    match *scalar {
        Scalar::Null => out.extend_from_slice(b"null"),
        Scalar::Boolean(v) => out.extend_from_slice(if v { b"true" } else { b"false" }),
        Scalar::Int(v) => java::push_int(out, v),
        Scalar::Decimal(unscaled, scale) => {
            let (unscaled, scale) = java::strip_zeros(unscaled, scale);
            java::push_decimal(out, unscaled, scale);
        }
        Scalar::Float(v) => java::push_float(out, v),
        Scalar::Double(v) => java::push_double(out, v),
        Scalar::Date(v) => java::push_date(out, v as i64),
        Scalar::Timestamp(v) => java::push_zoned(out, v, MICROS, zone),
        Scalar::TimestampNtz(v) => java::push_local(out, v, MICROS, 0),
        Scalar::TimestampNanos(v) => java::push_zoned(out, v, NANOS, zone),
        Scalar::TimestampNtzNanos(v) => java::push_local(out, v, NANOS, 0),
        Scalar::Time(v) => {
            let day = v.rem_euclid(86_400 * MICROS);
            java::push_time(out, day / MICROS, (day % MICROS) as u32 * 1000);
        }
        Scalar::Uuid(v) => java::push_uuid(out, v),
        Scalar::Str(s) => out.extend_from_slice(s.as_bytes()),
        Scalar::Binary(b) => java::push_base64(out, b),
    }
}

/// Appends a JSON string; escapes what must be, as Jackson does.
#[inline]
pub fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    if !push_plain_text(out, text) {
        push_escaped(out, text);
    }
    out.push(b'"');
}

#[cold]
fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut at = 0;
    loop {
        let stop = string_stop(text, at);
        out.extend_from_slice(text.get(at..stop).unwrap_or(&[]));
        let Some(&byte) = text.get(stop) else { break };
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                let hex = |n: u8| if n < 10 { b'0' + n } else { b'A' + n - 10 };
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)]);
            }
        }
        at = stop + 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::push_quoted;
    use crate::text::java::push_int;

    /// Jackson's escapes, a character at a time.
    fn escaped(text: &str) -> String {
        let one = |c: char| match c {
            '"' | '\\' => format!("\\{c}"),
            '\u{8}' => "\\b".into(),
            '\u{c}' => "\\f".into(),
            '\n' => "\\n".into(),
            '\r' => "\\r".into(),
            '\t' => "\\t".into(),
            '\0'..' ' => format!("\\u{:04X}", c as u32),
            _ => c.to_string(),
        };
        format!("\"{}\"", text.chars().map(one).collect::<String>())
    }

    proptest! {
        #[test]
        fn a_text_is_quoted_as_a_look_at_each_character_says(
            before in "[a-z]{0,3}",
            text in prop_oneof!["[ -~]{0,90}", "[a-z0-9:/äß漢😀]{0,70}", any::<String>()],
        ) {
            let mut out = before.clone().into_bytes();
            push_quoted(&mut out, text.as_bytes());
            prop_assert_eq!(String::from_utf8(out).unwrap(), before + &escaped(&text));
        }

        #[test]
        fn an_integer_has_its_digits(value in any::<i64>(), shift in 0..63) {
            for value in [value >> shift, i64::MIN, i64::MAX, 0, 9, 10, 99, 100] {
                let mut out = Vec::new();
                push_int(&mut out, value);
                prop_assert_eq!(out, value.to_string().into_bytes());
            }
        }
    }
}
