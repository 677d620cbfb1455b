//! An object or array whose children are written before the widths of its header are known. The header is reserved with
//! a guess, and the children are moved in the rare case that it was wrong.

use crate::codec::primitive::{Header, uint_width};
use crate::error::{Code, Error, Result};

pub struct Container {
    start: usize,
    body: usize,
    header: Header,
}

impl Container {
    /// Reserves the header of an object whose largest field id is `max_id`, or of an array (`None`).
    pub fn begin(count: usize, max_id: Option<u32>, offset_width: usize, out: &mut Vec<u8>) -> Self {
        let header = Header { offset_width, ..Header::new(count, max_id, 0) };
        let start = out.len();
        let body = start + header.size();
        out.resize(body, 0);
        Container { start, body, header }
    }

    /// Where the child written last ends.
    pub fn child_end(&self, out: &[u8]) -> Result<u32> {
        let too_large = |_| Error::new(Code::TooLarge, "one value exceeds 4 GiB");
        u32::try_from(out.len() - self.body).map_err(too_large)
    }

    /// Writes the header, with the field ids of an object; gives the width that the offsets needed.
    pub fn finish(self, ids: &[u32], ends: &[u32], out: &mut Vec<u8>) -> usize {
        let offset_width = uint_width(ends.last().copied().unwrap_or(0) as usize);
        let header = Header { offset_width, ..self.header };
        if header != self.header {
            self.move_children(header.size(), out);
        }
        let Some(head) = out.get_mut(self.start..) else { return offset_width };
        head[0] = header.first();
        let count_width = if header.large { 4 } else { 1 };
        let mut at = 1 + count_width;
        head[1..at].copy_from_slice(&(header.count as u32).to_le_bytes()[..count_width]);
        if let Some(width) = header.id_width {
            for &id in ids {
                head[at..at + width].copy_from_slice(&id.to_le_bytes()[..width]);
                at += width;
            }
        }
        let offsets = &mut head[at..];
        offsets[..offset_width].fill(0);
        for (slot, end) in offsets[offset_width..].chunks_exact_mut(offset_width).zip(ends) {
            slot.copy_from_slice(&end.to_le_bytes()[..offset_width]);
        }
        offset_width
    }

    fn move_children(&self, header: usize, out: &mut Vec<u8>) {
        let (body, len) = (self.start + header, out.len() - self.body);
        if body > self.body {
            out.resize(body + len, 0);
        }
        out.copy_within(self.body..self.body + len, body);
        out.truncate(body + len);
    }
}
