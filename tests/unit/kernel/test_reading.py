"""The Parquet reader: projections and what they fetch, row ranges, bounds, inspection, and files that lie."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica import _native
from mica.errors import MicaError
from mica.variant import kernel
from mica.variant.kernel import Request
from mica.variant.values import decode
from tests import variant_files as by_hand

ROWS = 20_000


def documents(count: int) -> list[dict[str, Any]]:
    """Rows of one shape, of which every hundredth has an odd `id`, in the second half of them only."""
    return [
        {
            "id": f"x{i}" if i % 100 == 0 and i >= count // 2 else i,
            "at": i * 10,
            "who": {"name": f"user-{i % 7}", "tags": [i % 3, "t"]},
            "filler": f"{i * 2654435761 % 2**32:08x}" * 12,
            **({"rare": {"deep": [{"x": i}]}} if i % 50 == 0 else {}),
        }
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def docs() -> list[dict[str, Any]]:
    return documents(ROWS)


@pytest.fixture(scope="module")
def path(docs: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of four row groups, each of several pages."""
    texts = pa.record_batch([pa.array([json.dumps(d) for d in docs])], ["json"])
    tree = pa.struct(
        [
            ("id", pa.int64()),
            ("at", pa.int64()),
            ("who", pa.struct([("name", pa.string()), ("tags", pa.list_(pa.int64()))])),
            ("filler", pa.string()),
        ]
    )
    batch = _native.shred(_native.json_to_variant(texts), {("v",): tree})
    target = tmp_path_factory.mktemp("reading") / "v.parquet"
    writer = _native.FileWriter(batch.schema, path=str(target), row_group_rows=5_000, page_rows=1_000)
    writer.write(batch)
    writer.close()
    return target


def opened(path: Path, **kwargs: Any) -> Any:
    return _native.FileReader(path=str(path), name=path.name, **kwargs)


def column(batches: Any, name: str = "0") -> list[Any]:
    return [value for batch in batches for value in batch.column(name).to_pylist()]


def values(batches: Any) -> list[Any]:
    return [v and decode(v["metadata"], v["value"]) for v in column(batches)]


def test_whole_variants_come_back(path: Path, docs: list[dict[str, Any]]) -> None:
    assert values(opened(path).scan([Request(("v",))])) == docs


@pytest.mark.parametrize(
    ("steps", "type_", "expected"),
    [
        (["at"], pa.int64(), lambda d: d["at"]),
        (["at"], pa.string(), lambda d: str(d["at"])),
        (["id"], pa.string(), lambda d: str(d["id"])),
        (["id"], pa.int64(), lambda d: d["id"] if isinstance(d["id"], int) else None),
        (["who", "name"], pa.string(), lambda d: d["who"]["name"]),
        (["who", "tags", 0], pa.int64(), lambda d: d["who"]["tags"][0]),
        (["who", "tags", 1], pa.string(), lambda d: "t"),
        (["who", "tags", 2], pa.string(), lambda d: None),
        (["who", "tags"], pa.string(), lambda d: json.dumps(d["who"]["tags"], separators=(",", ":"))),
        (["who", "tags", "name"], pa.string(), lambda d: None),
        (["rare", "deep", 0, "x"], pa.int64(), lambda d: d["rare"]["deep"][0]["x"] if "rare" in d else None),
        (
            ["rare", "deep", 0],
            pa.string(),
            lambda d: json.dumps(d["rare"]["deep"][0]).replace(" ", "") if "rare" in d else None,
        ),
        (["nowhere"], pa.string(), lambda d: None),
    ],
)
def test_a_path_is_taken_from_the_leaf_or_from_the_residual(
    path: Path, docs: list[dict[str, Any]], steps: list[Any], type_: pa.DataType, expected: Any
) -> None:
    assert column(opened(path).scan([Request(("v",), steps, type_)])) == [expected(d) for d in docs]


def test_failed_casts_are_marked_and_missing_paths_are_not(path: Path, docs: list[dict[str, Any]]) -> None:
    items = [Request(("v",), p, pa.int64()) for p in (["id"], ["rare"], ["nowhere"])]
    batches = list(opened(path).scan(items))
    assert column(batches, "0!") == [isinstance(d["id"], str) for d in docs]
    assert column(batches, "1!") == ["rare" in d for d in docs]
    assert not any(column(batches, "2!"))


