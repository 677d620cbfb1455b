"""`mica check` holds what a footer says of row groups and pages against the rows; sound files of every writer pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from tests.variant_files import arrays, column, file, leaf, metadata, objects

NAMES = metadata("a")
FIELD = "v.typed_value.a.typed_value"
MIN, MAX, MORE = 0x1122334455667788, 0x1322334455667788, 0x1222334455667788


def little(number: int) -> bytes:
    return number.to_bytes(8, "little")


def objects_of(values: list[Any], typed: pa.DataType, **others: Any) -> pa.Array:
    """Rows that are objects of one typed field; None where a row lacks it."""
    rows = [{"value": None, "typed_value": {"a": {"value": None, "typed_value": value}}} for value in values]
    return column(rows, objects(a=leaf(typed), **others), names=NAMES)


def forged(path: Path, old: bytes, new: bytes, *, pages: bool) -> Path:
    """The file with these bytes replaced in the page index, or in the footer."""
    assert len(old) == len(new)
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    meta = pq.read_metadata(path)
    chunks = [meta.row_group(g).column(c) for g in range(meta.num_row_groups) for c in range(meta.num_columns)]
    first = [c.dictionary_page_offset or c.data_page_offset for c in chunks]
    index = max(at + c.total_compressed_size for at, c in zip(first, chunks, strict=True))
    start, end = (index, footer) if pages else (footer, len(data) - 8)
    assert old in data[start:end]
    path.write_bytes(data[:start] + data[start:end].replace(old, new) + data[end:])
    return path


def found(path: Path) -> list[tuple[str, str, int | None, int | None]]:
    return [(v.kind, v.path, v.row_group, v.row) for v in mica.check(path)]


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize(("old", "new", "row"), [(MIN, MORE, 3001), (MAX, MORE, 3999)])
def test_a_bound_beyond_which_rows_lie(tmp_path: Path, pages: bool, old: int, new: int, row: int) -> None:
    array = objects_of([MORE] * 3000 + [None, MIN] + [MORE] * 997 + [MAX], pa.int64())
    path = file(tmp_path / "v.parquet", array, row_group_size=2000, write_page_index=True, write_batch_size=500)
    assert found(path) == []
    forged(path, little(old), little(new), pages=pages)
    assert found(path) == [("page_bound" if pages else "row_group_bound", FIELD, 1, row)]
    assert str(MORE) in next(iter(mica.check(path))).found


def test_strings_and_lists_tell_the_row(tmp_path: Path) -> None:
    rows = [{"typed_value": [{"typed_value": text} for text in texts]} for texts in (["m"], [], ["n", "aaaa"])]
    array = column([None, *rows], arrays(leaf(pa.string())))
    path = file(tmp_path / "v.parquet", array, write_page_index=True)
    assert found(path) == []
    forged(path, b"aaaa", b"baaa", pages=False)
    assert found(path) == [("row_group_bound", "v.typed_value.list.element.typed_value", 0, 3)]


@pytest.mark.parametrize("pages", [False, True])
def test_a_null_count_that_is_none(tmp_path: Path, pages: bool) -> None:
    array = objects_of([1] * 700 + [None] * 300, pa.int64())
    path = file(tmp_path / "v.parquet", array, write_page_index=True)
    assert found(path) == []
    forged(path, b"\xd8\x04", b"\xd6\x04", pages=pages)  # zigzag 300 and 299
    assert found(path) == [("footer_null_count", FIELD, 0, 0)]


def test_a_value_column_that_is_said_to_be_null(tmp_path: Path) -> None:
    """Rule 41: who skips on the typed bounds relies on this count."""
    odd = {"value": None, "typed_value": {"a": {"value": b"\x05x", "typed_value": None}}}
    sound = {"value": None, "typed_value": {"a": {"value": None, "typed_value": 1}}}
    path = file(tmp_path / "v.parquet", column([sound] * 299 + [odd], objects(a=leaf(pa.int64())), names=NAMES))
    assert found(path) == []
    forged(path, b"\xd6\x04", b"\xd8\x04", pages=False)
    assert found(path) == [("footer_null_count", "v.typed_value.a.value", 0, 0)]


def test_a_page_of_lists_that_is_said_to_have_no_value(tmp_path: Path) -> None:
    """arrow-rs 60.1 says so where a page has as many nulls as rows; parquet-java's `contains` skips such pages."""
    path = tmp_path / "l.parquet"
    rows = pa.array([[number, None] for number in range(40)], pa.list_(pa.int64()))
    pq.write_table(pa.table({"l": rows}), path, write_page_index=True)
    assert found(path) == []
    forged(path, b"\x19\x11\x02", b"\x19\x11\x01", pages=True)  # null_pages: [false], [true]
    assert found(path) == [("footer_null_count", "l.list.element", 0, 0)]


