//! What reading some items in some rows takes, by the footer and the page index, before anything is read: for
//! whoever explains a scan.

use std::ops::Range;

use crate::error::Result;
use crate::item::Item;
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::rows::Rows;
use crate::parquet::{projection, rows};

/// Row groups, pages and compressed bytes of the leaf columns that are needed; dictionary pages count as bytes alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    pub row_groups: u64,
    pub rows: u64,
    pub pages: u64,
    pub bytes: u64,
}

impl FileReader {
    /// What the items cost in the rows of `ranges`; `None` for all. A column chunk without an offset index is one
    /// page, which is read whole.
    pub fn cost(&self, items: &[Item], ranges: Option<&Rows>) -> Result<Cost> {
        guard(self.name(), || {
            let mut cost = Cost::default();
            for (index, group) in self.metadata().row_groups().iter().enumerate() {
                let first = self.first_row(index);
                let end = first + group.num_rows().max(0) as u64;
                let all: Rows = std::iter::once(first..end).collect();
                let here = ranges.map_or(all, |ranges| rows::clip(ranges, first, end));
                if rows::count(&here) == 0 {
                    continue;
                }
                cost.row_groups += 1;
                cost.rows += rows::count(&here);
                let leaves = projection::leaves(self, items.iter(), index);
                self.load_pages(&[index], &leaves, false)?;
                for leaf in leaves {
                    let (pages, bytes) = self.chunk_cost(index, leaf, &here, first..end);
                    cost.pages += pages;
                    cost.bytes += bytes;
                }
            }
            Ok(cost)
        })
    }

    fn chunk_cost(&self, group: usize, leaf: usize, here: &Rows, bounds: Range<u64>) -> (u64, u64) {
        let chunk = self.metadata().row_groups().get(group).and_then(|g| g.columns().get(leaf));
        let (start, length) = chunk.map_or((0, 0), |c| c.byte_range());
        let index = self.metadata().page_index_for_row_group(group);
        let Some(pages) = index.page_locations(leaf).filter(|pages| !pages.is_empty()) else { return (1, length) };
        let ends = pages.iter().skip(1).map(|p| p.first_row_index.max(0) as u64).chain([bounds.end - bounds.start]);
        let (mut count, mut bytes) = (0, 0);
        for (page, end) in pages.iter().zip(ends) {
            let first = bounds.start + page.first_row_index.max(0) as u64;
            if !rows::clip(here, first, bounds.start + end).is_empty() {
                count += 1;
                bytes += page.compressed_page_size.max(0) as u64;
            }
        }
        // A dictionary stands before the first page, and is read with any of them.
        let dictionary = pages.first().map_or(0, |p| (p.offset.max(0) as u64).saturating_sub(start));
        (count, bytes + if count > 0 { dictionary } else { 0 })
    }
}
