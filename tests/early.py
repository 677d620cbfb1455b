"""Early files of other writers: columns by hand, so that they hold what mica would never write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import mica
from mica.schema.arrow import variant_field


def variants(*documents: Any) -> pa.Table:
    """The column `v` of JSON values; `...` stands for SQL NULL."""
    texts = [None if d is ... else json.dumps(d) for d in documents]
    return pa.Table.from_arrays([mica.variant.from_json(texts)], schema=pa.schema([variant_field("v")]))


def untyped(document: Any) -> bytes:
    """Metadata and value of a JSON value in one, as `untyped_value` holds them."""
    row = mica.variant.from_json([json.dumps(document)])
    found = row[0].as_py()
    return bytes(found["metadata"] + found["value"])


LEAF = pa.struct([("untyped_value", pa.binary()), ("typed_value", pa.int64())])
#: `{a: bigint, b: {c: string}}`, the schema of the text's first example.
TEXT = pa.struct(
    [
        ("untyped_value", pa.binary()),
        (
            "object",
            pa.struct(
                [
                    ("a", LEAF),
                    (
                        "b",
                        pa.struct(
                            [
                                ("untyped_value", pa.binary()),
                                (
                                    "object",
                                    pa.struct(
                                        [
                                            (
                                                "c",
                                                pa.struct(
                                                    [("untyped_value", pa.binary()), ("typed_value", pa.string())]
                                                ),
                                            )
                                        ]
                                    ),
                                ),
                            ]
                        ),
                    ),
                ]
            ),
        ),
    ]
)


def foreign(path: Path, rows: list[Any], type_: pa.DataType, **options: Any) -> Path:
    """A file of the column `v` that pyarrow wrote: nothing is known of its writer."""
    pq.write_table(pa.table({"v": pa.array(rows, type_)}), path, **options)
    return path


def values(path: Any, **options: Any) -> list[Any]:
    """The column `v` of a file in Python."""
    found: list[Any] = mica.read_parquet(path, **options).to_pandas()["v"].tolist()
    return found


#: What is empty, null, missing or beside the schema.
DOCUMENTS = [
    {}, [], [[], {}], {"a": {}, "b": []}, {"b": {}}, {"b": {"c": None}}, [None, {"a": None}, [None]], None, ..., 0, "",
    {"a": 1, "b": {"c": "x", "d": {"e": [1, {"f": None}]}}, "g": {"a": 1}}, {"": {"": ""}}, {"é\U0001f600": 1},
]  # fmt: skip

SHREDDING = {"v": "struct<a: bigint, b: struct<c: string>>"}


def written(path: Path, *documents: Any, shredding: Any = None, **options: Any) -> Path:
    mica.write_parquet(variants(*documents), path, layout="early", shredding=shredding or SHREDDING, **options)
    return path
