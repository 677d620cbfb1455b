//! The file's schema as a tree that knows which leaf columns lie under each node: what a projection is made of.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr};

use crate::error::{Code, Error, Result};
use crate::layout::standard::{is_variant, mark};

/// A field of the schema. Lists have one child (the element), maps one (the entries, a struct).
#[derive(Debug, Clone)]
pub struct Node {
    pub field: FieldRef,
    /// Leaf columns of the file under this node, in the order of the schema.
    pub leaves: Range<usize>,
    pub children: Vec<Node>,
}

impl Node {
    /// The top-level columns.
    pub fn columns(fields: &Fields) -> Vec<Node> {
        let mut next = 0;
        fields.iter().map(|f| Node::new(f, &mut next)).collect()
    }

    fn new(field: &FieldRef, next: &mut usize) -> Node {
        let first = *next;
        let children: Vec<Node> = match field.data_type() {
            DataType::Struct(fields) => fields.iter().map(|f| Node::new(f, next)).collect(),
            DataType::List(f)
            | DataType::LargeList(f)
            | DataType::FixedSizeList(f, _)
            | DataType::ListView(f)
            | DataType::LargeListView(f)
            | DataType::Map(f, _) => vec![Node::new(f, next)],
            _ => {
                *next += 1;
                Vec::new()
            }
        };
        Node { field: field.clone(), leaves: first..*next, children }
    }

    pub fn child(&self, name: &str) -> Option<&Node> {
        self.children.iter().find(|c| c.field.name() == name)
    }

    /// Finds a node by its names below this one, through structs.
    pub fn find(&self, names: &[String]) -> Option<&Node> {
        names.iter().try_fold(self, |node, name| {
            let enters = node.is_struct() && !is_variant(&node.field);
            node.child(name).filter(|_| enters)
        })
    }

    /// Whether some of the leaves (sorted) are under it.
    pub fn has_any(&self, leaves: &[usize]) -> bool {
        let first = leaves.partition_point(|&leaf| leaf < self.leaves.start);
        leaves.get(first).is_some_and(|&leaf| leaf < self.leaves.end)
    }

    pub fn is_struct(&self) -> bool {
        matches!(self.field.data_type(), DataType::Struct(_))
    }

    pub fn is_list(&self) -> bool {
        matches!(self.field.data_type(), DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
    }

    pub fn is_leaf(&self) -> bool {
        self.children.is_empty() && !self.is_struct()
    }
}

/// What the file says of the leaves outside of variants, in their order, beyond what Arrow's types say: for whoever
/// writes them again ([`ANNOTATION`](crate::parquet::write::schema::ANNOTATION)).
pub fn annotations(columns: &[Node], parquet: &SchemaDescriptor) -> Vec<Option<&'static str>> {
    fn visit(node: &Node, parquet: &SchemaDescriptor, out: &mut Vec<Option<&'static str>>) {
        if is_variant(&node.field) {
            return;
        }
        if node.is_leaf() {
            out.extend(node.leaves.clone().map(|leaf| annotation(&parquet.column(leaf))));
        }
        node.children.iter().for_each(|child| visit(child, parquet, out));
    }
    let mut out = Vec::new();
    columns.iter().for_each(|column| visit(column, parquet, &mut out));
    out
}

fn annotation(leaf: &ColumnDescriptor) -> Option<&'static str> {
    match (leaf.logical_type_ref(), leaf.converted_type()) {
        (Some(LogicalType::Uuid), _) => Some("UUID"),
        (Some(LogicalType::Json), _) | (None, ConvertedType::JSON) => Some("JSON"),
        (Some(LogicalType::Bson), _) | (None, ConvertedType::BSON) => Some("BSON"),
        (Some(LogicalType::Enum), _) | (None, ConvertedType::ENUM) => Some("ENUM"),
        (Some(LogicalType::Geometry { .. }), _) => Some("GEOMETRY"),
        (Some(LogicalType::Geography { .. }), _) => Some("GEOGRAPHY"),
        _ => None,
    }
}

/// The schema to read with: what arrow-rs makes of the Parquet types, except that INT96 timestamps become instants
/// in microseconds, as Spark writes and reads them (INT96 has no other meaning), that an ENUM is a text
/// (LogicalTypes.md, "ENUM"), and that groups with the annotation VARIANT are marked ("VARIANT").
pub fn reading_schema(inferred: &Schema, parquet: &SchemaDescriptor) -> Schema {
    Schema::new(fields_as_read(inferred.fields(), Some(parquet.root_schema()), parquet, &mut 0))
}

