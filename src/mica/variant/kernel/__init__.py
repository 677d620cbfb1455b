"""The native kernel, typed: every call, request and result that Python uses.

The rule: only `door.py` imports `mica._native`, whose stubs (`_native.pyi`) define the interface; this package raises
only errors of `mica.errors`.

| module | what |
|---|---|
| `door` | the import, and errors |
| `request` | what is read from a file or batch |
| `batches` | functions over batches |
| `json_input` | JSON text |
| `reader`, `writer` | Parquet files |
"""

from __future__ import annotations

from mica.variant.kernel.batches import (
    Batch,
    Edit,
    Inferred,
    Left,
    R,
    Rows,
    all_bounds,
    arrow,
    bounds_variants,
    calculate,
    cast,
    decode_z85,
    edit,
    encode_z85,
    extract,
    fit_batch,
    fitting_schema,
    fixed_offset,
    infer,
    json_to_variant,
    may_hold_late_types,
    shred,
    stats_leaves,
    steer,
    taken,
    traces,
    try_json_to_variant,
    type_texts,
    unshred,
    unshredded_schema,
    validate,
    validate_nested,
    variant_to_json,
    without_late_types,
)
from mica.variant.kernel.door import version, zones
from mica.variant.kernel.json_input import JsonOptions, JsonReader, json_format
from mica.variant.kernel.reader import Check, FileReader, open_file
from mica.variant.kernel.request import Early, Layout, Request, RowRanges
from mica.variant.kernel.writer import Closed, FileOptions, FileWriter, Transcription, transcribe

__all__ = [
    "Batch",
    "Check",
    "Closed",
    "Early",
    "Edit",
    "FileOptions",
    "FileReader",
    "FileWriter",
    "Inferred",
    "JsonOptions",
    "JsonReader",
    "Layout",
    "Left",
    "R",
    "Request",
    "RowRanges",
    "Rows",
    "Transcription",
    "all_bounds",
    "arrow",
    "bounds_variants",
    "calculate",
    "cast",
    "decode_z85",
    "edit",
    "encode_z85",
    "extract",
    "fit_batch",
    "fitting_schema",
    "fixed_offset",
    "infer",
    "json_format",
    "json_to_variant",
    "may_hold_late_types",
    "open_file",
    "shred",
    "stats_leaves",
    "steer",
    "taken",
    "traces",
    "transcribe",
    "try_json_to_variant",
    "type_texts",
    "unshred",
    "unshredded_schema",
    "validate",
    "validate_nested",
    "variant_to_json",
    "version",
    "without_late_types",
    "zones",
]
