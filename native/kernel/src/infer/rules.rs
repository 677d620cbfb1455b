//! Rules for paths, which steer inference. If several match a path, the one that matches deepest wins; among these the
//! one whose last step is the most exact (a name, then a part of one, then any), then the one whose step before it is,
//! and so on; then the last one. Limits on the number of columns apply besides: each to all that is at and below the
//! paths that it matches.

use crate::tree::Tree;

/// A step of a path in data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Name(String),
    Element,
}

/// A step of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Name(String),
    /// A name with `*` for any characters.
    Glob(String),
    Element,
    /// Any number of steps.
    Any,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// What inference finds.
    Infer,
    /// No column.
    Skip,
    /// This type.
    Type(Tree),
    /// At most so many columns.
    Most(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub steps: Vec<Step>,
    pub wish: Wish,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules(Vec<Rule>);

/// What exact rules with a type name right below a place.
#[derive(Default)]
pub struct Below {
    pub names: Vec<String>,
    pub element: bool,
}

impl Rules {
    pub fn new(rules: Vec<Rule>) -> Self {
        Rules(rules)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rule that matches exactly this path and holds there, with its place among all.
    pub fn at(&self, path: &[Place]) -> Option<(usize, &Wish)> {
        let fitting = self.0.iter().enumerate().filter(|(_, rule)| !matches!(rule.wish, Wish::Most(_)));
        let matching = fitting.filter(|(_, rule)| matches(&rule.steps, path));
        matching.max_by_key(|(at, rule)| (ranks(&rule.steps), *at)).map(|(at, rule)| (at, &rule.wish))
    }

    /// The rules that limit the columns at or below this path or one above it.
    pub fn budgets(&self, path: &[Place]) -> Vec<usize> {
        let limits = self.0.iter().enumerate().filter(|(_, rule)| matches!(rule.wish, Wish::Most(_)));
        limits
            .filter(|(_, rule)| (0..=path.len()).any(|end| path.get(..end).is_some_and(|p| matches(&rule.steps, p))))
            .map(|(at, _)| at)
            .collect()
    }

    /// How many columns a rule allows.
    pub fn most(&self, rule: usize) -> Option<usize> {
        match self.0.get(rule)?.wish {
            Wish::Most(most) => Some(most),
            _ => None,
        }
    }

    /// Whether a rule is of one path.
    pub fn is_exact(&self, rule: usize) -> bool {
        self.0.get(rule).is_some_and(|rule| exact(&rule.steps) == rule.steps.len())
    }

    /// What rules that give a type to one path name right below this one.
    pub fn exact_below(&self, path: &[Place]) -> Below {
        let mut below = Below::default();
        for rule in self.0.iter().filter(|rule| matches!(rule.wish, Wish::Type(_))) {
            let Some((head, next)) = rule.steps.split_at_checked(path.len()).filter(|(head, rest)| {
                !rest.is_empty() && exact(&rule.steps) == rule.steps.len() && matches(head, path)
            }) else {
                continue;
            };
            debug_assert_eq!(head.len(), path.len());
            match next.first() {
                Some(Step::Name(name)) if !below.names.contains(name) => below.names.push(name.clone()),
                Some(Step::Element) => below.element = true,
                _ => {}
            }
        }
        below
    }
}

/// The steps of a pattern that match one name or an element.
fn exact(steps: &[Step]) -> usize {
    steps.iter().filter(|step| matches!(step, Step::Name(_) | Step::Element)).count()
}

/// How exact the steps of a pattern are, the last one first.
fn ranks(steps: &[Step]) -> Vec<u8> {
    let rank = |step: &Step| match step {
        Step::Name(_) | Step::Element => 3,
        Step::Glob(glob) if glob != "*" => 2,
        Step::Glob(_) => 1,
        Step::Any => 0,
    };
    steps.iter().rev().map(rank).collect()
}

/// Whether a pattern matches all of a path. The pattern's states are tried side by side, so that the work is bounded by
/// both lengths.
fn matches(steps: &[Step], path: &[Place]) -> bool {
    let mut open = vec![false; steps.len() + 1];
    let skip_any = |open: &mut [bool]| {
        for (at, step) in steps.iter().enumerate() {
            if *step == Step::Any && open.get(at) == Some(&true) {
                open[at + 1] = true;
            }
        }
    };
    open[0] = true;
    skip_any(&mut open);
    for place in path {
        let mut next = vec![false; steps.len() + 1];
        for (at, step) in steps.iter().enumerate().filter(|(at, _)| open[*at]) {
            match (step, place) {
                (Step::Any, _) => next[at] = true,
                (Step::Name(name), Place::Name(given)) => next[at + 1] |= name == given,
                (Step::Glob(glob), Place::Name(given)) => next[at + 1] |= fits(glob, given),
                (Step::Element, Place::Element) => next[at + 1] = true,
                _ => {}
            }
        }
        open = next;
        skip_any(&mut open);
    }
    open[steps.len()]
}

/// Whether a name fits a glob: its parts between `*` stand in the name one after another.
fn fits(glob: &str, name: &str) -> bool {
    let Some((first, rest)) = glob.split_once('*') else { return glob == name };
    let Some(mut tail) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = tail.find(part) else { return false };
        tail = tail.get(at + part.len()..).unwrap_or_default();
    }
    tail.ends_with(last)
}
