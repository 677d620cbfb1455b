"""A table whose log breaks the protocol is read and not written; valid ones of other writers are both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica import Table
from mica.errors import CorruptDataError, UserError
from mica.log import features
from mica.log.actions import EMPTY_SCHEMA, Metadata, Protocol

PLAIN = Metadata("1", EMPTY_SCHEMA)
COLUMN = {"name": "id", "type": "long", "nullable": True, "metadata": {}}


def action(reader: int, writer: int, **lists: list[str]) -> dict[str, Any]:
    return {"minReaderVersion": reader, "minWriterVersion": writer, **lists}


def made(root: Path, protocol: dict[str, Any], *more: dict[str, Any], **metadata: Any) -> Table:
    """A table of one file, by hand."""
    log = root / "_delta_log"
    log.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), root / "f.parquet")
    schema = orjson.dumps({"type": "struct", "fields": [COLUMN, *more]}).decode()
    meta: dict[str, Any] = {"id": "1", "format": {"provider": "parquet"}, "schemaString": schema}
    meta |= {"partitionColumns": [], "configuration": {}, **metadata}
    values = dict.fromkeys(meta["partitionColumns"])
    size = (root / "f.parquet").stat().st_size
    file = {"path": "f.parquet", "partitionValues": values, "size": size, "modificationTime": 1, "dataChange": True}
    lines = [{"protocol": protocol}, {"metaData": meta}, {"add": file}]
    (log / f"{0:020}.json").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return Table.open(str(root))


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (action(3, 7, writerFeatures=[]), "no readerFeatures"),
        (action(3, 7, readerFeatures=[]), "no writerFeatures"),
        (action(1, 7), "no writerFeatures"),
        (action(3, 6, readerFeatures=[]), "minReaderVersion 3 with minWriterVersion 6"),
        (action(3, 7, readerFeatures=["deletionVectors"], writerFeatures=[]), "deletionVectors in readerFeatures"),
        (action(0, 2), "minReaderVersion 0"),
        (action(-1, 2), "minReaderVersion -1"),
        (action(1, 0), "minWriterVersion 0"),
    ],
)
def test_an_invalid_protocol_is_read_and_not_written(tmp_path: Path, protocol: dict[str, Any], said: str) -> None:
    table = made(tmp_path / "t", protocol)
    assert table.to_arrow().to_pylist() == [{"id": 1}]
    with pytest.raises(CorruptDataError, match=said) as caught:
        table.append([{"id": 2}])
    assert caught.value.code == "CORRUPT_LOG"
    assert caught.value.hint
    with pytest.raises(CorruptDataError, match=said):
        table.set_properties({"delta.enableDeletionVectors": "true"})


@pytest.mark.parametrize(
    "protocol",
    [
        *(action(1, writer) for writer in range(1, 7)),
        *(action(2, writer) for writer in range(2, 7)),
        action(1, 7, writerFeatures=["appendOnly"]),
        action(2, 7, writerFeatures=["columnMapping"]),
        action(3, 7, readerFeatures=[], writerFeatures=[]),
        action(3, 7, readerFeatures=["variantType-preview"], writerFeatures=["variantType"]),
    ],
)
def test_a_valid_protocol_is_written(protocol: dict[str, Any]) -> None:
    features.check_write(Protocol.parse(protocol), PLAIN, "t")
    assert Protocol.parse(Protocol.parse(protocol).action()) == Protocol.parse(protocol)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (replace(PLAIN, format={"provider": "orc"}), "format.provider is 'orc'"),
        (replace(PLAIN, partition_columns=("p", "P")), "partitioned by a column twice"),
    ],
)
def test_metadata_that_writers_refuse(metadata: Metadata, said: str) -> None:
    with pytest.raises(CorruptDataError, match=said):
        features.check_write(Protocol(1, 2), metadata, "t")


@pytest.mark.parametrize("form", [{}, {"provider": "parquet", "options": {}}, {"provider": "PARQUET"}])
def test_a_format_that_is_parquet(form: dict[str, Any]) -> None:
    features.check_write(Protocol(1, 2), replace(PLAIN, format=form), "t")


def test_an_id_twice_is_not_written_by_name() -> None:
    keys = "delta.columnMapping.id", "delta.columnMapping.physicalName"
    fields = [{**COLUMN, "name": n, "metadata": dict(zip(keys, (1, f"p{n}"), strict=True))} for n in "ab"]
    schema = orjson.dumps({"type": "struct", "fields": fields}).decode()
    metadata = Metadata("1", schema, configuration={"delta.columnMapping.mode": "name"})
    with pytest.raises(CorruptDataError, match=r"'a' and 'b' have one delta\.columnMapping\.id"):
        features.check_write(Protocol(2, 5), metadata, "t")


@pytest.mark.parametrize("kind", ["variant", {"type": "array", "elementType": "long", "containsNull": True}])
def test_a_partition_column_is_of_a_plain_type(tmp_path: Path, kind: Any) -> None:
    protocol = action(3, 7, readerFeatures=["variantType"], writerFeatures=["variantType"])
    table = made(tmp_path / "t", protocol, {**COLUMN, "name": "p", "type": kind}, partitionColumns=["p"])
    for call in (table.to_arrow, lambda: table.append([{"id": 2}])):
        with pytest.raises(CorruptDataError, match="partitioned by 'p', which is not of a plain type") as caught:
            call()
        assert caught.value.code == "CORRUPT_LOG"


def test_variants_are_written_when_the_feature_says_so(tmp_path: Path) -> None:
    table = made(tmp_path / "t", action(1, 2), {**COLUMN, "name": "v", "type": "variant"})
    assert table.to_arrow().num_rows == 1
    with pytest.raises(UserError, match="variantType") as caught:
        table.append([{"id": 2, "v": "{}"}])
    assert caught.value.code == "FEATURE_NEEDED"
    table.set_properties({"delta.feature.variantType": "supported"})
    table.append([{"id": 2, "v": "{}"}])
    assert table.to_arrow().num_rows == 2
