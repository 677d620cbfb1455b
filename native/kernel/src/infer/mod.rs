//! A shredding tree from a sample of rows: a path is typed when most of its values, nulls and absence apart, are of one
//! class, and a field becomes a column when enough of its parent objects have it.
//!
//! - Most are three in four: so many typed values beside others make files smaller and reads faster. In few rows they
//!   are nearly all, for there the levels of a second column weigh more than typing saves. Bounds of a leaf need all of
//!   them; a field of typed objects, which stands nowhere else (VariantShredding.md, "Shredded Objects"), has bounds
//!   whatever is beside the objects.
//! - Integers and decimals are one class. The type is int64 where the sample's numbers are whole, otherwise the
//!   decimal of 18 or 38 digits that holds them with room; int64 too where only a few numbers would force 38 digits.
//! - A field that few objects have is rare. An object whose fields are mostly rare is a map: it stays untyped, and
//!   so does an array whose elements are. A frequent field of no one type keeps a `value` column of its own, so
//!   that reading it does not mean reading its parent.
//! - Too many leaves: those in the fewest rows go first. The result depends on the rows alone, not on their order
//!   of names or on hashing.
//! - What a person wants stands above all of it (`rules`).

mod candidate;
pub mod rules;

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use self::candidate::Candidate;
pub use self::candidate::{Left, Why};
use self::rules::Rules;

use crate::error::{Code, Error, Result};
use crate::limits::MAX_TREE_DEPTH;
use crate::names::{NO_NAME, Names};
use crate::tape::{Kind, Node, TapeView};
use crate::tree::{LeafType, Tree};

#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Typed leaves of one column at most.
    pub max_fields: usize,
    /// Levels below the root that are typed.
    pub max_depth: usize,
    /// Of the rows, and of the objects that could have a field, the share that must have it.
    pub min_share: f64,
    /// Of the values of a path in many rows, the share that must be of one class.
    pub typed_share: f64,
    /// Rows looked at.
    pub sample_rows: usize,
    /// What is wanted of some paths.
    pub rules: Arc<Rules>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_fields: 300,
            max_depth: max_depth_at(1),
            min_share: 0.01,
            typed_share: 0.75,
            sample_rows: 4096,
            rules: Arc::default(),
        }
    }
}

/// Levels that Arrow's C interface takes in pyarrow, the schema included.
const ARROW_DEPTH: usize = 64;

/// Levels that may be typed in a column at a path of so many names, so that its type can be handed to pyarrow: a level
/// takes a `typed_value` and the group in it, the last its `value`. What lies deeper stays in `value`.
pub fn max_depth_at(names: usize) -> usize {
    (ARROW_DEPTH - 2).saturating_sub(names) / 2
}

impl Limits {
    pub fn check(&self) -> Result<()> {
        let shares = [("min_share", self.min_share), ("typed_share", self.typed_share)];
        if let Some((name, share)) = shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            let message = format!("{name} must be from 0 to 1, got {share}");
            return Err(Error::new(Code::InvalidArgument, message));
        }
        if self.max_depth > MAX_TREE_DEPTH {
            let message = format!("max_depth must be at most {MAX_TREE_DEPTH}, got {}", self.max_depth);
            return Err(Error::new(Code::InvalidArgument, message));
        }
        Ok(())
    }
}

/// Rows that are looked at for names that rows share.
pub const COMMON_ROWS: usize = 256;

/// Bytes of rows that are looked at, however few rows they make.
const SAMPLE_BYTES: usize = 8 << 20;
/// A path in fewer of the rows than this is typed if nearly all of its values are of one class.
const MANY_ROWS: f64 = 0.1;
/// What nearly all are.
const NEARLY_ALL: f64 = 0.99;
/// An object with more than this share of rare fields among all its fields is a map.
const MAP_SHARE: f64 = 0.5;
/// What the levels of a column below an array cost, in those of one that is not.
const ARRAY_COST: f64 = 3.0;
/// Digits of a decimal that are kept free for values larger than the sample's.
const HEADROOM: u32 = 2;
/// Names that the shared dictionary takes besides the tree's: a row carries a copy of it.
const MAX_COMMON_NAMES: usize = 1000;
const MAX_COMMON_BYTES: usize = 4096;
/// Paths without a typed column that are reported.
const MAX_LEFT: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Class {
    Object,
    Array,
    Number,
    String,
    Boolean,
    Double,
    Float,
    Date,
    Timestamp,
    TimestampNtz,
    TimestampNanos,
    TimestampNtzNanos,
    Time,
    Uuid,
    Binary,
}

