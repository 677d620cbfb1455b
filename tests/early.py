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


#: A tree for the expressions below: numbers as decimals, so that it shows whether anyone minds.
TREE = pa.struct(
    [("a", pa.decimal128(9, 2)), ("b", pa.struct([("a", pa.int64()), ("c", pa.string())])), ("c", pa.bool_()),
     ("l", pa.list_(pa.float64()))]
)  # fmt: skip
_PATHS = ["$", "$.a", "$.b.a", "$.b.c", "$.b", "$.c", "$.l[0]", "$.l", "$.z", "$.z.a", "$.a[1]"]
_TYPES = [
    "bigint", "int", "smallint", "tinyint", "decimal(12,3)", "decimal(5,1)", "double", "float", "string", "date",
    "timestamp", "timestamp_ntz", "boolean", "binary",
]  # fmt: skip
_A, _C = "try_variant_get(v, '$.a', 'decimal(20,4)')", "try_variant_get(v, '$.b.c', 'string')"
_N = "try_variant_get(v, '$.b.a', 'bigint')"
#: Every kind of expression that mica and Spark both know, over Variants; none fails for a value.
EXPRESSIONS = [
    *(f"try_variant_get(v, '{path}', '{type_}')" for path in _PATHS for type_ in _TYPES),
    *(f"is_variant_null(try_variant_get(v, '{path}', 'variant'))" for path in _PATHS),
    *(f"{_A} {op} {other}" for op in ("=", "<", "<=", ">", ">=", "<>", "<=>") for other in ("123", "1.25", "NULL")),
    *(f"{_C} {op} {_C}" for op in ("=", "<=>", "<")), f"{_N} {'='} {_A}", f"{_N} IN (1, 2, 123)",
    f"{_C} IN ('x', '5')", f"{_A} BETWEEN 1 AND 123", f"{_C} LIKE '%1%'", f"{_C} NOT LIKE '_'",
    f"startswith({_C}, 's')", f"endswith({_C}, '1')", f"contains({_C}, '2')", f"{_A} IS NULL", f"{_N} IS NOT NULL",
    f"{_A} > 1 AND {_N} < 9", f"{_A} > 1 OR {_N} IS NULL", f"NOT ({_A} > 1)", f"try_cast({_C} AS int)",
    f"{_A} + 1", f"{_A} - {_A}", f"{_A} * 2", "v IS NULL", "v IS NOT NULL", "cast(v AS string)",
]  # fmt: skip
