"""One commit for all of a write: appends that name a version of a collation join each other; nothing is left behind."""

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

import mica
from mica.errors import ConflictError, CorruptDataError, MicaError, StorageError, UserError
from mica.log import transaction
from mica.table import Table
from mica.tasks.facts import FACTS
from mica.write import collated
from mica.write.commit import Commit
from mica.write.facts import Facts
from mica.write.target import Target, open_target

NOTHING = Facts.of(FACTS.empty_table())


def target(table: Table, version: str, *, mode: str = "append") -> Target:
    """A write without files, which has bounds of a collation to name."""
    made = open_target(table.snapshot.storage, table.snapshot, table.schema, (), mode=mode, properties={})  # type: ignore[arg-type]
    made.versions = (["icu.de"], version)
    return made


def test_the_version_that_another_named_meanwhile_stays(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "s STRING COLLATE de")
    one, other, same = target(table, "78.3"), target(table, "79.1"), target(table, "78.3")
    assert [t.commit(NOTHING).version for t in (one, other, same)] == [1, 2, 3]
    found = table.refresh().snapshot.domains["collations"]
    assert orjson.loads(found) == {"writeVersions": {"icu.de": ["78.3", "79.1"]}}


@pytest.mark.parametrize("own", [False, True])
def test_the_next_batch_of_an_application_joins_what_is_not_its_own(tmp_path: Path, own: bool) -> None:
    table = Table.create(tmp_path / "t", "id INT, s STRING COLLATE UTF8_LCASE")
    table.delete("id = 5", txn=("app", 1))
    stale = Table.open(tmp_path / "t")
    table.append([{"id": 2, "s": "b"}])
    if not own:
        assert stale.append([{"id": 1, "s": "A"}], txn=("app", 3)).version == 3
        return
    table.append([{"id": 3, "s": "c"}], txn=("app", 2))
    with pytest.raises(ConflictError, match="another writer recorded a collation") as caught:
        stale.append([{"id": 1, "s": "A"}], txn=("app", 3))
    assert caught.value.code == "CONCURRENT_TRANSACTION"


def test_a_table_without_the_feature_gets_no_collated_bounds(tmp_path: Path) -> None:
    """delta-spark makes such tables where its check of types is off; there is no domain to name the versions in."""
    table = Table.create(tmp_path / "t", "s STRING COLLATE UTF8_LCASE")
    commit = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    actions = [orjson.loads(line) for line in commit.read_bytes().splitlines()]
    (protocol,) = [action["protocol"] for action in actions if "protocol" in action]
    protocol["writerFeatures"] = [f for f in protocol["writerFeatures"] if f not in ("collations", "domainMetadata")]
    commit.write_bytes(b"".join(orjson.dumps(action) + b"\n" for action in actions))
    table = Table.open(tmp_path / "t")
    table.append(pa.table({"s": ["Abc", "x"]}))
    assert table.restats().files == 0
    assert "statsWithCollation" not in orjson.loads(table.files()["stats"][0].as_py())
    assert table.scan("s = 'ABC'").to_arrow()["s"].to_pylist() == ["Abc"]
    table.add_feature("collations").restats()
    assert "statsWithCollation" in orjson.loads(table.files()["stats"][0].as_py())


def test_an_overwrite_does_not_join(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "s STRING COLLATE de")
    late = target(table, "79.1", mode="overwrite")
    target(table, "78.3").commit(NOTHING)
    with pytest.raises(ConflictError):
        late.commit(NOTHING)


def test_files_whose_bounds_cannot_be_made_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise CorruptDataError("CORRUPT_LOG", "the session is gone")

    table = Table.create(tmp_path / "t", "s STRING COLLATE UTF8_LCASE")
    monkeypatch.setattr(collated, "bounded", lost)
    with pytest.raises(CorruptDataError):
        table.append(pa.table({"s": ["a"]}))
    assert [f.name for f in (tmp_path / "t").iterdir()] == ["_delta_log"]
    assert Table.open(tmp_path / "t").version == 0


def parquet_files(table: Path) -> list[Path]:
    return sorted(table.rglob("*.parquet"))


