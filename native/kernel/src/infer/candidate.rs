//! What a sample has at each path: a tree with the counts that decide which leaves become columns.
//!
//! The leaves in the most rows stay. What becomes no column of its own type is noted, with the reason.

use crate::error::Result;
use crate::tree::{Field, LeafType, Tree};

use super::rules::{Place, Rules, Wish};

/// Why a path did not become a typed column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its values are of several types, or of numbers that no type holds.
    Types,
    /// Its objects have other fields in each row.
    Keys,
    /// Too few rows have it.
    Rare,
    /// Another field of the object has its name, but for upper and lower case.
    Case,
    /// Arrays in few rows, or of elements that have no one type.
    Arrays,
    /// It nests too deep.
    Depth,
    /// Only nulls and empty values were seen.
    Empty,
    /// A rule says so.
    Rule(usize),
    /// Other paths are in more rows, and no more columns are allowed: by this rule, or by the limit of all.
    Most(Option<usize>),
}

/// A path that did not become a typed column, with the rows of the sample that have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    pub path: Vec<Place>,
    pub why: Why,
    pub rows: u32,
}

/// A tree with counts of rows.
#[derive(Debug, Clone)]
pub enum Candidate {
    /// Of no one type, but in enough rows to have a `value` column of its own.
    Value(u32, Why),
    /// In too few rows for a column, or beside another that keeps it out.
    Absent(u32, Why),
    Leaf(LeafType, u32),
    /// The tree that a rule gives to exactly this path: it stays whatever the rows hold.
    Given(Tree),
    Array(Box<Candidate>, u32),
    Object(Vec<(String, Candidate)>, u32),
}

/// A leaf that may become a column.
struct Leaf {
    rows: u32,
    columns: usize,
    given: bool,
    budgets: Vec<usize>,
    path: Vec<Place>,
}

impl Candidate {
    /// The rows that have it.
    pub fn rows(&self) -> u32 {
        match self {
            Candidate::Value(rows, _)
            | Candidate::Absent(rows, _)
            | Candidate::Leaf(_, rows)
            | Candidate::Array(_, rows)
            | Candidate::Object(_, rows) => *rows,
            Candidate::Given(_) => u32::MAX,
        }
    }

    /// The tree of at most so many leaves, fewer where rules say so; and what did not become a typed column.
    pub fn into_tree(self, most: usize, rules: &Rules, left: &mut Vec<Left>) -> Result<Tree> {
        let mut leaves = Vec::new();
        self.leaves(rules, &mut Vec::new(), &mut leaves);
        let mut order: Vec<usize> = (0..leaves.len()).collect();
        // Stable: of two leaves in as many rows the one that stands first by name stays.
        order.sort_by_key(|&at| std::cmp::Reverse(leaves.get(at).map_or(0, |leaf| leaf.rows)));
        let mut keep = vec![false; leaves.len()];
        let (mut all, mut taken) = (0, vec![0_usize; rules.len()]);
        for at in order {
            let Some(leaf) = leaves.get(at) else { continue };
            let full =
                leaf.budgets.iter().copied().find(|&rule| rules.most(rule).is_some_and(|most| taken[rule] >= most));
            if !leaf.given && (all >= most || full.is_some()) {
                let why = Why::Most(full.filter(|_| all < most));
                left.push(Left { path: leaf.path.clone(), why, rows: leaf.rows });
                continue;
            }
            all += leaf.columns;
            for &rule in &leaf.budgets {
                taken[rule] += leaf.columns;
            }
            keep[at] = true;
        }
        Ok(self.kept(&mut keep.into_iter(), &mut Vec::new(), left)?.unwrap_or_default())
    }

    fn leaves(&self, rules: &Rules, path: &mut Vec<Place>, out: &mut Vec<Leaf>) {
        match self {
            Candidate::Array(element, _) => {
                path.push(Place::Element);
                element.leaves(rules, path, out);
                path.pop();
            }
            Candidate::Object(fields, _) => {
                for (name, field) in fields {
                    path.push(Place::Name(name.clone()));
                    field.leaves(rules, path, out);
                    path.pop();
                }
            }
            Candidate::Absent(..) => {}
            _ => out.push(Leaf {
                rows: self.rows(),
                columns: if let Candidate::Given(tree) = self { tree.leaves() } else { 1 },
                given: matches!(self, Candidate::Given(_)),
                budgets: rules.budgets(path),
                path: path.clone(),
            }),
        }
    }

    /// The tree of the leaves to keep, asked for in the order of `leaves`; `None` when none is left.
    fn kept(
        self,
        keep: &mut impl Iterator<Item = bool>,
        path: &mut Vec<Place>,
        left: &mut Vec<Left>,
    ) -> Result<Option<Tree>> {
        Ok(match self {
            Candidate::Value(rows, why) => (keep.next() == Some(true)).then(|| {
                if why != Why::Empty {
                    left.push(Left { path: path.clone(), why, rows });
                }
                Tree::untyped()
            }),
            Candidate::Absent(rows, why) => {
                left.push(Left { path: path.clone(), why, rows });
                None
            }
            Candidate::Leaf(leaf, _) => (keep.next() == Some(true)).then(|| Tree::leaf(leaf)),
            Candidate::Given(tree) => (keep.next() == Some(true)).then_some(tree),
            Candidate::Array(element, _) => {
                path.push(Place::Element);
                let element = element.kept(keep, path, left)?;
                path.pop();
                element.filter(|e| !e.is_untyped()).map(Tree::array)
            }
            Candidate::Object(fields, _) => {
                let mut some = Vec::new();
                for (name, field) in fields {
                    path.push(Place::Name(name.clone()));
                    some.extend(field.kept(keep, path, left)?.map(|tree| Field { name, tree }));
                    path.pop();
                }
                if some.is_empty() { None } else { Some(Tree::object(some)?) }
            }
        })
    }

