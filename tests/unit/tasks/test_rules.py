"""Rules on batches: what is filled, in which order, and what a refused row tells."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mica.errors import UnsupportedTableError, UserError
from mica.schema.ddl import parse_ddl
from mica.tasks.lane import Lane
from mica.tasks.rules import Identity, Rules
from mica.write.rules import rules_of


def rules(ddl: str, **constraints: str) -> Rules:
    found = {f"delta.constraints.{name}": text for name, text in constraints.items()}
    return rules_of(parse_ddl(ddl), found, "t", ansi=True, timezone="UTC")


def test_a_table_without_rules_has_none() -> None:
    assert not rules("a INT, b STRING NOT NULL")


def test_defaults_come_before_what_is_generated_from_them() -> None:
    found = rules("g INT GENERATED ALWAYS AS (n * 2), n INT DEFAULT 4, id BIGINT GENERATED ALWAYS AS IDENTITY")
    batch = pa.record_batch({name: pa.nulls(2, type_) for name, type_ in
                             (("g", pa.int32()), ("n", pa.int32()), ("id", pa.int64()))})  # fmt: skip
    made = found.apply(batch, found.absent([]), Lane(0))
    assert made.to_pylist() == [{"g": 8, "n": 4, "id": 1}, {"g": 8, "n": 4, "id": 2}]


def test_a_default_that_mica_cannot_evaluate_is_asked_for_by_rows_without_it() -> None:
    schema = parse_ddl("n INT DEFAULT 4, s STRING DEFAULT current_user()")
    found = rules_of(schema, {}, "t", ansi=True, timezone="UTC", every_default=False)
    assert found.absent(["S"]) == {"n"}
    with pytest.raises(UnsupportedTableError, match=r"the default of 's' \(current_user") as caught:
        found.absent(["n"])
    assert caught.value.code == "UNSUPPORTED_WRITER_FEATURE"
    with pytest.raises(UnsupportedTableError, match="the default of 's'"):
        rules_of(schema, {}, "t", ansi=True, timezone="UTC")


@pytest.mark.parametrize("value", [-1, None])
def test_a_row_for_which_a_check_is_not_true_is_refused_with_its_values(value: int | None) -> None:
    found = rules("n INT, s STRUCT<x: STRING>", c="n > 0 OR s.x = 'ok'")
    batch = pa.record_batch({"n": pa.array([1, value, value], pa.int32()),
                             "s": pa.array([{"x": None}, {"x": None}, {"x": "ok"}])})  # fmt: skip
    with pytest.raises(UserError, match="'c'") as caught:
        found.apply(batch, (), Lane(0))
    assert caught.value.code == "CONSTRAINT_VIOLATED"
    assert f"n = {'NULL' if value is None else value}, s.x = NULL" in caught.value.message


def test_values_beyond_the_years_of_python_are_told() -> None:
    found = rules("d DATE, l ARRAY<DATE>", c="d < DATE'2020-01-01' AND size(l) > 0")
    days = pa.array([2_932_897], pa.int32()).cast(pa.date32())
    batch = pa.record_batch({"d": days, "l": pa.ListArray.from_arrays([0, 1], days)})
    with pytest.raises(UserError, match=r"d = DATE'10000-01-01', l = \[\[10000-01-01]]") as caught:
        found.check(batch)
    assert caught.value.code == "CONSTRAINT_VIOLATED"


def test_a_cast_that_fails_names_the_constraint_and_the_value() -> None:
    with pytest.raises(UserError, match=r"CHECK constraint 'c'.*'x'") as caught:
        rules("s STRING", c="s::int > 0").check(pa.record_batch({"s": ["1", "x"]}))
    assert caught.value.code == "INVALID_CAST"


@pytest.mark.parametrize("left", [2, 0])
def test_no_numbers_are_left(left: int) -> None:
    found = Rules(identities={"id": Identity(2**63 - left, 1)})
    batch = pa.record_batch({"id": pa.nulls(3, pa.int64())})
    with pytest.raises(UserError) as caught:
        found.fill(batch, {"id"}, Lane(0))
    assert caught.value.code == "ARITHMETIC_OVERFLOW"
