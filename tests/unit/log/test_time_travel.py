"""Time travel: the last version that is not later than the time asked for."""

from __future__ import annotations

import os
import time
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

import mica
from mica.errors import CorruptDataError, UserError
from mica.log.checkpoint_writer import write_checkpoint
from mica.log.history import history
from mica.log.listing import list_log
from mica.log.snapshot import Snapshot, load
from mica.log.time_travel import Timestamp, to_millis, version_after, version_before
from mica.log.transaction import Transaction
from mica.storage import Storage
from tests.unit.log.tables import added, append, create


def with_times(root: Path, *times: int, **properties: str) -> Snapshot:
    """A table whose commits have these modification times (ms)."""
    table = create(root, **properties)
    for number in range(1, len(times)):
        table = append(table, f"f{number}").snapshot
    for version, at in enumerate(times):
        os.utime(root / "_delta_log" / f"{version:020d}.json", ns=(at * 10**6, at * 10**6))
    return table


@pytest.mark.parametrize(("asked", "version"), [(1000, 0), (1999, 0), (2000, 1), (2500, 1), (3000, 2)])
def test_the_version_that_was_current(tmp_path: Path, asked: int, version: int) -> None:
    table = with_times(tmp_path, 1000, 2000, 3000)
    assert load(table.storage, timestamp=asked).version == version


def test_times_that_go_back_are_made_increasing(tmp_path: Path) -> None:
    table = with_times(tmp_path, 1000, 5000, 2000, 2000, 9000)
    versions = [load(table.storage, timestamp=t).version for t in (4999, 5000, 5001, 5002, 8999, 9000)]
    assert versions == [0, 1, 2, 3, 3, 4]
    shown = history(table.storage)["timestamp"].cast("int64").to_pylist()
    assert shown == [9000, 5002, 5001, 5000, 1000]


def test_the_history_shows_the_times_that_find_its_versions(tmp_path: Path) -> None:
    """Those of the newest version alone were not made increasing."""
    table = with_times(tmp_path, 5000, 6000, 3000)
    for limit in (1, 2, None):
        rows = history(table.storage, limit=limit).select(["version", "timestamp"]).to_pylist()
        assert [load(table.storage, timestamp=row["timestamp"]).version for row in rows] == [2, 1, 0][:limit]


@pytest.mark.parametrize("asked", [999, 3001])
def test_a_time_outside_the_history_is_an_error_with_its_limits(tmp_path: Path, asked: int) -> None:
    table = with_times(tmp_path, 1000, 2000, 3000)
    with pytest.raises(UserError, match=r"1970-01-01T00:00:0[13]\.000") as caught:
        load(table.storage, timestamp=asked)
    assert caught.value.code == "TIMESTAMP_OUT_OF_RANGE"


def test_a_range_of_times_begins_and_ends_with_the_commits_inside_it(tmp_path: Path) -> None:
    storage = with_times(tmp_path, 1000, 2000, 3000).storage
    listing = list_log(storage)
    assert [version_after(storage, listing, t) for t in (0, 1000, 1001, 2000, 3000)] == [0, 0, 1, 1, 2]
    assert [version_before(storage, listing, t) for t in (1000, 1999, 2000, 3000, 9000)] == [0, 0, 1, 2, 2]
    for outside in (lambda: version_after(storage, listing, 3001), lambda: version_before(storage, listing, 999)):
        with pytest.raises(UserError) as caught:
            outside()
        assert caught.value.code == "TIMESTAMP_OUT_OF_RANGE"


def test_in_commit_timestamps_count_and_not_the_files_times(tmp_path: Path) -> None:
    table = create(tmp_path, delta__enableInCommitTimestamps="true")
    stamps = [table.timestamp]
    for number in range(4):
        # A clock that stands still: each stamp is one more than the last.
        transaction = Transaction(table, "WRITE")
        transaction.add_files([added(f"f{number}")])
        table = transaction.commit(clock=lambda: 5.0).snapshot
        stamps.append(table.timestamp)
    assert stamps == sorted(set(stamps))
    assert stamps[1:] == [stamps[0] + n for n in (1, 2, 3, 4)]
    for version in range(5):
        os.utime(tmp_path / "_delta_log" / f"{version:020d}.json", ns=(version, version))
    assert [load(table.storage, timestamp=stamp).version for stamp in stamps] == [0, 1, 2, 3, 4]
    assert [load(table.storage, v).timestamp for v in range(5)] == stamps


@pytest.mark.parametrize("cleaned", [False, True])
def test_after_a_checkpoint_the_commit_s_own_time_counts(tmp_path: Path, cleaned: bool) -> None:
    """A checkpoint holds no time: the clock of whoever wrote the file must not take its place."""
    table = create(tmp_path, delta__enableInCommitTimestamps="true")
    transaction = Transaction(table, "WRITE")
    transaction.add_files([added("f")])
    table = transaction.commit(clock=lambda: 9e9).snapshot  # its clock is ahead of all others
    write_checkpoint(table)
    if cleaned:
        (tmp_path / "_delta_log" / f"{1:020d}.json").unlink()
    for path in (tmp_path / "_delta_log").iterdir():
        os.utime(path, ns=(1, 1))
    again = load(Storage.open(tmp_path))
    assert again.timestamp == (table.timestamp if not cleaned else 0)
    stamp = Transaction(again, "WRITE")
    stamp.add_files([added("g")])
    following = stamp.commit(clock=lambda: 1.0).snapshot
    assert cleaned or following.timestamp == table.timestamp + 1
    times = history(table.storage)["timestamp"].cast("int64").to_pylist()
    assert cleaned or times == sorted(times, reverse=True)


