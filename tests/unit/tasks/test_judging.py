"""Which rows of a file pass a predicate: kernel and expressions judge alike, and each error is of its own row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mica import _native
from mica.errors import MicaError
from mica.expressions.bind import bind, bind_columns
from mica.expressions.evaluate import filter_rows
from mica.schema.ddl import parse_ddl
from mica.storage import Storage
from mica.tasks.file import DataFileReader, FilePart, ReadSpec


@pytest.fixture
def mixed(tmp_path: Path) -> FilePart:
    """Six row groups of 50 rows: in the fifth `v:kind` is also a number, and an object; the last one is `late` once."""
    kinds = [f"k{i % 5}" if i % 7 else None for i in range(300)]
    documents: list[dict[str, Any]] = [{"kind": kind, "n": i} for i, kind in enumerate(kinds)]
    documents[210]["kind"], documents[211]["kind"], documents[260]["kind"], kinds[260] = 5, {"a": 1}, "late", "late"
    rows = pa.table({"id": pa.array(range(300), pa.int64()), "s": kinds, "j": list(map(json.dumps, documents))})
    batch = rows.combine_chunks().to_batches()[0]
    variant = _native.json_to_variant(batch.select(["j"])).column(0)
    shredded = _native.shred(
        pa.record_batch([*batch.columns[:2], variant], schema=pa.schema(
            [batch.schema.field("id"), batch.schema.field("s"), pa.field("v", variant.type)])),
        {("v",): pa.struct([("kind", pa.string()), ("n", pa.int64())])},
    )  # fmt: skip
    writer = _native.FileWriter(shredded.schema, path=str(tmp_path / "m.parquet"), row_group_rows=50, page_rows=10)
    writer.write(shredded)
    writer.close()
    return FilePart("m.parquet", (tmp_path / "m.parquet").stat().st_size)


MIXED = parse_ddl("id BIGINT, s STRING, v VARIANT")


def _found(folder: Path, part: FilePart, where: str, *, tracked: bool = False, limit: int | None = None) -> list[int]:
    """The ids of rows that pass. Where rows are tracked the kernel judges none; with a limit pages are not searched."""
    outputs = bind_columns(["id"], MIXED)
    assert outputs is not None
    file = DataFileReader(ReadSpec(Storage.open(folder), MIXED, (), outputs, bind(where, MIXED)), part)
    leaves = [leaf for value in outputs.values() for leaf in value.leaves]
    found = file.passing(leaves, file.spec.predicate, file.ranges, limit, tracked=tracked)
    return [value for batch in found for value in batch.of(outputs["id"])[0].to_pylist()]


@pytest.mark.parametrize(
    "where",
    [
        "s = 'k1'", "s IN ('k1', 'k4', NULL)", "s <=> 'k0'", "s = 'none'", "s = 'k1' AND id > 100",
        "id > 100 AND s = 'k1'",
        "s = 'k1' AND s = 'k2'", "s = 'k1' OR id = 3", "try_variant_get(v, '$.kind', 'string') = 'k2'",
        "try_variant_get(v, '$.kind', 'string') IN ('k2', '5') AND s IS NULL OR id = 9",
        "try_variant_get(v, '$.kind', 'string') = '5'", "s = 'k3' AND try_variant_get(v, '$.kind', 'string') = 'k3'",
        "s = 'K1' COLLATE UTF8_LCASE", "s = 'k1' AND v:n::bigint BETWEEN 20 AND 200",
    ],
)  # fmt: skip
def test_the_kernel_judges_texts_as_expressions_do(tmp_path: Path, mixed: FilePart, where: str) -> None:
    assert _found(tmp_path, mixed, where) == _found(tmp_path, mixed, where, tracked=True)


def test_texts_that_decide_are_judged_by_the_kernel_alone(
    tmp_path: Path, mixed: FilePart, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []

    def counted(*args: Any, num_rows: int) -> pa.BooleanArray:
        judged.append(num_rows)
        return filter_rows(*args, num_rows=num_rows)

    monkeypatch.setattr("mica.tasks.judging.filter_rows", counted)
    assert len(_found(tmp_path, mixed, "s = 'k1' AND s <=> 'k1'")) == 52
    assert judged == []
    assert _found(tmp_path, mixed, "s = 'late' AND id = 260", limit=5) == [260]
    assert judged == [50], "of six row groups one has the text"


@pytest.mark.parametrize("tracked", [False, True])
def test_a_cast_that_fails_behind_batches_of_the_kernel_is_found_in_its_row(
    tmp_path: Path, mixed: FilePart, *, tracked: bool
) -> None:
    with pytest.raises(MicaError, match=r'm\.parquet.*the value is "late"') as caught:
        _found(tmp_path, mixed, "s = 'late' AND v:kind::int = 1", tracked=tracked, limit=5)
    assert caught.value.code == "INVALID_CAST"


@pytest.mark.parametrize(("where", "reads"), [("added IS NULL", True), ("added = 1", False), ("true", True)])
@pytest.mark.parametrize("tracked", [False, True])
def test_constants_decide_for_all_rows_at_once(
    tmp_path: Path, mixed: FilePart, where: str, *, tracked: bool, reads: bool
) -> None:
    schema = parse_ddl("id BIGINT, added INT")
    file = DataFileReader(ReadSpec(Storage.open(tmp_path), schema, (), {}, bind(where, schema)), mixed)
    judged = [batch.rows for batch in file.passing([], file.spec.predicate, [(40, 90)], tracked=tracked)]
    assert (sum(judged), file.passed) == ((50, [(40, 90)]) if reads else (0, []))
