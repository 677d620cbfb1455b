//! Rows of known shapes, a block at a time and level by level: a level is looked up once for all rows of the block, and its
//! columns stay in the cache while they grow. What is left of a row (values of other types, fields without a level) is
//! written afterwards, row by row, because the residuals of a row share its metadata.

use crate::error::Result;
use crate::shred::group::{Groups, Row};
use crate::shred::plan::{Plan, Plans, Step};
use crate::tape::TapeView;

/// Rows of a block at most: a bit each.
pub const BLOCK: usize = 64;

#[derive(Default)]
pub struct Blocks {
    plans: Plans,
    /// By row, the number of its shape.
    shapes: Vec<u32>,
    /// The shapes of the block, and the rows of each.
    rows_of: Vec<(u32, u64)>,
    /// By level, the rows that have an object, and those with a node for it.
    objects: Vec<u64>,
    given: Vec<u64>,
    /// Levels that have not taken the nodes of these rows.
    left: Vec<(u32, u64)>,
    /// Of one row: the nodes that these are, and the levels.
    others: Vec<(usize, u32)>,
}

impl Blocks {
    /// Puts what levels take of these rows, the first of which is the value with this index. All have shapes of one source.
    /// Gives the rows of which something is left.
    pub fn put(&mut self, levels: &mut Groups, views: &[TapeView], first: usize) -> Result<u64> {
        let mut left = self.sort(levels, views);
        let mut plans: [Option<&Plan>; BLOCK] = [None; BLOCK];
        plans.iter_mut().zip(&self.shapes).for_each(|(plan, &shape)| *plan = self.plans.get(shape));
        for level in 0..self.given.len() {
            let number = level as u32;
            if let Some(&rows) = self.objects.get(level).filter(|&&rows| rows != 0) {
                levels.mark_objects(number, first, rows);
            }
            let Some(&rows) = self.given.get(level).filter(|&&rows| rows != 0) else { continue };
            let node = |row: usize| plans[row].map_or(usize::MAX, |plan| plan.node(number));
            let others = levels.put_leaves(number, rows, first, views, node)?;
            if others != 0 {
                self.left.push((number, others));
                left |= others;
            }
        }
        Ok(left)
    }

    /// Finds which rows have something for which level; gives the rows with nodes that no level takes.
    fn sort(&mut self, levels: &Groups, views: &[TapeView]) -> u64 {
        self.shapes.clear();
        self.rows_of.clear();
        self.left.clear();
        for of in [&mut self.objects, &mut self.given] {
            of.clear();
            of.resize(levels.len(), 0);
        }
        for (row, view) in views.iter().enumerate() {
            let Some(shape) = view.shape else { continue };
            self.plans.know(shape, levels, view);
            self.shapes.push(shape.number);
            match self.rows_of.iter_mut().find(|(number, _)| *number == shape.number) {
                Some((_, rows)) => *rows |= 1 << row,
                None => self.rows_of.push((shape.number, 1 << row)),
            }
        }
        let mut left = 0;
        for &(shape, rows) in &self.rows_of {
            let Some(plan) = self.plans.get(shape) else { continue };
            let add = |to: &mut [u64], level: u32| to.get_mut(level as usize).into_iter().for_each(|of| *of |= rows);
            plan.objects.iter().for_each(|&level| add(&mut self.objects, level));
            plan.takers.iter().for_each(|&level| add(&mut self.given, level));
            left |= if plan.left.is_empty() { 0 } else { rows };
        }
        left
    }

    /// Puts what is left of a row of the block, the value with this index: in the order of the document, in which names
    /// are added to the metadata.
    pub fn put_left(&mut self, levels: &mut Groups, row: &mut Row, number: usize, index: usize) -> Result<()> {
        let Blocks { plans, shapes, left, others, .. } = self;
        let Some(plan) = shapes.get(number).and_then(|&shape| plans.get(shape)) else { return Ok(()) };
        others.clear();
        let of_row = left.iter().filter(|(_, rows)| rows >> number & 1 == 1);
        others.extend(of_row.map(|&(level, _)| (plan.node(level), level)));
        others.sort_unstable();
        let mut others = others.drain(..).peekable();
        for &step in &plan.left {
            match step {
                Step::Leave { node } => row.left.push(node),
                Step::TakeLeft { level, since, end } => {
                    while let Some((node, other)) = others.next_if(|(node, _)| *node < end as usize) {
                        levels.put(other, row, node, index)?;
                    }
                    levels.put_left(level, row, since as usize, index)?;
                }
            }
        }
        others.try_for_each(|(node, other)| levels.put(other, row, node, index))
    }
}