def test_turned_on_later_they_count_from_there(tmp_path: Path) -> None:
    from mica.log.creation import altered

    table = with_times(tmp_path, 1000, 2000)
    transaction = Transaction(table.refresh(), "SET TBLPROPERTIES")
    protocol, metadata = altered(table.protocol, table.metadata, changes={"delta.enableInCommitTimestamps": "true"})
    transaction.update_protocol(protocol)
    transaction.update_metadata(metadata)
    table = transaction.commit().snapshot
    assert table.protocol.writer_features >= {"inCommitTimestamp"}
    assert table.properties["delta.inCommitTimestampEnablementVersion"] == "2"
    assert table.properties["delta.inCommitTimestampEnablementTimestamp"] == str(table.timestamp)
    os.utime(tmp_path / "_delta_log" / f"{2:020d}.json", ns=(1, 1))
    assert [load(table.storage, timestamp=t).version for t in (1000, 2000, table.timestamp)] == [0, 1, 2]
    # A copy of the table: files of before are younger than the stamps of after.
    for version in (0, 1):
        os.utime(tmp_path / "_delta_log" / f"{version:020d}.json", (4e9, 4e9))
    later = append(table, "f9").snapshot
    stamps = [table.timestamp - 2, table.timestamp - 1, table.timestamp, later.timestamp]
    assert [load(table.storage, timestamp=t).version for t in stamps] == [0, 1, 2, 3]
    shown = history(table.storage)["timestamp"].cast("int64").to_pylist()
    assert shown == stamps[::-1]
    assert [history(table.storage, limit=n)["timestamp"].cast("int64").to_pylist() for n in range(5)] == [
        shown[:n] for n in range(5)
    ]


@pytest.mark.parametrize(
    ("asked", "millis"),
    [
        (5, 5),
        ("1970-01-01", 0),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01 00:00:00.123456789", 123),
        ("1970-1-2", 86_400_000),
        (" 1970 ", 0),
        ("1970-01-01 0:0:1", 1000),
        ("1970-01-01 01:00:00 Europe/Berlin", 0),
        ("1970-01-01 00:00:00 GMT-1", 3_600_000),
        (date(1970, 1, 2), 86_400_000),
        (datetime(1970, 1, 1, 0, 0, 1, 999_999), 1999),  # noqa: DTZ001 - without a zone is a case
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=-1))), 3_600_000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC), -1),
    ],
    ids=str,
)
def test_a_time_in_any_form(asked: Timestamp, millis: int) -> None:
    assert to_millis(asked) == millis


def test_a_time_without_a_zone_is_utc_wherever_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        found = to_millis("1970-01-01 00:00:01"), to_millis(date(1970, 1, 1))
    time.tzset()
    assert found == (1000, 0)


@pytest.mark.parametrize("asked", ["yesterday", "", "2026-13-01", "2026-2-30", "+12026-1-1", "-1-1-1", "12:60", True])
def test_what_is_no_time_is_refused(asked: Timestamp) -> None:
    with pytest.raises(UserError):
        to_millis(asked)


def test_a_version_and_a_time_at_once_are_refused(tmp_path: Path) -> None:
    create(tmp_path)
    with pytest.raises(UserError, match="both"):
        load(Storage.open(tmp_path), 0, 5)


def test_in_commit_timestamps_that_were_off_for_a_while(tmp_path: Path) -> None:
    name = "delta.enableInCommitTimestamps"
    table = mica.Table.create(tmp_path, "id INT", properties={name: "true"})
    for text in ("true", "false", "true"):
        table.set_properties({name: text})
        for _ in range(2):
            table.append([{"id": 1}])
    told = {row["version"]: row["timestamp"] for row in table.history().to_pylist()}
    assert told[0].year > 1970
    assert sorted(told.values()) == [told[version] for version in sorted(told)]
    for version, at in told.items():
        assert mica.Table.open(tmp_path, timestamp=at).version == version


@pytest.mark.parametrize("asked", [1 << 62, -(1 << 62)])
def test_a_time_in_no_year_is_outside_too(tmp_path: Path, asked: int) -> None:
    with pytest.raises(UserError, match=rf"TIMESTAMP_OUT_OF_RANGE.*{asked} ms since 1970"):
        load(with_times(tmp_path, 1000).storage, timestamp=asked)


def test_a_log_of_a_checkpoint_alone_has_a_table_and_no_times(tmp_path: Path) -> None:
    """It was said to be no table, with the advice to convert it to one."""
    table = append(create(tmp_path), "a").snapshot
    write_checkpoint(table)
    for commit in (tmp_path / "_delta_log").glob("*.json"):
        commit.unlink()
    assert (load(table.storage).version, history(table.storage).num_rows) == (1, 0)
    with pytest.raises(UserError, match="checkpoint of version 1, and no commit") as caught:
        load(table.storage, timestamp=date(2030, 1, 1))
    assert caught.value.code == "TIMESTAMP_OUT_OF_RANGE"
    assert append(load(table.storage), "b").version == 2


@pytest.mark.parametrize("own", ["true", "false"])
def test_a_damaged_commit_is_in_the_history_of_a_table_that_was_opened_before_it(tmp_path: Path, own: str) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableInCommitTimestamps": own})
    mica.Table.open(tmp_path).append([{"id": 1}])
    commit = tmp_path / "_delta_log" / f"{1:020d}.json"
    commit.write_bytes(commit.read_bytes().splitlines()[0] + b'\n{"add":')
    assert table.history()["version"].to_pylist() == [1, 0]
    with pytest.raises(CorruptDataError):
        table.refresh()
