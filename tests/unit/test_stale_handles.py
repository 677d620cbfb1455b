"""Whoever holds a table while others change it: what they do is on top of what is there, or it is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import mica
from mica.errors import ConflictError, MicaError, UserError
from mica.log.checkpoint_writer import write_checkpoint

DDL = "id BIGINT, s STRING"
Operation = Callable[[mica.Table], object]


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "s": pa.array([str(n) for n in numbers])})


#: Every operation that writes nothing but metadata, and whether an append of another forbids it.
OPERATIONS: dict[str, tuple[Operation, bool]] = {
    "set_properties": (lambda t: t.set_properties({"delta.logRetentionDuration": "interval 9 days"}), False),
    "unset_properties": (lambda t: t.set_properties({"delta.logRetentionDuration": None}), False),
    "add_columns": (lambda t: t.add_columns("n INT"), False),
    "rename_column": (lambda t: t.rename_column("s", "other"), True),
    "set_collation": (lambda t: t.set_collation("s", "UTF8_LCASE"), False),
    "drop_collation": (lambda t: t.set_collation("s"), False),
    "restats": (lambda t: t.restats(), False),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_metadata_changed_from_a_stale_handle_loses_no_rows(tmp_path: Path, name: str) -> None:
    operation, rests_on_files = OPERATIONS[name]
    stale = mica.Table.create(tmp_path / "t", DDL)
    mica.Table.open(tmp_path / "t").append(rows(7))
    if rests_on_files:
        with pytest.raises(ConflictError) as caught:
            operation(stale)
        assert caught.value.code == "CONCURRENT_APPEND"
    else:
        operation(stale)
    found = mica.Table.open(tmp_path / "t").scan().to_arrow()
    assert found.column(0).to_pylist() == [7]
    assert found.column(1).to_pylist() == ["7"]


@pytest.mark.parametrize("name", [*OPERATIONS, "append", "overwrite", "create"])
@pytest.mark.parametrize("other", ["set_properties", "add_columns", "rename_column", "set_collation"])
def test_metadata_changed_twice_at_once_is_refused(tmp_path: Path, name: str, other: str) -> None:
    every: dict[str, Operation] = {
        **{known: operation for known, (operation, _) in OPERATIONS.items()},
        "append": lambda t: t.append(rows(1)),
        "overwrite": lambda t: t.overwrite(rows(1)),
        "create": lambda t: mica.Table.create(t.path, DDL, mode="overwrite"),
    }
    stale = mica.Table.create(tmp_path / "t", DDL)
    every[other](mica.Table.open(tmp_path / "t"))
    if name in ("create", "restats"):  # opens it anew; has nothing to do
        every[name](stale)
        assert mica.Table.open(tmp_path / "t").version == (2 if name == "create" else 1)
        return
    with pytest.raises(ConflictError) as caught:
        every[name](stale)
    assert caught.value.code in ("METADATA_CHANGED", "PROTOCOL_CHANGED")


def gone(path: Path) -> None:
    shutil.rmtree(path)


def anew(versions: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        shutil.rmtree(path)
        table = mica.Table.create(path, "x BIGINT")
        for number in range(versions):
            table.append(pa.table({"x": pa.array([number], pa.int64())}))

    change.__name__ = f"anew_{versions}"
    return change


WRITES: dict[str, Operation] = {
    **{known: operation for known, (operation, _) in OPERATIONS.items() if known not in ("restats", "rename_column")},
    "append": lambda t: t.append(rows(7)),
    "overwrite": lambda t: t.overwrite(rows(7)),
}
CHANGES = [gone, anew(0), anew(1), anew(4)]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize(
    ("name", "checkpoint"), [*((name, False) for name in WRITES), ("append", True), ("overwrite", True)]
)
def test_nothing_is_committed_to_a_table_that_was_made_anew(
    tmp_path: Path, name: str, change: Callable[[Path], None], checkpoint: bool
) -> None:
    path = tmp_path / "t"
    mica.Table.create(path, DDL).append(rows(1))
    if checkpoint:
        write_checkpoint(mica.Table.open(path).snapshot)
    held = mica.Table.open(path)
    change(path)
    before = sorted((path / "_delta_log").glob("*")) if path.exists() else []
    with pytest.raises(ConflictError) as caught:
        WRITES[name](held)
    assert caught.value.code == "TABLE_REPLACED"
    assert (sorted((path / "_delta_log").glob("*")) if path.exists() else []) == before


@pytest.mark.parametrize("versions", [0, 1, 2, 4])
def test_a_refreshed_handle_sees_the_new_table_alone(tmp_path: Path, versions: int) -> None:
    mica.Table.create(tmp_path / "t", DDL).append(rows(1))
    held = mica.Table.open(tmp_path / "t")
    anew(versions)(tmp_path / "t")
    assert held.refresh().scan().to_arrow().column("x").to_pylist() == list(range(versions))
    gone(tmp_path / "t")
    with pytest.raises(MicaError) as caught:
        held.refresh()
    assert caught.value.code == "TABLE_NOT_FOUND"


def cleaned_up(path: Path, change: Operation = lambda _: None) -> None:
    """Others write, change the table, and clean up its log: what was open is gone from it."""
    table = mica.Table.open(path)
    change(table)
    for number in range(3):
        table.append(rows(number))
    write_checkpoint(table.snapshot)
    for version in range(table.version):
        (path / "_delta_log" / f"{version:020}.json").unlink()
        (path / "_delta_log" / f"{version:020}.checkpoint.parquet").unlink(missing_ok=True)


def test_an_append_follows_the_newest_version_when_the_log_was_cleaned_up(tmp_path: Path) -> None:
    """On top of its own it would be a version that everybody has read past."""
    path = tmp_path / "t"
    held = mica.Table.create(path, DDL, properties={"delta.enableRowTracking": "true"})
    cleaned_up(path)
    held.append(rows(9), txn=("app", 1))
    assert held.version == mica.Table.open(path).version == 4
    assert not (path / "_delta_log" / f"{1:020}.json").exists()
    ids = mica.Table.open(path).scan(columns=["id", "_metadata.row_id"]).to_arrow().to_pydict()
    assert sorted(ids["id"]) == [0, 1, 2, 9]
    assert len(set(ids["row_id"])) == 4


CHANGED: dict[str, Operation] = {
    "properties": lambda t: t.set_properties({"delta.logRetentionDuration": "interval 9 days"}),
    "columns": lambda t: t.add_columns("n INT"),
    "feature": lambda t: t.set_properties({"delta.enableDeletionVectors": "true"}),
    "application": lambda t: t.append(rows(8), txn=("app", 1)),
}


@pytest.mark.parametrize("change", CHANGED)
def test_an_append_does_not_follow_another_table(tmp_path: Path, change: str) -> None:
    held = mica.Table.create(tmp_path / "t", DDL)
    cleaned_up(tmp_path / "t", CHANGED[change])
    before = sorted((tmp_path / "t" / "_delta_log").glob("*"))
    with pytest.raises(ConflictError) as caught:
        held.append(rows(9), txn=("app", 2))
    assert caught.value.code == "TABLE_REPLACED"
    assert sorted((tmp_path / "t" / "_delta_log").glob("*")) == before


@pytest.mark.parametrize("name", [name for name in WRITES if name != "append"])
def test_what_is_more_than_an_append_is_refused_on_a_log_that_was_cleaned_up(tmp_path: Path, name: str) -> None:
    held = mica.Table.create(tmp_path / "t", DDL).append(rows(7)) and mica.Table.open(tmp_path / "t")
    cleaned_up(tmp_path / "t")
    with pytest.raises(ConflictError) as caught:
        WRITES[name](held)
    assert caught.value.code == "TABLE_REPLACED"


READS: dict[str, Operation] = {
    "scan": lambda t: t.scan(where="id = 1").to_arrow(),
    "count": lambda t: t.count(),
    "files": lambda t: t.files(),
    "explain": lambda t: t.scan(where="id = 1").explain().to_dict(),
    "delete": lambda t: t.delete("id = 1"),
    "update": lambda t: t.update({"s": "'x'"}, "id = 1"),
    "merge": lambda t: t.merge(rows(1), "source.id = target.id").when_matched_delete().execute(),
    "dataset": lambda t: mica.dataset(t).to_table(filter=pc.field("id") == 1),
}


@pytest.mark.parametrize("name", READS)
def test_what_the_log_no_longer_has_is_not_called_corrupt(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t"
    mica.Table.create(path, DDL).append(rows(1, 2))
    write_checkpoint(mica.Table.open(path).snapshot)
    held = mica.Table.open(path)
    cleaned_up(path)
    assert held.scan().to_arrow().num_rows == 2  # without a condition nothing more of the log is asked
    with pytest.raises(UserError, match=r"version 1 of .* was opened, can no longer be read") as caught:
        READS[name](held)
    assert caught.value.code == "VERSION_EXPIRED"
    assert "refresh()" in str(caught.value.hint)
    READS[name](held.refresh())
    assert held.version >= 4
