//! Definition levels of the page being built: runs and packed bits (Parquet, Encodings.md, "RLE/Bit-Packing Hybrid"),
//! and how many rows have each.

use parquet::encodings::rle::RleEncoder;
use parquet::util::bit_util::num_required_bits;

/// Bytes before the levels of a page, which say how many they are.
const LENGTH: usize = 4;
/// Rows of one level that are put at once.
const LONG: usize = 16;
/// Rows of several levels that are put at once.
const MIXED: usize = 64;

pub struct Levels {
    max: u8,
    encoder: RleEncoder,
    counts: Vec<i64>,
}

impl Levels {
    /// `max` is above 0.
    pub fn new(max: u8) -> Self {
        Levels { max, encoder: encoder(max), counts: vec![0; usize::from(max) + 1] }
    }

    /// None is above the highest.
    pub fn put(&mut self, levels: &[u8]) {
        let mut rest = levels;
        while let Some(&level) = rest.first() {
            let run = run(rest, level);
            let taken = if run >= LONG { self.put_run(level, run) } else { self.put_mixed(rest) };
            rest = &rest[taken..];
        }
    }

    fn put_run(&mut self, level: u8, rows: usize) -> usize {
        let wide = u64::from(level);
        let mut left = rows;
        while left > 0 && !self.encoder.is_accumulating_rle(wide) {
            self.encoder.put(wide);
            left -= 1;
        }
        if left > 0 {
            self.encoder.extend_run(left);
        }
        self.count(level, rows);
        rows
    }

    fn put_mixed(&mut self, levels: &[u8]) -> usize {
        let levels = &levels[..levels.len().min(MIXED)];
        let mut wide = [0; MIXED];
        for (wide, &level) in wide.iter_mut().zip(levels) {
            *wide = u64::from(level);
        }
        self.encoder.put_batch(&wide[..levels.len()]);
        let mut left = levels.len();
        for level in (0..=self.max).rev() {
            let rows = count(levels, level);
            self.count(level, rows);
            left -= rows;
            if left == 0 {
                break;
            }
        }
        levels.len()
    }

    fn count(&mut self, level: u8, rows: usize) {
        if let Some(count) = self.counts.get_mut(usize::from(level)) {
            *count += rows as i64;
        }
    }

    /// The levels of the page as it stores them, and the rows of each level; the next page has none yet.
    pub fn take(&mut self) -> (Vec<u8>, Vec<i64>) {
        let mut bytes = std::mem::replace(&mut self.encoder, encoder(self.max)).consume();
        let length = (bytes.len() - LENGTH) as u32;
        bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
        let none = vec![0; self.counts.len()];
        (bytes, std::mem::replace(&mut self.counts, none))
    }
}

fn encoder(max: u8) -> RleEncoder {
    RleEncoder::new_from_buf(num_required_bits(max.into()), vec![0; LENGTH])
}

/// How many at the beginning are this one.
fn run(levels: &[u8], level: u8) -> usize {
    let eights = levels.chunks_exact(8).take_while(|eight| **eight == [level; 8]).count() * 8;
    eights + levels[eights..].iter().take_while(|&&other| other == level).count()
}

/// How many are this one.
pub fn count(levels: &[u8], level: u8) -> usize {
    let counts = levels.chunks(128).map(|some| some.iter().map(|&other| u8::from(other == level)).sum::<u8>());
    counts.map(usize::from).sum()
}