def test_a_write_that_loses_leaves_no_file(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "n INT")
    stale = Table.open(tmp_path / "t")
    table.append(pa.table({"n": [1]}))
    before = parquet_files(tmp_path / "t")
    with pytest.raises(ConflictError):
        stale.overwrite(pa.table({"n": [2]}))
    with pytest.raises(UserError):
        Table.create(tmp_path / "p", "n INT, d INT", ["d"]).overwrite(pa.table({"n": [2], "d": [1]}), where="d = 2")
    assert parquet_files(tmp_path / "t") == before
    assert not parquet_files(tmp_path / "p")


def test_a_task_that_fails_takes_the_files_of_its_siblings_along(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "v VARIANT, s STRING NOT NULL")
    long = "x" * 1000
    rows = pa.table({"s": [long] * 200_000 + [None]})
    with pytest.raises(MicaError):
        table.append(rows)
    assert not parquet_files(tmp_path / "t")


def test_files_stay_where_a_commit_may_have_been_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to the put was lost, and whether it succeeded cannot be seen: it may do so later."""
    table = Table.create(tmp_path / "t", "n INT")
    storage = table.snapshot.storage

    def lost(*_: object) -> None:
        raise StorageError("IO", "connection reset")

    monkeypatch.setattr(type(storage), "put_if_absent", lost)
    monkeypatch.setattr(transaction, "_PAUSE", 0)
    with pytest.raises(StorageError):
        table.append(pa.table({"n": [1]}))
    assert len(parquet_files(tmp_path / "t")) == 1

    def refused(*_: object) -> None:
        raise StorageError("PERMISSION_DENIED", "no")

    monkeypatch.setattr(type(storage), "put_if_absent", refused)
    with pytest.raises(StorageError):
        table.append(pa.table({"n": [1]}))
    assert len(parquet_files(tmp_path / "t")) == 1


def test_ten_writers_leave_no_file_that_no_log_names(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", "n INT")

    def write(number: int) -> None:
        for _ in range(5):
            table = Table.open(tmp_path / "t")
            with contextlib.suppress(ConflictError):
                (table.overwrite if number % 2 else table.append)(pa.table({"n": [number]}))

    with ThreadPoolExecutor(10) as threads:
        list(threads.map(write, range(10)))
    table = Table.open(tmp_path / "t")
    named = set[str]()
    for version in range(table.version + 1):
        for line in (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").read_bytes().splitlines():
            named |= {action["path"] for kind, action in orjson.loads(line).items() if kind == "add"}
    assert {f.name for f in tmp_path.glob("t/*.parquet")} == named
    assert not list(tmp_path.glob("t/_delta_log/.*"))


def test_a_dynamic_overwrite_replaces_the_partitions_that_get_rows(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "n INT, p STRING, d DATE", ["p", "d"])
    days = [date(2024, 7, 1), None]
    table.append(pa.table({"n": [1, 2, 3, 4], "p": ["a", "a", None, "b"], "d": [days[0], days[1], days[0], days[0]]}))
    done = table.dynamic_partition_overwrite(pa.table({"n": [5, 6], "p": ["a", None], "d": [days[0], days[0]]}))
    assert (done.rows, table.version) == (2, 2)
    assert sorted(table.scan(columns=["n"]).to_arrow()["n"].to_pylist()) == [2, 4, 5, 6]
    table.dynamic_partition_overwrite(pa.table({"n": pa.array([], pa.int32())}))
    assert table.count() == 4
    stale, writer = Table.open(tmp_path / "t"), Table.open(tmp_path / "t")
    writer.dynamic_partition_overwrite(pa.table({"n": [7], "p": ["b"], "d": [days[0]]}))
    stale.dynamic_partition_overwrite(pa.table({"n": [8], "p": ["a"], "d": [days[0]]}))  # another partition
    with pytest.raises(ConflictError):
        table.dynamic_partition_overwrite(pa.table({"n": [9], "p": ["b"], "d": [days[0]]}))
    assert sorted(Table.open(tmp_path / "t").scan(columns=["n"]).to_arrow()["n"].to_pylist()) == [2, 6, 7, 8]
    feed = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    told = Table.create(tmp_path / "told", "n INT, p STRING", ["p"], feed)
    told.append(pa.table({"n": [1, 2, 3], "p": [None, None, "a"]}))
    told.delete("n = 1")
    told.dynamic_partition_overwrite(pa.table({"n": [4], "p": pa.array([None], pa.string())}))
    changes = told.changes(told.version).to_arrow().select(["n", "_change_type"]).to_pylist()
    assert sorted(tuple(row.values()) for row in changes) == [(2, "delete"), (4, "insert")]
    whole = Table.create(tmp_path / "whole", "n INT")
    whole.append(pa.table({"n": [1]}))
    whole.dynamic_partition_overwrite(pa.table({"n": [2]}))
    assert whole.scan().to_arrow()["n"].to_pylist() == [2]


def test_the_history_tells_what_an_overwrite_took_away(tmp_path: Path) -> None:
    """delta-spark's metrics and parameters."""
    table = Table.create(tmp_path / "t", "n INT, p STRING", ["p"])
    table.append(pa.table({"n": [1, 2], "p": ["a", "b"]}))
    sizes = dict(zip(*(table.files().column(name).to_pylist() for name in ("path", "size")), strict=True))
    gone = sum(size for path, size in sizes.items() if path.startswith("p=a"))
    table.dynamic_partition_overwrite(pa.table({"n": [3], "p": ["a"]}))
    table.overwrite(pa.table({"n": [4], "p": ["c"]}))
    whole, dynamic, append = table.history(3).to_pylist()
    metrics = [dict(row["operation_metrics"]) for row in (dynamic, whole)]
    assert [(one["numRemovedFiles"], one["numFiles"]) for one in metrics] == [("1", "1"), ("2", "1")]
    assert metrics[0]["numRemovedBytes"] == str(gone)
    assert dict(dynamic["operation_parameters"])["isDynamicPartitionOverwrite"] == "true"
    assert "isDynamicPartitionOverwrite" not in dict(whole["operation_parameters"])
    assert "numRemovedFiles" not in dict(append["operation_metrics"])


