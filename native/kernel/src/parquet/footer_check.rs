//! A footer, walked before the Parquet library parses it: the library recurses over its schema and allocates by its
//! counts, and neither can be caught. What passes here is a tree of bounded depth whose leaves are the columns of each
//! row group (parquet.thrift, `FileMetaData`).

use crate::parquet::thrift::{Fields, ThriftKind, Walker};

/// Groups around a leaf at most. A Variant that is shredded as deep as mica reads ([`crate::limits::MAX_TREE_DEPTH`])
/// takes three a level; a thread's stack of 2 MiB takes this many frames of the library.
const MAX_DEPTH: usize = 400;

/// `FieldRepetitionType`.
const REPETITIONS: std::ops::RangeInclusive<i32> = 0..=2;
/// The last of `Type`, the physical ones.
const LAST_TYPE: i32 = 7;

/// A leaf of the schema.
struct SchemaLeaf<'a> {
    physical: i32,
    name: &'a [u8],
    depth: usize,
}

type Checked<T> = Result<T, String>;

trait OrBroken<T> {
    fn or_broken(self, what: &str) -> Checked<T>;
}

impl<T> OrBroken<T> for Option<T> {
    fn or_broken(self, what: &str) -> Checked<T> {
        self.ok_or_else(|| format!("its {what} is broken"))
    }
}

/// Whether a footer may be handed to the library, and where its schema ends; the error says why not.
pub fn check(footer: &[u8]) -> Checked<usize> {
    let mut walker = Walker::new(footer);
    let mut fields = Fields::default();
    let mut leaves = None;
    let (mut promised, mut groups, mut end) = (None, None, 0);
    while let Some((id, kind)) = walker.field(&mut fields).or_broken("metadata")? {
        match (id, kind) {
            (2, ThriftKind::List) => {
                leaves = Some(schema(&mut walker)?);
                end = footer.len() - walker.left();
            }
            (3, ThriftKind::I64) => promised = Some(walker.number().or_broken("number of rows")?),
            (4, ThriftKind::List) => {
                let leaves = leaves.as_deref().ok_or("its schema is missing")?;
                groups = Some(row_groups(&mut walker, leaves)?);
            }
            (2..=4, _) => return Err("its metadata is broken".into()),
            _ => walker.skip(kind).or_broken("metadata")?,
        }
    }
    match (promised, groups) {
        (Some(promised), Some(rows)) if promised == rows => Ok(end),
        (Some(promised), Some(rows)) => Err(format!("it states {promised} rows, but its row groups have {rows}")),
        _ => Err("its schema, number of rows or row groups are missing".into()),
    }
}

/// The leaves of the schema, which is a tree in depth-first order.
fn schema<'a>(walker: &mut Walker<'a>) -> Checked<Vec<SchemaLeaf<'a>>> {
    let count = walker.structs().or_broken("schema")?;
    let mut leaves = Vec::new();
    // How many children each open group still has.
    let mut open: Vec<usize> = Vec::new();
    for index in 0..count {
        let mut fields = Fields::default();
        let (mut physical, mut repetition, mut name, mut children) = (None, None, None, None);
        while let Some((id, kind)) = walker.field(&mut fields).or_broken("schema")? {
            match (id, kind) {
                (1, ThriftKind::I32) => physical = Some(walker.int().or_broken("schema")?),
                (3, ThriftKind::I32) => repetition = Some(walker.int().or_broken("schema")?),
                (4, ThriftKind::Binary) => name = Some(walker.binary().or_broken("schema")?),
                (5, ThriftKind::I32) => children = Some(walker.int().or_broken("schema")?),
                _ => walker.skip(kind).or_broken("schema")?,
            }
        }
        let name = name.ok_or("a part of its schema has no name")?;
        let text = || String::from_utf8_lossy(name).into_owned();
        if repetition.is_some_and(|r| !REPETITIONS.contains(&r))
            || physical.is_some_and(|t| !(0..=LAST_TYPE).contains(&t))
        {
            return Err(format!("its schema has {:?} of an unknown type or repetition", text()));
        }
        if index > 0 {
            let left = open.last_mut().ok_or_else(|| format!("its schema has {:?} outside of the tree", text()))?;
            *left -= 1;
        }
        match usize::try_from(children.unwrap_or(0)) {
            Ok(children) if children > count - index - 1 => {
                return Err(format!("its schema has {:?} with {children} children, more than exist", text()));
            }
            Ok(0) if index > 0 && physical.is_some() => {
                leaves.push(SchemaLeaf { physical: physical.unwrap_or(0), name, depth: open.len() });
            }
            Ok(children) => open.push(children),
            Err(_) => return Err(format!("its schema has {:?} with a negative number of children", text())),
        }
        while open.last() == Some(&0) {
            open.pop();
        }
        if open.len() > MAX_DEPTH {
            return Err(format!("its schema nests more than {MAX_DEPTH} levels"));
        }
    }
    if open.is_empty() { Ok(leaves) } else { Err("its schema ends within a group".into()) }
}

