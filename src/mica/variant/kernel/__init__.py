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
    Batch as Batch,
    Edit as Edit,
    Inferred as Inferred,
    Left as Left,
    R as R,
    Rows as Rows,
    all_bounds as all_bounds,
    arrow as arrow,
    bounds_variants as bounds_variants,
    calculate as calculate,
    cast as cast,
    decode_z85 as decode_z85,
    edit as edit,
    encode_z85 as encode_z85,
    extract as extract,
    fit_batch as fit_batch,
    fitting_schema as fitting_schema,
    fixed_offset as fixed_offset,
    infer as infer,
    json_to_variant as json_to_variant,
    may_hold_late_types as may_hold_late_types,
    settle_nested as settle_nested,
    shred as shred,
    stats_leaves as stats_leaves,
    steer as steer,
    taken as taken,
    traces as traces,
    try_json_to_variant as try_json_to_variant,
    type_texts as type_texts,
    unshred as unshred,
    unshredded_schema as unshredded_schema,
    validate as validate,
    variant_to_json as variant_to_json,
    without_late_types as without_late_types,
)
from mica.variant.kernel.door import version as version
from mica.variant.kernel.json_input import (
    JsonOptions as JsonOptions,
    JsonReader as JsonReader,
    json_format as json_format,
)
from mica.variant.kernel.reader import Check as Check, FileReader as FileReader, open_file as open_file
from mica.variant.kernel.request import Early as Early, Layout as Layout, Request as Request, RowRanges as RowRanges
from mica.variant.kernel.writer import (
    Closed as Closed,
    FileOptions as FileOptions,
    FileWriter as FileWriter,
    Transcription as Transcription,
    transcribe as transcribe,
)
