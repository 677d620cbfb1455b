"""Early columns hold what went in: mica's own by any tree, and other writers' however they spread values over
`untyped_value` and the typed columns. Paths and predicates answer as they do on the unshredded rows.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mica
from mica import _native
from mica.variant.kernel import Request
from tests.early import EXPRESSIONS, TREE, untyped, values
from tests.early import variants as table_of
from tests.property.test_reconstruction import DOCUMENTS, KEYS, TREES, plain, variants

STEPS = st.lists(KEYS | st.integers(0, 3), max_size=3)
TARGETS: list[Any] = [None, pa.string(), pa.int32(), pa.float64(), pa.decimal128(20, 2)]


@pytest.mark.slow
@given(st.lists(DOCUMENTS, min_size=1, max_size=8), TREES, STEPS)
def test_mica_reads_what_it_shreds(docs: list[Any], tree: pa.DataType, steps: list[Any]) -> None:
    whole = variants(docs)
    early = _native.shred(whole, {("v",): tree}, early=True)
    back = _native.unshred(early)
    _native.validate(back)
    assert plain(back) == docs
    assert plain(_native.unshred(_native.fit_batch(early, _native.fitting_schema(early)))) == docs
    same_paths(whole, early, steps)


def same_paths(whole: pa.RecordBatch, early: pa.RecordBatch, steps: list[Any]) -> None:
    items = [Request(("v",), steps, type_) for type_ in TARGETS]
    one, other = _native.extract(whole, items), _native.extract(early, items)
    assert one.drop_columns(["0"]).equals(other.drop_columns(["0"]))
    found = _native.variant_to_json(pa.record_batch([other.column(0)], schema=pa.schema([other.schema.field(0)])))
    expected = _native.variant_to_json(pa.record_batch([one.column(0)], schema=pa.schema([one.schema.field(0)])))
    assert found.equals(expected)


# --- other writers ---------------------------------------------------------------------------------------------------

MISSING = object()


def group(tree: pa.DataType) -> pa.DataType:
    """The early columns of a tree of objects, arrays and leaves."""
    fields: list[Any] = [("untyped_value", pa.binary())]
    if pa.types.is_struct(tree):
        fields.append(("object", pa.struct([(f.name, group(f.type)) for f in tree])))
    elif pa.types.is_list(tree):
        fields.append(("array", pa.list_(pa.field("element", group(tree.value_type)))))
    elif not pa.types.is_null(tree):
        fields.append(("typed_value", tree))
    return pa.struct(fields)


def spread(document: Any, tree: pa.DataType, rng: random.Random) -> dict[str, Any] | None:
    """The columns of a value as a careless writer may fill them: whatever is legal, by chance."""
    row: dict[str, Any] = dict.fromkeys(f.name for f in group(tree))
    if document is MISSING:
        return row if rng.random() < 0.5 else None
    careless = rng.random() < 0.2
    if pa.types.is_struct(tree) and isinstance(document, dict) and not careless:
        row["object"], left = {}, {k: v for k, v in document.items() if tree.get_field_index(k) < 0}
        for f in tree:
            value = document.get(f.name, MISSING)
            if value is not MISSING and rng.random() < 0.2:
                left[f.name], value = value, MISSING
            row["object"][f.name] = spread(value, f.type, rng)
        if left or rng.random() < 0.1:
            row["untyped_value"] = untyped(left)
    elif pa.types.is_list(tree) and isinstance(document, list) and not careless:
        row["array"] = [spread(value, tree.value_type, rng) for value in document]
    elif fits(document, tree) and not careless:
        row["typed_value"] = document
    elif document is None and "typed_value" in row and rng.random() < 0.3:
        row["untyped_value"] = untyped(None)
        row["typed_value"] = ANYTHING[tree]  # the pseudocode's typed value beside a Variant null
    else:
        row["untyped_value"] = untyped(document)
    return row


ANYTHING: dict[pa.DataType, Any] = {pa.bool_(): True, pa.int64(): 5, pa.string(): "x"}


def fits(document: Any, tree: pa.DataType) -> bool:
    kind = {pa.bool_(): bool, pa.int64(): int, pa.string(): str}.get(tree)
    return kind is not None and type(document) is kind


LEAVES = st.sampled_from([pa.bool_(), pa.int64(), pa.string(), pa.null()])
CARELESS = st.recursive(
    LEAVES,
    lambda inner: (
        st.dictionaries(KEYS, inner, min_size=1, max_size=4).map(lambda d: pa.struct(list(d.items())))
        | inner.map(pa.list_)
    ),
    max_leaves=6,
)


@given(
    docs=st.lists(DOCUMENTS, min_size=1, max_size=12), tree=CARELESS, steps=STEPS, seed=st.integers(0, 2**32),
    rows=st.integers(1, 5),
)  # fmt: skip
def test_mica_reads_what_others_spread(
    docs: list[Any], tree: pa.DataType, steps: list[Any], seed: int, rows: int, tmp_path_factory: Any
) -> None:
    rng = random.Random(seed)
    path: Path = tmp_path_factory.mktemp("early") / "v.parquet"
    column = pa.array([spread(doc, tree, rng) for doc in docs], group(tree))
    pq.write_table(pa.table({"v": column}), path, row_group_size=rows, write_page_index=True)
    assert values(path, early=["v"]) == docs
    reader = _native.FileReader(path=str(path), name="v", early=[["v"]])
    items = [Request(("v",), steps, type_) for type_ in TARGETS[1:]]
    found = pa.Table.from_batches(reader.scan(items))
    expected = _native.extract(variants(docs), items)
    assert found.combine_chunks().to_batches()[0].to_pydict() == expected.to_pydict()


OPERATORS = st.sampled_from(["=", "<", ">=", "<>", "<=>"])


@pytest.mark.slow
@given(
    docs=st.lists(st.fixed_dictionaries({}, optional={"a": DOCUMENTS, "b": st.fixed_dictionaries({"a": DOCUMENTS})})
                  | DOCUMENTS, min_size=1, max_size=12),
    operator=OPERATORS, path=st.sampled_from(["a", "b.a"]), number=st.integers(-3, 3), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_predicates_find_every_row(
    docs: list[Any], operator: str, path: str, number: int, seed: int, tmp_path_factory: Any
) -> None:
    rng = random.Random(seed)
    tree = pa.struct([("a", pa.int64()), ("b", pa.struct([("a", pa.int64())]))])
    folder: Path = tmp_path_factory.mktemp("early")
    column = pa.array([spread(doc, tree, rng) for doc in docs], group(tree))
    pq.write_table(pa.table({"v": column}), folder / "foreign.parquet", row_group_size=2, write_page_index=True)
    rows = table_of(*docs)
    mica.write_parquet(rows, folder / "plain.parquet", shredding={"v": None})
    mica.write_parquet(rows, folder / "standard.parquet", shredding={"v": tree})
    mica.write_parquet(rows, folder / "early.parquet", shredding={"v": tree}, layout="early")
    where = f"try_variant_get(v, '$.{path}', 'bigint') {operator} {number}"
    columns = {"t": "cast(v as string)", "n": f"try_variant_get(v, '$.{path}', 'double')", "k": f"v:{path}::string"}
    answers = [
        mica.read_parquet(folder / f"{name}.parquet", where=where, columns=columns).to_arrow().to_pylist()
        for name in ("plain", "standard", "early", "foreign")
    ]
    assert all(answer == answers[0] for answer in answers)


NUMBERS = st.integers(-200, 200) | st.sampled_from([123, 1.25, 1.5, 0.001, 2**40, 1e300])
LEAF_VALUES = NUMBERS | st.sampled_from(["x", "123", "5", "s1", "true", "2024-01-01", "", None, True, False])
ANYTHING_BELOW = LEAF_VALUES | st.lists(LEAF_VALUES, max_size=3) | st.dictionaries(st.sampled_from("acz"), LEAF_VALUES)
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "a": ANYTHING_BELOW,
        "b": st.fixed_dictionaries({}, optional=dict.fromkeys("acz", ANYTHING_BELOW)) | ANYTHING_BELOW,
        "c": ANYTHING_BELOW,
        "l": st.lists(LEAF_VALUES, max_size=3) | ANYTHING_BELOW,
        "z": ANYTHING_BELOW,
    },
)


def is_predicate(text: str) -> bool:
    """Whether the expression gives a boolean."""
    bare = text.startswith(("try_variant_get", "try_cast", "cast")) and text.endswith(")") and " IN " not in text
    return not bare and not any(f") {op} " in text for op in "+-*")


#: Strict ones fail for values: then they fail in all of them.
STRICT = [f"variant_get(v, '{path}', '{type_}')" for path in ("$.a", "$.b.c", "$.l") for type_ in ("int", "string")]


@pytest.mark.slow
@given(
    docs=st.lists(SHAPED | ANYTHING_BELOW | st.just(...), min_size=1, max_size=10), ansi=st.booleans(),
    where=st.sampled_from([e for e in EXPRESSIONS if e.count("try_variant_get") and is_predicate(e)]),
    strict=st.sampled_from(STRICT), asked=st.lists(st.sampled_from(EXPRESSIONS), min_size=8, max_size=24),
)  # fmt: skip
def test_every_expression_is_the_same_in_all_layouts(
    docs: list[Any], ansi: bool, where: str, strict: str, asked: list[str], tmp_path_factory: Any
) -> None:
    folder: Path = tmp_path_factory.mktemp("expressions")
    rows = table_of(*docs)
    for name, options in (
        ("plain", {"shredding": {"v": None}}),
        ("standard", {"shredding": {"v": TREE}}),
        ("early", {"shredding": {"v": TREE}, "layout": "early"}),
    ):
        mica.write_parquet(rows, folder / f"{name}.parquet", **options)  # type: ignore[arg-type]
    columns = {f"e{i}": text for i, text in enumerate(asked)}
    answers: list[Any] = []
    for name in ("plain", "standard", "early"):
        path = folder / f"{name}.parquet"
        found = mica.read_parquet(path, columns=columns, ansi=ansi).to_arrow().combine_chunks()
        kept = mica.read_parquet(path, columns=["v"], where=where, ansi=ansi).to_pandas()["v"].tolist()
        try:
            one = mica.read_parquet(path, columns={"x": strict}, ansi=ansi).to_arrow().to_pydict()
        except mica.UserError as e:
            one = {"x": e.code}
        answers.append([found, kept, one])
    assert answers[0] == answers[1] == answers[2]


@given(docs=st.lists(DOCUMENTS, min_size=1, max_size=12), tree=CARELESS, seed=st.integers(0, 2**32))
def test_columns_move_without_a_change(docs: list[Any], tree: pa.DataType, seed: int, tmp_path_factory: Any) -> None:
    rng = random.Random(seed)
    path: Path = tmp_path_factory.mktemp("early") / "v.parquet"
    column = pa.array([spread(doc, tree, rng) for doc in docs], group(tree))
    pq.write_table(pa.table({"v": column}), path, row_group_size=5)
    there = moved(path, "standard", path.parent / "standard.parquet")
    assert values(there) == docs
    assert mica.check(there).ok
    assert values(moved(there, "early", path.parent / "back.parquet"), early=["v"]) == docs


def held(document: Any, tree: pa.DataType) -> Any:
    """What the tree's typed columns hold of a value; MISSING where it is nothing."""
    if pa.types.is_struct(tree):
        if not isinstance(document, dict):
            return MISSING
        parts = {f.name: held(document.get(f.name, MISSING), f.type) for f in tree}
        return {name: part for name, part in parts.items() if part is not MISSING}
    if pa.types.is_list(tree):
        elements = [held(value, tree.value_type) for value in document] if isinstance(document, list) else MISSING
        return elements if elements is MISSING else [value for value in elements if value is not MISSING]
    return document if fits(document, tree) else MISSING


