"""Restore: an older version's content, in one commit, with nothing rewritten."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import mica
from mica.errors import ConflictError, StorageError, UserError
from mica.log import features
from mica.log.clustering import cluster_by
from mica.log.transaction import Transaction


def ids(table: mica.Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def table_of(path: Path) -> mica.Table:
    table = mica.Table.create(path, "id INT")
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    table.overwrite([{"id": 3}])
    return table


def test_files_come_back_and_go(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    files = sorted(tmp_path.glob("*.parquet"))
    done = table.restore(version=2)
    assert (done.version, done.restored_version, done.restored_files, done.removed_files) == (4, 2, 2, 1)
    assert ids(table) == ids(mica.Table.open(tmp_path)) == [1, 2]
    assert sorted(tmp_path.glob("*.parquet")) == files
    stats = mica.Table.open(tmp_path, version=2).files().select(["path", "stats"]).sort_by("path")
    assert table.files().select(["path", "stats"]).sort_by("path") == stats
    assert "snapshot" not in done.to_dict()
    last = table.history(limit=1).to_pylist()[0]
    assert last["operation"] == "RESTORE"
    assert dict(last["operation_metrics"])["numRestoredFiles"] == "2"
    assert table.restore(version=3).restored_files == 1
    assert ids(table) == [3]


def test_schema_and_properties_come_back_and_the_protocol_stays(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.add_columns("v VARIANT, t STRING COLLATE UNICODE_CI")
    table.set_properties({"delta.appendOnly": "false", "delta.targetFileSize": "1MB"})
    table.append([{"id": 4, "v": '{"a": 1}', "t": "x"}])
    newest, protocol = table.version, table.protocol
    table.restore(version=1)
    assert (str(table.schema), ids(table)) == (str(mica.Table.open(tmp_path, version=1).schema), [1])
    assert table.properties == mica.Table.open(tmp_path, version=1).properties
    assert table.protocol == protocol
    table.restore(version=newest)
    assert table.schema == mica.Table.open(tmp_path, version=newest).schema
    assert table.properties["delta.targetFileSize"] == "1MB"
    assert ids(table) == [3, 4]
    assert table.scan("v:a::int = 1").count() == 1


def test_what_cannot_be_restored_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    with pytest.raises(UserError):
        table.restore()
    with pytest.raises(UserError) as unknown:
        table.restore(version=99)
    assert unknown.value.code == "VERSION_NOT_FOUND"
    gone = mica.Table.open(tmp_path, version=1).file_uris()[0]
    Path(gone).unlink()
    before = table.version
    with pytest.raises(StorageError) as missing:
        table.restore(version=2)
    assert (missing.value.code, missing.value.context["path"]) == ("NOT_FOUND", gone)
    assert mica.Table.open(tmp_path).version == before


def test_the_protection_of_old_checkpoints_stays(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    upgraded = features.upgraded(table.protocol, {"checkpointProtection"})
    metadata = table.metadata.with_configuration({"delta.requireCheckpointProtectionBeforeVersion": "4"})
    transaction = Transaction(table.snapshot, "DROP FEATURE")
    transaction.update_protocol(upgraded)
    transaction.update_metadata(metadata)
    transaction.commit()
    table.restore(version=1)
    assert table.properties["delta.requireCheckpointProtectionBeforeVersion"] == "4"


def test_an_append_that_came_between_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mica.maintain.restore as module

    table = table_of(tmp_path)
    missing = module._refuse_missing

    def meanwhile(*arguments: object) -> None:
        missing(*arguments)  # type: ignore[arg-type]
        mica.Table.open(tmp_path).append([{"id": 7}])

    monkeypatch.setattr(module, "_refuse_missing", meanwhile)
    with pytest.raises(ConflictError):
        table.restore(version=1)
    assert ids(mica.Table.open(tmp_path)) == [3, 7]


def test_inputs_whose_rows_went_may_be_ingested_again(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a":1}\n')
    (tmp_path / "b.ndjson").write_text('{"a":2}\n')
    path = tmp_path / "t"
    mica.ingest_json(str(tmp_path / "a.ndjson"), path, idempotent=True)
    mica.ingest_json(str(tmp_path / "b.ndjson"), path, idempotent=True)
    table = mica.Table.open(path)
    table.restore(version=0)
    assert table.count() == 1
    again = mica.ingest_json([str(tmp_path / "a.ndjson"), str(tmp_path / "b.ndjson")], path, idempotent=True)
    assert (again.rows, again.skipped_files) == (1, 1)
    assert table.refresh().count() == 2


def test_identity_columns_go_on_where_they_are(tmp_path: Path) -> None:
    down = "down BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 9 INCREMENT BY -1)"
    table = mica.Table.create(tmp_path / "t", f"id BIGINT GENERATED ALWAYS AS IDENTITY, {down}, n INT")
    table.append([{"n": 1}])
    table.append([{"n": 2}, {"n": 3}])
    for version in (1, 0):
        table.restore(version)
        table.append([{"n": 4}])
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [{"id": 5, "down": 5, "n": 4}]


@pytest.mark.parametrize(
    ("older", "newest", "wanted"),
    [
        ((1, 1), (-100, -7), [1, 2]),
        ((1, 3), (5, 1), [10, 13]),
        ((9, -2), (100, 5), [9, 7]),
        ((1, 2), (1, 2), [5, 7]),
    ],
)
def test_identity_columns_that_were_made_anew_go_on_in_their_own_sequence(
    tmp_path: Path, older: tuple[int, int], newest: tuple[int, int], wanted: list[int]
) -> None:
    """Numbers began before the start of the older column, which counts upwards: its mark was one that counts down."""
    for start, step in (older, newest):
        ddl = f"id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH {start} INCREMENT BY {step}), n INT"
        table = mica.Table.create(tmp_path / "t", ddl, mode="overwrite")
    table.append([{"n": 1}, {"n": 2}])
    table.restore(0)
    table.append([{"n": 3}, {"n": 4}])
    assert [row["id"] for row in table.to_arrow().to_pylist()] == wanted


def test_an_id_that_a_column_had_is_given_to_no_other(tmp_path: Path) -> None:
    """A new column had the values of a dropped one, after mapping was dropped and came back."""
    table = mica.Table.create(tmp_path, "a INT, c STRING", properties={"delta.columnMapping.mode": "id"})
    table.append([{"a": 1, "c": "dropped"}])
    table.drop_columns(["c"])
    version = table.version
    table.drop_feature("columnMapping")
    table.restore(version)
    table.add_columns("d STRING")
    assert table.to_arrow().to_pylist() == [{"a": 1, "d": None}]
    assert table.properties["delta.columnMapping.maxColumnId"] == "3"


def test_the_newest_version_is_there_already(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a INT", data=[{"a": 1}])
    done = table.restore(0)
    assert (done.version, done.restored_files, done.removed_files, table.refresh().version) == (0, 0, 0, 0)
    assert table.restore(0, txn=("nightly", 1)).version == 1  # the version of the application is said


def test_rows_get_their_ids_again(tmp_path: Path) -> None:
    """A table that tracked rows, and then no more, as after delta-spark's DROP FEATURE rowTracking."""
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableRowTracking": "true"})
    table.append([{"id": 1}, {"id": 2}])
    table.append([{"id": 3}])
    ids_of = {"id": "id", "row": "_metadata.row_id", "version": "_metadata.row_commit_version"}
    before = table.scan(columns=ids_of).to_arrow().sort_by("id")
    read = [
        orjson.loads(line)
        for log in sorted(tmp_path.glob("_delta_log/*.json"))
        for line in log.read_bytes().splitlines()
    ]
    protocol, metadata = (next(line for line in read if kind in line) for kind in ("protocol", "metaData"))
    protocol["protocol"]["writerFeatures"].remove("rowTracking")
    metadata["metaData"]["configuration"] = {}
    gone = {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "", "removed": True}}
    plain = [line for line in read if "add" in line]
    for line in plain:
        del line["add"]["baseRowId"], line["add"]["defaultRowCommitVersion"]
    lines = [protocol, metadata, gone, *plain]
    (tmp_path / "_delta_log" / f"{3:020}.json").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    table = mica.Table.open(tmp_path)
    assert "rowTracking" not in table.protocol.writer_features
    table.append([{"id": 4}])
    assert table.restore(version=2).restored_files == 0
    assert mica.Table.open(tmp_path).scan(columns=ids_of).to_arrow().sort_by("id") == before
    table.append([{"id": 5}])
    assert max(table.scan(columns=ids_of).to_arrow()["row"].to_pylist()) == 3
    table.set_properties({"delta.enableRowTracking": "false"})
    table.delete("id < 3")
    again = table.restore(version=2)
    assert again.restored_files == 1
    assert mica.Table.open(tmp_path).scan(columns=ids_of).to_arrow().sort_by("id") == before
    table.append([{"id": 6}])
    rows = table.scan(columns=ids_of).to_arrow()["row"].to_pylist()
    assert len(set(rows)) == len(rows)


