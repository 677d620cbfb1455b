"""Which tables a text names, and what becomes of their names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.query import names


@pytest.fixture
def path(tmp_path: Path) -> str:
    mica.Table.create(tmp_path / "events", "id BIGINT").append([{"id": 1}])
    return str(tmp_path / "events")


@pytest.fixture(autouse=True)
def _none_registered() -> None:
    names._REGISTERED.clear()


def _millis(text: str) -> int:
    return int(text.strip("()'"))


def test_a_path_becomes_a_view_wherever_it_stands(path: str) -> None:
    found = names.by_path(f"SELECT * FROM delta.`{path}` JOIN DELTA . `{path}` x -- delta.`/none`", _millis)
    assert found.text == "SELECT * FROM `events` JOIN `events` x -- delta.`/none`"
    assert list(found.views) == ["events"]


def test_a_registered_name_becomes_another(path: str) -> None:
    names.register("one", path)
    names.register("two", path)
    names.rename("ONE", "three")
    assert (names.is_registered("one"), names.registered("Three") is not None) == (False, True)
    for new, code in (("two", "TABLE_EXISTS"), ("a b", "INVALID_ARGUMENT")):
        with pytest.raises(mica.UserError) as raised:
            names.rename("three", new)
        assert raised.value.code == code
    names.rename("three", "THREE")
    assert names.is_registered("three")


def test_a_view_takes_no_name_of_the_text(path: str) -> None:
    found = names.by_path(f"WITH events AS (SELECT * FROM delta.`{path}`) SELECT * FROM events", _millis)
    assert found.text == "WITH events AS (SELECT * FROM `events_2`) SELECT * FROM events"


@pytest.mark.parametrize("quoted", ["'delta.`/none`'", '"delta.`/none`"', "r'delta.`/none`'", "/* delta.`/none` */"])
def test_strings_and_comments_stay(quoted: str) -> None:
    assert names.by_path(f"SELECT {quoted}", _millis).text == f"SELECT {quoted}"


def test_a_path_without_a_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(mica.MicaError, match="not a Delta table"):
        names.by_path(f"SELECT * FROM delta.`{tmp_path}`", _millis)


def test_a_name_of_several_parts_becomes_a_view() -> None:
    parts = ["shop", "events"]
    found = names.renamed("SELECT shop.events.id, 'shop.events' FROM `shop` . events", parts, set())
    assert found == ("SELECT `events`.id, 'shop.events' FROM `events`", "events")
    # Something else has the name: a CTE, another table, a view; before a column it may mean either.
    cte = "WITH events AS (SELECT id FROM shop.events) SELECT id FROM events, shop.events"
    wanted = "WITH events AS (SELECT id FROM `events_2`) SELECT id FROM events, `events_2`"
    assert names.renamed(cte, parts, set()) == (wanted, "events_2")
    assert names.renamed("FROM shop.events", parts, set(), lambda name: name == "events") == (
        "FROM `events_2`",
        "events_2",
    )
    assert names.renamed("SELECT events.id FROM shop.events, events", parts, set()) is None
    assert names.renamed("SELECT events.id FROM shop.events", parts, {"events"}) is None
    assert names.renamed("SELECT events.id FROM shop.events", parts, set()) == (
        "SELECT events.id FROM `events`",
        "events",
    )


def test_a_path_is_read_at_its_newest_version_and_a_table_at_its_own(path: str) -> None:
    table = mica.Table.open(path)
    mica.register("by_path", path)
    mica.register("by_table", table)
    first = names.registered("BY_PATH")
    mica.Table.open(path).append([{"id": 2}])
    newest = names.registered("by_path")
    own = names.registered("by_table")
    assert first is not None
    assert newest is not None
    assert own is not None
    assert [first.count(), newest.count(), own.count()] == [1, 2, 1]


@pytest.mark.parametrize("name", ["", "a b", "shop.events"])
def test_a_name_is_one_identifier(path: str, name: str) -> None:
    with pytest.raises(mica.UserError, match="name must be an identifier"):
        mica.register(name, path)


def test_what_is_registered_must_be_a_table(tmp_path: Path) -> None:
    with pytest.raises(mica.MicaError, match="not a Delta table"):
        mica.register("none", tmp_path)


def test_stars_leave_a_column_out() -> None:
    text = "SELECT *, a.*, x * 2, count(*), '* ' FROM t -- *"
    assert names.without_star(text, "m") == ("SELECT * EXCEPT (m), a.* EXCEPT (m), x * 2, count(*), '* ' FROM t -- *")
    assert names.without_star("SELECT DISTINCT * EXCEPT (v) FROM t", "m") == "SELECT DISTINCT * EXCEPT (m, v) FROM t"


@pytest.mark.parametrize("as_of", ["VERSION AS OF 1", "for system_version as of '1'", "TIMESTAMP AS OF ('{at}')"])
def test_a_version_of_a_path_or_a_registered_name_is_a_view_of_its_own(path: str, as_of: str) -> None:
    mica.Table.open(path).append([{"id": 2}])
    mica.register("named", path)
    made = mica.Table.open(path).history()["timestamp"].cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist()[1]
    as_of = as_of.format(at=made)
    found = names.by_path(f"SELECT named.id, 'named {as_of}' FROM named {as_of}, delta.`{path}` {as_of} x", _millis)
    assert found.text == f"SELECT named.id, 'named {as_of}' FROM `named`, `named` x"
    assert {name: table.version for name, table in found.views.items()} == {"named": 1}
    assert found.pinned == {"named"}
    both = names.by_path(f"FROM named {as_of} a JOIN named JOIN delta.`{path}@v0` c JOIN delta.`{path}`", _millis)
    assert both.text == "FROM `named_2` a JOIN named JOIN `events_v0` c JOIN `events`"
    assert {name: table.version for name, table in both.views.items()} == {"named_2": 1, "events_v0": 0, "events": 2}
    assert both.pinned == {"named_2", "events_v0"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM IDENTIFIER('events')", "SELECT * FROM `events`"),
        ('TABLE identifier ( "shop . `my ``events`" )', "TABLE `shop`.`my ``events`"),
        ("UPDATE IDENTIFIER('Delta.`/a b`') SET a = 1", "UPDATE Delta.`/a b` SET a = 1"),
        ("SELECT identifier(:c) FROM IDENTIFIER(:t)", "SELECT `select` FROM delta.`/a`"),
        # What is no name is Spark's to refuse, and what is no clause stays.
        ("SELECT * FROM IDENTIFIER('a; DROP TABLE b')", None),
        ("SELECT * FROM IDENTIFIER('')", None),
        ("SELECT IDENTIFIER('1'), IDENTIFIER('1e5'), IDENTIFIER('a.7d'), IDENTIFIER('é')", None),
        ("SELECT * FROM IDENTIFIER('2024_events')", "SELECT * FROM `2024_events`"),
        ("SELECT * FROM IDENTIFIER(:n), IDENTIFIER(:none)", None),
        ("SELECT * FROM IDENTIFIER('a' || 'b')", None),
        ("SELECT 'IDENTIFIER(''a'')', x.identifier('a') -- IDENTIFIER('a')", None),
    ],
)
def test_names_stand_for_their_clauses(text: str, expected: str | None) -> None:
    args = {"t": "delta.`/a`", "c": "select", "n": 1}
    assert names.identified(text, args) == (text if expected is None else expected)
