"""Whatever is shredded, by whatever tree, comes back: reconstruction and paths give what went in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mica import _native
from mica.variant.kernel import Request
from mica.variant.values import decode

KEYS = st.sampled_from(["", "a", "b", "value", "typed_value", "list", "_id", "é", "\U00010000", "\uffff"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.integers(-3, 3)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=70)
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=20
)
LEAVES = st.sampled_from(
    [
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.decimal128(20, 3),
        pa.float64(),
        pa.string(),
        pa.null(),
    ]
)


def objects(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.dictionaries(KEYS, inner, min_size=1, max_size=4)
    return fields.map(lambda d: pa.struct(list(d.items())))


TREES = st.recursive(LEAVES, lambda inner: objects(inner) | inner.map(pa.list_), max_leaves=8)


def variants(docs: list[Any]) -> pa.RecordBatch:
    return _native.json_to_variant(pa.record_batch([pa.array([json.dumps(d) for d in docs])], ["json"]))


def plain(batch: pa.RecordBatch) -> list[Any]:
    return [decode(v["metadata"], v["value"]) for v in batch.column(0).to_pylist()]


@given(st.lists(DOCUMENTS, min_size=1, max_size=8), TREES)
def test_unshred_undoes_shred(docs: list[Any], tree: pa.DataType) -> None:
    shredded = _native.shred(variants(docs), {("v",): tree})
    back = _native.unshred(shredded)
    _native.validate(back)
    assert plain(back) == docs


@given(st.lists(DOCUMENTS, min_size=1, max_size=8), TREES, st.lists(KEYS | st.integers(0, 3), max_size=3))
def test_a_path_is_the_same_from_both_layouts(docs: list[Any], tree: pa.DataType, steps: list[Any]) -> None:
    whole = variants(docs)
    items: list[dict[str, Any]] = [
        Request(("v",), steps, type_) for type_ in (None, pa.string(), pa.int32(), pa.float64())
    ] + [Request(("v",), steps, json=True)]
    unshredded = _native.extract(whole, items)
    shredded = _native.extract(_native.shred(whole, {("v",): tree}), items)
    assert unshredded.drop_columns(["0"]).equals(shredded.drop_columns(["0"]))
    for one, other, text, doc in zip(
        *(b.to_pylist() for b in (unshredded["0"], shredded["0"], shredded["4"])), docs, strict=True
    ):
        expected = follow(doc, steps)
        assert text is None if expected is MISSING else json.loads(text) == expected
        for found in (one, other):
            assert (found is None) == (expected is MISSING)
            assert found is None or decode(found["metadata"], found["value"]) == expected
    of_variants = _native.variant_to_json(pa.record_batch([unshredded["0"]], ["v"]), timezone="UTC")
    assert unshredded["4"].equals(of_variants.column(0))


MISSING = object()


def follow(doc: Any, steps: list[Any]) -> Any:
    for step in steps:
        if isinstance(step, str) and isinstance(doc, dict):
            doc = doc.get(step, MISSING)
        elif isinstance(step, int) and isinstance(doc, list):
            doc = doc[step] if step < len(doc) else MISSING
        else:
            return MISSING
    return doc


@given(docs=st.lists(DOCUMENTS, min_size=1, max_size=30), tree=TREES)
def test_a_file_gives_back_what_was_written(docs: list[Any], tree: pa.DataType, tmp_path_factory: Any) -> None:
    path: Path = tmp_path_factory.mktemp("file") / "v.parquet"
    batch = _native.shred(variants(docs), {("v",): tree})
    writer = _native.FileWriter(batch.schema, path=str(path), row_group_rows=7, page_rows=2)
    writer.write(batch)
    writer.close()
    reader = _native.FileReader(path=str(path), name="v.parquet")
    ranges = [(at, min(at + 2, len(docs))) for at in range(0, len(docs), 3)]
    assert [d for b in reader.scan([Request(("v",))]) for d in plain(b)] == docs
    chosen = [doc for start, end in ranges for doc in docs[start:end]]
    assert [d for b in reader.scan([Request(("v",))], ranges=ranges) for d in plain(b)] == chosen
