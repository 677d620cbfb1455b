"""What of a conjunct of Catalyst's is pushed into a scan, and as which text."""

from __future__ import annotations

import pytest

from mica.engines.spark.nodes import Node
from mica.query.pushed import implied, translate, value_text

ID = Node("Column", value="id", type="BIGINT")
S = Node("Column", value="a b", type="STRING")
C = Node("Column", value="c", type="STRING COLLATE UNICODE_CI")
V = Node("Column", value="v", type="VARIANT")


def literal(value: str | None, type_: str) -> Node:
    return Node("Literal", value=value, type=type_)


def got(path: str, type_: str, strict: bool = True) -> Node:
    return Node("VariantGet", (V, literal(path, "STRING")), type=type_, strict=strict)


PUSHED = {
    "(id > 5L)": Node("GreaterThan", (ID, literal("5", "BIGINT"))),
    "(id = (- 5L))": Node("EqualTo", (ID, literal("-5", "BIGINT"))),
    "(id IN (1L, NULL))": Node("In", (ID, literal("1", "BIGINT"), literal(None, "BIGINT"))),
    "(id IN (1L, 2L))": Node("InSet", (ID,), ("1", "2"), "BIGINT"),
    "(`a b` = 'x\\'y\\\\')": Node("EqualTo", (S, literal("x'y\\", "STRING"))),
    "startswith(`a b`, 'x')": Node("StartsWith", (S, literal("x", "STRING"))),
    "(`a b` LIKE 'x%' ESCAPE '\\\\')": Node("Like", (S, literal("x%", "STRING")), "\\"),
    "(variant_get(v, '$.n', 'BIGINT') <=> 3L)": Node("EqualNullSafe", (got("$.n", "BIGINT"), literal("3", "BIGINT"))),
    "(try_variant_get(v, '$.n', 'STRING') IS NULL)": Node("IsNull", (got("$.n", "STRING", strict=False),)),
    "(variant_get(v, '$.n', 'INT') < 3)": Node(
        "LessThan", (Node("Cast", (got("$.n", "VARIANT"),), type="INT", strict=True), literal("3", "INT"))
    ),
    "(v.x IS NOT NULL)": Node("IsNotNull", (Node("GetStructField", (V,), "x", "INT"),)),
    "((id > 5L) OR (NOT (v IS NULL)))": Node(
        "Or", (Node("GreaterThan", (ID, literal("5", "BIGINT"))), Node("Not", (Node("IsNull", (V,)),)))
    ),
    "(id = CAST('2.50' AS DECIMAL(3,2)))": Node("EqualTo", (Node("Column", value="id", type="DECIMAL(3,2)"),
                                                            literal("2.50", "DECIMAL(3,2)"))),
}  # fmt: skip


@pytest.mark.parametrize("text", PUSHED)
def test_what_is_known_becomes_a_predicate(text: str) -> None:
    found = translate(PUSHED[text])
    assert found is not None
    assert found.text == text


LEFT = {
    "a function that is in no table": Node("EqualTo", (Node("Rand", (), type="DOUBLE"), literal("1", "DOUBLE"))),
    "a column of another table": Node("EqualTo", (ID, Node("AttributeReference", type="BIGINT"))),
    "sides of two types": Node("EqualTo", (ID, literal("5", "INT"))),
    "a cast without ANSI's rules": Node(
        "EqualTo", (Node("Cast", (got("$.n", "VARIANT"),), type="INT"), literal("3", "INT"))
    ),
    "a text that is a number": Node("EqualTo", (Node("Cast", (S,), type="INT", strict=True), literal("3", "INT"))),
    "a pattern of texts": Node("IsNull", (Node("UnixTimestamp", (S, literal("yyyy", "STRING")), type="BIGINT"),)),
    "a path that is computed": Node("IsNull", (Node("VariantGet", (V, S), type="INT", strict=True),)),
    "NaN": Node("EqualTo", (Node("Column", value="x", type="DOUBLE"), literal("NaN", "DOUBLE"))),
    "a set with NULL": Node("InSet", (ID,), None, "BIGINT"),
    "a part of a conjunct": Node("Or", (Node("IsNull", (ID,)), Node("Rand", (), type="BOOLEAN"))),
}


@pytest.mark.parametrize("why", LEFT)
def test_what_is_not_known_stays_with_spark(why: str) -> None:
    assert translate(LEFT[why]) is None


