"""Small files that are read as one give the rows, and the errors, of the files read one by one."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import MemoryStore

import mica
from mica.errors import MicaError, UserError
from mica.storage import Storage, tails
from mica.storage.remote import RemoteStorage
from mica.tasks import file, together
from mica.tasks.file import DataFileReader
from mica.tasks.read import read_ranges
from tests.support import dealt

FILES = 12


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Reads files one by one from now on, or together."""

    def chosen(alone: bool) -> None:
        monkeypatch.setattr(together, "TOGETHER_FILES", 1 if alone else 64)

    return chosen


class Local:
    """Tables in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> str:
        return str(self._folder / name)

    def copy(self, name: str, other: str) -> str:
        shutil.copytree(self._folder / name, self._folder / other)
        return self.path(other)

    def delete(self, file: str) -> None:
        (self._folder / file).unlink()


class Bucket:
    """Tables in an object store."""

    def __init__(self, store: MemoryStore) -> None:
        self._home = RemoteStorage("s3://bucket", "", None, store)

    def path(self, name: str) -> str:
        return f"s3://bucket/{name}"

    def copy(self, name: str, other: str) -> str:
        for entry in self._home.list(name):
            self._home.put(entry.path.replace(name, other, 1), self._home.read(entry.path))
        return self.path(other)

    def delete(self, file: str) -> None:
        self._home.delete(file)


@pytest.fixture(params=["local", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path, store: MemoryStore) -> Local | Bucket:
    """Where the tables of a test are."""
    return Local(tmp_path) if request.param == "local" else Bucket(store)


def _value(random_: random.Random, number: int) -> Any:
    """A document whose fields drift from file to file."""
    kinds: list[Any] = [number, str(number), number / 2, None, {"x": number}, [number, "y"]]
    found: dict[str, Any] = {"n": number, "id": f"{number:04}-{random_.randrange(10**6)}"}
    if random_.random() < 0.8:
        found["drifts"] = random_.choice(kinds)
    if random_.random() < 0.3:
        found[f"rare{random_.randrange(3)}"] = random_.choice(kinds)
    return found


def _table(path: str, random_: random.Random) -> mica.Table:
    """A partitioned table of small files: some after another column came, one with deleted rows, some with filters."""
    table = mica.Table.create(
        path, "p INT, s STRING, v VARIANT", partition_by=["p"], properties={"delta.enableDeletionVectors": "true"}
    )
    number = 0
    for number_of in range(FILES):
        if number_of == FILES // 2:
            table.add_columns("late BIGINT")
            table.set_properties({"mica.bloomFilter.paths": "v:id"})
        rows = []
        for _ in range(random_.randrange(1, 40)):
            row = {"p": number_of // 4, "s": f"s{number % 7}", "v": _value(random_, number)}
            rows.append(row | ({"late": number} if number_of >= FILES // 2 else {}))
            number += 1
        table.append(rows)
    table.delete("v:n::int in (3, 70)")
    return table


PREDICATES = [
    None,
    "s = 's3'",
    "v:n::int between 40 and 90",
    "try_variant_get(v, '$.drifts', 'string') > '3' and s != 's1'",
    "late > 100 or try_variant_get(v, '$.drifts', 'double') < 20",
    "p = 1 and try_variant_get(v, '$.rare0', 'int') is not null",
    "v:missing::int = 1",
    "late is null",
    "v is not null and p >= 1",
    "p + v:n::int > 60",
    "p = 0 and s = 's3' or v:n::int > 100",
]
COLUMNS: list[Any] = [
    ["v", "p", "late"],
    {"n": "v:n::bigint", "d": "v:drifts", "p": "p * 2"},
    {"d": "try_variant_get(v, '$.drifts', 'string')", "f": "_metadata.file_name"},
    ["s"],
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", dealt(range(2), 0))
def test_rows_are_those_of_the_files(place: Local | Bucket, one_by_one: Callable[[bool], None], seed: int) -> None:
    table = _table(place.path("t"), random.Random(seed))
    ids = table.scan(columns={"id": "v:id::string"}).to_arrow().column("id").to_pylist()
    for where in [*PREDICATES, f"v:id::string = '{random.Random(seed).choice(ids)}'"]:
        for columns in COLUMNS:
            for limit in (None, 5):
                found = []
                for alone in (True, False):
                    one_by_one(alone)
                    scan = table.scan(columns=columns, where=where, limit=limit)
                    found.append((scan.to_arrow(), scan.count()))
                assert found[0] == found[1], (where, columns)
    assert together_in(place.path("t")) >= 6


#: Changes of rows: of each file, of few, of none; by what each file has of its own; all rows of some.
CHANGES: list[Callable[[mica.Table], object]] = [
    lambda t: t.delete("v:n::int % 7 = 2"),
    lambda t: t.delete("s = 's3' and p >= 1"),
    lambda t: t.delete("v:n::int between 40 and 90"),
    lambda t: t.delete("v:missing::int = 1"),
    lambda t: t.delete("_metadata.file_name like '%5%'"),
    lambda t: t.update({"s": "'new'"}, "v:n::int % 5 = 1 or late > 100"),
    lambda t: t.update({"p": "p + 1"}, "try_variant_get(v, '$.drifts', 'double') < 20"),
    lambda t: t.update({"late": "-1"}),
    lambda t: t.delete("(p + v:n::int) % 5 = 2 and s <> 's1'"),
    lambda t: t.update({"s": "concat(s, p)"}, "p >= 1 and v:n::int % 3 = 1"),
    lambda t: _merge(t, "target.v:n::int = source.n").when_matched_delete("source.n % 2 = 0").execute(),
    lambda t: (
        _merge(t, "target.v:n::int = source.n and target.p > 0")
        .when_matched_update({"s": "concat(source.s, target.s)"})
        .when_not_matched_insert({"p": "9", "s": "source.s"})
        .execute()
    ),
    lambda t: (
        _merge(t, "target.p = source.q and target.v:n::int = source.n")
        .when_matched_update({"s": "'both'"}, "source.q + target.p > 0")
        .when_matched_delete()
        .execute()
    ),
    lambda t: (
        _merge(t, "target.s = source.s and target.v:n::int > 60")
        .when_matched_delete()
        .when_not_matched_by_source_update({"s": "'alone'"}, "target.late is null")
        .execute()
    ),
]


def together_in(path: str) -> int:
    """How many of the files are read with others."""
    scan = mica.Table.open(path).scan(columns=["s"])
    return sum(len(some) for some in together.groups(scan.spec(), scan.whole_files()) if len(some) > 1)


def _merge(table: mica.Table, on: str) -> Any:
    rows = {"n": [*range(0, 60, 4), 1000], "s": [f"s{n}" for n in range(15)] + ["none"]}
    return table.merge(pa.table(rows | {"q": [n % 3 for n in range(16)]}), on)


@pytest.mark.slow
@pytest.mark.parametrize("vectors", dealt(["false", "true"], 0))
def test_changes_are_those_of_files_read_one_by_one(
    place: Local | Bucket, one_by_one: Callable[[bool], None], vectors: str
) -> None:
    given = _table(place.path("t"), random.Random(7))
    given.set_properties({"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true"})
    for number, change in enumerate(CHANGES):
        found = []
        for alone in (True, False):
            one_by_one(alone)
            table = mica.Table.open(place.copy("t", f"{number}-{alone}"))
            before = table.version
            change(table)
            metrics = table.history().column("operation_metrics")[0].as_py()
            shown = sorted(map(str, table.scan().to_arrow().to_pylist()))
            fed = table.changes(before + 1).to_arrow() if table.version > before else pa.table({"n": [0]})
            dropped = [name for name in fed.column_names if name == "_commit_timestamp"]
            counts = {name: n for name, n in dict(metrics or []).items() if "Ms" not in name and "Bytes" not in name}
            found.append((table.version, counts, shown, sorted(map(str, fed.drop_columns(dropped).to_pylist()))))
        assert found[0] == found[1], number
    assert together_in(place.path("t")) >= 6


def test_a_row_that_a_change_fails_in_is_told_with_its_file(tmp_path: Path, one_by_one: Callable[[bool], None]) -> None:
    table = mica.Table.create(str(tmp_path / "t"), "v VARIANT")
    for number in range(6):
        table.append([{"v": {"n": number}}, {"v": {"n": "no number" if number == 3 else 7}}])
    changes: list[Callable[[], object]] = [
        lambda: table.delete("cast(v:n as int) > 1"),
        lambda: table.update({"v": "v"}, "cast(v:n as int) > 1"),
        lambda: table.merge(pa.table({"n": [3]}), "cast(target.v:n as int) = source.n").when_matched_delete().execute(),
        lambda: (
            table.merge(pa.table({"n": [7, 7]}), "try_cast(target.v:n as int) = source.n")
            .when_matched_update({"v": "target.v"})
            .execute()
        ),
    ]
    for change in changes:
        said = []
        for alone in (True, False):
            one_by_one(alone)
            with pytest.raises(MicaError) as error:
                change()
            said.append((error.value.code, error.value.message, error.value.context))
        assert said[0] == said[1]
    assert table.version == 6


def test_files_are_read_as_one(place: Local | Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    table = mica.Table.create(place.path("t"), "v VARIANT")
    for number in range(10):
        table.append([{"v": {"n": number}}, {"v": {"n": number, "m": [number]}}])
    opened = []

    def counted(*args: Any) -> DataFileReader:
        made = DataFileReader(*args)
        opened.append(len(made.ends))
        return made

    monkeypatch.setattr(together, "DataFileReader", counted)
    assert table.scan(columns={"n": "v:n::int"}, where="v:n::int >= 0").to_arrow().num_rows == 20
    assert opened == [10]
    # Other columns begin a group of their own.
    table.add_columns("late INT")
    table.append([{"v": {"n": 10}, "late": 1}])
    opened.clear()
    assert table.scan(columns=["late"], where="v:n::int >= 0").to_arrow().num_rows == 21
    assert opened in ([10, 1], [1, 10])


@pytest.mark.parametrize(
    ("columns", "where", "groups"),
    [
        (["n"], None, [9]),
        (["q", "n", "p"], None, [9]),
        (["n", "q"], "n % 2 = 0", [9]),
        (["n"], "p is not null", [9]),
        (["n"], "p <> 'p1'", [6]),
        (["n"], "p = 'p1' or n = 3", [5]),
        (["n"], "p = 'p1' and n = 4 or n = 3 and s = 's0'", [4]),
        (["n", "p"], "q > '2024-01-04' and s = 's1'", [4]),
        (["n"], "day(q) % 2 = 0 and abs(n + 1) > 4", [9]),
        (["n"], "day(q) % 2 = 0 and n + 1 > 4", [7]),
        (["n", "p"], "s = 's1'", [9]),
        (["n"], "s = 's1'", [9]),
    ],
)
def test_files_of_many_partitions_are_read_as_one(
    tmp_path: Path, one_by_one: Callable[[bool], None], columns: list[str], where: str | None, groups: list[int]
) -> None:
    table = mica.Table.create(str(tmp_path / "t"), "n INT, s STRING, p STRING, q DATE", partition_by=["p", "q"])
    for number in range(9):
        partition = {"p": f"p{number // 3}", "q": date(2024, 1, number) if number > 2 else None}
        table.append([{"n": n, "s": f"s{n % 3}"} | partition for n in range(number, 2 * number + 2)])
    scan = table.scan(columns=columns, where=where)
    assert [len(some) for some in together.groups(scan.spec(), scan.whole_files())] == groups
    one_by_one(True)
    assert (alone := table.scan(columns=columns, where=where).to_arrow()).num_rows
    one_by_one(False)
    assert scan.to_arrow() == alone


def test_changes_of_many_versions_are_read_as_one(tmp_path: Path, one_by_one: Callable[[bool], None]) -> None:
    table = mica.Table.create(tmp_path / "t", "n INT", properties={"delta.enableChangeDataFeed": "true"})
    for number in range(8):
        table.append([{"n": number}, {"n": number}]) if number % 4 else table.overwrite([{"n": number}])
    wheres: dict[str | None, list[int]] = {
        None: [12],
        "_change_type = 'insert'": [12],
        "_commit_version > 3 and n > 4": [7],
    }
    for where, groups in wheres.items():
        scan = table.changes(1, where=where)
        one_by_one(True)
        assert (alone := scan.to_arrow()).num_rows
        one_by_one(False)
        assert scan.to_arrow() == alone
        assert [len(some) for some in together.groups(scan.spec(), scan.whole_files())] == groups


def test_an_error_names_its_file_and_row(place: Local | Bucket, one_by_one: Callable[[bool], None]) -> None:
    table = mica.Table.create(place.path("t"), "v VARIANT")
    for number in range(6):
        table.append([{"v": {"n": number}}, {"v": {"n": "no number" if number == 3 else 7}}])
    said = []
    for alone in (True, False):
        one_by_one(alone)
        for asked in ({"columns": {"n": "cast(v:n as int)"}}, {"where": "cast(v:n as int) > 1"}):
            with pytest.raises(MicaError) as error:
                table.scan(**asked).to_arrow()
            said.append((error.value.code, error.value.message, error.value.context))
    assert said[:2] == said[2:]
    name = next(part for part in table.scan().whole_files() if part.number == 2).path
    place.delete(f"t/{name}")
    gone = []
    for alone in (True, False):
        one_by_one(alone)
        again = mica.Table.open(place.path("t"))  # what was fetched of a file before stays valid
        with pytest.raises(MicaError) as error:
            again.scan(columns={"n": "v:n::string"}).to_arrow()
        gone.append(error.value.message)
    assert gone[0] == gone[1]
    assert name in gone[0]


def test_rows_are_given_as_they_come_and_once_where_a_later_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def opened(_: Any, first: int, more: Any = (), _data: Any = ()) -> Any:
        return SimpleNamespace(parts=[first, *more], ends=[0] * (1 + len(more)))

    def read(file: Any, _: int) -> Any:
        for number in (number for part in file.parts for number in range(4 * part, 4 * part + 4)):
            if number == 9:
                raise UserError("INVALID_CAST", f"in {file.parts}")
            made.append(number)
            if number % 2:
                yield pa.record_batch({"n": [number - 1, number]})

    monkeypatch.setattr(together, "DataFileReader", opened)
    monkeypatch.setattr(together, "groups", lambda _spec, parts, _readers: [parts])
    spec: Any = SimpleNamespace(storage=SimpleNamespace(local_path="/"), limit=None)
    parts: Any = [0, 1, 2]
    found = together.read_together(spec, parts, read)
    rows = next(found)["n"].to_pylist()
    assert made == rows == [0, 1]
    rows += [number for _ in range(3) for number in next(found)["n"].to_pylist()]
    with pytest.raises(UserError, match=r"in \[2\]"):
        next(found)
    assert rows == list(range(8))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_files_with_several_row_groups_are_judged_in_their_order(tmp_path: Path, seed: int) -> None:
    random_, rows = random.Random(seed), []
    for number in range(6):
        own = [{"id": 100 * number + n, "n": random_.choice([None, n, -n])} for n in range(random_.randrange(1, 30))]
        place = tmp_path / "t" / f"p={number}"
        place.mkdir(parents=True)
        schema = pa.schema({"id": pa.int64(), "n": pa.int64()})
        table = pa.Table.from_pylist(own, schema)
        size = random_.randrange(1, 12)
        pq.write_table(table, place / "x.parquet", row_group_size=size, write_statistics=bool(random_.randrange(2)))
        rows += [row | {"p": number} for row in own]
    given = mica.Table.convert_to_delta(tmp_path / "t", properties={"delta.enableDeletionVectors": "true"})
    predicates: dict[str, Callable[[dict[str, Any]], bool]] = {
        "id % 7 = 2": lambda r: r["id"] % 7 == 2,
        "n is null": lambda r: r["n"] is None,
        "p = 3 and n >= 0 or id % 5 = 1": lambda r: (
            (r["p"] == 3 and r["n"] is not None and r["n"] >= 0) or r["id"] % 5 == 1
        ),
        "n + p > 6": lambda r: r["n"] is not None and r["n"] + r["p"] > 6,
    }
    for tried, (where, is_true) in enumerate(predicates.items()):
        wanted = [row for row in rows if is_true(row)]
        assert given.scan(columns=["id", "n", "p"], where=where).to_arrow().to_pylist() == wanted, where
        for number, change in enumerate((_deleted, _updated, _merged)):
            place = tmp_path / f"{tried}-{number}"
            shutil.copytree(tmp_path / "t", place)
            change(mica.Table.open(place), where, wanted)
            found = mica.Table.open(place).scan(columns=["id"], where="n is null or n <> -99").to_arrow()
            left = {row["id"] for row in rows if not is_true(row)}
            assert set(found.column("id").to_pylist()) == left, (where, number)


def _deleted(table: mica.Table, where: str, _: list[dict[str, Any]]) -> None:
    table.delete(where)


def _updated(table: mica.Table, where: str, _: list[dict[str, Any]]) -> None:
    table.update({"n": "-99"}, where)


def _merged(table: mica.Table, _: str, rows: list[dict[str, Any]]) -> None:
    source = pa.table({"k": pa.array([row["id"] for row in rows], pa.int64())})
    table.merge(source, "target.id = source.k").when_matched_delete().execute()


def test_a_row_beyond_the_limit_may_fail(
    tmp_path: Path, one_by_one: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "BATCH_ROWS", 1024)
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING")
    for number in range(5):
        table.append(
            [{"id": n, "s": "bad" if n == 14_000 else "1"} for n in range(3000 * number, 3000 * number + 3000)]
        )
    for where in (None, "id >= 0"):
        for limit in (12_500, 10_000, 13_999):
            found = []
            for alone in (True, False):
                one_by_one(alone)
                scan = table.scan(columns={"id": "id", "n": "cast(s as int)"}, where=where, limit=limit)
                found.append(scan.to_arrow().column("id").to_pylist())
            assert found[0] == found[1] == list(range(limit)), (where, limit)


def test_what_files_have_of_their_own_is_that_of_each_row(tmp_path: Path, one_by_one: Callable[[bool], None]) -> None:
    properties = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
    table = mica.Table.create(tmp_path / "t", "n INT", properties=properties)
    for number in range(5):
        table.append([{"n": n} for n in range(number, 3 * number + 2)])
    table.update({"n": "n + 100"}, "n % 4 = 1")
    table.delete("n % 5 = 0")
    names = "file_path file_name file_size file_block_length file_modification_time row_id row_commit_version".split()
    columns = {"n": "n"} | {name: f"_metadata.{name}" for name in names}
    for where in (None, "n > 3", "_metadata.row_id % 3 = 1", "_metadata.file_size > 0 and _metadata.row_id > 4"):
        for limit in (None, 1, 7):
            scan = table.scan(columns=columns, where=where, limit=limit)
            one_by_one(True)
            assert (alone := scan.to_arrow()).num_rows
            one_by_one(False)
            assert table.scan(columns=columns, where=where, limit=limit).to_arrow() == alone, (where, limit)
    assert [len(some) for some in together.groups(scan.spec(), scan.whole_files())][:2] == [1, 4]


def test_a_file_whose_path_is_refused_is_no_concern_of_the_rows_before_it(place: Local | Bucket) -> None:
    table = mica.Table.create(place.path("t"), "n INT")
    for number in range(6):
        table.append([{"n": number}])
    log = Storage.open(place.path("t"))
    commit = log.read(f"_delta_log/{4:020}.json").decode()
    log.put(f"_delta_log/{4:020}.json", commit.replace('"path":"', '"path":"file:///elsewhere/').encode())
    table = mica.Table.open(place.path("t"))
    assert table.scan(limit=3).to_arrow().column("n").to_pylist() == [0, 1, 2]
    rows: list[int] = []
    with pytest.raises(MicaError, match=r"EXTERNAL_PATH|NOT_FOUND"):
        rows.extend(row for batch in table.scan().batches() for row in batch["n"].to_pylist())
    assert rows == [0, 1, 2]


def test_files_of_which_one_fails_are_fetched_once(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    table = mica.Table.create("s3://bucket/t", "n INT, s STRING")
    for number in range(6):
        table.append([{"n": number, "s": "bad" if number == 5 else "1"}])
    monkeypatch.setattr(tails, "LIMIT", 0)
    asked: list[str] = []
    real = RemoteStorage.read_ranges

    def counted(self: RemoteStorage, rel: str, ranges: tails.Ranges) -> list[bytes]:
        asked.append(rel)
        return real(self, rel, ranges)

    monkeypatch.setattr(RemoteStorage, "read_ranges", counted)
    scan = mica.Table.open("s3://bucket/t").scan(columns={"n": "cast(s as int)"})
    spec, parts = scan.spec(), scan.whole_files()

    def rows(file: DataFileReader, _: int) -> Iterator[pa.RecordBatch]:
        return read_ranges(file, file.candidates(None), None)

    asked.clear()
    with pytest.raises(MicaError, match="bad"):
        list(together._read(spec, rows, parts))
    assert len(asked) == len(parts)
