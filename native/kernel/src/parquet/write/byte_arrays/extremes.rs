//! The least and the greatest of some values, by their unsigned bytes.

#[derive(Default, Clone)]
pub struct Extremes(Option<(Vec<u8>, Vec<u8>)>);

impl Extremes {
    #[inline]
    pub fn take(&mut self, value: &[u8]) {
        match &mut self.0 {
            Some((least, _)) if value < least.as_slice() => replace(least, value),
            Some((_, greatest)) if value > greatest.as_slice() => replace(greatest, value),
            Some(_) => {}
            none => *none = Some((value.to_vec(), value.to_vec())),
        }
    }

    /// Both of them, where there was a value.
    pub fn get(&self) -> Option<(&[u8], &[u8])> {
        self.0.as_ref().map(|(least, greatest)| (least.as_slice(), greatest.as_slice()))
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
