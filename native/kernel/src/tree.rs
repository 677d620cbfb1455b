//! The one shredding tree. Both layouts are spellings of it: **standard** (metadata, value, typed_value) has
//! at most one of object, array and leaf at a level, **early** (object, array, typed_value, untyped_value)
//! may have several. Inference makes trees, shredding and reconstruction walk them.
//!
//! As a type of Arrow (how it crosses from Python): struct = object, list = array, null = nothing typed,
//! any other type = a leaf.

use arrow_schema::{DataType, Field as ArrowField, Fields, TimeUnit};

use crate::error::{Code, Error, Result};
use crate::limits::MAX_TREE_DEPTH;

/// The leaf types of the standard's table (rule 21): no unsigned types, no milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeafType {
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Date,
    /// `utc`: adjusted to UTC; otherwise without a zone.
    Timestamp {
        utc: bool,
    },
    TimestampNanos {
        utc: bool,
    },
    Time,
    String,
    Binary,
    Uuid,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tree {
    /// The fields of the typed object, sorted by unsigned UTF-8 bytes of the name, each name once.
    pub object: Option<Vec<Field>>,
    pub array: Option<Box<Tree>>,
    pub leaf: Option<LeafType>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub tree: Tree,
}

impl Tree {
    pub fn untyped() -> Self {
        Tree::default()
    }

    pub fn leaf(leaf: LeafType) -> Self {
        Tree { leaf: Some(leaf), ..Tree::default() }
    }

    pub fn array(element: Tree) -> Self {
        Tree { array: Some(Box::new(element)), ..Tree::default() }
    }

    /// Sorts the fields; a name that stands twice is an error.
    pub fn object(mut fields: Vec<Field>) -> Result<Self> {
        fields.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        if let Some(pair) = fields.windows(2).find(|p| p[0].name == p[1].name) {
            return Err(Error::new(
                Code::InvalidArgument,
                format!("the shredding schema names the field {:?} twice", pair[0].name),
            ));
        }
        Ok(Tree { object: Some(fields), ..Tree::default() })
    }

    pub fn is_untyped(&self) -> bool {
        self.object.is_none() && self.array.is_none() && self.leaf.is_none()
    }

    /// Leaves with a type.
    pub fn leaves(&self) -> usize {
        let fields = self.object.iter().flatten().map(|field| &field.tree);
        let below: usize = fields.chain(self.array.as_deref()).map(Tree::leaves).sum();
        below + usize::from(self.leaf.is_some())
    }

    /// Levels below this one.
    pub fn depth(&self) -> usize {
        let fields = self.object.iter().flatten().map(|field| &field.tree);
        fields.chain(self.array.as_deref()).map(|below| below.depth() + 1).max().unwrap_or(0)
    }

    /// Reads the type that Python hands over.
    pub fn from_arrow(data_type: &DataType) -> Result<Self> {
        Self::from_arrow_at(data_type, 0)
    }

    fn from_arrow_at(data_type: &DataType, depth: usize) -> Result<Self> {
        if depth > MAX_TREE_DEPTH {
            return Err(Error::new(
                Code::TooDeep,
                format!("a shredding schema may nest {MAX_TREE_DEPTH} levels at most"),
            ));
        }
        match data_type {
            DataType::Null => Ok(Tree::untyped()),
            DataType::Struct(fields) => Tree::object(
                fields
                    .iter()
                    .map(|f| {
                        let tree = Self::from_arrow_at(f.data_type(), depth + 1).map_err(|e| e.path(f.name()))?;
                        Ok(Field { name: f.name().clone(), tree })
                    })
                    .collect::<Result<_>>()?,
            ),
            DataType::List(element) | DataType::LargeList(element) => {
                Ok(Tree::array(Self::from_arrow_at(element.data_type(), depth + 1)?))
            }
            leaf => LeafType::from_arrow(leaf).map(Tree::leaf),
        }
    }

    /// The inverse of [`Tree::from_arrow`]; a tree with several shapes at one level has no such type.
    pub fn to_arrow(&self) -> Result<DataType> {
        match (&self.object, &self.array, self.leaf) {
            (None, None, None) => Ok(DataType::Null),
            (Some(fields), None, None) => Ok(DataType::Struct(
                fields
                    .iter()
                    .map(|f| Ok(ArrowField::new(&f.name, f.tree.to_arrow()?, true)))
                    .collect::<Result<Fields>>()?,
            )),
            (None, Some(element), None) => Ok(DataType::new_list(element.to_arrow()?, true)),
            (None, None, Some(leaf)) => Ok(leaf.to_arrow()),
            _ => Err(Error::new(
                Code::UnsupportedType,
                "a level that shreds several of object, array and leaf has no single type",
            )),
        }
    }
}

impl LeafType {
    /// The Arrow type of the leaf's `typed_value`. A UUID is 16 bytes of fixed size.
    pub fn to_arrow(self) -> DataType {
        let utc = || Some("UTC".into());
        match self {
            LeafType::Boolean => DataType::Boolean,
            LeafType::Int8 => DataType::Int8,
            LeafType::Int16 => DataType::Int16,
            LeafType::Int32 => DataType::Int32,
            LeafType::Int64 => DataType::Int64,
            LeafType::Float => DataType::Float32,
            LeafType::Double => DataType::Float64,
            LeafType::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
            LeafType::Date => DataType::Date32,
            LeafType::Timestamp { utc: true } => DataType::Timestamp(TimeUnit::Microsecond, utc()),
            LeafType::Timestamp { utc: false } => DataType::Timestamp(TimeUnit::Microsecond, None),
            LeafType::TimestampNanos { utc: true } => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
            LeafType::TimestampNanos { utc: false } => DataType::Timestamp(TimeUnit::Nanosecond, None),
            LeafType::Time => DataType::Time64(TimeUnit::Microsecond),
            LeafType::String => DataType::Utf8,
            LeafType::Binary => DataType::Binary,
            LeafType::Uuid => DataType::FixedSizeBinary(16),
        }
    }

    /// Takes what the standard's table allows and nothing else (rule 21).
    pub fn from_arrow(data_type: &DataType) -> Result<Self> {
        Ok(match data_type {
            DataType::Boolean => LeafType::Boolean,
            DataType::Int8 => LeafType::Int8,
            DataType::Int16 => LeafType::Int16,
            DataType::Int32 => LeafType::Int32,
            DataType::Int64 => LeafType::Int64,
            DataType::Float32 => LeafType::Float,
            DataType::Float64 => LeafType::Double,
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s)
                if *s >= 0 && *s as u8 <= *p =>
            {
                LeafType::Decimal { precision: *p, scale: *s as u8 }
            }
            DataType::Date32 => LeafType::Date,
            DataType::Timestamp(TimeUnit::Microsecond, tz) => LeafType::Timestamp { utc: tz.is_some() },
            DataType::Timestamp(TimeUnit::Nanosecond, tz) => LeafType::TimestampNanos { utc: tz.is_some() },
            DataType::Time64(TimeUnit::Microsecond) => LeafType::Time,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => LeafType::String,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => LeafType::Binary,
            DataType::FixedSizeBinary(16) => LeafType::Uuid,
            other => {
                return Err(Error::new(
                    Code::UnsupportedType,
                    format!("{other} is no type that a Variant can be shredded to"),
                )
                .rule(21));
            }
        })
    }
}
