"""Tables made with their first rows, and replaced by others, in one commit."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica
from mica.errors import ConflictError, UserError
from mica.maintain.create import base_of, create
from mica.storage import Storage

ROWS = [{"id": i, "v": {"k": i}} for i in range(5)]


def operations(table: mica.Table) -> list[str]:
    return [row["operation"] for row in table.history().to_pylist()]


def test_a_table_comes_with_its_rows_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        mica.Table.create(tmp_path / "t", "id INT NOT NULL", data=[{"id": None}])
    assert raised.value.code == "NULL_IN_NOT_NULL_COLUMN"
    assert not mica.Table.exists(tmp_path / "t")
    assert not list(tmp_path.rglob("*.parquet"))
    table = mica.Table.create(tmp_path / "t", "id INT, v VARIANT", ["id"], data=ROWS)
    assert (table.version, table.count(), table.partition_by) == (0, 5, ("id",))
    assert table.scan("v:k::int = 3").count() == 1
    assert operations(table) == ["CREATE TABLE AS SELECT"]
    assert dict(table.history().to_pylist()[0]["operation_metrics"])["numOutputRows"] == "5"
    assert mica.check(table).ok


def test_a_table_is_replaced_with_its_rows_or_stays(tmp_path: Path) -> None:
    mica.Table.create(tmp_path, "id INT, v VARIANT", data=ROWS, properties={"delta.enableChangeDataFeed": "true"})
    with pytest.raises(UserError):
        mica.Table.create(tmp_path, "n INT NOT NULL", mode="overwrite", data=[{"n": None}])
    assert mica.Table.open(tmp_path).count() == 5
    kept = mica.Table.create(tmp_path, "other STRING", mode="ignore", data=[{"other": "x"}])
    assert (kept.version, kept.schema.names) == (0, ["id", "v"])
    table = mica.Table.create(tmp_path, "n BIGINT, p STRING", ["p"], mode="overwrite", data=[{"n": 7, "p": "a"}])
    assert (table.version, table.to_arrow().to_pylist(), table.partition_by) == (1, [{"n": 7, "p": "a"}], ("p",))
    assert operations(table) == ["CREATE OR REPLACE TABLE AS SELECT", "CREATE TABLE AS SELECT"]
    assert mica.Table.open(tmp_path, version=0).count() == 5
    again = mica.Table.create(tmp_path, table.schema, ["p"], mode="overwrite", data=table)
    assert again.to_arrow().to_pylist() == [{"n": 7, "p": "a"}]
    assert mica.check(table).ok


def test_the_comment_is_the_description(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"comment": "events", "k": "v"})
    assert (table.metadata.description, dict(table.properties)) == ("events", {"k": "v"})
    assert table.set_properties({"comment": "others"}).metadata.description == "others"
    assert table.set_properties({"k": None}).metadata.description == "others"
    table = mica.Table.create(tmp_path, "n INT", mode="overwrite", properties={"comment": "numbers"})
    assert mica.Table.open(tmp_path).metadata.description == "numbers"
    assert table.set_properties({"comment": None}).metadata.description is None
    assert operations(table)[:3] == ["UNSET TBLPROPERTIES", "CREATE OR REPLACE TABLE", "UNSET TBLPROPERTIES"]


def test_what_speaks_of_columns_that_are_gone_goes_with_them(tmp_path: Path) -> None:
    of_v = {"mica.variantStats.paths": "v:k", "mica.bloomFilter.paths": "v:k", "mica.shredding": "v:k: bigint"}
    others = {"owner": "me", "delta.dataSkippingStatsColumns": "id", "delta.constraints.new": "id > 0"}
    table = mica.Table.create(tmp_path, "id INT, v VARIANT", properties={**of_v, **dict([*others.items()][:2])})
    table.add_constraint("old", "v:k::int < 9")
    table.add_constraint("new", "id > 0")
    table = mica.Table.create(tmp_path, "id BIGINT", mode="overwrite")
    assert {name: text for name, text in table.properties.items() if "enable" not in name} == others
    with pytest.raises(UserError) as raised:
        table.append([{"id": 0}])
    assert raised.value.code == "CONSTRAINT_VIOLATED"
    table.append([{"id": 1}])
    with pytest.raises(UserError) as raised:
        mica.Table.create(tmp_path, "id BIGINT", mode="overwrite", properties=of_v)
    assert raised.value.code == "UNKNOWN_COLUMN"


def test_another_writer_may_be_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mica.maintain import create

    own = create.write_rows

    def late(*args: object, **named: object) -> object:
        mica.Table.create(tmp_path, "id INT, v VARIANT", data=ROWS[:1])
        return own(*args, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(create, "write_rows", lambda *args: (patched.undo(), late(*args))[1])
        with pytest.raises(mica.MicaError) as raised:
            mica.Table.create(tmp_path, "id INT, v VARIANT", data=ROWS)
    assert raised.value.code == "TABLE_EXISTS"
    assert mica.Table.open(tmp_path).count() == 1


@pytest.mark.parametrize("exists", [True, False])
def test_rows_that_came_since_the_base_stay(tmp_path: Path, exists: bool) -> None:
    if exists:
        mica.Table.create(tmp_path, "id INT", data=[{"id": 1}])
    base = base_of(Storage.open(tmp_path))
    if not exists:
        mica.Table.create(tmp_path, "id INT")
    mica.Table.open(tmp_path).append([{"id": 2}])
    with pytest.raises(ConflictError) as raised:
        create(base, "id INT", (), {}, "overwrite", [{"id": 1}])
    assert raised.value.code == ("CONCURRENT_APPEND" if exists else "TABLE_EXISTS")
    assert mica.Table.open(tmp_path).version == 1
