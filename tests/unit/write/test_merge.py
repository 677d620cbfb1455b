"""Merges: the rows, the files that are read and written, what the commit says, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mica
from mica.errors import ConflictError, UserError
from mica.tasks import file as reading
from mica.tasks import merge as matching

VECTORS = {"delta.enableDeletionVectors": "true"}
WAYS = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copies", "vectors"])
SCHEMA = "id INT, p STRING, n BIGINT, v VARIANT"


def table_of(path: Path, files: int = 4, **options: Any) -> mica.Table:
    """Files of ten rows each: `id` counts through them, `v` repeats it."""
    table = mica.Table.create(path, SCHEMA, **options)
    for number in range(files):
        table.append([{"id": i, "p": "ab"[number % 2], "n": i, "v": {"a": i, "s": f"t{i:03}"}}
                      for i in range(number * 10, number * 10 + 10)])  # fmt: skip
    return table


def rows(table: mica.Table, where: str | None = None) -> list[tuple[Any, ...]]:
    columns = {"id": "id", "p": "p", "n": "n", "a": "v:a::int"}
    return sorted(tuple(row.values()) for row in table.scan(where, columns).to_arrow().to_pylist())


def names(table: mica.Table) -> set[str]:
    return set(table.files().column("path").to_pylist())


def broken(table: mica.Table, where: str) -> None:
    """Damages the files without such rows: whoever reads one fails."""
    kept = set(table.scan(where).file_uris())
    for uri in set(table.file_uris()) - kept:
        Path(uri).write_bytes(b"nobody reads this")


@WAYS
@pytest.mark.parametrize(
    ("on", "source", "where"),
    [
        ("target.id = source.id", [{"id": 13}, {"id": 19}, {"id": 100}], "id = 13"),
        ("target.v:s::string = source.s", [{"s": "t013"}, {"s": "t100"}], "id = 13"),
        ("target.v:a::int = source.id AND target.id < 20", [{"id": 13}, {"id": 33}], "id = 13"),
        ("target.p = source.p AND target.id = source.id", [{"id": 13, "p": "b"}, {"id": 3, "p": "b"}], "p = 'b'"),
    ],
)
def test_no_file_is_read_that_cannot_hold_a_key_of_the_source(
    tmp_path: Path, properties: dict[str, str], on: str, source: list[dict[str, Any]], where: str
) -> None:
    table = table_of(tmp_path, partition_by=["p"] if "p" in source[0] else [], properties=properties)
    broken(table, where)
    before = names(table)
    done = table.merge(source, on).when_matched_update({"n": "-1"}).execute()
    assert done.metrics["numTargetRowsUpdated"] == (2 if len(source) == 3 else 1)
    assert len(before - names(table)) == (0 if properties else 1)
    assert len(rows(table, "n = -1 AND id BETWEEN 10 AND 19")) == done.metrics["numTargetRowsUpdated"]


@WAYS
@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_mapped_table_merges_by_its_columns_names(tmp_path: Path, properties: dict[str, str], mode: str) -> None:
    """Files know columns by other names: keys, conditions, values, path bounds and partitions are the table's."""
    mapping = {"delta.columnMapping.mode": mode, "delta.enableChangeDataFeed": "true"}
    table = table_of(tmp_path, partition_by=["p"], properties={**properties, **mapping})
    table.rename_column("id", "key").rename_column("p", "a part").rename_column("v", "doc").drop_columns(["n"])
    broken(table, "key BETWEEN 10 AND 19")
    source = [{"k": "t013", "key": 13}, {"k": "t015", "key": 15}, {"k": "t099", "key": 99}]
    merge = table.merge(source, "target.doc:s::string = source.k").when_matched_delete("source.key = 15")
    merge = merge.when_matched_update({"doc": "variant_set(target.doc, '$.a', -1)"})
    done = merge.when_not_matched_insert({"key": "key", "`a part`": "'c'", "doc": "parse_json('{\"a\":-2}')"}).execute()
    counts = [done.metrics[f"numTargetRows{name}"] for name in ("Updated", "Deleted", "Inserted")]
    assert counts == [1, 1, 1]
    columns = {"key": "key", "part": "`a part`", "a": "doc:a::int"}
    found = table.scan("key BETWEEN 12 AND 16 OR key = 99", columns).to_arrow().sort_by("key").to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (12, "b", 12), (13, "b", -1), (14, "b", 14), (16, "b", 16), (99, "c", -2)
    ]  # fmt: skip
    changes = table.changes(table.version, columns={"key": "key", "part": "`a part`", "t": "_change_type"}).to_arrow()
    assert sorted(tuple(row.values()) for row in changes.to_pylist()) == [
        (13, "b", "update_postimage"), (13, "b", "update_preimage"), (15, "b", "delete"), (99, "c", "insert"),
    ]  # fmt: skip


