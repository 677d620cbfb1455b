"""Every table feature of PROTOCOL.md ("Valid Feature Names in Table Features", and those of accepted RFCs): what mica
reads and writes, by name and by the legacy versions that imply it, where it is supported alone and where it is in use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import mica
from mica.errors import UnsupportedTableError
from mica.properties import FEATURES


@dataclass(frozen=True)
class Row:
    """`used` is what puts the feature in use: properties, or metadata of the column `id`."""

    name: str
    for_readers: bool = False
    legacy: tuple[int, int] | None = None
    reads: bool = True
    writes: bool = True
    writes_used: bool = True
    properties: dict[str, str] = field(default_factory=dict)
    column: dict[str, Any] = field(default_factory=dict)


MATRIX = [
    Row("appendOnly", legacy=(1, 2), properties={"delta.appendOnly": "true"}),
    Row("invariants", legacy=(1, 2), column={"delta.invariants": '{"expression":{"expression":"id > 0"}}'}),
    Row("checkConstraints", legacy=(1, 3), properties={"delta.constraints.c": "id > 0"}),
    Row("generatedColumns", legacy=(1, 4), column={"delta.generationExpression": "2"}),
    Row("allowColumnDefaults", column={"CURRENT_DEFAULT": "1"}),
    Row("changeDataFeed", legacy=(1, 4), properties={"delta.enableChangeDataFeed": "true"}),
    Row(
        "columnMapping", True, (2, 5), properties={"delta.columnMapping.mode": "name"},
        column={"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"},
    ),
    Row(
        "identityColumns", legacy=(1, 6),
        column={"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True},
    ),
    Row("deletionVectors", True, properties={"delta.enableDeletionVectors": "true"}),
    Row("rowTracking", writes_used=False, properties={"delta.rowTrackingSuspended": "true"}),
    Row("timestampNtz", True),
    Row("domainMetadata"),
    Row("v2Checkpoint", True, properties={"delta.checkpointPolicy": "v2"}),
    Row("catalogManaged", True, reads=False, writes=False),
    Row("catalogOwned-preview", True, reads=False, writes=False),
    Row("icebergCompatV1", writes_used=False, properties={"delta.enableIcebergCompatV1": "true"}),
    Row("icebergCompatV2", writes_used=False, properties={"delta.enableIcebergCompatV2": "true"}),
    Row("icebergCompatV3", writes=False, properties={"delta.enableIcebergCompatV3": "true"}),
    Row("clustering"),
    Row("vacuumProtocolCheck", True),
    Row("inCommitTimestamp", properties={"delta.enableInCommitTimestamps": "true"}),
    Row("typeWidening", True, properties={"delta.enableTypeWidening": "true"}),
    Row("typeWidening-preview", True, properties={"delta.enableTypeWidening": "true"}),
    Row("variantType", True),
    Row("variantType-preview", True),
    Row("variantShredding", True, properties={"delta.enableVariantShredding": "true"}),
    Row("variantShredding-preview", True, properties={"delta.enableVariantShredding": "true"}),
    Row("checkpointProtection"),
    Row("collations"),
    Row("collations-preview"),
    Row("materializePartitionColumns"),
    Row("fromTheFuture", True, reads=False, writes=False),
    Row("fromTheFuture", writes=False),
]  # fmt: skip


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


#: Everything that writes a table.
WRITES: dict[str, Callable[[mica.Table], object]] = {
    "append": lambda t: t.append(rows(2)),
    "overwrite": lambda t: t.overwrite(rows(2)),
    "set_properties": lambda t: t.set_properties({"delta.logRetentionDuration": "interval 9 days"}),
    "add_columns": lambda t: t.add_columns("n INT"),
    "rename_column": lambda t: t.rename_column("s", "other"),
    "set_collation": lambda t: t.set_collation("s", "UTF8_LCASE"),
    "restats": lambda t: t.restats(),
    "create": lambda t: mica.Table.create(t.path, "id BIGINT", mode="overwrite"),
}


def protocols(row: Row) -> list[dict[str, Any]]:
    # Variants shredded need the type of Variants, and so on: what a feature needs is there.
    known = FEATURES.get(row.name.removesuffix("-preview"))
    names = [row.name, *(known.needs if known is not None else ())]
    readers = [n for n in names if (row.for_readers if n == row.name else FEATURES[n].for_readers)]
    found: dict[str, Any] = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7, "writerFeatures": names}
    found |= {"readerFeatures": readers} if readers else {}
    legacy = [{"minReaderVersion": row.legacy[0], "minWriterVersion": row.legacy[1]}] if row.legacy else []
    return [found, *legacy]


def table(path: Path, row: Row, protocol: dict[str, Any], *, used: bool) -> mica.Table:
    """A table with one row, then the protocol and what uses the feature, as another writer would put them there."""
    made = mica.Table.create(path, "id BIGINT, s STRING")
    made.append(rows(1))
    metadata = made.snapshot.metadata.action()
    if used:
        schema = orjson.loads(metadata["schemaString"])
        schema["fields"][0]["metadata"] = row.column
        if "delta.columnMapping.physicalName" in row.column:
            schema["fields"][1]["metadata"] = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "s"}
        metadata |= {"schemaString": orjson.dumps(schema).decode(), "configuration": row.properties}
    lines = [{"commitInfo": {"inCommitTimestamp": 1}}, {"protocol": protocol}, {"metaData": metadata}]
    (path / "_delta_log" / f"{2:020}.json").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return mica.Table.open(path)


def content(path: Path) -> list[str]:
    return sorted(str(p.relative_to(path)) for p in path.rglob("*"))


CASES = [
    pytest.param(row, protocol, used, id=f"{row.name}-{protocol['minWriterVersion']}-{'used' if used else 'supported'}")
    for row in MATRIX
    for protocol in protocols(row)
    for used in ((False, True) if row.properties or row.column else (False,))
]


@pytest.mark.parametrize(("row", "protocol", "used"), CASES)
def test_a_feature_is_honoured_or_refused_by_name(
    tmp_path: Path, row: Row, protocol: dict[str, Any], used: bool
) -> None:
    found = table(tmp_path / "t", row, protocol, used=used)
    assert found.version == 2  # whatever it is, its metadata can be shown
    if row.reads:
        assert found.scan(where="id = 1", columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]
    else:
        with pytest.raises(UnsupportedTableError, match=row.name) as caught:
            found.scan().to_arrow()
        assert caught.value.code == "UNSUPPORTED_READER_FEATURE"
    if row.writes and (row.writes_used or not used):
        found.append(rows(2))
        assert sorted(mica.Table.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist()) == [1, 2]
        return
    before = content(tmp_path / "t")
    for name, write in WRITES.items():
        with pytest.raises(UnsupportedTableError, match=row.name.removesuffix("-preview")) as caught:
            write(mica.Table.open(tmp_path / "t"))
        assert caught.value.code in ("UNSUPPORTED_WRITER_FEATURE", "UNSUPPORTED_READER_FEATURE"), name
        assert content(tmp_path / "t") == before, name


def test_the_matrix_has_every_feature_that_mica_knows() -> None:
    assert {row.name for row in MATRIX} >= set(FEATURES)
    for row in MATRIX:
        known = FEATURES.get(row.name)
        if known is not None:
            assert (row.for_readers, row.reads, row.writes) == (known.for_readers, True, True), row.name
