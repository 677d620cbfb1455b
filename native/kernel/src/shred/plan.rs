//! Rows of one shape do the same to the columns: which level takes which of their nodes is found out once, by names.
//!
//! ```text
//! {"a":1,"b":{"c":2,"d":3}}, of which a and b.c are levels:
//!   the root and b have objects · a takes node 1 · b.c takes node 3 · node 4 is left, and b takes what is left since 0
//! ```
//!
//! Leaves of other kinds than a level's go where they go without a plan: it names the level, not what it does.

use crate::shred::group::Groups;
use crate::tape::{Kind, Shape, TapeView};

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Default)]
pub struct Plans {
    /// By the number of the shape, of this source.
    plans: Vec<Option<Plan>>,
    source: u64,
}

#[derive(Default)]
pub struct Plan {
    /// The levels that have an object.
    pub objects: Vec<u32>,
    /// The levels that take a node, and by level which one.
    pub takers: Vec<u32>,
    nodes: Vec<u32>,
    /// What becomes of the nodes that no level takes, in the order of the document.
    pub left: Vec<Step>,
}

#[derive(Clone, Copy)]
pub enum Step {
    /// No level takes this node.
    Leave { node: u32 },
    /// The level takes the nodes that were left, but for so many before its object, which ends before this node.
    TakeLeft { level: u32, since: u32, end: u32 },
}

impl Plans {
    /// Makes the plan of the row's shape if there is none yet. Those of another source are forgotten.
    #[inline]
    pub fn know(&mut self, shape: Shape, levels: &Groups, view: &TapeView) {
        if self.source != shape.source || self.get(shape.number).is_none() {
            self.make(shape, levels, view);
        }
    }

    /// The plan of a shape that is known.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Plan> {
        self.plans.get(number as usize).and_then(Option::as_ref)
    }

    #[cold]
    fn make(&mut self, shape: Shape, levels: &Groups, view: &TapeView) {
        if self.source != shape.source {
            self.source = shape.source;
            self.plans.clear();
        }
        let number = shape.number as usize;
        if self.plans.len() <= number {
            self.plans.resize_with(number + 1, Option::default);
        }
        let mut plan = Plan::default();
        plan.visit(levels, view, (0, 0), &mut 0);
        if let Some(place) = self.plans.get_mut(number) {
            *place = Some(plan);
        }
    }
}

impl Plan {
    /// The number of the node that a level takes.
    #[inline]
    pub fn node(&self, level: u32) -> usize {
        self.nodes.get(level as usize).copied().unwrap_or(NONE) as usize
    }

    /// Adds the node at `at`, which the level takes; so many nodes are `left` before it.
    fn visit(&mut self, levels: &Groups, view: &TapeView, (level, at): (u32, usize), left: &mut u32) {
        let Some(node) = view.nodes.get(at) else { return };
        if node.kind != Kind::Object || !levels.is_object(level) {
            if self.nodes.len() <= level as usize {
                self.nodes.resize(level as usize + 1, NONE);
            }
            self.nodes[level as usize] = at as u32;
            self.takers.push(level);
            return;
        }
        self.objects.push(level);
        let (since, mut child) = (*left, at + 1);
        for _ in 0..node.a {
            let Some(node) = view.nodes.get(child) else { break };
            match levels.field(level, node.name) {
                Some(field) => self.visit(levels, view, (field, child), left),
                None => {
                    self.left.push(Step::Leave { node: child as u32 });
                    *left += 1;
                }
            }
            child = node.next(child);
        }
        if *left > since {
            self.left.push(Step::TakeLeft { level, since, end: child as u32 });
            *left = since;
        }
    }
}
