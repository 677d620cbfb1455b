"""The one way to write: both engines give the same facts, bounds take no second read, failures leave nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest

import mica
from mica import engines
from mica.engines.progress import Progress, watched
from mica.errors import MicaError, UserError
from mica.log.paths import LOG
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.storage.local import LocalStorage
from mica.tasks.parts import parts_of
from mica.tasks.rewrite import RewriteSpec, rewrite_files
from mica.write import collated, flow
from mica.write.facts import Facts
from mica.write.rows import source
from mica.write.target import target_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.table(
    {
        "p": ["x", "y", "x", None],
        "n": pa.array([1, 2, 3, None], pa.int64()),
        "s": ["B", "a", "C", None],
    }
)
DDL = "p STRING, n BIGINT, s STRING COLLATE UTF8_LCASE"


def actions(path: Path, version: int, kind: str) -> list[dict[str, Any]]:
    lines = (path / LOG / f"{version:020d}.json").read_bytes().splitlines()
    return [action[kind] for action in map(orjson.loads, lines) if kind in action]


def added(path: Path, version: int) -> list[dict[str, Any]]:
    """What a commit added, without what differs from attempt to attempt; statistics as values."""
    varies = ("path", "modificationTime", "size")
    found = [{k: v for k, v in add.items() if k not in varies} for add in actions(path, version, "add")]
    return sorted(({**add, "stats": orjson.loads(add["stats"])} for add in found), key=str)


def data_files(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*.parquet") if LOG not in file.parts)


def ingested(path: Path, spark: SparkSession | None, **options: Any) -> None:
    documents = path.parent / "events.ndjson"
    documents.write_text("".join(f'{{"k": "{k}", "n": {n}}}\n' for n, k in enumerate("bCaBD")), "utf-8")
    mica.Table.create(path, "v VARIANT, k STRING COLLATE UTF8_LCASE")
    mica.ingest_json(documents, path, columns={"k": "v:k::string"}, spark=spark, **options)


def appended(path: Path, spark: SparkSession | None) -> None:
    table = mica.Table.create(path, DDL, ["p"])
    table.append(ROWS if spark is None else spark.createDataFrame(ROWS).coalesce(1))


def converted(path: Path, spark: SparkSession | None) -> None:
    appended(path.parent / "source", None)
    mica.convert_files(path.parent / "source", path, spark=spark)


@pytest.mark.parametrize("way", [ingested, partial(ingested, sort_by=["v:n::bigint DESC"]), appended, converted])
def test_both_engines_give_the_same_facts_and_read_no_file_for_its_bounds(
    spark: SparkSession, tmp_path: Path, way: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(*_: object) -> None:
        raise AssertionError("files were read for their collated bounds")

    monkeypatch.setattr(collated, "collated_bounds", again)
    found = []
    for name, session in (("here", None), ("there", spark)):
        (tmp_path / name).mkdir()
        way(tmp_path / name / "t", session)
        table = mica.Table.open(tmp_path / name / "t")
        found.append(added(tmp_path / name / "t", table.version))
    assert found[0] == found[1] != []
    assert any("statsWithCollation" in add["stats"] for add in found[0])
    assert all(add["tags"]["mica.collatedBounds"] for add in found[0])


def test_a_conversion_page_by_page_has_collated_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No value is decoded on the way; the collated columns are read in the same pass."""
    table = mica.Table.create(tmp_path / "a", "v VARIANT, s STRING COLLATE UTF8_LCASE")
    table.append([{"v": '{"a": 1}', "s": "B"}, {"v": '{"a": 2}', "s": "a"}])
    monkeypatch.setattr(collated, "collated_bounds", None)
    done = mica.convert_files(tmp_path / "a", tmp_path / "b")
    assert (done.rows, done.copied) == (2, 2)
    (add,) = added(tmp_path / "b", 0)
    assert add["stats"]["statsWithCollation"] == {
        "spark.UTF8_LCASE.78.3": {"minValues": {"s": "a"}, "maxValues": {"s": "B"}}
    }


def rewrite(table: mica.Table, numbers: list[int], *, where: str | None = None, **options: Any) -> mica.Table:
    """What repair does, and delete, update and optimize will: tasks name the files that theirs stand for."""
    snapshot = table.snapshot
    target = target_of(snapshot)
    target.operation, target.data_change = "REWRITE", options.pop("data_change", True)
    parts = [part for part in parts_of(snapshot.files, of_log=True) if part.number in numbers]
    reading = Scan(TableSource(snapshot), where).spec()
    rows = flow.FromTasks(lambda spec: partial(rewrite_files, RewriteSpec(reading, spec)), [[p] for p in parts])
    flow.commit(engines.of(), target, target.write_spec(), rows, **options)
    return table.refresh()


