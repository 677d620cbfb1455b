"""Table properties: what each means, how its text is read, and what it is when it is not there. One table.

The rule: the log keeps the text as it was given. When a property is set, its name (in any case) is one of the table
below, or of nobody's that we know: an unknown `delta.` or `mica.` name is a mistake, and so is a text that cannot be
read. A property that asks for a table feature adds it, or is refused where mica cannot write such tables. In a table of
others an unknown property stays, and one that cannot be read has its default. Properties of ours begin with `mica.`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from mica.errors import UnsupportedTableError, UserError
from mica.log import features

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
    """A known property. `feature` is the table feature that it asks for, `asks` the values that do (True, if not said
    otherwise); `refused` says why mica makes no table with these values."""

    name: str
    parse: Callable[[str], T]
    default: T
    feature: str | None = None
    asks: tuple[Any, ...] = (True,)
    refused: str | None = None

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
CHECKPOINT_POLICY = Property("delta.checkpointPolicy", _one_of("classic", "v2"), "classic", "v2Checkpoint", ("v2",))
STATS_AS_JSON = Property("delta.checkpoint.writeStatsAsJson", _boolean, True)
STATS_AS_STRUCT = Property("delta.checkpoint.writeStatsAsStruct", _boolean, False)
SKIPPING_COLUMNS = Property("delta.dataSkippingNumIndexedCols", _number(-1), 32)
SKIPPING_NAMES = Property[tuple[str, ...] | None]("delta.dataSkippingStatsColumns", _names, None)
DELETED_FILE_RETENTION = Property("delta.deletedFileRetentionDuration", _interval, 7 * 86_400_000)
LOG_RETENTION = Property("delta.logRetentionDuration", _interval, 30 * 86_400_000)
EXPIRED_LOG_CLEANUP = Property("delta.enableExpiredLogCleanup", _boolean, True)
IN_COMMIT_TIMESTAMPS = Property("delta.enableInCommitTimestamps", _boolean, False, "inCommitTimestamp")
ICT_VERSION = Property[int | None]("delta.inCommitTimestampEnablementVersion", _number(0, 2**63 - 1), None)
ICT_TIMESTAMP = Property[int | None]("delta.inCommitTimestampEnablementTimestamp", _number(0, 2**63 - 1), None)
# Only the very word turns it on: "not present, or anything but `true`: a writer must not shred".
ENABLE_SHREDDING = Property("delta.enableVariantShredding", lambda text: text == "true", False, "variantShredding")
COLUMN_MAPPING_MODE = Property(
    "delta.columnMapping.mode", _one_of("none", "name", "id"), "none", "columnMapping", ("name", "id"),
    "mica reads tables with column mapping, but makes none",
)  # fmt: skip
ENABLE_DELETION_VECTORS = Property("delta.enableDeletionVectors", _boolean, False, "deletionVectors")
ENABLE_CHANGE_DATA = Property("delta.enableChangeDataFeed", _boolean, False, "changeDataFeed")
CHECKPOINT_PROTECTION = Property(
    "delta.requireCheckpointProtectionBeforeVersion",
    _number(0, 2**63 - 1),
    0,
    "checkpointProtection",
    (),
    "only the engine that drops a feature may set it",
)
TARGET_FILE_SIZE = Property("delta.targetFileSize", _size, 128 << 20)
CODEC = Property(
    "delta.parquet.compression.codec", _one_of("zstd", "snappy", "gzip", "lz4_raw", "brotli", "none"), "zstd"
)
VARIANT_STATS_PATHS = Property("mica.variantStats.maxPaths", _number(0), 32)
VARIANT_STATS_BYTES = Property("mica.variantStats.maxBytes", _number(0), 4096)
VARIANT_STATS_NAMES = Property[str | None]("mica.variantStats.paths", _text, None)
BLOOM_PATHS = Property[str | None]("mica.bloomFilter.paths", _text, None)
INGEST_COLUMNS = Property[Mapping[str, str]]("mica.ingest.columns", _expressions, {})

#: Properties that mica stores for other engines, and does nothing for itself.
OF_OTHERS: tuple[Property[Any], ...] = (
    Property("delta.autoOptimize", _boolean, False),
    Property("delta.autoOptimize.autoCompact", _one_of("true", "false", "auto", "legacy"), "false"),
    Property("delta.autoOptimize.optimizeWrite", _boolean, False),
    Property("delta.checkpointRetentionDuration", _interval, 0),
    Property("delta.columnMapping.maxColumnId", _number(0, 2**63 - 1), 0),
    Property("delta.dropFeatureTruncateHistory.retentionDuration", _interval, 86_400_000),
    Property("delta.enableFullRetentionRollback", _boolean, True),
    Property("delta.ignoreProtocolDefaults", _boolean, False),
    Property("delta.isolationLevel", _one_of("Serializable", "WriteSerializable", "SnapshotIsolation"), "Serializable"),
    Property("delta.randomizeFilePrefixes", _boolean, False),
    Property("delta.randomPrefixLength", _number(1), 2),
    Property("delta.sampleRetentionDuration", _interval, 7 * 86_400_000),
    Property("delta.setTransactionRetentionDuration", _interval, 0),
    Property("delta.tuneFileSizesForRewrites", _boolean, False),
)

#: Properties that ask of a writer what mica does not do.
REFUSED: tuple[Property[Any], ...] = (
    Property("delta.enableRowTracking", _boolean, False, "rowTracking", refused="mica tracks no rows"),
    Property("delta.rowTrackingSuspended", _boolean, False, "rowTracking", refused="mica tracks no rows"),
    Property("delta.enableTypeWidening", _boolean, False, "typeWidening", refused="mica widens no types"),
    Property("delta.enableIcebergCompatV1", _boolean, False, "icebergCompatV1", refused="mica writes no Iceberg"),
    Property("delta.enableIcebergCompatV2", _boolean, False, "icebergCompatV2", refused="mica writes no Iceberg"),
    Property("delta.enableIcebergCompatV3", _boolean, False, "icebergCompatV3", refused="mica writes no Iceberg"),
    Property(
        "delta.universalFormat.enabledFormats", _names, (), "icebergCompatV2", (("iceberg",), ("hudi",)),
        "mica writes no other formats",
    ),
    Property(
        "delta.compatibility.symlinkFormatManifest.enabled", _boolean, False, None, refused="mica writes no manifests"
    ),
    *(
        Property(name, _text, "", None, (), "mica makes the smallest protocol that the features need, which "
                 "delta.feature.NAME = supported names")
        for name in ("delta.minReaderVersion", "delta.minWriterVersion")
    ),
    *(
        Property(f"delta.coordinatedCommits.{name}-preview", _text, "", None, (), "mica commits to the log itself")
        for name in ("commitCoordinator", "commitCoordinatorConf", "tableConf")
    ),
    *(
        Property(f"delta.rowTracking.materialized{name}ColumnName", _text, "", "rowTracking", (), "mica tracks no rows")
        for name in ("RowId", "RowCommitVersion")
    ),
)  # fmt: skip

PROPERTIES: Mapping[str, Property[Any]] = {
    known.name: known
    for known in (
        *(one for one in list(globals().values()) if isinstance(one, Property)),
        *OF_OTHERS,
        *REFUSED,
    )
}
_BY_LOWER = {name.lower(): known for name, known in PROPERTIES.items()}

_FEATURE = "delta.feature."
_CONSTRAINTS = "delta.constraints."


def checked(changes: Mapping[str, str | None]) -> dict[str, str | None]:
    """Properties that are being set (None: removed) under their own spelling. Errors: INVALID_ARGUMENT for a value that
    one cannot have, UNKNOWN_TABLE_PROPERTY, UNSUPPORTED_WRITER_FEATURE for what mica does not do."""
    found = {}
    for given, text in changes.items():
        known = _BY_LOWER.get(given.lower())
        name = given if known is None else known.name
        found[name] = text
        if text is None:
            continue
        if not isinstance(text, str):
            raise UserError.bad_value(f"the table property {name}", text, "a string")
        if known is None:
            _check_unknown(name, text)
        else:
            _check_known(known, text)
    return found


def _check_known(known: Property[Any], text: str) -> None:
    if known is ENABLE_SHREDDING and text not in ("true", "false"):
        raise UserError.bad_value(f"the table property {known.name}", text, "true or false")
    try:
        value = known.parse(text)
    except ValueError as error:
        raise UserError.bad_value(f"the table property {known.name}", text, str(error)) from None
    asks = not known.asks or value in known.asks or (isinstance(value, tuple) and len(value) > 0)
    if known.refused is not None and asks:
        raise UnsupportedTableError(
            "UNSUPPORTED_WRITER_FEATURE",
            f"{known.name}={text}: {known.refused}",
            hint="Leave the property out.",
            feature=known.feature,
        )


def _check_unknown(name: str, text: str) -> None:
    lowered = name.lower()
    if lowered.startswith(_CONSTRAINTS):
        raise UnsupportedTableError(
            "UNSUPPORTED_WRITER_FEATURE",
            "mica checks no CHECK constraints, so it sets none",
            hint="Leave delta.constraints.* out.",
            feature="checkConstraints",
        )
    if lowered.startswith(_FEATURE):
        feature = name[len(_FEATURE) :]
        if features.feature_of(feature) is None:
            raise _unknown(name, [f"{_FEATURE}{one}" for one in features.FEATURES])
        if text.lower() not in ("supported", "enabled"):
            raise UserError.bad_value(f"the table property {name}", text, "supported")
    elif lowered.startswith(("delta.", "mica.")):
        raise _unknown(name, list(PROPERTIES))


def _unknown(name: str, known: list[str]) -> UserError:
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), list(by_lower), 1)
    refused = {one.name for one in REFUSED}
    family = sorted(
        one for one in known if one.partition(".")[0] == name.partition(".")[0].lower() and one not in refused
    )
    hint = f"Is {by_lower[near[0]]} meant?" if near else f"There are: {', '.join(family)}."
    return UserError("UNKNOWN_TABLE_PROPERTY", f"there is no table property {name!r}", hint=hint)


def needed_features(configuration: Mapping[str, str]) -> set[str]:
    """The table features that the properties of a table need."""
    needed = {
        known.feature
        for known in PROPERTIES.values()
        if known.feature is not None and known.name in configuration and known.of(configuration) in known.asks
    }
    return needed | {
        name[len(_FEATURE) :]
        for name, value in configuration.items()
        if name.startswith(_FEATURE) and value.lower() in ("supported", "enabled")
    }
