"""Changes of a range of versions: rows and types of change, where they come from, what is skipped and refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import mica
from mica.errors import MicaError, StorageError, UnsupportedTableError, UserError

FEEDS = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
WAYS = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copies", "vectors"])


def table_of(path: Path, **properties: str) -> mica.Table:
    table = mica.Table.create(path, "id INT, p STRING, v VARIANT", ["p"], properties={**FEEDS, **properties})
    table.append([{"id": i, "p": "ab"[i % 2], "v": {"a": i}} for i in range(6)])
    return table


def told(table: mica.Table, *versions: int, **asked: Any) -> list[tuple[int, str, int]]:
    """Version, type of change and id of each change."""
    rows = table.changes(*versions, **asked).to_arrow().to_pylist()
    return sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in rows)


@WAYS
def test_each_commit_tells_its_changes(tmp_path: Path, properties: dict[str, str]) -> None:
    table = table_of(tmp_path, **properties)
    table.delete("id IN (3, 4)")
    table.update({"p": "'c'"}, "id IN (1, 5)")
    table.delete("p = 'c'")
    table.append([{"id": 7, "p": "a", "v": None}])
    table.optimize()
    table.restore(2)
    table.overwrite([{"id": 9, "p": "a", "v": None}], "p = 'a'")
    assert told(table, 0) == [
        *((1, "insert", i) for i in range(6)),
        (2, "delete", 3), (2, "delete", 4),
        *((3, "update_" + when, i) for when in ("postimage", "preimage") for i in (1, 5)),
        (4, "delete", 1), (4, "delete", 5), (5, "insert", 7),
        *told(table, 7, 7),
        (8, "delete", 0), (8, "delete", 2), (8, "insert", 9),
    ]  # fmt: skip
    # A restore of other files tells all of their rows: what is left is that of the version.
    left: dict[int, int] = {}
    for _, change, number in told(table, 3, 7):
        left[number] = left.get(number, 0) + (1 if change in ("insert", "update_postimage") else -1)
    assert {number for number, count in left.items() if count} == set()
    assert table.changes(0).count() == len(told(table, 0))
    assert told(mica.Table.open(tmp_path, version=3), 2) == told(table, 2, 3)


def test_columns_of_the_feed_have_types_and_can_be_asked(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.delete("id = 4")
    scan = table.changes(1)
    assert str(scan.schema).endswith(
        "_change_type STRING,_commit_version BIGINT,_commit_timestamp TIMESTAMP"
    )  # fmt: skip
    when = {row["version"]: row["timestamp"] for row in table.history().to_pylist()}
    assert {row["_commit_timestamp"] for row in scan.to_arrow().to_pylist()} == {when[1], when[2]}
    assert table.changes(1, columns={"n": "_commit_version + id"}, where="_change_type = 'delete'").to_arrow().column(
        "n").to_pylist() == [6]  # fmt: skip
    assert table.changes(1, limit=2).to_arrow().num_rows == 2
    reader = table.changes(1, where="v:a::int = 4").to_reader()
    assert [row["_change_type"] for row in reader.read_all().to_pylist()] == ["insert", "delete"]


def test_a_version_has_one_time_wherever_a_feed_begins(tmp_path: Path) -> None:
    """Stores know whole seconds: a feed from version 3 on said another time than one from 1, and than the history."""
    table = mica.Table.create(tmp_path, "id INT", properties=FEEDS)
    for number in range(5):
        table.append([{"id": number}])
    for log in (tmp_path / "_delta_log").glob("*.json"):
        os.utime(log, (1.7e9, 1.7e9))
    table = mica.Table.open(tmp_path)
    when = {row["version"]: row["timestamp"] for row in table.history().to_pylist()}
    assert len(set(when.values())) == 6
    for first in (1, 3, 5):
        rows = table.changes(first).to_arrow().to_pylist()
        assert {row["_commit_version"]: row["_commit_timestamp"] for row in rows} == {
            version: at for version, at in when.items() if version >= first
        }


def test_files_are_skipped_by_version_by_partition_and_by_path(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, p STRING, v VARIANT", ["p"], properties=FEEDS)
    for number in range(4):
        table.append([{"id": number, "p": "ab"[number % 2], "v": {"a": number}}])
    assert len(table.changes(0, where="_commit_version > 3").plan.kept) == 1
    assert len(table.changes(0, where="p = 'a'").plan.kept) == 2
    assert len(table.changes(0, where="v:a::int >= 2").plan.kept) == 2
    moment = table.history(limit=1).to_pylist()[0]["timestamp"].isoformat(sep=" ")
    assert told(table, 0, where=f"_commit_timestamp >= timestamp'{moment}'") == [(4, "insert", 3)]


def test_a_vector_changes_only_the_rows_in_which_it_differs(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={**FEEDS, **VECTORS})
    table.append([{"id": i} for i in range(70_000)])
    table.delete("id % 3 = 0")
    table.delete("id % 3 = 1 AND id > 69000")
    expected = [i for i in range(69_001, 70_000) if i % 3 == 1]
    assert [row[2] for row in told(table, 3)] == expected
    assert table.changes(3).count() == len(expected)
    table.restore(2)
    assert [row[1:] for row in told(table, 4)] == [("insert", i) for i in expected]
    parts = table.changes(3, where="id > 69500").to_arrow()
    assert sorted(parts.column("id").to_pylist()) == sorted([i for i in expected if i > 69_500] * 2)


def test_a_remove_without_partition_values_is_looked_up(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.delete("p = 'a'")
    log = tmp_path / "_delta_log" / f"{2:020d}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        for key in ("partitionValues", "size", "extendedFileMetadata", "tags"):
            line.get("remove", {}).pop(key, None)
    log.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    found = mica.Table.open(tmp_path).changes(2).to_arrow().to_pylist()
    assert sorted((row["p"], row["id"]) for row in found) == [("a", 0), ("a", 2), ("a", 4)]


def test_new_columns_are_null_in_older_changes(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.delete("id = 4")
    table.add_columns("n INT")
    assert {row["n"] for row in table.changes(0).to_arrow().to_pylist()} == {None}
    assert "n" not in table.changes(0, 2).schema.names


@pytest.mark.parametrize("was", ["STRING", "STRUCT<x: INT>", "VARIANT"])
@pytest.mark.parametrize("new", ["DATE", "VARIANT", "ARRAY<INT>"])
def test_a_column_that_had_another_type_is_named(tmp_path: Path, was: str, new: str) -> None:
    """No file is called broken for it."""
    table = mica.Table.create(tmp_path, f"id INT, c {was}", properties=FEEDS)
    values = {"STRING": "a", "STRUCT<x: INT>": {"x": 1}, "VARIANT": 1}
    table.append([{"id": 1, "c": values[was]}])
    mica.Table.create(tmp_path, f"id INT, c {new}", properties=FEEDS, mode="overwrite")
    table = mica.Table.open(tmp_path)
    if was == new:
        assert told(table, 1) == [(1, "insert", 1), (2, "delete", 1)]
        return
    with pytest.raises(UserError, match=r"version 1 changed.* holds .* in the column c") as raised:
        table.changes(1).to_arrow()
    assert raised.value.code == "INCOMPATIBLE_TYPE"
    assert "apart" in str(raised.value.hint)
    assert told(table, 1, 1) == [(1, "insert", 1)]


def test_a_restored_narrower_type_is_named_too(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, x FLOAT", properties={**FEEDS, "delta.enableTypeWidening": "true"})
    table.append([{"id": 1, "x": 0.5}])
    table.alter_column("x", type="DOUBLE")
    table.append([{"id": 2, "x": 0.1}])
    table.restore(1)
    with pytest.raises(UserError, match="holds double in the column x, which is FLOAT"):
        table.changes(0).to_arrow()
    assert told(table, 0, 3) == [(1, "insert", 1), (3, "insert", 2)]
    assert sorted(row["id"] for row in table.changes(0, columns=["id"]).to_arrow().to_pylist()) == [1, 2, 2]


def test_a_restored_narrower_type_of_a_partition_column_is_named_too(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, p INT", ["p"], {**FEEDS, "delta.enableTypeWidening": "true"})
    table.append([{"id": 1, "p": 1}])
    table.alter_column("p", type="BIGINT")
    table.append([{"id": 2, "p": 3_000_000_000}])
    table.restore(1)
    for where in (None, "p = 1"):
        with pytest.raises(
            UserError, match=r"'3000000000' in the .*INT.* in the last version that was asked for"
        ) as raised:
            table.changes(0, where=where).to_arrow()
        assert raised.value.code == "INCOMPATIBLE_TYPE"
    assert sorted(row["id"] for row in table.changes(0, columns=["id"]).to_arrow().to_pylist()) == [1, 2, 2]
    assert [row["p"] for row in table.changes(0, 3).to_arrow().to_pylist()] == [1, 3_000_000_000]


def code(table: mica.Table, *versions: Any, **asked: Any) -> str:
    with pytest.raises(MicaError) as raised:
        table.changes(*versions, **asked)
    return raised.value.code


def test_ranges_that_cannot_be_told(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    table.append([{"id": 1}])
    with pytest.raises(UserError, match="compare two versions") as missing:
        table.changes(1)
    assert missing.value.code == "CHANGES_NOT_RECORDED"
    table.set_properties(FEEDS)
    table.append([{"id": 2}])
    assert told(table, 2) == [(3, "insert", 2)]
    with pytest.raises(UserError, match="at version 0") as raised:
        table.changes(0)
    assert (raised.value.code, raised.value.hint) == (
        "CHANGES_NOT_RECORDED", "Start at version 2: changes are recorded from there on."
    )  # fmt: skip
    table.set_properties({"delta.enableChangeDataFeed": "false"})
    assert (code(table, 2), told(table, 2, 3)) == ("CHANGES_NOT_RECORDED", [(3, "insert", 2)])
    assert (code(table, 3, 2), code(table), code(table, 1, from_timestamp="2020-01-01")) == ("INVALID_ARGUMENT",) * 3
    assert (code(table, 5), code(table, 2, 9)) == ("VERSION_NOT_FOUND",) * 2
    assert code(table, from_timestamp="2200-01-01") == "TIMESTAMP_OUT_OF_RANGE"
    assert code(table, 2, to_timestamp="1999-01-01") == "TIMESTAMP_OUT_OF_RANGE"
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()
    assert code(table, 2) == "VERSION_EXPIRED"


def test_a_version_that_came_after_the_table_was_opened_is_told_as_that(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    mica.Table.open(tmp_path).append([{"id": 1}])
    with pytest.raises(UserError, match=f"latest version is {table.version + 1}.*Refresh") as caught:
        table.changes(table.version + 1)
    assert (caught.value.code, "read at version" in str(caught.value)) == ("VERSION_NOT_FOUND", True)
    with pytest.raises(UserError, match=rf"latest version is {table.version + 1}\.$"):
        table.changes(table.version + 2)


def test_partition_columns_may_change_in_the_range(tmp_path: Path) -> None:
    """A file has the values of its own partition columns, whatever they are at the end."""
    table = mica.Table.create(tmp_path, "id INT, p STRING, q INT", ["p"], {"delta.enableChangeDataFeed": "true"})
    table.append([{"id": 1, "p": "a", "q": 1}, {"id": 2, "p": None, "q": 2}])
    mica.Table.create(tmp_path, "id INT, p STRING, q INT", ["q"], properties=FEEDS, mode="overwrite")
    table.refresh().append([{"id": 3, "p": "b", "q": 3}, {"id": 4, "p": None, "q": None}])
    table.update({"q": "4"}, "id = 3")
    rows = table.changes(1).to_arrow().select(["_commit_version", "_change_type", "id", "p", "q"]).to_pylist()
    assert sorted((tuple(row.values()) for row in rows), key=repr) == [
        (1, "insert", 1, "a", 1), (1, "insert", 2, None, 2), (2, "delete", 1, "a", 1), (2, "delete", 2, None, 2),
        (3, "insert", 3, "b", 3), (3, "insert", 4, None, None),
        (4, "update_postimage", 3, "b", 4), (4, "update_preimage", 3, "b", 3),
    ]  # fmt: skip
    for where in ("p = 'a'", "p IS NULL", "q = 3", "q IS NULL", "p <> 'a' OR q < 2", "q IN (2, 4)"):
        found = table.changes(1, where=where, columns=["id", "_commit_version"]).to_arrow().to_pylist()
        wanted = [row for row in rows if _true(where, row)]
        key = lambda row: (row["id"], row["_commit_version"])  # noqa: E731
        assert sorted(map(key, found)) == sorted(map(key, wanted)), where
    assert len(table.changes(2, 2).to_arrow()) == 2
    assert [len(table.changes(v, v).to_arrow()) for v in (1, 3, 4)] == [2, 2, 2]


def _true(where: str, row: dict[str, object]) -> bool:
    p, q = row["p"], row["q"]
    return {
        "p = 'a'": p == "a", "p IS NULL": p is None, "q = 3": q == 3, "q IS NULL": q is None,
        "p <> 'a' OR q < 2": (p is not None and p != "a") or (isinstance(q, int) and q < 2), "q IN (2, 4)": q in (2, 4),
    }[where]  # fmt: skip


def test_times_choose_versions(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    for number in range(3):
        table.append([{"id": 10 + number, "p": "a", "v": None}])
    for version in range(5):
        at = 1_700_000_000 + 100 * version
        os.utime(tmp_path / "_delta_log" / f"{version:020d}.json", (at, at))
    seconds = 1_700_000_000_000
    assert {row[0] for row in told(table, from_timestamp=seconds + 150_000)} == {2, 3, 4}
    assert {row[0] for row in told(table, from_timestamp=1, to_timestamp=seconds + 350_000)} == {1, 2, 3}
    assert {row[0] for row in told(table, 3, to_timestamp=seconds + 900_000)} == {3, 4}


def test_rows_of_changes_are_not_those_of_files(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    with pytest.raises(UnsupportedTableError) as raised:
        table.changes(0).file_uris()
    assert raised.value.code == "NOT_IN_FILES"


def test_a_vacuumed_change_file_is_named(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.delete("id = 4")
    for file in (tmp_path / "_change_data").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(StorageError) as raised:
        table.changes(2).to_arrow()
    assert (raised.value.code, "_change_data" in raised.value.context["path"]) == ("NOT_FOUND", True)


def test_a_vacuumed_file_of_a_commit_is_not_said_to_be_one_of_the_newest_version(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.append([{"id": 6, "p": "a", "v": None}])
    table.optimize()
    table.vacuum(0, enforce_retention=False)
    assert table.count() == table.to_arrow().num_rows
    with pytest.raises(StorageError, match=f"a commit up to version {table.version} names it") as raised:
        table.changes(1).to_arrow()
    assert "later versions" in str(raised.value.hint)


def test_shredded_change_files_keep_values_exactly(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, v VARIANT", properties=FEEDS)
    values = [{"a": i, "o": {"s": f"t{i}"}} for i in range(50)] + [{"a": "odd"}, None, [1, {"b": 2}]]
    table.append([{"id": i, "v": v} for i, v in enumerate(values)])
    table.delete("id > 48")
    found = pa.table(table.changes(2).to_reader())
    scan = table.changes(2, columns={"id": "id", "v": "to_json(v)"}).to_arrow().sort_by("id")
    assert found.num_rows == 4
    assert [orjson.loads(v) if v else None for v in scan.column("v").to_pylist()] == values[49:]


@WAYS
@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_that_are_mapped_to_other_names(tmp_path: Path, properties: dict[str, str], mode: str) -> None:
    table = table_of(tmp_path, **properties, **{"delta.columnMapping.mode": mode})
    table.rename_column("id", "number")
    table.rename_column("p", "q")
    table.delete("number = 3")
    table.update({"q": "'c'"}, "number = 4")
    columns = {"number": "number", "q": "q", "a": "v:a::int", "t": "_change_type"}
    assert sorted(tuple(row.values()) for row in table.changes(4, columns=columns).to_arrow().to_pylist()) == [
        (3, "b", 3, "delete"), (4, "a", 4, "update_preimage"), (4, "c", 4, "update_postimage"),
    ]  # fmt: skip
    before = table.scan(columns=columns | {"t": "number"}).to_arrow().sort_by("number")
    table.optimize(zorder_by=["v:a", "number"])
    table.reshred({"v": None})
    assert table.scan(columns=columns | {"t": "number"}).to_arrow().sort_by("number").equals(before)
    assert mica.check(table).ok


@pytest.mark.parametrize("change", ["drop feature", "replace"])
def test_files_that_name_columns_otherwise_are_refused(tmp_path: Path, change: str) -> None:
    """Their values were null."""
    mapped = {**FEEDS, "delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path, "id INT, s STRUCT<x: INT>", properties=mapped)
    table.append([{"id": 1, "s": {"x": 1}}])
    before = table.version
    if change == "replace":
        mica.Table.create(tmp_path, "id INT, s STRUCT<x: INT>", mode="overwrite")
    else:
        table.drop_feature("columnMapping")
    table = mica.Table.open(tmp_path)
    after = table.version
    table.append([{"id": 2, "s": {"x": 2}}])
    with pytest.raises(UserError, match=r"version 1 .* name their columns otherwise") as raised:
        table.changes(1).to_arrow()
    assert raised.value.code == "CHANGES_UNREADABLE"
    assert told(table, 1, before) == [(1, "insert", 1)]
    if change == "drop feature":
        assert told(table, before + 1) == [(after + 1, "insert", 2)]
        return
    with pytest.raises(UserError, match=r"version 2 .* removed files"):
        table.changes(before + 1).to_arrow()
    assert told(table, after + 1) == [(after + 1, "insert", 2)]


def test_a_time_between_two_commits_has_no_changes(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties=FEEDS)
    table.append([{"id": 1}])
    for version, at in enumerate((1000, 2000)):
        os.utime(tmp_path / "_delta_log" / f"{version:020d}.json", ns=(at * 10**6, at * 10**6))
    found = table.changes(from_timestamp=1200, to_timestamp=1300)
    assert found.to_arrow().num_rows == 0
    assert found.schema.names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert table.changes(from_timestamp=1200, to_timestamp=2000).count() == 1
    with pytest.raises(UserError, match="1300 to 1200"):
        table.changes(from_timestamp=1300, to_timestamp=1200)


@pytest.mark.parametrize("dropped", [False, True])
def test_a_reader_feature_that_nobody_here_knows_is_refused(tmp_path: Path, dropped: bool) -> None:
    table = table_of(tmp_path)
    later = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["future"], "writerFeatures": ["future"]}
    protocols = [later, {"minReaderVersion": 1, "minWriterVersion": 4}]
    for version, protocol in enumerate(protocols[: 1 + dropped], 2):
        (tmp_path / "_delta_log" / f"{version:020}.json").write_bytes(orjson.dumps({"protocol": protocol}))
    with pytest.raises(UnsupportedTableError, match="future"):
        mica.Table.open(table.path).changes(0).to_arrow()


def test_changes_are_explained_by_their_files_with_names_as_on_the_disk(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a INT, p STRING", ["p"], {"delta.enableChangeDataFeed": "true"})
    for number in range(3):
        table.append([{"a": number, "p": f"x %{number}"}])
    table.update({"a": "a + 10"}, "a = 1")
    report = table.changes(1, where="p = 'x %1'").explain()
    assert (report.to_dict()["files"]["total"], report.to_dict()["files"]["kept"]) == (4, 2)
    dropped = [row["path"] for row in report.to_dict()["files"]["dropped"]]
    assert len(dropped) == 2
    assert all((tmp_path / path).exists() for path in dropped)
    assert all(path in str(report) for path in dropped)