/// `group` is what the file says of these fields, where it is known.
fn fields_as_read(fields: &Fields, group: Option<&Type>, parquet: &SchemaDescriptor, leaf: &mut usize) -> Fields {
    let said = group.filter(|group| group.is_group()).map_or(&[][..], Type::get_fields);
    let as_read = |(at, field): (usize, &FieldRef)| {
        let same_name = |said: &&TypePtr| said.name() == field.name();
        let said = said.get(at).filter(same_name).or_else(|| said.iter().find(same_name));
        field_as_read(field, said.map(AsRef::as_ref), parquet, leaf)
    };
    fields.iter().enumerate().map(as_read).collect()
}

fn field_as_read(field: &FieldRef, said: Option<&Type>, parquet: &SchemaDescriptor, leaf: &mut usize) -> FieldRef {
    let inner = |f: &FieldRef, leaf: &mut usize| field_as_read(f, said.and_then(|said| below(said, f)), parquet, leaf);
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields_as_read(fields, said, parquet, leaf)),
        DataType::List(f) => DataType::List(inner(f, leaf)),
        DataType::LargeList(f) => DataType::LargeList(inner(f, leaf)),
        DataType::Map(f, sorted) => DataType::Map(inner(f, leaf), *sorted),
        other => {
            let at = *leaf;
            *leaf += 1;
            match other {
                DataType::Timestamp(TimeUnit::Nanosecond, _)
                    if at < parquet.num_columns() && parquet.column(at).physical_type() == PhysicalType::INT96 =>
                {
                    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
                }
                DataType::Binary if at < parquet.num_columns() && annotation(&parquet.column(at)) == Some("ENUM") => {
                    DataType::Utf8
                }
                other => other.clone(),
            }
        }
    };
    let annotation = said.and_then(|said| said.get_basic_info().logical_type_ref());
    let is_variant = matches!(annotation, Some(LogicalType::Variant(_))) && matches!(data_type, DataType::Struct(_));
    if is_variant {
        return Arc::new(mark(field.as_ref().clone().with_data_type(data_type)));
    }
    if &data_type == field.data_type() {
        return field.clone();
    }
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// What the file says of the elements of a list or the entries of a map, whose group it is: the repeated field, or the only
/// one below it (Parquet, LogicalTypes.md, "Lists" and "Maps").
fn below<'a>(group: &'a Type, field: &Field) -> Option<&'a Type> {
    let info = group.get_basic_info();
    if info.has_repetition() && info.repetition() == Repetition::REPEATED {
        return Some(group);
    }
    let fields = |group: &'a Type| if group.is_group() { group.get_fields() } else { &[] };
    let repeated = fields(group).first()?;
    match (fields(repeated), field.data_type()) {
        ([only], DataType::Struct(children)) => {
            let names = fields(only).iter().map(|child| child.name());
            Some(if names.eq(children.iter().map(|child| child.name())) { only } else { repeated })
        }
        ([only], _) => Some(only),
        _ => Some(repeated),
    }
}

/// The schema to decode with: as [`reading_schema`], and the metadata of variants as views. `marked` is the same
/// schema with its variants marked.
pub fn decoding_schema(schema: &Schema, marked: &Schema) -> Schema {
    Schema::new(with_views(schema.fields(), marked.fields()))
}

fn with_views(fields: &Fields, marked: &Fields) -> Fields {
    fields.iter().zip(marked).map(|(field, marked)| with_view(field, marked)).collect()
}

