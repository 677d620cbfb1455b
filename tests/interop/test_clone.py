"""A shallow clone by mica is the one that delta-spark makes, and each reads and changes the clones of the other.

delta-spark takes seconds a statement: one table has what a clone must carry, and a campaign makes all kinds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import mica
from tests.support import CAMPAIGN, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMED = {"delta.columnMapping.mode": "name"}
VECTORS = {"delta.enableDeletionVectors": "true"}
KINDS: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
    "all": (["p"], [], NAMED | VECTORS | {"delta.enableChangeDataFeed": "true", "own": "x", "comment": "lost"}),
    "plain": ([], [], {}),
    "clustered": ([], ["id"], VECTORS | {"delta.enableRowTracking": "true", "delta.checkpointPolicy": "v2"}),
    "stamped": (["p"], [], {"delta.columnMapping.mode": "id", "delta.enableInCommitTimestamps": "true"}),
}
DRAWN = list(KINDS) if CAMPAIGN else ["all"]
#: By delta-spark on mica's clone, by mica on delta-spark's.
CHANGES = [
    "DELETE FROM {t} WHERE id = 5", "INSERT INTO {t} VALUES (50, 'n')", "UPDATE {t} SET p = 'u' WHERE id < 4",
    "OPTIMIZE {t}", "RESTORE TABLE {t} TO VERSION AS OF 1",
]  # fmt: skip
#: What differs from table to table.
OWN = ("id", "schemaString", "timestamp", "inCommitTimestamp", "txnId", "engineInfo", "readVersion", "tags")


def commit(path: Path) -> dict[str, Any]:
    """The first commit, without what is each table's own."""
    found = dict[str, Any]()
    for line in (path / "_delta_log" / f"{0:020}.json").read_text().splitlines():
        [(kind, action)] = orjson.loads(line).items()
        if kind in ("add", "domainMetadata"):
            name = action.get("path") or action["domain"]
            ids = {"baseRowId": None, "tags": None}  # which files come first is each writer's
            stats = {key: orjson.loads(text) for key, text in action.items() if key in ("stats", "configuration")}
            stats.get("configuration", {}).pop("domainName", None)
            found[name] = action | stats | ids
        else:
            lists = {key: sorted(value) for key, value in action.items() if key.endswith("Features")}
            found[kind] = {key: value for key, value in (action | lists).items() if key not in OWN}
    found["commitInfo"]["operationParameters"]["sourceVersion"] = str(
        found["commitInfo"]["operationParameters"]["sourceVersion"]
    )
    properties = found["metaData"]["configuration"]
    found["metaData"]["configuration"] = {k: v for k, v in properties.items() if "materialized" not in k}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRAWN)
def test_a_clone_is_that_of_delta_spark(delta_session: SparkSession, tmp_path: Path, kind: str) -> None:
    spark = delta_session
    partitions, clusters, properties = KINDS[kind]
    source = mica.Table.create(
        tmp_path / "so ü%", "id BIGINT, p STRING", partitions, properties=properties, cluster_by=clusters
    )
    source.append([{"id": n, "p": f"ä %/{n % 2}" if n % 3 else None} for n in range(8)])
    source.delete("id = 4")
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    source.clone(mine)
    spark.sql(f"CREATE TABLE delta.`{theirs}` SHALLOW CLONE delta.`{source.path}`").collect()
    assert commit(mine) == commit(theirs)
    for text in CHANGES if len(DRAWN) > 1 else CHANGES[:1]:
        spark.sql(text.format(t=f"delta.`{mine}`")).collect()
        mica.sql(text.format(t=f"delta.`{theirs}`"), spark).collect()
        assert stored(mine) == stored(theirs)
    mica.Table.open(theirs).clone(tmp_path / "second")
    rows = spark.read.format("delta").load(str(tmp_path / "second")).select("id", "p").collect()
    assert sorted(str(row.asDict()) for row in rows) == stored(mine)
    assert len(stored(source.path)) == 7