def test_the_columns_that_cluster_a_table_are_restored(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a INT, b INT")
    table.cluster_by(["a"])
    table.cluster_by(["b"])
    for version, columns in ((1, ["a"]), (2, ["b"]), (0, [])):
        table.restore(version=version)
        assert cluster_by(mica.Table.open(tmp_path).snapshot) == columns


def test_domains_of_others_stay_as_they_are(tmp_path: Path) -> None:
    """PROTOCOL.md, "Domain Metadata": a writer updates only system-controlled domains that it knows; those of users are
    none of its business, and stay in delta-spark's RESTORE too."""
    table = mica.Table.create(tmp_path, "a INT", properties={"delta.feature.domainMetadata": "supported"})

    def domains(**given: str) -> None:
        lines = ({"domainMetadata": {"domain": n, "configuration": v, "removed": False}} for n, v in given.items())
        name = f"{mica.Table.open(tmp_path).version + 1:020}.json"
        (tmp_path / "_delta_log" / name).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))

    domains(**{"delta.unknown": "1", "com.app": "1"})
    then = table.refresh().version
    table.append([{"a": 1}])
    domains(**{"delta.unknown": "2", "com.app": "2", "com.new": "1"})
    table.restore(version=then)
    assert mica.Table.open(tmp_path).snapshot.domains == {"delta.unknown": "2", "com.app": "2", "com.new": "1"}
    assert table.count() == 0
    target = mica.Table.create(tmp_path.with_name("target"), "a INT")
    assert table.clone(target.path, replace=True).snapshot.domains == {}
