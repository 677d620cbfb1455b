"""Sums and their types: Spark's table of decimals, overflow, division by zero, and who is asked for it."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.expressions.tree import Literal
from mica.schema.ddl import parse_ddl, type_to_ddl

SCHEMA = parse_ddl("y tinyint, i int, l bigint, f float, x double, n decimal(10,2), w decimal(38,10), s string, k int")
ROWS = pa.record_batch(
    {
        "y": pa.array([127, -128, None, 7], pa.int8()),
        "i": pa.array([2**31 - 1, -7, None, 7], pa.int32()),
        "l": pa.array([2**63 - 1, -(2**63), None, 7], pa.int64()),
        "f": pa.array([1.5, -0.0, None, 7.0], pa.float32()),
        "x": pa.array([1.5, -7.25, None, 0.0]),
        "n": pa.array([Decimal("99999999.99"), Decimal("-7.25"), None, Decimal("0.00")], pa.decimal128(10, 2)),
        "w": pa.array([Decimal("9" * 28), Decimal("-7.25"), None, Decimal("1E-10")], pa.decimal128(38, 10)),
        "s": ["1", "-7", None, "x"],
        "k": pa.array([1, -1, 0, 0], pa.int32()),
    }
)


def values(text: str, *, ansi: bool = False) -> list[Any]:
    bound = bind_value(text, SCHEMA, ansi=ansi)
    found = evaluate(bound, [ROWS.column(leaf.column[0]) for leaf in bound.leaves], num_rows=4)
    return found.to_pylist()


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("y + y", "tinyint"), ("y + i", "int"), ("i * l", "bigint"), ("i / i", "double"), ("f / f", "double"),
        ("f % f", "float"), ("f + i", "double"), ("n + i", "decimal(13,2)"), ("n + 1", "decimal(11,2)"),
        ("n * n", "decimal(21,4)"), ("n / 3", "decimal(14,6)"), ("n % 3", "decimal(3,2)"), ("n - w", "decimal(38,9)"),
        ("w * w", "decimal(38,6)"), ("w / n", "decimal(38,8)"), ("n + x", "double"), ("s + 1", "bigint"),
        ("s * 1.5", "double"), ("n + (1 + 1)", "decimal(13,2)"), ("null + null", "double"), ("-s", "double"),
        ("-y", "tinyint"), ("- - n", "decimal(10,2)"), ("+s", "double"), ("n + null", "decimal(11,2)"),
    ],
)  # fmt: skip
def test_types(text: str, type_: str) -> None:
    assert type_to_ddl(bind_value(text, SCHEMA).type).lower() == type_


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y + 1Y", [-128, -127, None, 8]), ("i * 2", [-2, -14, None, 14]), ("l - 1", [2**63 - 2, 2**63 - 1, None, 6]),
        ("l * -1", [-(2**63) + 1, -(2**63), None, -7]), ("l % -1", [0, 0, None, 0]), ("i % 3", [1, -1, None, 1]),
        ("i / k", [2147483647.0, 7.0, None, None]), ("7 % k", [0, 0, None, None]), ("x % 2", [1.5, -1.25, None, 0.0]),
        ("1 / f", [1 / 1.5, None, None, 1 / 7.0]), ("-l", [-(2**63) + 1, -(2**63), None, -7]),
        ("n + n", [Decimal("199999999.98"), Decimal("-14.50"), None, Decimal("0.00")]),
        ("w + w", [Decimal(19999999999999999999999999998), Decimal("-14.5"), None, Decimal("0E-9")]),
        ("n / 3", [Decimal("33333333.330000"), Decimal("-2.416667"), None, Decimal(0)]),
        ("n % 2", [Decimal("1.99"), Decimal("-1.25"), None, Decimal("0.00")]),
        ("s + 1", [2.0, -6.0, None, None]),
        ("pmod(y, l)", [127, 2**63 - 128, None, 0]), ("pmod(y, i)", [127, -2, None, 0]),
    ],
)  # fmt: skip
def test_without_ansi_low_bits_stay_and_what_has_no_value_is_null(text: str, expected: list[Any]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("y + 1Y", "ARITHMETIC_OVERFLOW"), ("i * 2", "ARITHMETIC_OVERFLOW"), ("l * -1", "ARITHMETIC_OVERFLOW"),
        ("-l", "ARITHMETIC_OVERFLOW"), ("1 / x", "DIVIDE_BY_ZERO"), ("i % k", "DIVIDE_BY_ZERO"),
        ("n / 0", "DIVIDE_BY_ZERO"), ("1 / 0", "DIVIDE_BY_ZERO"), ("w * 10000000000", "ARITHMETIC_OVERFLOW"),
        ("s + 1", "INVALID_CAST"),
    ],
)  # fmt: skip
def test_with_ansi_it_is_an_error(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        values(text, ansi=True)
    assert raised.value.code == code


def test_rows_that_are_not_asked_do_not_fail() -> None:
    assert values("k <> 0 AND i / k > 0", ansi=True) == [True, True, False, False]
    assert values("k = 0 OR i % k = 0", ansi=True) == [True, True, True, True]
    assert values("null / 0", ansi=True) == [None] * 4
    assert values("try_cast(s as int) / k", ansi=True) == [1.0, 7.0, None, None]


def test_constants_are_judged_once_and_what_fails_waits_for_a_row() -> None:
    assert bind_value("1.0 / 3 + 2", SCHEMA).expr == Literal(Decimal("2.333333"), bind_value("1.0/3+2", SCHEMA).type)
    assert values("k = 7 AND 1 / 0 = 1", ansi=True) == [False] * 4


@pytest.mark.parametrize("text", ["s + s", "s + null", "y + true", "-true", "'a' * x'00'"])
def test_refuses_what_spark_refuses(text: str) -> None:
    with pytest.raises(UserError, match="there is no"):
        bind_value(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cast('1e-38' as decimal(38,38)) / 2", Decimal("1E-38")),
        ("cast('1e-38' as decimal(38,38)) / 16", Decimal("0E-38")),
        ("cast('99999999999999999999999999999999999999' as decimal(38,0)) + 1", None),
        ("pmod(-5, cast('9999999999999999999999999999.5' as decimal(38,10)))", None),  # beyond decimal(20,10)
        ("1.0000000000000000000000000000000000000 / 3", Decimal("0." + "3" * 37)),
    ],
)
def test_thirty_eight_digits(text: str, expected: Decimal | None) -> None:
    found = bind_value(text, SCHEMA, ansi=False).expr
    assert isinstance(found, Literal)
    assert found.value == expected
