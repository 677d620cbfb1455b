"""Table properties and table features: one table each, with the meaning, values and default of every property, and
what mica does about every feature.

The rule: properties are read by `Property.of` only. The log keeps the text as it was given, without spaces around it
and with words as Delta spells them. An unreadable text (another engine may have set it) counts as not set, unless the
row says otherwise. mica's own properties begin with `mica.`. `log/configuration.py` decides which may be set and which
table features they add.

The properties of `OF_OTHERS` are kept for other engines and ignored by mica. One with `refused` requires what mica
does not support, so it cannot be set. `docs/properties.md` is printed from these tables (`scripts/docs.py`).

Source: Delta protocol; the properties of delta-spark 4.4 (`DeltaConfigs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar

import orjson

from mica import late
from mica.records import dataclass

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Values(Generic[T_co]):
    """The values of a property: a description for people, and the parser of its text (ValueError if invalid)."""

    expected: str
    parse: Callable[[str], T_co]


#: In microseconds.
_UNITS = {
    "microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6,
    "day": 86_400 * 10**6, "week": 7 * 86_400 * 10**6,
}  # fmt: skip
#: Times are milliseconds of 64 bits, and intervals are taken from them.
_LONGEST_INTERVAL = 2**62
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _interval(text: str) -> int:
    """Parses `interval 30 days` (the word is optional) to ms."""
    text = re.sub(r"^\s*interval\s", "", text.lower()).strip()
    # The whole text must match: the end of "-1 days" or "1.5 days" is another interval.
    if re.fullmatch(r"(?:\+?\d+\s+[a-z]+(?:\s+|$))+", text) is None:
        raise ValueError
    found = [(count, unit.removesuffix("s")) for count, unit in re.findall(r"(\d+)\s+([a-z]+)", text)]
    if any(unit not in _UNITS for _, unit in found):
        raise ValueError
    milliseconds = sum(int(count) * _UNITS[unit] for count, unit in found) // 1000
    if milliseconds >= _LONGEST_INTERVAL:
        raise ValueError
    return milliseconds


def _size(text: str) -> int:
    """Parses `128MB`, `128m`, `134217728` to bytes, in powers of 1024 as in Spark."""
    found = re.fullmatch(r"\s*(\d{1,15})\s*([kmgt]?)i?b?\s*", text.lower())
    if found is None or int(found[1]) == 0:
        raise ValueError
    return int(found[1]) * _SIZES[found[2]]


#: What a list of columns and paths is made of: a name in backticks, a key in quotes, with or without escapes, or one
#: character.
_PARTS = late.pattern(
    r"""`(?:[^`]|``)*`
      | \[\s*(?>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")\s*\]
      | \['[^']*'\] | \["[^"]*"\] | .""",
    re.DOTALL | re.VERBOSE,
)


def split_commas(text: str) -> list[str]:
    """Splits a list at its commas, except commas in backticks, and in quotes in brackets."""
    parts = [""]
    for part in _PARTS.findall(text):
        if part == ",":
            parts.append("")
        else:
            parts[-1] += part
    return [part.strip() for part in parts if part.strip()]


def parse_names(text: str) -> tuple[tuple[str, ...], ...]:
    """Parses comma-separated column names, dotted into structs; backticks protect commas and dots: "a, s.x, `b.c`"."""
    columns = []
    for part in re.findall(r"(?:`(?:[^`]|``)*`|[^,`])+", text):
        names = re.findall(r"`((?:[^`]|``)*)`|([^.`\s][^.`]*)", part.strip())
        if names:
            columns.append(tuple(quoted.replace("``", "`") if quoted else plain.strip() for quoted, plain in names))
    return tuple(columns)


def _expressions(text: str) -> Mapping[str, str]:
    found = orjson.loads(text)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError
    return found


def number(least: int, most: int = 2**31 - 1) -> Values[int]:
    """Whole numbers."""

    def parse(text: str) -> int:
        if re.fullmatch(r"\s*-?\d{1,19}\s*", text) is None or not least <= int(text) <= most:
            raise ValueError
        return int(text)

    return Values(f"a whole number from {least}", parse)


def one_of(*words: str, also: Mapping[str, str] = MappingProxyType({})) -> Values[str]:
    """Accepts one of the words, or another name of it (`also`), in any case."""
    by_lower = {word.lower(): word for word in words} | dict(also)

    def parse(text: str) -> str:
        if text.strip().lower() not in by_lower:
            raise ValueError
        return by_lower[text.strip().lower()]

    return Values(f"{', '.join(words[:-1])} or {words[-1]}", parse)


_TRUE_OR_FALSE = one_of("true", "false")
BOOLEAN = Values("true or false", lambda text: _TRUE_OR_FALSE.parse(text) == "true")
INTERVAL = Values("an interval such as `interval 30 days`", _interval)
BYTES = Values("a size above 0 such as `128MB`", _size)
TEXT = Values("a text", str)
NAMES = Values[tuple[tuple[str, ...], ...] | None]("columns, separated by commas: a, s.x, `b.c`", parse_names)
#: Only splits the list: `stats/named.py` parses the paths, which this layer does not know.
PATHS = Values[tuple[str, ...] | None](
    "column:path, separated by commas: v:a.b, v:['c d']", lambda text: tuple(split_commas(text))
)
EXPRESSIONS = Values('a JSON object of names to expressions, such as {"day": "v:time::date"}', _expressions)

#: Prefixes of properties with free names: supported features, and CHECK constraints.
FEATURE = "delta.feature."
CONSTRAINTS = "delta.constraints."
#: What describes a table: not kept as a property, but as its description, as delta-spark does.
COMMENT = "comment"
#: The collation of strings in new columns that name none: where delta-spark keeps DEFAULT COLLATION.
DEFAULT_COLLATION = "collation"


@dataclass(frozen=True)
class Property(Generic[T]):
    """A known property. `feature` is the table feature that it requires, `asks` the values that do; `refused` says why
    mica rejects these values (any value, if `asks` is empty)."""

    name: str
    values: Values[T]
    #: The default as text; None: no value.
    default: str | None
    #: The meaning, one sentence.
    meaning: str
    feature: str | None = None
    asks: tuple[Any, ...] = (True,)
    refused: str | None = None
    #: The value of an unreadable text; None: the default.
    unreadable: T | None = None

    def of(self, configuration: Mapping[str, str]) -> T:
        """Returns its value in a table."""
        text = configuration.get(self.name)
        if text is not None:
            try:
                return self.values.parse(text)
            except ValueError:
                if self.unreadable is not None:
                    return self.unreadable
        # If the default is None, T includes None.
        return self.values.parse(self.default) if self.default is not None else None  # type: ignore[return-value]

    def refuses(self, value: T) -> bool:
        """Whether mica cannot do what the value asks of writers; any list that is not empty asks."""
        asks = not self.asks or value in self.asks or (isinstance(value, tuple) and len(value) > 0)
        return self.refused is not None and asks


Mode = Literal["none", "name", "id", "unknown"]
_MODE: Values[Mode] = Values("none, name or id", one_of("none", "name", "id").parse)  # type: ignore[arg-type]

APPEND_ONLY = Property("delta.appendOnly", BOOLEAN, "false", "Rows are added, never removed.", "appendOnly")
CHECKPOINT_INTERVAL = Property(
    "delta.checkpointInterval", number(1), "10", "The number of versions between checkpoints."
)
CHECKPOINT_POLICY = Property(
    "delta.checkpointPolicy", one_of("classic", "v2"), "classic", "The form of checkpoints.", "v2Checkpoint", ("v2",)
)
STATS_AS_JSON = Property(
    "delta.checkpoint.writeStatsAsJson", BOOLEAN, "true", "Checkpoints hold statistics as JSON texts."
)
STATS_AS_STRUCT: Property[bool | None] = Property(
    "delta.checkpoint.writeStatsAsStruct", BOOLEAN, None,
    "Checkpoints hold statistics as columns; without it they do where they hold no texts.",
)  # fmt: skip
SKIPPING_COLUMNS = Property(
    "delta.dataSkippingNumIndexedCols", number(-1), "32",
    "The number of leaf columns, from the first, that have statistics; -1 for all.",
)  # fmt: skip
SKIPPING_NAMES = Property(
    "delta.dataSkippingStatsColumns", NAMES, None, "The columns that have statistics, instead of the first ones."
)
DELETED_FILE_RETENTION = Property(
    "delta.deletedFileRetentionDuration", INTERVAL, "interval 7 days",
    "How long removed files are kept: checkpoints list them, and vacuum does not delete them.",
)  # fmt: skip
LOG_RETENTION = Property(
    "delta.logRetentionDuration", INTERVAL, "interval 30 days",
    "How long log files are kept after a newer checkpoint has replaced them.",
)  # fmt: skip
TRANSACTION_RETENTION: Property[int | None] = Property(
    "delta.setTransactionRetentionDuration", INTERVAL, None,
    "How long the transactions of applications are kept (`txn` of writes); without it all are kept.",
)  # fmt: skip
EXPIRED_LOG_CLEANUP = Property(
    "delta.enableExpiredLogCleanup", BOOLEAN, "true", "Writing a checkpoint deletes expired log files."
)
CHECKPOINT_PROTECTION = Property(
    "delta.requireCheckpointProtectionBeforeVersion", number(0, 2**63 - 1), "0",
    "Log files of versions before this one may not be deleted.", "checkpointProtection", (),
    refused="only the engine that drops a feature may set it",
)  # fmt: skip
TRUNCATE_RETENTION = Property(
    "delta.dropFeatureTruncateHistory.retentionDuration", INTERVAL, "interval 24 hours",
    "How old history must be to be deleted when a feature is dropped with `truncate_history`.",
)  # fmt: skip
ISOLATION_LEVEL = Property(
    "delta.isolationLevel", one_of("Serializable", "WriteSerializable"), "Serializable",
    "Which commits conflict: under WriteSerializable a delete, update, merge or overwrite may count as done before an "
    "append that was committed meanwhile.",
)  # fmt: skip
IN_COMMIT_TIMESTAMPS = Property(
    "delta.enableInCommitTimestamps", BOOLEAN, "false", "Commits hold their own timestamps.", "inCommitTimestamp"
)
ICT_VERSION: Property[int | None] = Property(
    "delta.inCommitTimestampEnablementVersion", number(0, 2**63 - 1), None,
    "The first version with in-commit timestamps; set by the writer.",
)  # fmt: skip
ICT_TIMESTAMP: Property[int | None] = Property(
    "delta.inCommitTimestampEnablementTimestamp", number(0, 2**63 - 1), None,
    "The time of that version; set by the writer.",
)  # fmt: skip
# Only the exact word turns it on: "not present, or anything but `true`: a writer must not shred".
ENABLE_SHREDDING = Property(
    "delta.enableVariantShredding", Values("true or false", lambda text: text == "true"), "false",
    "Variants may be shredded; a new table with VARIANT columns has it.", "variantShredding",
)  # fmt: skip
COLUMN_MAPPING_MODE = Property(
    "delta.columnMapping.mode", _MODE, "none",
    "Columns have other names in files, so that they can be renamed and dropped; an existing table can get `name`.",
    "columnMapping", ("name", "id"), unreadable="unknown",
)  # fmt: skip
MAX_COLUMN_ID = Property(
    "delta.columnMapping.maxColumnId",
    number(0, 2**63 - 1),
    "0",
    "The highest id that a mapped column ever had; set by the writer.",
)
ENABLE_ROW_TRACKING = Property(
    "delta.enableRowTracking", BOOLEAN, "false",
    "Rows keep ids and versions (`_metadata.row_id`, `_metadata.row_commit_version`) in whatever writes them again.",
    "rowTracking",
)  # fmt: skip
ROW_ID_COLUMN: Property[str | None] = Property(
    "delta.rowTracking.materializedRowIdColumnName", TEXT, None,
    "The column of ids in rewritten files; set by the writer.",
)  # fmt: skip
ROW_VERSION_COLUMN: Property[str | None] = Property(
    "delta.rowTracking.materializedRowCommitVersionColumnName", TEXT, None,
    "The column of versions in rewritten files; set by the writer.",
)  # fmt: skip
#: What belongs to one table alone: another one that is made like it gets its own.
SET_BY_WRITERS: tuple[Property[Any], ...] = (
    MAX_COLUMN_ID, ROW_ID_COLUMN, ROW_VERSION_COLUMN, ICT_VERSION, ICT_TIMESTAMP, CHECKPOINT_PROTECTION,
)  # fmt: skip
NAMES_OF_WRITERS = frozenset(known.name for known in SET_BY_WRITERS)

ENABLE_TYPE_WIDENING = Property(
    "delta.enableTypeWidening", BOOLEAN, "false", "Columns may get wider types; files keep theirs.", "typeWidening"
)
ENABLE_DELETION_VECTORS = Property(
    "delta.enableDeletionVectors", BOOLEAN, "false",
    "Deletes and updates may mark rows as deleted in a file that stays (deletion vectors).", "deletionVectors",
)  # fmt: skip
ENABLE_CHANGE_DATA = Property(
    "delta.enableChangeDataFeed", BOOLEAN, "false",
    "Changes of rows can be read (`Table.changes`): deletes and updates write change files.",
    "changeDataFeed",
)  # fmt: skip
TARGET_FILE_SIZE = Property("delta.targetFileSize", BYTES, "128MB", "The target size of data files.")
AUTO_COMPACT: Property[str | None] = Property(
    "delta.autoOptimize.autoCompact", one_of("true", "false", "auto", "legacy"), None,
    "A write that leaves 50 small files in a partition is followed by a commit that joins them.",
)  # fmt: skip
AUTO_OPTIMIZE = Property(
    "delta.autoOptimize", BOOLEAN, "false", "The same, where `delta.autoOptimize.autoCompact` is not set."
)
#: Spark's names of codecs, where the Parquet specification has others for what is written.
_CODECS = {"uncompressed": "none", "lz4": "lz4_raw"}
CODEC = Property(
    "delta.parquet.compression.codec",
    one_of("zstd", "snappy", "gzip", "lz4_raw", "brotli", "none", also=_CODECS), "zstd",
    "How data files are compressed. Spark comes without a decoder of brotli.",
)  # fmt: skip
VARIANT_STATS_PATHS = Property(
    "mica.variantStats.maxPaths", number(0), "32", "The maximum of paths per VARIANT column with bounds in the log."
)
VARIANT_STATS_BYTES = Property(
    "mica.variantStats.maxBytes", number(0), "4096", "The maximum size of a file's statistics with them, in bytes."
)
VARIANT_STATS_NAMES = Property(
    "mica.variantStats.paths", PATHS, None, "The paths that have bounds, instead of the most frequent ones."
)
BLOOM_PATHS = Property("mica.bloomFilter.paths", PATHS, None, "The paths whose columns get bloom filters.")
SHREDDING_RULES: Property[str | None] = Property(
    "mica.shredding", Values("rules: commit.record.*: infer, features.*: skip, price: decimal(18,2)", str),
    None, "Which paths become columns when files are written, as rules ([the guide](guides/paths.md)).",
)  # fmt: skip
TYPED_PATHS: Property[str | None] = Property(
    "mica.paths", TEXT, None, "Typed paths, the columns of readers that know no Variant: `t BIGINT AS v:time`."
)
INGEST_COLUMNS = Property(
    "mica.ingest.columns", EXPRESSIONS, "{}", "How ingests compute the columns beside the document."
)

#: Properties that mica keeps for other engines and ignores.
OF_OTHERS: tuple[Property[Any], ...] = tuple(
    Property(name, values, default, meaning)
    for name, values, default, meaning in (
        ("delta.autoOptimize.optimizeWrite", BOOLEAN, "false", "Writes shuffle rows into fewer files."),
        ("delta.checkpointRetentionDuration", INTERVAL, None, "How long old checkpoints are kept."),
        ("delta.enableFullRetentionRollback", BOOLEAN, "true", "A restore goes back only as far as files are kept."),
        ("delta.ignoreProtocolDefaults", BOOLEAN, "false", "The session's protocol defaults do not apply."),
        ("delta.randomizeFilePrefixes", BOOLEAN, "false", "Paths of data files begin with a random prefix."),
        ("delta.randomPrefixLength", number(1), "2", "How long that prefix is."),
        ("delta.sampleRetentionDuration", INTERVAL, "interval 7 days", "How long samples of data are kept."),
        ("delta.tuneFileSizesForRewrites", BOOLEAN, "false", "Files are made smaller for frequent rewrites."),
    )
)  # fmt: skip

#: The protocol's versions are no properties of the table: mica checks them, and takes the smallest protocol with the
#: features. The documentation of Delta sets them beside the properties that need them.
_SMALLEST = "mica makes the smallest protocol with the features, whatever is asked for."
PROTOCOL_VERSIONS = tuple(
    Property(name, one_of(*versions), None, f"The version of the protocol for {side}: {_SMALLEST}")
    for name, versions, side in (
        ("delta.minReaderVersion", "123", "readers"), ("delta.minWriterVersion", "1234567", "writers"),
    )
)  # fmt: skip
OF_OTHERS += PROTOCOL_VERSIONS

_NO_ROWS, _NO_ICEBERG = "mica does not stop tracking rows", "mica does not write Iceberg"
_COMMITS = "mica commits to the log itself"

#: Properties that require what mica cannot write: name, values, meaning, feature, the values that require it, why.
_Refused = tuple[str, Values[Any], str, str | None, tuple[Any, ...], str]
_NOT_DONE: tuple[_Refused, ...] = (
    ("delta.rowTrackingSuspended", BOOLEAN, "New rows have no ids.", "rowTracking", (True,), _NO_ROWS),
    ("delta.enableIcebergCompatV1", BOOLEAN, "Files suit Iceberg.", "icebergCompatV1", (True,), _NO_ICEBERG),
    ("delta.enableIcebergCompatV2", BOOLEAN, "Files suit Iceberg.", "icebergCompatV2", (True,), _NO_ICEBERG),
    ("delta.enableIcebergCompatV3", BOOLEAN, "Files suit Iceberg.", "icebergCompatV3", (True,), _NO_ICEBERG),
    ("delta.universalFormat.enabledFormats", NAMES, "The table is readable as another format too.", None,
     ((("iceberg",),), (("hudi",),)), "mica does not write other formats"),
    ("delta.compatibility.symlinkFormatManifest.enabled", BOOLEAN, "Writes list the table's files in a manifest.", None,
     (True,), "mica does not write manifests"),
    ("delta.coordinatedCommits.commitCoordinator-preview", TEXT, "A service coordinates commits.", None, (), _COMMITS),
    ("delta.coordinatedCommits.commitCoordinatorConf-preview", TEXT, "Its settings.", None, (), _COMMITS),
    ("delta.coordinatedCommits.tableConf-preview", TEXT, "Its settings for the table.", None, (), _COMMITS),
)  # fmt: skip
REFUSED: tuple[Property[Any], ...] = tuple(
    Property(name, values, None, meaning, feature, asks, refused)
    for name, values, meaning, feature, asks, refused in _NOT_DONE
)

PROPERTIES: Mapping[str, Property[Any]] = {
    known.name: known
    for known in (
        *(one for one in list(globals().values()) if isinstance(one, Property)),
        *OF_OTHERS,
        *REFUSED,
    )
}


_WITHOUT_FEATURE = tuple(known for known in REFUSED if known.feature is None)


def refused_of(configuration: Mapping[str, str]) -> Property[Any] | None:
    """The property of a table that asks of writers what mica cannot do; those with a feature ask only where the table
    has it."""
    asked = (known for known in _WITHOUT_FEATURE if known.name in configuration)
    return next((known for known in asked if known.refuses(known.of(configuration))), None)


def _never(_: Mapping[str, str]) -> bool:
    return False


def _on(feature: str) -> Callable[[Mapping[str, str]], bool]:
    """Whether a property asks for a feature that mica refuses."""
    asking = [known for known in REFUSED if known.feature == feature]
    return lambda configuration: any(known.of(configuration) in known.asks for known in asking)


@dataclass(frozen=True)
class Feature:
    """One table feature. `reader` and `writer` are the legacy versions that imply it (0: none; it then needs 3 or
    7 by name). `blocks_writes` decides from the properties whether a table uses a feature that mica cannot write; a
    table that merely supports the feature can be written."""

    name: str
    previews: tuple[str, ...] = ()
    for_readers: bool = False
    reader: int = 0
    writer: int = 0
    needs: tuple[str, ...] = ()
    blocks_writes: Callable[[Mapping[str, str]], bool] = _never
    why: str = ""


FEATURES: Mapping[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("appendOnly", writer=2),
        # What these four ask of rows is bound when rows are written, and refused there if mica cannot (write/rules.py).
        Feature("invariants", writer=2),
        Feature("checkConstraints", writer=3),
        Feature("changeDataFeed", writer=4),
        Feature("generatedColumns", writer=4),
        Feature("columnMapping", for_readers=True, reader=2, writer=5),
        Feature("identityColumns", writer=6),
        Feature("timestampNtz", for_readers=True),
        Feature("domainMetadata"),
        Feature("variantType", ("variantType-preview",), for_readers=True),
        Feature("variantShredding", ("variantShredding-preview",), for_readers=True, needs=("variantType",)),
        Feature("deletionVectors", for_readers=True),
        Feature("v2Checkpoint", for_readers=True),
        Feature("vacuumProtocolCheck", for_readers=True),
        Feature("inCommitTimestamp"),
        Feature("checkpointProtection"),
        Feature("allowColumnDefaults"),
        Feature("collations", ("collations-preview",), needs=("domainMetadata",)),
        Feature("typeWidening", ("typeWidening-preview",), for_readers=True),
        Feature(
            "rowTracking", needs=("domainMetadata",), blocks_writes=_on("rowTracking"), why="row tracking is suspended"
        ),
        Feature("clustering", needs=("domainMetadata",)),
        Feature("icebergCompatV1", needs=("columnMapping",), blocks_writes=_on("icebergCompatV1"), why="it is on"),
        Feature("icebergCompatV2", needs=("columnMapping",), blocks_writes=_on("icebergCompatV2"), why="it is on"),
        Feature("materializePartitionColumns"),
    )
}

_BY_ANY_NAME = {name: feature for feature in FEATURES.values() for name in (feature.name, *feature.previews)}


def feature_of(name: str) -> Feature | None:
    """Returns a feature by its final or preview name."""
    return _BY_ANY_NAME.get(name)
