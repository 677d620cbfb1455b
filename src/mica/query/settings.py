"""Which settings of the session statements follow, and which texts they refuse because of a setting.

The rule: a setting that gives a text another meaning is obeyed, or the text is refused with the setting's name: other
rows would change than the user means. The engine applies the settings of expressions (ANSI, the time zone).
"""

from __future__ import annotations

import contextlib
import itertools
import re
from typing import TYPE_CHECKING, Any

from mica.engines.spark import chars
from mica.engines.spark.doors import own_sql
from mica.engines.spark.session import is_true
from mica.errors import UserError
from mica.expressions.parse import parse
from mica.expressions.tree import Column, walk
from mica.properties import FEATURE, PROPERTIES
from mica.query import variables
from mica.records import dataclass
from mica.schema.lexical import QUOTED_NAME, QUOTED_STRING, RAW_STRING, REST, SKIPPED
from mica.schema.types import ArrayType, DataType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

_DELTA = "spark.databricks.delta."
_WRITE = f"{_DELTA}write."
_DEFAULTS = f"{_DELTA}properties.defaults."
#: Defaults that mica ignores: a new table gets the lowest protocol that it needs.
_PROTOCOL = {"delta.minreaderversion", "delta.minwriterversion"}

_CASES = "spark.sql.caseSensitive"


@dataclass(frozen=True)
class _Refused:
    """A setting with which Spark reads texts in another way than `Table`: its usual value, and the texts it changes."""

    setting: str
    usual: str
    mark: re.Pattern[str]
    meaning: str
    hint: str
    #: Whether only the part that mica evaluates is searched; otherwise all of it, since mica parses all of it.
    ours: bool = False
    #: Whether strings and comments are searched too.
    everywhere: bool = False
    #: Whether only what is in strings is searched.
    inside: bool = False
    #: Whether the setting says nothing where ANSI is on.
    lenient: bool = False


_BY_QUERY = "Compute the values in a query: INSERT or MERGE … USING (SELECT …)"

