"""What may be assigned, to columns and to fields of structs alone."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import mica
from mica.errors import UserError
from mica.expressions.tree import Column, Literal
from mica.schema.ddl import parse_ddl
from mica.schema.types import INTEGER
from mica.write.assignment import place_of, shown, together

DDL = "id INT, s STRUCT<x: INT, t: STRUCT<a: STRING COLLATE UTF8_LCASE>>, `a.b` INT, l ARRAY<STRUCT<x: INT>>, v VARIANT"


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    made = mica.Table.create(tmp_path / "t", f"{DDL}, g INT GENERATED ALWAYS AS (s.x + 2)")
    made.append([{"id": 1, "s": {"x": 1, "t": {"a": "É"}}, "a.b": 1, "l": [{"x": 1}], "v": {"a": 1}},
                 {"id": 2, "s": None, "a.b": None, "l": None, "v": None}])  # fmt: skip
    return made


def test_places() -> None:
    schema = parse_ddl(DDL)
    for given, names in {"A.B": "`a.b`", "`a.b`": "`a.b`", "S.T.a": "s.t.a", "`s`.`x`": "s.x", "id": "id"}.items():
        assert shown(place_of(schema, given)) == names
    with pytest.raises(UserError, match="twice"):
        together([(place_of(schema, name), Literal(1, INTEGER)) for name in ("s.t.a", "s.x", "s.t")])
    assert together([(place_of(schema, "id"), Column(("s", "x")))]) == {"id": Column(("s", "x"))}


def test_fields_are_set_and_what_is_generated_from_them(table: mica.Table) -> None:
    table.update({"s.t.a": "'Öl'", "s.x": "id + 4"})
    found = table.scan(columns=["s", "g", "a.b"]).to_arrow().to_pylist()
    assert found == [
        {"s": {"x": 5, "t": {"a": "Öl"}}, "g": 7, "a.b": 1}, {"s": {"x": 6, "t": {"a": "Öl"}}, "g": 8, "a.b": None},
    ]  # fmt: skip
    assert table.schema == mica.Table.open(table.path).schema
    assert table.scan("s.t.a = 'öL'").count() == 2
    merge = table.merge([{"id": 2, "n": 9}], "target.id = source.id").when_matched_update({"target.s.x": "source.n"})
    merge.when_not_matched_by_source_update({"s": "NULL"}).execute()
    assert table.scan(columns=["s", "g"]).to_arrow().sort_by("g").to_pylist() == [
        {"s": {"x": 9, "t": {"a": "Öl"}}, "g": 11}, {"s": None, "g": None},
    ]  # fmt: skip


def test_a_literal_text_is_read_for_a_date_or_a_time(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "d DATE, ts TIMESTAMP, n TIMESTAMP_NTZ, s STRING")
    table.append([{"s": "2024-01-01"}])
    table.update({"d": "'2024-02-03'", "ts": "'2024-02-03 04:05:06'", "n": "'2024-02-03 04:05:06'"})
    moment = dt.datetime(2024, 2, 3, 4, 5, 6)  # noqa: DTZ001 - as the rows have it
    found = table.to_arrow().to_pylist()[0]
    assert (found["d"], found["ts"].replace(tzinfo=None), found["n"]) == (moment.date(), moment, moment)
    merge = table.merge([{"k": "2024-01-01"}], "target.s = source.k")
    merge.when_matched_update({"d": "'2025-01-01'"}).execute()
    assert table.to_arrow().to_pylist()[0]["d"] == dt.date(2025, 1, 1)
    for value, code in (("'no date'", "INVALID_CAST"), ("s", "INCOMPATIBLE_TYPE")):
        with pytest.raises(UserError) as raised:
            table.update({"d": value})
        assert raised.value.code == code


@pytest.mark.parametrize(
    ("values", "code", "told"),
    [
        ({"s": "NULL", "s.x": "1"}, "DUPLICATE_COLUMN", "s.x"),
        ({"s.x": "1", "S.X": "2"}, "DUPLICATE_COLUMN", "s.x"),
        ({"s.z": "1"}, "UNKNOWN_COLUMN", "s.x"),
        ({"z.x": "1"}, "UNKNOWN_COLUMN", "z.x"),
        ({"l.x": "1"}, "INCOMPATIBLE_TYPE", "ARRAY"),
        ({"v.a": "1"}, "INCOMPATIBLE_TYPE", "variant_set"),
        ({"s.x": "concat('o', 'ne')"}, "INCOMPATIBLE_TYPE", "'s.x'"),
        ({"s.t": "1"}, "INCOMPATIBLE_TYPE", "s.t"),
        ({"s.": "1"}, "UNKNOWN_COLUMN", "s."),
    ],
)
def test_mistakes_name_the_field(table: mica.Table, values: dict[str, str], code: str, told: str) -> None:
    def merged(given: dict[str, str]) -> Any:
        return table.merge([{"id": 1}], "target.id = source.id").when_matched_update(given).execute()

    for call in (table.update, merged):
        with pytest.raises(UserError) as raised:
            call(values)
        assert raised.value.code == code
        assert told in f"{raised.value.message} {raised.value.hint}"
    assert table.refresh().version == 1


@pytest.mark.parametrize(
    ("column", "text", "stored"),
    [
        ("l", "array(1, id)", [1, 7]), ("l", "array()", []), ("l", "array(NULL)", [None]),
        ("l", "if(id > 0, array(id), NULL)", [7]), ("m", "map('a', id)", [("a", 7)]), ("m", "map()", []),
        ("m", "map('a', NULL)", [("a", None)]), ("s", "named_struct('x', 1, 'Y', NULL)", {"x": 1, "y": None}),
        ("s", "named_struct('x', id, 'y', 5)", {"x": 7, "y": "5"}),
        ("n", "array(named_struct('a', 1, 'b', array(id)))", [{"a": 1.0, "b": [7]}]),
        ("r", "named_struct('a', id, 'b', NULL)", {"a": 7, "b": None}),
        # Fields are stored by their names, as by delta-spark.
        ("s", "named_struct('Y', id, 'x', 5)", {"x": 5, "y": "7"}),
        ("r", "named_struct('b', NULL, 'a', 1)", {"a": 1, "b": None}),
        ("n", "array(named_struct('b', array(id), 'a', 1), NULL)", [{"a": 1.0, "b": [7]}, None]),
        ("k", "map('a', named_struct('y', 1, 'x', named_struct('b', 2, 'a', id)))",
         [("a", {"x": {"a": 7, "b": 2}, "y": 1})]),
        ("i", "map(7L, 8L)", [(7, 8)]),
    ],
)  # fmt: skip
def test_parts_of_nested_values_are_cast_as_columns_are(tmp_path: Path, column: str, text: str, stored: Any) -> None:
    ddl = (
        "id INT, l ARRAY<BIGINT>, m MAP<STRING, BIGINT>, s STRUCT<x: BIGINT, y: STRING>, "
        "n ARRAY<STRUCT<a: DOUBLE, b: ARRAY<SMALLINT>>>, r STRUCT<a: BIGINT NOT NULL, b: DATE>, "
        "k MAP<STRING, STRUCT<x: STRUCT<a: INT, b: INT>, y: INT>>, i MAP<INT, INT>"
    )
    table = mica.Table.create(tmp_path / "t", ddl)
    table.append([{"id": 7}])
    table.update({column: text})
    assert table.scan(columns=[column]).to_arrow().column(0).to_pylist() == [stored]
    table.update({column: "NULL"})
    merge = table.merge([{"id": 7}], "target.id = source.id")
    merge.when_matched_update({column: text.replace("id", "target.id")}).execute()
    assert table.scan(columns=[column]).to_arrow().column(0).to_pylist() == [stored]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("struct(1)", "INCOMPATIBLE_TYPE"), ("named_struct('x', 'one', 't', NULL)", "INCOMPATIBLE_TYPE"),
        ("named_struct('x', 99999999999L, 't', NULL)", "INVALID_CAST"),
        ("named_struct('x', 1)", "INCOMPATIBLE_TYPE"),
        ("named_struct('x', 1, 'X', NULL)", "INCOMPATIBLE_TYPE"), ("array(1)", "INCOMPATIBLE_TYPE"),
    ],
)  # fmt: skip
def test_nested_values_that_do_not_fit(table: mica.Table, text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        table.update({"s": text})
    assert raised.value.code == code
    assert "cast(" not in str(raised.value.hint)  # which takes fields by their places
    assert table.refresh().version == 1


def test_an_insert_gives_values_to_whole_columns(table: mica.Table) -> None:
    with pytest.raises(UserError, match="whole columns") as raised:
        table.merge([{"id": 3}], "target.id = source.id").when_not_matched_insert({"id": "id", "s.x": "1"}).execute()
    assert raised.value.code == "INVALID_ARGUMENT"


def test_default_is_the_columns_own(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, n SMALLINT DEFAULT 3 + 4, s STRING")
    table.append([{"id": 1, "n": 1, "s": "x"}])
    table.update({"n": "default", "s": "DEFAULT"})
    assert table.to_arrow().to_pylist() == [{"id": 1, "n": 7, "s": None}]
    merge = table.merge([{"id": 1}, {"id": 2}], "target.id = source.id").when_matched_update({"n": "NULL", "s": "'y'"})
    merge.when_not_matched_insert({"id": "source.id", "n": "DEFAULT", "s": "DEFAULT"}).execute()
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "n": None, "s": "y"}, {"id": 2, "n": 7, "s": None},
    ]  # fmt: skip
    ddl = "id INT, r STRUCT<x: BIGINT, y: STRING> DEFAULT struct(1, 'q'), l ARRAY<STRING> DEFAULT array(1)"
    nested = mica.Table.create(tmp_path / "nested", ddl, data=[{"id": 1, "r": None, "l": None}])
    nested.update({"r": "DEFAULT", "l": "DEFAULT"})
    merge = nested.merge([{"id": 2}], "target.id = source.id")
    merge.when_not_matched_insert({"id": "source.id", "r": "DEFAULT", "l": "DEFAULT"}).execute()
    given = {"r": {"x": 1, "y": "q"}, "l": ["1"]}
    assert sorted(nested.to_arrow().to_pylist(), key=str) == [{"id": 1, **given}, {"id": 2, **given}]
    named = mica.Table.create(tmp_path / "named", "id INT DEFAULT 3, `default` INT")
    named.append([{"id": 1, "default": 2}])
    named.update({"id": "default"})
    assert named.to_arrow()["id"].to_pylist() == [2]


def test_a_whole_struct_is_set_and_what_is_generated_from_it(table: mica.Table) -> None:
    """Its fields may be less nullable than the column's; a generated column takes its field out of it."""
    table.update({"s": "named_struct('x', id, 't', named_struct('a', 'b'))"}, where="id = 2")
    wanted = [{"s": {"x": 2, "t": {"a": "b"}}, "g": 4}]
    assert table.scan("id = 2", columns=["s", "g"]).to_arrow().to_pylist() == wanted
    merge = table.merge([{"id": 2}], "target.id = source.id")
    merge.when_matched_update({"s": "if(true, named_struct('x', 5, 't', named_struct('a', 'c')), NULL)"}).execute()
    assert table.scan("id = 2", columns=["s", "g"]).to_arrow().to_pylist() == [{"s": {"x": 5, "t": {"a": "c"}}, "g": 7}]


