//! A storage-layout struct array opened as a tree of levels: what reconstruction and extraction walk.
//!
//! The null table of the standard layout (VariantShredding.md, "Value Shredding"), one line a row:
//!
//! | value    | typed_value | meaning                                                           | rule   |
//! |----------|-------------|-------------------------------------------------------------------|--------|
//! | null     | null        | missing (an object field); Variant null anywhere else             | 22, 26 |
//! | non-null | null        | the value in `value`, of any type but the object or array shredded here | 23, 30, 32 |
//! | null     | non-null    | the value in `typed_value`                                        | 24     |
//! | non-null | non-null    | a partially shredded object; `value` holds its other fields       | 25, 36 |
//!
//! Children are found by name (rule 1); a `value` that is not there is null in every row. `early.rs` has the
//! table of the early layout.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use arrow_select::take::take;

use crate::error::{Code, Error, Result};
use crate::flavour;
use crate::layout::{Layout, early};
use crate::limits::MAX_TREE_DEPTH;
use crate::path::Shredded;
use crate::values::leaf::{Leaf, refused};

/// A whole variant column, unshredded or shredded.
#[derive(Clone)]
pub struct VariantColumn {
    /// SQL NULL is a null group (rule 28).
    pub nulls: Option<NullBuffer>,
    /// Absent only when a projection left it out because nothing read needs it. Views: rows mostly share one
    /// metadata, and a scan that reads few residuals copies none.
    pub metadata: Option<BinaryViewArray>,
    pub root: Level,
    pub len: usize,
    /// Levels in the tree; `Level::number` counts them from 0.
    pub levels: usize,
}

/// One level of the tree. The early layout may have several of object, array and leaf at once, the standard
/// layout has at most one.
#[derive(Clone)]
pub struct Level {
    pub number: usize,
    /// Containers around it.
    pub depth: usize,
    pub layout: Layout,
    /// Parquet column path of this group, for errors.
    pub path: String,
    /// A field or element group that is null although it should be required (rule 34): read as missing.
    pub nulls: Option<NullBuffer>,
    /// `value`, under the row's metadata, or `untyped_value`, which brings its own.
    pub value: Option<BinaryArray>,
    pub object: Option<ObjectColumn>,
    pub array: Option<ListColumn>,
    pub leaf: Option<Leaf>,
}

#[derive(Clone)]
pub struct ObjectColumn {
    pub nulls: Option<NullBuffer>,
    /// Sorted by unsigned UTF-8 bytes of the name.
    pub fields: Vec<FieldColumn>,
}

#[derive(Clone)]
pub struct FieldColumn {
    pub name: String,
    pub level: Level,
}

#[derive(Clone)]
pub struct ListColumn {
    pub nulls: Option<NullBuffer>,
    pub offsets: OffsetBuffer<i32>,
    pub element: Box<Level>,
}

pub fn is_null(nulls: &Option<NullBuffer>, row: usize) -> bool {
    nulls.as_ref().is_some_and(|n| n.is_null(row))
}

fn shredding(rule: u8, path: &str, message: impl Into<String>) -> Error {
    Error::new(Code::MalformedShredding, message).rule(rule).path(path)
}

impl VariantColumn {
    /// Opens a struct array of the storage layout; `path` names the column.
    pub fn open(array: &StructArray, path: &str) -> Result<Self> {
        let metadata = match array.column_by_name("metadata") {
            Some(column) => Some(binary_view(column, &format!("{path}.metadata"))?),
            None => None,
        };
        Ok(VariantColumn { metadata, ..VariantColumn::open_levels(array, path)? })
    }

    /// The same for one who has its metadata.
    pub fn open_levels(array: &StructArray, path: &str) -> Result<Self> {
        let mut levels = 0;
        let root = match Layout::of(array.fields()) {
            Layout::Standard => Level::open(array, path, true, 0, &mut levels)?,
            Layout::Early => Level::open_early(array, path, None, 0, &mut levels)?,
        };
        Ok(VariantColumn { nulls: array.nulls().cloned(), metadata: None, root, len: array.len(), levels })
    }

    pub fn is_null(&self, row: usize) -> bool {
        is_null(&self.nulls, row)
    }
}