#: Casts of values to the types of their columns, which no text shows: `refuse_other_casts` is asked where one is made.
_CASTS = _Refused(
    "spark.sql.storeAssignmentPolicy", "ANSI", re.compile(r"(?!)"),
    "other casts to the types of columns", "Cast the values to the types of the columns",
)  # fmt: skip
_REFUSED = (
    _Refused(
        "spark.sql.ansi.doubleQuotedIdentifiers", "false", re.compile('"'), "double quotes for names",
        'Write the statement without "',
    ),
    _Refused(
        "spark.sql.parser.escapedStringLiterals", "false", re.compile(r"\\"), "backslashes that escape nothing",
        "Write the statement without \\", everywhere=True,
    ),
    _Refused(
        "spark.sql.decimalOperations.allowPrecisionLoss", "true",
        re.compile(r"(?i)(?:\b(?!(?:set|insert|select|distinct)\b)\w+|[)`.])\s*[*/%+-]\s*[\w(`.]|\bdiv\b"),
        "other types for the results of operators", _BY_QUERY,
        ours=True,
    ),
    _Refused(
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled", "false",
        re.compile(r"(?i)(?<![\w.])(?:\d+\.?\d*|\.\d+)e[+-]?\d+(?!\w)"),
        "decimals for numbers with an exponent", "Write 1.1e1D", ours=True,
    ),
    _Refused(
        "spark.sql.legacy.literal.pickMinimumPrecision", "true",
        re.compile(
            r"(?i)(?:\b(?!(?:set|insert|select|distinct)\b)\w+|[)`.])\s*(?:[*/%+-]|\bdiv\b)\s*\d+(?![\w.])"
            r"|(?<![\w.])\d+\s*(?:[*/%+-]|\bdiv\b)\s*[\w(`]"
        ),
        "other types for integers beside decimals", "Write decimals: d * 2.0, or CAST(2 AS DECIMAL(1, 0))", ours=True,
    ),
    _Refused(
        "spark.sql.legacy.interval.enabled", "false", re.compile(r"(?i)\binterval\b"),
        "intervals of another type", _BY_QUERY, ours=True,
    ),
    _Refused(
        "spark.sql.chunkBase64String.enabled", "true", re.compile(r"(?i)\bbase64\s*\("),
        "one line of Base64", _BY_QUERY, ours=True,
    ),
    _Refused(
        "spark.sql.variant.allowDuplicateKeys", "false", re.compile(r"(?i)\b(?:try_)?parse_json\s*\("),
        "the last of the same keys of a JSON object", _BY_QUERY,
        ours=True,
    ),
    # Types of new columns: functions and casts are no types of a table.
    _Refused(
        "spark.sql.charAsVarchar", "false",
        re.compile(r"(?is)\A(?!\s*(?:delete|insert|merge|optimize|update|with)\b).*\b(?:char|character)\s*\(\s*\d"),
        "VARCHAR for CHAR", "Write VARCHAR(n)",
    ),
    # Types, casts and literals without a zone: some hours of a session's zone come twice or never.
    _Refused(
        "spark.sql.timestampType", "TIMESTAMP_LTZ",
        re.compile(r"(?i)\btimestamp\b(?!\s+as\s+of\b)|\bto_timestamp\s*\("),
        "another type for TIMESTAMP", "Write TIMESTAMP_NTZ or TIMESTAMP_LTZ", ours=True,
    ),
    # Functions with a pattern.
    _Refused(
        "spark.sql.legacy.timeParserPolicy", "CORRECTED",
        re.compile(r"""(?ix) \b(?:try_)?to_(?:date|timestamp(?:_ltz|_ntz)?) \s*\( (?![^(),]*\))
            | \b(?:date_format|from_unixtime) \s*\( | \b(?:to_)?unix_timestamp \s*\( (?!\s*\)) """),
        "other rules for patterns of times", _BY_QUERY,
        ours=True,
    ),
    _Refused(
        "spark.sql.legacy.consecutiveStringLiterals.enabled", "false", re.compile(r"''|\"\""),
        "two strings where a quote is doubled", r"Write \' for a quote in a string", inside=True,
    ),
    _Refused(
        "spark.sql.legacy.sizeOfNull", "true", re.compile(r"(?i)\b(?:size|cardinality)\s*\("),
        "NULL for the size of NULL", "Write the condition for NULL, too: a IS NULL", ours=True, lenient=True,
    ),
    # A string beside a date or a time; which column is one, the text does not say.
    _Refused(
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled", "false",
        re.compile(r"""(?ix) (?: \A | [^\w\s'"] | \b(?!(?:date|interval|timestamp(?:_ntz|_ltz)?|x)\b)\w+ ) \s* ['"]"""),
        "strings of dates and times where they are compared with strings",
        "Write DATE'2026-01-31' or TIMESTAMP'2026-01-31 12:00:00'", ours=True, lenient=True,
    ),
)  # fmt: skip

#: What is no word of a statement: a comment, a string, a name in backticks.
_NO_WORD = re.compile(rf"(?P<quoted>{RAW_STRING}|{QUOTED_STRING}|{QUOTED_NAME})|{SKIPPED}|{REST}")

#: A literal with a zone, which is TIMESTAMP_LTZ whatever TIMESTAMP is.
_ZONED = re.compile(
    r"""(?ix) \btimestamp (?=\s*(?P<quote>['"]) (?>(?:[^'":]|:(?!\d))*) :\d [^'"a-z+-]*+ [a-z+-] [^'"]*+ (?P=quote))"""
)


