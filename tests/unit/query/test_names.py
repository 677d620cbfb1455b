"""Which tables a text names, and what becomes of their names."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.query import names, registry
from mica.query.parameters import bound
from tests.faulty_s3 import FaultyS3


@pytest.fixture
def path(tmp_path: Path) -> str:
    mica.Table.create(tmp_path / "events", "id BIGINT").append([{"id": 1}])
    return str(tmp_path / "events")


@pytest.fixture(autouse=True)
def _none_registered() -> None:
    registry._NAMES.clear()


def _millis(text: str) -> int:
    return int(text.strip("()'\""))


def test_a_path_becomes_a_view_wherever_it_stands(path: str) -> None:
    found = names.by_path(f"SELECT * FROM delta.`{path}` JOIN DELTA . `{path}` x -- delta.`/none`", _millis)
    assert found.text == "SELECT * FROM `events` JOIN `events` x -- delta.`/none`"
    assert list(found.views) == ["events"]


def test_a_registered_name_becomes_another(path: str) -> None:
    registry.register("one", path)
    registry.register("two", path)
    registry.rename("ONE", "three")
    assert (registry.is_registered("one"), registry.registered("Three") is not None) == (False, True)
    for new, code in (("two", "TABLE_EXISTS"), ("a b", "INVALID_ARGUMENT")):
        with pytest.raises(mica.UserError) as raised:
            registry.rename("three", new)
        assert raised.value.code == code
    registry.rename("three", "THREE")
    assert registry.is_registered("three")


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
    catalog = "SELECT spark_catalog.shop.events.id FROM shop.events"
    assert names.renamed(catalog, parts, set()) == ("SELECT `events`.id FROM `events`", "events")


def test_a_long_name_before_a_column_is_shortened_unless_a_table_is_read_by_it() -> None:
    text = "SELECT shop.events.id, `spark_catalog`.Shop.Events.id, 'shop.events.id' FROM events"
    wanted = "SELECT `events`.id, `events`.id, 'shop.events.id' FROM events"
    assert names.shortened(text, ("shop", "events")) == wanted
    assert names.shortened(f"{text}, shop.events", ("shop", "events")) == f"{text}, shop.events"


def test_a_path_is_read_at_its_newest_version_and_a_table_at_its_own(path: str) -> None:
    table = mica.Table.open(path)
    mica.register("by_path", path)
    mica.register("by_table", table)
    first = registry.registered("BY_PATH")
    mica.Table.open(path).append([{"id": 2}])
    newest = registry.registered("by_path")
    own = registry.registered("by_table")
    assert first is not None
    assert newest is not None
    assert own is not None
    assert [first.count(), newest.count(), own.count()] == [1, 2, 1]


@pytest.mark.parametrize("name", ["", "a b", "shop.", "shop.a b", "`shop`.events"])
def test_a_name_is_identifiers(path: str, name: str) -> None:
    with pytest.raises(mica.UserError, match="name must be an identifier"):
        mica.register(name, path)


def test_what_is_registered_must_be_a_table(tmp_path: Path) -> None:
    with pytest.raises(mica.MicaError, match="not a Delta table"):
        mica.register("none", tmp_path)


def test_stars_leave_a_column_out() -> None:
    text = "SELECT *, a.*, x * 2, count(*), '* ' FROM t -- *"
    assert names.without_star(text, "m") == ("SELECT * EXCEPT (m), a.* EXCEPT (m), x * 2, count(*), '* ' FROM t -- *")
    assert names.without_star("SELECT DISTINCT * EXCEPT (v) FROM t", "m") == "SELECT DISTINCT * EXCEPT (m, v) FROM t"


@pytest.mark.parametrize(
    "as_of",
    [
        "VERSION AS OF 1",
        "for system_version as of '1'",
        'VERSION AS OF "1"',
        "WITH (versionAsOf = 1)",
        "WITH ('versionAsOf' '1')",
        "with('VERSIONASOF' = \"1\" )",
        "WITH (timestampAsOf = '{at}')",
        "/* at */ VERSION -- the\n AS/**/OF 1",
        "TIMESTAMP AS OF ('{at}')",
        'TIMESTAMP AS OF ("{at}")',
    ],
)
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


@pytest.mark.parametrize("as_of", ["TIMESTAMP AS OF '2026' || '-01-01'", "TIMESTAMP AS OF current_timestamp", ""])
def test_a_time_of_another_kind_is_sparks(path: str, as_of: str) -> None:
    mica.register("named", path)
    for text in (f"FROM delta.`{path}` {as_of or 'TIMESTAMP AS OF :time'}", f"FROM named {as_of} -- VERSION AS OF 0"):
        assert names.by_path(text, _millis).text == text


def test_a_version_of_a_table_of_the_catalog_is_a_view(path: str, tmp_path: Path) -> None:
    mica.register("events", mica.Table.create(tmp_path / "other", "id BIGINT"))
    places = {"`shop`.`events`": path, "`sales`": path}

    def found(text: str) -> names.Named:
        return names.by_path(text, _millis, lambda name: name == "taken", places.get)

    dotted = found("SELECT events.id FROM shop /* s */ . events VERSION AS OF 0 JOIN sales VERSION AS OF 1")
    assert dotted.text == "SELECT events.id FROM `events` JOIN `sales`"
    assert {view: table.path for view, table in dotted.views.items()} == {"events": path, "sales": path}
    assert dotted.pinned == {"events", "sales"}
    beside = found("FROM shop.events VERSION AS OF 0 a JOIN events b")
    assert beside.text == "FROM `events_2` a JOIN events b"
    # Neither a registered name nor that of a view has points before it, and no view has them before its columns.
    for text in ("FROM no.events VERSION AS OF 0", "SELECT shop.events.id FROM shop.events VERSION AS OF 0"):
        assert found(text).text == text


def test_a_version_is_read_in_the_storage_of_the_registered_table(path: str) -> None:
    storage = mica.register("named", mica.Table.open(path, storage_options={"aws_region": "x"})).snapshot.storage
    (table,) = names.by_path("FROM named VERSION AS OF 0", _millis).views.values()
    assert table.snapshot.storage is storage


def test_a_relative_path_is_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "two"):
        mica.Table.create(tmp_path / folder / "t", "id BIGINT")
        monkeypatch.chdir(tmp_path / folder)
        (table,) = names.by_path("FROM delta.`t`", _millis).views.values()
        assert table.path == str(tmp_path / folder / "t")
        registry.register(folder, "t")
    first = registry.registered("one")
    assert first is not None
    assert first.path == str(tmp_path / "one" / "t")


def test_an_alias_or_a_column_called_delta_is_no_path(path: str) -> None:
    text = "SELECT delta.`my col`, t.delta.`x y`, t . mica . `z` FROM {} AS delta"
    relations = [f"delta.{path}", f"spark_catalog.delta.{path}"]
    for name in (f"delta.`{path}`", f"spark_catalog.delta.`{path}`", f"`spark_catalog` . delta.`{path}`"):
        found = names.by_path(text.format(name), _millis, relations=relations)
        assert found.text == text.format("`events`")


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


@pytest.mark.parametrize("unit", ["it\\'s ", "/*+ a ", "` ``x", '"a\\"b '])
def test_a_text_that_never_ends_is_read_in_a_time_that_grows_as_it_does(unit: str) -> None:
    begin = time.perf_counter()
    names.words("SELECT '" + unit * 20_000)
    bound(f"SELECT '{unit * 20_000}", {})
    assert time.perf_counter() - begin < 10  # it was minutes


def test_a_name_gets_another_place_of_the_same_columns(path: str, tmp_path: Path) -> None:
    mica.register("moved", path)
    schema = str(mica.Table.open(path).schema)
    other = mica.Table.create(tmp_path / "other", schema)
    registry.relocate("Moved", other.path)
    assert registry.place_of("moved") == other.path
    mica.Table.create(tmp_path / "wider", f"{schema}, z INT")
    for place, code in (("wider", "INVALID_ARGUMENT"), ("nothing", "TABLE_NOT_FOUND")):
        with pytest.raises(mica.UserError) as caught:
            registry.relocate("moved", str(tmp_path / place))
        assert caught.value.code == code
    assert registry.place_of("moved") == other.path


def test_what_a_name_may_read_is_asked_of_the_name_and_of_no_path(tmp_path: Path) -> None:
    """Both were one table, opened as the first of them was: the name was refused its files, or the path was given
    them."""
    trusting = {"allow_external_paths": "true"}
    with FaultyS3() as store:
        options = {**store.options, **trusting}
        source = mica.Table.create("s3://b/t", "n BIGINT", storage_options=options)
        source.append([{"n": 1}])
        place = str(source.clone(tmp_path / "clone", storage_options=options).path)
        registry.register("trusted", place, storage_options=options)
        for _ in range(2):
            with pytest.raises(mica.StorageError, match="beyond the table's own storage"):
                registry.opened(place).scan().to_arrow()
            named = registry.registered("trusted")
            assert named is not None
            assert named.scan().to_arrow().num_rows == 1