@WAYS
def test_a_file_without_a_change_stays_and_nothing_to_do_commits_nothing(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    table = table_of(tmp_path, properties=properties)
    before, version = names(table), table.version
    merge = table.merge([{"id": 3}], "target.id = source.id")
    done = merge.when_matched_update({"n": "0"}, "target.n > 5").when_not_matched_insert({"id": "source.id"}).execute()
    assert (table.version, names(table), done.version) == (version, before, version)
    assert {n: v for n, v in done.metrics.items() if v and not n.endswith("TimeMs")} == {"numSourceRows": 1}
    times = [done.metrics[name] for name in ("executionTimeMs", "scanTimeMs", "rewriteTimeMs")]
    assert times[0] - 2 <= times[1] + times[2] <= times[0]
    assert table.merge([], "target.id = source.id").when_matched_delete().execute().version == version


def test_merges_without_an_update_only_add(tmp_path: Path) -> None:
    table = table_of(tmp_path, properties={"delta.appendOnly": "true"})
    before = names(table)
    done = table.merge([{"id": 3}, {"id": 50, "n": 7}], "target.id = source.id").when_not_matched_insert(
        {"id": "id", "n": "n * 2", "v": "NULL"}).execute()  # fmt: skip
    assert (done.files, done.rows, done.metrics["numTargetRowsInserted"]) == (1, 1, 1)
    assert before < names(table)
    assert rows(table, "id > 39") == [(50, None, 14, None)]
    with pytest.raises(UserError) as raised:
        table.merge([{"id": 3}], "target.id = source.id").when_matched_delete().execute()
    assert raised.value.code == "APPEND_ONLY"


@pytest.mark.parametrize("kind", ["dicts", "arrow", "reader", "pandas", "polars", "table", "scan"])
def test_sources_are_what_an_append_accepts(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", files=2)
    held = mica.Table.create(tmp_path / "s", SCHEMA)
    dicts = [{"id": i, "p": "c", "n": i + 100, "v": {"a": i, "fresh": True}} for i in (5, 15, 25)]
    held.append(dicts)
    data: Any = {
        "dicts": lambda: dicts, "arrow": held.to_arrow, "reader": held.to_reader, "table": lambda: held,
        "scan": lambda: held.scan("id > 0"), "polars": lambda: held.scan().to_polars(), "pandas": held.to_pandas,
    }[kind]()  # fmt: skip
    table.merge(data, "target.v:a::int = source.v:a::int").when_matched_update_all().when_not_matched_insert_all(
        "source.v:fresh::boolean").execute()  # fmt: skip
    assert rows(table, "p = 'c'") == [(i, "c", i + 100, i) for i in (5, 15, 25)]
    assert table.scan("v:fresh::boolean").count() == 3
    assert mica.check(table).ok


def test_texts_become_variants_as_in_an_append_and_structs_are_matched_by_name(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, v VARIANT, st STRUCT<x: INT, y: STRING>")
    table.append([{"id": 1, "v": {"a": 1}, "st": {"x": 1, "y": "a"}}])
    source = pa.table({"id": pa.array([1, 2], pa.int64()), "v": ['{"a": 7}', "[1]"],
                       "st": [{"y": "b", "x": 2}, None]})  # fmt: skip
    table.merge(source, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    columns = {"id": "id", "v": "to_json(v)", "x": "st.x", "y": "st.y"}
    assert sorted(tuple(r.values()) for r in table.scan(columns=columns).to_arrow().to_pylist()) == [
        (1, '{"a":7}', 2, "b"), (2, "[1]", None, None),
    ]  # fmt: skip


def test_pandas_and_polars_frames_with_plain_columns(tmp_path: Path) -> None:
    table = table_of(tmp_path, files=1)
    frame = pd.DataFrame({"id": [1, 2], "n": [10, 20]})
    table.merge(frame, "target.id = source.id").when_matched_update({"n": "source.n"}).execute()
    lazy = pl.LazyFrame({"id": [3], "p": ["z"]})
    table.merge(lazy, "t.id = s.id", source_alias="s", target_alias="t").when_matched_update({"t.p": "s.p"}).execute()
    assert rows(table, "id < 4") == [(0, "a", 0, 0), (1, "a", 10, 1), (2, "a", 20, 2), (3, "z", 3, 3)]


def test_rewritten_files_keep_their_shredding_and_bounds(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "v VARIANT")
    table.append([{"v": {"a": i, "odd": i}} for i in range(10)], shredding="STRUCT<a: BIGINT>")
    table.merge([{"k": 3}], "target.v:a::int = source.k").when_matched_delete().execute()
    from mica.checking.inspect import inspect_file

    (uri,) = table.file_uris()
    assert {(row["path"], row["type"]) for row in inspect_file(uri)} == {("$", "object"), ("$['a']", "bigint")}
    assert len(table.scan("v:a::int = 10").plan.kept) == 0


@WAYS
def test_what_cannot_be_done_leaves_the_table_as_it_was(tmp_path: Path, properties: dict[str, str]) -> None:
    table = table_of(tmp_path, properties=properties)
    before, files = table.version, set(tmp_path.iterdir())
    one, two = [{"id": 3, "p": "x", "n": 1}], [{"id": 3, "n": 1}, {"id": 3, "n": 2}]
    on = "target.id = source.id"
    for act, code in (
        (lambda: table.merge(one, on), "INVALID_ARGUMENT"),
        (lambda: table.merge(one, "id = source.id").when_matched_delete(), "AMBIGUOUS_COLUMN"),
        (lambda: table.merge(one, "target.nope = source.id").when_matched_delete(), "UNKNOWN_COLUMN"),
        (lambda: table.merge(one, "target.id + 1").when_matched_delete(), "NOT_A_PREDICATE"),
        (lambda: table.merge(one, on, source_alias="target").when_matched_delete(), "INVALID_ARGUMENT"),
        (lambda: table.merge(3, on).when_matched_delete(), "INVALID_ARGUMENT"),
        (lambda: table.merge(one, on).when_matched_update({}), "INVALID_ARGUMENT"),
        (lambda: table.merge(one, on).when_matched_delete().when_matched_update({"n": "1"}), "INVALID_ARGUMENT"),
        (lambda: table.merge(one, on).when_matched_update({"x": "1"}), "UNKNOWN_COLUMN"),
        (lambda: table.merge(one, on).when_matched_update({"n": "1", "target.N": "2"}), "DUPLICATE_COLUMN"),
        (lambda: table.merge(one, on).when_matched_update({"id": "source.p"}), "INCOMPATIBLE_TYPE"),
        (lambda: table.merge(one, on).when_matched_update_all(), "MISSING_COLUMN"),
        (lambda: table.merge(one, on).when_not_matched_insert({"id": "target.id"}), "UNKNOWN_COLUMN"),
        (lambda: table.merge(one, on).when_not_matched_by_source_delete("source.id = 1"), "UNKNOWN_COLUMN"),
        (lambda: table.merge(one, on).when_matched_update({"n": "10 / (target.id - source.id)"}), "DIVIDE_BY_ZERO"),
        (lambda: table.merge(one, on).when_matched_delete("target.v:s::int = 1"), "INVALID_CAST"),
        (lambda: table.merge(two, on).when_matched_update({"n": "source.n"}), "AMBIGUOUS_MERGE"),
    ):
        with pytest.raises(UserError) as raised:
            act().execute()
        assert raised.value.code == code, raised.value
    assert (mica.Table.open(tmp_path).version, set(tmp_path.iterdir())) == (before, files)


def test_required_columns_stay_filled(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT NOT NULL, n INT")
    table.append([{"id": 1, "n": None}])
    for merge in (
        table.merge([{"id": 1}], "target.id = source.id").when_matched_update({"id": "target.n"}),
        table.merge([{"id": 2}], "target.id = source.id").when_not_matched_insert({"n": "source.id"}),
    ):
        with pytest.raises(mica.MicaError) as raised:
            merge.execute()
        assert raised.value.code == "NULL_IN_NOT_NULL_COLUMN"
    assert table.to_arrow().to_pylist() == [{"id": 1, "n": None}]


def test_an_append_of_rows_that_might_match_is_a_conflict(tmp_path: Path) -> None:
    table = table_of(tmp_path, partition_by=["p"])
    stale, other = mica.Table.open(tmp_path), mica.Table.open(tmp_path)
    table.append([{"id": 100, "p": "b", "n": 1, "v": None}])
    source = [{"id": 100, "p": "a"}]
    stale.merge(source, "target.p = source.p AND target.id = source.id").when_not_matched_insert(
        {"id": "id", "p": "p"}).execute()  # fmt: skip
    with pytest.raises(ConflictError) as raised:
        other.merge(source, "target.id = source.id").when_not_matched_insert({"id": "id"}).execute()
    assert raised.value.code == "CONCURRENT_APPEND"
    assert len(rows(mica.Table.open(tmp_path), "id = 100")) == 2


@WAYS
def test_collated_columns_are_matched_by_their_collation(tmp_path: Path, properties: dict[str, str]) -> None:
    table = mica.Table.create(tmp_path, "id INT, s STRING COLLATE UTF8_LCASE", properties=properties)
    table.append([{"id": i, "s": s} for i, s in enumerate(["Ab", "zz"])])
    table.append([{"id": 2, "s": "mm"}])
    broken(table, "id < 2")
    on = "target.s = source.s COLLATE UTF8_LCASE"
    table.merge([{"s": "aB"}, {"s": "ZZ"}, {"s": "bb"}], on).when_matched_update({"s": "source.s || '!'"}).execute()
    assert sorted(table.scan("id < 2", ["s"]).to_arrow().column("s").to_pylist()) == ["ZZ!", "aB!"]
    assert len(table.scan("s = 'ab!'").plan.kept) == 1
    with pytest.raises(UserError) as raised:
        table.merge([{"s": "a"}], "target.s = source.s COLLATE UNICODE_CI").when_matched_delete().execute()
    assert raised.value.code == "NEEDS_SPARK"
    assert str(raised.value.hint).startswith("Pass spark=mica.session()")


RULED = (
    "id BIGINT GENERATED ALWAYS AS IDENTITY, k INT, n INT DEFAULT 7, g INT GENERATED ALWAYS AS (n * 2), "
    "p INT GENERATED ALWAYS AS (k % 2)"
)


@pytest.mark.parametrize("feed", ["false", "true"])
@WAYS
def test_rules_hold_for_what_a_merge_writes(tmp_path: Path, properties: dict[str, str], feed: str) -> None:
    options = {**properties, "delta.enableChangeDataFeed": feed}
    table = mica.Table.create(tmp_path, RULED, ["p"], properties=options)
    table.append([{"k": k} for k in (1, 2, 3)])
    table.add_constraint("small", "n < 50")
    on = "target.k = source.k"
    source = [{"k": 2, "n": 5}, {"k": 5, "n": 9}, {"k": 8, "n": 40}]
    table.merge(source, on).when_matched_update({"n": "source.n", "k": "target.k + 1"}).when_not_matched_insert(
        {"k": "k"}, "k = 5").when_not_matched_insert({"k": "k", "n": "n"}).execute()  # fmt: skip
    found = sorted((r["k"], r["n"], r["g"], r["p"], r["id"]) for r in table.to_arrow().to_pylist())
    assert [row[:4] for row in found] == [
        (1, 7, 14, 1), (3, 5, 10, 1), (3, 7, 14, 1), (5, 7, 14, 1), (8, 40, 80, 0),
    ]  # fmt: skip
    assert sorted(row[4] for row in found) == [1, 2, 3, 4, 5]
    assert mica.check(table).ok
    if feed == "true":
        told = table.changes(table.version, table.version).to_arrow().to_pylist()
        inserted = {(r["k"], r["id"], r["g"]) for r in told if r["_change_type"] == "insert"}
        assert inserted == {(row[0], row[4], row[2]) for row in found if row[0] > 4}
    before = table.version
    for merge, code in (
        (table.merge([{"k": 1, "n": 99}], on).when_matched_update({"n": "source.n"}), "CONSTRAINT_VIOLATED"),
        (table.merge([{"k": 99, "n": 50}], on).when_not_matched_insert({"n": "n"}), "CONSTRAINT_VIOLATED"),
        (table.merge([{"k": 99}], on).when_not_matched_insert({"id": "k"}), "IDENTITY_GIVEN"),
        (table.merge([{"k": 1}], on).when_matched_update({"g": "3"}), "CONSTRAINT_VIOLATED"),
    ):
        with pytest.raises(UserError) as raised:
            merge.execute()
        assert raised.value.code == code
    assert mica.Table.open(tmp_path).version == before
    table.merge([{"k": 77, "n": 1}], on).when_matched_update_all().when_not_matched_insert_all().execute()
    assert {r["g"] for r in table.scan("k = 77").to_arrow().to_pylist()} == {2}


def test_a_merge_with_a_version_of_its_application_happens_once(tmp_path: Path) -> None:
    table = table_of(tmp_path, files=1)
    for version, repeated in ((1, False), (1, True), (2, False)):
        merge = table.merge([{"id": 3}], "target.id = source.id").when_matched_update({"n": "target.n + 100"})
        assert merge.execute(txn=("job", version)).repeated is repeated
    assert rows(table, "id = 3") == [(3, "a", 203, 3)]
    nothing = table.merge([{"id": -3}], "target.id = source.id").when_matched_delete().execute(txn=("job", 3))
    assert (nothing.version, nothing.files) == (table.version, 0)
    again = table.merge([{"id": 3}], "target.id = source.id").when_matched_delete().execute(txn=("job", 3))
    assert again.repeated


def test_keys_are_cast_only_in_rows_that_the_rest_of_the_condition_lets_pass(tmp_path: Path) -> None:
    table = table_of(tmp_path, files=1)
    table.append([{"id": 50, "p": "text", "n": 50, "v": {"a": 50, "s": "x"}}, {"id": 51, "p": "7", "n": 1, "v": {}}])
    source = [{"k": "7", "kind": "number"}, {"k": "seven", "kind": "word"}]
    on = "target.p::int = source.k::int AND source.kind = 'number' AND target.id > 50"
    done = table.merge(source, on).when_matched_delete().execute()
    assert (done.metrics["numTargetRowsDeleted"], rows(table, "id > 40")) == (1, [(50, "text", 50, 50)])
    with pytest.raises(UserError) as raised:
        table.merge(source, "target.id = source.k::int").when_matched_delete().execute()
    assert raised.value.code == "INVALID_CAST"
    assert "the source of the merge" in raised.value.message


def test_the_targets_alias_comes_before_a_column_that_is_called_so(tmp_path: Path) -> None:
    schema = "id INT, t STRUCT<z: INT, x: INT>, z INT"
    for number, (key, t, z) in enumerate([
        ("t.t.z", {"z": 9, "x": 1}, 3), ("`t`.`t`.`z`", {"z": 9, "x": 1}, 3), ("T.x", {"z": 2, "x": 9}, 3),
        ("t.z", {"z": 2, "x": 1}, 9), ("z", {"z": 2, "x": 1}, 9), ("`t`.z", {"z": 2, "x": 1}, 9),
    ]):  # fmt: skip
        table = mica.Table.create(tmp_path / str(number), schema)
        table.append([{"id": 1, "t": {"z": 2, "x": 1}, "z": 3}])
        merge = table.merge([{"id": 1, "q": 9}], "t.id = s.id", target_alias="t", source_alias="s")
        merge.when_matched_update({key: "s.q"}).execute()
        assert table.to_arrow().to_pylist() == [{"id": 1, "t": t, "z": z}]
    with pytest.raises(UserError, match="DUPLICATE_COLUMN"):
        merge.when_matched_update({"t.t.x": "1", "t.x": "2"}).execute()


def test_a_field_of_a_column_that_is_called_as_the_alias_is_no_new_column(tmp_path: Path) -> None:
    """As delta-spark, also where another clause adds a column that is called as the field."""
    old = {"id": 1, "t": {"z": 2, "x": 1}}
    for number, (first, second, row) in enumerate([
        ({"t.x": "s.x"}, {}, old | {"t": {"z": 2, "x": 9}}),
        ({"x": "1"}, {"`T`.`x`": "s.x"}, old | {"t": {"z": 2, "x": 9}, "x": None}),
        ({"x": "1"}, {"x": "s.x"}, old | {"x": 9}),
    ]):  # fmt: skip
        table = mica.Table.create(tmp_path / str(number), "id INT, t STRUCT<z: INT, x: INT>")
        table.append([old])
        source = [{"id": 1, "x": 9, "new": 9, "t.x": 5}]
        merge = table.merge(source, "t.id = s.id", target_alias="t", source_alias="s", schema_evolution=True)
        merge = merge.when_matched_update(first, "s.x < 9" if second else None)
        (merge.when_matched_update(second) if second else merge).execute()
        assert table.to_arrow().to_pylist() == [row]
        with pytest.raises(UserError, match="UNKNOWN_COLUMN"):
            merge.when_not_matched_insert({"t.new": "s.new"}).execute()


@pytest.mark.parametrize("mapping", ["none", "name"])
@WAYS
def test_a_merge_adds_columns_that_its_clauses_set(tmp_path: Path, properties: dict[str, str], mapping: str) -> None:
    made = properties | {"delta.columnMapping.mode": mapping, "delta.enableChangeDataFeed": "true"}
    table = mica.Table.create(tmp_path, "id INT, k STRING, s STRUCT<a: INT>", properties=made)
    table.append([{"id": i, "k": "k", "s": {"a": i}} for i in range(3)])
    source = [{"id": 1, "s": {"a": 7, "b": "x"}, "n": 5, "no": 0}, {"id": 9, "s": None, "n": 6, "no": 0}]
    named = table.merge(source, "target.id = source.id", schema_evolution=True)
    named = named.when_matched_update({"`target`.N": "n + 1"}, "n > 4").when_not_matched_insert({"id": "source.id"})
    named.execute()
    assert table.schema.names == ["id", "k", "s", "n"]
    source = [{"ID": 2, "s": {"a": 7, "b": "x"}, "m": [1]}, {"ID": 8, "s": {"a": 8, "b": "y"}, "m": None}]
    every = table.merge(source, "target.id = source.id", schema_evolution=True)
    every.when_matched_update_all().when_not_matched_insert_all().execute()
    assert str(table.schema) == "id INT,k STRING,s STRUCT<a: INT, b: STRING>,n BIGINT,m ARRAY<BIGINT>"
    old = {"k": "k", "n": None, "m": None}
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 0, **old, "s": {"a": 0, "b": None}},
        {"id": 1, **old, "s": {"a": 1, "b": None}, "n": 6},
        {"id": 2, **old, "s": {"a": 7, "b": "x"}, "m": [1]},
        {"id": 8, **old, "s": {"a": 8, "b": "y"}, "k": None},
        {"id": 9, **old, "s": None, "k": None},
    ]
    assert mica.check(table).ok
    with pytest.raises(UserError, match="the source has no column 'k'"):
        table.merge(source, "target.id = source.id").when_matched_update_all().execute()
    part = [{"id": 1, "s": {"b": "z"}}]
    some = table.merge(part, "target.id = source.id", schema_evolution=True)
    some.when_matched_update_all().execute()
    assert table.scan("id = 1", ["s"]).to_arrow().to_pylist() == [{"s": {"a": 1, "b": "z"}}]
    some = table.merge(part, "target.id = source.id", schema_evolution=True)
    some.when_matched_update({"s": "source.s"}).execute()
    assert table.scan("id = 1", ["s"]).to_arrow().to_pylist() == [{"s": {"a": None, "b": "z"}}]
    never = table.merge([{"id": 1, "z": 1}], "target.id = source.id AND source.z > 1", schema_evolution=True)
    version = table.version
    assert never.when_matched_update_all().execute().version == version + 1  # as delta-spark
    assert table.schema.names[-1] == "z"


@WAYS
def test_fields_that_structs_of_the_source_lack_keep_their_values(tmp_path: Path, properties: dict[str, str]) -> None:
    """As delta-spark 4.4: `UPDATE SET *` with schema evolution sets the fields that the source has, at any depth."""
    table = mica.Table.create(tmp_path, "id INT, s STRUCT<a: INT, n: STRUCT<b: INT, c: STRING>>", properties=properties)
    whole = {"a": 1, "n": {"b": 2, "c": "x"}}
    structs = [whole, None, {"a": 1, "n": None}, whole, None]
    table.append([{"id": number, "s": struct} for number, struct in enumerate(structs)])
    given = pa.struct([("n", pa.struct([("b", pa.int32()), ("new", pa.string())]))])
    new = {"n": {"b": 7, "new": "y"}}
    source = pa.table({"id": pa.array(range(5), pa.int32()), "s": pa.array([new, new, new, None, {"n": None}], given)})
    merge = table.merge(source, "target.id = source.id", schema_evolution=True)
    merge.when_matched_update({"s.a": "target.s.a + 5"}, "target.id = 9").when_matched_update_all().execute()
    assert str(table.schema) == "id INT,s STRUCT<a: INT, n: STRUCT<b: INT, c: STRING, new: STRING>>"
    found = table.scan(columns={"id": "id", "s": "s"}).to_arrow().sort_by("id")
    filled, kept = {"b": 7, "c": None, "new": "y"}, {"b": 7, "c": "x", "new": "y"}
    assert found["s"].to_pylist() == [
        {"a": 1, "n": kept},
        {"a": None, "n": filled},
        {"a": 1, "n": filled},
        {"a": 1, "n": {"b": None, "c": "x", "new": None}},
        {"a": None, "n": None},
    ]


@WAYS
@pytest.mark.parametrize(
    "on", ["t.id = s.id", "t.id = s.id AND t.n > 3", "t.id < s.id AND s.id = 7", "s.id = 7", "true", "false"]
)
def test_the_chunks_of_a_file_in_which_rows_are_matched_are_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], on: str
) -> None:
    found = []
    source = [{"id": i, "n": -i} for i in ((7,) if on == "true" else (3, 7, 8, 100))]
    for batch, chunk in ((1 << 20, 1 << 20), (3, 1), (3, 4), (1, 1 << 20)):
        monkeypatch.setattr(reading, "BATCH_ROWS", batch)
        monkeypatch.setattr(matching, "_CHUNK_ROWS", chunk)
        table = table_of(tmp_path / str(len(found)), 2, properties=properties)
        merging = table.merge(source, on, target_alias="t", source_alias="s").when_matched_update({"n": "s.n"})
        merging = merging.when_not_matched_insert({"id": "s.id", "n": "s.n", "p": "'c'"})
        merging.when_not_matched_by_source_delete("t.id % 3 = 0").execute()
        found.append(rows(table))
    assert found[1:] == found[:1] * 3
    assert len(found[0]) == {"true": 20, "s.id = 7": 23, "false": 17}.get(on, len(found[0]))


@pytest.mark.parametrize("values", [{}, {"k": "NULL"}, {"k": "source.n"}, {"k": "1", "st": "NULL"}])
def test_a_null_of_which_a_column_is_generated_is_told_by_its_column(tmp_path: Path, values: dict[str, str]) -> None:
    """The kernel, which computes that column, took no such rows, and named none."""
    ddl = (
        "id INT, k INT NOT NULL, g INT GENERATED ALWAYS AS (K + 1), st STRUCT<a: INT> NOT NULL,"
        " h INT GENERATED ALWAYS AS (st.a)"
    )
    table = mica.Table.create(tmp_path, ddl, properties={"delta.columnMapping.mode": "name"})
    merge = table.merge([{"id": 1, "n": None}], "target.id = source.id")
    given = {"id": "source.id", "st": "named_struct('a', 1)", **values}
    with pytest.raises(UserError, match=r"the column '(k|st)' is NOT NULL") as caught:
        merge.when_not_matched_insert(given).execute()
    assert caught.value.code == "NULL_IN_NOT_NULL_COLUMN"
    assert table.refresh().version == 0


def test_an_update_to_structs_that_lack_fields_is_refused(tmp_path: Path) -> None:
    """As by UPDATE and by delta-spark: the fields lost their values."""
    table = mica.Table.create(
        tmp_path / "t", "id INT, st STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<a: INT, b: STRING>>"
    )
    table.append([{"id": 1, "st": {"a": 1, "b": "x"}, "l": [{"a": 1, "b": "x"}]}])
    before, part = table.to_arrow(), pa.struct([("a", pa.int32())])
    source = pa.table({"id": pa.array([1], pa.int32()), "st": pa.array([{"a": 9}], part), "l": [[{"a": 9}]]},
                      pa.schema([("id", pa.int32()), ("st", part), ("l", pa.list_(part))]))  # fmt: skip
    on = table.merge(source, "target.id = source.id")
    for merge in (
        on.when_matched_update_all(),
        on.when_matched_update({"st": "source.st"}),
        on.when_matched_update({"l": "source.l"}),
        on.when_matched_update({"st": "named_struct('a', 5)"}),
    ):
        with pytest.raises(UserError, match=r"INCOMPATIBLE_TYPE.*\n.*all of them"):
            merge.execute()
    assert table.refresh().to_arrow() == before
    table.merge(source, "target.id = source.id + 1").when_not_matched_insert_all().execute()
    assert table.to_arrow()["st"].to_pylist() == [{"a": 1, "b": "x"}, {"a": 9, "b": None}]
