"""Rows of a predicate replaced: what is left and added, what the feed says, which files are read, what is refused."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.errors import ConflictError, UserError
from tests.support import dealt

Row = dict[str, Any]

#: Predicates, and the same in Python; None is not true.
PREDICATES: dict[str, Callable[[Row], bool | None]] = {
    "id >= 12 AND id < 17": lambda row: 12 <= row["id"] < 17,
    "p = 'a'": lambda row: row["p"] == "a",
    "p = 'b' AND n > 3": lambda row: row["p"] == "b" and row["n"] is not None and row["n"] > 3,
    "v:k::int = 2": lambda row: json.loads(row["v"])["k"] == 2,
    "v:w::string LIKE 'x%' OR n IS NULL": lambda row: (
        str(json.loads(row["v"])["w"]).startswith("x") or row["n"] is None
    ),
    "NOT (n > 5)": lambda row: row["n"] is not None and not row["n"] > 5,
    "true": lambda _: True,
    "s = 'B'": lambda row: row["s"].lower() == "b",
}

FEATURES: dict[str, str] = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}


def made(rng: random.Random, ids: range) -> list[Row]:
    return [
        {
            "id": i, "p": rng.choice("abc"), "n": rng.choice([None, *range(8)]), "s": rng.choice("aAbBc"),
            "v": json.dumps({"k": rng.randrange(4), "w": rng.choice(["x1", "y", 7])}),
        }
        for i in ids
    ]  # fmt: skip


def told(rows: pa.Table) -> Counter[str]:
    return Counter(json.dumps({**row, "v": json.loads(row["v"])}, sort_keys=True) for row in rows.to_pylist())


def rows_of(table: mica.Table) -> Counter[str]:
    columns = {"id": "id", "p": "p", "n": "n", "s": "s", "v": "to_json(v)", "i": "i", "g": "g"}
    return told(table.scan(columns=columns).to_arrow())


@pytest.mark.parametrize("partitioned", [False, True], ids=["flat", "partitioned"])
@pytest.mark.parametrize(
    "features", dealt([f for n in (0, 1, 2, 4) for f in itertools.combinations(FEATURES, n)], 0), ids=str
)
def test_histories_are_those_of_a_model(
    tmp_path: Path, rng: random.Random, features: tuple[str, ...], partitioned: bool
) -> None:
    schema = (
        "id BIGINT, p STRING, n INT, s STRING COLLATE UTF8_LCASE, v VARIANT, "
        "i BIGINT GENERATED ALWAYS AS IDENTITY, g BIGINT GENERATED ALWAYS AS (id * 2)"
    )
    properties: Mapping[str, str] = {name: FEATURES[name] for name in features}
    table = mica.Table.create(tmp_path, schema, ["p"] if partitioned else (), properties)
    numbers = itertools.count()
    for _ in range(3):
        begin = next(numbers) * 10
        table.append(made(rng, range(begin, begin + 10)))
    for text in rng.sample(list(PREDICATES), 5):
        passes, before = PREDICATES[text], rows_of(table)
        begin = next(numbers) * 10
        new = [row for row in made(rng, range(begin, begin + 10)) if passes(row) is True]
        if text.startswith("id"):
            new = [{**row, "id": 12 + row["id"] % 5} for row in made(rng, range(4))]
        done = table.overwrite(new, text)
        after = rows_of(table)
        kept = Counter(
            {
                row: count
                for row, count in before.items()
                if passes({**(r := json.loads(row)), "v": json.dumps(r["v"])}) is not True
            }
        )
        added = after - kept
        assert kept <= after, text
        given = Counter((row["id"], row["p"], row["n"], row["s"], json.dumps(json.loads(row["v"]))) for row in new)
        found = [json.loads(row) for row in added.elements()]
        assert Counter((r["id"], r["p"], r["n"], r["s"], json.dumps(r["v"])) for r in found) == given, text
        assert all(row["g"] == 2 * row["id"] for row in found)
        if not given and kept == before:  # nothing is committed
            assert not done.metrics, text
            continue
        assert done.metrics["numDeletedRows"] == (before - kept).total(), text
        assert len({json.loads(row)["i"] for row in after}) == after.total()
        if "delta.enableChangeDataFeed" in features:
            changes = table.changes(table.version, table.version).to_arrow()
            kinds = Counter(changes.column("_change_type").to_pylist())
            assert kinds == Counter({"delete": (before - kept).total(), "insert": added.total()}), text
        assert rows_of(mica.Table.open(tmp_path)) == after
    assert mica.check(table).ok


def test_files_without_a_row_of_the_predicate_stay(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, v VARIANT")
    for begin in (0, 10, 20):
        table.append([{"id": i, "v": {"day": i}} for i in range(begin, begin + 10)])
    before = set(table.files().column("path").to_pylist())
    done = table.overwrite([{"id": 100, "v": {"day": 12}}], "v:day::int BETWEEN 12 AND 14")
    after = set(table.files().column("path").to_pylist())
    assert (len(before & after), len(after)) == (2, 4)
    assert (done.metrics["numDeletedRows"], done.metrics["numCopiedRows"]) == (3, 7)
    last = table.history(1).to_pylist()[0]
    assert last["operation"] == "WRITE"
    assert dict(last["operation_parameters"])["predicate"] == "v:day::int BETWEEN 12 AND 14"
    assert len(table.scan("v:day::int > 28").kept) == 1


@pytest.mark.parametrize("features", [(), ("delta.enableChangeDataFeed",)], ids=str)
def test_rows_outside_of_the_predicate_are_refused(tmp_path: Path, features: tuple[str, ...]) -> None:
    table = mica.Table.create(tmp_path, "id INT, v VARIANT", properties={name: FEATURES[name] for name in features})
    table.append([{"id": i, "v": {"k": i}} for i in range(5)])
    files = sorted(tmp_path.rglob("*"))
    for rows in ([{"id": 9, "v": {"k": 9}}], [{"id": 1, "v": {"k": 1}}, {"id": 2, "v": None}]):
        with pytest.raises(UserError, match="the predicate of the overwrite") as raised:
            table.overwrite(rows, "v:k::int < 3")
        assert raised.value.code == "ROWS_OUTSIDE_OVERWRITE"
    with pytest.raises(UserError) as raised:
        table.overwrite([{"id": 1, "v": None}], "nope = 3")
    assert raised.value.code == "UNKNOWN_COLUMN"
    assert (table.version, sorted(tmp_path.rglob("*"))) == (1, files)


def test_a_schema_evolves_with_the_rows(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableChangeDataFeed": "true"})
    table.append([{"id": i} for i in range(5)])
    table.overwrite(pa.table({"id": pa.array([3], pa.int32()), "x": ["new"]}), "id >= 3", schema_evolution=True)
    assert sorted(map(str, table.to_arrow().to_pylist())) == [
        "{'id': 0, 'x': None}", "{'id': 1, 'x': None}", "{'id': 2, 'x': None}", "{'id': 3, 'x': 'new'}",
    ]  # fmt: skip
    assert table.changes(2).count() == 3


def test_no_rows_of_a_collated_column_replace_those_of_a_feed(tmp_path: Path) -> None:
    table = mica.Table.create(
        tmp_path, "id INT, s STRING COLLATE UTF8_LCASE", properties={"delta.enableChangeDataFeed": "true"}
    )
    table.append([{"id": 1, "s": "a"}, {"id": 2, "s": "b"}])
    table.overwrite(pa.table({"id": pa.array([], pa.int32()), "s": pa.array([], pa.string())}), "s = 'A'")
    assert [row["id"] for row in table.to_arrow().to_pylist()] == [2]
    assert table.changes(2, columns=["id", "_change_type"]).to_arrow().to_pylist() == [
        {"id": 1, "_change_type": "delete"}
    ]


@pytest.mark.parametrize("features", [(), ("delta.enableDeletionVectors",)], ids=str)
def test_a_feed_has_rows_of_whole_files_beside_partitions_that_only_a_look_excludes(
    tmp_path: Path, features: tuple[str, ...]
) -> None:
    # upper(p) skips no file: 'b' is found to stay, and nothing of it may be read. Change files would lack those of 'a'.
    properties = {name: FEATURES[name] for name in ("delta.enableChangeDataFeed", *features)}
    table = mica.Table.create(tmp_path, "id INT, p STRING", ["p"], properties)
    table.append([{"id": i, "p": p} for i, p in enumerate("aab")])
    if features:
        table.set_properties({"delta.enableDeletionVectors": "false"})
    table.overwrite([{"id": 9, "p": "a"}], "upper(p) = 'A'")
    found = table.changes(table.version).to_arrow().to_pylist()
    assert sorted((row["id"], row["_change_type"]) for row in found) == [(0, "delete"), (1, "delete"), (9, "insert")]


def test_a_table_may_be_written_from_its_own_rows(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, n INT")
    table.append([{"id": i, "n": 0} for i in range(10)])
    table.overwrite(table.scan("id < 5", {"id": "id", "n": "n + 1"}), "id < 5")
    assert sorted((row["id"], row["n"]) for row in table.to_arrow().to_pylist()) == [(i, int(i < 5)) for i in range(10)]


def test_a_write_is_done_once_and_conflicts_as_a_delete(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, n INT")
    table.append([{"id": i, "n": 0} for i in range(10)])
    for _ in range(2):
        table.overwrite([{"id": 1, "n": 5}], "id < 5", txn=("job", 1))
    assert (table.version, table.count()) == (2, 6)
    late = mica.Table.open(tmp_path)
    table.append([{"id": 2, "n": 2}])
    with pytest.raises(ConflictError):
        late.overwrite([{"id": 1, "n": 6}], "id < 5")
    assert mica.Table.open(tmp_path).count() == 7


def test_collated_columns_and_a_feed_take_no_rows(tmp_path: Path) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    table = mica.Table.create(tmp_path, "id INT, s STRING COLLATE UTF8_LCASE", properties=properties)
    table.append([{"id": i, "s": "a"} for i in range(5)])
    table.overwrite([], "id = 1 AND s = 'A'")
    assert (table.count(), table.changes(2).count()) == (4, 1)


def test_an_append_only_table_keeps_its_rows(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.appendOnly": "true"})
    table.append([{"id": 1}])
    with pytest.raises(UserError) as raised:
        table.overwrite([{"id": 1}], "id = 1")
    assert raised.value.code == "APPEND_ONLY"