const CLASSES: [Class; 15] = [
    Class::Object,
    Class::Array,
    Class::Number,
    Class::String,
    Class::Boolean,
    Class::Double,
    Class::Float,
    Class::Date,
    Class::Timestamp,
    Class::TimestampNtz,
    Class::TimestampNanos,
    Class::TimestampNtzNanos,
    Class::Time,
    Class::Uuid,
    Class::Binary,
];

fn class(kind: Kind) -> Option<Class> {
    Some(match kind {
        Kind::Null => return None,
        Kind::True | Kind::False => Class::Boolean,
        Kind::Int | Kind::Decimal => Class::Number,
        Kind::Float => Class::Float,
        Kind::Double => Class::Double,
        Kind::Date => Class::Date,
        Kind::Timestamp => Class::Timestamp,
        Kind::TimestampNtz => Class::TimestampNtz,
        Kind::TimestampNanos => Class::TimestampNanos,
        Kind::TimestampNtzNanos => Class::TimestampNtzNanos,
        Kind::Time => Class::Time,
        Kind::Uuid => Class::Uuid,
        Kind::Str => Class::String,
        Kind::Binary => Class::Binary,
        Kind::Object => Class::Object,
        Kind::Array => Class::Array,
    })
}

/// What the numbers of a path need.
#[derive(Default, Clone, Copy)]
struct Numbers {
    /// Numbers that an int64 holds.
    long: u32,
    /// Digits before the point of all, and after it.
    digits: u32,
    scale: u32,
    /// Whether a digit after the point is not zero.
    fractions: bool,
}

/// What was seen at one path.
#[derive(Default)]
struct Shape {
    counts: [u32; CLASSES.len()],
    /// How often the path was there, nulls included.
    seen: u32,
    numbers: Numbers,
    /// Fields of objects in order of first sight; for arrays one entry, of no name.
    children: Vec<(u32, u32)>,
}

/// Rows seen so far.
pub struct Sample {
    limits: Limits,
    /// Levels that a tree may have; names are counted deeper.
    typed_depth: usize,
    shapes: Vec<Shape>,
    lookup: HashMap<(u32, u32), u32>,
    /// By name id: how often it stood anywhere.
    names: Vec<u32>,
    rows: u32,
    bytes: usize,
    /// Of all names of the rows, which a Variant may have elsewhere than in its value.
    name_bytes: usize,
    open: Vec<(usize, u32)>,
}

impl Sample {
    pub fn new(limits: Limits) -> Result<Self> {
        limits.check()?;
        let typed_depth = limits.max_depth.min(max_depth_at(1));
        let shapes = vec![Shape::default()];
        Ok(Sample {
            limits,
            typed_depth,
            shapes,
            lookup: HashMap::new(),
            names: Vec::new(),
            rows: 0,
            bytes: 0,
            name_bytes: 0,
            open: Vec::new(),
        })
    }

    /// Whether enough rows were seen.
    pub fn is_full(&self) -> bool {
        self.rows as usize >= self.limits.sample_rows || self.bytes.max(self.name_bytes) >= SAMPLE_BYTES
    }

    /// Adds a row. All rows must be of one [`Names`].
    pub fn add(&mut self, view: &TapeView) {
        self.rows += 1;
        self.bytes += view.source.len();
        self.name_bytes = view.names.text_len();
        self.open.clear();
        let mut at = 0;
        while let Some(node) = view.nodes.get(at) {
            while self.open.last().is_some_and(|&(end, _)| end <= at) {
                self.open.pop();
            }
            let shape = match self.open.last() {
                Some(&(_, parent)) => self.child(parent, node.name),
                None => 0,
            };
            self.count(shape, node, view);
            if node.is_container() && self.open.len() < self.limits.max_depth {
                self.open.push((node.next(at), shape));
                at += 1;
            } else {
                at = node.next(at);
            }
        }
    }

    fn child(&mut self, parent: u32, name: u32) -> u32 {
        if name != NO_NAME {
            let at = name as usize;
            if at >= self.names.len() {
                self.names.resize(at + 1, 0);
            }
            if let Some(count) = self.names.get_mut(at) {
                *count += 1;
            }
        }
        let next = self.shapes.len() as u32;
        let shape = *self.lookup.entry((parent, name)).or_insert(next);
        if shape == next {
            self.shapes.push(Shape::default());
            if let Some(parent) = self.shapes.get_mut(parent as usize) {
                parent.children.push((name, shape));
            }
        }
        shape
    }