def refuse_other_meaning(spark: SparkSession, text: str, queries: Iterable[str] = ()) -> None:
    """Refuses a text that the session reads in another way than `Table`; `queries` are the parts of it that Spark runs.

    Errors: UNSUPPORTED_EXPRESSION.
    """
    variables.refuse_the_servers(text, spark)
    ours = text
    for query in filter(None, queries):
        ours = ours.replace(query, "")
    for one in _REFUSED:
        if one.mark.search(_searched(one, ours if one.ours else text)) and _differs(spark, one):
            raise _refusal(one)


def refuse_other_casts(spark: SparkSession) -> None:
    """Refuses rows whose values are cast to the types of their columns, if the session casts them by other rules.

    Errors: UNSUPPORTED_EXPRESSION.
    """
    if _differs(spark, _CASTS):
        raise _refusal(_CASTS)


def _refusal(one: _Refused) -> UserError:
    return UserError(
        "UNSUPPORTED_EXPRESSION",
        f"the session has {one.meaning} ({one.setting}), which statements that change a table do not follow",
        hint=f"{one.hint}, or set {one.setting} to {one.usual}.",
    )


def _searched(one: _Refused, part: str) -> str:
    """What of a text is searched."""
    if one.everywhere:
        return part
    if one.inside:
        return " ".join(found["quoted"][1:-1] for found in _NO_WORD.finditer(part) if found["quoted"])
    return _NO_WORD.sub(_emptied, _ZONED.sub("timestamp_ltz", part))


def _differs(spark: SparkSession, one: _Refused) -> bool:
    if _text(spark, one.setting, one.usual).lower() == one.usual.lower():
        return False
    return not (one.lenient and is_true(spark, "spark.sql.ansi.enabled"))


def refuse_other_blanks(spark: SparkSession, schema: StructType) -> None:
    """Refuses to change rows with CHAR columns if the session has them without their blanks.

    Errors: UNSUPPORTED_EXPRESSION.
    """
    if chars.padding(spark, schema) != (True, True):
        usual = [f"{name} to {value}" for name, value in (chars.AS_STRING, chars.READ_PADDED)]
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            "the session has CHAR columns without their blanks, which statements that change a table do not follow",
            hint=f"Set {' and '.join(usual)}.",
        )


def refuse_other_case(spark: SparkSession, columns: Iterable[str], texts: Iterable[str], schema: StructType) -> None:
    """Refuses names in another case than the table's if the session tells them apart. Errors: UNKNOWN_COLUMN."""
    if not is_true(spark, _CASES, "false"):
        return
    for parts in itertools.chain(map(_parts, columns), itertools.chain.from_iterable(map(_named, texts))):
        given, own = ".".join(parts), ".".join(_spelled(parts, schema))
        if given != own:
            raise UserError(
                "UNKNOWN_COLUMN",
                f"the table has a column {own!r}, no {given!r}: the session tells cases apart ({_CASES})",
                hint=f"Write {own}, or set {_CASES} to false.",
                column=given,
            )


def _parts(column: str) -> tuple[str, ...]:
    return next(_named(column), ())


def _named(text: str) -> Iterator[tuple[str, ...]]:
    """The columns and fields that an expression names; none if it is a query."""
    with contextlib.suppress(UserError):
        yield from (found.names for found in walk(parse(text)) if isinstance(found, Column))


def _spelled(parts: tuple[str, ...], schema: StructType) -> Iterator[str]:
    """The parts of a name as the table spells those that it has."""
    inside: DataType | None = schema
    for part in parts:
        found = inside.find(part) if isinstance(inside, StructType) else None
        yield part if found is None else found.name
        match inside, part.lower():
            case ArrayType(inner), "element":
                inside = inner
            case MapType(key, value), "key" | "value" as step:
                inside = key if step == "key" else value
            case _:
                inside = None if found is None else found.type


def _emptied(found: re.Match[str]) -> str:
    """A string or name without its content; a blank for a comment, and for a string that never ends."""
    return " " if found["quoted"] is None else found[0][-1] * 2