impl Level {
    fn new(layout: Layout, path: &str, depth: usize, levels: &mut usize) -> Result<Self> {
        if depth > MAX_TREE_DEPTH {
            return Err(Error::new(
                Code::TooDeep,
                format!("the shredded column nests deeper than {MAX_TREE_DEPTH} levels"),
            )
            .path(path));
        }
        *levels += 1;
        Ok(Level {
            number: *levels - 1,
            depth,
            layout,
            path: path.to_string(),
            nulls: None,
            value: None,
            object: None,
            array: None,
            leaf: None,
        })
    }

    fn open(group: &StructArray, path: &str, root: bool, depth: usize, levels: &mut usize) -> Result<Self> {
        let mut level = Level::new(Layout::Standard, path, depth, levels)?;
        level.nulls = if root { None } else { group.nulls().cloned() };
        let (mut seen_value, mut seen_typed) = (false, false);
        for (field, column) in group.fields().iter().zip(group.columns()) {
            match field.name().as_str() {
                "metadata" if root => {}
                "value" => {
                    twice(&mut seen_value, path, "value")?;
                    level.value = Some(binary(column, &format!("{path}.value"))?);
                }
                "typed_value" => {
                    twice(&mut seen_typed, path, "typed_value")?;
                    level.open_typed(column, depth, levels)?;
                }
                name if name.starts_with('_') => {}
                name => {
                    return Err(shredding(
                        1,
                        path,
                        format!("{path} has the field {name:?}, which is not metadata, value or typed_value"),
                    ));
                }
            }
        }
        if !seen_value && !seen_typed && !root {
            return Err(shredding(29, path, format!("the group {path} has neither value nor typed_value")));
        }
        Ok(level)
    }

    /// A group in the early layout (`layout/early.rs`). `outer` are the nulls of the groups around it, below which
    /// nothing counts.
    fn open_early(
        group: &StructArray,
        path: &str,
        outer: Option<&NullBuffer>,
        depth: usize,
        levels: &mut usize,
    ) -> Result<Self> {
        let mut level = Level::new(Layout::Early, path, depth, levels)?;
        // The root's own nulls are those of the column: SQL NULL.
        level.nulls = if depth == 0 { None } else { NullBuffer::union(outer, group.nulls()) };
        let mut seen = [false; 4];
        for (field, column) in group.fields().iter().zip(group.columns()) {
            let at = format!("{path}.{}", field.name());
            match field.name().as_str() {
                early::UNTYPED_VALUE => {
                    twice(&mut seen[0], path, early::UNTYPED_VALUE)?;
                    level.value = Some(binary(column, &at)?);
                }
                "typed_value" => {
                    twice(&mut seen[1], path, "typed_value")?;
                    level.leaf = Some(Leaf::open(column, &at)?);
                }
                early::OBJECT => {
                    twice(&mut seen[2], path, early::OBJECT)?;
                    let object = column.as_struct_opt();
                    let object = object.ok_or_else(|| early::malformed(&at, format!("{at} is not a group")))?;
                    level.object = Some(level.open_object(object, &at, depth, levels)?);
                }
                early::ARRAY => {
                    twice(&mut seen[3], path, early::ARRAY)?;
                    level.array = Some(level.open_list(column, &at, depth, levels)?);
                }
                name if name.starts_with('_') => {}
                name => return Err(early::unknown(path, name)),
            }
        }
        Ok(level)
    }

    fn open_typed(&mut self, column: &ArrayRef, depth: usize, levels: &mut usize) -> Result<()> {
        let path = format!("{}.typed_value", self.path);
        match column.data_type() {
            DataType::Struct(_) => self.object = Some(self.open_object(column.as_struct(), &path, depth, levels)?),
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(_, _)
            | DataType::ListView(_)
            | DataType::LargeListView(_) => {
                self.array = Some(self.open_list(column, &path, depth, levels)?);
            }
            _ => self.leaf = Some(Leaf::open(column, &path)?),
        }
        Ok(())
    }

