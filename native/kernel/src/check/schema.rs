//! The schema of a file's variants against the rules: annotations, children, required and optional, types.
//!
//! A group that is no variant by its annotation is one all the same when the caller says so (a table's schema), or
//! when it has just the children of one: then the annotation is what is missing.

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::schema::types::Type;

use crate::check::findings::{Findings, ViolationKind};
use crate::layout::Layout;
use crate::layout::standard::{METADATA, TYPED_VALUE, VALUE, is_variant};
use crate::limits::MAX_TREE_DEPTH;
use crate::parquet::file::FileReader;
use crate::parquet::level::layout;
use crate::parquet::schema::Node;

const NO_ANNOTATION: ViolationKind = ("missing_annotation", Some(1));
const NO_VERSION: ViolationKind = ("missing_version", Some(1));
const UNKNOWN_CHILD: ViolationKind = ("unknown_child", Some(1));
const NOT_BINARY: ViolationKind = ("not_binary", Some(2));
const NO_METADATA: ViolationKind = ("missing_metadata", Some(2));
const REPETITION: ViolationKind = ("required_or_optional", Some(2));
const TWICE: ViolationKind = ("name_twice", Some(12));
const TYPE: ViolationKind = ("unsupported_type", Some(21));
const ARRAY: ViolationKind = ("not_three_levels", Some(29));
const NEITHER: ViolationKind = ("neither_value_nor_typed_value", Some(29));
const ELEMENT: ViolationKind = ("required_or_optional", Some(29));
const FIELD: ViolationKind = ("required_or_optional", Some(34));
const NO_GROUP: ViolationKind = ("field_no_group", Some(34));
const DEPTH: ViolationKind = ("too_deep", Some(40));

pub fn check(file: &FileReader, findings: &mut Findings) {
    let root = file.metadata().file_metadata().schema_descr().root_schema();
    // Paths to look at, with what the caller knows of them.
    let mut work: Vec<(&Type, Option<&Node>, String)> = Vec::new();
    for ty in root.get_fields() {
        let node = file.columns().iter().find(|node| node.field.name() == ty.name());
        work.push((ty, node, ty.name().to_string()));
    }
    while let Some((ty, node, path)) = work.pop() {
        if ty.is_primitive() {
            continue;
        }
        let annotated = match ty.get_basic_info().logical_type_ref() {
            Some(LogicalType::Variant(variant)) => {
                if variant.specification_version != Some(1) {
                    findings.add(NO_VERSION, &path, None, || match variant.specification_version {
                        Some(version) => format!("the annotation has version {version}; the only version is 1"),
                        None => "the annotation VARIANT has no version; Spark requires 1".into(),
                    });
                }
                true
            }
            _ => false,
        };
        if node.is_some_and(|node| layout(node) == Layout::Early) {
            continue; // Opening the file refuses an unsound one: nothing in it may be passed over.
        }
        if annotated || node.is_some_and(|node| is_variant(&node.field)) || looks_like_one(ty) {
            if !annotated {
                let found = || "a group of metadata and value without the annotation VARIANT(1)".into();
                findings.add(NO_ANNOTATION, &path, None, found);
            }
            variant(ty, &path, findings);
            continue;
        }
        // Lists and maps: Arrow has one child where Parquet has a repeated group between.
        let list = node.is_some_and(Node::is_list);
        for child in ty.get_fields() {
            let path = format!("{path}.{}", child.name());
            let below = node.and_then(|n| if n.is_struct() { n.child(child.name()) } else { n.children.first() });
            if list && child.is_group() && child.get_fields().len() == 1 {
                let element = &child.get_fields()[0];
                work.push((element, below, format!("{path}.{}", element.name())));
            } else {
                work.push((child, below, path));
            }
        }
    }
}

/// Exactly the children of a variant, metadata and value binary.
fn looks_like_one(ty: &Type) -> bool {
    let children = ty.get_fields();
    let has = |name: &str| children.iter().any(|c| c.name() == name && is_binary(c));
    has(METADATA)
        && has(VALUE)
        && children.iter().all(|c| matches!(c.name(), METADATA | VALUE | TYPED_VALUE))
        && ty.get_basic_info().logical_type_ref().is_none()
}

