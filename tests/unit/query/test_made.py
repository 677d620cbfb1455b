"""Statements that make a table, with a query that this test answers; beside delta-spark in `tests/spark`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.errors import ConflictError, UserError
from mica.query import registry
from mica.query.made import like, make
from mica.query.statements import Create, CreateLike, parse_statement

SPARK: Any = SimpleNamespace(conf=SimpleNamespace(getAll={}, get=lambda _, default: default))


@pytest.mark.parametrize("exists", [True, False])
def test_rows_that_come_while_a_query_reads_its_own_table_stay(tmp_path: Path, exists: bool) -> None:
    if exists:
        mica.Table.create(tmp_path, "id INT", data=[{"id": 1}])
    statement = parse_statement(f"CREATE OR REPLACE TABLE delta.`{tmp_path}` (id INT) USING mica AS SELECT 1 AS id")
    assert isinstance(statement, Create)

    def query(_: str) -> Any:
        rows = pa.table({"id": pa.array([1], pa.int32())})
        mica.Table.create(tmp_path, "id INT", mode="ignore").append([{"id": 2}])
        return rows

    with pytest.raises(ConflictError):
        make(SPARK, statement, query)
    assert 2 in mica.Table.open(tmp_path).to_arrow()["id"].to_pylist()
    statement = parse_statement(f"REPLACE TABLE delta.`{tmp_path}` (id INT) USING mica AS SELECT 1 AS id")
    assert isinstance(statement, Create)
    make(SPARK, statement, lambda _: [{"id": 3}])
    assert mica.Table.open(tmp_path).to_arrow()["id"].to_pylist() == [3]


def run(text: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, Create)
    make(SPARK, statement, lambda _: [])


@pytest.fixture
def given_name() -> Iterator[str]:
    yield "made_here"
    registry.forget("made_here")


@pytest.mark.parametrize(
    "rest",
    [
        "USING mica LOCATION '{t}'",
        "(id INT COMMENT 'x', d DATE) USING mica PARTITIONED BY (d) LOCATION '{t}'",
        "(id INT COMMENT 'x') USING mica PARTITIONED BY (d DATE) LOCATION '{t}' TBLPROPERTIES ('comment' = 'all')",
        "USING mica OPTIONS (path '{t}') COMMENT 'all'",
    ],
)  # fmt: skip
def test_a_table_that_is_there_gets_a_name(tmp_path: Path, given_name: str, rest: str) -> None:
    """As an external table in Spark's catalog: a script in a new process begins with this statement."""
    properties = {"delta.appendOnly": "true", "comment": "all"}
    table = mica.Table.create(tmp_path, "id INT COMMENT 'x', d DATE", ["d"], properties=properties)
    if "OPTIONS" in rest:
        assert parse_statement(f"CREATE TABLE {given_name} {rest}") is None, "of Spark's catalog"
        return
    run(f"CREATE TABLE {given_name} {rest.format(t=tmp_path)}")
    named = registry.registered(given_name)
    assert named is not None
    assert (named.path, named.version) == (table.path, 0)


def test_a_name_is_given_again_where_the_statement_says_so(tmp_path: Path, given_name: str) -> None:
    """A notebook runs its first cell twice."""
    mica.Table.create(tmp_path, "id INT")
    for _ in range(2):
        run(f"CREATE TABLE IF NOT EXISTS {given_name} USING mica LOCATION '{tmp_path}'")
    with pytest.raises(UserError, match="already") as e:
        run(f"CREATE TABLE {given_name} USING mica LOCATION '{tmp_path}'")
    assert e.value.code == "TABLE_EXISTS"


@pytest.mark.parametrize(
    ("rest", "what"),
    [
        ("(id INT, d DATE) USING mica PARTITIONED BY (d)", "columns differ"),
        ("(id INT COMMENT 'x', d DATE) USING mica", "partition columns differ"),
        ("USING mica CLUSTER BY (id)", "clustering columns differ"),
        ("USING mica TBLPROPERTIES (delta.appendOnly = false)", "property delta.appendOnly differ"),
        ("USING mica COMMENT 'other'", "property comment differ"),
        ("(id INT, d DATE) USING mica AS SELECT 1 AS id", "already exists"),
    ],
)
def test_another_table_gets_no_name(tmp_path: Path, given_name: str, rest: str, what: str) -> None:
    mica.Table.create(tmp_path, "id INT COMMENT 'x', d DATE", ["d"], properties={"delta.appendOnly": "true"})
    head, query, select = rest.partition(" AS SELECT")
    with pytest.raises(UserError, match=what) as e:
        run(f"CREATE TABLE {given_name} {head} LOCATION '{tmp_path}'{query}{select}")
    assert e.value.code == "TABLE_EXISTS"
    assert registry.registered(given_name) is None


def test_a_table_like_another_has_all_but_its_rows(tmp_path: Path, given_name: str) -> None:
    ddl = "id BIGINT GENERATED ALWAYS AS IDENTITY, n INT NOT NULL DEFAULT 1, d DATE"
    properties = {"delta.columnMapping.mode": "name", "comment": "all", "x": "y"}
    table = mica.Table.create(tmp_path / "t", ddl, ["d"], properties=properties).add_constraint("c", "n > 0")
    table.append([{"n": 1}])
    text = f"CREATE TABLE {given_name} LIKE u USING mica LOCATION '{tmp_path}/u' TBLPROPERTIES ('x' = 'z')"
    statement = parse_statement(text)
    assert isinstance(statement, CreateLike)
    like(SPARK, statement, table, lambda _: [])
    found = registry.registered(given_name)
    assert found is not None
    assert found.path == str(tmp_path / "u")
    assert found.count() == 0
    assert (found.schema.names, found.partition_by) == (table.schema.names, table.partition_by)
    assert found.metadata.description == "all"
    assert found.properties["delta.constraints.c"] == "n > 0"
    assert found.version == 0, "one commit"
    with pytest.raises(UserError, match="CONSTRAINT_VIOLATED"):
        found.append([{"n": 0}])
    assert found.properties["x"] == "z"
    found.append([{"n": 2}])
    assert found.to_arrow()["id"].to_pylist() == [1], "an identity begins anew"