    fn open_object(&self, group: &StructArray, path: &str, depth: usize, levels: &mut usize) -> Result<ObjectColumn> {
        let mut fields = Vec::with_capacity(group.num_columns());
        let around = NullBuffer::union(self.nulls.as_ref(), group.nulls());
        for (field, child) in group.fields().iter().zip(group.columns()) {
            let child_path = format!("{path}.{}", field.name());
            let Some(child) = child.as_struct_opt() else {
                let found = child.data_type();
                let message = format!("the shredded field {child_path} is {found}, not a group");
                return Err(refused(34, &child_path, found, message));
            };
            let level = match self.layout {
                Layout::Standard => Level::open(child, &child_path, false, depth + 1, levels)?,
                Layout::Early => Level::open_early(child, &child_path, around.as_ref(), depth + 1, levels)?,
            };
            fields.push(FieldColumn { name: field.name().clone(), level });
        }
        fields.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        if let Some(pair) = fields.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(shredding(12, path, format!("{path} shreds the field {:?} twice", pair[0].name)));
        }
        Ok(ObjectColumn { nulls: group.nulls().cloned(), fields })
    }

    fn open_list(&self, column: &ArrayRef, path: &str, depth: usize, levels: &mut usize) -> Result<ListColumn> {
        let element_path = format!("{path}.list.element");
        let no_group = |found: &DataType| {
            let message = format!("the array element {element_path} is {found}, not a group");
            refused(29, &element_path, found, message)
        };
        let list = flavour::list(column)?.ok_or_else(|| no_group(column.data_type()))?;
        let group = list.values().as_struct_opt().ok_or_else(|| no_group(list.values().data_type()))?;
        let element = match self.layout {
            Layout::Standard => Level::open(group, &element_path, false, depth + 1, levels)?,
            Layout::Early => Level::open_early(group, &element_path, None, depth + 1, levels)?,
        };
        let (nulls, offsets) = (list.nulls().cloned(), list.offsets().clone());
        Ok(ListColumn { nulls, offsets, element: Box::new(element) })
    }

    /// The Parquet path of the untyped bytes.
    pub fn value_path(&self) -> String {
        match self.layout {
            Layout::Standard => format!("{}.value", self.path),
            Layout::Early => format!("{}.{}", self.path, early::UNTYPED_VALUE),
        }
    }

    /// Whether the level holds anything in this row; if not, an object field is missing (rule 22).
    #[inline]
    pub fn is_present(&self, row: usize) -> bool {
        !is_null(&self.nulls, row) && (self.is_typed(row) || self.has_value(row))
    }

    #[inline]
    pub fn has_value(&self, row: usize) -> bool {
        self.value.as_ref().is_some_and(|v| v.is_valid(row))
    }

    #[inline]
    pub fn is_typed(&self, row: usize) -> bool {
        self.leaf.as_ref().is_some_and(|l| l.array.is_valid(row))
            || self.object.as_ref().is_some_and(|o| !is_null(&o.nulls, row))
            || self.array.as_ref().is_some_and(|a| !is_null(&a.nulls, row))
    }
}

impl Shredded for &Level {
    fn field(self, key: &str) -> Option<Self> {
        self.object.as_ref().and_then(|object| object.find(key)).map(|field| &field.level)
    }

    fn element(self) -> Option<Self> {
        self.array.as_ref().map(|array| &*array.element)
    }
}

impl ObjectColumn {
    pub fn find(&self, name: &str) -> Option<&FieldColumn> {
        let at = self.fields.binary_search_by(|f| f.name.as_bytes().cmp(name.as_bytes())).ok()?;
        self.fields.get(at)
    }
}

impl ListColumn {
    /// First and last-plus-one element of this row.
    pub fn range(&self, row: usize) -> (usize, usize) {
        (self.offsets[row] as usize, self.offsets[row + 1] as usize)
    }
}

fn twice(seen: &mut bool, path: &str, name: &str) -> Result<()> {
    if std::mem::replace(seen, true) {
        return Err(shredding(1, path, format!("the group {path} has two children named {name}")));
    }
    Ok(())
}

fn binary_view(column: &ArrayRef, path: &str) -> Result<BinaryViewArray> {
    match column.data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => flavour::binary_view(column),
        // A code takes the view of its value: the bytes are shared.
        DataType::Dictionary(..) => {
            let coded = column.as_any_dictionary();
            let taken = take(&binary_view(coded.values(), path)?, coded.keys(), None)?;
            taken.as_binary_view_opt().cloned()
        }
        _ => None,
    }
    .ok_or_else(|| not_binary(path, column.data_type()))
}

fn binary(column: &ArrayRef, path: &str) -> Result<BinaryArray> {
    match column.data_type() {
        DataType::Dictionary(..) => binary(&flavour::decoded(column)?, path),
        found => flavour::binary(column)?.ok_or_else(|| not_binary(path, found)),
    }
}

fn not_binary(path: &str, found: &DataType) -> Error {
    refused(2, path, found, format!("{path} is {found}, but the Variant encoding requires binary"))
}
