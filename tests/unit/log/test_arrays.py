"""Actions that another engine, or nobody, wrote: what is of another type is told, and never an error of pyarrow's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

import mica
from mica.errors import CorruptDataError

VACUUM, CHECKPOINT = (lambda table: table.vacuum(dry_run=True)), mica.Table.checkpoint
IDS, UPDATE = (
    (lambda table: table.scan(columns=["_metadata.row_id"]).to_arrow()),
    (lambda table: table.update({"id": "2"})),
)


@pytest.mark.parametrize(
    ("damage", "uses"),
    [
        (("remove", "deletionTimestamp", "2020"), (VACUUM, CHECKPOINT)),
        (("remove", "deletionTimestamp", 2**63), (VACUUM, CHECKPOINT)),
        (("remove", "dataChange", "true"), (VACUUM, CHECKPOINT)),
        (("remove", "baseRowId", "x"), (VACUUM, CHECKPOINT)),
        (("remove", "partitionValues", {"p": 1}), (VACUUM, CHECKPOINT)),
        (("remove", "partitionValues", "p"), (VACUUM, CHECKPOINT)),
        (("add", "baseRowId", "1"), (UPDATE, CHECKPOINT, IDS)),
        (("add", "defaultRowCommitVersion", []), (UPDATE, CHECKPOINT, IDS)),
        (("txn", "lastUpdated", "x"), (CHECKPOINT,)),
        (("metaData", "createdTime", "x"), (CHECKPOINT,)),
        (("metaData", "name", 5), (CHECKPOINT,)),
        (("metaData", "description", ["x"]), (CHECKPOINT,)),
        (("metaData", "format", {"provider": "parquet", "options": {"a": 1}}), (CHECKPOINT,)),
        (("metaData", "format", {"provider": "parquet", "options": "x"}), (CHECKPOINT,)),
    ],
    ids=lambda given: str(given) if isinstance(given[0], str) else "",
)
def test_what_is_damaged_is_named(
    tmp_path: Path, damage: tuple[str, str, object], uses: tuple[Callable[[mica.Table], object], ...]
) -> None:
    kind, key, value = damage
    table = mica.Table.create(tmp_path, "id INT, p STRING", ["p"], {"delta.enableRowTracking": "true"})
    table.append([{"id": 0, "p": "x"}], txn=("app", 1))
    table.delete()
    table.append([{"id": 1, "p": "x"}])
    for log in (tmp_path / "_delta_log").glob("*.json"):
        lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
        changed = [{kind: {**line[kind], key: value}} if kind in line else line for line in lines]
        log.write_bytes(b"\n".join(map(orjson.dumps, changed)))
    for use in uses:
        with pytest.raises(CorruptDataError) as caught:
            use(mica.Table.open(tmp_path))
        assert caught.value.code == "CORRUPT_LOG"
        assert f"{kind}.{key}" in caught.value.message