def test_a_path_can_stay_a_variant(path: Path, docs: list[dict[str, Any]]) -> None:
    batches = list(opened(path).scan([Request(("v",), ("who",))]))
    assert batches[0].schema.field(0).metadata[b"ARROW:extension:name"] == b"arrow.parquet.variant"
    assert values(batches) == [d["who"] for d in docs]


def test_a_typed_path_fetches_its_leaf_alone(path: Path) -> None:
    reader = opened(path)
    footer = reader.bytes_read
    list(reader.scan([Request(("v",), ("at",), pa.int64())]))
    assert reader.bytes_read - footer < path.stat().st_size / 10


def test_rows_are_given_by_range_and_only_their_pages_fetched(path: Path, docs: list[dict[str, Any]]) -> None:
    reader = opened(path)
    footer = reader.bytes_read
    ranges = [(10, 12), (4_999, 5_001), (17_500, 17_506)]
    expected = [docs[i] for start, end in ranges for i in range(start, end)]
    assert values(reader.scan([Request(("v",))], ranges=ranges)) == expected
    assert reader.bytes_read - footer < path.stat().st_size / 2


def test_ranges_out_of_order_or_beyond_the_file_are_the_callers_mistake(path: Path) -> None:
    for ranges in ([(5, 9), (8, 10)], [(9, 5)], [(0, ROWS + 1)]):
        with pytest.raises(_native.KernelError) as caught:
            opened(path).scan([Request(("v",))], ranges=ranges)
        assert caught.value.code == "INVALID_ARGUMENT"


def test_batches_are_cut_by_rows_and_by_bytes(path: Path) -> None:
    by_rows = list(opened(path).scan([Request(("v",))], max_rows=700))
    assert max(b.num_rows for b in by_rows) <= 700
    by_bytes = list(opened(path).scan([Request(("v",))], max_bytes=64 << 10))
    assert max(b.nbytes for b in by_bytes) < 128 << 10
    assert sum(b.num_rows for b in by_rows) == sum(b.num_rows for b in by_bytes) == ROWS


def test_a_scan_of_nothing_counts_rows_without_reading_any(path: Path) -> None:
    reader = opened(path)
    footer = reader.bytes_read
    assert sum(b.num_rows for b in reader.scan([], ranges=[(3, 4_000)])) == 3_997
    assert reader.bytes_read == footer


def test_bytes_may_come_from_a_function(path: Path, docs: list[dict[str, Any]]) -> None:
    data = path.read_bytes()
    asked: list[tuple[int, int]] = []

    def fetch(ranges: list[tuple[int, int]]) -> list[bytes]:
        asked.extend(ranges)
        return [data[start:end] for start, end in ranges]

    reader = _native.FileReader(name="remote", size=len(data), fetch=fetch)
    assert column(reader.scan([Request(("v",), ("at",), pa.int64())])) == [d["at"] for d in docs]
    assert reader.bytes_read == sum(end - start for start, end in asked)


def test_bytes_may_be_there(path: Path, docs: list[dict[str, Any]]) -> None:
    data, wanted = path.read_bytes(), [d["at"] for d in docs]
    more: list[Any] = [("b", len(data), data), (str(path), None, None), ("c", None, data)]
    for others in ([], more):
        reader = _native.FileReader(name="a", size=len(data), data=data, more=others)
        assert reader.ends == [ROWS * number for number in range(1, len(others) + 2)]
        assert column(reader.scan([Request(("v",), ("at",), pa.int64())])) == wanted * (len(others) + 1)
    for held, size in ((data, len(data) + 1), (data[:-1], len(data)), (data[:-1], None), (b"", 0), (b"PAR1", None)):
        with pytest.raises(_native.KernelError) as caught:
            _native.FileReader(name="short", size=size, data=held)
        assert (caught.value.code, "short" in str(caught.value)) == ("CORRUPT_FILE", True)
    with pytest.raises(_native.KernelError, match="a path, data, or fetch and size"):
        _native.FileReader(name="a", path=str(path), data=data)


