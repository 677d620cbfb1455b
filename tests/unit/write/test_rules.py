"""Rules of tables: obeyed by every write, refused by name where they cannot be evaluated, and their columns stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.errors import ConflictError, UnsupportedTableError, UserError
from mica.expressions.parse import parse
from mica.log.actions import Metadata
from mica.log.snapshot import load
from mica.maintain import constraints
from mica.schema import json as schema_json
from mica.schema.ddl import parse_ddl
from mica.schema.special import GENERATED, HIGH_WATER_MARK
from mica.schema.types import INTEGER, STRING, StructField, StructType
from mica.storage import Storage
from mica.write import rules

SCHEMA = (
    "id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), n INT DEFAULT 7, "
    "g INT GENERATED ALWAYS AS (n * 2), v VARIANT"
)


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    made = mica.Table.create(tmp_path / "t", SCHEMA, ["g"])
    made.append([{"v": {"a": 1}}, {"v": {"a": 2}}])
    return made.add_constraint("Positive", "v:a::int > 0 AND n < 100")


def rows(table: mica.Table) -> list[tuple[Any, ...]]:
    found = table.scan(columns={"id": "id", "n": "n", "g": "g", "a": "v:a::int"}).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


def documents(path: Path, *found: Any) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in found))
    return str(path)


WRITES: dict[str, Callable[[mica.Table, Path], object]] = {
    "append": lambda t, _: t.append([{"v": {"a": 3}}]),
    "reader": lambda t, _: t.append(iter([{"v": {"a": 3}}])),
    "ingest": lambda t, p: mica.ingest_json(documents(p / "x", {"a": 3}), t.path),
    "sorted": lambda t, p: mica.ingest_json(documents(p / "x", {"a": 3}), t.path, sort_by=["v:a::int"]),
}
BAD: dict[str, Callable[[mica.Table, Path], object]] = {
    "append": lambda t, _: t.append([{"v": {"a": 1}}, {"v": {"a": -3}}]),
    "null": lambda t, _: t.append([{"v": {}}]),
    "overwrite": lambda t, _: t.overwrite([{"n": 100, "v": {"a": 1}}]),
    "ingest": lambda t, p: mica.ingest_json(documents(p / "x", {"a": 1}, {"a": 0}), t.path),
    "sorted": lambda t, p: mica.ingest_json(documents(p / "x", {"a": 1}, {"a": 0}), t.path, sort_by=["v:a::int"]),
    "update": lambda t, _: t.update({"n": "n + 95"}, "v:a::int = 2"),
    "generated": lambda t, _: t.append([{"n": 1, "g": 3, "v": {"a": 1}}]),
    "constraint": lambda t, _: t.add_constraint("more", "v:a::int > 1"),
}


@pytest.mark.parametrize(("wrong", "told"), [("5", "5"), ("null", "null"), ("{}", "NULL")])
def test_a_row_that_is_there_is_shown_as_json(tmp_path: Path, wrong: str, told: str) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append([{"v": wrong if wrong == "{}" else f'{{"a": {wrong}}}'}])
    with pytest.raises(UserError) as caught:
        table.add_constraint("k", "v:a::int < 0")
    assert (caught.value.code, caught.value.message.rpartition(": ")[2]) == ("CONSTRAINT_VIOLATED", f"v:a = {told}")


def test_a_date_that_is_there_is_shown_beyond_the_years_of_python(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "d DATE")
    table.append(pa.table({"d": pa.array([2_932_897], pa.int32()).cast(pa.date32())}))
    with pytest.raises(UserError, match="d = DATE'10000-01-01'"):
        table.add_constraint("c", "d < DATE'2020-01-01'")


@pytest.mark.parametrize("how", WRITES)
def test_every_write_completes_rows(table: mica.Table, tmp_path: Path, how: str) -> None:
    WRITES[how](table, tmp_path)
    assert rows(table.refresh()) == [(10, 7, 14, 1), (15, 7, 14, 2), (20, 7, 14, 3)]
    assert '"delta.identity.highWaterMark":20' in table.metadata.schema_string
    assert mica.check(table.path).ok


@pytest.mark.parametrize("how", BAD)
def test_every_write_refuses_a_row_and_leaves_the_table(table: mica.Table, tmp_path: Path, how: str) -> None:
    before = sorted(p for p in Path(table.path).rglob("*"))
    with pytest.raises(UserError) as caught:
        BAD[how](table, tmp_path)
    assert caught.value.code == "CONSTRAINT_VIOLATED"
    assert [p for p in sorted(Path(table.path).rglob("*")) if p.suffix] == [p for p in before if p.suffix]


def test_an_update_computes_what_is_generated_from_it_and_keeps_ids(table: mica.Table) -> None:
    table.update({"n": "v:a::int"}, "v:a::int = 2")
    assert rows(table) == [(10, 7, 14, 1), (15, 2, 4, 2)]
    table.update({"n": "3", "g": "6"}, "id = 10")
    assert rows(table) == [(10, 3, 6, 1), (15, 2, 4, 2)]


@pytest.mark.parametrize("mode", ["none", "name"])
def test_a_merge_completes_and_checks_rows(tmp_path: Path, mode: str) -> None:
    properties = {"delta.columnMapping.mode": mode, "delta.enableChangeDataFeed": "true"}
    table = mica.Table.create(tmp_path / "t", SCHEMA, ["g"], properties)
    table.append([{"v": {"a": 1}}, {"v": {"a": 2}}])
    table.add_constraint("positive", "v:a::int > 0")
    rows_given = pa.table({"a": [2, 3, 4], "n": pa.array([3, 4, 5], pa.int32()),
                           "w": [f'{{"a": {a}}}' for a in (2, 3, 4)]})  # fmt: skip
    merge = table.merge(rows_given, "target.v:a::int = source.a").when_matched_update({"n": "source.n"})
    merge = merge.when_not_matched_insert({"v": "source.w"}, "source.a = 3")
    merge.when_not_matched_insert({"n": "source.n", "v": "source.w"}).execute()
    assert rows(table) == [(10, 7, 14, 1), (15, 3, 6, 2), (20, 7, 14, 3), (25, 5, 10, 4)]
    fed = [r for r in table.changes(3).to_arrow().to_pylist() if r["_change_type"] == "insert"]
    assert sorted((r["id"], r["n"], r["g"]) for r in fed) == [(20, 7, 14), (25, 5, 10)]
    bad = pa.table({"a": [9], "w": ['{"a": -1}']})
    for wrong, code in (({"v": "source.w"}, "CONSTRAINT_VIOLATED"), ({"id": "9"}, "IDENTITY_GIVEN")):
        with pytest.raises(UserError) as caught:
            table.merge(bad, "target.n = source.a").when_not_matched_insert(wrong).execute()
        assert caught.value.code == code
    table.append([{"v": {"a": 5}}])
    assert rows(table)[-1] == (30, 7, 14, 5)
    everything = pa.table({"n": pa.array([5, 8], pa.int32()), "v": ['{"a": 44}', '{"a": 55}']})
    merge = table.merge(everything, "target.n = source.n").when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    assert rows(table)[-2:] == [(30, 7, 14, 5), (35, 8, 16, 55)]
    assert (25, 5, 10, 44) in rows(table)
    assert mica.check(table.path).ok


def test_values_of_an_identity_are_its_own(table: mica.Table) -> None:
    for change in (lambda: table.append([{"id": 1, "v": {"a": 1}}]), lambda: table.update({"ID": "1"})):
        with pytest.raises(UserError) as caught:
            change()
        assert caught.value.code == "IDENTITY_GIVEN"


def test_a_generated_column_is_not_made_of_another(tmp_path: Path) -> None:
    ddl = "id INT, g INT GENERATED ALWAYS AS (id + 1), h INT GENERATED ALWAYS AS (G + 1)"
    with pytest.raises(UnsupportedTableError, match="uses the generated column 'g'"):
        mica.Table.create(tmp_path, ddl)
    assert not mica.Table.exists(tmp_path)


def test_given_values_of_an_identity_by_default_do_not_move_it(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT GENERATED BY DEFAULT AS IDENTITY, n INT")
    table.append([{"id": 50, "n": 1}])
    table.append([{"n": 2}])
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 50]


def test_tasks_side_by_side_give_unique_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mica.engines.local.SHARE_BYTES", 1 << 10)
    monkeypatch.setattr("mica.engines.local.threads", lambda: 4)
    table = mica.Table.create(tmp_path, "id BIGINT GENERATED ALWAYS AS IDENTITY, n INT")
    for _ in range(2):
        table.append(pa.table({"n": pa.array(range(10_000), pa.int32())}))
    found = table.to_arrow()["id"].to_pylist()
    assert len(set(found)) == len(found) == 20_000


def test_two_writers_never_give_the_same_ids(table: mica.Table) -> None:
    other = mica.Table.open(table.path)
    table.append([{"v": {"a": 3}}])
    with pytest.raises(ConflictError):
        other.append([{"v": {"a": 4}}])
    assert len(rows(table)) == 3


def test_what_cannot_be_evaluated_is_refused_by_name(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT")
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    metadata = table.metadata.action() | {"configuration": {"delta.constraints.odd": "soundex(n) > 0"}}
    log.write_text("\n".join(json.dumps(line) for line in ({"commitInfo": {}}, {"metaData": metadata})))
    with pytest.raises(UnsupportedTableError, match=r"'odd' \(soundex\(n\) > 0\)") as caught:
        table.refresh().append([{"n": 1}])
    assert caught.value.code == "UNSUPPORTED_WRITER_FEATURE"
    assert table.drop_constraint("odd").append([{"n": 1}]).rows == 1


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda t: t.add_constraint("POSITIVE", "n > 0"), "CONSTRAINT_EXISTS"),
        (lambda t: t.add_constraint("a b", "n > 0"), "INVALID_NAME"),
        (lambda t: t.add_constraint("typ", "n"), "NOT_A_PREDICATE"),
        (lambda t: t.add_constraint("missing", "x > 0"), "UNKNOWN_COLUMN"),
        (lambda t: t.drop_constraint("missing"), "UNKNOWN_CONSTRAINT"),
        (lambda t: t.rename_column("v", "w"), "COLUMN_IN_USE"),
        (lambda t: t.rename_column("n", "w"), "COLUMN_IN_USE"),
        (lambda t: t.alter_column("id", type="DECIMAL(25,3)"), "COLUMN_IN_USE"),
        (lambda t: t.alter_column("id", default="7"), "COLUMN_IN_USE"),
    ],
)
def test_mistakes_have_codes(table: mica.Table, call: Callable[[mica.Table], object], code: str) -> None:
    version = table.version
    with pytest.raises(UserError) as caught:
        call(table)
    assert (caught.value.code, table.refresh().version) == (code, version)


def test_constraints_come_and_go(table: mica.Table) -> None:
    assert rules.constraints(table.properties) == {"positive": "v:a::int > 0 AND n < 100"}
    assert table.drop_constraint("missing", if_exists=True).version == table.version
    table.drop_constraint("Positive")
    table.append([{"v": {"a": -3}}])
    assert [row["operation"] for row in table.history().to_pylist()[1:3]] == ["DROP CONSTRAINT", "ADD CONSTRAINT"]


def test_a_constraint_may_end_in_a_comment(table: mica.Table) -> None:
    table.add_constraint("small", "v:a::int < 3 -- not three")
    with pytest.raises(mica.UserError, match="small"):
        table.append([{"v": {"a": 3}}])
    with pytest.raises(mica.UserError) as raised:
        table.add_constraint("smaller", "v:a::int < 2 -- not two")
    assert raised.value.code == "CONSTRAINT_VIOLATED"


def test_a_new_constraint_does_not_read_files_that_its_bounds_prove(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT")
    for start in (0, 10):
        table.append(pa.table({"n": pa.array(range(start, start + 5), pa.int32())}))
    for file in tmp_path.glob("part-*"):
        file.unlink()
    table.add_constraint("small", "n < 100")
    assert rules.constraints(table.properties) == {"small": "n < 100"}


def test_a_table_whose_rules_make_no_sense_is_not_made(tmp_path: Path) -> None:
    for ddl in ("id INT GENERATED ALWAYS AS IDENTITY", "a INT DEFAULT b, b INT", "a INT GENERATED ALWAYS AS (c)"):
        with pytest.raises(UnsupportedTableError):
            mica.Table.create(tmp_path / "t", ddl)
        assert not mica.Table.exists(tmp_path / "t")
    with pytest.raises(UserError):
        constraints.refuse_name("")


def test_a_generated_column_is_of_the_type_of_its_expression_when_a_table_is_made(tmp_path: Path) -> None:
    for columns in ("a INT, b STRING", "a INT, b BIGINT", "a STRUCT<x: INT>, b STRUCT<X: INT>", "a VARIANT, b INT"):
        with pytest.raises(UserError, match="TYPE_MISMATCH") as caught:
            mica.Table.create(tmp_path / "t", f"{columns} GENERATED ALWAYS AS (a)")
        assert not mica.Table.exists(tmp_path / "t")
    assert caught.value.hint == "Its expression must be CAST(a AS INT)."
    mica.Table.create(tmp_path / "t", "a STRUCT<x: INT NOT NULL>, b STRUCT<x: INT> GENERATED ALWAYS AS (a)")
    kept = StructType((StructField("a", INTEGER), StructField("b", STRING, True, {GENERATED: "a"})))
    assert rules.rules_of(kept, {}, "t", ansi=True, timezone="UTC").generated, "a table that has it is written"


def test_strings_keep_the_length_that_their_column_was_declared_with(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, s VARCHAR(3)")
    assert table.snapshot.schema.field("s").metadata == {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    table.append([{"id": 1, "s": "äöü"}, {"id": 2, "s": None}])
    for write in (
        lambda: table.append([{"id": 3, "s": "four"}]),
        lambda: table.update({"s": "'four'"}, "id = 2"),
        lambda: table.merge([{"id": 2, "s": "four"}], "t.id = s.id", target_alias="t", source_alias="s")
        .when_matched_update_all().execute(),
    ):  # fmt: skip
        with pytest.raises(UserError, match=r"varchar\(3\) of 's'") as caught:
            write()
        assert caught.value.code == "CONSTRAINT_VIOLATED"
        assert "give the column a longer type" in str(caught.value.hint)
    table.alter_column("s", type="VARCHAR(4)").append([{"id": 3, "s": "four"}])
    assert table.scan().to_arrow().column("s").to_pylist() == ["äöü", None, "four"]


def test_identity_columns_go_on_where_they_were_and_never_back(tmp_path: Path) -> None:
    def made(step: int) -> Metadata:
        ddl = f"id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY {step}), n INT"
        mica.Table.create(tmp_path / str(step), ddl)
        return load(Storage.open(tmp_path / str(step))).metadata

    def mark(metadata: Metadata) -> Any:
        return schema_json.loads(metadata.schema_string).field("id").metadata.get(HIGH_WATER_MARK)

    for step, first, second in ((5, 20, 25), (-5, 0, -5)):
        new = made(step)
        assert rules.numbered(new, 0) is new
        older = rules.numbered(new, 3)
        newer = rules.numbered(older, 1)
        assert (mark(new), mark(older), mark(newer)) == (None, first, second)
        assert [mark(rules.never_again(a, b)) for a, b in ((older, newer), (newer, older), (new, newer))] == [
            second
        ] * 3
        assert mark(rules.never_again(older, new)) == first


def test_a_generated_column_that_is_given_is_not_computed() -> None:
    schema = parse_ddl("n INT, g INT GENERATED ALWAYS AS (n * 2), h INT GENERATED ALWAYS AS (n + 1)")
    found = rules.regenerated(schema, {"n": parse("5"), "g": parse("10")})
    assert list(found) == ["h"]
    assert rules.regenerated(schema, {}) == {}


def test_an_empty_text_is_null_as_a_partition(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, p STRING NOT NULL", ["p"])
    with pytest.raises(UserError) as caught:
        table.append([{"id": 1, "p": ""}])
    assert (caught.value.code, table.refresh().version) == ("NULL_IN_NOT_NULL_COLUMN", 0)


@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
@pytest.mark.parametrize("sort_by", [[], ["v:n::int"]])
def test_columns_are_generated_of_numbers_that_the_writer_gives(
    tmp_path: Path, sort_by: list[str], on_error: str
) -> None:
    numbered = "id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 100)"
    table = mica.Table.create(tmp_path / "t", f"v VARIANT, {numbered}, g BIGINT GENERATED ALWAYS AS (id * 2)")
    (tmp_path / "in.ndjson").write_text("".join(f'{{"n":{n}}}\n' for n in range(5)))
    mica.ingest_json(tmp_path / "in.ndjson", tmp_path / "t", sort_by=sort_by, on_error=on_error)  # type: ignore[arg-type]
    rows = table.refresh().scan(columns=["id", "g"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["g"]) for row in rows) == [(n, 2 * n) for n in range(100, 105)]


def test_a_merge_generates_from_texts_what_an_append_does(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, v VARIANT, kind STRING GENERATED ALWAYS AS (v:kind::string)")
    table.append([{"id": 1, "v": {"kind": "a"}}])
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ['{"kind":"x"}', '{"kind":"y"}']})
    table.merge(rows, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    found = table.scan(columns=["id", "kind"]).to_arrow().to_pylist()
    assert sorted(row["kind"] for row in found) == ["x", "y"]