def test_a_literal_text_is_read_as_the_columns_type(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, d DECIMAL(5,2), b BOOLEAN, x DOUBLE")
    table.append([{"id": 1}])
    table.update({"id": "' 7 '", "d": "'1.5'", "b": "'true'", "x": "'2'"}, "id = '1'")
    assert [str(v) for v in table.scan().to_arrow().to_pylist()[0].values()] == ["7", "1.50", "True", "2.0"]
    for value in ("'x'", "'3000000000'"):
        with pytest.raises(UserError) as caught:
            table.update({"id": value})
        assert caught.value.code == "INVALID_CAST"
    with pytest.raises(UserError, match="INCOMPATIBLE_TYPE"):
        table.update({"id": "concat('7', b)"})


@pytest.mark.parametrize(("text", "hint", "way"), [
    ("x", "parse_json(x)", "parse_json(x)"),
    ("x", "cast(x AS VARIANT) keeps the text", "cast(x AS VARIANT)"),
    ("s", "to_variant_object(s)", "to_variant_object(s)"),
    ("m", "parse_json", "parse_json('{\"k\": 1}')"),
])  # fmt: skip
def test_the_way_to_a_variant_is_one(tmp_path: Path, text: str, hint: str, way: str) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT, s STRUCT<a: INT>, m MAP<STRING, INT>, x STRING")
    table.append([{"v": 1, "s": {"a": 2}, "m": {"k": 1}, "x": "{}"}])
    with pytest.raises(UserError, match="INCOMPATIBLE_TYPE") as refused:
        table.update({"v": text})
    assert hint in str(refused.value)
    table.update({"v": way})
    assert table.scan(columns={"there": "v IS NOT NULL"}).to_arrow().to_pylist() == [{"there": True}]
