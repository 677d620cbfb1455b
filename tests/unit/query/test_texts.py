"""What a text says of its tables with certainty, and what it does not say."""

from __future__ import annotations

import pytest

from mica.query import texts
from mica.schema.ddl import parse_ddl

TABLES = {"events": parse_ddl("id BIGINT, s STRING, v VARIANT, st STRUCT<x: BIGINT>")}


def _read(text: str) -> list[tuple[list[str | None], list[str] | None, list[str]]]:
    """Of each place its conditions, columns and paths as they stand in the text."""
    found = texts.read(text, TABLES)
    assert found is not None, text
    return [
        (
            [None if pushed is None else pushed.text for pushed, _ in place.conditions],
            place.columns,
            [text[path.start : path.end + 1] for path in place.paths],
        )
        for place in sorted(found.places, key=lambda one: one.start)
    ]


N, K = "variant_get(v, '$[\\'n\\']', 'INT')", "variant_get(v, '$[\\'k\\']', 'STRING')"


def test_conditions_columns_and_paths_of_each_place() -> None:
    text = (
        "WITH late AS (SELECT id, v:n::int AS n FROM events WHERE v:n::int >= 30 AND hash(s) <> 0) "
        "SELECT late.n FROM late JOIN events e ON late.id = e.id WHERE e.v:k::string IN ('a', 'b') AND e.st.x = -3"
    )
    assert _read(text) == [
        ([f"({N} >= 30)", None], ["id", "s", "st"], ["v:n::int", "v:n::int"]),
        ([f"({K} IN ('a', 'b'))", "(st.x = (- 3))"], ["id", "s", "st"], ["e.v:k::string"]),
    ]


@pytest.mark.parametrize(
    ("text", "conditions", "columns", "paths"),
    [
        ("SELECT * FROM events WHERE id = 3", ["(id = 3)"], None, []),
        ("SELECT to_json(v) FROM events WHERE v:n::int > 3", [f"({N} > 3)"], ["v"], []),
        (
            "SELECT count(*) FROM events WHERE try_cast(v:n AS INT) = 1",
            [f"(try_{N} = 1)"],
            [],
            ["try_cast(v:n AS INT)"],
        ),
        # An outer join makes rows without one of the table.
        ("SELECT 1 FROM few LEFT JOIN events ON few.id = events.id WHERE events.id IS NULL", [], ["id"], []),
        ("SELECT 1 FROM events FULL JOIN few USING (id) WHERE events.id = 1", [], ["id"], []),
        # Whose column it is, is not certain; nor is a string that is read in two ways.
        ("SELECT 1 FROM events JOIN few ON true WHERE s = 'a'", [None], ["s"], []),
        (r"SELECT 1 FROM events WHERE s = 'a\tb'", [None], ["s"], []),
        ('SELECT 1 FROM events WHERE s = "a"', [None], ["s"], []),
        # What sqlglot holds in an argument of the node.
        ("SELECT 1 FROM events WHERE s NOT LIKE 'a%'", ["(NOT (s LIKE 'a%'))"], ["s"], []),
        ("SELECT 1 FROM events WHERE NOT s NOT LIKE 'a%'", ["(NOT (NOT (s LIKE 'a%')))"], ["s"], []),
        ("SELECT 1 FROM events WHERE id BETWEEN SYMMETRIC 5 AND 1", [None], ["id"], []),
        # Spark reads ((id = 1) <= true), ((id < 1) IN (true)) and ((id <=> 1) IN (true)), sqlglot does not.
        ("SELECT 1 FROM events WHERE id = 1 <= true", [None], ["id"], []),
        ("SELECT 1 FROM events WHERE id < 1 IN (true)", [None], ["id"], []),
        ("SELECT 1 FROM events WHERE id <=> 1 IN (true)", [None], ["id"], []),
        # Where comments end for Spark: sqlglot takes the second line for text, and the last comment for one in another.
        ("SELECT 1 FROM events WHERE id = 1 -- a \\\n AND s = 'b'", ["(id = 1)"], ["id"], []),
        ("SELECT 1 FROM events WHERE id = 1 /* /*+ */ OR true -- */", ["((id = 1) OR TRUE)"], ["id"], []),
        ("SELECT 1 FROM events /* '\" */ WHERE s = '--' -- it's", ["(s = '--')"], ["s"], []),
        # A cast to a collation is another one.
        ("SELECT 1 FROM events WHERE CAST(v:k AS STRING COLLATE UTF8_LCASE) = 'X'", [None], ["v"], []),
        # Of a key in backticks Spark makes two; it has no key that is a number, and no place with a sign.
        ("SELECT v:`n.k`::int AS n FROM events WHERE v:`n.k`::int = 3", [None], ["v"], []),
        ("SELECT v:0::int AS n FROM events", [], ["v"], []),
        ("SELECT v:n[+1]::int AS n FROM events", [], ["v"], []),
        # sqlglot cannot write this again.
        ("SELECT 1 FROM events WHERE regexp_replace(s, 'a') = 'b'", [None], ["s"], []),
        # Names of the result, and a Variant under another name.
        ("SELECT n FROM (SELECT v:n::int FROM events)", [], ["v"], []),
        ("SELECT v FROM (SELECT v:n::int AS v FROM events)", [], ["v"], []),
        ("SELECT 1 FROM events NATURAL JOIN few", [], None, []),
    ],
)
def test_what_is_certain(text: str, conditions: list[str | None], columns: list[str] | None, paths: list[str]) -> None:
    assert _read(text) == [(conditions, columns, paths)]


