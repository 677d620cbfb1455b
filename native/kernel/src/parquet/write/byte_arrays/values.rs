//! The values of the page being built: numbers of a dictionary as long as the chunk has one, and afterwards the values
//! themselves, plain or by what each shares with the one before (Parquet, Encodings.md).

use parquet::basic::Encoding;

use super::distinct::Distinct;
use super::extremes::Extremes;
use super::hybrid;
use super::lengths::Lengths;
use crate::copy::push;
use crate::parquet::bits::width;

/// Whether byte arrays can be written so.
pub fn is_known(encoding: Option<Encoding>) -> bool {
    matches!(encoding, None | Some(Encoding::PLAIN | Encoding::DELTA_BYTE_ARRAY))
}

pub struct Values {
    dictionary: Option<Dictionary>,
    /// That of the chunk so far, which has none any more: room for the next one's.
    ended: Option<Dictionary>,
    rest: Rest,
    /// Bytes of the page's values, lengths not counted.
    bytes: i64,
}

#[derive(Default)]
struct Dictionary {
    distinct: Distinct,
    codes: Vec<u32>,
    /// The number of the page, from 1 on.
    page: u32,
}

/// Without a dictionary.
enum Rest {
    Plain(Vec<u8>),
    Delta(Box<Delta>),
}

#[derive(Default)]
struct Delta {
    suffixes: Vec<u8>,
    last: Vec<u8>,
    prefix_lengths: Lengths,
    suffix_lengths: Lengths,
}

impl Values {
    pub fn new(dictionary: bool, encoding: Option<Encoding>) -> Self {
        let rest = match encoding {
            Some(Encoding::DELTA_BYTE_ARRAY) => Rest::Delta(Box::default()),
            _ => Rest::Plain(Vec::new()),
        };
        let dictionary = dictionary.then(|| Dictionary { page: 1, ..Dictionary::default() });
        Values { dictionary, ended: None, rest, bytes: 0 }
    }

    /// Adds values to the page, and to what the page says of the least and the greatest.
    pub fn put<'v>(&mut self, values: impl Iterator<Item = &'v [u8]>, extremes: &mut Extremes) {
        self.bytes += match (&mut self.dictionary, &mut self.rest) {
            (Some(dictionary), _) => dictionary.put(values, extremes),
            (None, Rest::Plain(out)) => values.fold(0, |bytes, value| {
                extremes.take(value);
                out.extend_from_slice(&(value.len() as u32).to_le_bytes());
                push(out, value);
                bytes + value.len() as i64
            }),
            (None, Rest::Delta(delta)) => delta.put(values, extremes),
        };
    }

    /// Bytes of the dictionary page, while there is one.
    pub fn dictionary_bytes(&self) -> Option<usize> {
        self.dictionary.as_ref().map(|dictionary| dictionary.distinct.bytes())
    }

    /// Whether a value is stored by what it shares with the one before.
    pub fn share(&self) -> bool {
        self.dictionary.is_none() && matches!(self.rest, Rest::Delta(_))
    }

    /// Bytes of the page, about.
    pub fn page_bytes(&self) -> usize {
        match (&self.dictionary, &self.rest) {
            (Some(dictionary), _) => 1 + hybrid::most_bytes(dictionary.codes.len(), dictionary.width()),
            (None, Rest::Plain(out)) => out.len(),
            (None, Rest::Delta(delta)) => delta.bytes(),
        }
    }

    /// Writes the page's; the next page has none yet. Gives the encoding, and the bytes of the values, lengths not
    /// counted.
    pub fn take(&mut self, page: &mut Vec<u8>) -> (Encoding, i64) {
        let encoding = match (&mut self.dictionary, &mut self.rest) {
            (Some(dictionary), _) => {
                dictionary.take(page);
                Encoding::RLE_DICTIONARY
            }
            (None, Rest::Plain(out)) => {
                page.append(out);
                Encoding::PLAIN
            }
            (None, Rest::Delta(delta)) => {
                delta.take(page);
                Encoding::DELTA_BYTE_ARRAY
            }
        };
        (encoding, std::mem::take(&mut self.bytes))
    }

    /// The dictionary, if there is one; the rest of the chunk has none. The page being built is empty.
    pub fn end_dictionary(&mut self) -> Option<&Distinct> {
        self.ended = Some(self.dictionary.take()?);
        self.ended.as_ref().map(|dictionary| &dictionary.distinct)
    }

    /// Begins the next chunk. Its dictionary takes the room of the last one's: so much memory is dear to get anew.
    pub fn begin_chunk(&mut self) {
        if let Some(mut dictionary) = self.ended.take() {
            dictionary.clear();
            self.dictionary = Some(dictionary);
        }
    }
}

impl Dictionary {
    fn put<'v>(&mut self, values: impl Iterator<Item = &'v [u8]>, extremes: &mut Extremes) -> i64 {
        self.distinct.put(values, self.page, &mut self.codes, |value| extremes.take(value))
    }

    fn clear(&mut self) {
        self.distinct.clear();
        self.codes.clear();
        self.page = 1;
    }

    /// Bits of a code.
    fn width(&self) -> usize {
        width(self.distinct.len().saturating_sub(1))
    }

    fn take(&mut self, page: &mut Vec<u8>) {
        let width = self.width();
        page.push(width as u8);
        hybrid::encode(&self.codes, width, page, |_, _| {});
        self.codes.clear();
        self.page += 1;
    }
}

impl Delta {
    fn put<'v>(&mut self, values: impl Iterator<Item = &'v [u8]>, extremes: &mut Extremes) -> i64 {
        let mut bytes = 0;
        let mut before = std::mem::take(&mut self.last);
        let mut last = before.as_slice();
        for value in values {
            extremes.take(value);
            let prefix = shared(last, value);
            self.prefix_lengths.push(prefix);
            self.suffix_lengths.push(value.len() - prefix);
            push(&mut self.suffixes, &value[prefix..]);
            bytes += value.len() as i64;
            last = value;
        }
        let kept = last.to_vec();
        before.clear();
        self.last = kept;
        self.prefix_lengths.pack();
        self.suffix_lengths.pack();
        bytes
    }

    fn bytes(&self) -> usize {
        self.suffixes.len() + self.prefix_lengths.bytes() + self.suffix_lengths.bytes()
    }

    fn take(&mut self, page: &mut Vec<u8>) {
        self.prefix_lengths.take(page);
        self.suffix_lengths.take(page);
        page.append(&mut self.suffixes);
        self.last.clear();
    }
}

/// Bytes at the beginning that both have.
pub fn shared(one: &[u8], other: &[u8]) -> usize {
    let mut same = 0;
    for (a, b) in one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0) {
        let differs = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differs != 0 {
            return same + differs.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    let rest = one[same..].iter().zip(&other[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}
