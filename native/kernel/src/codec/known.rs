//! The metadata of rows that are read, resolved once per distinct metadata. Holds names by id, and ids by shredded field.

use std::cell::{Cell, OnceCell};

use hashbrown::HashMap;

use crate::codec::children::check_ids;
use crate::codec::head::Head;
use crate::codec::metadata::{is_sorted, parse, ranks as ranks_of};
use crate::codec::recent::Recent;
use crate::error::Result;

/// The metadata that rows had lately.
#[derive(Default)]
pub struct KnownNames {
    /// By their bytes.
    recent: Recent<u8, Loaded, { 4 << 20 }>,
    /// Wanted names: number by text, then the levels of that name.
    wanted: HashMap<Vec<u8>, u32>,
    by_level: Vec<u32>,
    misled: bool,
}

/// One metadata.
struct Loaded {
    /// Byte range of each name, by field id.
    names: Vec<(u32, u32)>,
    /// Each name is above the one before it: ids are in the order of their names.
    ordered: bool,
    ranks: Ranks,
    /// Field ids of the wanted names, by level.
    ids: Vec<u32>,
}

/// The ranks of names that are not in order. To rank the names of one object costs more than to compare them, so that
/// names are compared until so many were as the metadata has.
#[derive(Default)]
struct Ranks {
    compared: Cell<usize>,
    known: OnceCell<Vec<u32>>,
}

/// What orders the ids of a metadata as their names.
enum Order<'a> {
    Ids,
    Names,
    Ranks(&'a [u32]),
}

const NONE: u32 = u32::MAX;

impl KnownNames {
    /// Announces a shredded field before the first [`KnownNames::load`].
    pub fn want(&mut self, name: &str, level: usize) {
        let next = self.wanted.len() as u32;
        let number = *self.wanted.entry(name.as_bytes().to_vec()).or_insert(next);
        if self.by_level.len() <= level {
            self.by_level.resize(level + 1, NONE);
        }
        self.by_level[level] = number;
    }

    /// Makes this metadata the current one; gives its number, by which it is found again as long as nothing was
    /// [forgotten](KnownNames::forgotten).
    #[inline(always)]
    pub fn load(&mut self, metadata: &[u8]) -> Result<u32> {
        if !self.recent.find(metadata) {
            let loaded = self.resolve(metadata)?;
            self.misled |= !loaded.ordered && is_sorted(metadata);
            let cost = metadata.len() + 12 * loaded.names.len() + 4 * loaded.ids.len();
            self.recent.insert(metadata, loaded, cost);
        }
        Ok(self.recent.number() as u32)
    }

    /// Whether one of them said wrongly that its names are sorted: it must not be passed on as it is.
    pub fn misled(&self) -> bool {
        self.misled
    }

    /// Makes this metadata the current one; whether it is sound and has every wanted name.
    pub fn load_all(&mut self, metadata: &[u8]) -> bool {
        self.load(metadata).is_ok()
            && !self.current().misleads()
            && self.by_level.iter().zip(self.current().ids).all(|(&wanted, &id)| wanted == NONE || id != NONE)
    }

    /// How often all numbers were given up.
    pub fn forgotten(&self) -> usize {
        self.recent.cleared()
    }

    /// The names of the metadata loaded last.
    #[inline]
    pub fn current(&self) -> RowNames<'_> {
        self.of(self.recent.number() as u32)
    }

    /// The names of the metadata of this number.
    #[inline]
    pub fn of(&self, number: u32) -> RowNames<'_> {
        match self.recent.get(number as usize) {
            Some((bytes, loaded)) => {
                let ranks = (!loaded.ordered).then_some(&loaded.ranks);
                RowNames { bytes, names: &loaded.names, ranks, ids: &loaded.ids }
            }
            None => RowNames { bytes: &[], names: &[], ranks: None, ids: &[] },
        }
    }

    fn resolve(&self, metadata: &[u8]) -> Result<Loaded> {
        let mut names = Vec::new();
        parse(metadata, &mut names)?;
        let mut ids = vec![NONE; self.wanted.len()];
        for (id, &(start, end)) in names.iter().enumerate() {
            if let Some(&number) = self.wanted.get(&metadata[start as usize..end as usize]) {
                // A dictionary that holds a name twice is legal when unsorted: the first id stands for it.
                let slot = &mut ids[number as usize];
                if *slot == NONE {
                    *slot = id as u32;
                }
            }
        }
        let ids = self.by_level.iter().map(|&number| ids.get(number as usize).copied().unwrap_or(NONE)).collect();
        let name = |&(start, end): &(u32, u32)| metadata.get(start as usize..end as usize);
        let ordered = names.windows(2).all(|pair| name(&pair[0]) < name(&pair[1]));
        Ok(Loaded { names, ordered, ranks: Ranks::default(), ids })
    }
}