    fn count(&mut self, shape: u32, node: &Node, view: &TapeView) {
        let Some(shape) = self.shapes.get_mut(shape as usize) else { return };
        shape.seen += 1;
        let Some(class) = class(node.kind) else { return };
        shape.counts[class as usize] += 1;
        match node.kind {
            Kind::Int => {
                shape.numbers.long += 1;
                shape.numbers.digits = shape.numbers.digits.max(digits(node.int().unsigned_abs().into()));
            }
            Kind::Decimal => shape.numbers.add_decimal(view.wide(node), node.aux.into()),
            _ => {}
        }
    }

    /// The tree of the rows seen, and the paths that did not become typed columns, those in the most rows first.
    pub fn tree(&self, names: &Names) -> Result<(Tree, Vec<Left>)> {
        let (rules, mut left) = (&self.limits.rules, Vec::new());
        let tree = match self.candidate(0, names, 0).steered(rules, &mut left) {
            Some(candidate) => candidate.into_tree(self.limits.max_fields, rules, &mut left)?,
            None => Tree::untyped(),
        };
        left.sort_by_key(|one| std::cmp::Reverse(one.rows));
        left.truncate(MAX_LEFT);
        Ok((tree, left))
    }

    /// Names for the dictionary that rows share: those that came at least twice, the most frequent first.
    pub fn common_names(&self, names: &Names) -> Vec<String> {
        let floor = (self.rows / 100).max(2);
        let ids = self.names.iter().enumerate().filter(|&(_, &count)| count >= floor);
        let mut common: Vec<(u32, &str)> = ids.map(|(id, &count)| (count, names.get(id as u32))).collect();
        common.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        let mut bytes = 0;
        let fits = |&(_, name): &(u32, &str)| {
            bytes += name.len() + 4;
            bytes <= MAX_COMMON_BYTES
        };
        common.into_iter().take(MAX_COMMON_NAMES).take_while(fits).map(|(_, name)| name.to_owned()).collect()
    }

    fn candidate(&self, shape: u32, names: &Names, depth: usize) -> Candidate {
        let Some(shape) = self.shapes.get(shape as usize) else { return Candidate::Value(0, Why::Empty) };
        let values: u32 = shape.counts.iter().sum();
        let dominant = CLASSES.into_iter().find(|&class| {
            let count = shape.counts[class as usize];
            count > 0 && f64::from(count) >= self.typed_share(shape) * f64::from(values)
        });
        let leaf = match dominant {
            Some(Class::Object) if depth < self.typed_depth => return self.object(shape, names, depth),
            Some(Class::Array) if depth < self.typed_depth => return self.array(shape, names, depth),
            Some(Class::Object | Class::Array) => return Candidate::Value(shape.seen, Why::Depth),
            None if values == 0 => return Candidate::Value(shape.seen, Why::Empty),
            None => None,
            Some(Class::Number) => shape.numbers.leaf(shape.counts[Class::Number as usize]),
            Some(Class::String) => Some(LeafType::String),
            Some(Class::Boolean) => Some(LeafType::Boolean),
            Some(Class::Double) => Some(LeafType::Double),
            Some(Class::Float) => Some(LeafType::Float),
            Some(Class::Date) => Some(LeafType::Date),
            Some(Class::Timestamp) => Some(LeafType::Timestamp { utc: true }),
            Some(Class::TimestampNtz) => Some(LeafType::Timestamp { utc: false }),
            Some(Class::TimestampNanos) => Some(LeafType::TimestampNanos { utc: true }),
            Some(Class::TimestampNtzNanos) => Some(LeafType::TimestampNanos { utc: false }),
            Some(Class::Time) => Some(LeafType::Time),
            Some(Class::Uuid) => Some(LeafType::Uuid),
            Some(Class::Binary) => Some(LeafType::Binary),
        };
        leaf.map_or(Candidate::Value(shape.seen, Why::Types), |leaf| Candidate::Leaf(leaf, shape.seen))
    }

    /// The share of a path's values that must be of one class.
    fn typed_share(&self, shape: &Shape) -> f64 {
        let few = f64::from(shape.seen) < MANY_ROWS * f64::from(self.rows);
        if few { self.limits.typed_share.max(NEARLY_ALL) } else { self.limits.typed_share }
    }

    fn array(&self, shape: &Shape, names: &Names, depth: usize) -> Candidate {
        if f64::from(shape.counts[Class::Array as usize]) < self.enough_arrays() {
            return Candidate::Value(shape.seen, Why::Arrays);
        }
        let element = shape.children.iter().find(|(name, _)| *name == NO_NAME);
        match element.map(|&(_, element)| self.candidate(element, names, depth + 1)) {
            None => Candidate::Value(shape.seen, Why::Empty),
            Some(Candidate::Value(_, Why::Empty)) => Candidate::Value(shape.seen, Why::Empty),
            Some(Candidate::Value(..)) => Candidate::Value(shape.seen, Why::Arrays),
            Some(element) => Candidate::Array(Box::new(element), shape.seen),
        }
    }

