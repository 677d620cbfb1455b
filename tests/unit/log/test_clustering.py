"""Clustered tables: their columns by the names in files, and the files that are ordered together."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import mica
from mica.engines import local
from mica.errors import CorruptDataError, UserError
from mica.log.clustering import PROVIDER, cluster_by, to_cluster
from mica.log.domains import CLUSTERING_DOMAIN
from mica.log.transaction import Transaction


def clustered(path: Path, columns: list[list[str]] | str, **properties: str) -> mica.Table:
    table = mica.Table.create(path, "id INT, s STRUCT<a: INT>, v VARIANT", properties={
        "delta.feature.clustering": "supported", **properties})  # fmt: skip
    text = columns if isinstance(columns, str) else orjson.dumps({"clusteringColumns": columns}).decode()
    transaction = Transaction(table.snapshot, "CLUSTER BY")
    transaction.set_domain(CLUSTERING_DOMAIN, text)
    transaction.commit()
    return mica.Table.open(path)


def filled(table: mica.Table, start: int) -> mica.Table:
    table.append([{"id": (i * 37) % 101, "s": {"a": i}, "v": {"a": i}} for i in range(start, start + 50)])
    return table


def providers(table: mica.Table) -> list[str | None]:
    return table.snapshot.clustering_providers().to_pylist()


def test_optimize_orders_by_the_cluster_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SORT_BYTES", 0)  # then files are as many as their size asks for
    table = clustered(tmp_path, [["id"], ["s", "a"]], **{"delta.enableDeletionVectors": "true"})
    assert cluster_by(table.snapshot) == ["id", "s.a"]
    filled(filled(table, 0), 50)
    done = table.optimize(target_file_size=500)
    assert done.files > 1
    assert set(providers(table)) == {PROVIDER}
    assert len(table.scan(where="id < 10").plan.kept) < done.files
    parameters = dict(table.history(limit=1).to_pylist()[0]["operation_parameters"])
    assert (parameters["clusterBy"], parameters["zOrderBy"]) == ('["id","s.a"]', "[]")
    assert table.optimize().files == 0
    filled(table, 100)
    assert to_cluster(table.snapshot, 0).tolist() == [done.files]
    assert len(to_cluster(table.snapshot, 1 << 40)) == done.files + 1
    table.delete("id = 3")
    assert PROVIDER in providers(table)  # files with a new vector were not ordered anew
    table.restats()
    table.checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    again = mica.Table.open(tmp_path)
    assert (providers(again), again.count()) == (providers(table), table.count())
    again.optimize()
    assert set(providers(again)) == {PROVIDER}
    assert again.files().column("deletion_vector").null_count == again.files().num_rows
    with pytest.raises(UserError):
        again.optimize(zorder_by=["id"])


def test_renamed_columns_stay(tmp_path: Path) -> None:
    table = clustered(tmp_path, "{}", **{"delta.columnMapping.mode": "name"})
    physical = table.schema.field("id").metadata["delta.columnMapping.physicalName"]
    transaction = Transaction(table.snapshot, "CLUSTER BY")
    transaction.set_domain(CLUSTERING_DOMAIN, orjson.dumps({"clusteringColumns": [[physical]]}).decode())
    transaction.commit()
    table.refresh().rename_column("id", "my number")
    assert cluster_by(table.snapshot) == ["`my number`"]
    table.append([{"my number": 1}])
    assert table.optimize().files == 1


@pytest.mark.parametrize(
    "text", ["", "{", "{}", '{"clusteringColumns": [["nope"]]}', '{"clusteringColumns": [[]]}', "[1]"]
)
def test_domains_that_cannot_be_used(tmp_path: Path, text: str) -> None:
    table = clustered(tmp_path, text)
    filled(table, 0)
    with pytest.raises(CorruptDataError) as raised:
        table.optimize()
    assert raised.value.code == "INVALID_DOMAIN"
    assert table.count() == 50
