"""Skipping on early columns: the rule of `parquet/residuals.rs`, and files that break what a reader may hope for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica import _native
from mica.variant.kernel import Request
from tests.early import LEAF, foreign, untyped, variants

ROWS = 400
GROUP = 100
SHREDDING = {"v": "struct<a: bigint, b: struct<c: bigint>>"}
TYPE = pa.struct([("untyped_value", pa.binary()), ("object", pa.struct([("a", LEAF)]))])


def kept(path: Path, steps: list[str], *, pages: bool = False) -> list[tuple[Any, Any, bool]]:
    """What the footer says of a path: (min, max, usable) a row group or page interval."""
    reader = _native.FileReader(path=str(path), name=path.name, early=True)
    item = Request(("v",), steps, pa.int64(), name="0")
    [bounds] = reader.bounds([item], pages=pages)
    found = bounds.column("0").to_pylist()
    return [(row["min"], row["max"], row["usable"]) for row in found]


def rows(path: Path, where: str) -> int:
    return mica.read_parquet(path, where=where).count()


def by_mica(path: Path, documents: list[Any], **options: Any) -> Path:
    """Written by mica, in row groups of 100 rows and pages of 20."""
    batch = variants(*documents).combine_chunks().to_batches()[0]
    tree = mica.variant.shredding.ShreddingSchema.of(options.pop("shredding", SHREDDING["v"])).tree
    shredded = _native.shred(batch, {("v",): tree}, early=True)
    writer = _native.FileWriter(shredded.schema, path=str(path), row_group_rows=GROUP, page_rows=20, **options)
    writer.write(shredded)
    writer.close()
    return path


def row(a: Any = None, left: Any = ..., top: Any = ...) -> dict[str, Any]:
    return {
        "untyped_value": None if top is ... else untyped(top),
        "object": {"a": {"untyped_value": None if left is ... else untyped(left), "typed_value": a}},
    }


def test_row_groups_and_pages_are_skipped_by_typed_bounds(tmp_path: Path) -> None:
    path = by_mica(tmp_path / "v.parquet", [{"a": i, "b": {"c": -i}, "z": "left"} for i in range(ROWS)])
    groups = [(start, start + GROUP - 1, True) for start in range(0, ROWS, GROUP)]
    assert kept(path, ["a"]) == groups
    assert kept(path, ["b", "c"]) == [(-last, -first, True) for first, last, _ in groups]
    assert kept(path, ["a"], pages=True)[:2] == [(0, 19, True), (20, 39, True)]
    assert rows(path, "v:a::bigint = 123") == 1
    assert rows(path, "v:b.c::bigint < -390") == 9


def test_a_scan_is_explained_as_in_the_standard_layout(tmp_path: Path) -> None:
    documents = [{"a": "123" if i == 250 else i, "b": {"c": -i}, "z": "left"} for i in range(ROWS)]
    [batch] = variants(*documents).to_batches()
    tree = mica.variant.shredding.ShreddingSchema.of(SHREDDING["v"]).tree
    told = []
    for early in (False, True):
        shredded = _native.shred(batch, {("v",): tree}, early=early)
        path = tmp_path / f"{early}.parquet"
        writer = _native.FileWriter(shredded.schema, path=str(path), row_group_rows=GROUP, page_rows=20)
        writer.write(shredded)
        writer.close()
        scan = mica.read_parquet(path, where="try_variant_get(v, '$.a', 'bigint') = 123 AND v:b.c::bigint < 0")
        found = scan.explain(analyze=True).to_dict()
        told.append(
            [found[key] for key in ("where", "files", "footers", "row_groups", "rows")] + [found["analyze"]["rows"]]
        )
    assert told[0] == told[1]
    assert told[0][-1] == 2
    assert told[0][3]["kept"] == 2


def test_a_number_in_a_string_is_found(tmp_path: Path) -> None:
    documents = [{"a": "123" if i == 250 else i + 1000} for i in range(ROWS)]
    path = by_mica(tmp_path / "v.parquet", documents)
    usable = [usable for _, _, usable in kept(path, ["a"])]
    assert usable == [True, True, False, True]
    pages = [usable for _, _, usable in kept(path, ["a"], pages=True)]
    assert pages.count(False) == 1
    assert rows(path, "v:a::bigint = 123") == 1


@pytest.mark.parametrize("place", ["left", "top"])
@pytest.mark.parametrize("found", ["123", 123])
def test_other_writers_may_hide_a_value_anywhere(tmp_path: Path, place: str, found: Any) -> None:
    hidden = row(left=found) if place == "left" else row(top={"a": found})
    content = [row(a=i + 1000) if i != 250 else hidden for i in range(ROWS)]
    path = foreign(tmp_path / "v.parquet", content, TYPE, row_group_size=GROUP, write_page_index=True)
    assert [usable for _, _, usable in kept(path, ["a"])] == [True, True, False, True]
    assert rows(path, "v:a::bigint = 123") == 1
    assert rows(path, "v:a::bigint = 1001") == 1


def test_a_value_beside_a_null_object_is_found(tmp_path: Path) -> None:
    content: list[Any] = [row(a=i + 1000) for i in range(ROWS)]
    content[7] = {"untyped_value": untyped({"a": 123}), "object": None}
    path = foreign(tmp_path / "v.parquet", content, TYPE, row_group_size=GROUP)
    assert rows(path, "v:a::bigint = 123") == 1


def test_left_over_fields_hide_nothing_in_what_mica_wrote(tmp_path: Path) -> None:
    documents = [{"a": i, "z": {"a": 7}} if i % 2 else "a string" for i in range(ROWS)]
    path = by_mica(tmp_path / "v.parquet", documents)
    assert all(usable for _, _, usable in kept(path, ["a"]))
    other = by_mica(tmp_path / "w.parquet", documents, created_by="another writer")
    assert not any(usable for _, _, usable in kept(other, ["a"]))
    for file in (path, other):
        assert rows(file, "v:a::bigint between 100 and 199") == 50
        assert rows(file, "v:z.a::bigint = 7") == 200


def test_variant_nulls_match_no_comparison(tmp_path: Path) -> None:
    documents = [{"a": None if i % 10 == 0 else i} for i in range(ROWS)]
    path = by_mica(tmp_path / "v.parquet", documents)
    assert kept(path, ["a"]) == [(start + 1, start + GROUP - 1, True) for start in range(0, ROWS, GROUP)]
    assert all(usable for _, _, usable in kept(path, ["a"], pages=True))
    assert rows(path, "v:a::bigint = 123") == 1
    assert rows(path, "v:a::bigint is null") == 40
    assert rows(path, "v:a is null") == 0
    nulls = by_mica(tmp_path / "w.parquet", [{"a": None}] * ROWS)
    assert rows(nulls, "v:a::bigint is null") == ROWS
    assert rows(nulls, "v:a is null") == 0
    assert rows(nulls, "v:a is not null") == ROWS


def test_a_path_reads_its_leaf_alone(tmp_path: Path) -> None:
    documents = [{"a": i, "b": {"c": i}, "text": f"{i * 2654435761:032x}" * 20} for i in range(ROWS)]
    path = by_mica(tmp_path / "v.parquet", documents)
    sizes = []
    for steps in (["a"], ["text"]):
        reader = _native.FileReader(path=str(path), name="v", early=True)
        before = reader.bytes_read
        list(reader.scan([Request(("v",), steps, pa.string())]))
        sizes.append(reader.bytes_read - before)
    assert sizes[0] * 4 < sizes[1]


def test_the_filter_leaf_is_read_first(tmp_path: Path) -> None:
    documents = [{"a": i * 7 % ROWS, "text": f"{i * 2654435761:032x}" * 50} for i in range(ROWS)]
    path = by_mica(tmp_path / "v.parquet", documents)
    found = mica.read_parquet(path, where="v:a::bigint = 7").to_pandas()["v"].tolist()
    assert found == [documents[1]]
    explained = mica.read_parquet(path, where="v:a::bigint = 7").explain().to_dict()
    assert explained["files"]["kept"] == 1
    assert explained["where"] == "v:a::bigint = 7"


def test_bloom_filters_are_asked_where_nothing_is_left_over(tmp_path: Path) -> None:
    filters = [["v", "object", "a", "typed_value"]]
    documents = [{"a": f"k{i}" if i != 5 else 5} for i in range(ROWS)]
    path = by_mica(tmp_path / "v.parquet", documents, shredding="struct<a: string>", bloom_filters=filters)
    reader = _native.FileReader(path=str(path), name="v", early=True)
    item = Request(("v",), ("a",), pa.string())
    may = reader.may_contain(item, pa.record_batch([pa.array(["k250"])], ["x"]))
    assert may == ["yes", "no", "yes", "no"]


def test_a_struct_that_mica_copied_is_not_trusted(tmp_path: Path) -> None:
    content: list[Any] = [row(a=i + 1000) for i in range(ROWS)]
    content[7] = {"untyped_value": untyped({"a": 123}), "object": None}
    path = foreign(tmp_path / "v.parquet", content, TYPE)
    copy = tmp_path / "copy.parquet"
    mica.write_parquet(mica.read_parquet(path, early=False).to_arrow(), copy)
    assert pq.read_metadata(copy).created_by.startswith("mica version")
    assert rows(copy, "v:a::bigint = 123") == 1
