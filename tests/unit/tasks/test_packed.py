"""Rows packed into values are the same rows, of all types."""

from __future__ import annotations

import pyarrow as pa

from mica.schema.arrow import to_arrow
from mica.schema.ddl import parse_ddl
from mica.tasks.packed import PACKED, collected, packed, unpacked

SCHEMA = to_arrow(parse_ddl("id INT, s STRING COLLATE UNICODE_CI, v VARIANT, a ARRAY<STRUCT<x: DECIMAL(20, 2)>>"))


def test_what_is_unpacked_is_what_was_packed() -> None:
    arrays = [pa.nulls(7, f.type) if f.name != "id" else pa.array(range(7), pa.int32()) for f in SCHEMA]
    rows = pa.Table.from_arrays(arrays, schema=SCHEMA)
    values = pa.record_batch([pa.array([packed(rows.slice(0, 3)), packed(rows.slice(3))])], schema=PACKED)
    assert pa.Table.from_batches(unpacked([values])) == rows
    assert pa.Table.from_batches(unpacked([values])).schema.equals(SCHEMA, check_metadata=True)
    empty = pa.record_batch([pa.array([packed(rows.slice(0, 0))])], schema=PACKED)
    assert sum(batch.num_rows for batch in unpacked([empty])) == 0
    assert (collected([empty, values]), collected([empty])) == (rows, None)
