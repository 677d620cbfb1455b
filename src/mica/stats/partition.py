"""Partition values: strings in the log, typed values everywhere else.

The rule: null and an empty string are null, whatever the type; any other text is read as Spark's ANSI cast reads it,
which accepts all that the protocol's table allows, or the table is corrupt. A timestamp without a zone in its text is
in the session's time zone, as Spark reads it.

Source: Delta protocol, "Partition Value Serialization".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar
from mica.errors import CorruptDataError, UserError
from mica.schema import literals
from mica.schema.arrow import to_arrow_type
from mica.schema.char import unpadded
from mica.schema.ddl import type_to_ddl
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    StructField,
)
from mica.variant import kernel

#: The numbers that have names.
REALS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def parse_values(texts: pa.Array | pa.ChunkedArray, type_: DataType, *, timezone: str = "UTC") -> pa.Array:
    """Parses partition values to their type. Errors: INVALID_PARTITION_VALUE (CorruptDataError)."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    encoded = texts.cast(pa.string()).dictionary_encode()
    known = encoded.dictionary
    known = pc.if_else(pc.equal(known, ""), scalar(None, pa.string()), known)
    if type_ == BINARY:
        known = known.cast(pa.binary())
    elif type_ != STRING:
        known, failed = kernel.cast(
            pa.record_batch([known], names=["values"]), to_arrow_type(type_), timezone=timezone
        ).columns
        if failed.true_count:
            raise _no_value(encoded.dictionary.filter(failed)[0].as_py(), type_)
    return known.take(encoded.indices)


def format_values(values: pa.Array, type_: DataType) -> pa.Array:
    """Formats typed values as the protocol spells them; timestamps in UTC with a Z."""
    encoded = values.dictionary_encode()
    plain = encoded.dictionary
    if type_ == DATE:
        plain = plain.cast(pa.int32())
    elif type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        plain = plain.cast(pa.int64())
    return arrow_array([_format(v, type_) for v in plain.to_pylist()], pa.string()).take(encoded.indices)


def log_texts(values: pa.Array, field: StructField, spelled: Mapping[str, str]) -> pa.Array:
    """Values of a partition column as `format_values` spells them, or as `spelled` says; a CHAR(n) has no blanks behind
    it."""
    texts = unpadded(format_values(values, field.type), field)
    if not spelled:
        return texts
    encoded = texts.dictionary_encode()
    own = [None if text is None else spelled.get(text, text) for text in encoded.dictionary.to_pylist()]
    return arrow_array(own, texts.type).take(encoded.indices)


def zoneless(texts: pa.Array | pa.ChunkedArray, timezone: str) -> dict[str, str]:
    """The texts of timestamps without a zone, each by the text that `format_values` writes for it. Rows that are only
    written again keep theirs: for who has another time zone than `timezone` they are of another instant. Where the log
    has both texts, rows of the two cannot be told from each other."""
    known = pc.unique(texts).drop_null()
    bare = pc.and_(pc.match_substring_regex(known, r"\d$"), pc.invert(pc.match_substring_regex(known, r":.*[+-]")))
    if not pc.any(bare).as_py():
        return {}
    written = format_values(parse_values(known, TIMESTAMP, timezone=timezone), TIMESTAMP)
    one = pc.and_(bare, pc.invert(pc.is_in(written, value_set=written.filter(pc.invert(bare)))))
    return dict(zip(written.filter(one).to_pylist(), known.filter(one).to_pylist(), strict=True))


def column_texts(partition_values: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    """Returns the texts of one partition column (by its name in the log) from an array of map<string, string>."""
    found = pc.map_lookup(partition_values, name, "first")
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _no_value(text: str, type_: DataType) -> CorruptDataError:
    return CorruptDataError(
        "INVALID_PARTITION_VALUE", f"the partition value {text!r} in the log is not a valid {type_to_ddl(type_)}"
    )


def _format(value: Any, type_: DataType) -> str | None:
    if value is None or (isinstance(value, str | bytes) and not value):
        return None
    if type_ == BOOLEAN:
        return str(value).lower()
    if type_ == DATE:
        return literals.show_date(value)
    if type_ == TIMESTAMP:
        return f"{literals.show_timestamp(value, all_digits=True).replace(' ', 'T')}Z"
    if type_ == TIMESTAMP_NTZ:
        return literals.show_timestamp(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise UserError(
                "INVALID_PARTITION_VALUE",
                f"the binary value {value[:32]!r} is not UTF-8, and partition values are texts",
                hint="Partition by another column.",
            ) from None
    if isinstance(value, float):
        names = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return "NaN" if math.isnan(value) else names.get(value, repr(value))
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