/// The rows of all row groups.
fn row_groups(walker: &mut Walker, leaves: &[SchemaLeaf]) -> Checked<i64> {
    let count = walker.structs().or_broken("list of row groups")?;
    let mut all: i64 = 0;
    for index in 0..count {
        let broken = || format!("row group {index} is broken");
        let mut fields = Fields::default();
        let (mut rows, mut columns) = (None, None);
        while let Some((id, kind)) = walker.field(&mut fields).ok_or_else(broken)? {
            match (id, kind) {
                (1, ThriftKind::List) => {
                    let count = walker.structs().ok_or_else(broken)?;
                    if count != leaves.len() {
                        return Err(format!(
                            "row group {index} has {count} columns, but its schema has {}",
                            leaves.len()
                        ));
                    }
                    leaves.iter().try_for_each(|leaf| column(walker, leaf, index))?;
                    columns = Some(());
                }
                (3, ThriftKind::I64) => rows = Some(walker.number().ok_or_else(broken)?),
                _ => walker.skip(kind).ok_or_else(broken)?,
            }
        }
        let rows = rows.filter(|&rows| rows >= 0).ok_or_else(broken)?;
        columns.ok_or_else(broken)?;
        all = all.checked_add(rows).ok_or_else(broken)?;
    }
    Ok(all)
}

/// A column chunk: of the type and the name of its leaf.
fn column(walker: &mut Walker, leaf: &SchemaLeaf, group: usize) -> Checked<()> {
    let broken = || format!("column {:?} of row group {group} is broken", String::from_utf8_lossy(leaf.name));
    let mut fields = Fields::default();
    let mut known = false;
    while let Some((id, kind)) = walker.field(&mut fields).ok_or_else(broken)? {
        if (id, kind) != (3, ThriftKind::Struct) {
            walker.skip(kind).ok_or_else(broken)?;
            continue;
        }
        known = true;
        let mut fields = Fields::default();
        while let Some((id, kind)) = walker.field(&mut fields).ok_or_else(broken)? {
            match (id, kind) {
                (1, ThriftKind::I32) => {
                    if walker.int() != Some(leaf.physical) {
                        let name = String::from_utf8_lossy(leaf.name);
                        return Err(format!("column {name:?} of row group {group} has another type than the schema's"));
                    }
                }
                (3, ThriftKind::List) => {
                    let (element, count) = walker.list().ok_or_else(broken)?;
                    if element != ThriftKind::Binary || count != leaf.depth {
                        return Err(broken());
                    }
                    let mut last = None;
                    for _ in 0..count {
                        last = Some(walker.binary().ok_or_else(broken)?);
                    }
                    if last != Some(leaf.name) {
                        return Err(broken());
                    }
                }
                _ => walker.skip(kind).ok_or_else(broken)?,
            }
        }
    }
    if known { Ok(()) } else { Err(broken()) }
}
