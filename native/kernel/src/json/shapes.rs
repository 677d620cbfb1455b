//! Shapes of documents: events have the same keys in the same order, so what stands between two leaves of a document
//! mostly stood there in one before. A tree of these texts is followed from leaf to leaf: a comparison takes brackets,
//! commas and keys at once. Where none of them stands, the parser goes on as if it had read all before itself.
//!
//! ```text
//! {"a":1,"b":{"c":2}}     root ─{"a":─▶ leaf ─,"b":{"c":─▶ leaf ─}}─▶ end
//! {"a":1,"d":[]}                          └───,"d":[]}─▶ end
//! ```
//!
//! A text is followed to where a leaf begins, so it says the same at its place in whatever document: which objects and
//! arrays it opens and closes, with which names, and how many members they have by then.

use std::sync::atomic::{AtomicU64, Ordering};

use wide::u8x16;

use crate::error::Result;
use crate::json::leaf::{begins_leaf, byte, leaf, token};
use crate::json::scan::string_stop;
use crate::names::{Mark, NO_NAME, Names};
use crate::tape::{Kind, Node, Shape, Tape};

/// Texts that are kept, the bytes of one, and levels around its leaf.
const MAX_TEXTS: usize = 1024;
const MAX_BYTES: usize = 256;
const MAX_LEVELS: usize = 16;
/// Texts that are looked for at one place: where any key may stand, the last ones tell nothing of the next.
const MAX_OTHERS: usize = 8;
/// Elements of an array that are followed: arrays of any lengths make as many shapes.
const MAX_ELEMENTS: u32 = 8;

/// An object or array that is not closed yet.
#[derive(Clone, Copy)]
pub struct Frame {
    pub node: u32,
    /// Members before the one being read.
    pub count: u32,
    pub object: bool,
    /// One bit per name id modulo 64: while no bit comes twice, no key has.
    pub bits: u64,
    pub clash: bool,
}

#[derive(Default)]
pub struct Shapes {
    mark: Mark,
    /// Another one whenever all texts are forgotten.
    serial: u64,
    /// The first one stands for the beginning of a document.
    texts: Vec<Text>,
}

static SERIALS: AtomicU64 = AtomicU64::new(1);

/// What stands before a leaf, or behind the last one, after a certain other text and its leaf.
#[derive(Default)]
struct Text {
    /// The first bytes of it are also at hand for a comparison.
    bytes: Box<[u8]>,
    blocks: [Block; 2],
    is_last: bool,
    /// The name of the leaf.
    name: u32,
    /// The texts that may follow, and may stand here in place of this one: by number, the newest first.
    follower: Number,
    other: Number,
    /// Objects and arrays that begin in it, and those from before that end.
    opened: Box<[Node]>,
    closed: Box<[Closed]>,
    /// Those around the leaf, and the last key before it: a number of [`KeyGuess`](super::keys::KeyGuess).
    around: Box<[Frame]>,
    key: usize,
}

/// The place of a text in the list of all.
#[derive(Clone, Copy)]
struct Number(u32);

impl Default for Number {
    /// None: there are never so many.
    fn default() -> Self {
        Number(u32::MAX)
    }
}

/// Up to sixteen bytes for one comparison.
#[derive(Clone, Copy, Default)]
struct Block {
    text: u8x16,
    mask: u8x16,
}

#[derive(Clone, Copy)]
struct Closed {
    node: u32,
    count: u32,
    end: u32,
}

/// How far a document was followed.
pub struct Followed {
    /// The place after the last leaf, or after the document.
    pub at: usize,
    pub is_whole: bool,
    last: Number,
}

impl Shapes {
    /// A document begins: what is known of ids is dropped if the interner has forgotten any.
    pub fn start(&mut self, names: &Names) {
        if self.mark != names.mark() || self.texts.is_empty() {
            self.mark = names.mark();
            self.serial = SERIALS.fetch_add(1, Ordering::Relaxed);
            self.texts.clear();
            self.texts.push(Text::default());
        }
    }