    fn object(&self, shape: &Shape, names: &Names, depth: usize) -> Candidate {
        let enough = self.enough(shape.counts[Class::Object as usize]);
        let (mut rare, mut all) = (0_u64, 0_u64);
        let (mut fields, mut others) = (Vec::new(), Vec::new());
        for &(name, child) in shape.children.iter().filter(|(name, _)| *name != NO_NAME) {
            let seen = self.shapes.get(child as usize).map_or(0, |s| s.seen);
            all += u64::from(seen);
            let name = names.get(name);
            if f64::from(seen) < enough {
                rare += u64::from(seen);
                others.push((name, seen));
            } else if !name.contains('\0') {
                // Arrow has no names with a NUL (see `check_tree`).
                fields.push((name.to_owned(), self.candidate(child, names, depth + 1)));
            }
        }
        if fields.is_empty() || rare as f64 > MAP_SHARE * all as f64 {
            let why = if all == 0 { Why::Empty } else { Why::Keys };
            return Candidate::Value(shape.seen, why);
        }
        others.sort_by_key(|&(_, seen)| std::cmp::Reverse(seen));
        keep_one_case(&mut fields);
        let rare = |(name, seen): (&str, u32)| (name.to_owned(), Candidate::Absent(seen, Why::Rare));
        fields.extend(others.into_iter().take(MAX_LEFT).map(rare));
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Candidate::Object(fields, shape.seen)
    }

    /// How often a field must occur among so many objects. A few objects prove little: there a field must occur
    /// twice. And its share is asked of all rows too: the levels of a column cost a bit or two a row, in bytes and in
    /// time, however few of them have it.
    fn enough(&self, objects: u32) -> f64 {
        let few = (0.2 * f64::from(objects)).min(2.0);
        (self.limits.min_share * f64::from(objects.max(self.rows))).max(few)
    }

    /// How often an array must occur: its levels cost several times as much.
    fn enough_arrays(&self) -> f64 {
        ARRAY_COST * self.limits.min_share * f64::from(self.rows)
    }
}

impl Numbers {
    fn add_decimal(&mut self, unscaled: i128, scale: u32) {
        let power = 10_i128.checked_pow(scale).unwrap_or(i128::MAX);
        let (whole, fraction) = (unscaled / power, unscaled % power);
        self.digits = self.digits.max(digits(whole.unsigned_abs()));
        self.scale = self.scale.max(scale);
        self.fractions |= fraction != 0;
        self.long += u32::from(fraction == 0 && i64::try_from(whole).is_ok());
    }

    /// The smallest of int64, decimal(18, s) and decimal(38, s) that holds all.
    fn leaf(&self, numbers: u32) -> Option<LeafType> {
        let mostly_long = f64::from(self.long) >= NEARLY_ALL * f64::from(numbers);
        let scale = if self.fractions { self.scale } else { 0 };
        let needed = self.digits + scale;
        if self.long == numbers && !self.fractions {
            Some(LeafType::Int64)
        } else if self.fractions && needed + HEADROOM <= 18 {
            Some(LeafType::Decimal { precision: 18, scale: scale as u8 })
        } else if mostly_long {
            Some(LeafType::Int64)
        } else if needed <= 38 {
            Some(LeafType::Decimal { precision: 38, scale: scale as u8 })
        } else {
            None
        }
    }
}

/// Of fields whose names differ only in case the one in the most rows may have a column: DuckDB takes their names for
/// one, and calls the others `name_1`, unless they are in the residual.
fn keep_one_case(fields: &mut [(String, Candidate)]) {
    // Of two in as many rows, the first by name.
    fields.sort_by(|a, b| b.1.rows().cmp(&a.1.rows()).then_with(|| a.0.cmp(&b.0)));
    let mut names = HashSet::new();
    for (name, field) in fields {
        if !names.insert(name.to_ascii_lowercase()) {
            *field = Candidate::Absent(field.rows(), Why::Case);
        }
    }
}

fn digits(number: u128) -> u32 {
    number.checked_ilog10().map_or(1, |log| log + 1)
}

/// A file's tree as rules leave it: what they skip goes, what they give a type gets it. There are no counts, so they
/// limit no columns here.
pub fn steer(tree: Tree, rules: &Rules) -> Result<Tree> {
    let mut left = Vec::new();
    match Candidate::of(tree).steered(rules, &mut left) {
        Some(candidate) => candidate.into_tree(usize::MAX, &Rules::default(), &mut left),
        None => Ok(Tree::untyped()),
    }
}