fn is_binary(ty: &Type) -> bool {
    ty.is_primitive()
        && ty.get_physical_type() == PhysicalType::BYTE_ARRAY
        && ty.get_basic_info().logical_type_ref().is_none()
        && ty.get_basic_info().converted_type() == ConvertedType::NONE
}

fn repetition(ty: &Type) -> Repetition {
    if ty.get_basic_info().has_repetition() { ty.get_basic_info().repetition() } else { Repetition::REQUIRED }
}

/// The column itself and the groups below it.
fn variant(ty: &Type, path: &str, findings: &mut Findings) {
    match ty.get_fields().iter().find(|c| c.name() == METADATA) {
        None => findings.add(NO_METADATA, path, None, || "a variant without a child metadata".into()),
        Some(metadata) => {
            let path = format!("{path}.{METADATA}");
            binary(metadata, &path, findings);
            if repetition(metadata) != Repetition::REQUIRED {
                findings.add(REPETITION, &path, None, || "metadata is optional, but must be required".into());
            }
        }
    }
    let mut work = vec![(ty, path.to_string(), 0)];
    while let Some((group, path, depth)) = work.pop() {
        if depth > MAX_TREE_DEPTH {
            findings
                .add(DEPTH, &path, None, || format!("nests deeper than the {MAX_TREE_DEPTH} levels that mica reads"));
            continue;
        }
        children(group, &path, depth == 0, findings);
        if let Some(typed) = group.get_fields().iter().find(|c| c.name() == TYPED_VALUE) {
            typed_value(typed, format!("{path}.{TYPED_VALUE}"), depth, findings, &mut work);
        }
    }
}

/// Names, and whether `value` is what it must be beside `typed_value` or alone.
fn children(group: &Type, path: &str, root: bool, findings: &mut Findings) {
    let fields = group.get_fields();
    for (at, child) in fields.iter().enumerate() {
        let name = child.name();
        if fields[..at].iter().any(|other| other.name() == name) {
            findings.add(TWICE, path, None, || format!("two children are named {name:?}"));
        }
        let known = matches!(name, VALUE | TYPED_VALUE) || root && name == METADATA || name.starts_with('_');
        if !known {
            findings
                .add(UNKNOWN_CHILD, path, None, || format!("a child named {name:?}, which a variant does not have"));
        }
    }
    let shredded = fields.iter().any(|c| c.name() == TYPED_VALUE);
    match fields.iter().find(|c| c.name() == VALUE) {
        // A `value` that is not there is null in every row: allowed by some writers, and of one meaning.
        None if shredded => {}
        None => findings.add(NEITHER, path, None, || "a group with neither value nor typed_value".into()),
        Some(value) => {
            let path = format!("{path}.{VALUE}");
            binary(value, &path, findings);
            let optional = repetition(value) == Repetition::OPTIONAL;
            if root && !shredded && optional {
                findings.add(REPETITION, &path, None, || "value is optional, although nothing is shredded".into());
            } else if shredded && !optional {
                findings.add(REPETITION, &path, None, || "value is required beside typed_value".into());
            }
        }
    }
}

fn binary(ty: &Type, path: &str, findings: &mut Findings) {
    if !is_binary(ty) {
        findings.add(NOT_BINARY, path, None, || format!("{}, but plain binary is required", shown(ty)));
    }
}

/// The typed column of a level; its groups are put on the list of work.
fn typed_value<'a>(
    ty: &'a Type,
    path: String,
    depth: usize,
    findings: &mut Findings,
    work: &mut Vec<(&'a Type, String, usize)>,
) {
    if repetition(ty) != Repetition::OPTIONAL {
        findings.add(REPETITION, &path, None, || "typed_value is not optional".into());
    }
    if ty.is_primitive() {
        if !is_leaf_type(ty) {
            findings.add(TYPE, &path, None, || format!("{}, which is not a type of shredded variants", shown(ty)));
        }
        return;
    }
    let info = ty.get_basic_info();
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::List), _) | (None, ConvertedType::LIST) => array(ty, &path, depth, findings, work),
        (None, ConvertedType::NONE) => {
            for (at, field) in ty.get_fields().iter().enumerate() {
                let inner = format!("{path}.{}", field.name());
                if ty.get_fields()[..at].iter().any(|other| other.name() == field.name()) {
                    findings.add(TWICE, &path, None, || format!("the field {:?} is shredded twice", field.name()));
                }
                if field.is_primitive() {
                    findings
                        .add(NO_GROUP, &inner, None, || format!("a shredded field is {}, not a group", shown(field)));
                    continue;
                }
                if repetition(field) != Repetition::REQUIRED {
                    findings.add(FIELD, &inner, None, || "the group of a shredded field is not required".into());
                }
                work.push((field, inner, depth + 1));
            }
        }
        _ => findings.add(TYPE, &path, None, || format!("{}, which is not a type of shredded variants", shown(ty))),
    }
}

