//! Values to compare: what a tape or an arrow-rs Variant says, numbers as equal when they are (rule 17).

use mica_kernel::tape::{Kind, TapeView};
use parquet_variant::Variant;

#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    Null,
    Bool(bool),
    /// Unscaled digits and scale, without trailing zeros.
    Number(i128, u8),
    Double(u64),
    Text(String),
    Other(String),
    List(Vec<Model>),
    Object(Vec<(String, Model)>),
}

pub fn number(mut unscaled: i128, mut scale: u8) -> Model {
    while scale > 0 && unscaled % 10 == 0 {
        (unscaled, scale) = (unscaled / 10, scale - 1);
    }
    Model::Number(unscaled, scale)
}

pub fn of_tape(view: &TapeView, at: usize) -> Model {
    let node = view.nodes[at];
    let children = || {
        let mut child = at + 1;
        (0..node.a)
            .map(|_| {
                let here = child;
                child = view.nodes[here].next(here);
                here
            })
            .collect::<Vec<_>>()
    };
    match node.kind {
        Kind::Null => Model::Null,
        Kind::True => Model::Bool(true),
        Kind::False => Model::Bool(false),
        Kind::Int => number(node.int().into(), 0),
        Kind::Decimal => number(view.wide(&node), node.aux),
        Kind::Double => Model::Double(node.bits()),
        Kind::Str => Model::Text(String::from_utf8(view.bytes(&node).to_vec()).unwrap()),
        Kind::Array => Model::List(children().into_iter().map(|c| of_tape(view, c)).collect()),
        Kind::Object => {
            let field = |c: usize| (view.names.get(view.nodes[c].name).to_owned(), of_tape(view, c));
            let mut fields: Vec<_> = children().into_iter().map(field).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Model::Object(fields)
        }
        _ => Model::Other(format!("{:?}", view.scalar(&node))),
    }
}

pub fn of_variant(variant: &Variant) -> Model {
    match variant {
        Variant::Null => Model::Null,
        Variant::BooleanTrue => Model::Bool(true),
        Variant::BooleanFalse => Model::Bool(false),
        Variant::Int8(v) => number((*v).into(), 0),
        Variant::Int16(v) => number((*v).into(), 0),
        Variant::Int32(v) => number((*v).into(), 0),
        Variant::Int64(v) => number((*v).into(), 0),
        Variant::Decimal4(v) => number(v.integer().into(), v.scale()),
        Variant::Decimal8(v) => number(v.integer().into(), v.scale()),
        Variant::Decimal16(v) => number(v.integer(), v.scale()),
        Variant::Double(v) => Model::Double(v.to_bits()),
        Variant::String(v) => Model::Text((*v).to_owned()),
        Variant::ShortString(v) => Model::Text(v.as_str().to_owned()),
        Variant::List(list) => Model::List(list.iter().map(|v| of_variant(&v)).collect()),
        Variant::Object(object) => Model::Object(object.iter().map(|(k, v)| (k.to_owned(), of_variant(&v))).collect()),
        other => Model::Other(format!("{other:?}")),
    }
}