def moment(spark: SparkSession, text: str) -> int:
    """The time of TIMESTAMP AS OF as the session reads it, in ms since the epoch. Errors: INVALID_ARGUMENT."""
    found = own_sql(spark, f"SELECT unix_millis(CAST(({text}) AS TIMESTAMP_LTZ))").collect()[0][0]
    if found is None:
        raise UserError.bad_value("TIMESTAMP AS OF", text, "a time such as '2026-01-31 12:00:00'")
    return int(found)


def evolves(spark: SparkSession) -> bool:
    """Whether INSERT and MERGE add the columns that the table lacks, as after WITH SCHEMA EVOLUTION."""
    return is_true(spark, f"{_DELTA}schema.autoMerge.enabled", "false")


def is_dynamic(spark: SparkSession) -> bool:
    """Whether INSERT OVERWRITE replaces only the partitions that get rows, unless PARTITION gives all their columns a
    value."""
    return _text(spark, "spark.sql.sources.partitionOverwriteMode", "static").lower() == "dynamic"


def is_delta_default(spark: SparkSession) -> bool:
    """Whether a table without USING is one of delta."""
    return _text(spark, "spark.sql.sources.default", "parquet").lower() == "delta"


def user_metadata(spark: SparkSession) -> str | None:
    """The text for the history of every commit."""
    return spark.conf.get(f"{_DELTA}commitInfo.userMetadata", None) or None


def txn(spark: SparkSession) -> tuple[str, int] | None:
    """The `txn` of an idempotent write, as the calls of `Table` take it. Errors: INVALID_ARGUMENT."""
    names = (f"{_WRITE}txnAppId", f"{_WRITE}txnVersion")
    app, version = (spark.conf.get(name, None) for name in names)
    if app is None and version is None:
        return None
    if app is None or version is None or not version.isdecimal():
        raise UserError.bad_value(" and ".join(names), (app, version), "an application and a version, or neither")
    return app, int(version)


def reset_txn(spark: SparkSession) -> None:
    """Unsets the version of `txn` after a write, if the session asks for it: the next write must set its own."""
    if is_true(spark, f"{_WRITE}txnVersion.autoReset.enabled", "false"):
        spark.conf.unset(f"{_WRITE}txnVersion")


def keeps_retention(spark: SparkSession) -> bool:
    """Whether VACUUM refuses a shorter retention than the table's."""
    return _text(spark, f"{_DELTA}retentionDurationCheck.enabled", "true").lower() != "false"


def with_defaults(spark: SparkSession, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table: those of its statement, and the session's defaults of others. Defaults that are
    not known are for other engines, as delta-spark has it."""
    settings: Any = spark.conf.getAll
    found = {f"delta.{name.removeprefix(_DEFAULTS)}": v for name, v in settings.items() if name.startswith(_DEFAULTS)}
    own = {name.lower() for name in properties} | _PROTOCOL
    return {**{name: v for name, v in found.items() if name.lower() not in own and _is_known(name)}, **properties}


def as_options(spark: SparkSession, given: Mapping[str, Any], *, stream: bool = False) -> dict[str, str]:
    """The options of a write of the format that say what the session says, but for those that are given (by their names
    in lower case). The `txn` of a stream is its own. Errors: INVALID_ARGUMENT."""
    found = with_defaults(spark, {})
    if evolves(spark):
        found["mergeSchema"] = "true"
    if (text := user_metadata(spark)) is not None:
        found["userMetadata"] = text
    if not stream and not {"txnappid", "txnversion"} & given.keys() and (own := txn(spark)) is not None:
        found |= {"txnAppId": own[0], "txnVersion": str(own[1])}
    return {name: value for name, value in found.items() if name.lower() not in given}


def _is_known(name: str) -> bool:
    return name.lower().startswith(FEATURE) or name.lower() in {known.lower() for known in PROPERTIES}


def _text(spark: SparkSession, name: str, default: str) -> str:
    return str(spark.conf.get(name, default))
