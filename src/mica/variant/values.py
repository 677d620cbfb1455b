"""Arrow arrays of Variants from JSON, to JSON and to Python.

The rule: the kernel converts whole arrays and validates before it decodes. Results are exact: decimals are Decimals,
dates and timestamps are datetime's, binary is bytes.

Source: Parquet "VariantEncoding" for the bytes.
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pyarrow as pa

from mica.arguments import COUNT, TEXT, VALUES, Kind, takes
from mica.arrays import arrow_array, batch_of, scalar
from mica.errors import CorruptDataError, UserError
from mica.schema.arrow import MARKED_VARIANT, marked, variant_field
from mica.schema.evolution import holds_bytes, primitive_cast
from mica.variant import kernel
from mica.variant.shredding import Limits, ShreddingSchema

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 — the epoch of values without a zone
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.UTC)
_EPOCH_DAY = _EPOCH.date().toordinal()
_EXACT = Context(prec=38)
_DAY = 86_400_000_000


@takes(texts=VALUES, max_size=COUNT)
def from_json(
    texts: pa.Array | pa.ChunkedArray | Iterable[str | bytes | None],
    *,
    duplicate_keys: str = "error",
    max_size: int = 16 << 20,
) -> pa.StructArray:
    """Parses JSON texts to Variants, `struct<metadata: binary, value: binary>`, with the semantics of Spark's
    parse_json. The array's type marks its Variants: `pa.table({"v": from_json(texts)})` is written as such.

    Nulls stay null. `duplicate_keys` is `error` or `last`; `max_size` limits the bytes of metadata and value of one row
    together. Errors: INVALID_JSON, DUPLICATE_KEY, TOO_DEEP, TOO_LARGE with the row.
    """
    if duplicate_keys not in ("error", "last"):
        raise UserError.bad_value("duplicate_keys", duplicate_keys, "'error' or 'last'")
    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        texts = list(texts)
        binary = any(isinstance(t, bytes) for t in texts)
        wrong = next((t for t in texts if not (t is None or isinstance(t, str | bytes))), None)
        if wrong is not None:
            raise UserError.bad_value("a text", wrong, "JSON as str or bytes")
        try:
            texts = arrow_array(texts, pa.large_binary() if binary else pa.large_string())
        except UnicodeEncodeError as e:
            row = next(at for at, text in enumerate(texts) if text == e.object)
            raise UserError("INVALID_JSON", f"a text has half of a surrogate pair at {e.start}", row=row) from None
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    made = [
        kernel.json_to_variant(
            pa.record_batch([chunk], names=["json"]), duplicate_keys=duplicate_keys, max_size=max_size
        ).column(0)
        for chunk in chunks
    ]
    return _join([marked(array) for array in made], MARKED_VARIANT)


@takes(timezone=TEXT)
def to_json(variants: pa.Array | pa.ChunkedArray, *, timezone: str = "UTC") -> pa.StringArray:
    """Formats Variants as JSON texts, as Spark's to_json does; timestamps are shown in `timezone`."""
    made = [kernel.variant_to_json(batch, timezone=timezone).column(0) for batch in _batches(variants)]
    return _join(made, pa.string())


@takes(limits=Kind("mica.variant.Limits", lambda value: isinstance(value, Limits)))
def infer(variants: pa.Array | pa.ChunkedArray, limits: Limits | None = None) -> ShreddingSchema:
    """Infers the shredding schema that fits these values."""
    batches = _batches(variants)
    table = pa.Table.from_batches(batches, pa.schema([variant_field("v")])).combine_chunks()
    rows = table.to_batches() or [batch_of([], table.schema)]
    return ShreddingSchema(kernel.infer(rows[0], ["v"], limits or Limits()).tree)


