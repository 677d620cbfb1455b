"""Orders strings near a collation without ICU, to put equal and neighbouring rows together.

The rule: never decides what is equal or less, only which rows share a file. It is exact for the collations that compare
bytes; for ICU's, case and accents are ignored, which is near the order of each of them.
"""

from __future__ import annotations

import unicodedata

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.collation import lcase
from mica.collation.identifier import parse
from mica.collation.trust import by_bytes


def placed(strings: pa.Array, collation: str) -> pa.Array:
    """Strings whose bytes are ordered nearly as `collation` (an identifier) orders these; null stays null."""
    name = parse(collation).name.upper()
    strings = strings.cast(pa.string())
    keys = pc.utf8_rtrim(strings, " ") if name.endswith("_RTRIM") else strings
    if not by_bytes(name):
        return _without_accents(keys)
    return lcase.folded(keys) if name.startswith("UTF8_LCASE") else keys


def _without_accents(strings: pa.Array) -> pa.Array:
    """Each distinct string is looked at once."""
    encoded = strings.dictionary_encode()
    texts = [_folded(text) for text in encoded.dictionary.to_pylist()]
    return arrow_array(texts, pa.string()).take(encoded.indices)


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
