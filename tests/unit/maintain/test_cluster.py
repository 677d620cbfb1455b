"""Tables clustered by other columns, or no longer."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica
from mica.errors import UserError
from mica.log.clustering import cluster_by
from mica.query.statements import parse_statement
from mica.query.table_statements import TableCall

_DDL = "id INT, s STRUCT<a: INT>, `b.c` STRING, v VARIANT, f BOOLEAN, x INT, y INT"


def test_a_table_is_clustered_by_other_columns(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", _DDL, properties={"delta.columnMapping.mode": "name"})
    table.cluster_by(["ID", "s.a", "`b.c`"])
    assert cluster_by(table.snapshot) == ["id", "s.a", "`b.c`"]
    table.append([{"id": 2, "s": {"a": 1}}, {"id": 1}])
    table.optimize()
    assert table.scan(columns=["id"]).to_arrow().column("id").to_pylist() == [1, 2]
    table.cluster_by([])
    assert cluster_by(table.snapshot) == []
    found = table.history(limit=1).to_pylist()[0]
    assert found["operation"] == "CLUSTER BY"
    assert dict(found["operation_parameters"]) == {"oldClusteringColumns": "id,s.a,`b.c`", "newClusteringColumns": ""}
    assert cluster_by(mica.Table.open(tmp_path / "t").snapshot) == []


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        (["nope"], "UNKNOWN_COLUMN"), (["id.a"], "UNKNOWN_COLUMN"), (["s"], "INVALID_ARGUMENT"),
        (["v"], "INVALID_ARGUMENT"), (["f"], "INVALID_ARGUMENT"), (["id", "ID"], "INVALID_ARGUMENT"),
        (["id", "s.a", "`b.c`", "x", "y"], "INVALID_ARGUMENT"),
    ],
)  # fmt: skip
def test_columns_that_delta_spark_refuses(tmp_path: Path, columns: list[str], code: str) -> None:
    table = mica.Table.create(tmp_path / "t", _DDL)
    with pytest.raises(UserError) as caught:
        table.cluster_by(columns)
    assert caught.value.code == code
    assert table.version == 0


def test_tables_that_delta_spark_refuses(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "p", "id INT, p INT", ["p"])
    with pytest.raises(UserError, match="partitioned"):
        table.cluster_by(["id"])
    table = mica.Table.create(tmp_path / "s", "id INT, p INT", properties={"delta.dataSkippingNumIndexedCols": "1"})
    with pytest.raises(UserError, match="statistics"):
        table.cluster_by(["p"])


def test_a_table_is_clustered_from_its_start(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name", "delta.dataSkippingStatsColumns": "x"}
    with pytest.raises(UserError, match="statistics"):
        mica.Table.create(tmp_path / "t", _DDL, properties=mapped, cluster_by=["s.a"])
    assert not mica.Table.exists(tmp_path / "t")
    mapped["delta.dataSkippingStatsColumns"] = "x,s"
    rows = [{"x": 2, "s": {"a": 1}}, {"x": 1, "s": {"a": 0}}]
    table = mica.Table.create(tmp_path / "t", _DDL, properties=mapped, cluster_by=["S.a", "x"], data=rows)
    assert (table.version, cluster_by(table.snapshot)) == (0, ["s.a", "x"])
    table = mica.Table.create(tmp_path / "t", "n INT", mode="overwrite", cluster_by=["n"])
    assert cluster_by(table.snapshot) == ["n"]
    with pytest.raises(UserError, match="partitioned"):
        mica.Table.create(tmp_path / "t", "n INT, p INT", ["p"], mode="overwrite", cluster_by=["n"])
    table = mica.Table.create(tmp_path / "t", "n INT", mode="overwrite")
    assert cluster_by(table.snapshot) == []
    assert mica.check(table).ok


def test_a_full_optimize_orders_all_files(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "a INT, b INT", cluster_by=["a"])
    table.append([{"a": i, "b": -i} for i in range(5)])
    table.optimize()
    table.cluster_by(["b"])
    assert table.optimize().files == 0
    assert table.optimize(full=True).files == 1
    assert table.to_arrow().column("b").to_pylist() == [-4, -3, -2, -1, 0]
    assert dict(table.history(limit=1).to_pylist()[0]["operation_parameters"])["isFull"] == "true"


def test_what_contradicts_the_clustering_is_refused(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "a INT, b INT", cluster_by=["a"], data=[{"a": 1, "b": 1}])
    for given in ({"where": "a = 1"}, {"zorder_by": ["b"]}):
        with pytest.raises(UserError, match="clustered by a") as caught:
            table.optimize(**given)
        assert "CLUSTER BY NONE" in str(caught.value.hint)
    table.cluster_by([])
    with pytest.raises(UserError, match="not clustered"):
        table.optimize(full=True)


def test_the_statement(tmp_path: Path) -> None:
    for text, columns in (("(a, `s`.b)", ["a", "s.b"]), ("NONE", []), ("(`x y`)", ["`x y`"])):
        found = parse_statement(f"ALTER TABLE delta.`{tmp_path}` CLUSTER BY {text}")
        assert found == TableCall(("delta", str(tmp_path)), "cluster_by", {"columns": columns})