def to_python(variants: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Converts Variants to Python values; SQL NULL and the JSON null are both None.

    Objects are dicts, arrays lists. Timestamps with a zone are aware datetimes in UTC. Times in nanoseconds are
    datetimes where no nanosecond is lost, otherwise Arrow scalars; dates beyond Python's years 1 to 9999 are Arrow
    scalars too. Errors: MALFORMED_VARIANT with the row.
    """
    values: list[Any] = []
    for batch in _batches(variants):
        kernel.validate(batch)
        column = batch.column(0)
        pairs = zip(column.field("metadata").to_pylist(), column.field("value").to_pylist(), strict=True)
        if column.null_count:
            valid = column.is_valid().to_pylist()
            pairs_or_none = zip(pairs, valid, strict=True)
            values.extend(decode(*pair) if ok else None for pair, ok in pairs_or_none)
        else:
            values.extend(decode(metadata, value) for metadata, value in pairs)
    return values


def _batches(variants: pa.Array | pa.ChunkedArray) -> list[pa.RecordBatch]:
    """Returns the array's chunks as batches with the one marked column `v`, metadata before value."""
    if not isinstance(variants, pa.Array | pa.ChunkedArray):
        raise UserError.bad_value("variants", type(variants).__name__, "an Arrow array (mica.variant.from_json)")
    chunks = variants.chunks if isinstance(variants, pa.ChunkedArray) else [variants]
    f = variant_field("v")
    batches = []
    for chunk in chunks:
        storage = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        if not _has_parts(storage.type):
            raise UserError.bad_value("the array's type", str(chunk.type), "struct<metadata: binary, value: binary>")
        if storage.type.get_field_index("typed_value") >= 0:
            shredded = pa.field("v", storage.type, metadata=f.metadata)
            storage = kernel.unshred(pa.record_batch([storage], schema=pa.schema([shredded]))).column(0)
        if storage.type != f.type:
            parts = [_bytes(storage.field(name)) for name in ("metadata", "value")]
            mask = storage.is_null() if storage.null_count else None
            storage = pa.StructArray.from_arrays(parts, fields=list(f.type), mask=mask)
        batches.append(pa.record_batch([storage], schema=pa.schema([f])))
    return batches


def _has_parts(type_: pa.DataType) -> bool:
    """Whether these are structs with the two parts of a Variant."""
    parts = {f.name: f.type for f in type_} if pa.types.is_struct(type_) else {}
    return all(name in parts and holds_bytes(parts[name]) for name in ("metadata", "value"))


def _bytes(part: pa.Array) -> pa.Array:
    try:
        return primitive_cast(pa.binary())(part).fill_null(b"")
    except pa.ArrowInvalid as e:
        told = "the Variants are more than the 2 GiB that an array of Arrow holds"
        raise UserError("TOO_LARGE", told, hint="Give fewer at once.") from e


def _join(arrays: list[pa.Array], type_: pa.DataType) -> pa.Array:
    if not arrays:
        return arrow_array([], type_)
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


# --- bytes to Python -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _keys(metadata: bytes) -> tuple[str, ...]:
    """Returns the dictionary of keys. Rows of one writer mostly share it, so it is cached per distinct metadata."""
    width = (metadata[0] >> 6) + 1
    count = _uint(metadata, 1, width)
    first = 1 + width * (count + 2)
    ends = [_uint(metadata, 1 + width * (i + 1), width) for i in range(count + 1)]
    return tuple(metadata[first + a : first + b].decode() for a, b in pairwise(ends))


def decode(metadata: bytes, value: bytes) -> Any:
    """Decodes one Variant to a Python value. Both parts must be valid (`kernel.validate`): nothing is checked again.

    Not recursive: values nest as deep as the input.
    """
    keys = _keys(metadata)
    root: list[Any] = [None]
    todo: list[tuple[int, Any, Any]] = [(0, root, 0)]
    while todo:
        at, parent, place = todo.pop()
        header = value[at]
        basic, info = header & 3, header >> 2
        if basic == 1:
            parent[place] = value[at + 1 : at + 1 + info].decode()
        elif basic == 0:
            parent[place] = _primitive(value, at, info)
        else:
            offset_width = (info & 3) + 1
            large = info >> (4 if basic == 2 else 2) & 1
            count = _uint(value, at + 1, 4 if large else 1)
            cursor = at + (5 if large else 2)
            if basic == 2:
                id_width = (info >> 2 & 3) + 1
                names = [keys[_uint(value, cursor + i * id_width, id_width)] for i in range(count)]
                cursor += count * id_width
                parent[place] = child = dict.fromkeys(names)
                places: Iterable[Any] = names
            else:
                parent[place] = child = [None] * count  # type: ignore[assignment]
                places = range(count)
            data = cursor + (count + 1) * offset_width
            todo.extend(
                (data + _uint(value, cursor + i * offset_width, offset_width), child, name)
                for i, name in enumerate(places)
            )
    return root[0]


def _uint(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "little")


def _primitive(value: bytes, at: int, kind: int) -> Any:
    read = _PRIMITIVES.get(kind)
    if read is None:
        raise CorruptDataError("MALFORMED_VARIANT", f"there is no primitive type {kind} (rule 7)")
    return read(value, at + 1)


def _unpacker(code: str) -> Any:
    unpack = struct.Struct(code).unpack_from
    return lambda value, at: unpack(value, at)[0]


def _decimal(width: int) -> Any:
    def read(value: bytes, at: int) -> Decimal:
        unscaled = int.from_bytes(value[at + 1 : at + 1 + width], "little", signed=True)
        return Decimal(unscaled).scaleb(-value[at], _EXACT)

    return read


def _sized(value: bytes, at: int) -> bytes:
    return value[at + 4 : at + 4 + _uint(value, at, 4)]


def _date(value: bytes, at: int) -> Any:
    days = int.from_bytes(value[at : at + 4], "little", signed=True)
    try:
        return dt.date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        return scalar(days, pa.int32()).cast(pa.date32())


def _timestamp(unit: str, utc: bool) -> Any:
    epoch = _EPOCH_UTC if utc else _EPOCH

    def read(value: bytes, at: int) -> Any:
        count = int.from_bytes(value[at : at + 8], "little", signed=True)
        micros, rest = (count, 0) if unit == "us" else divmod(count, 1000)
        try:
            if rest == 0:
                return epoch + dt.timedelta(microseconds=micros)
        except OverflowError:
            pass
        return scalar(count, pa.timestamp(unit, "UTC" if utc else None))

    return read


def _time(value: bytes, at: int) -> dt.time:
    """A count beyond a day is a time of the day, as in JSON."""
    count = int.from_bytes(value[at : at + 8], "little", signed=True)
    return (_EPOCH + dt.timedelta(microseconds=count % _DAY)).time()


#: Primitive type ids (Parquet VariantEncoding, "Encoding types").
_PRIMITIVES: Mapping[int, Any] = {
    0: lambda *_: None,
    1: lambda *_: True,
    2: lambda *_: False,
    3: _unpacker("<b"),
    4: _unpacker("<h"),
    5: _unpacker("<i"),
    6: _unpacker("<q"),
    7: _unpacker("<d"),
    8: _decimal(4),
    9: _decimal(8),
    10: _decimal(16),
    11: _date,
    12: _timestamp("us", utc=True),
    13: _timestamp("us", utc=False),
    14: _unpacker("<f"),
    15: _sized,
    16: lambda value, at: _sized(value, at).decode(),
    17: _time,
    18: _timestamp("ns", utc=True),
    19: _timestamp("ns", utc=False),
    20: lambda value, at: uuid.UUID(bytes=value[at : at + 16]),
}