@pytest.mark.parametrize("data_change", [True, False])
def test_facts_say_which_files_a_commit_removes(tmp_path: Path, data_change: bool) -> None:
    table = mica.Table.create(tmp_path / "t", "n BIGINT")
    for n in range(4):
        table.append(pa.table({"n": [n, n + 10]}))
    before = table.snapshot.files.column("path").to_pylist()
    table = rewrite(table, [1, 3], data_change=data_change)
    gone = actions(tmp_path / "t", 5, "remove")
    assert {remove["path"] for remove in gone} == {before[1], before[3]}
    lines = [*gone, *added(tmp_path / "t", 5)]
    assert len(lines) == 4
    assert {line["dataChange"] for line in lines} == {data_change}
    assert sorted(table.to_arrow().column("n").to_pylist()) == [0, 1, 2, 3, 10, 11, 12, 13]


def test_a_file_of_no_rows_becomes_none(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n BIGINT")
    for n in range(2):
        table.append(pa.table({"n": [n]}))
    table = rewrite(table, [0, 1], where="n < 1")
    assert (table.to_arrow().column("n").to_pylist(), table.files().num_rows) == ([0], 1)


def test_two_that_rewrite_one_file_conflict_and_the_loser_leaves_nothing(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n BIGINT")
    table.append(pa.table({"n": [1]}))
    late = mica.Table.open(tmp_path / "t")
    rewrite(table, [0])
    before = data_files(tmp_path / "t")
    with pytest.raises(MicaError) as refused:
        rewrite(late, [0])
    assert refused.value.code == "CONCURRENT_DELETE"
    assert data_files(tmp_path / "t") == before


def test_who_looks_at_the_files_may_refuse_them(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n BIGINT")
    table.append(pa.table({"n": [1]}))
    before = data_files(tmp_path / "t")

    def refuse(facts: Facts) -> None:
        assert facts.rows == 1
        assert all((tmp_path / "t" / name).exists() for name in facts.names)
        raise UserError("INVALID_VALUE", "not these")

    with pytest.raises(UserError, match="not these"):
        rewrite(table, [0], inspect=refuse)
    assert data_files(tmp_path / "t") == before
    assert table.refresh().version == 1


def test_facts_are_seen_as_they_come_and_are_columns(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "p STRING, n BIGINT", ["p"])
    snapshot, seen = table.snapshot, list[Progress]()
    target = target_of(snapshot)
    spec, engine = target.write_spec(), engines.of()
    rows = source(engine, spec, ROWS.drop_columns(["s"]))
    with watched(seen.append):
        commit, facts = flow.commit(engine, target, spec, rows)
    assert (seen[-1].rows, seen[-1].files, seen[-1].ended_tasks) == (4, 3, seen[-1].tasks)
    assert (commit.files, commit.rows, commit.bytes) == (3, 4, facts.bytes)
    values = sorted(dict(row)["p"] or "" for row in facts.files.column("partition_values").to_pylist())
    assert values == ["", "x", "y"]
    assert facts.counted("read") == 4
    assert {str(tmp_path / "t" / name) for name in facts.names} == {
        str(tmp_path / "t" / name) for name in data_files(tmp_path / "t")
    }


def broken_stream() -> pa.RecordBatchReader:
    def batches() -> Any:
        yield pa.record_batch({"n": [1]})
        raise UserError("INVALID_VALUE", "the stream broke")

    return pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())


def test_bare_files_of_a_write_that_fails_do_not_stay(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="broke"):
        mica.write_parquet(broken_stream(), tmp_path / "folder")
    assert data_files(tmp_path) == []
    mica.write_parquet(pa.table({"n": [1]}), tmp_path / "part-a.parquet")
    with pytest.raises(Exception, match="broke"):
        mica.write_parquet(broken_stream(), tmp_path / "b.parquet")
    assert data_files(tmp_path) == ["part-a.parquet"]


def test_who_looks_on_may_stop_a_write_and_its_tasks(tmp_path: Path) -> None:
    documents = tmp_path / "events.ndjson"
    documents.write_text('{"a": 1}\n' * 1000, "utf-8")
    table = mica.Table.create(tmp_path / "t", "v VARIANT")

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mica.ingest_json([documents] * 4, tmp_path / "t", progress=stop)
    assert (data_files(tmp_path / "t"), table.refresh().version) == ([], 0)


@pytest.mark.parametrize("written", [False, True])
def test_who_is_interrupted_during_the_commit_keeps_its_files_only_if_it_is_there(
    written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mica.Table.create(tmp_path, "n BIGINT")
    put = LocalStorage.put_if_absent

    def interrupted(storage: LocalStorage, rel: str, data: bytes) -> None:
        if written:
            put(storage, rel, data)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "put_if_absent", interrupted)
        with pytest.raises(KeyboardInterrupt):
            table.append(pa.table({"n": [1]}))
    assert (len(data_files(tmp_path)), table.refresh().count()) == ((1, 1) if written else (0, 0))
