"""Rows deleted and updated: the rows that are left, the files that are touched, what the commit says."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import ConflictError, UserError

VECTORS = {"delta.enableDeletionVectors": "true"}
WAYS = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copies", "vectors"])


def table_of(path: Path, files: int = 4, rows: int = 10, **options: Any) -> mica.Table:
    """Files of ten rows each: `id` counts through them, `v` repeats it."""
    table = mica.Table.create(path, "id INT, p STRING, n BIGINT, v VARIANT", **options)
    for number in range(files):
        ids = range(number * rows, (number + 1) * rows)
        table.append([{"id": i, "p": "ab"[number % 2], "n": None if i % 5 == 0 else i, "v": {"a": i, "s": f"t{i}"}}
                      for i in ids])  # fmt: skip
    return table


def ids(table: mica.Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where, ["id"]).to_arrow().column("id").to_pylist())


def names(table: mica.Table) -> set[str]:
    return set(table.files().column("path").to_pylist())


@WAYS
@pytest.mark.parametrize(
    ("where", "gone"),
    [
        ("id = 13", {13}), ("v:a::int BETWEEN 8 AND 11", {8, 9, 10, 11}), ("n IS NULL", set(range(0, 40, 5))),
        ("n > 37", {38, 39}), ("NOT (n > 1)", {1}), ("id >= 10 AND id < 20", set(range(10, 20))),
        ("true", set(range(40))),
        ("v:s::string IN ('t1', 't39') OR id = 20", {1, 20, 39}), ("id < 0", set()), ("v:nope::int = 1", set()),
    ],
)  # fmt: skip
def test_rows_that_match_go(tmp_path: Path, properties: dict[str, str], where: str, gone: set[int]) -> None:
    table = table_of(tmp_path, properties=properties)
    before, version = names(table), table.version
    hit = {i // 10 for i in gone}
    done = table.delete(where)
    assert ids(table) == [i for i in range(40) if i not in gone]
    assert ids(mica.Table.open(tmp_path)) == ids(table)
    assert len(before & names(table)) >= 4 - len(hit)
    assert table.version == version + bool(gone)
    if gone:
        assert done.metrics["numDeletedRows"] == len(gone)
        assert mica.check(table).ok
        assert ids(mica.Table.open(tmp_path, version=version)) == list(range(40))
    assert table.count() == 40 - len(gone)
    assert ids(table, "v:a::int >= 35") == [i for i in range(35, 40) if i not in gone]


@WAYS
def test_columns_get_other_values(tmp_path: Path, properties: dict[str, str]) -> None:
    table = table_of(tmp_path, properties=properties)
    done = table.update({"N": "coalesce(n, 0) + 1000", "p": "p || '!' || v:s::string"}, "id >= 18 AND id < 22")
    found = table.to_arrow().sort_by("id").to_pylist()
    for row in found:
        i = row["id"]
        old = None if i % 5 == 0 else i
        if 18 <= i < 22:
            assert (row["n"], row["p"]) == ((old or 0) + 1000, f"{'ab'[i // 10 % 2]}!t{i}")
        else:
            assert (row["n"], row["p"]) == (old, "ab"[i // 10 % 2])
    assert done.metrics["numUpdatedRows"] == 4
    assert done.metrics["numCopiedRows"] == (0 if properties else 16)
    assert len(found) == table.count() == 40
    assert mica.check(table).ok
    table.update({"v": "v:a", "n": "NULL"})
    assert table.scan("v::int = id").count() == 40
    assert table.scan("n IS NULL").count() == 40


@WAYS
def test_partitions_alone_decide_without_a_look(tmp_path: Path, properties: dict[str, str]) -> None:
    table = table_of(tmp_path, partition_by=["p"], properties=properties)
    for file in tmp_path.glob("p=a/*.parquet"):
        file.write_bytes(b"nobody reads this")
    done = table.delete("p = 'a'")
    assert (done.metrics["numRemovedFiles"], done.metrics["numAddedFiles"], done.metrics["numDeletedRows"]) == (
        2,
        0,
        20,
    )
    assert ids(table) == [*range(10, 20), *range(30, 40)]
    table.update({"p": "'z'"}, "id = 12")
    assert sorted(table.scan(columns=["p"]).to_arrow().column("p").to_pylist()) == ["b"] * 19 + ["z"]
    assert ids(table, "p = 'z'") == [12]
    table.delete()
    assert (table.count(), names(table)) == (0, set())


def test_a_vector_grows_and_a_file_without_rows_goes(tmp_path: Path) -> None:
    table = table_of(tmp_path, files=1, properties=VECTORS)
    first = names(table)
    for number in range(9):
        done = table.delete(f"id = {number}")
        assert (names(table), table.count()) == (first, 9 - number)
        assert done.metrics["numDeletionVectorsUpdated"] == bool(number)
        assert not orjson.loads(table.files().column("stats")[0].as_py())["tightBounds"]
    done = table.delete("id = 9")
    assert (names(table), table.count(), done.metrics["numDeletionVectorsRemoved"]) == (set(), 0, 1)
    assert ids(mica.Table.open(tmp_path, version=5)) == [4, 5, 6, 7, 8, 9]


def test_large_vectors_of_a_commit_share_a_file_that_vacuum_takes(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties=VECTORS)
    for number in range(3):
        table.append(pa.table({"id": pa.array(range(number * 3000, number * 3000 + 3000), pa.int32())}))
    table.delete("id % 3 = 0")
    assert len(list(tmp_path.glob("deletion_vector_*.bin"))) == 1
    assert table.count() == 6000
    table.delete("id % 3 = 1")
    assert table.vacuum(0, enforce_retention=False).files == 1
    assert table.count() == 3000


def test_kept_rows_keep_their_shredding_and_bounds(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "v VARIANT")
    table.append([{"v": {"a": i, "odd": i}} for i in range(10)], shredding="STRUCT<a: BIGINT>")
    table.delete("v:a::int > 6")
    from mica.checking.inspect import inspect_file

    (uri,) = table.file_uris()
    assert {(row["path"], row["type"]) for row in inspect_file(uri)} == {("$", "object"), ("$['a']", "bigint")}
    assert len(table.scan("v:a::int = 7").plan.kept) == 0


@WAYS
def test_what_cannot_be_done_leaves_the_table_as_it_was(tmp_path: Path, properties: dict[str, str]) -> None:
    table = table_of(tmp_path, properties=properties)
    before, files = table.version, set(tmp_path.iterdir())
    for act, code in (
        (lambda: table.delete("nope = 1"), "UNKNOWN_COLUMN"),
        (lambda: table.delete("id + 1"), "NOT_A_PREDICATE"),
        (lambda: table.delete("v:s::int = 1"), "INVALID_CAST"),
        (lambda: table.update({}), "INVALID_ARGUMENT"),
        (lambda: table.update({"x": "1"}), "UNKNOWN_COLUMN"),
        (lambda: table.update({"id": "1", "ID": "2"}), "DUPLICATE_COLUMN"),
        (lambda: table.update({"id": "p"}), "INCOMPATIBLE_TYPE"),
        (lambda: table.update({"v": "p"}), "INCOMPATIBLE_TYPE"),
        (lambda: table.update({"id": "3000000000 + n"}, "id = 39"), "INVALID_CAST"),
        (lambda: table.update({"n": "10 / (id - 39)"}, "id > 37"), "DIVIDE_BY_ZERO"),
    ):
        with pytest.raises(UserError) as raised:
            act()
        assert raised.value.code == code
    assert (mica.Table.open(tmp_path).version, set(tmp_path.iterdir())) == (before, files)
    table.set_properties({"delta.appendOnly": "true"})
    with pytest.raises(UserError) as append_only:
        table.delete("id = 1")
    assert append_only.value.code == "APPEND_ONLY"
    assert {p for p in tmp_path.iterdir() if p.suffix == ".bin"} == set()


@WAYS
def test_change_files_hold_what_the_log_alone_does_not_tell(tmp_path: Path, properties: dict[str, str]) -> None:
    feeds = {"delta.enableChangeDataFeed": "true", **properties}
    table = table_of(tmp_path, partition_by=["p"], properties=feeds)
    table.delete("p = 'a' AND id < 3")
    assert changes(tmp_path, 5) == ([] if properties else [("a", i, "delete") for i in range(3)])
    table.update({"p": "'c'", "n": "-1"}, "id IN (4, 14)")
    assert changes(tmp_path, 6) == [
        ("a", 4, "update_preimage"), ("b", 14, "update_preimage"),
        ("c", 4, "update_postimage"), ("c", 14, "update_postimage"),
    ]  # fmt: skip
    done = table.delete("p = 'a'")  # whole files
    assert (changes(tmp_path, 7), done.metrics["numAddedChangeFiles"]) == ([], 0)
    assert mica.check(table).ok


def changes(path: Path, version: int) -> list[tuple[str, int, str]]:
    """The change files of a commit: partition value, id, type of the change. Files hold no partition columns."""
    lines = map(orjson.loads, (path / f"_delta_log/{version:020d}.json").read_bytes().splitlines())
    found = []
    for action in (line["cdc"] for line in lines if "cdc" in line):
        part = action["partitionValues"]["p"]
        file = path / action["path"]
        assert (action["dataChange"], action["size"]) == (False, file.stat().st_size)
        assert file.parent == path / "_change_data" / f"p={part}"
        rows = pq.read_table(file, partitioning=None)
        assert rows.column_names == ["id", "n", "v", "_change_type"]
        assert str(rows.schema.field("v").type.storage_type if hasattr(rows.schema.field("v").type, "storage_type")
                   else rows.schema.field("v").type).count("typed_value")  # fmt: skip
        assert all(row["n"] == -1 for row in rows.to_pylist() if row["_change_type"] == "update_postimage")
        found += [(part, row["id"], row["_change_type"]) for row in rows.to_pylist()]
    return sorted(found)


def test_a_file_without_a_count_brings_change_files_for_all(tmp_path: Path) -> None:
    # Such a file gets no vector but is rewritten, and readers of the feed look at nothing beside change files.
    table = table_of(tmp_path, files=2, properties={"delta.enableChangeDataFeed": "true", **VECTORS})
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    log.write_text(log.read_text().replace('\\"numRecords\\":10,', ""))
    done = mica.Table.open(tmp_path).delete("id IN (5, 15)")
    assert (done.metrics["numDeletionVectorsAdded"], done.metrics["numAddedFiles"]) == (1, 1)
    assert done.metrics["numAddedChangeFiles"] == 2
    assert table.refresh().count() == 18


def test_required_columns_stay_filled(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT NOT NULL, n INT")
    table.append([{"id": 1, "n": None}])
    with pytest.raises(mica.MicaError) as raised:
        table.update({"id": "n"})
    assert "NULL" in raised.value.code
    assert ids(table) == [1]


def test_an_append_of_rows_that_might_match_is_a_conflict(tmp_path: Path) -> None:
    table = table_of(tmp_path, partition_by=["p"])
    other = mica.Table.open(tmp_path)
    other.append([{"id": 100, "p": "b", "n": 1, "v": None}])
    table.delete("p = 'a'")  # rests on that partition alone
    assert len(ids(table)) == 21
    stale = mica.Table.open(tmp_path)
    other.refresh().append([{"id": 12, "p": "b", "n": 1, "v": None}])
    with pytest.raises(ConflictError) as raised:
        stale.delete("id = 12")
    assert raised.value.code == "CONCURRENT_APPEND"
    assert len(ids(mica.Table.open(tmp_path))) == 22
    stale.delete("id = 13")  # by its bounds the file has no such row
    assert {p for p in tmp_path.rglob("*.parquet") if "_delta_log" not in p.parts} >= set(map(Path, other.file_uris()))


@WAYS
def test_an_append_that_cannot_match_is_no_conflict_when_its_file_is_gone_too(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    table_of(tmp_path, properties=properties)
    stale, late = mica.Table.open(tmp_path), mica.Table.open(tmp_path)
    other = mica.Table.open(tmp_path)
    for number in (100, 200):
        other.append([{"id": number, "p": "a", "n": 1, "v": None}])
    other.delete("id = 100")  # its file has no bounds in the newest version
    stale.update({"n": "-1"}, "id < 3")
    late.delete("id BETWEEN 10 AND 12")
    assert ids(late) == [*range(10), *range(13, 40), 200]
    assert ids(late, "n = -1") == [0, 1, 2]


def test_partitions_that_a_part_of_the_predicate_excludes_are_no_conflict(tmp_path: Path) -> None:
    table = table_of(tmp_path, partition_by=["p"])
    stale = mica.Table.open(tmp_path)
    table.append([{"id": 100, "p": "b", "n": 1, "v": None}])
    stale.delete("id >= 1 AND p = 'a' AND id < 3")
    assert ids(stale, "id < 4 OR id = 100") == [0, 3, 100]
    late = mica.Table.open(tmp_path)
    stale.append([{"id": 200, "p": "a", "n": 1, "v": None}])
    with pytest.raises(ConflictError):
        late.update({"n": "0"}, "id >= 4 AND p = 'a'")


def test_partition_values_that_the_predicate_fails_on_are_named_with_their_file(tmp_path: Path) -> None:
    table = table_of(tmp_path, partition_by=["p"])
    with pytest.raises(UserError) as raised:
        table.delete("cast(p AS INT) = 1")
    assert raised.value.code == "INVALID_CAST"
    assert "p=a/part-" in raised.value.message


def test_columns_are_named_as_they_are_or_in_quotes(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "`a b` INT, `e``f` INT, `c.d` INT")
    table.append([{"a b": 1, "e`f": 1, "c.d": 1}])
    table.update({"`a b`": "2", "`e``f`": "3", "c.d": "4"})
    assert table.to_arrow().to_pylist() == [{"a b": 2, "e`f": 3, "c.d": 4}]


@WAYS
def test_collated_columns_get_other_values(tmp_path: Path, properties: dict[str, str]) -> None:
    ddl = "id INT, s STRING COLLATE UTF8_LCASE, u STRING COLLATE UNICODE_CI"
    table = mica.Table.create(tmp_path, ddl, properties=properties)
    table.append([{"id": i, "s": s, "u": "X"} for i, s in enumerate(["Ab", "zz", None])])
    table.update({"s": "'Neu'", "u": "s"}, "s = 'ZZ'")
    table.update({"s": "NULL", "u": "id"}, "id = 0")
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 0, "s": None, "u": "0"}, {"id": 1, "s": "Neu", "u": "zz"}, {"id": 2, "s": None, "u": "X"},
    ]  # fmt: skip
    assert ids(table, "s = 'neu'") == [1]
    assert "COLLATE UTF8_LCASE" in str(table.schema)
    assert "COLLATE UTF8_LCASE" in str(mica.Table.open(tmp_path).scan().schema)


def test_a_delete_of_everything_forgets_what_was_ingested(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"a":1}\n')
    mica.ingest_json(str(tmp_path / "a.ndjson"), tmp_path / "t", idempotent=True)
    table = mica.Table.open(tmp_path / "t")
    table.delete()
    assert mica.ingest_json(str(tmp_path / "a.ndjson"), tmp_path / "t", idempotent=True).rows == 1


def test_as_a_list_of_rows(tmp_path: Path, rng: random.Random) -> None:
    """The law: any sequence of changes gives the rows that the same changes of a list give."""
    properties = rng.choice([{}, VECTORS])
    table = mica.Table.create(tmp_path, "id INT, p INT, v VARIANT", ["p"], properties=properties)
    rows: dict[int, list[int]] = {}
    for step in range(25):
        low = rng.randrange(200)
        high = low + rng.randrange(1, 40)
        what = rng.random()
        if what < 0.4:
            new = {step * 100 + n: [rng.randrange(3), rng.randrange(200)] for n in range(rng.randrange(1, 60))}
            table.append([{"id": i, "p": p, "v": {"a": a}} for i, (p, a) in new.items()])
            rows |= new
        elif what < 0.7:
            table.delete(f"v:a::int BETWEEN {low} AND {high}")
            rows = {i: row for i, row in rows.items() if not low <= row[1] <= high}
        elif what < 0.85:
            table.update({"p": "(p + 1) % 3"}, f"v:a::int BETWEEN {low} AND {high} AND p < 2")
            for row in rows.values():
                if low <= row[1] <= high and row[0] < 2:
                    row[0] = (row[0] + 1) % 3
        else:
            table.delete(f"p = {low % 3} AND id % 2 = 0")
            rows = {i: row for i, row in rows.items() if row[0] != low % 3 or i % 2}
        found = table.scan(columns={"id": "id", "p": "p", "a": "v:a::int"}).to_arrow().to_pylist()
        assert {row["id"]: [row["p"], row["a"]] for row in found} == rows
        assert len(found) == table.count() == len(rows)
    assert mica.check(table).ok


@pytest.mark.parametrize(
    ("change", "way_out"),
    [
        (lambda t: t.delete("s = 'a'"), "spark="),
        (lambda t: t.update({"i": "CASE WHEN s = 'a' THEN 1 ELSE 2 END"}), "spark="),
        (lambda t: t.overwrite([{"s": "a", "i": 1}], where="s = 'a'"), "UTF8_BINARY"),
    ],
)
def test_the_way_out_of_a_comparison_by_icu_is_one(tmp_path: Path, change: Any, way_out: str) -> None:
    table = mica.Table.create(tmp_path / "t", "s STRING COLLATE UNICODE_CI, i INT")
    with pytest.raises(UserError, match="NEEDS_SPARK") as raised:
        change(table)
    assert way_out in str(raised.value)


def test_a_commit_shows_what_it_did(tmp_path: Path) -> None:
    """The rows that were added, which were all that it showed, are 0 both of a delete of everything and of none."""
    table = table_of(tmp_path, files=1)
    assert repr(table.delete("id > 100")) == "Commit(version=1, files=0, rows=0, bytes=0, repeated=False)"
    shown = repr(table.delete())
    assert shown.startswith(
        "Commit(version=2, files=0, rows=0, bytes=0, repeated=False, metrics={'numRemovedFiles': 1,"
    )
    assert "'numDeletedRows': 10" in shown
    assert "'numAddedFiles'" not in shown
