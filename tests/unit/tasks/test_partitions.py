"""Rows of many partitions are brought together, in memory or on local disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.engines import local
from mica.tasks import partitions

VALUES, ROWS = 70, 7_000


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    return mica.Table.create(tmp_path / "t", "id BIGINT, p STRING, s STRING", partition_by=["p"])


def rows(type_: pa.DataType) -> pa.Table:
    texts = pa.array([None if n % VALUES == 3 else f"p{n % VALUES}" for n in range(ROWS)])
    column = (texts.dictionary_encode() if pa.types.is_dictionary(type_) else texts).cast(type_)
    return pa.table({"id": range(ROWS), "p": column, "s": column})


def whole(table: mica.Table) -> None:
    assert table.scan("p = 'p7'").to_arrow()["id"].to_pylist() == list(range(7, ROWS, VALUES))
    assert table.scan("p IS NULL").to_arrow()["id"].to_pylist() == list(range(3, ROWS, VALUES))
    assert table.count() == ROWS


@pytest.mark.parametrize(
    "type_",
    [pa.string(), pa.string_view(), *(pa.dictionary(pa.int32(), own) for own in (pa.string(), pa.string_view()))],
    ids=str,
)
@pytest.mark.parametrize("size", [None, 100], ids=["table", "stream"])
def test_rows_of_any_type_become_one_file_a_partition(table: mica.Table, size: int | None, type_: pa.DataType) -> None:
    """Arrow sorts no dictionaries and takes no views: tables of polars and pandas have them."""
    given = rows(type_)
    assert table.append(given if size is None else given.to_reader(size)).files == VALUES
    whole(table)


@pytest.mark.parametrize("type_", [pa.string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_a_stream_that_does_not_fit_in_memory_is_arranged_on_disk(
    table: mica.Table, monkeypatch: pytest.MonkeyPatch, type_: pa.DataType
) -> None:
    monkeypatch.setattr(local, "SORT_BYTES", 30_000)
    monkeypatch.setattr("mica.tasks.spill.GATHERED_BYTES", 20_000)
    monkeypatch.setattr("mica.tasks.batches.JOINED_ROWS", 1000)
    # The batches of a stream may have a dictionary each.
    dictionaries = pa.types.is_dictionary(type_)
    batches = [
        b.set_column(1, "p", b["p"].dictionary_encode()) if dictionaries else b
        for b in rows(pa.string()).to_batches(max_chunksize=100)
    ]
    stream = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    assert table.append(stream).files == VALUES
    whole(table)


def test_a_stream_of_few_partitions_at_once_is_written_as_it_comes(
    table: mica.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "arranged", None)
    monkeypatch.setattr(partitions, "arranged_on_disk", None)
    given = pa.table({"id": range(ROWS), "p": [f"p{n // 1000}" for n in range(ROWS)]})
    assert table.append(given.to_reader(100)).files == ROWS // 1000


def test_variants_that_are_null_in_every_row_are_arranged(tmp_path: Path) -> None:
    """Their parts are null too, which a cast refuses."""
    source = mica.Table.create(tmp_path / "source", "p INT")
    source.append(pa.table({"p": [1, 2, 1]}))
    source.add_columns("v VARIANT, s STRUCT<v: VARIANT>")
    found = pa.Table.from_batches(partitions.arranged(source.to_arrow(), ["p"]).batches())
    assert (found["p"].to_pylist(), found["v"].null_count, found["s"].null_count) == ([1, 1, 2], 3, 3)


def test_timestamps_of_nanoseconds_are_values_too() -> None:
    times = pa.array([1, 2, 1], pa.timestamp("ns"))
    assert partitions.Partitions().of([times]).to_pylist() == [0, 1, 0]


def test_dates_beyond_the_years_of_python_are_values_too(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "d DATE, n INT", partition_by=["d"])
    days = pa.array(range(2_932_880, 2_932_880 + VALUES), pa.int32()).cast(pa.date32())
    assert table.append(pa.table({"d": days, "n": pa.array(range(VALUES), pa.int32())})).files == VALUES
    assert table.scan("d > DATE'9999-12-31'").count() == VALUES - 17


def test_frames_whose_types_alternate_become_a_file_a_partition(table: mica.Table) -> None:
    other = rows(pa.string()).cast(pa.schema([("id", pa.int32()), ("p", pa.string()), ("s", pa.large_string())]))
    frames = (one.slice(at, 500) for at in range(0, ROWS, 1000) for one in (rows(pa.string()), other))
    assert table.append(frames).files == VALUES
    assert table.count() == ROWS


def test_batches_of_a_schema_wait_for_each_other_as_far_as_there_is_room() -> None:
    kinds = "abacbabc"
    batches = [pa.RecordBatch.from_pydict({kind: [at]}) for at, kind in enumerate(kinds)]
    for size, wanted in ((1000, "aaabbbcc"), (16, "aabbccab"), (0, kinds)):
        found = [batch.schema.names[0] for batch in partitions.alike(batches, size)]
        assert "".join(found) == wanted