@pytest.mark.parametrize("pages", [False, True])
def test_bounds_hold_and_are_usable_only_without_residuals(path: Path, docs: list[dict[str, Any]], pages: bool) -> None:
    leaves = [Request(("v",), (key,), pa.int64()) for key in ("at", "id", "nowhere")]
    [bounds] = opened(path).bounds(leaves, pages=pages)
    table = bounds.to_pylist()
    assert len(table) == 4 if not pages else len(table) >= 20
    assert table[0]["first_row"] == 0
    assert sum(row["rows"] for row in table) == ROWS
    for row in table:
        span = docs[row["first_row"] : row["first_row"] + row["rows"]]
        assert row["0"]["usable"]
        assert row["0"]["min"] <= min(d["at"] for d in span)
        assert row["0"]["max"] >= max(d["at"] for d in span)
        assert row["1"]["usable"] == all(isinstance(d["id"], int) for d in span)
        assert not row["2"]["usable"], "the root has residuals, where the path could be"


def test_inspect_counts_what_is_typed_and_what_is_not(path: Path, docs: list[dict[str, Any]]) -> None:
    nodes = {row["path"]: row for row in opened(path).inspect().to_pylist()}
    odd = sum(isinstance(d["id"], str) for d in docs)
    assert (nodes["$['id']"]["typed_rows"], nodes["$['id']"]["residual_rows"]) == (ROWS - odd, odd)
    assert (nodes["$['who']"]["type"], nodes["$['who']"]["typed_rows"]) == ("object", ROWS)
    tags = nodes["$['who']['tags'][*]"]
    assert (tags["typed_rows"], tags["residual_rows"]) == (ROWS, ROWS)
    assert nodes["$"]["residual_rows"] == sum("rare" in d for d in docs)
    assert (nodes["$"]["other_rows"], nodes["$['id']"]["other_rows"]) == (0, odd), "rare fields are of typed objects"


def test_masks_of_failed_casts_are_left_out_where_none_failed(path: Path) -> None:
    items = [Request(("v",), ("id",), pa.int64(), name="x!"), Request(("v",), ("at",), pa.int64(), name="x")]
    whole, lean = (list(opened(path).scan(items, max_rows=1_000, masks=masks)) for masks in (True, False))
    assert {batch.num_columns for batch in lean} == {2, 4}
    for masked, found in zip(whole, lean, strict=True):
        failed = masked.column(1).true_count + masked.column(3).true_count
        assert found.equals(masked if failed else masked.select([0, 2]))


def test_rows_without_columns_are_counted(path: Path) -> None:
    assert [batch.num_rows for batch in opened(path).scan([], max_rows=8_000)] == [5_000] * 4


def test_a_field_that_no_layout_has_is_named_with_its_path(tmp_path: Path) -> None:
    def group(typed: pa.DataType, *more: tuple[str, pa.DataType]) -> pa.DataType:
        return pa.struct([("value", pa.binary()), ("typed_value", typed), *more])

    element = group(pa.struct([("x", group(pa.int64(), ("odd", pa.int32())))]))
    of = pa.struct([("metadata", pa.binary()), *group(pa.struct([("a", group(pa.list_(element)))]))])
    pq.write_table(pa.table({"v": pa.nulls(1, of)}), tmp_path / "t.parquet")
    with pytest.raises(_native.KernelError, match='has the field "odd"') as caught:
        opened(tmp_path / "t.parquet", variants=[["v"]]).scan([Request(("v",))])
    where = "v.typed_value.a.typed_value.list.element.typed_value.x"
    assert (caught.value.code, caught.value.rule, caught.value.path) == ("MALFORMED_SHREDDING", 1, where)


def test_a_missing_column_is_named(path: Path) -> None:
    with pytest.raises(_native.KernelError, match="no column w"):
        opened(path).scan([Request(("w",))])


