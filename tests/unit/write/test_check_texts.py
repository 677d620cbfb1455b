"""CHECK constraints in deltalake's words mean what deltalake means."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

import mica
from mica.schema.ddl import parse_ddl
from mica.write.check_texts import as_meant
from mica.write.rules import uses

SCHEMA = parse_ddl("Status STRING, `sp ace` INT, s STRUCT<a: STRUCT<b: INT>>, t TIMESTAMP, n TIMESTAMP_NTZ")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('"Status" <> \'x\' AND\n "sp ace" > 0 ', "`Status` <> 'x' AND\n `sp ace` > 0 "),
        ('Status <> "x" OR s = \'"Status"\' -- "Status"', 'Status <> "x" OR s = \'"Status"\' -- "Status"'),
        ('Status <> "status"', 'Status <> "status"'),
        ("get_field(get_field(s, 'a'), 'b') > 0", "s.`a`.`b` > 0"),
        (
            "t > arrow_cast('2020-01-01T00:00:00.000000', 'Timestamp(Microsecond, Some(\"UTC\"))')",
            "t > TIMESTAMP'2020-01-01T00:00:00.000000Z'",
        ),
        (
            "n > arrow_cast('2020-01-01T00:00:00.5', 'Timestamp(Microsecond, None)')",
            "n > TIMESTAMP_NTZ'2020-01-01T00:00:00.5'",
        ),
    ],
)
def test_texts_in_sparks_words(text: str, meant: str) -> None:
    assert as_meant(text, SCHEMA) == meant


@pytest.mark.parametrize("text", ['kind = "view"', 'Status IN ("Status", "x")', 'kind = "view" OR kind = "Status"'])
def test_strings_of_spark_stay_strings(text: str) -> None:
    """Names that deltalake does not quote, and texts beside others that are no columns."""
    assert as_meant(text, parse_ddl("Status STRING, kind STRING, view STRING")) == text


def test_what_is_added_is_spark_s(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "Status STRING, kind STRING", data=[{"Status": "a", "kind": "Status"}])
    table.add_constraint("c", 'kind = "Status"')
    assert table.properties["delta.constraints.c"] == "kind = 'Status'"
    with pytest.raises(mica.UserError, match="CONSTRAINT_VIOLATED"):
        table.append([{"Status": "a", "kind": "a"}])


def test_a_quoted_column_is_in_use() -> None:
    checks = {"delta.constraints.c": "\"Status\" <> 'x'"}
    assert uses(SCHEMA, checks, ["status"]) == ["the CHECK constraint 'c'"]
    assert uses(SCHEMA, checks, ["n"]) == []


def test_constraints_of_deltalake_are_obeyed(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    mica.Table.create(tmp_path, "Status STRING, s STRUCT<a: INT>, t TIMESTAMP")
    for name, text in [("c", "\"Status\" <> 'x'"), ("f", "s.a > 0"), ("t", "t > '2020-01-01T00:00:00Z'")]:
        deltalake.DeltaTable(str(tmp_path)).alter.add_constraint({name: text})
    table = mica.Table.open(tmp_path)
    good = {"Status": "a", "s": {"a": 1}, "t": dt.datetime(2020, 1, 2, tzinfo=dt.UTC)}
    table.append([good])
    for bad in ({"Status": "x"}, {"s": {"a": 0}}, {"t": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}):
        with pytest.raises(mica.UserError, match="CONSTRAINT_VIOLATED"):
            table.append([good | bad])
