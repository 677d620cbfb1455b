//! Which column chunk of a file becomes which of the file to be, and what its levels become.
//!
//! Both layouts nest alike; they differ in names and in which groups are optional, so a level of one has one
//! counterpart in the other. Two have none, because nothing in the standard layout may be missing there (rules 26,
//! 31): a column that is not null, or an element of an array, without any value. They do not fit.

use std::collections::HashMap;

use parquet::basic::Repetition;
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::convert::pages::levels::LevelMap;
use crate::layout::Layout;
use crate::layout::early::{ARRAY, OBJECT, UNTYPED_VALUE};
use crate::layout::standard::{METADATA, TYPED_VALUE, VALUE};

/// How a leaf column of the new file is made of one of the old.
#[derive(Debug, Clone)]
pub enum Make {
    /// Bytes as they are.
    Copy,
    /// The same values under other levels.
    Levels(LevelMap),
    /// The same, of a residual: it must hold no value.
    Empty(LevelMap),
    /// No value, where the other column is defined or not.
    Null(LevelMap),
    /// One value, these bytes, where the other column's row is no SQL NULL.
    Constant(LevelMap, Vec<u8>),
}

/// The leaf column that it is made of, and how.
#[derive(Debug, Clone)]
pub struct LeafPlan {
    pub from: usize,
    pub make: Make,
}

/// A variant column that changes its layout, by its names from the top, and its metadata in the standard layout.
pub struct Moved {
    pub names: Vec<String>,
    pub from: Layout,
    pub metadata: Vec<u8>,
}

/// A leaf for each column of the new schema, in its order; `None` where the files differ in more than the layout of
/// `moved`.
pub fn plan(from: &SchemaDescriptor, to: &SchemaDescriptor, moved: &[Moved]) -> Option<Vec<LeafPlan>> {
    let leaves = from.columns().iter().enumerate().map(|(at, c)| (c.path().parts().to_vec(), at)).collect();
    let mut planner = Planner { from, leaves, moved, used: vec![false; from.num_columns()], out: Vec::new() };
    let state = State { path: Vec::new(), map: vec![Some(0)], to: 0 };
    planner.plain(from.root_schema(), to.root_schema(), &state)?;
    // Of what is left out only the metadata of columns that leave the standard layout.
    let left = |(at, used): (usize, &bool)| {
        let names = |m: &Moved| [&m.names[..], &[METADATA.to_string()]].concat();
        *used || moved.iter().any(|m| m.from == Layout::Standard && names(m) == planner.from.column(at).path().parts())
    };
    (planner.out.len() == to.num_columns() && planner.used.iter().enumerate().all(left)).then_some(planner.out)
}

/// A place in both schemas.
#[derive(Clone)]
struct State {
    /// Names in the old file.
    path: Vec<String>,
    /// By definition level in the old file, up to that of this place: the level in the new one.
    map: Vec<Option<u16>>,
    /// The level of this place in the new file.
    to: u16,
}

impl State {
    /// One step down: a child of both.
    fn enter(&self, old: &Type, new: &Type) -> Option<State> {
        let mut state = self.clone();
        state.path.push(old.name().to_string());
        let defines = |t: &Type| t.get_basic_info().repetition() != Repetition::REQUIRED;
        match (defines(old), defines(new)) {
            (true, true) => state.push(state.to + 1),
            // Where its parent is, the old one is, and so is the new one.
            (false, true) => {
                state.to += 1;
                *state.map.last_mut()? = Some(state.to);
            }
            // A group that is null holds nothing: the same as an empty one.
            (true, false) => state.push(state.to),
            (false, false) => {}
        }
        Some(state)
    }

    fn push(&mut self, to: u16) {
        self.to = to;
        self.map.push(Some(to));
    }

    /// The same where nothing may be missing: at this place there is something below.
    fn must_go_on(&self) -> State {
        let mut state = self.clone();
        if let Some(last) = state.map.last_mut() {
            *last = None;
        }
        state
    }
}

struct Planner<'a> {
    from: &'a SchemaDescriptor,
    leaves: HashMap<Vec<String>, usize>,
    moved: &'a [Moved],
    used: Vec<bool>,
    out: Vec<LeafPlan>,
}