    /// Reads the document as far as it is like one before.
    #[inline(never)]
    pub fn follow(&mut self, text: &str, tape: &mut Tape) -> Result<Followed> {
        let bytes = text.as_bytes();
        let (mut at, mut last) = (0, Number(0));
        let mut next = self.get(last).map_or_else(Number::default, |root| root.follower);
        loop {
            let found = match self.get(next) {
                Some(text) if text.is_at(bytes, at) => text,
                _ => {
                    next = self.other(bytes, at, last, next);
                    match self.get(next) {
                        Some(text) => text,
                        None => return Ok(Followed { at, is_whole: false, last }),
                    }
                }
            };
            for node in &found.opened {
                tape.nodes.push(*node);
            }
            for &Closed { node, count, end } in &found.closed {
                if let Some(node) = tape.nodes.get_mut(node as usize) {
                    (node.a, node.b) = (count, end);
                }
            }
            at += found.bytes.len();
            last = next;
            if found.is_last {
                // One way leads to a text: whoever reaches it has read the same ones before.
                tape.shape = Some(Shape { source: self.serial, number: last.0 });
                return Ok(Followed { at, is_whole: true, last });
            }
            next = found.follower;
            at = leaf(text, byte(bytes, at), at, found.name, tape)?;
        }
    }

    #[inline(always)]
    fn get(&self, number: Number) -> Option<&Text> {
        self.texts.get(number.0 as usize)
    }

    fn get_mut(&mut self, number: Number) -> Option<&mut Text> {
        self.texts.get_mut(number.0 as usize)
    }

    /// The text behind `first` that stands at `at`, which becomes the first to be looked for.
    #[inline(never)]
    fn other(&mut self, bytes: &[u8], at: usize, last: Number, first: Number) -> Number {
        let mut before = first;
        for _ in 0..MAX_OTHERS {
            let Some(number) = self.get(before).map(|text| text.other) else { break };
            let Some(text) = self.get_mut(number) else { break };
            if text.is_at(bytes, at) {
                let behind = std::mem::replace(&mut text.other, first);
                self.get_mut(before).into_iter().for_each(|text| text.other = behind);
                self.get_mut(last).into_iter().for_each(|text| text.follower = number);
                return number;
            }
            before = number;
        }
        Number::default()
    }

    /// The objects and arrays that are open where a document was no longer followed, and the last key.
    pub fn open(&self, followed: &Followed, stack: &mut Vec<Frame>) -> usize {
        let Some(text) = self.get(followed.last) else { return 0 };
        stack.extend_from_slice(&text.around);
        text.key
    }