@pytest.mark.slow
@given(
    docs=st.lists(DOCUMENTS, min_size=1, max_size=12), tree=CARELESS, full=st.booleans(), early=st.booleans(),
    omit=st.booleans(),
)  # fmt: skip
def test_a_conversion_changes_nothing(
    docs: list[Any], tree: pa.DataType, full: bool, early: bool, omit: bool, tmp_path_factory: Any
) -> None:
    """There, page by page or column by column, is what a writer would have written; and back."""
    folder: Path = tmp_path_factory.mktemp("conversion")
    if full:
        docs = [... if (kept := held(doc, tree)) is MISSING else kept for doc in docs]
    rows, expected = table_of(*docs), [None if doc is ... else doc for doc in docs]
    source, to = ("early", "standard") if early else ("standard", "early")
    untyped = {"untyped": "where needed"} if early and omit else {}
    mica.write_parquet(rows, folder / "source.parquet", shredding={"v": tree}, layout=source, **untyped)
    mica.write_parquet(rows, folder / "direct.parquet", shredding={"v": tree}, layout=to)
    forced = {"early": ["v"]}
    there = mica.convert_files(folder / "source.parquet", folder / "there", layout=to, to="parquet", **forced)
    assert (there.rows, there.rebuilt) == (len(docs), 0)
    assert values(folder / "there", **forced) == expected
    [made] = (folder / "there").iterdir()
    assert pq.read_schema(made).field("v").type == pq.read_schema(folder / "direct.parquet").field("v").type
    if full:
        assert pq.read_table(made)["v"].to_pylist() == pq.read_table(folder / "direct.parquet")["v"].to_pylist()
    assert mica.check(made).ok
    back = mica.convert_files(made, folder / "back", layout=source, to="parquet", **forced)
    assert (back.rebuilt, values(folder / "back", **forced)) == (0, expected)


def moved(path: Path, layout: str, to: Path) -> Path:
    reader = _native.FileReader(path=str(path), name="v", early=[["v"]])
    batches = list(reader.scan([Request(("v",), name="v", layout=layout)], max_rows=7))
    rows = [batch.select(["v"]) for batch in batches]
    writer = _native.FileWriter(rows[0].schema, path=str(to))
    for batch in rows:
        writer.write(batch)
    writer.close()
    return to
