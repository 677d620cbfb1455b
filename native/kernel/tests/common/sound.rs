//! What the tests of damaged columns and files share: the tree that their documents are shredded by,
//! and what it is for a Variant that came back to be sound.

use arrow::array::{Array, AsArray, StructArray};
use mica_kernel::codec::decode::VariantDecoder;
use mica_kernel::names::Names;
use mica_kernel::tape::Tape;
use mica_kernel::tree::{Field, LeafType, Tree};

pub fn tree() -> Tree {
    let field = |name: &str, tree| Field { name: name.into(), tree };
    let c = || field("c", Tree::leaf(LeafType::String));
    let d = field("d", Tree::array(Tree::leaf(LeafType::Int64)));
    let e = Tree::array(Tree::object(vec![c()]).unwrap());
    let b = Tree::object(vec![c(), d]).unwrap();
    Tree::object(vec![field("a", Tree::leaf(LeafType::Int64)), field("b", b), field("e", e)]).unwrap()
}

/// Every row is one that the decoder accepts, with its ids in order.
pub fn assert_sound(variant: &StructArray) {
    let (metadata, values) = (variant.column(0).as_binary::<i32>(), variant.column(1).as_binary::<i32>());
    let (mut decoder, mut tape, mut names) = (VariantDecoder::new(), Tape::default(), Names::new());
    for row in (0..variant.len()).filter(|&row| variant.is_valid(row)) {
        let found = decoder.decode(metadata.value(row), values.value(row), &mut tape, &mut names);
        let found = found.unwrap_or_else(|e| panic!("row {row} came back unsound: {e}"));
        assert!(!found.unsorted_ids, "row {row} came back with unsorted ids");
    }
}
