"""Tables with collated columns and the readers that know nothing of collations: delta-spark and deltalake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import orjson
import pyarrow as pa
import pytest

import mica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_readers_without_collations_read(delta_session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = mica.Table.create(path, "id INT, s STRING COLLATE UNICODE_CI, tags ARRAY<STRING COLLATE de>")
    protocol = [orjson.loads(line) for line in (path / "_delta_log" / f"{0:020}.json").read_bytes().splitlines()]
    features = next(line["protocol"] for line in protocol if "protocol" in line)
    assert features == {
        "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["collations", "domainMetadata"]
    }  # fmt: skip
    frame = delta_session.sql(
        "SELECT * FROM VALUES (1, 'a', array('x')), (2, 'A', array()), (3, 'ß', NULL) AS t(id, s, tags)"
    )
    for _ in range(12):  # beyond a checkpoint
        table.append(frame.coalesce(1))
    rows = delta_session.read.format("delta").load(str(path))
    assert rows.count() == 36
    assert rows.where("s = 'a'").count() == 24  # Spark's own comparator, on the collation of the schema
    assert rows.where("s COLLATE UTF8_BINARY = 'a'").count() == 12
    read = deltalake.DeltaTable(path).to_pyarrow_table() if hasattr(deltalake.DeltaTable, "to_pyarrow_table") else None
    assert read is not None
    assert sorted(read.column("s").to_pylist()) == sorted(["a", "A", "ß"] * 12)


def test_a_collation_that_is_added_brings_its_features(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING")
    table.append(pa.table({"id": pa.array([1], pa.int32()), "s": ["a"]}))
    assert "collations" not in table.snapshot.protocol.writer_features
    table.set_collation("s", "UNICODE_CI")
    assert {"collations", "domainMetadata"} <= table.snapshot.protocol.writer_features
    table.append(pa.table({"id": pa.array([2], pa.int32()), "s": ["A"]}))
    assert sorted(deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table().column("s").to_pylist()) == ["A", "a"]
