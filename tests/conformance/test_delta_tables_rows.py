"""The rows of every public table, in both engines, are delta-spark's: all columns, all types, nested, mapped and
partitioned ones, whatever their writer made of timestamps. So are its files and columns: delta-spark replays a log once
for both tests. What delta-spark cannot read is refused here too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import mica
from mica.errors import MicaError
from mica.schema.spelling import quote_if_needed
from mica.schema.types import VARIANT, contains
from tests.support import SHARED, dealt

pytestmark = pytest.mark.usefixtures("by_tasks")

ROOT = SHARED / "conformance" / "delta-tables"
TABLES = sorted(str(log.parent.relative_to(ROOT)) for log in ROOT.rglob("_delta_log")) if ROOT.is_dir() else []
#: Broken on purpose, without columns, or with files that are not there.
REFUSED = {
    "canonicalized-paths-normal-a",
    "canonicalized-paths-special-b",
    "delete-re-add-same-file-different-transactions",
    "deltalog-invalid-protocol-version",
    "deltalog-state-reconstruction-without-metadata",
    "update-deleted-directory",
    "versions-not-contiguous",
}
#: Of those, what has a log that is whole and names files: those are not there.
ONLY_LOG = {"delete-re-add-same-file-different-transactions"}


def rows(table: pa.Table) -> list[str]:
    """The rows in an order of their own."""
    return sorted(repr(list(row.values())) for row in table.to_pylist())


def shown(table: mica.Table) -> list[str]:
    """The columns as Spark is to give them: Variants as JSON."""
    found = []
    for f in table.schema:
        name = quote_if_needed(f.name)
        found.append(name if not contains(f.type, VARIANT) else f"to_json({name}) AS {name}")
    return found


def in_process(table: mica.Table) -> pa.Table:
    """The same, with the columns in which Variants are nested left out."""
    found = table.scan().to_arrow()
    for i, f in enumerate(table.schema):
        if f.type == VARIANT:
            found = found.set_column(i, f.name, mica.variant.to_json(found.column(i).combine_chunks()))
    return found.select([f.name for f in table.schema if f.type == VARIANT or not contains(f.type, VARIANT)])


@pytest.mark.slow
@pytest.mark.skipif(not TABLES, reason="the shared folder is missing")
@pytest.mark.parametrize("name", dealt(sorted(set(TABLES) - REFUSED), 0))
def test_the_rows_are_those_of_delta_spark(shared: Path, delta_session: Any, name: str) -> None:
    table = mica.Table.open(ROOT / name)
    columns = shown(table)
    theirs = delta_session.read.format("delta").load(str(ROOT / name)).selectExpr(*columns).toArrow()
    expected = rows(theirs)
    mine = in_process(table)
    assert rows(mine) == rows(theirs.select(mine.column_names))
    # With a predicate the kernel reads on Spark too, without one Spark's own reader where it can.
    kernel, native = table.scan(where="1 = 1").to_df(delta_session), table.to_df(delta_session)
    both = kernel.selectExpr("0 AS `by it`", *columns).union(native.selectExpr("1", *columns)).toArrow()
    for engine in (0, 1):
        found = both.filter(pc.equal(both.column("by it"), engine)).drop_columns("by it")
        assert rows(found) == expected
    assert table.scan().count() == len(expected)
    # Bounds of the log and of footers never hide a null or a value.
    for f in table.schema:
        if not contains(f.type, VARIANT):
            there = table.scan(where=f"{quote_if_needed(f.name)} IS NOT NULL").count()
            assert there == len(theirs) - theirs.column(f.name).null_count


def on_disk(uri: str) -> str:
    # Spark encodes some of its names and some not: the one that exists is meant.
    path = "/" + uri.removeprefix("file:").lstrip("/")
    return path if Path(path).exists() else unquote(path)


@pytest.mark.skipif(not TABLES, reason="the shared folder is missing")
@pytest.mark.parametrize("name", sorted(set(TABLES) - REFUSED | ONLY_LOG))
def test_the_files_and_columns_are_those_of_delta_spark(shared: Path, delta_session: Any, name: str) -> None:
    snapshot = mica.Table.open(ROOT / name).snapshot
    frame = delta_session.read.format("delta").load(str(ROOT / name))
    located = [snapshot.locate(path) for path in snapshot.files["path"].to_pylist()]
    assert sorted(storage.path(rel) for storage, rel in located) == sorted(map(on_disk, frame.inputFiles()))
    # Spark makes every column nullable when it reads, and leaves Delta's own field metadata out.
    assert [field.name for field in frame.schema] == [column.name for column in snapshot.schema]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_delta_spark_refuses_is_refused(shared: Path, delta_session: Any, name: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - of Py4J, of Spark, of Delta
        delta_session.read.format("delta").load(str(ROOT / name)).toArrow()
    with pytest.raises(MicaError):
        mica.Table.open(ROOT / name).scan().to_arrow()
