"""Table properties: what each means, how its text is read, and what it is when it is not there. One table.

The rule: the log keeps the text as it was given, unknown properties too; a known one that cannot be read is refused
when it is set, and has its default when a table of others holds it. Properties of ours begin with `mica.`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from mica.errors import UserError

T = TypeVar("T")

_UNITS = {
    "microsecond": 1 / 1000, "millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000,
    "day": 86_400_000, "week": 7 * 86_400_000,
}  # fmt: skip
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("true or false")
    return lowered == "true"


def _number(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch(r"\s*-?\d{1,18}\s*", text) is None or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least}")
        return int(text)

    return parse


def _interval(text: str) -> int:
    """`interval 30 days` (the word may be missing) in ms."""
    found = re.findall(r"(\d+)\s+([a-z]+?)s?(?=\s|$)", text.lower().removeprefix("interval").strip())
    if not found or any(unit not in _UNITS for _, unit in found):
        raise ValueError("an interval such as `interval 30 days`")
    return int(sum(int(count) * _UNITS[unit] for count, unit in found))


def parse_size(text: str) -> int:
    """`128MB`, `128m`, `134217728`: bytes, in powers of 1024 as Spark has them."""
    found = re.fullmatch(r"\s*(\d{1,15})\s*([kmgt]?)i?b?\s*", text.lower())
    if found is None:
        raise ValueError("a size such as `128MB`")
    return int(found[1]) * _SIZES[found[2]]


def _size(text: str) -> int:
    size = parse_size(text)
    if size <= 0:
        raise ValueError("a size above 0 such as `128MB`")
    return size


def _names(text: str) -> tuple[str, ...]:
    """Comma-separated column names; backticks protect commas and dots inside a name."""
    parts = re.findall(r"((?:`(?:[^`]|``)*`|[^,`])+)", text)
    return tuple(part.strip() for part in parts if part.strip())


def _text(text: str) -> str:
    return text


def _expressions(text: str) -> Mapping[str, str]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError('a JSON object of names to expressions, such as {"day": "v:time::date"}')
    return found


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for value in allowed:
            if text.strip().lower() == value.lower():
                return value
        raise ValueError(" or ".join(allowed))

    return parse


@dataclass(frozen=True)
class Property(Generic[T]):
    """A known property. `feature` is the table feature that setting it to true needs."""

    name: str
    parse: Callable[[str], T]
    default: T
    feature: str | None = None

    def of(self, configuration: Mapping[str, str]) -> T:
        """Its value in a table, or its default when it is missing or unreadable there."""
        text = configuration.get(self.name)
        if text is None:
            return self.default
        try:
            return self.parse(text)
        except ValueError:
            return self.default


APPEND_ONLY = Property("delta.appendOnly", _boolean, False, "appendOnly")
CHECKPOINT_INTERVAL = Property("delta.checkpointInterval", _number(1), 10)
CHECKPOINT_POLICY = Property("delta.checkpointPolicy", _one_of("classic", "v2"), "classic")
STATS_AS_JSON = Property("delta.checkpoint.writeStatsAsJson", _boolean, True)
STATS_AS_STRUCT = Property("delta.checkpoint.writeStatsAsStruct", _boolean, True)
SKIPPING_COLUMNS = Property("delta.dataSkippingNumIndexedCols", _number(-1), 32)
SKIPPING_NAMES = Property[tuple[str, ...] | None]("delta.dataSkippingStatsColumns", _names, None)
DELETED_FILE_RETENTION = Property("delta.deletedFileRetentionDuration", _interval, 7 * 86_400_000)
LOG_RETENTION = Property("delta.logRetentionDuration", _interval, 30 * 86_400_000)
IN_COMMIT_TIMESTAMPS = Property("delta.enableInCommitTimestamps", _boolean, False, "inCommitTimestamp")
ICT_VERSION = Property[int | None]("delta.inCommitTimestampEnablementVersion", _number(0, 2**63 - 1), None)
ICT_TIMESTAMP = Property[int | None]("delta.inCommitTimestampEnablementTimestamp", _number(0, 2**63 - 1), None)
# Only the very word turns it on: "not present, or anything but `true`: a writer must not shred".
ENABLE_SHREDDING = Property("delta.enableVariantShredding", lambda text: text == "true", False, "variantShredding")
COLUMN_MAPPING_MODE = Property("delta.columnMapping.mode", _one_of("none", "name", "id"), "none")
ENABLE_DELETION_VECTORS = Property("delta.enableDeletionVectors", _boolean, False, "deletionVectors")
ENABLE_CHANGE_DATA = Property("delta.enableChangeDataFeed", _boolean, False, "changeDataFeed")
TARGET_FILE_SIZE = Property("delta.targetFileSize", _size, 128 << 20)
CODEC = Property(
    "delta.parquet.compression.codec", _one_of("zstd", "snappy", "gzip", "lz4_raw", "brotli", "none"), "zstd"
)
VARIANT_STATS_PATHS = Property("mica.variantStats.maxPaths", _number(0), 32)
VARIANT_STATS_BYTES = Property("mica.variantStats.maxBytes", _number(0), 4096)
VARIANT_STATS_NAMES = Property[str | None]("mica.variantStats.paths", _text, None)
INGEST_COLUMNS = Property[Mapping[str, str]]("mica.ingest.columns", _expressions, {})
BLOOM_PATHS = Property[str | None]("mica.bloomFilter.paths", _text, None)

PROPERTIES: Mapping[str, Property[Any]] = {
    known.name: known for known in list(globals().values()) if isinstance(known, Property)
}


def check(changes: Mapping[str, str | None]) -> None:
    """Raises `UserError` for a property that is being set to a value that it cannot have; unknown `delta.` properties
    are taken as they are (another engine may know them), unknown `mica.` ones are mistakes."""
    for name, text in changes.items():
        if text is None:
            continue
        if not isinstance(text, str):
            raise UserError.bad_value(f"the table property {name}", text, "a string")
        known = PROPERTIES.get(name)
        if known is None:
            if name.startswith("mica."):
                mine = sorted(other for other in PROPERTIES if other.startswith("mica."))
                raise UserError.unknown("table property", name, mine)
            continue
        if known is ENABLE_SHREDDING:
            if text not in ("true", "false"):
                raise UserError.bad_value(f"the table property {name}", text, "true or false")
            continue
        try:
            known.parse(text)
        except ValueError as error:
            raise UserError.bad_value(f"the table property {name}", text, str(error)) from None


def needed_features(configuration: Mapping[str, str]) -> set[str]:
    """The table features that the properties of a table need."""
    needed = {
        known.feature for known in PROPERTIES.values() if known.feature is not None and known.of(configuration) is True
    }
    needed |= {
        name.removeprefix("delta.feature.")
        for name, value in configuration.items()
        if name.startswith("delta.feature.") and value.lower() in ("supported", "enabled")
    }
    if CHECKPOINT_POLICY.of(configuration) == "v2":
        needed.add("v2Checkpoint")
    return needed
