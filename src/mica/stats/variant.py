"""Writes the bounds of a Variant column: an object of normalized paths, as z85 text.

The rule: one canonical object, metadata then value, with its keys in order.

Source: Delta RFC "Variant Shredding", "Statistics for Variant Columns"; Parquet "VariantEncoding".
"""

from __future__ import annotations

from collections.abc import Mapping

from mica.stats import z85
from mica.variant.encode import metadata_of, object_of


def build_object(fields: Mapping[str, bytes]) -> tuple[bytes, bytes]:
    """(metadata, value) of an object with these keys and encoded values."""
    keys = tuple(sorted(fields, key=str.encode))
    return metadata_of(keys), object_of(range(len(keys)), [fields[key] for key in keys])


def encode_bounds(fields: Mapping[str, bytes]) -> str:
    """The z85 text of such an object."""
    metadata, value = build_object(fields)
    return z85.encode(metadata + value)
