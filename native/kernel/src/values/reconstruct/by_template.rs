//! Rows by templates: which row has one, what is brought into the cache before, and what the walk writes of it.

use crate::codec::known::RowNames;
use crate::error::Result;
use crate::layout::Layout;
use crate::values::level::Level;
use crate::values::reconstruct::bits::BLOCK;
use crate::values::reconstruct::leaves::Leaves;
use crate::values::reconstruct::outlines::Outlines;
use crate::values::reconstruct::seen::Seen;
use crate::values::reconstruct::template::Template;
use crate::values::reconstruct::variant::VariantBytes;
use crate::values::reconstruct::walk::{Tools, Walk};

/// Rows that are looked ahead.
pub const AHEAD: usize = BLOCK / 2;

/// Of the rows of one level.
pub struct ByTemplate {
    outlines: Outlines,
    leaves: Leaves,
    seen: Seen,
}

impl ByTemplate {
    /// For a level and all below it, in the standard layout. In the early one, a level may have a leaf, an object and an
    /// array at once, which outlines do not tell apart.
    pub fn of(level: &Level) -> Option<Self> {
        let made = || ByTemplate { outlines: Outlines::of(level), leaves: Leaves::of(level), seen: Seen::default() };
        (level.layout == Layout::Standard).then(made)
    }

    /// The metadata that were known have no number any more.
    pub fn clear(&mut self) {
        self.seen.clear();
    }

    /// Whether no template is to be looked for.
    #[inline]
    pub fn rests(&mut self) -> bool {
        self.seen.rests()
    }

    /// Writes a row by its template; whether there is one. The metadata: its number and names. `ahead`: the slot of the
    /// row that comes [so many](AHEAD) rows later.
    #[inline(never)]
    pub fn write(
        &mut self,
        level: &Level,
        (slot, ahead): (usize, Option<u32>),
        (number, names): (u32, &RowNames<'_>),
        tools: &mut Tools,
        to: &mut VariantBytes,
    ) -> Result<bool> {
        // Where the slots that follow are those of the rows that follow, all of them will be needed.
        if self.outlines.seek(slot) && ahead.is_some_and(|ahead| ahead as usize == slot + AHEAD) {
            self.leaves.fetch(slot..(slot / BLOCK + 1) * BLOCK, &self.outlines);
        }
        let leaves = &self.leaves;
        let made = |outline: &[u64]| Template::of(level, *names, leaves, outline);
        let Some(template) = self.seen.find(number, self.outlines.key(slot), made) else { return Ok(false) };
        let fits = to.stamp(template, leaves, (slot, names), |to, other| {
            let mut level = level;
            for &place in &other.path {
                let field = level.object.as_ref().and_then(|object| object.fields.get(place as usize));
                let Some(field) = field else { return Ok(()) };
                level = &field.level;
            }
            let mut walk = Walk { tools, names: *names, to };
            if other.untyped { walk.untyped(level, slot) } else { walk.value(level, slot) }
        })?;
        template.count(fits);
        if fits {
            self.seen.fitted();
        }
        Ok(fits)
    }
}