impl Planner<'_> {
    /// Columns that are the same in both files, and variant columns that move.
    fn plain(&mut self, old: &Type, new: &Type, state: &State) -> Option<()> {
        if let Some(moved) = self.moved.iter().find(|m| m.names == state.path) {
            return self.level(old, new, state, moved, true, true);
        }
        if old.is_primitive() || new.is_primitive() {
            return self.leaf(old, new, state, |_| Some(Make::Copy));
        }
        if old.get_fields().len() != new.get_fields().len() {
            return None;
        }
        for new in new.get_fields() {
            let old = child(old, new.name())?;
            if old.get_basic_info().repetition() != new.get_basic_info().repetition() {
                return None;
            }
            self.plain(old, new, &state.enter(old, new)?)?;
        }
        Some(())
    }

    /// A level of a variant column; `whole` where it may not be missing.
    fn level(&mut self, old: &Type, new: &Type, state: &State, moved: &Moved, root: bool, whole: bool) -> Option<()> {
        let standard = moved.from == Layout::Standard;
        let (old_value, new_value) = if standard { (VALUE, UNTYPED_VALUE) } else { (UNTYPED_VALUE, VALUE) };
        let mut fields = 0;
        for place in new.get_fields() {
            match place.name() {
                METADATA if root && !standard => {
                    let (from, map) = self.donor(old, state)?;
                    let make = Make::Constant(LevelMap::new(&map, state.to)?, moved.metadata.clone());
                    self.out.push(LeafPlan { from, make });
                }
                name if name == new_value => match child(old, old_value) {
                    Some(value) => {
                        fields += 1;
                        self.leaf(value, place, &state.enter(value, place)?, |map| Some(Make::Empty(map)))?;
                    }
                    None => {
                        let (from, map) = self.donor(old, state)?;
                        self.out.push(LeafPlan { from, make: Make::Null(LevelMap::new(&map, state.to + 1)?) });
                    }
                },
                OBJECT | ARRAY | TYPED_VALUE => {
                    fields += 1;
                    self.typed(old, place, state, moved, whole)?;
                }
                _ => return None,
            }
        }
        let dropped = (root && standard) as usize;
        (old.get_fields().len() == fields + dropped).then_some(())
    }

    fn typed(&mut self, level: &Type, new: &Type, state: &State, moved: &Moved, whole: bool) -> Option<()> {
        let standard = moved.from == Layout::Standard;
        let is_list = |t: &Type| !t.is_primitive() && matches!(t.get_fields(), [only] if is_repeated(only));
        let name = match (standard, new.is_primitive(), is_list(new)) {
            (true, _, _) | (_, true, _) => TYPED_VALUE,
            (false, _, true) => ARRAY,
            (false, _, false) => OBJECT,
        };
        let old = child(level, name)?;
        let state = if whole { state.must_go_on() } else { state.clone() }.enter(old, new)?;
        if old.is_primitive() || new.is_primitive() {
            return self.leaf(old, new, &state, |map| Some(Make::Levels(map)));
        }
        if is_list(old) != is_list(new) {
            return None;
        }
        if !is_list(new) {
            if old.get_fields().len() != new.get_fields().len() {
                return None;
            }
            for new in new.get_fields() {
                let old = child(old, new.name()).filter(|f| !f.is_primitive())?;
                self.level(old, new, &state.enter(old, new)?, moved, false, false)?;
            }
            return Some(());
        }
        let ([old], [new]) = (old.get_fields(), new.get_fields()) else { return None };
        let state = state.enter(old, new)?;
        let ([old], [new]) = (old.get_fields(), new.get_fields()) else { return None };
        // An element that is null has no value.
        let optional = old.get_basic_info().repetition() == Repetition::OPTIONAL;
        let state = if optional { state.must_go_on() } else { state }.enter(old, new)?;
        self.level(old, new, &state, moved, false, true)
    }

    fn leaf(&mut self, old: &Type, new: &Type, state: &State, make: impl Fn(LevelMap) -> Option<Make>) -> Option<()> {
        if !same_values(old, new) {
            return None;
        }
        let from = *self.leaves.get(&state.path)?;
        *self.used.get_mut(from)? = true;
        self.out.push(LeafPlan { from, make: make(LevelMap::new(&state.map, state.to)?)? });
        Some(())
    }

    /// A column that says where a level is: one below it without an array between, and what its levels say of it.
    fn donor(&self, level: &Type, state: &State) -> Option<(usize, Vec<Option<u16>>)> {
        let (mut at, mut path) = (level, state.path.clone());
        while !at.is_primitive() {
            let below = |t: &&std::sync::Arc<Type>| t.is_primitive() && t.name() != METADATA;
            let next = at.get_fields().iter().find(below).or_else(|| at.get_fields().first())?;
            if is_repeated(next) {
                return None;
            }
            path.push(next.name().to_string());
            at = next;
        }
        let from = *self.leaves.get(&path)?;
        let mut map = state.map.clone();
        map.resize(self.from.column(from).max_def_level() as usize + 1, Some(state.to));
        Some((from, map))
    }
}

fn child<'a>(group: &'a Type, name: &str) -> Option<&'a Type> {
    let mut found = group.get_fields().iter().filter(|f| f.name() == name);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn is_repeated(of: &Type) -> bool {
    of.get_basic_info().has_repetition() && of.get_basic_info().repetition() == Repetition::REPEATED
}

/// Whether the encoded values of one are those of the other.
fn same_values(old: &Type, new: &Type) -> bool {
    match (old, new) {
        (
            Type::PrimitiveType { physical_type: a, type_length: l, scale: s, precision: p, .. },
            Type::PrimitiveType { physical_type: b, type_length: m, scale: t, precision: q, .. },
        ) => {
            let (old, new) = (old.get_basic_info(), new.get_basic_info());
            a == b && l == m && s == t && p == q && old.logical_type_ref() == new.logical_type_ref()
        }
        _ => false,
    }
}
