"""What properties name: read in one way, refused when it is set, and not set where another engine left nonsense."""

from __future__ import annotations

import pytest

from mica.errors import UserError
from mica.expressions.parse import parse
from mica.expressions.tree import Path
from mica.properties import BLOOM_PATHS, VARIANT_STATS_NAMES
from mica.schema.ddl import parse_ddl
from mica.stats.bloom_columns import bloom_columns
from mica.stats.named import check_paths, named_paths, parse_paths, without_columns
from mica.variant.path import VariantPath

SCHEMA = parse_ddl("id INT, v VARIANT, s STRUCT<w: VARIANT>")


def test_paths_are_read_with_their_columns() -> None:
    text = "V:a.b, s.w:['c, d'], `v`:$"
    found = [(("v",), "$['a']['b']"), (("s", "w"), "$['c, d']"), (("v",), "$")]
    assert parse_paths(text) == found
    assert named_paths(VARIANT_STATS_NAMES, {VARIANT_STATS_NAMES.name: text}) == found
    assert named_paths(VARIANT_STATS_NAMES, {}) is None


def test_a_name_in_backticks_and_a_key_in_quotes_hold_any_character() -> None:
    text = "`a.b`:x, s.`c:d``,`:y, v:['a]b,c'], v:it's, v:that's"
    assert parse_paths(text) == [
        (("a.b",), "$['x']"), (("s", "c:d`,"), "$['y']"), (("v",), "$['a]b,c']"), (("v",), r"$['it\'s']"),
        (("v",), r"$['that\'s']"),
    ]  # fmt: skip
    assert without_columns(text, ["s", "C:d`,"], "n") == "`a.b`:x, s.n:y, v:['a]b,c'], v:it's, v:that's"
    assert without_columns("`a:b`, c", ["a:b"], "z") == "z, c"


def test_keys_are_spelled_as_in_expressions() -> None:
    keys = [
        "b.c",
        "it's",
        'say "x"',
        "a, b",
        "]",
        "['x']",
        "a\\b",
        "tab\t",
        "plain",
        "`",
        "`, x:y",
        "both ' and \"",
        "ü",
    ]
    paths = [VariantPath(("o", key, "z")) for key in keys] + [VariantPath((key,)) for key in keys]
    text = ", ".join(f"s.w:{path}" for path in paths)
    assert parse_paths(text) == [(("s", "w"), path.normalized) for path in paths]
    assert without_columns(text, ["s"], "t") == text.replace("s.w:", "t.w:")
    for path in paths:
        found = parse(f"s.w:{path}")
        assert isinstance(found, Path)
        assert found.path == path


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("v:`a b`.c", ("a b", "c")), ("v:[ 'a' ]", ("a",)), ("v:['a''b']", ("a'b",)), (r"v:[r'a\b']", (r"a\b",)),
        (r"v:['it\'s, mine']['x']", ("it's, mine", "x")), ("v:a[0].b", ("a", 0, "b")),
        # Spark's form, as it was always read here.
        ("v:$", ()), ("v:it's", ("it's",)), ("v:a b.c-d", ("a b", "c-d")), ("v:$type.0", ("$type", "0")),
        (r"v:['a\']", ("a\\",)), ('v:["a\\"]', ("a\\",)),
    ],
)  # fmt: skip
def test_spellings_of_a_path(text: str, steps: tuple[str | int, ...]) -> None:
    assert parse_paths(f"v:x, {text}, v:y") == [
        (("v",), VariantPath(path).normalized) for path in (("x",), steps, ("y",))
    ]


@pytest.mark.parametrize("text", ["v.a", "v:a[", "v:a, w", ":a", "x['a,b']y:z"])
def test_what_is_no_path_is_refused_when_it_is_set_and_counts_as_not_set_where_it_stands(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_paths(text)
    assert caught.value.code == "INVALID_PROPERTY"
    assert named_paths(BLOOM_PATHS, {BLOOM_PATHS.name: text}) is None
    assert bloom_columns(SCHEMA, {BLOOM_PATHS.name: text}) == []


def test_a_path_of_no_variant_is_refused() -> None:
    check_paths(BLOOM_PATHS.name, "v:a, S.W:b", SCHEMA)
    with pytest.raises(UserError) as caught:
        check_paths(BLOOM_PATHS.name, "id:a", SCHEMA)
    assert (caught.value.code, caught.value.context["property"]) == ("UNKNOWN_COLUMN", BLOOM_PATHS.name)
    assert caught.value.hint == "There are: v, s.w."