@pytest.mark.parametrize(
    ("text", "alike", "apart"),
    [
        ("SELECT 1 FROM events AS e JOIN few AS E WHERE e.id = 1", ["(id = 1)"], ["(id = 1)"]),
        ("SELECT 1 FROM events AS e JOIN few AS E WHERE E.id = 1", ["(id = 1)"], [None]),
        # A column of a query around this one may have the name.
        ("SELECT 1 FROM events WHERE ID = 1", ["(ID = 1)"], [None]),
    ],
)
def test_names_where_the_session_tells_cases_apart(text: str, alike: list[str], apart: list[str | None]) -> None:
    for cases, expected in ((False, alike), (True, apart)):
        found = texts.read(text, TABLES, cases=cases)
        assert found is not None
        assert [None if pushed is None else pushed.text for pushed, _ in found.places[0].conditions] == expected


@pytest.mark.parametrize(
    ("item", "conditional"),
    [
        ("v:n::int", False), ("sum(v:n::int) + 1", False), ("v:n::int + id", False), ("1 + v:n::int", False),
        ("v:n::int AS t", False), ("v:n::int IN (1, id)", False), ("v:n::int BETWEEN 1 AND 2", False),
        ("id + v:n::int", True), ("id = v:n::int", True), ("id IN (v:n::int)", True),
        ("id BETWEEN 1 AND v:n::int", True),
        ("nvl2(id, v:n::int, 0)", True), ("decode(id, 1, v:n::int)", True), ("date_add(s, v:n::int)", True),
        ("v:n::int / id", True), ("v:n::int % id", True), ("v:n::int div id", True), ("5 IN (5, v:n::int)", True),
        ("5 BETWEEN id AND v:n::int", True), ("count(v:n::int IS NULL)", True),
        ("v:n::int > 1 AND id = 1", True), ("coalesce(v:n::int, 1)", True), ("try_add(id, v:n::int)", True),
    ],
)  # fmt: skip
def test_casts_that_spark_may_not_ask_for(item: str, conditional: bool) -> None:
    found = texts.read(f"SELECT {item} FROM events", TABLES)
    assert found is not None
    assert [path.conditional for path in found.places[0].paths] == [conditional]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM (SELECT id, v:n::int AS n FROM events)",
        "WITH w AS (SELECT id, v:n::int AS n FROM events) SELECT id FROM w",
        "SELECT id FROM few WHERE EXISTS (SELECT v:n::int AS n FROM events)",
        "SELECT v:n::int AS n FROM events LIMIT 1",
    ],
)
def test_casts_of_rows_and_columns_that_nobody_may_need(text: str) -> None:
    found = texts.read(text, TABLES)
    assert found is not None
    assert [path.conditional for path in found.places[0].paths] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT FROM WHERE (",
        "WITH events AS (SELECT 1) SELECT * FROM events",
        "SELECT 1 FROM events TABLESAMPLE (1 ROWS)",
        "SELECT 1 FROM events AS e (s, id, v, st) WHERE e.id = 3",
        # sqlglot takes the word TABLE for a name here, and the table's for its alias.
        "TABLE events",
        "SELECT * FROM (TABLE `events`)",
        # A wrong number of arguments, at which sqlglot fails with an error of Python's.
        "SELECT map(id) FROM events",
        # sqlglot makes one query of steps, in which WHERE comes first.
        "FROM events |> ORDER BY id |> LIMIT 3 |> WHERE id > 5",
        "SELECT id + 1 AS id FROM events |> WHERE id > 5",
        "SELECT id FROM events |> LIMIT 3",
    ],
)
def test_a_text_that_is_not_certain_at_all(text: str) -> None:
    assert texts.read(text, TABLES) is None


@pytest.mark.parametrize(
    ("text", "names", "travelled"),
    [
        ("SELECT * FROM shop.ev e JOIN `my db`.`t x` ON 1 = 1 JOIN range(5)", ["my db.t x", "shop.ev"], []),
        ("SELECT * FROM a JOIN delta.`/tmp/a b` VERSION AS OF 3", ["a", "delta./tmp/a b"], ["delta./tmp/a b"]),
        ("WITH w AS (SELECT * FROM x) SELECT * FROM w JOIN W", ["x"], []),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"], []),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a, b", ["b"], []),
        ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r", [], []),
        ("SELECT * FROM t JOIN (WITH t AS (SELECT 1) SELECT * FROM t)", ["t"], []),
        ("WITH w AS (SELECT 1) SELECT * FROM x WHERE EXISTS (SELECT * FROM w)", ["x"], []),
        ("WITH w AS (SELECT 1) SELECT * FROM db.w", ["db.w"], []),
        ("SELECT * FROM a VERSION AS OF 3 JOIN a", ["a"], ["a"]),
        ("SELECT (SELECT max(a) FROM u) FROM t WHERE EXISTS (FROM z) UNION SELECT 1 FROM q", ["q", "t", "u", "z"], []),
        ("SELECT delta.`my col` FROM delta.`/p` AS delta", ["delta./p"], []),
    ],
)
def test_the_tables_that_a_text_names(text: str, names: list[str], travelled: list[str]) -> None:
    found = texts.relations(text)
    assert found is not None
    assert (sorted(found.names), sorted(found.travelled), found.changes) == (names, travelled, False)


def test_texts_whose_tables_are_not_known() -> None:
    assert texts.relations("SELECT * FROM (TABLE a)") is None
    assert texts.relations("SELECT FROM WHERE") is None
    for text in ("FROM t INSERT INTO u SELECT *", "WITH w AS (SELECT 1) DELETE FROM t WHERE a = 1"):
        changed = texts.relations(text)
        assert changed is not None
        assert changed.changes
