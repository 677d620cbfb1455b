"""Partition columns from the names of directories, as Hive and Spark write them: `day=2026-11-20/kind=post/a.parquet`.

The rule: only directories below the folder that was asked for count. Names are no schema, so the type of a column is
the narrowest of INT, BIGINT, DOUBLE, DATE and TIMESTAMP that all its texts are written in exactly, and STRING
otherwise: `01` stays a text.

Source: Spark's partition discovery, which also reads `01` as 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from mica import late
from mica.arrays import arrow_array
from mica.errors import CorruptDataError, UserError
from mica.log.paths import NULL_DIRECTORY
from mica.schema.types import DATE, DOUBLE, INTEGER, LONG, STRING, TIMESTAMP, DataType
from mica.stats.partition import REALS, parse_values

_DIRECTORY = re.compile(r"([^/=]+)=([^/]*)")
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_REAL = re.compile(r"-?[0-9]+\.[0-9]+|-?[0-9]+(\.[0-9]+)?e[+-]?[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z?")


def values_of(path: str) -> dict[str, str | None]:
    """The partition values in the directories of a relative path; None for Hive's name of null. Errors:
    DUPLICATE_COLUMN."""
    found: dict[str, str | None] = {}
    for directory in path.split("/")[:-1]:
        named = _DIRECTORY.fullmatch(directory)
        if named is not None:
            name, text = named.groups()
            name = _unescaped(name)
            if any(name.lower() == other.lower() for other in found):
                raise UserError("DUPLICATE_COLUMN", f"{path} is in two directories of the column {name!r}", path=path)
            found[name] = None if text == NULL_DIRECTORY else _unescaped(text)
    return found


def values_of_all(paths: Iterable[str]) -> list[dict[str, str | None]]:
    """The partition values of relative paths. A column that directories spell with other cases has the first name."""
    every = [values_of(path) for path in paths]
    names: dict[str, str] = {}
    for own in every:
        for name in own:
            names.setdefault(name.lower(), name)
    return [{names[name.lower()]: text for name, text in own.items()} for own in every]


def is_directory(name: str) -> bool:
    """Whether a directory is that of a partition, `day=2026-11-20`."""
    return _DIRECTORY.fullmatch(name) is not None


def _unescaped(text: str) -> str:
    # pyarrow and DuckDB escape bytes of UTF-8; Spark knows characters below U+0100, so two texts stay two.
    try:
        return late.urls.unquote(text, errors="strict")
    except UnicodeDecodeError:
        return late.urls.unquote(text, encoding="latin-1")


def columns_of(values: Sequence[Mapping[str, str | None]]) -> dict[str, DataType]:
    """The partition columns of files with these values, in order of first appearance, with their types."""
    texts: dict[str, dict[str, None]] = {}
    for own in values:
        for name, text in own.items():
            known = texts.setdefault(name, {})
            if text:  # null, and an empty text, which is null
                known[text] = None
    return {name: type_of(known) for name, known in texts.items()}


def type_of(texts: Iterable[str]) -> DataType:
    """The type of texts that are not null."""
    every = list(texts)
    return next((type_ for type_, fits in _TYPES.items() if every and all(map(fits, every))), STRING)


def _within(bits: int) -> Callable[[str], bool]:
    return lambda text: bool(_WHOLE.fullmatch(text)) and -(1 << bits) <= int(text) < 1 << bits


def _is_double(text: str) -> bool:
    if _WHOLE.fullmatch(text):
        return abs(int(text)) <= 1 << 53
    return text in REALS or (_REAL.fullmatch(text) is not None and repr(float(text)) == text)


def _reads_as(pattern: re.Pattern[str], type_: DataType) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        if not pattern.fullmatch(text):
            return False
        try:
            parse_values(arrow_array([text]), type_)
        except CorruptDataError:  # the 30th of February
            return False
        return True

    return fits


_TYPES: Mapping[DataType, Callable[[str], bool]] = {
    INTEGER: _within(31),
    LONG: _within(63),
    DOUBLE: _is_double,
    DATE: _reads_as(_DATE, DATE),
    TIMESTAMP: _reads_as(_TIMESTAMP, TIMESTAMP),
}