@pytest.mark.parametrize("clustered", [False, True])
def test_rows_in_order_do_not_undo_what_others_commit_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clustered: bool
) -> None:
    """Both record the version of a collation for the first time: an OPTIMIZE went on as an append of its files."""
    table = Table.create(tmp_path, "id INT, s STRING", cluster_by=["id"] if clustered else [])
    for part in range(3):
        table.append([{"id": 10 * part + i, "s": "x"} for i in range(10)])
    table.set_collation("s", "UTF8_LCASE")
    other, commit = Table.open(tmp_path), Target.commit

    def late(target: Target, facts: Facts) -> Commit:
        monkeypatch.setattr(Target, "commit", commit)
        other.update({"s": "'changed'"}, "id < 10")
        other.append([{"id": 99, "s": "new"}])
        other.delete("id BETWEEN 10 AND 12")
        return target.commit(facts)

    monkeypatch.setattr(Target, "commit", late)
    with pytest.raises(ConflictError):
        table.optimize(zorder_by=None if clustered else ["id"])
    rows = {row["id"]: row["s"] for row in Table.open(tmp_path).to_arrow().to_pylist()}
    assert sorted(rows) == [*range(10), *range(13, 30), 99]
    assert [id_ for id_, s in rows.items() if s == "changed"] == list(range(10))


#: Timestamps of partitions as writers spell them, the first two without a zone.
SPELLED = {"2020-01-01T00:00:00.000000Z": "2020-01-01 00:00:00", "2020-06-01T12:34:56.500000Z": "2020-06-01 12:34:56.5",
           "2021-01-01T00:00:00.000000Z": "2021-01-01 00:00:00Z"}  # fmt: skip
