//! The least and the greatest of some values, by their unsigned bytes.

#[derive(Default, Clone)]
pub struct Extremes {
    /// The least and the greatest, and how each begins.
    both: Option<[Vec<u8>; 2]>,
    begin: [u128; 2],
}

impl Extremes {
    #[inline]
    pub fn take(&mut self, value: &[u8]) {
        let begin = beginning(value);
        // Most values begin between both: nothing else of them is looked at.
        if begin <= self.begin[0] || begin >= self.begin[1] || self.both.is_none() {
            self.compare(value, begin);
        }
    }

    fn compare(&mut self, value: &[u8], begin: u128) {
        match &mut self.both {
            Some([least, greatest]) => {
                if value < least.as_slice() {
                    replace(least, value);
                    self.begin[0] = begin;
                } else if value > greatest.as_slice() {
                    replace(greatest, value);
                    self.begin[1] = begin;
                }
            }
            none => {
                *none = Some([value.to_vec(), value.to_vec()]);
                self.begin = [begin, begin];
            }
        }
    }

    /// Both of them, where there was a value.
    pub fn get(&self) -> Option<(&[u8], &[u8])> {
        self.both.as_ref().map(|[least, greatest]| (least.as_slice(), greatest.as_slice()))
    }
}

/// The first bytes as a number, filled up with zeros: a value is less than another if it begins with less.
#[inline]
fn beginning(value: &[u8]) -> u128 {
    if let Some(begin) = value.first_chunk() {
        return u128::from_be_bytes(*begin);
    }
    match (value.first_chunk(), value.last_chunk()) {
        // The rest of the second half came with the first.
        (Some(first), Some(last)) => {
            let rest = u128::from(u64::from_be_bytes(*last)) << (8 * (16 - value.len()));
            u128::from(u64::from_be_bytes(*first)) << 64 | rest & u128::from(u64::MAX)
        }
        _ => value
            .iter()
            .fold(0, |begin, &byte| begin << 8 | u128::from(byte))
            .unbounded_shl(8 * (16 - value.len()) as u32),
    }
}

fn replace(old: &mut Vec<u8>, new: &[u8]) {
    old.clear();
    old.extend_from_slice(new);
}

/// A value cut to so many bytes, which nothing that begins with it is below; and whether it was cut.
pub fn cut_least(value: &[u8], bytes: Option<usize>, is_text: bool) -> (Vec<u8>, bool) {
    let whole = || (value.to_vec(), false);
    let Some(begin) = bytes.and_then(|bytes| value.get(..bytes)).filter(|begin| begin.len() < value.len()) else {
        return whole();
    };
    let cut = match text(value, is_text) {
        None => Some(begin.len()),
        Some(text) => (1..=begin.len()).rfind(|&at| text.is_char_boundary(at)),
    };
    cut.map_or_else(whole, |cut| (value[..cut].to_vec(), true))
}

/// A value cut to so many bytes and made greater than all that begin with them; and whether it was cut. A text stays a
/// text.
pub fn cut_greatest(value: &[u8], bytes: Option<usize>, is_text: bool) -> (Vec<u8>, bool) {
    let whole = || (value.to_vec(), false);
    let Some(begin) = bytes.and_then(|bytes| value.get(..bytes)).filter(|begin| begin.len() < value.len()) else {
        return whole();
    };
    let greater = match text(value, is_text) {
        None => next_bytes(begin),
        Some(text) => {
            let cut = (begin.len().saturating_sub(3)..=begin.len()).rfind(|&at| text.is_char_boundary(at));
            cut.and_then(|cut| text.get(..cut)).and_then(next_text)
        }
    };
    greater.map_or_else(whole, |greater| (greater, true))
}

fn text(value: &[u8], is_text: bool) -> Option<&str> {
    std::str::from_utf8(value).ok().filter(|_| is_text)
}

/// The bytes with the last that can be one higher.
fn next_bytes(value: &[u8]) -> Option<Vec<u8>> {
    let at = value.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut next = value.to_vec();
    next[at] += 1;
    next[at + 1..].fill(0);
    Some(next)
}

/// The text with the last character that can be the next of as many bytes, and nothing after it.
fn next_text(text: &str) -> Option<Vec<u8>> {
    text.char_indices().rev().find_map(|(at, character)| {
        let next = char::from_u32(character as u32 + 1).filter(|next| next.len_utf8() == character.len_utf8())?;
        Some([&text.as_bytes()[..at], next.encode_utf8(&mut [0; 4]).as_bytes()].concat())
    })
}

#[cfg(test)]
mod tests {
    use super::{Extremes, beginning};

    /// Values that begin alike, or end within each other's beginning.
    fn values() -> Vec<Vec<u8>> {
        let mut out = vec![Vec::new()];
        for length in [1, 2, 7, 8, 9, 13, 15, 16, 17, 30] {
            for last in [0, 1, b'a', 255] {
                let mut value = vec![b'a'; length - 1];
                value.push(last);
                out.push(value);
            }
        }
        out
    }

    #[test]
    fn beginnings_order_values_as_their_bytes_do() {
        for (one, other) in values().iter().flat_map(|one| values().into_iter().map(move |other| (one.clone(), other)))
        {
            if beginning(&one) < beginning(&other) {
                assert!(one < other, "{one:?} {other:?}");
            }
            if one.get(..16) < other.get(..16) && other.len() >= 16 && one.len() >= 16 {
                assert!(beginning(&one) < beginning(&other), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn extremes_are_the_least_and_the_greatest() {
        let values = values();
        for step in [1, 7, 11, 13] {
            let mut extremes = Extremes::default();
            let some: Vec<_> = (0..values.len()).map(|at| &values[at * step % values.len()]).take(20).collect();
            some.iter().for_each(|value| extremes.take(value));
            let expected = some.iter().min().zip(some.iter().max());
            assert_eq!(extremes.get(), expected.map(|(least, greatest)| (least.as_slice(), greatest.as_slice())));
        }
    }
}