def test_plain_columns_nested_ones_and_variants_inside_others(tmp_path: Path) -> None:
    variant = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    one = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
    table = pa.table(
        {
            "a": pa.array([1, None, 3], pa.int32()),
            "s": pa.array(
                [{"v": one, "n": 1}, {"v": None, "n": 2}, None], pa.struct([("v", variant), ("n", pa.int8())])
            ),
            "l": pa.array([[one, None], None, []], pa.list_(variant)),
            "m": pa.array([[("k", one)], None, []], pa.map_(pa.string(), variant)),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    reader = opened(tmp_path / "t.parquet", variants=[["s", "v"], ["l", "element"], ["m", "value"]])
    items = [Request((c,), name=str(c)) for c in ("a", "l", "m")] + [Request(("s", "v")), Request(("s",))]
    (batch,) = reader.scan([replace(item, name=str(i)) for i, item in enumerate(items)])
    assert column([batch], "0") == [1, None, 3]
    assert column([batch], "1") == [[one, None], None, []]
    assert column([batch], "2") == [[("k", one)], None, []]
    assert column([batch], "3") == [one, None, None]
    assert column([batch], "4") == [{"v": one, "n": 1}, {"v": None, "n": 2}, None]


def test_a_variant_inside_a_list_that_is_malformed_names_its_row(tmp_path: Path) -> None:
    variant = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    good, bad = ({"metadata": b"\x01\x00\x00", "value": v} for v in (b"\x0c\x01", b"\x0c"))
    table = pa.table({"l": pa.array([[good], [], [good, bad]], pa.list_(variant))})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(_native.KernelError) as caught:
        list(opened(tmp_path / "t.parquet", variants=[["l", "element"]]).scan([Request(("l",))]))
    assert (caught.value.code, caught.value.row) == ("MALFORMED_VARIANT", 2)


def test_int96_timestamps_become_instants_in_microseconds(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([0, 1_700_000_000_123_456], pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    (batch,) = opened(tmp_path / "t.parquet").scan([Request(("t",))])
    assert batch.column(0).type == pa.timestamp("us", "UTC")
    assert batch.column(0).to_pylist() == table["t"].to_pylist()


def corrupt(path: Path, **kwargs: Any) -> Any:
    with pytest.raises(_native.KernelError) as caught:
        list(opened(path, **kwargs).scan([Request(("v",))]))
    assert path.name in str(caught.value)
    return caught.value


def test_a_file_that_vanished_was_cut_short_or_grew(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    assert corrupt(tmp_path / "gone.parquet").code == "CORRUPT_FILE"
    for name, content in {"empty": b"", "cut": data[:-100], "head": data[:4], "text": b"hello " * 50}.items():
        (tmp_path / name).write_bytes(content)
        assert corrupt(tmp_path / name).code == "CORRUPT_FILE"
    (tmp_path / "grown").write_bytes(data + b"x")
    assert corrupt(tmp_path / "grown", size=len(data)).code == "CORRUPT_FILE"


def test_a_file_that_is_cut_while_it_is_read(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "v.parquet"
    copy.write_bytes(path.read_bytes())
    reader = opened(copy)
    with copy.open("r+b") as file:
        file.truncate(1_000)
    with pytest.raises(_native.KernelError) as caught:
        list(reader.scan([Request(("v",))]))
    assert caught.value.code == "CORRUPT_FILE"


def test_damaged_pages_name_row_group_and_column(path: Path, tmp_path: Path) -> None:
    data = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(1)
    at = next(c for c in (chunk.column(i) for i in range(chunk.num_columns)) if "at.typed_value" in c.path_in_schema)
    start = at.dictionary_page_offset or at.data_page_offset
    data[start : start + at.total_compressed_size] = b"\xff" * at.total_compressed_size
    (tmp_path / "bad.parquet").write_bytes(bytes(data))
    error = corrupt(tmp_path / "bad.parquet")
    assert error.code == "CORRUPT_FILE"
    assert "row group 1" in str(error)
    assert error.path == "v.typed_value.at.typed_value"
    # Batches are taken from the kernel several at once: those before the damage are given all the same.
    reader = kernel.FileReader(name="bad", path=str(tmp_path / "bad.parquet"), variants=[["v"]])
    batches, rows = reader.scan([Request(("v",))], max_rows=2_000), []
    with pytest.raises(MicaError) as caught:
        rows.extend(batch.num_rows for batch in batches)
    assert (caught.value.code, sum(rows)) == ("CORRUPT_FILE", 5_000)
    assert list(batches) == []


@pytest.mark.parametrize("limit", [None, 1 << 20, 24], ids=["mica", "pyarrow", "pyarrow, a full dictionary"])
def test_texts_are_judged_as_codes_where_all_pages_have_them(
    path: Path, docs: list[dict[str, Any]], tmp_path: Path, limit: int | None
) -> None:
    if limit is not None:
        stored, path = pq.read_table(path), tmp_path / "copy.parquet"
        pq.write_table(stored, path, dictionary_pagesize_limit=limit, row_group_size=5_000, data_page_size=4_000)
    name, number = Request(("v",), ("who", "name"), pa.string()), Request(("v",), ("at",), pa.int64())
    seen: set[str] = set()

    def judge(batch: pa.RecordBatch) -> pa.BooleanArray:
        seen.add(str(batch.schema.types[0]))
        assert not batch.column(1).true_count
        return pa.array([text != "user-3" for text in batch.column(0).to_pylist()])

    reader = kernel.FileReader(name="file", path=str(path), variants=[["v"]])
    found = [batch.columns for batch in reader.scan([name, number], filter=[name], judge=judge)]
    assert {str(columns[0].type) for columns in found} == {"string"}
    rows = [row for names, _, numbers, _ in found for row in zip(names.to_pylist(), numbers.to_pylist(), strict=True)]
    assert rows == [(d["who"]["name"], d["at"]) for d in docs if d["who"]["name"] != "user-3"]
    assert seen == ({"string"} if limit == 24 else {"dictionary<values=string, indices=int32, ordered=0>"})
    # Another type: each text of the dictionary is cast once, and fails in all rows that have it.
    cast = replace(name, type=pa.int64())
    failed = [mark for batch in reader.scan([cast], filter=[name], judge=judge) for mark in batch.column(1)]
    assert len(failed) == len(rows)
    assert all(mark.as_py() for mark in failed)


@pytest.mark.slow
def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    """What was made of a footer is kept, for as long as the file is the same."""
    path = tmp_path / "f.parquet"

    def write(first: int) -> bytes:
        pq.write_table(pa.table({"a": pa.array(range(first, first + 10), pa.int64())}), path, compression="none")
        return path.read_bytes()

    def read() -> tuple[list[int], int]:
        reader = kernel.FileReader(name="f", path=str(path))
        fetched = reader.bytes_read
        [batch] = reader.scan([kernel.Request(("a",))])
        return batch.column(0).to_pylist(), fetched

    other = write(100)
    assert len(write(0)) == len(other)
    time.sleep(2.1)
    assert [read(), read()] == [read()] * 2
    assert read()[0] == list(range(10))
    with path.open("r+b") as file:  # the same inode, as many bytes
        file.write(other)
    assert read()[0] == list(range(100, 110))
    with path.open("r+b") as file:
        file.truncate(50)
    with pytest.raises(MicaError):
        read()


def test_a_column_is_refused_with_its_own_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    count = 20_000
    bad = pa.array([b"\xff", *[b"x"] * (count - 1)])
    texts = pa.Array.from_buffers(pa.string(), count, bad.buffers())
    rows = pa.table({"a": pa.array(range(count)), "b": texts})
    pq.write_table(rows, path, use_dictionary=False, compression="none", write_statistics=False, data_page_size=2000)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    content = bytearray(path.read_bytes())
    end = chunk.data_page_offset + chunk.total_compressed_size
    content[end - 9000 : end] = b"\xff" * 9000
    path.write_bytes(content)

    def refused(*names: str) -> tuple[str, str]:
        with pytest.raises(MicaError) as caught:
            mica.read_parquet(path, columns=list(names)).to_arrow()
        return caught.value.code, caught.value.message

    assert refused("b")[0] == "INVALID_UTF8"
    assert refused("a")[0] == "CORRUPT_FILE"
    assert refused("a", "b") == refused("a")


@pytest.mark.parametrize("held", [True, False])
def test_a_residual_holds_no_field_whose_columns_are_null_in_every_row(tmp_path: Path, held: bool) -> None:
    """Rule 35, where no column of the field `c` would be read otherwise."""
    odd = {
        "value": by_hand.container([by_hand.ONE], [2 if held else 1]),
        "typed_value": {"a": {"typed_value": 5}, "c": {}},
    }
    rows = by_hand.column(
        [odd, {"typed_value": {"a": {"typed_value": 6}, "c": {}}}],
        by_hand.objects(a=by_hand.leaf(pa.int32()), c=by_hand.leaf()),
    )
    path = by_hand.file(tmp_path / "f.parquet", rows)
    asked: list[dict[str, Any]] = [{"columns": ["v"]}, {"columns": {"v": "v", "c": "v:c::int"}}]
    for options in asked:
        if held:
            with pytest.raises(MicaError, match="rule: 35"):
                mica.read_parquet(path, **options).to_arrow()
        else:
            assert mica.read_parquet(path, **options).to_pandas()["v"].tolist() == [{"a": 5, "b": 1}, {"a": 6}]
