//! Rows of one shape do the same to the columns: which level takes which of their nodes is found out once, by names, and
//! then followed as a list of steps.
//!
//! ```text
//! {"a":1,"b":{"c":2,"d":3}}, of which a and b.c are levels:
//!   present the root · node 1 to a · present b · node 3 to c · node 4 left · b takes what is left since 0
//! ```
//!
//! Leaves of other kinds than a level's go where they go without a plan: the steps name the level, not what it does.

use crate::error::Result;
use crate::shred::group::{Groups, Row};
use crate::tape::{Kind, Shape, TapeView};

#[derive(Default)]
pub struct Plans {
    /// By the number of the shape, of this source.
    plans: Vec<Option<Box<[Step]>>>,
    source: u64,
}

#[derive(Clone, Copy)]
enum Step {
    /// The level has an object.
    Present { level: u32 },
    /// The level takes this node.
    Put { level: u32, node: u32 },
    /// No level does.
    Leave { node: u32 },
    /// The level takes the nodes that were left, but for so many before its object.
    TakeLeft { level: u32, since: u32 },
}

impl Plans {
    /// Writes a row of this shape as the value with this index.
    pub fn put_row(&mut self, shape: Shape, levels: &mut Groups, row: &mut Row, index: usize) -> Result<()> {
        for &step in self.plan(shape, levels, &row.view) {
            match step {
                Step::Put { level, node } => {
                    if !levels.put_text(level, &row.view, node as usize, index)? {
                        levels.put(level, row, node as usize, index)?;
                    }
                }
                Step::Present { level } => levels.mark_object(level, index),
                Step::Leave { node } => row.left.push(node),
                Step::TakeLeft { level, since } => levels.put_left(level, row, since as usize, index)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn plan(&mut self, shape: Shape, levels: &Groups, view: &TapeView) -> &[Step] {
        let known = self.source == shape.source && matches!(self.plans.get(shape.number as usize), Some(Some(_)));
        if !known {
            self.make(shape, levels, view);
        }
        self.plans.get(shape.number as usize).and_then(Option::as_deref).unwrap_or(&[])
    }

    #[cold]
    fn make(&mut self, shape: Shape, levels: &Groups, view: &TapeView) {
        if self.source != shape.source {
            self.source = shape.source;
            self.plans.clear();
        }
        let number = shape.number as usize;
        if self.plans.len() <= number {
            self.plans.resize(number + 1, None);
        }
        let mut steps = Vec::new();
        visit(levels, view, (0, 0), &mut 0, &mut steps);
        if let Some(plan) = self.plans.get_mut(number) {
            *plan = Some(steps.into());
        }
    }
}

/// The steps of the node at `at`, which the level takes; so many nodes are `left` before it.
fn visit(levels: &Groups, view: &TapeView, (level, at): (u32, usize), left: &mut u32, steps: &mut Vec<Step>) {
    let Some(node) = view.nodes.get(at) else { return };
    if node.kind != Kind::Object || !levels.is_object(level) {
        steps.push(Step::Put { level, node: at as u32 });
        return;
    }
    steps.push(Step::Present { level });
    let (since, mut child) = (*left, at + 1);
    for _ in 0..node.a {
        let Some(node) = view.nodes.get(child) else { break };
        match levels.field(level, node.name) {
            Some(field) => visit(levels, view, (field, child), left, steps),
            None => {
                steps.push(Step::Leave { node: child as u32 });
                *left += 1;
            }
        }
        child = node.next(child);
    }
    if *left > since {
        steps.push(Step::TakeLeft { level, since });
        *left = since;
    }
}