/// Parquet "Nested Types", LIST: `group (LIST) { repeated group list { required group element {…} } }`.
fn array<'a>(
    ty: &'a Type,
    path: &str,
    depth: usize,
    findings: &mut Findings,
    work: &mut Vec<(&'a Type, String, usize)>,
) {
    let [list] = ty.get_fields() else {
        return findings.add(ARRAY, path, None, || "a LIST must have one repeated child".into());
    };
    if list.is_primitive() || list.get_fields().len() != 1 || repetition(list) != Repetition::REPEATED {
        return findings.add(ARRAY, path, None, || "an array that is not a list of three levels".into());
    }
    let element = &list.get_fields()[0];
    let inner = format!("{path}.{}.{}", list.name(), element.name());
    if element.is_primitive() {
        return findings.add(ARRAY, &inner, None, || format!("the element is {}, not a group", shown(element)));
    }
    if repetition(element) != Repetition::REQUIRED {
        findings.add(ELEMENT, &inner, None, || "the group of an element is not required".into());
    }
    work.push((element, inner, depth + 1));
}

/// VariantShredding.md, "Shredded value types".
fn is_leaf_type(ty: &Type) -> bool {
    use ConvertedType as C;
    use LogicalType as L;
    use PhysicalType as P;
    let info = ty.get_basic_info();
    let fine = |unit: &TimeUnit| matches!(unit, TimeUnit::MICROS | TimeUnit::NANOS);
    match (ty.get_physical_type(), info.logical_type_ref(), info.converted_type()) {
        (P::BOOLEAN | P::INT32 | P::INT64 | P::FLOAT | P::DOUBLE | P::BYTE_ARRAY, None, C::NONE) => true,
        (P::INT32, Some(L::Integer(int)), _) => int.is_signed && matches!(int.bit_width, 8 | 16 | 32),
        (P::INT64, Some(L::Integer(int)), _) => int.is_signed && int.bit_width == 64,
        (P::INT32, Some(L::Date), _) => true,
        (P::INT64, Some(L::Timestamp(time)), _) => fine(&time.unit),
        (P::INT64, Some(L::Time(time)), _) => matches!(time.unit, TimeUnit::MICROS) && !time.is_adjusted_to_u_t_c,
        (P::INT32 | P::INT64 | P::BYTE_ARRAY | P::FIXED_LEN_BYTE_ARRAY, Some(L::Decimal(d)), _) => {
            (0..=38).contains(&d.scale) && (1..=38).contains(&d.precision)
        }
        (P::BYTE_ARRAY, Some(L::String), _) => true,
        (P::FIXED_LEN_BYTE_ARRAY, Some(L::Uuid), _) => true,
        // Writers from before logical types.
        (P::INT32, None, C::INT_8 | C::INT_16 | C::INT_32 | C::DATE | C::DECIMAL) => true,
        (P::INT64, None, C::INT_64 | C::TIMESTAMP_MICROS | C::DECIMAL) => true,
        (P::BYTE_ARRAY, None, C::UTF8 | C::DECIMAL) | (P::FIXED_LEN_BYTE_ARRAY, None, C::DECIMAL) => true,
        _ => false,
    }
}

fn shown(ty: &Type) -> String {
    let info = ty.get_basic_info();
    let what = if ty.is_group() { "a group".to_string() } else { ty.get_physical_type().to_string() };
    match (info.logical_type_ref(), info.converted_type()) {
        (None, ConvertedType::NONE) => what,
        (Some(logical), ConvertedType::NONE) => format!("{what} ({logical:?})"),
        (_, converted) => format!("{what} ({converted})"),
    }
}
