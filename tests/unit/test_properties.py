"""Properties: each text is read in one way, as its row of the table says, and the table says what mica obeys."""

from __future__ import annotations

import ast

import pytest

from mica import properties
from mica.properties import Property
from tests.support import ROOT

PACKAGE = ROOT / "src" / "mica"


@pytest.mark.parametrize(
    ("known", "text", "value"),
    [
        (properties.APPEND_ONLY, "TRUE", True),
        (properties.APPEND_ONLY, "no", False),
        (properties.CHECKPOINT_INTERVAL, "3", 3),
        (properties.CHECKPOINT_INTERVAL, "0", 10),
        (properties.CHECKPOINT_INTERVAL, "many", 10),
        (properties.SKIPPING_COLUMNS, "-1", -1),
        (properties.SKIPPING_NAMES, "a, b.c, `x,y`.z", (("a",), ("b", "c"), ("x,y", "z"))),
        (properties.DELETED_FILE_RETENTION, "interval 1 day", 86_400_000),
        (properties.DELETED_FILE_RETENTION, "2 weeks 3 hours", 14 * 86_400_000 + 3 * 3_600_000),
        (properties.DELETED_FILE_RETENTION, "soon", 7 * 86_400_000),
        (properties.DELETED_FILE_RETENTION, "1999 microseconds 1 microsecond", 2),
        (properties.DELETED_FILE_RETENTION, f"{2**62 - 1} milliseconds", 2**62 - 1),
        (properties.DELETED_FILE_RETENTION, f"{2**62} milliseconds", 7 * 86_400_000),
        (properties.DELETED_FILE_RETENTION, f"{10**400} microseconds", 7 * 86_400_000),
        (properties.TARGET_FILE_SIZE, "128MB", 128 << 20),
        (properties.TARGET_FILE_SIZE, "1g", 1 << 30),
        (properties.TARGET_FILE_SIZE, "1000", 1000),
        (properties.CHECKPOINT_POLICY, "V2", "v2"),
        (properties.CODEC, "UNCOMPRESSED", "none"),
        (properties.CODEC, "lz4", "lz4_raw"),
    ],
)
def test_a_text_is_read(known: Property[object], text: str, value: object) -> None:
    assert known.of({known.name: text}) == value
    assert known.of({}) == (None if known.default is None else known.values.parse(known.default))


@pytest.mark.parametrize(
    ("text", "on"), [("true", True), ("false", False), ("TRUE", False), ("yes", False), ("", False)]
)
def test_only_the_very_word_true_allows_shredding(text: str, on: bool) -> None:
    assert properties.ENABLE_SHREDDING.of({"delta.enableVariantShredding": text}) is on


def read_in_source() -> set[str]:
    """The constants of the table that other modules name."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        if path != PACKAGE / "properties.py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                found |= {node.id} if isinstance(node, ast.Name) else set()
                found |= {node.attr} if isinstance(node, ast.Attribute) else set()
    return found


def test_what_mica_obeys_is_read_somewhere_and_what_it_does_not_is_not() -> None:
    read = read_in_source()
    constants = {row.name: name for name, row in vars(properties).items() if isinstance(row, Property)}
    for row in properties.PROPERTIES.values():
        if row in (*properties.OF_OTHERS, *properties.REFUSED):
            assert row.name not in constants, row.name
        elif row.feature is None:  # a property that only brings its feature is obeyed by that
            assert constants[row.name] in read, row.name


def test_names_of_properties_are_spelled_in_the_table_alone() -> None:
    elsewhere = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            prefixes = (properties.FEATURE, properties.CONSTRAINTS)
            if isinstance(text, str) and (text in properties.PROPERTIES or text.startswith(prefixes)):
                elsewhere.append((path.relative_to(PACKAGE).as_posix(), text))
    assert {place for place, _ in elsewhere} == {"properties.py"}


@pytest.mark.parametrize("name", properties.PROPERTIES)
def test_a_row_is_whole(name: str) -> None:
    row = properties.PROPERTIES[name]
    assert row.meaning.endswith(".")
    assert row.default is None or row.of({name: row.default}) == row.of({})
    both = (properties.COLUMN_MAPPING_MODE, properties.CHECKPOINT_PROTECTION)  # obeyed in tables of others
    assert not row.refused or row in (*properties.REFUSED, *both)
    assert row.feature is None or row.refused is not None or row.feature in properties.FEATURES


def test_a_mode_that_cannot_be_read_is_no_mode_that_is_known() -> None:
    mode = properties.COLUMN_MAPPING_MODE
    assert [mode.of({mode.name: text}) for text in ("Name", "id", "none", "sideways")] == [
        "name", "id", "none", "unknown",
    ]  # fmt: skip


def test_names_with_commas_and_dots() -> None:
    assert properties.parse_names("a, s.x, `b,c`.`d.e``f`") == (("a",), ("s", "x"), ("b,c", "d.e`f"))