    /// What a file has already, without counts: all of it stays unless a rule says otherwise.
    pub fn of(tree: Tree) -> Self {
        match tree {
            Tree { object: Some(fields), .. } => {
                Candidate::Object(fields.into_iter().map(|f| (f.name, Candidate::of(f.tree))).collect(), 1)
            }
            Tree { array: Some(element), .. } => Candidate::Array(Box::new(Candidate::of(*element)), 1),
            Tree { leaf: Some(leaf), .. } => Candidate::Leaf(leaf, 1),
            Tree { .. } => Candidate::Value(1, Why::Empty),
        }
    }

    /// What rules leave of a candidate and add to it. `None`: it is no column, its values stay in its parent's residual.
    pub fn steered(self, rules: &Rules, left: &mut Vec<Left>) -> Option<Candidate> {
        if rules.is_empty() {
            return Some(self);
        }
        steer(Some(self), rules, &mut Vec::new(), None, left)
    }
}

/// `skips`: the rule of the nearest place above that leaves out what is below it.
fn steer(
    found: Option<Candidate>,
    rules: &Rules,
    path: &mut Vec<Place>,
    skips: Option<usize>,
    left: &mut Vec<Left>,
) -> Option<Candidate> {
    let mut skips = skips;
    match rules.at(path) {
        Some((rule, Wish::Skip)) => skips = Some(rule),
        Some((_, Wish::Infer)) => skips = None,
        Some((rule, Wish::Type(tree))) => {
            if rules.is_exact(rule) {
                return Some(Candidate::Given(tree.clone()));
            }
            return found.map(|found| match found {
                Candidate::Absent(..) => found,
                found => typed(tree, found.rows()),
            });
        }
        Some((_, Wish::Most(_))) | None => {}
    }
    let rows = found.as_ref().map_or(0, Candidate::rows);
    let before = left.len();
    let made = match (found, rules.exact_below(path)) {
        (Some(Candidate::Object(fields, rows)), below) => {
            let mut kept = Vec::new();
            let missing: Vec<_> = below.names.into_iter().filter(|n| !fields.iter().any(|(f, _)| f == n)).collect();
            let all = fields.into_iter().map(|(name, field)| (name, Some(field)));
            for (name, field) in all.chain(missing.into_iter().map(|name| (name, None))) {
                path.push(Place::Name(name.clone()));
                kept.extend(steer(field, rules, path, skips, left).map(|field| (name, field)));
                path.pop();
            }
            kept.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            let any = kept.iter().any(|(_, field)| !matches!(field, Candidate::Absent(..)));
            any.then_some(Candidate::Object(kept, rows))
        }
        (Some(Candidate::Array(element, rows)), _) => {
            path.push(Place::Element);
            let element = steer(Some(*element), rules, path, skips, left);
            path.pop();
            element.map(|element| Candidate::Array(Box::new(element), rows))
        }
        (found, below) if !below.names.is_empty() => {
            let rows = found.map_or(0, |found| found.rows());
            let mut fields = Vec::new();
            for name in below.names {
                path.push(Place::Name(name.clone()));
                fields.extend(steer(None, rules, path, skips, left).map(|field| (name, field)));
                path.pop();
            }
            Some(Candidate::Object(fields, rows))
        }
        (found, below) if below.element => {
            let rows = found.map_or(0, |found| found.rows());
            path.push(Place::Element);
            let element = steer(None, rules, path, skips, left);
            path.pop();
            element.map(|element| Candidate::Array(Box::new(element), rows))
        }
        (Some(_), _) if skips.is_some() => None,
        (found, _) => return found,
    };
    match (made, skips) {
        (Some(made), _) => Some(made),
        // Of a place that is left out as a whole one note is enough.
        (None, Some(rule)) if rows > 0 && !path.is_empty() => {
            left.truncate(before);
            left.push(Left { path: path.clone(), why: Why::Rule(rule), rows });
            None
        }
        (None, Some(_)) => None,
        // What was below it is left out, not the place itself: it keeps a `value` column.
        (None, None) if rows > 0 => Some(Candidate::Value(rows, Why::Empty)),
        (None, None) => None,
    }
}

/// A type that a rule gives to paths that look alike: counted as what was found there.
fn typed(tree: &Tree, rows: u32) -> Candidate {
    match (&tree.object, &tree.array, tree.leaf) {
        (Some(fields), _, _) => {
            Candidate::Object(fields.iter().map(|f| (f.name.clone(), typed(&f.tree, rows))).collect(), rows)
        }
        (_, Some(element), _) => Candidate::Array(Box::new(typed(element, rows)), rows),
        (_, _, Some(leaf)) => Candidate::Leaf(leaf, rows),
        _ => Candidate::Value(rows, Why::Empty),
    }
}
