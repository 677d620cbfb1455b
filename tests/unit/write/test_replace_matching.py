"""`overwrite(rows, using=[…])`: rows of equal keys go, all new rows come, in one commit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mica
from mica.errors import ConflictError, UserError

OLD = [{"id": i, "s": "abc"[i % 3] if i < 5 else None, "n": i} for i in range(6)]
NEW = [{"id": 100, "s": "a", "n": 1}, {"id": 101, "s": "a", "n": None}, {"id": 102, "s": None, "n": 2}]


def table_of(path: Path, **given: Any) -> mica.Table:
    return mica.Table.create(path, "id INT, s STRING, n INT", data=OLD, **given)


def rows_of(table: mica.Table) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=repr)


def test_rows_of_equal_values_are_replaced_and_others_stay(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    done = table.overwrite(NEW, using=["S"])
    assert rows_of(table) == sorted([*(r for r in OLD if r["s"] != "a"), *NEW], key=repr)
    assert (done.metrics["numDeletedRows"], done.metrics["numCopiedRows"], done.rows) == (2, 4, 7)
    last = table.history(1).to_pylist()[0]
    assert (last["operation"], dict(last["operation_parameters"])) == (
        "WRITE", {"mode": "Overwrite", "replaceUsingCols": "(s)"},
    )  # fmt: skip
    version = table.version
    assert table.overwrite(NEW[:0], using=["s"]).version == version
    assert table.overwrite(table.scan("id < 3"), using=["s", "n"]).version == version + 1


def test_rows_for_which_a_condition_is_true_are_replaced(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    done = table.overwrite(NEW, on="t.s <=> s.s AND t.id < s.id", source_alias="s", target_alias="t")
    assert rows_of(table) == sorted([*(r for r in OLD if r["s"] not in ("a", None)), *NEW], key=repr)
    last = dict(table.history(1).to_pylist()[0]["operation_parameters"])
    assert (done.rows, last["replaceOnCond"]) == (6, "t.s <=> s.s AND t.id < s.id")
    # Without an equality every row meets every other.
    table.overwrite([{"id": 9}], on="target.id > source.id")
    assert sorted(r["id"] for r in rows_of(table)) == [1, 2, 4, 9]
    for on, code in (
        ("id = 1", "AMBIGUOUS_COLUMN"),
        ("target.x = 1", "UNKNOWN_COLUMN"),
        ("target.id =", "INVALID_EXPRESSION"),
    ):
        with pytest.raises(UserError) as caught:
            table.overwrite([{"id": 9}], on=on)
        assert caught.value.code == code, on


def test_only_files_that_can_hold_a_key_are_read(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, p INT", ["p"])
    for n in range(4):
        table.append([{"id": 10 * n, "p": n % 2}, {"id": 10 * n + 1, "p": n % 2}])
    before = set(table.files()["path"].to_pylist())
    table.overwrite([{"id": 20, "p": 0}, {"id": 99, "p": 1}], using=["id", "p"])
    assert len(before - set(table.files()["path"].to_pylist())) == 1
    # Of a partition column the log decides, and no file is read.
    table.overwrite([{"id": 7, "p": 1}], using=["p"])
    assert sorted(table.scan("p = 1").to_arrow()["id"].to_pylist()) == [7]


@pytest.mark.parametrize("collation", ["", " COLLATE UTF8_LCASE"])
def test_a_text_for_a_char_replaces_the_text_with_blanks(tmp_path: Path, collation: str) -> None:
    table = mica.Table.create(tmp_path, f"k CHAR(3){collation}, n INT")
    for n, k in enumerate(["a", "b  ", "c"]):
        table.append([{"k": k, "n": n}])
    table.overwrite([{"k": "A" if collation else "a", "n": 7}, {"k": "b", "n": 8}], using=["k"])
    assert sorted((r["k"].lower(), r["n"]) for r in rows_of(table)) == [("a  ", 7), ("b  ", 8), ("c  ", 2)]


@pytest.mark.parametrize("kind", ["VARIANT", "MAP<STRING, INT>", "STRUCT<v: VARIANT>"])
def test_columns_without_an_order_are_refused_in_words_of_the_call(tmp_path: Path, kind: str) -> None:
    table = mica.Table.create(tmp_path, f"k {kind}, n INT")
    with pytest.raises(UserError, match=r"(?s)by 'k'.*a condition") as caught:
        table.overwrite([{"k": None, "n": 7}], using=["k"])
    assert (caught.value.code, "the__table" in str(caught.value)) == ("TYPE_MISMATCH", False)


def test_a_collation_that_only_spark_compares_needs_a_dataframe(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "k STRING COLLATE UNICODE_CI, n INT")
    for by in ({"using": ["k"]}, {"on": "target.k = 'a'"}):
        with pytest.raises(UserError, match="DataFrame") as caught:
            table.overwrite([{"k": "a", "n": 7}], **by)
        assert (caught.value.code, "spark=" in str(caught.value)) == ("NEEDS_SPARK", False)


def test_structs_are_compared_by_the_names_of_their_fields(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "s STRUCT<a: INT, b: INT>, n INT")
    table.append([{"s": {"a": 1, "b": 2}, "n": 1}, {"s": {"a": 2, "b": 1}, "n": 2}, {"s": {"a": 3}, "n": 3}])
    table.overwrite([{"s": {"b": 2, "a": 1}, "n": 4}], using=["s"], schema_evolution=True)
    assert [r["n"] for r in rows_of(table)] == [4, 2, 3]
    table.overwrite([{"s": {"a": 3}, "n": 5}], using=["s"])
    assert [r["n"] for r in rows_of(table)] == [4, 2, 5]
    with pytest.raises(UserError, match="before") as caught:
        table.overwrite([{"s": {"a": 3, "b": 1, "c": 2}, "n": 5}], using=["s"], schema_evolution=True)
    assert caught.value.code == "UNKNOWN_COLUMN"


def test_a_value_that_the_column_cannot_hold_is_told_as_by_an_append(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, n INT")
    with pytest.raises(UserError, match="'id'") as caught:
        table.overwrite([{"id": 1 << 40, "n": 7}], using=["id"])
    assert (caught.value.code, "the__rows" in str(caught.value)) == ("INVALID_VALUE", False)


def test_no_columns_are_not_all_rows(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    with pytest.raises(UserError, match="using") as caught:
        table.overwrite(NEW, using=[])
    assert (caught.value.code, len(rows_of(table))) == ("INVALID_ARGUMENT", len(OLD))


def test_an_alias_may_be_any_name(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    done = table.overwrite(NEW, on="`all rows`.s = `a.b`.s", source_alias="a.b", target_alias="all rows")
    assert done.metrics["numDeletedRows"] == 2


KEYS = st.sampled_from([None, "a", "A", "b", "ß", "x" * 40])
ROW = st.fixed_dictionaries({"k": KEYS, "n": st.one_of(st.none(), st.integers(0, 3)), "v": st.integers(0, 9)})


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    old=st.lists(ROW, max_size=12), new=st.lists(ROW, min_size=1, max_size=6),
    using=st.sampled_from([["k"], ["n"], ["k", "n"], ["p", "k"]]),
    collation=st.sampled_from(["", " COLLATE UTF8_LCASE"]), properties=st.fixed_dictionaries({
        "delta.enableDeletionVectors": st.sampled_from(["true", "false"]),
        "delta.enableChangeDataFeed": st.sampled_from(["true", "false"]),
        "delta.columnMapping.mode": st.sampled_from(["none", "name"]),
        "delta.enableVariantShredding": st.just("true"),
    }),
    partitioned=st.booleans(), halves=st.booleans(),
)  # fmt: skip
def test_any_rows(
    tmp_path_factory: pytest.TempPathFactory,
    old: list[dict[str, Any]],
    new: list[dict[str, Any]],
    using: list[str],
    collation: str,
    properties: dict[str, str],
    partitioned: bool,
    halves: bool,
) -> None:
    schema = f"k STRING{collation}, n INT, v VARIANT, p INT"
    table = mica.Table.create(tmp_path_factory.mktemp("t"), schema, ["p"] if partitioned else [], properties)
    given = [[{**r, "p": r["v"] % 2, "v": {"x": r["v"]}} for r in rows] for rows in (old, new)]
    for part in [given[0][::2], given[0][1::2]] if halves else [given[0]]:
        if part:
            table.append(part)

    def key(row: dict[str, Any]) -> tuple[Any, ...] | None:
        found = tuple(str(row[c]).lower() if collation and c == "k" and row[c] else row[c] for c in using)
        return None if None in found else found

    def seen(rows: list[dict[str, Any]]) -> Counter[Any]:
        return Counter((r["k"], r["n"], r["p"], r["v"]["x"] if isinstance(r["v"], dict) else r["v"]) for r in rows)

    def read(where: str | None = None) -> list[dict[str, Any]]:
        return table.scan(where, {"k": "k", "n": "n", "p": "p", "v": "v:x::int"}).to_arrow().to_pylist()

    replaced = {key(row) for row in given[1]} - {None}
    gone = [row for row in given[0] if key(row) in replaced]
    done = table.overwrite(given[1], using=using)
    expected = seen(given[0]) - seen(gone) + seen(given[1])
    assert seen(read()) == expected
    assert (done.metrics["numDeletedRows"], mica.check(table).ok) == (len(gone), True)
    if properties["delta.enableChangeDataFeed"] == "true":
        feed = (
            table.changes(done.version, done.version).to_arrow().group_by("_change_type").aggregate([([], "count_all")])
        )
        counted = dict(zip(feed["_change_type"].to_pylist(), feed["count_all"].to_pylist(), strict=True))
        assert counted == {name: n for name, n in (("insert", len(new)), ("delete", len(gone))) if n}


def test_the_table_s_rules_are_for_the_new_rows(tmp_path: Path) -> None:
    schema = (
        "id INT NOT NULL, d INT DEFAULT 7, g INT GENERATED ALWAYS AS (id + 1), i BIGINT GENERATED ALWAYS AS IDENTITY"
    )
    table = mica.Table.create(tmp_path / "t", schema)
    table.add_constraint("small", "id < 100")
    table.append([{"id": 1}, {"id": 2}])
    table.overwrite([{"id": 2}, {"id": 3}], using=["id"])
    found = table.to_arrow().sort_by("id").to_pylist()
    assert [(r["id"], r["d"], r["g"], r["i"]) for r in found] == [(1, 7, 2, 1), (2, 7, 3, 3), (3, 7, 4, 4)]
    version = table.version
    for rows, code in (
        ([{"id": 100}], "CONSTRAINT_VIOLATED"),
        ([{"id": 1, "i": 5}], "IDENTITY_GIVEN"),
        ([{"id": 1, "z": 5}], "UNKNOWN_COLUMN"),
        ([{"id": 1, "d": "x"}], "INCOMPATIBLE_TYPE"),
    ):
        with pytest.raises(UserError) as caught:
            table.overwrite(rows, using=["id"])
        assert caught.value.code == code, rows
    assert table.refresh().version == version
    table.overwrite([{"id": 1, "z": 5}], using=["id"], schema_evolution=True)
    assert table.scan("z = 5").count() == 1


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    for wrong, code in (
        ({"using": ["x"]}, "UNKNOWN_COLUMN"),
        ({"using": ["n"]}, "MISSING_COLUMN"),
        ({"using": ["id"], "where": "id = 1"}, "INVALID_ARGUMENT"),
        ({"using": ["id"], "shredding": {"v": "STRUCT<a: INT>"}}, "INVALID_ARGUMENT"),
        ({"using": "id"}, "INVALID_ARGUMENT"),
        ({"using": ["id"], "on": "target.id = source.id"}, "INVALID_ARGUMENT"),
        ({"on": "target.id = source.id", "where": "id = 1"}, "INVALID_ARGUMENT"),
    ):
        with pytest.raises(UserError) as caught:
            table.overwrite([{"id": 1}], **wrong)
        assert caught.value.code == code, wrong
    only = mica.Table.create(tmp_path / "a", "id INT", properties={"delta.appendOnly": "true"}, data=[{"id": 1}])
    with pytest.raises(UserError, match="accepts only new rows"):
        only.overwrite([{"id": 1}], using=["id"])
    assert only.overwrite([{"id": 2}], using=["id"]).rows == 1, "which replaces nothing"


def test_a_key_that_another_writer_adds_is_a_conflict(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    other = mica.Table.open(tmp_path)
    other.append([{"id": 50, "s": "z", "n": 0}])
    table.overwrite(
        pa.table({"id": [60], "s": ["q"], "n": [0]}).cast(pa.schema({"id": "int32", "s": "string", "n": "int32"})),
        using=["s"],
    )
    assert rows_of(table)[-1]["id"] in range(61)
    late = mica.Table.open(tmp_path)
    other.refresh().append([{"id": 51, "s": "q", "n": 0}])
    with pytest.raises(ConflictError):
        late.overwrite([{"id": 61, "s": "q", "n": 0}], using=["s"])


def test_a_repetition_is_none(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    first = table.overwrite(NEW, using=["s"], txn=("job", 1))
    again = mica.Table.open(tmp_path).overwrite(NEW, using=["s"], txn=("job", 1))
    assert (first.repeated, again.repeated, table.count()) == (False, True, 7)