/// The names of one metadata.
#[derive(Clone, Copy)]
pub struct RowNames<'a> {
    bytes: &'a [u8],
    names: &'a [(u32, u32)],
    /// `None` where ids are in the order of their names.
    ranks: Option<&'a Ranks>,
    ids: &'a [u32],
}

impl<'a> RowNames<'a> {
    /// The field id of a shredded field's name.
    #[inline]
    pub fn id_of_level(&self, level: usize) -> Option<u32> {
        self.ids.get(level).copied().filter(|&id| id != NONE)
    }

    /// The name with this id; empty for an id that the metadata does not have (validation refused it before).
    #[inline]
    pub fn name(&self, id: u32) -> &'a [u8] {
        self.names.get(id as usize).map_or(&[], |&(start, end)| &self.bytes[start as usize..end as usize])
    }

    /// Whether its names are sorted and distinct.
    pub fn is_sorted(&self) -> bool {
        self.ranks.is_none()
    }

    /// Whether it says wrongly that they are.
    pub fn misleads(&self) -> bool {
        !self.is_sorted() && is_sorted(self.bytes)
    }

    /// What so many more ids are compared by, whatever the metadata says of their order.
    #[inline]
    fn order(&self, more: usize) -> Order<'a> {
        let Some(Ranks { compared, known }) = self.ranks else { return Order::Ids };
        compared.set(compared.get().saturating_add(more));
        match known.get() {
            None if compared.get() <= self.names.len() => Order::Names,
            _ => Order::Ranks(known.get_or_init(|| ranks_of(self.bytes, self.names))),
        }
    }

    /// Whether ids that ascend are in the order of their names, these do, and all are in the metadata.
    #[inline]
    pub fn are_ascending(&self, ids: &[u8]) -> bool {
        let ascend = ids.windows(2).all(|pair| pair[0] < pair[1]);
        self.ranks.is_none() && ascend && ids.last().is_none_or(|&last| (last as usize) < self.names.len())
    }

    fn known_name(&self, id: u32) -> Option<&'a [u8]> {
        self.names.get(id as usize).and_then(|&(start, end)| self.bytes.get(start as usize..end as usize))
    }

    /// Whether the ids of an object are in the order of their names; refuses ids that are not in the metadata, and names
    /// that come twice.
    #[inline]
    pub fn check_ids(&self, value: &[u8], at: usize, head: &Head, ids: &mut Vec<u32>) -> Result<bool> {
        match self.order(head.count) {
            Order::Ids => check_ids(value, at, head, ids, |id| ((id as usize) < self.names.len()).then_some(id)),
            Order::Names => check_ids(value, at, head, ids, |id| self.known_name(id)),
            Order::Ranks(ranks) => check_ids(value, at, head, ids, |id| ranks.get(id as usize).copied()),
        }
    }

    /// Sorts what has field ids by their names.
    pub fn sort<T>(&self, fields: &mut [T], id: impl Fn(&T) -> u32) {
        match self.order(fields.len()) {
            Order::Ids => fields.sort_by_key(id),
            Order::Names => fields.sort_by(|a, b| self.known_name(id(a)).cmp(&self.known_name(id(b)))),
            Order::Ranks(ranks) => fields.sort_by_key(|field| ranks.get(id(field) as usize).copied()),
        }
    }

    /// Number of names.
    #[inline]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::KnownNames;
    use crate::codec::head::head;

    #[test]
    fn names_are_in_one_order_however_often_it_is_asked_for() {
        // b, a, b.
        let metadata = [1, 3, 0, 1, 2, 3, b'b', b'a', b'b'];
        for (ids, wanted) in [([1, 0], Ok(true)), ([0, 1], Ok(false)), ([2, 0], Err(12)), ([0, 3], Err(20))] {
            let mut known = KnownNames::default();
            known.load(&metadata).unwrap();
            let value = [2, 2, ids[0], ids[1], 0, 1, 2, 0, 0];
            let head = head(&value, 0).unwrap();
            for _ in 0..4 {
                let found = known.current().check_ids(&value, 0, &head, &mut Vec::new());
                assert_eq!(found.map_err(|e| e.rule.unwrap_or_default()), wanted, "{ids:?}");
                let mut sorted = [2, 0, 1];
                known.current().sort(&mut sorted, |&id| id);
                assert_eq!(sorted, [1, 2, 0]);
            }
        }
    }
}
