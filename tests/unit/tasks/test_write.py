"""Files of a write: one open file a partition, rolled by size, with facts that say all that a commit needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica.errors import UserError
from mica.log.added import ADDED
from mica.schema.ddl import parse_ddl
from mica.stats.collated import CollatedColumn
from mica.storage import Storage
from mica.table import Table
from mica.tasks import write
from mica.tasks.facts import FACTS, facts, facts_schema
from mica.tasks.write import TableWriter, WriteSpec, new_mark, write_files
from mica.variant import from_json

ROWS = pa.table({"p": ["a", "b", "a", None], "n": pa.array([3, 1, 2, 0], pa.int64())})


def spec_of(path: Path, **options: Any) -> WriteSpec:
    spec = WriteSpec(
        storage=Storage.open(str(path)), schema=parse_ddl("p STRING, n BIGINT"), partition_by=("p",), mark=new_mark()
    )
    return replace(spec, **options)


def written(spec: WriteSpec, rows: pa.Table = ROWS) -> list[dict[str, Any]]:
    return [row for batch in write_files(spec, rows.to_batches()) for row in batch.to_pylist()]


def names(path: Path) -> list[str]:
    return sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())


def test_facts_have_a_column_for_all_that_a_commit_adds() -> None:
    assert set(ADDED.names) < set(FACTS.names)
    assert facts([]).schema == FACTS


def test_each_partition_is_a_file_and_its_facts_are_the_files(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    found = written(spec)
    adds = {dict(f["partition_values"])["p"]: f for f in found if f["kind"] == "add"}
    assert set(adds) == {"a", "b", None}
    for value, fact in adds.items():
        file = tmp_path / fact["path"]
        assert file.name.startswith(f"part-{spec.mark}")
        assert (file.stat().st_size, pq.read_metadata(file).num_rows) == (fact["size"], fact["rows"])
        own = sorted(n for p, n in zip(*ROWS.to_pydict().values(), strict=True) if p == value)
        assert pq.ParquetFile(file).read().column("n").to_pylist() == [n for n in [3, 1, 2, 0] if n in own]
        stats = orjson.loads(fact["stats"])
        assert (stats["minValues"], stats["maxValues"]) == ({"n": own[0]}, {"n": own[-1]})
        assert fact["data_change"] is True
    (read,) = [f for f in found if f["kind"] == "read"]
    assert (read["rows"], read["path"]) == (4, None)


def test_a_file_that_is_large_enough_is_rolled(tmp_path: Path) -> None:
    rows = pa.table({"p": ["a"] * 5, "n": pa.array(range(5), pa.int64())})
    spec = spec_of(tmp_path, target_file_size=1, data_change=False)
    found = [b for n in range(5) for b in [rows.slice(n, 1).to_batches()[0]]]
    adds = [f for f in written(spec, pa.Table.from_batches(found)) if f["kind"] == "add"]
    assert [f["rows"] for f in adds] == [1] * 5
    assert {f["data_change"] for f in adds} == {False}
    assert len(names(tmp_path)) == 5


def test_no_more_files_are_open_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "MAX_OPEN", 2)
    found = written(spec_of(tmp_path), pa.concat_tables([ROWS.slice(n, 1) for n in (0, 1, 3, 2)]))
    assert sorted((dict(f["partition_values"])["p"] or "", f["rows"]) for f in found if f["kind"] == "add") == [
        ("", 1), ("a", 1), ("a", 1), ("b", 1),
    ]  # fmt: skip


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise UserError("INVALID_VALUE", "no more")

    with pytest.raises(UserError):
        list(write_files(spec_of(tmp_path, target_file_size=1), batches()))
    assert names(tmp_path) == []


def test_a_file_that_is_asked_for_by_name_is_there_without_rows(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, name="one.parquet", partition_by=())
    (add, read) = written(spec, ROWS.slice(0, 0))
    assert (add["path"], add["rows"], read["rows"]) == ("one.parquet", 0, 0)
    assert pq.read_table(tmp_path / "one.parquet").num_rows == 0


def test_the_strings_that_can_be_ends_are_gathered(tmp_path: Path) -> None:
    leaf = CollatedColumn(("p",), ("p",), "spark.UTF8_LCASE")
    spec = spec_of(tmp_path, partition_by=(), collated=(leaf,), version="78.3")
    (batch,) = write_files(spec, ROWS.to_batches())
    assert batch.schema == facts_schema((leaf,))
    add, read = batch.to_pylist()
    assert (sorted(add["c0"]), add["c0_whole"]) == (["a", "b"], True)
    assert (read["c0"], read["c0_whole"]) == ([], None)


def test_a_writer_that_is_left_without_a_close_deletes_its_files(tmp_path: Path) -> None:
    with TableWriter(spec_of(tmp_path)) as writer:
        writer.write(ROWS.to_batches()[0])
        assert names(tmp_path)
    assert names(tmp_path) == []


def test_rows_that_grow_are_shredded_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 elements of 30 keys are 600 places a row, most of them null: 64 MiB at once became gigabytes."""
    texts = [orjson.dumps([{f"k{(row + at) % 30}": at} for at in range(20)]).decode() for row in range(3000)]
    sizes, shred = list[int](), write.kernel.shred

    def watched(batch: Any, *args: Any, **options: Any) -> Any:
        found = shred(batch, *args, **options)
        sizes.append(found.nbytes)
        return found

    monkeypatch.setattr(write.kernel, "shred", watched)
    monkeypatch.setattr(write, "SHREDDED_BYTES", 1 << 20)
    table = Table.create(tmp_path, "id INT, v VARIANT")
    table.append(pa.table({"id": range(3000), "v": from_json(texts)}))
    assert sum(sizes) > 6 << 20
    assert max(sizes) < 2 << 20
    assert table.scan(columns={"id": "id", "v": "to_json(v)"}).to_arrow()["v"].to_pylist() == texts
