//! What was made of keys that were seen lately: rows mostly share one, or alternate between few.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// How many are kept before all are forgotten; `COST` bounds what they cost together, in bytes.
const MAX_KEPT: usize = 1024;

pub struct Recent<K, V, const COST: usize> {
    entries: Vec<(Vec<K>, V)>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    cost: usize,
    current: usize,
    cleared: usize,
}

impl<K, V, const COST: usize> Default for Recent<K, V, COST> {
    fn default() -> Self {
        let (table, hasher) = (HashTable::new(), DefaultHashBuilder::default());
        Recent { entries: Vec::new(), table, hasher, cost: 0, current: 0, cleared: 0 }
    }
}

impl<K: Hash + Eq + Clone, V, const COST: usize> Recent<K, V, COST> {
    /// Key and value that were found or inserted last.
    #[inline]
    pub fn current(&self) -> Option<&(Vec<K>, V)> {
        self.entries.get(self.current)
    }

    /// The number of the current one: it stands for it until all are forgotten.
    #[inline]
    pub fn number(&self) -> usize {
        self.current
    }

    #[inline]
    pub fn get(&self, number: usize) -> Option<&(Vec<K>, V)> {
        self.entries.get(number)
    }

    /// How often all were forgotten.
    pub fn cleared(&self) -> usize {
        self.cleared
    }

    pub fn current_mut(&mut self) -> Option<&mut V> {
        self.entries.get_mut(self.current).map(|(_, value)| value)
    }

    /// Whether the value of this key is known; it is the current one then.
    #[inline]
    pub fn find(&mut self, key: &[K]) -> bool {
        self.current().is_some_and(|(current, _)| current == key) || self.find_other(key)
    }

    fn find_other(&mut self, key: &[K]) -> bool {
        let entries = &self.entries;
        let same = |&at: &u32| entries.get(at as usize).is_some_and(|(known, _)| known == key);
        let found = self.table.find(self.hasher.hash_one(key), same).copied();
        self.current = found.map_or(self.current, |at| at as usize);
        found.is_some()
    }

    /// Adds the value of a key that was not found.
    pub fn insert(&mut self, key: &[K], value: V, cost: usize) {
        if self.entries.len() >= MAX_KEPT || self.cost > COST {
            self.clear();
        }
        self.current = self.entries.len();
        self.cost += cost;
        self.entries.push((key.to_vec(), value));
        let (entries, hasher) = (&self.entries, &self.hasher);
        let rehash = |&at: &u32| hasher.hash_one(entries.get(at as usize).map_or(&[][..], |(key, _)| key));
        self.table.insert_unique(hasher.hash_one(key), self.current as u32, rehash);
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.table.clear();
        self.cost = 0;
        self.cleared += 1;
    }
}
