//! Texts of statistics that differ in their values alone.
//!
//! The files of a table have the same columns, so most texts of a log are one of few shapes. What a walk found is kept:
//! the text, and where its values stand. A text with the same bytes between values of the same kinds is not walked: its
//! leaves are the same values.

use crate::batch::stats_walk::{Slot, Token, Walk, literal_end};
use crate::json::scan::string_stop;

/// Shapes that are tried. Files with and without deletion vectors, and those of another writer, differ.
const MOST: usize = 4;
/// So many texts that fit none are borne before the shapes must be worth it.
const BORNE: usize = 64;

#[derive(Default)]
pub struct Shapes {
    /// The one that fitted last is the first.
    known: Vec<Shape>,
    /// The values of the text at hand.
    places: Vec<(usize, usize)>,
    fitted: usize,
    walked: usize,
}

impl Shapes {
    /// Finds the leaves of a text, as `walk` would.
    pub fn read(&mut self, walk: &mut Walk, bytes: &[u8]) {
        let places = &mut self.places;
        if let Some(at) = self.known.iter().position(|shape| shape.fits(bytes, places)) {
            self.known.swap(0, at);
            self.fitted += 1;
            if let Some(shape) = self.known.first() {
                shape.leaves(places, &mut walk.found);
            }
            return;
        }
        self.walked += 1;
        if !walk.text(bytes) {
            return;
        }
        if self.walked > BORNE + self.fitted {
            self.known.clear();
            return;
        }
        let mut shape = if self.known.len() < MOST { Shape::default() } else { self.known.pop().unwrap_or_default() };
        shape.learn(walk, bytes);
        self.known.insert(0, shape);
    }
}

#[derive(Default)]
struct Shape {
    text: Vec<u8>,
    slots: Vec<Slot>,
    /// Of each leaf the slot that it is in.
    leaves: Vec<Option<usize>>,
}

impl Shape {
    fn learn(&mut self, walk: &Walk, bytes: &[u8]) {
        self.text.clear();
        self.text.extend_from_slice(bytes);
        self.slots.clone_from(&walk.slots);
        self.leaves.clear();
        self.leaves.extend(walk.found.iter().map(|token| match token {
            Token::Missing => None,
            Token::Number(start, _) | Token::Plain(start, _) | Token::Escaped(start) => {
                self.slots.binary_search_by_key(start, |slot| slot.start).ok()
            }
        }));
    }

    /// Whether the text has this shape, and no escape in a string; then where its values stand.
    fn fits(&self, bytes: &[u8], places: &mut Vec<(usize, usize)>) -> bool {
        places.clear();
        let (mut at, mut before) = (0, 0);
        for slot in &self.slots {
            let Some(start) = same(&self.text, before..slot.start, bytes, at) else { return false };
            let end = if slot.number {
                let number = bytes.get(start).is_some_and(|&byte| byte == b'-' || byte.is_ascii_digit());
                let Some(end) = literal_end(bytes, start).filter(|_| number) else { return false };
                end
            } else {
                let end = string_stop(bytes, start);
                if bytes.get(end) != Some(&b'"') {
                    return false;
                }
                end
            };
            places.push((start, end));
            (at, before) = (end, slot.end);
        }
        same(&self.text, before..self.text.len(), bytes, at) == Some(bytes.len())
    }

    fn leaves(&self, places: &[(usize, usize)], found: &mut [Token]) {
        for (token, leaf) in found.iter_mut().zip(&self.leaves) {
            let slot = leaf.and_then(|leaf| Some((self.slots.get(leaf)?, places.get(leaf)?)));
            *token = match slot {
                None => Token::Missing,
                Some((slot, &(start, end))) if slot.number => Token::Number(start, end),
                Some((_, &(start, end))) => Token::Plain(start, end),
            };
        }
    }
}

/// The place after the bytes of a known text, if these stand at `at`.
fn same(known: &[u8], range: std::ops::Range<usize>, bytes: &[u8], at: usize) -> Option<usize> {
    let part = known.get(range)?;
    bytes.get(at..)?.starts_with(part).then_some(at + part.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn keys(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    /// Texts of few shapes: keys that repeat, escapes, nested values, blanks, damage.
    fn texts() -> impl Strategy<Value = Vec<String>> {
        let value = prop_oneof![
            any::<i16>().prop_map(|n| n.to_string()),
            Just("1.5e3".to_owned()),
            Just("null".to_owned()),
            Just("true".to_owned()),
            "[a-c\"\\\\ ]{0,9}".prop_map(|text| serde_json::to_string(&text).unwrap()),
            Just("{\"a\":{\"b\":7,\"c\":[1,\"x\"]}}".to_owned()),
            Just("{\"b\":1,\"b\":\"y\"}".to_owned()),
            Just("{\"b\" : -2}".to_owned()),
            Just("[]".to_owned()),
            Just("x".to_owned()),
        ];
        let field = (prop_oneof![Just("a"), Just("b"), Just("\\u0061")], value);
        let text = prop::collection::vec(field, 0..4).prop_map(|fields| {
            let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            format!("{{{}}}", fields.join(","))
        });
        prop::collection::vec(prop_oneof![8 => text, 1 => Just(String::new()), 1 => Just("{\"a\":1".to_owned())], 1..60)
    }

    proptest! {
        #[test]
        fn a_shape_finds_what_a_walk_finds(texts in texts()) {
            let leaves = [keys(&["a"]), keys(&["a", "a", "b"]), keys(&["a", "b"]), keys(&["b"]), keys(&["b"])];
            let sorted: Vec<&[String]> = leaves.iter().map(Vec::as_slice).collect();
            let (mut walk, mut alone, mut shapes) = (Walk::new(&sorted), Walk::new(&sorted), Shapes::default());
            for text in texts.iter().chain(&texts) {
                shapes.read(&mut walk, text.as_bytes());
                alone.text(text.as_bytes());
                prop_assert_eq!(&walk.found, &alone.found, "{}", text);
            }
        }
    }

    #[test]
    fn values_may_differ_and_nothing_else() {
        let sorted = keys(&["a"]);
        let (mut walk, mut shapes) = (Walk::new(&[&sorted]), Shapes::default());
        for text in ["{\"a\":1}", "{\"a\":-23}", "{\"a\":\"1\"}", "{\"b\":1}", "{\"a\":1}x", "{\"a\":1"] {
            shapes.read(&mut walk, text.as_bytes());
        }
        assert_eq!((shapes.fitted, shapes.known.len()), (1, 3));
    }
}