fn with_view(field: &FieldRef, marked: &FieldRef) -> FieldRef {
    let data_type = match (field.data_type(), marked.data_type()) {
        (DataType::Struct(children), _) if is_variant(marked) => DataType::Struct(
            children
                .iter()
                .map(|child| match (child.name().as_str(), child.data_type()) {
                    ("metadata", DataType::Binary) => {
                        Arc::new(child.as_ref().clone().with_data_type(DataType::BinaryView))
                    }
                    _ => child.clone(),
                })
                .collect(),
        ),
        (DataType::Struct(children), DataType::Struct(marks)) => DataType::Struct(with_views(children, marks)),
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Marks the columns that the caller knows to be variants although the file does not say so (Delta tables from
/// before the annotation): each is a struct of metadata and value (and typed_value).
pub fn mark_variants(schema: &Schema, variants: &[Vec<String>]) -> Result<Schema> {
    let mut fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
    for names in variants {
        mark_path(&mut fields, names, names)?;
    }
    Ok(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn mark_path(fields: &mut [FieldRef], names: &[String], whole: &[String]) -> Result<()> {
    let Some((name, rest)) = names.split_first() else { return Ok(()) };
    // A column that an older file does not have is read as nulls.
    let Some(field) = fields.iter_mut().find(|f| f.name() == name) else { return Ok(()) };
    if rest.is_empty() && is_variant(field) {
        return Ok(());
    }
    if rest.is_empty() {
        let DataType::Struct(children) = field.data_type() else {
            return Err(wrong_type(field, whole));
        };
        if !children.iter().any(|c| c.name() == "metadata") {
            return Err(wrong_type(field, whole));
        }
        *field = Arc::new(mark(field.as_ref().clone()));
        return Ok(());
    }
    let data_type = match field.data_type() {
        DataType::Struct(children) => {
            let mut children: Vec<FieldRef> = children.iter().cloned().collect();
            mark_path(&mut children, rest, whole)?;
            DataType::Struct(children.into())
        }
        DataType::List(f) => DataType::List(mark_child(f, rest, whole)?),
        DataType::LargeList(f) => DataType::LargeList(mark_child(f, rest, whole)?),
        DataType::Map(f, sorted) => {
            let DataType::Struct(entries) = f.data_type() else { return Err(wrong_type(f, whole)) };
            let mut entries: Vec<FieldRef> = entries.iter().cloned().collect();
            let at = if rest[0] == "key" { 0 } else { 1 };
            if let Some(entry) = entries.get_mut(at) {
                *entry = mark_child(entry, rest, whole)?;
            }
            DataType::Map(Arc::new(f.as_ref().clone().with_data_type(DataType::Struct(entries.into()))), *sorted)
        }
        _ => return Err(wrong_type(field, whole)),
    };
    *field = Arc::new(field.as_ref().clone().with_data_type(data_type));
    Ok(())
}

/// A list's element or a map's value, whatever the file calls it; `names` starts with Delta's name of it
/// (`element`, `key`, `value`).
fn mark_child(field: &FieldRef, names: &[String], whole: &[String]) -> Result<FieldRef> {
    let mut one = [field.clone()];
    let mut renamed = names.to_vec();
    renamed[0] = field.name().clone();
    mark_path(&mut one, &renamed, whole)?;
    let [field] = one;
    Ok(field)
}

fn wrong_type(field: &Field, names: &[String]) -> Error {
    Error::new(
        Code::MalformedShredding,
        format!("the column {} is a VARIANT of the table, but {} in the file", names.join("."), field.data_type()),
    )
    .rule(1)
    .path(names.join("."))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{DataType, Field};
    use parquet::arrow::parquet_to_arrow_schema;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::reading_schema;
    use crate::layout::standard::is_variant;

    /// The paths of the fields that are marked as variants.
    fn marked(field: &Field, path: &str) -> Vec<String> {
        let path = format!("{path}/{}", field.name());
        let below: Vec<String> = match field.data_type() {
            DataType::Struct(fields) => fields.iter().flat_map(|f| marked(f, &path)).collect(),
            DataType::List(f) | DataType::Map(f, _) => marked(f, &path),
            _ => Vec::new(),
        };
        is_variant(field).then_some(path).into_iter().chain(below).collect()
    }

    #[test]
    fn what_is_annotated_is_marked_wherever_it_stands() {
        const PAIR: &str = "{ REQUIRED BINARY metadata; OPTIONAL BINARY value; }";
        for (group, wanted) in [
            (format!("OPTIONAL GROUP v (VARIANT) {PAIR}"), "/v"),
            (format!("OPTIONAL GROUP v {PAIR}"), ""),
            (format!("OPTIONAL GROUP s {{ REQUIRED INT96 t; OPTIONAL GROUP v (VARIANT) {PAIR} }}"), "/s/v"),
            (format!("REQUIRED GROUP v {{ OPTIONAL GROUP v (VARIANT) {PAIR} }}"), "/v/v"),
            (
                format!(
                    "OPTIONAL GROUP l (LIST) {{ REPEATED GROUP list {{ OPTIONAL GROUP element (VARIANT) {PAIR} }} }}"
                ),
                "/l/element",
            ),
            (
                format!(
                    "OPTIONAL GROUP l (LIST) {{ REPEATED GROUP array {{ REQUIRED INT32 n; OPTIONAL GROUP v (VARIANT) {PAIR} }} }}"
                ),
                "/l/array/v",
            ),
            (
                format!(
                    "OPTIONAL GROUP l (LIST) {{ REPEATED GROUP list {{ OPTIONAL GROUP element (LIST) {{ REPEATED GROUP list \
                     {{ OPTIONAL GROUP element (VARIANT) {PAIR} }} }} }} }}"
                ),
                "/l/element/element",
            ),
            (format!("REPEATED GROUP r {{ OPTIONAL GROUP v (VARIANT) {PAIR} }}"), "/r/r/v"),
            (
                format!(
                    "OPTIONAL GROUP m (MAP) {{ REPEATED GROUP key_value {{ REQUIRED BINARY key (UTF8); \
                     OPTIONAL GROUP value (VARIANT) {PAIR} }} }}"
                ),
                "/m/key_value/value",
            ),
        ] {
            let parquet = parse_message_type(&format!("message schema {{ {group} }}")).unwrap();
            let parquet = SchemaDescriptor::new(Arc::new(parquet));
            let schema = reading_schema(&parquet_to_arrow_schema(&parquet, None).unwrap(), &parquet);
            assert_eq!(marked(schema.field(0), "").join(" "), wanted, "{group}");
        }
    }
}