TYPES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, 127]),
    (pa.int16(), [-5, 5]),
    (pa.int32(), [-(2**31), 2**31 - 1]),
    (pa.int64(), [-(2**63), 2**63 - 1]),
    (pa.float32(), [float("nan"), -0.0, 0.0, 1.5, float("-inf")]),
    (pa.float64(), [float("nan"), 0.0, -0.0, float("inf")]),
    (pa.decimal128(9, 2), [Decimal("-1.25"), Decimal("7.00")]),
    (pa.decimal128(18, 2), [Decimal("-1.25"), Decimal("70000000000.00")]),
    (pa.decimal128(38, 3), [Decimal("-1.255"), Decimal("1e30")]),
    (pa.date32(), [datetime(1960, 1, 1, tzinfo=UTC).date(), datetime(2030, 1, 1, tzinfo=UTC).date()]),
    (pa.timestamp("us", "UTC"), [datetime(1960, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)]),
    (pa.timestamp("ns"), [datetime(1970, 1, 1) + timedelta(days=n) for n in (-1, 1)]),  # noqa: DTZ001 - has no zone
    (pa.time64("us"), [timedelta(hours=n) // timedelta(microseconds=1) for n in (0, 23)]),
    (pa.string(), ["", "\U00010000", "￰" * 40, "é"]),
    (pa.binary(), [b"", b"\xff" * 90, b"\x00"]),
    (pa.binary(16), [bytes(16), b"\xff" * 16]),
]


@pytest.mark.parametrize(("typed", "values"), TYPES, ids=[str(typed) for typed, _ in TYPES])
def test_sound_bounds_of_every_type_hold(tmp_path: Path, typed: pa.DataType, values: list[Any]) -> None:
    array = pa.array([None, *values, None, *reversed(values)], typed)
    own = file(tmp_path / "v.parquet", objects_of(array.to_pylist(), typed), write_page_index=True, row_group_size=3)
    footer = {"row_group_bound", "page_bound", "footer_null_count", "page_index"}
    assert not {v.kind for v in mica.check(own)} & footer
    mica.write_parquet(mica.read_parquet(own).to_arrow(), tmp_path / "mica.parquet")
    assert found(tmp_path / "mica.parquet") == []


def test_more_nulls_than_there_can_be_in_a_list(tmp_path: Path) -> None:
    """What a residual of elements holds would be skipped."""
    table = mica.Table.create(tmp_path, "v VARIANT")
    table.append([{"v": {"l": [n, n or "text"]}} for n in range(300)], shredding="struct<l: array<int>>")
    (path,) = tmp_path.glob("*.parquet")
    assert found(path) == []
    forged(path, b"\x36\xae\x09", b"\x36\xb0\x09", pages=False)  # 599 of 600 slots, and 600
    (violation,) = mica.check(path)
    assert (violation.kind, violation.row_group) == ("footer_null_count", 0)
    assert violation.path.endswith("list.element.value")
    assert violation.found == "the row group states 600 nulls, but there are 599"
    texts = mica.Table.open(tmp_path).scan(columns={"x": "v:l[1]::string"}, where="v:l[0]::int = 0").to_arrow()
    assert texts.to_pydict() == {"x": ["text"]}