REWRITES: dict[str, Callable[[mica.Table], object]] = {
    "joined": lambda t: t.optimize(),
    "ordered": lambda t: t.optimize(zorder_by=["id"]),
    "shredded": lambda t: t.reshred({"v": "STRUCT<b: STRING>"}),
    "deleted": lambda t: t.delete("id % 2 = 1"),
    "updated": lambda t: t.update({"id": "id + 2"}, "id % 2 = 0"),
    "erased": lambda t: t.erase("v:a"),
    "merged": lambda t: t.merge([{"id": 1}], "target.id = source.id").when_matched_delete().execute(),
    "replaced": lambda t: t.overwrite([], "id = 1"),
    "without a feature": lambda t: t.drop_feature("columnMapping"),
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_time_without_a_zone_stays_as_it_is(tmp_path: Path, name: str) -> None:
    """It means another instant in each reader's zone: written as an instant it would move for all but one of them."""
    mapped = {"delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path, "id INT, v VARIANT, ts TIMESTAMP", ["ts"], properties=mapped)
    for number in range(2):
        rows = [{"id": i, "v": {"a": number}, "ts": datetime.fromisoformat(text)} for text in SPELLED for i in range(4)]
        table.append(rows)
    for log in (tmp_path / "_delta_log").glob("*[12].json"):
        text = log.read_text()
        for written, spelled in SPELLED.items():
            text = text.replace(f'":"{written}"}}', f'":"{spelled}"}}')
        log.write_text(text)

    def read(zone: str) -> list[tuple[object, object]]:
        found = mica.Table.open(tmp_path).scan("id % 2 = 0", timezone=zone).to_arrow()
        return sorted((row["id"] % 2, row["ts"]) for row in found.to_pylist())

    before = [read(zone) for zone in ("UTC", "Asia/Tokyo")]
    assert before[0] != before[1]
    REWRITES[name](table := mica.Table.open(tmp_path))
    assert [read(zone) for zone in ("UTC", "Asia/Tokyo")] == before
    texts = {value for row in table.snapshot.files.column("partition_values").to_pylist() for _, value in row}
    assert set(list(SPELLED.values())[:2]) <= texts


def test_a_write_of_no_rows_is_no_version(tmp_path: Path) -> None:
    """As in delta-spark; but one that replaces rows, gives the table columns or has a version of an application is."""
    table = Table.create(tmp_path / "t", "id INT, p INT", ["p"])
    none = pa.table({"id": pa.array([], pa.int32()), "p": pa.array([], pa.int32())})
    writes: tuple[Callable[[], Commit], ...] = (
        lambda: table.append([]),
        lambda: table.append(none),
        lambda: table.overwrite(none),
        lambda: table.overwrite(none, "p = 1"),
        lambda: table.dynamic_partition_overwrite(none),
        lambda: table.append(none.append_column("new", pa.array([], pa.int32())), schema_evolution=True),
        lambda: table.append(none, txn=("app", 1)),
        lambda: table.append(none, txn=("app", 1)),
        lambda: table.append([{"id": 1, "p": 1}]),
        lambda: table.dynamic_partition_overwrite(none),
        lambda: table.overwrite(none, "p = 1"),
        lambda: table.append([{"id": 1, "p": 1}]),
        lambda: table.overwrite(none),
        lambda: table.overwrite(none),
    )
    assert [write().version for write in writes] == [0, 0, 0, 0, 0, 1, 2, 2, 3, 3, 4, 5, 6, 6]
    assert Table.create(tmp_path / "t", table.schema, ["p"], mode="overwrite", data=none).version == 7


def test_an_overwrite_by_no_rows_forgets_what_was_ingested(tmp_path: Path) -> None:
    """Else the files would not be ingested again."""
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n')

    def ingest() -> int:
        mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "t", idempotent=True)
        return Table.open(tmp_path / "t").count()

    assert ingest() == 1
    table = Table.open(tmp_path / "t")
    table.delete("v:a::int = 1")
    assert ingest() == 0
    table.refresh().overwrite(table.to_arrow().slice(0, 0))
    assert ingest() == 1


@pytest.mark.parametrize(
    ("of", "asked", "told"),
    [(["p", "q"], ["id", "q"], "by p, q, and partition_by names id, q"), ([], ["id"], "by no column, and .* names id")],
)
def test_other_partition_columns_are_told_by_their_names(
    tmp_path: Path, of: list[str], asked: list[str], told: str
) -> None:
    """Both were printed as lists of Python."""
    table = Table.create(tmp_path / "t", "p STRING, q STRING, id INT", partition_by=of)
    with pytest.raises(UserError, match=f"t is partitioned {told}\n") as caught:
        open_target(table.snapshot.storage, table.snapshot, table.schema, asked, mode="append", properties={})
    assert caught.value.code == "INVALID_PARTITION_COLUMN"
