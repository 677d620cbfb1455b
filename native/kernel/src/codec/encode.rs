//! Tape to value bytes in two passes without recursion: sizes from the last node to the first (children stand
//! after their parent), then bytes from the first to the last (a value is laid out in the order of the tape).

use crate::codec::dictionary::{Dictionary, DictionaryCache};
use crate::codec::primitive::{Header, decimal_width, int_width, push_scalar, push_string, push_uint, string_size};
use crate::error::{Code, Error, Result};
use crate::tape::{Kind, Node, TapeView};

/// Reusable: keep one and encode many rows.
#[derive(Default)]
pub struct TapeEncoder {
    /// Bytes of each node's value, from the encoded root on.
    sizes: Vec<u32>,
    /// For each container, the widths of its header.
    entries: Vec<(u32, u32, u32)>,
}

/// Bytes of metadata and value together of the subtree at `at`, with a dictionary of its own.
pub fn variant_size(view: &TapeView, at: usize) -> Result<usize> {
    let mut cache = DictionaryCache::new();
    let dictionary = cache.of(view, at)?;
    Ok(dictionary.metadata().len() + TapeEncoder::default().size(view, at, dictionary)?)
}

impl TapeEncoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the value bytes of the subtree at `at` to `out`; every name in it must be in `dictionary`.
    pub fn encode(&mut self, view: &TapeView, at: usize, dictionary: &Dictionary, out: &mut Vec<u8>) -> Result<()> {
        let total = self.size(view, at, dictionary)?;
        out.reserve(total);
        let end = at + self.sizes.len();
        for (i, node) in view.nodes.iter().enumerate().take(end).skip(at) {
            match node.kind {
                Kind::Object | Kind::Array => self.header(view, at, i, node, dictionary, out)?,
                Kind::Str => push_string(out, view.bytes(node)),
                Kind::Int => push_scalar(out, &crate::tape::Scalar::Int(node.int()), node.aux),
                _ => {
                    if let Some(scalar) = view.scalar(node) {
                        push_scalar(out, &scalar, 0);
                    }
                }
            }
        }
        Ok(())
    }

    /// Bytes of the value of the subtree at `at`.
    pub fn size(&mut self, view: &TapeView, at: usize, dictionary: &Dictionary) -> Result<usize> {
        let end = view.nodes.get(at).map_or(at, |node| node.next(at)).min(view.nodes.len());
        self.sizes.clear();
        self.sizes.resize(end - at, 0);
        for (i, node) in view.nodes.iter().enumerate().take(end).skip(at).rev() {
            let size = match node.kind {
                Kind::Null | Kind::True | Kind::False => 1,
                Kind::Int => 1 + int_width(node.int()).max(node.aux) as usize,
                Kind::Str => string_size(node.b as usize),
                Kind::Binary => 5 + node.b as usize,
                Kind::Decimal => 2 + decimal_width(view.wide(node), node.aux) as usize,
                Kind::Float | Kind::Date => 5,
                Kind::Uuid => 17,
                Kind::Object | Kind::Array => {
                    let (header, data) = self.plan(view, at, i, node, dictionary)?;
                    header.size() + data
                }
                _ => 9,
            };
            let size = u32::try_from(size).map_err(|_| Error::new(Code::TooLarge, "a value is beyond 4 GiB"))?;
            if let Some(slot) = self.sizes.get_mut(i - at) {
                *slot = size;
            }
        }
        Ok(self.sizes.first().copied().unwrap_or(0) as usize)
    }

    /// The header of the container at `i`, whose children are sized already, and the bytes of its children.
    fn plan(&self, view: &TapeView, at: usize, i: usize, node: &Node, names: &Dictionary) -> Result<(Header, usize)> {
        let (mut data, mut max_id, mut child) = (0, 0, i + 1);
        let object = node.kind == Kind::Object;
        for _ in 0..node.a {
            let Some(next) = view.nodes.get(child) else { break };
            if object {
                max_id = max_id.max(field(names, next, view)?.0);
            }
            data += self.sizes.get(child - at).copied().unwrap_or(0) as usize;
            child = next.next(child);
        }
        Ok((Header::new(node.a as usize, object.then_some(max_id), data), data))
    }

    fn header(
        &mut self,
        view: &TapeView,
        at: usize,
        i: usize,
        node: &Node,
        names: &Dictionary,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (header, data) = self.plan(view, at, i, node, names)?;
        header.push_start(out);
        let (mut offset, mut child) = (0, i + 1);
        self.entries.clear();
        let mut sorted = true;
        for _ in 0..node.a {
            let Some(next) = view.nodes.get(child) else { break };
            let (id, rank) = if header.id_width.is_some() { field(names, next, view)? } else { (0, 0) };
            sorted &= self.entries.last().is_none_or(|last| last.0 <= rank);
            self.entries.push((rank, id, offset));
            offset += self.sizes.get(child - at).copied().unwrap_or(0);
            child = next.next(child);
        }
        if let Some(width) = header.id_width {
            if !sorted {
                self.entries.sort_unstable();
            }
            for (_, id, _) in &self.entries {
                push_uint(out, *id as usize, width);
            }
        }
        for (_, _, offset) in &self.entries {
            push_uint(out, *offset as usize, header.offset_width);
        }
        push_uint(out, data, header.offset_width);
        Ok(())
    }
}

#[inline(always)]
fn field(dictionary: &Dictionary, node: &Node, view: &TapeView) -> Result<(u32, u32)> {
    dictionary.field(node.name).ok_or_else(|| absent(view.names.get(node.name)))
}

#[cold]
pub(super) fn absent(name: &str) -> Error {
    Error::new(Code::MalformedShredding, format!("the field name {name:?} is not in the metadata")).rule(20)
}