    /// Keeps the texts of a document beyond those that it was followed by. `nodes` are all of its tape, of which
    /// `known` were read by them; it ends at `end`.
    pub fn learn(&mut self, text: &str, followed: &Followed, end: usize, (nodes, known): (&[Node], usize)) {
        if !nodes.first().is_some_and(Node::is_container) {
            return;
        }
        let bytes = text.as_bytes();
        let (mut at, mut last, mut from) = (followed.at, followed.last, known);
        let mut open = Vec::new();
        let mut key = self.open(followed, &mut open);
        while self.texts.len() < MAX_TEXTS {
            // A leaf has ended.
            open.last_mut().into_iter().for_each(|frame| frame.count += 1);
            let next = nodes.iter().skip(from).position(|node| !node.is_container()).map(|after| from + after);
            let to = next.unwrap_or(nodes.len());
            let span = if next.is_some() { next_leaf(bytes, at) } else { Some((end, end)) };
            let Some((begin, after)) = span else { return };
            let Some(between) = bytes.get(at..begin).filter(|between| between.len() <= MAX_BYTES) else { return };
            let mut closed = Vec::new();
            for number in from..=to {
                while let Some(frame) = open.pop_if(|frame| ends_before(nodes, frame.node, number)) {
                    if let Some(&Node { a: count, b: end, .. }) = nodes.get(frame.node as usize)
                        && (frame.node as usize) < from
                    {
                        closed.push(Closed { node: frame.node, count, end });
                    }
                    open.last_mut().into_iter().for_each(|frame| frame.count += 1);
                }
                let Some(node) = nodes.get(number) else { break };
                if node.name != NO_NAME {
                    key = node.name as usize + 1;
                }
                if let Some(frame) = open.last_mut().filter(|frame| frame.object) {
                    let bit = 1u64 << (node.name & 63);
                    frame.clash |= frame.bits & bit != 0;
                    frame.bits |= bit;
                }
                if node.is_container() {
                    let object = node.kind == Kind::Object;
                    open.push(Frame { node: number as u32, count: 0, object, bits: 0, clash: false });
                }
            }
            if open.len() > MAX_LEVELS || open.iter().any(|frame| !frame.object && frame.count >= MAX_ELEMENTS) {
                return;
            }
            let begun = |node: &Node| if node.b as usize > to { Node::new(node.kind, node.name) } else { *node };
            let number = Number(self.texts.len() as u32);
            let Some(before) = self.get_mut(last) else { return };
            let other = std::mem::replace(&mut before.follower, number);
            self.texts.push(Text {
                blocks: [block(between, 0), block(between, 16)],
                bytes: between.into(),
                is_last: next.is_none(),
                name: nodes.get(to).map_or(NO_NAME, |node| node.name),
                follower: Number::default(),
                other,
                opened: nodes.get(from..to).unwrap_or(&[]).iter().map(begun).collect(),
                closed: closed.into(),
                around: open.as_slice().into(),
                key,
            });
            if next.is_none() {
                return;
            }
            (at, last, from) = (after, number, to + 1);
        }
    }
}

/// Whether the object or array ends before the node of this number.
fn ends_before(nodes: &[Node], container: u32, number: usize) -> bool {
    nodes.get(container as usize).is_some_and(|node| node.b as usize <= number)
}

fn block(text: &[u8], from: usize) -> Block {
    let part = text.get(from..).unwrap_or(&[]);
    let (mut bytes, mut mask) = ([0; 16], [0; 16]);
    for ((to, mask), from) in bytes.iter_mut().zip(&mut mask).zip(part) {
        (*to, *mask) = (*from, 0xff);
    }
    Block { text: u8x16::new(bytes), mask: u8x16::new(mask) }
}

impl Text {
    /// Whether it stands at `at`, and after it what begins a leaf.
    #[inline(always)]
    fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        let Some(rest) = bytes.get(at..) else { return false };
        let length = self.bytes.len();
        let same = match rest.first_chunk() {
            Some(block) if !self.blocks[0].is(block) => return false,
            Some(_) if length <= 16 => true,
            _ => self.is_before(rest),
        };
        same && (self.is_last || begins_leaf(byte(bytes, at + length)))
    }

    #[inline]
    fn is_before(&self, rest: &[u8]) -> bool {
        match rest.get(16..).and_then(|rest| rest.first_chunk()) {
            Some(block) if !self.blocks[1].is(block) => false,
            Some(_) if self.bytes.len() <= 32 => true,
            _ => rest.starts_with(&self.bytes),
        }
    }
}

impl Block {
    #[inline(always)]
    fn is(&self, bytes: &[u8; 16]) -> bool {
        (u8x16::new(*bytes) & self.mask).cmp_eq(self.text).move_mask() == 0xffff
    }
}

/// Where the next leaf begins and ends, in a text that is valid.
fn next_leaf(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    loop {
        match *bytes.get(at)? {
            b'"' => {
                let end = string_end(bytes, at + 1)?;
                let (next, place) = token(bytes, end);
                if next != b':' {
                    return Some((at, end));
                }
                at = place + 1;
            }
            first if begins_leaf(first) => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
                return Some((at, at + bytes.get(at..)?.iter().position(is_end)?));
            }
            _ => at += 1,
        }
    }
}

/// The place after the closing quote of a string.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = string_stop(bytes, at);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}