def test_casts_that_may_fail_and_collations_are_told() -> None:
    strict = translate(Node("IsNull", (got("$.n", "INT"),)))
    text = translate(Node("IsNull", (got("$.n", "STRING"),)))
    collated = translate(Node("EqualTo", (C, literal("x", "STRING COLLATE UNICODE_CI"))))
    assert strict is not None
    assert strict.strict
    assert text is not None
    assert not text.strict
    assert collated is not None
    assert collated.skips


@pytest.mark.parametrize(("strict", "cast"), [(True, "CAST"), (False, "TRY_CAST"), (None, "CAST")])
def test_texts_that_are_cast_to_times_only_skip(strict: bool | None, cast: str) -> None:
    read = Node("Cast", (S,), type="DATE", strict=strict)
    found = translate(Node("IsNull", (read,)))
    assert found is not None
    assert found.skips
    assert found.text == f"({cast}(`a b` AS DATE) IS NULL)"
    assert value_text(read) is None
    day = Node("Cast", (read,), type="TIMESTAMP", strict=strict)
    found = translate(Node("IsNull", (day,)))
    assert found is not None
    assert found.skips
    assert found.text == f"({cast}({cast}(`a b` AS DATE) AS TIMESTAMP) IS NULL)"


TS = Node("Column", value="ts", type="TIMESTAMP")
BIG = literal("3", "BIGINT")
MORE = Node("Add", (ID, BIG), type="BIGINT")
LARGE = Node("GreaterThan", (ID, BIG))
BOUNDED = {
    "((id + 3L) = 3L)": Node("EqualTo", (MORE, BIG)),
    "((- id) = 3L)": Node("EqualTo", (Node("UnaryMinus", (ID,), type="BIGINT"), BIG)),
    "(CAST(id AS INT) = 3)": Node("EqualTo", (Node("Cast", (ID,), type="INT"), literal("3", "INT"))),
    "(TRY_CAST(id AS TIMESTAMP) IS NULL)": Node("IsNull", (Node("Cast", (ID,), type="TIMESTAMP", strict=False),)),
    "startswith(CAST(ts AS STRING), '2024')": Node(
        "StartsWith", (Node("Cast", (TS,), type="STRING", strict=True), literal("2024", "STRING"))
    ),
    "((ts + INTERVAL '-3600.000001' SECOND) IS NULL)": Node(
        "IsNull", (Node("TimestampAddInterval", (TS, literal("-3600000001", "INTERVAL HOUR")), type="TIMESTAMP"),)
    ),
    "((d + INTERVAL '-14' MONTH) IS NULL)": Node("IsNull", (
        Node("DateAddYMInterval", (Node("Column", value="d", type="DATE"), literal("-14", "INTERVAL YEAR TO MONTH"))),
    )),
    "(unix_timestamp(ts) = 3L)": Node(
        "EqualTo", (Node("UnixTimestamp", (TS, literal("yyyy", "STRING")), type="BIGINT"), BIG)
    ),
    "CASE WHEN (id > 3L) THEN b ELSE FALSE END": Node("CaseWhen", (
        LARGE, Node("Column", value="b", type="BOOLEAN"), literal("false", "BOOLEAN"))),
    "CASE WHEN (id > 3L) THEN (id IS NULL) END": Node("CaseWhen", (LARGE, Node("IsNull", (ID,)))),
    "if((id > 3L), TRUE, NULL)": Node("If", (LARGE, literal("true", "BOOLEAN"), literal(None, "BOOLEAN"))),
}  # fmt: skip


@pytest.mark.parametrize("text", BOUNDED)
def test_what_has_bounds_only_skips(text: str) -> None:
    found = translate(BOUNDED[text])
    assert found is not None
    assert found.skips
    assert found.text == text


def test_operators_are_values_of_sparks_own() -> None:
    assert value_text(MORE) is None


def test_a_predicate_is_a_boolean() -> None:
    found = translate(Node("Coalesce", (LARGE, literal("false", "BOOLEAN")), type="BOOLEAN"))
    assert found is not None
    assert not found.skips
    assert found.text == "coalesce((id > 3L), FALSE)"


def test_a_variant_that_is_compared_is_not_null() -> None:
    there = Node("IsNotNull", (V,))
    compared = Node("EqualTo", (got("$.n", "BIGINT"), literal("3", "BIGINT")))
    safely = Node("EqualNullSafe", (got("$.n", "BIGINT"), literal("3", "BIGINT")))
    assert implied(there, [compared])
    assert implied(there, [Node("IsNotNull", (got("$.n", "INT"),))])
    assert not implied(there, [safely, Node("Not", (compared,)), Node("IsNull", (got("$.n", "INT"),))])
    assert not implied(Node("IsNotNull", (ID,)), [compared])
