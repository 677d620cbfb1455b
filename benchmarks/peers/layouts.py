"""mica's works on two layouts of the same rows, early and standard."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import mica
from benchmarks.peers.serve import fresh
from mica.variant import kernel
from mica.variant.shredding import Limits


class Layouts:
    """The works of the early layout, in process; the rows stay in memory from one to the next."""

    def __init__(self) -> None:
        self._rows: pa.Table = None
        self._tree: pa.DataType = None

    def early_prepare(self, source: str, target: str) -> dict[str, Any]:
        """Four files of two row sets: the events in both layouts, and what typed columns alone hold of them."""
        mica.ingest_json(source, f"{fresh(target)}/table")
        self._rows = mica.Table.open(f"{target}/table").scan().to_arrow().combine_chunks()
        self._tree = kernel.infer(self._rows.to_batches()[0].slice(0, 4096), ["v"], Limits()).tree
        full = typed_alone(self._rows, self._tree)
        sizes = {}
        layouts: tuple[kernel.Layout, ...] = ("standard", "early")
        for layout in layouts:
            for name, rows in (("", self._rows), ("full-", full)):
                path = f"{target}/{name}{layout}.parquet"
                done = mica.write_parquet(rows, path, shredding={"v": self._tree}, layout=layout)
                sizes[f"{name}{layout}"] = f"{done.bytes / 1e6:.1f} MB"
        return {"rows": len(self._rows), "bytes": sizes}

    def early_write(self, target: str, layout: kernel.Layout) -> int:
        return mica.write_parquet(self._rows, target, shredding={"v": self._tree}, layout=layout).rows

    def early_read(self, source: str, where: str | None = None) -> int:
        return int(mica.read_parquet(source, where=where).to_arrow().num_rows)

    def early_middle(self) -> int:
        """`time_us` of the row in the middle, which no other row has."""
        row = self._rows.slice(len(self._rows) // 2, 1).to_batches()[0]
        time = kernel.Request(("v",), ("time_us",), pa.int64())
        return int(kernel.extract(row, [time]).column(0)[0].as_py())

    def early_digest(self, source: str) -> str:
        """All rows as JSON texts, in their order, as one number."""
        found = hashlib.sha256()
        for batch in mica.read_parquet(source).to_arrow().to_batches(max_chunksize=16_384):
            texts = mica.variant.to_json(batch.column(0))
            found.update("".join(f"{text}\n" for text in texts.to_pylist()).encode())
        return found.hexdigest()

    def early_scan(self, source: str, columns: dict[str, str], where: str | None) -> list[Any]:
        """The rows found and, per column, its values and the least of them."""
        found = mica.read_parquet(source, columns=columns, where=where).to_arrow()
        return [len(found), *([len(c) - c.null_count, pc.min(c).as_py()] for c in found.columns)]

    def early_convert(self, source: str, target: str, layout: kernel.Layout, whole: bool) -> int:
        fresh(target)
        if not whole:
            return mica.convert_files(source, target, layout=layout, to="parquet").rows
        rows = mica.read_parquet(source).to_arrow()
        return mica.write_parquet(rows, target, shredding={"v": self._tree}, layout=layout).rows


def typed_alone(rows: pa.Table, tree: pa.DataType) -> pa.Table:
    """The documents without what has no place in the tree's typed columns."""
    batches = []
    for batch in rows.to_batches(max_chunksize=16_384):
        shredded = kernel.shred(batch, {("v",): tree})
        cut = pa.RecordBatch.from_arrays([_typed(shredded.column(0))], schema=shredded.schema)
        batches.append(kernel.unshred(cut))
    return pa.Table.from_batches(batches)


def _typed(array: pa.Array) -> pa.Array:
    """The storage of a Variant column, or a level of it, with nothing in `value`."""
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _typed(array.values), array.type, mask=array.is_null())
    if not pa.types.is_struct(array.type):
        return array
    children = [
        pa.nulls(len(array), f.type) if f.name == "value" and f.type == pa.binary() else _typed(array.field(i))
        for i, f in enumerate(array.type)
    ]
    return pa.StructArray.from_arrays(children, fields=list(array.type), mask=array.is_null())
