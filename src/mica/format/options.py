"""The options of `format("mica")`.

The rule: a table of names, so that a misspelt one is found: Spark passes everything to a source, other settings too,
and ignores what nobody reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from mica import late
from mica.errors import MicaError, UserError
from mica.log.time_travel import parse_time
from mica.properties import CODEC, split_commas
from mica.records import dataclass
from mica.schema.spelling import unquoted
from mica.storage import split_scheme
from mica.variant import kernel

#: What the options mean, by name.
OPTIONS: Mapping[str, str] = {
    "path": "the table",
    "where": "read: only the rows for which this SQL predicate is true",
    "pushFilters": "read: take Spark's filters of plain columns (`true`), for a frame or view that a query reads once "
    "and filters: Spark 4.2 and 4.3 use a query's filters again for the next one",
    "columns": "read: only these columns of the table, separated by commas",
    "typedPaths": "read: paths as columns, `time_us BIGINT, collection STRING AS v:commit.collection`",
    "paths": "read: the same in SQL's OPTIONS (…); beside .load(path) Spark keeps this name for itself",
    "timeZone": "the time zone of casts from texts to timestamps, UTC by default; a replaceWhere over times, and a "
    "timestampAsOf or its like without a zone, need the option; rules of the table follow the session without it",
    "versionAsOf": "read: this version",
    "timestampAsOf": "read: the version of this time",
    "readChangeFeed": "read, streams: what was inserted, deleted and updated, instead of rows (`true`)",
    "readChangeData": "the same, by the name that it had before",
    "startingVersion": "change feed, streams: the first version, or `latest`",
    "startingTimestamp": "change feed, streams: the first time",
    "endingVersion": "change feed: the last version",
    "endingTimestamp": "change feed: the last time",
    "maxFilesPerTrigger": "streams: at most so many files in a batch; 1000 by default",
    "maxBytesPerTrigger": "streams: about so many bytes in a batch",
    "skipChangeCommits": "streams: leave out commits that delete or change rows, instead of an error (`true`)",
    "ignoreDeletes": "streams: leave out commits that only remove files, instead of an error (`true`)",
    "ignoreChanges": "streams: give all rows of files that a commit writes again, changed or not, instead of an error "
    "(`true`)",
    "failOnDataLoss": "streams: `false` passes over commits that were cleaned up before they were read, instead of an "
    "error",
    "mergeSchema": "write: add the columns that the table lacks (`true`)",
    "overwriteSchema": "overwrite: the table gets the columns of the rows, and the partitions of partitionBy (`true`)",
    "replaceWhere": "overwrite: only the rows for which this predicate is true; one of times needs timeZone",
    "replaceUsing": "overwrite: only the rows that have the same values in these columns as a new one; after "
    "`mica.enable(spark)` in a classic session",
    "replaceOn": "the same: only the rows for which this condition on a row of the table and a new one is true, "
    "`t.id <=> s.id`; `s` is the alias of the DataFrame",
    "targetAlias": "with replaceOn: the alias of the table, `t`",
    "partitionOverwriteMode": "overwrite: `dynamic` replaces only the partitions that get rows; `static` by default: a "
    "source does not see the session's setting of this name",
    "partitionBy": "write: the partition columns of a new table, separated by commas",
    "txnAppId": "write: the application of an idempotent write; with txnVersion",
    "txnVersion": "write: its version",
    "userMetadata": "write: a text for the history of the table",
    "compression": "write: the codec of the files of this write, instead of the table's",
    "checkpointLocation": "stream writes: the folder of the stream's state",
}

_NO_TRACKING = (
    "Leave it out: a stream ends where the schema changes, and goes on with the new one when it is loaded again."
)
_NO_ORDER = (
    "The first rows come in the order of the log. Leave it out if the query has no watermark; otherwise begin with "
    "startingVersion=0, whose commits come in their order."
)

#: Options of delta-spark that we do not have and must not ignore, because other rows would be read or written: the
#: value that changes nothing (None: there is none), and what to do instead.
ELSEWHERE: Mapping[str, tuple[str | None, str]] = {
    "dataChange": ("true", "Table.optimize joins and orders files without a change of rows."),
    "excludeRegex": (None, "Option where leaves out rows: where=\"p <> 'old'\"."),
    "schemaTrackingLocation": (None, _NO_TRACKING),
    "schemaLocation": (None, _NO_TRACKING),
    "ignoreFileDeletion": ("false", "Use ignoreDeletes, ignoreChanges or skipChangeCommits."),
    "withEventTimeOrder": ("false", _NO_ORDER),
}

#: Options that are a number of files or bytes.
COUNTS = ("maxFilesPerTrigger", "maxBytesPerTrigger")

#: Options with these prefixes are properties of a new table, and settings of an object store.
PROPERTIES, STORAGE = ("delta.", "mica."), "storage."


@dataclass(frozen=True)
class Options:
    """The options of one read or write; names are case-insensitive."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """Errors: INVALID_ARGUMENT for a name that is nearly one of ours, for one of `ELSEWHERE`, or for a bad number:
        Spark shows what is refused here better than what a stream refuses when it starts."""
        known = {name.lower(): name for name in OPTIONS}
        elsewhere = {name.lower(): found for name, found in ELSEWHERE.items()}
        for name, value in given.items():
            harmless, hint = elsewhere.get(name.lower(), (value, ""))
            if harmless is None or value.lower() != harmless.lower():
                raise UserError("INVALID_ARGUMENT", f"format mica has no option {name}={value}", hint=hint)
            if name.lower() in known | elsewhere or name.lower().startswith((*PROPERTIES, STORAGE)):
                continue
            near = late.difflib.get_close_matches(name.lower(), known, 1, 0.75)
            if near:
                raise UserError(
                    "INVALID_ARGUMENT",
                    f"format mica has no option {name!r}",
                    hint=f"The nearest one is {known[near[0]]}.",
                )
        options = cls({name.lower(): value for name, value in given.items()})
        if options.flag("readChangeData"):
            options = cls({**options.given, "readchangefeed": "true"})
        for name in COUNTS:
            options.number(name)
        return options

    def text(self, name: str) -> str | None:
        """The value of an option."""
        return self.given.get(name.lower())

    def flag(self, name: str) -> bool:
        """Whether it is `true`. Errors: INVALID_ARGUMENT."""
        value = (self.text(name) or "false").lower()
        if value not in ("true", "false"):
            raise UserError.bad_value(name, value, "true or false")
        return value == "true"

    @property
    def dynamic(self) -> bool:
        """Whether an overwrite replaces only the partitions that get rows. Errors: INVALID_ARGUMENT."""
        value = (self.text("partitionOverwriteMode") or "static").lower()
        if value not in ("static", "dynamic"):
            raise UserError.bad_value("partitionOverwriteMode", value, "static or dynamic")
        return value == "dynamic"

    def remakes(self, *, overwrite: bool) -> bool:
        """Whether the rows' columns become the table's. Errors: INVALID_ARGUMENT beside what keeps other rows."""
        if not self.flag("overwriteSchema") or not overwrite:
            return False
        if self.dynamic or self.text("replaceWhere") is not None:
            other = "partitionOverwriteMode=dynamic" if self.dynamic else "replaceWhere"
            raise UserError(
                "INVALID_ARGUMENT",
                f"overwriteSchema replaces the columns of all rows, and {other} keeps some rows",
                hint="Leave out one of them. mergeSchema only adds columns.",
            )
        return True

    @property
    def codec(self) -> str | None:
        """How files of the write are compressed. Errors: INVALID_ARGUMENT."""
        value = self.text("compression")
        if value is None:
            return None
        try:
            return CODEC.values.parse(value)
        except ValueError:
            raise UserError.bad_value("compression", value, CODEC.values.expected) from None

    def number(self, name: str, default: int | None = None) -> int | None:
        """A whole number of 1 or more; bytes may have a unit (`10m`). Errors: INVALID_ARGUMENT."""
        value = self.text(name)
        if value is None:
            return default
        units = {"k": 10, "m": 20, "g": 30, "t": 40, "p": 50} if "Bytes" in name else {}
        lower = value.strip().lower().removesuffix("b") if units else value.strip()
        digits, shift = (lower[:-1], units[lower[-1]]) if lower[-1:] in units else (lower, 0)
        if not digits.isdecimal() or int(digits) < 1:
            raise UserError.bad_value(name, value, "a whole number of 1 or more")
        return int(digits) << shift

    def version(self, name: str) -> int | None:
        """A version. Errors: INVALID_ARGUMENT."""
        value = self.text(name)
        if value is not None and not value.strip().isdecimal():
            raise UserError.bad_value(name, value, "a version")
        return None if value is None else int(value)

    def moment(self, name: str) -> datetime | None:
        """A time. Errors: INVALID_ARGUMENT, also for a time without a zone: delta-spark reads it in the session's zone,
        which a source does not see, and UTC could give another version."""
        value = self.text(name)
        if value is None:
            return None
        found = parse_time(value, name)
        return found if found.tzinfo is not None else self.in_zone(found, f"{name}={value}")

    def in_zone(self, found: datetime, given: str) -> datetime:
        """A time without a zone, which `given` gives, in that of the option. Errors: INVALID_ARGUMENT."""
        zone = self.text("timeZone")
        if zone is None:
            raise UserError(
                "INVALID_ARGUMENT",
                f"{given} has no time zone, and a Python source does not see the session's",
                hint=f'Give the zone with the time, {found.isoformat(" ")}Z for UTC, or by option("timeZone", …).',
            )
        try:
            offset = kernel.fixed_offset(zone)
            fixed = None if offset is None else timezone(timedelta(seconds=offset))
            return found.replace(tzinfo=fixed or ZoneInfo(zone))
        except (MicaError, ValueError, KeyError, OSError):
            raise UserError.bad_value("timeZone", zone, "a zone such as Europe/Berlin") from None

    def names(self, name: str) -> list[str] | None:
        """Names separated by commas."""
        value = self.text(name)
        return None if value is None else [unquoted(part) for part in split_commas(value)]

    @property
    def path(self) -> str:
        """The table. Errors: INVALID_ARGUMENT for none, and for a relative one over Spark Connect, whose server runs
        Python in a folder of the session's: a table in it goes with the session."""
        found = self.text("path") or self.text("location")
        if not found and (self.text("paths") or "").startswith("["):  # as Spark tells them of a list
            raise UserError(
                "INVALID_ARGUMENT",
                f"format mica reads one table, got {self.text('paths')}",
                hint="Load each of them, and join the rows by unionByName.",
            )
        if not found:
            raise UserError(
                "INVALID_ARGUMENT",
                "format mica needs a path",
                hint='Use .load(path), .save(path), .start(path) or option("path", …): Spark tells a Python source no '
                "name of a table. By its name mica.sql makes and writes one: CREATE TABLE … USING mica AS SELECT …, "
                "INSERT INTO … SELECT …, FROM a view of the rows.",
            )
        path = local_path(found)
        if split_scheme(path)[0] is None and not Path(path).is_absolute() and _IN_ARTIFACTS.search(str(Path.cwd())):
            message = f"over Spark Connect {path!r} is a path in a folder of the server's that goes with the session"
            raise UserError("INVALID_ARGUMENT", message, hint="Give an absolute path.", path=path)
        return path

    @property
    def storage(self) -> dict[str, str] | None:
        """Settings of the object store, given with the prefix `storage.`."""
        found = {name.removeprefix(STORAGE): value for name, value in self.given.items() if name.startswith(STORAGE)}
        return found or None

    def properties(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Properties of a new table; their names are not case-insensitive."""
        return {name: str(value) for name, value in given.items() if name.startswith(PROPERTIES)}


#: Where Spark runs the Python of a session that has files of its own (`SparkFiles`).
_IN_ARTIFACTS = late.pattern(r"/userFiles-[0-9a-f-]{36}/")


def local_path(place: str) -> str:
    """A place as Hadoop spells local ones (`file:/data`) as a path; others stay."""
    return place.removeprefix("file:") if place.startswith("file:/") and not place.startswith("file://") else place
