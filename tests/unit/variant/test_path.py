"""Spark's form was tried on Spark 4.2.1, the normalized one follows RFC 9535, section 2.7."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.errors import CorruptDataError, UserError
from mica.variant.path import VariantPath, key_in

STEPS = st.lists(st.one_of(st.text(), st.integers(0, 2**31 - 1)), max_size=5).map(tuple)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()), ("$.a.b[0]", ("a", "b", 0)), ("$. a", (" a",)), ("$.a b", ("a b",)), ("$['a b']", ("a b",)),
        ('$["it\'s"]', ("it's",)), ("$['b.c']", ("b.c",)), ("$['']", ("",)), ("$.q?", ("q?",)), ("$.$type", ("$type",)),
        ("$['0']", ("0",)), ("$.0", ("0",)), ("$[01]", (1,)), ("$.a ", ("a ",)), ("$.a\n.b", ("a\n", "b")),
    ],
)  # fmt: skip
def test_sparks_form(text: str, steps: tuple[str | int, ...]) -> None:
    path = VariantPath.parse(text)
    assert path.steps == steps
    assert VariantPath.parse(path.spark()) == path


@pytest.mark.parametrize(
    "text",
    ["", "a", "$ .a", " $.a", "$.", "$..a", "$[ 'a' ]", "$[ 1 ]", "$[-1]", "$['k'q']", "$['a'", "$a", "$ ",
    "$[99999999999]"],
)  # fmt: skip
def test_what_spark_refuses_we_refuse(text: str) -> None:
    with pytest.raises(UserError) as raised:
        VariantPath.parse(text)
    assert raised.value.code == "INVALID_PATH"


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ((), "$"), (("a", "b", 0), "$['a']['b'][0]"), (("",), "$['']"), (("it's \\",), r"$['it\'s \\']"),
        (("\b\f\n\r\t\x00\x0b\x1f\x7f",), "$['\\b\\f\\n\\r\\t\\u0000\\u000b\\u001f\x7f']"), (('"ö😀',), "$['\"ö😀']"),
    ],
)  # fmt: skip
def test_normalized(steps: tuple[str | int, ...], text: str) -> None:
    assert VariantPath(steps).normalized == text
    assert VariantPath.parse_normalized(text).steps == steps


@pytest.mark.parametrize(
    "text",
    ["", "a", "$.a", '$["a"]', "$['a'", r"$['\u000A']", r"$['\u000a']", r"$['\u0041']", r"$['\q']", "$['\n']",
     "$[01]", "$[-1]", "$['a']x", "$['it's']", r"$['\"']"],
)  # fmt: skip
def test_not_normalized(text: str) -> None:
    with pytest.raises(CorruptDataError):
        VariantPath.parse_normalized(text)


@given(STEPS)
def test_every_path_has_one_normalized_form(steps: tuple[str | int, ...]) -> None:
    path = VariantPath(steps)
    assert VariantPath.parse_normalized(path.normalized) == path


@given(STEPS | st.lists(st.text("a\\'\"\n[]n"), max_size=2).map(tuple))
def test_what_is_printed_reads_back(steps: tuple[str | int, ...]) -> None:
    path = VariantPath(steps)
    if steps:
        assert VariantPath.parse_sql(str(path)) == path


@pytest.mark.parametrize(
    ("literal", "key"),
    [
        (r"'\n'", r"\n"), (r"'a\\b'", r"a\\b"), (r"'\u0041'", r"\u0041"), ("'\n'", "\n"), (r'"\n"', "\n"),
        (r"'it\'s\n'", "it's\n"), ("'it''s'", "it's"),
    ],
)  # fmt: skip
def test_a_key_in_single_quotes_is_read_as_it_is(literal: str, key: str) -> None:
    assert key_in(literal) == key
    assert VariantPath.parse_sql(f"[{literal}]") == VariantPath((key,))


def test_printing() -> None:
    assert str(VariantPath(("a", "b", 0, "c d", "it's"))) == r"a.b[0]['c d']['it\'s']"
    assert str(VariantPath()) == "$"
    with pytest.raises(UserError):
        VariantPath(("both ' and \"",)).spark()
