"""What a reader of the format plans: which files stay for the filters that Spark pushes."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, In, IsNotNull, Not, StringStartsWith

import mica
from mica.errors import UserError
from mica.format import read
from mica.format.options import Options


def test_a_filter_skips_files(tmp_path: Path) -> None:
    columns = "id INT, s STRING, st STRUCT<a:INT>, v VARIANT, p STRING"
    made = mica.Table.create(tmp_path / "t", columns, ["p"])
    for start in range(0, 100, 20):
        rows = [
            {"id": i, "s": f"x{i}", "st": {"a": i}, "v": {"k": i}, "p": f"part {i % 2}"}
            for i in range(start, start + 20)
        ]
        made.append(rows)
    options = Options.of({"path": str(tmp_path / "t"), "typedPaths": "k BIGINT"})
    schema = read.spark_schema(read.opened(options), options)

    def files(*filters: Any) -> int:
        reader = read.FilteredReader(options, schema)
        assert list(reader.pushFilters(list(filters))) == list(filters)
        sent = pickle.loads(pickle.dumps(reader))
        found = [batch for part in reader.partitions() for batch in sent.read(part)]
        assert all(batch.schema.names == schema.names for batch in found)
        return sum(len(part.value) for part in reader.partitions())

    assert files() == 10
    assert files(EqualTo(("id",), 7)) == 2
    assert files(EqualTo(("st", "a"), 7)) == 2
    assert files(GreaterThan(("k",), 85)) == 2
    assert files(In(("p",), ("part 1",)), IsNotNull(("id",))) == 5
    assert files(StringStartsWith(("s",), "y")) == 0
    assert files(Not(GreaterThan(("id",), 19))) == 2
    assert files(EqualTo(("none",), 7)) == 10


def test_typed_paths_of_a_table_follow_its_columns(tmp_path: Path) -> None:
    table = mica.Table.create(
        tmp_path, "id INT, v VARIANT, w VARIANT",
        properties={"delta.columnMapping.mode": "name", "mica.paths": "k INT AS v:k, t STRING AS w:t"},
    )  # fmt: skip
    options = Options.of({"path": str(tmp_path)})

    def seen() -> list[str]:
        return read.spark_schema(read.opened(options), options).names

    assert seen() == ["id", "k", "t"]
    table.rename_column("v", "the doc")
    assert table.properties["mica.paths"] == "k INT AS `the doc`:k, t STRING AS w:t"
    assert seen() == ["id", "k", "t"]
    table.drop_columns(["w"])
    assert seen() == ["id", "k"]
    table.add_columns("k INT")
    assert seen() == ["id", "the doc", "k"]
    mica.Table.create(tmp_path, "id INT", mode="overwrite")
    assert seen() == ["id"]


@pytest.mark.parametrize(
    ("ddl", "paths", "asked", "seen"),
    [
        ("id INT, v VARIANT", "t INT AS V:t", {}, ["id", "t"]),
        ("id INT, s STRUCT<v: VARIANT>", "t INT AS s.v:t", {}, ["id", "t"]),
        ("v VARIANT, w VARIANT", "v INT AS w:t, w INT AS v:t", {}, ["v", "w"]),
        ("id INT, v VARIANT", "v INT AS v:t", {"columns": "id"}, ["id", "v"]),
        ("id INT, v VARIANT", "v INT AS v:t, t INT", {"columns": "id, v"}, ["id", "v", "t"]),
    ],
)
def test_typed_paths_stand_for_their_columns(
    tmp_path: Path, ddl: str, paths: str, asked: dict[str, str], seen: list[str]
) -> None:
    table = mica.Table.create(tmp_path, ddl, properties={"mica.paths": paths})
    options = Options.of({"path": table.path, **asked})
    assert read.spark_schema(read.opened(options), options).names == seen


def test_a_typed_path_has_no_name_of_a_column_beside_it(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "v VARIANT, w VARIANT")
    options = Options.of({"path": table.path, "typedpaths": "v INT AS w:t"})
    with pytest.raises(UserError, match="the name of another column"):
        read.spark_schema(read.opened(options), options)


def test_a_column_is_asked_for_once(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, s STRING")
    options = Options.of({"path": table.path, "columns": "id, s, ID"})
    with pytest.raises(UserError, match="the column 'id' is given twice") as caught:
        read.spark_schema(read.opened(options), options)
    assert caught.value.code == "DUPLICATE_COLUMN"


def test_a_range_of_changes_may_end_after_the_last_version(tmp_path: Path) -> None:
    """As in delta-spark: a job that asks for the versions up to its next one."""
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableChangeDataFeed": "true"})
    table.append([{"id": 1}])

    def asked(first: int) -> int:
        given = {"path": str(tmp_path), "readChangeFeed": "true", "startingVersion": str(first), "endingVersion": "9"}
        options = Options.of(given)
        return read.scan_of(table, options, read.columns_of(table, options), []).count()

    assert asked(1) == 1
    with pytest.raises(UserError, match="VERSION_NOT_FOUND"):
        asked(9)


def test_a_path_may_name_a_version_or_a_time(tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT").append([{"id": 1}])
    assert made.snapshot is not None
    place = str(tmp_path / "t")
    assert [read.opened(Options.of({"path": f"{place}@v{n}"})).version for n in (0, 1)] == [0, 1]
    at = datetime.fromtimestamp(made.snapshot.timestamp / 1000, UTC).strftime("%Y%m%d%H%M%S%f")[:17]
    assert read.opened(Options.of({"path": f"{place}@{at}", "timeZone": "UTC"})).version == 1
    for options, words in (({}, "the path has no time zone"), ({"versionAsOf": "0"}, "both a version and a timestamp")):
        with pytest.raises(UserError, match=words):
            read.opened(Options.of({"path": f"{place}@{at}", **options}))
