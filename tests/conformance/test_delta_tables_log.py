"""The public tables: every log replays to what it should, or is refused by the error that its name promises.

`WHAT` says per table: version, reader and writer version, number of columns and of files. The oracle for the files and
the schema is delta-spark (tests/conformance/test_delta_tables_rows.py).
"""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from mica.errors import MicaError
from mica.log.deletion_vectors import deleted_rows
from mica.log.features import names
from mica.log.history import history
from mica.log.snapshot import Snapshot, load
from mica.schema import json as schema_json
from mica.storage import Storage

WHAT: dict[str, tuple[int, int, int, int, int]] = {
    "124-decimal-decode-bug": (0, 1, 2, 1, 2),
    "basic-decimal-table-legacy": (0, 1, 2, 4, 4),
    "basic-with-inserts-merge": (1, 1, 2, 2, 1),
    "basic-with-inserts-overwrite-restore": (3, 1, 2, 1, 4),
    "canonicalized-paths-normal-a": (1, 1, 2, 0, 0),
    "canonicalized-paths-special-b": (1, 1, 2, 0, 0),
    "collations-table": (0, 1, 7, 4, 0),
    "corrupted-last-checkpoint-kernel": (11, 1, 2, 1, 2),
    "data-reader-array-primitives": (0, 1, 2, 10, 2),
    "data-reader-date-types-Etc/GMT+9": (0, 1, 2, 2, 2),
    "data-reader-date-types-PST": (0, 1, 2, 2, 2),
    "data-reader-date-types-UTC": (0, 1, 2, 2, 2),
    "data-reader-map": (0, 1, 2, 7, 2),
    "data-reader-partition-values": (0, 1, 2, 15, 3),
    "data-reader-primitives": (0, 1, 2, 10, 2),
    "data-reader-timestamp_ntz-id-mode": (1, 3, 7, 3, 4),
    "data-skipping-basic-stats-all-types": (0, 1, 2, 10, 1),
    "data-skipping-basic-stats-all-types-checkpoint": (0, 1, 2, 10, 1),
    "data-skipping-basic-stats-all-types-columnmapping-id": (0, 2, 5, 10, 1),
    "data-skipping-change-stats-collected-across-versions": (4, 1, 2, 2, 3),
    "delete-re-add-same-file-different-transactions": (3, 1, 2, 1, 2),
    "dv-with-columnmapping": (15, 3, 7, 3, 15),
    "kernel-timestamp-INT96": (0, 1, 2, 3, 5),
    "kernel-timestamp-PST": (0, 1, 2, 3, 5),
    "kernel-timestamp-partition-col-ISO8601": (0, 1, 2, 2, 2),
    "log-replay-dv-key-cases": (3, 3, 7, 1, 1),
    "log-replay-special-characters": (1, 1, 2, 1, 0),
    "parquet-all-types": (0, 3, 7, 20, 1),
    "parquet-all-types-legacy-format": (0, 3, 7, 20, 1),
    "parquet-decimal-type": (0, 1, 2, 4, 1),
    "snapshot-data2": (2, 1, 2, 2, 2),
    "snapshot-repartitioned": (5, 1, 2, 2, 2),
    "spark-shredded-variant-preview-delta": (2, 3, 7, 7, 4),
    "spark-variant-checkpoint": (2, 3, 7, 7, 4),
    "table-with-columnmapping-mode-id": (0, 2, 5, 22, 2),
    "table-with-columnmapping-mode-name": (0, 2, 5, 22, 2),
    "time-travel-partition-changes-a": (0, 1, 2, 2, 10),
    "time-travel-schema-changes-b": (1, 1, 2, 2, 4),
    "time-travel-start": (0, 1, 2, 1, 2),
    "time-travel-start-start20-start40": (2, 1, 2, 1, 6),
    "type-widening": (2, 3, 7, 13, 2),
    "update-deleted-directory": (0, 1, 2, 0, 10),
    "v2-checkpoint-json": (2, 3, 7, 1, 4),
    "variant-stats-no-checkpoint": (1, 3, 7, 3, 1),
    "variant-stats-with-struct-no-checkpoint": (1, 3, 7, 2, 2),
}
REFUSED = {
    "deltalog-invalid-protocol-version": ("UNSUPPORTED_READER_VERSION", "99"),
    "deltalog-state-reconstruction-without-metadata": ("CORRUPT_LOG", "metaData"),
    "log-store-listFrom": ("TABLE_NOT_FOUND", "log-store-listFrom"),
    "no-delta-log-folder": ("TABLE_NOT_FOUND", "no-delta-log-folder"),
    "versions-not-contiguous": ("LOG_GAP", "no commit 1"),
}


@pytest.fixture
def tables(shared: Path) -> Path:
    return shared / "conformance" / "delta-tables"


def open_table(tables: Path, name: str) -> Snapshot:
    return load(Storage.open(tables / name))


def test_every_public_table_is_here(tables: Path) -> None:
    found = {path.name for path in tables.iterdir() if path.is_dir()}
    assert found == {name.partition("/")[0] for name in WHAT} | set(REFUSED)


@pytest.mark.parametrize("name", WHAT)
def test_a_table_is_what_its_log_says(tables: Path, name: str) -> None:
    table = open_table(tables, name)
    found = (table.version, table.protocol.reader, table.protocol.writer, len(table.schema), table.files.num_rows)
    assert found == WHAT[name]
    assert len(table.stats()) == len(table.tags()) == table.files.num_rows
    for text in table.stats().to_pylist():
        assert text is None or isinstance(orjson.loads(text), dict)
    for column in table.partition_columns:
        assert table.schema.find(column) is not None
    assert history(table.storage).num_rows >= 1
    assert schema_json.loads(schema_json.dumps(table.schema)) == table.schema


@pytest.mark.parametrize("name", WHAT)
def test_every_earlier_version_opens_too(tables: Path, name: str) -> None:
    latest = open_table(tables, name)
    for version in range(latest.version):
        try:
            table = load(latest.storage, version)
        except MicaError as error:
            if error.code != "VERSION_EXPIRED":  # only where the log before a checkpoint is gone
                raise
            continue
        assert table.version == version
        assert table.refresh().files.sort_by("path").equals(latest.files.sort_by("path"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_broken_is_refused_as_its_name_says(tables: Path, name: str) -> None:
    code, says = REFUSED[name]
    with pytest.raises(MicaError, match=says) as caught:
        _ = open_table(tables, name).files
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("name", "rows"), [("dv-with-columnmapping", [[0], [0]]), ("log-replay-dv-key-cases", [[0, 7, 14]])]
)
def test_deletion_vectors_are_read(tables: Path, name: str, rows: list[list[int]]) -> None:
    table = open_table(tables, name)
    vectors = [vector for vector in table.files["deletion_vector"].to_pylist() if vector is not None]
    assert [deleted_rows(table.storage, vector).tolist() for vector in vectors] == rows


def test_preview_features_are_the_features(tables: Path) -> None:
    assert names(open_table(tables, "spark-variant-checkpoint").protocol) >= {"variantType"}
    assert names(open_table(tables, "spark-shredded-variant-preview-delta").protocol) >= {
        "variantType",
        "variantShredding",
    }
