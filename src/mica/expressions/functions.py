"""The functions of expressions.

The rule: a function is one row of the table: the types its arguments are cast to, its result type, and how it is
evaluated over arrays. It is null if an argument is, unless `of_null` is set; it never depends on a row's position.

| function | arguments | returns |
|---|---|---|
| like, `x LIKE y ESCAPE z`, `x ILIKE y ESCAPE z` | string, string, a constant | boolean |
| startswith, endswith, contains | two strings, or two binary | boolean |
| to_date; to_timestamp, try_… | string, date or time, a pattern; also a number | date; timestamp |
| date_format; from_unixtime | timestamp, a constant; bigint, maybe a constant | string |
| unix_timestamp, to_unix_timestamp | string, date or time, maybe a pattern | bigint |
| date_trunc; trunc | a constant, timestamp; date, a constant | timestamp; date |
| rlike, regexp, regexp_like, `x RLIKE y` | string, a constant pattern | boolean |
| regexp_extract; regexp_replace | string, a constant pattern, a group; a replacement | string |
| split | string, a constant pattern, maybe a number | array of strings |
| round, bround, floor, ceil, ceiling | a number, maybe a constant | see `rounding` |
| xxhash64; hash | any plain types | bigint; int |
| regexp_count, regexp_instr | string, a constant pattern | int |
| typeof | a type without names in it | string |
| array; map; struct, named_struct | values; constant keys and values; names and values | that |
| `x[y]`; `x.name` | array, map or struct; struct | the value there |
| md5; sha2 | binary; also a constant number of bits | string |
| size, cardinality; array_size | array or map; array | int |
| array_contains | array, a value of its type | boolean |
| element_at | array and int, map of strings and string | the value there |
| isnan | a number | boolean: false for NULL |
| abs; greatest, least | a number; two and more of one kind | that type |
| concat, `a || b` | strings, or all binary | string, or binary |
| lower, upper; trim, ltrim, rtrim | string; maybe the characters too | string |
| length, char_length | string or binary | int |
| year, month, day, dayofmonth | date | int |
| hour, minute, second | timestamp_ntz | int |
| date_add, date_sub | date, int | date |
| add_months | date, int | date |
| datediff, date_diff | two dates | int |
| timestamp_micros, timestamp_millis | an integer | timestamp |
| unix_micros, unix_millis, unix_seconds | timestamp | bigint |
| to_json | variant | string |
| parse_json, try_parse_json | string | variant |
| to_variant_object | struct or array, without maps and Variants in it | variant |
| variant_insert, variant_array_append, try_… | variant, a constant path, anything that casts to variant | variant |
| variant_set, try_variant_set | the same, and whether to create what is missing (a constant) | variant |
| variant_delete | variant, constant paths | variant |
| variant_strip_nulls | variant, a constant boolean | variant |
| is_variant_null | variant | boolean: true for a JSON null; false for a missing value |
| schema_of_variant | variant | string: the physical type; only this function distinguishes an integer from a decimal |

Arithmetic has separate rules: `arithmetic`. Those of a kind stand in tables of their own, whose files say what they do:
`bits`, `text_parts`, `encodings`, `date_parts`, `lists`, `reals`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mica.expressions import (
    bits,
    date_parts,
    digests,
    encodings,
    generic,
    intervals,
    lists,
    murmur,
    nested,
    reals,
    regexps,
    rounding,
    strings,
    text_parts,
    texts,
    time_patterns,
    times,
    truncation,
    variants,
    xxhash,
)
from mica.expressions.java_patterns import JavaPattern
from mica.expressions.signatures import FALLS, RISES, UNORDERED, Function
from mica.expressions.tree import Call, Literal, Op
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
)
from mica.variant.plain import of_structs


def pattern_of(call: Call) -> strings.Pattern | None:
    """Returns the constant pattern that the value's bytes must match: of LIKE with a constant, of startswith, of RLIKE.

    Raises ValueError for an invalid pattern.
    """
    if call.collation is not None:
        return None
    constants = [a.value for a in call.args[1:] if isinstance(a, Literal) and isinstance(a.value, str)]
    if len(constants) != len(call.args) - 1:
        return None
    if call.name == "rlike":
        prefix, whole = JavaPattern.read(*constants).prefix
        # What follows the prefix is not known: ONE stands for it.
        return strings.Pattern((prefix, strings.ANY, *(() if whole else (strings.ONE,)))) if prefix else None
    if call.name == "startswith":
        return strings.Pattern((constants[0], strings.ANY) if constants[0] else (strings.ANY,))
    return strings.Pattern.read(*constants) if call.name == "like" else None


def _second(check: Callable[..., None]) -> Callable[..., None]:
    """The check of the constants behind the first argument."""
    return lambda _first, *others: check(*others) if others else None


_TO_DATE = Function(
    (VOID, STRING), DATE, time_patterns.to_date, optional=1, constants=(1,), resolve=generic.to_time(DATE),
    check=_second(time_patterns.check_read), needs=("timezone",),
)  # fmt: skip
_TO_TIMESTAMP = replace(
    _TO_DATE, result=TIMESTAMP, evaluate=time_patterns.to_timestamp, resolve=generic.to_time(TIMESTAMP)
)
_ROUND = Function(
    (VOID, VOID),
    VOID,
    rounding.rounded("half_up"),
    optional=1,
    constants=(1,),
    resolve=rounding.to_places,
    needs=("types", "result", "ansi"),
    order=(RISES,),
    wraps=True,
)
_FLOOR = Function(
    (VOID, VOID),
    VOID,
    rounding.whole("down"),
    optional=1,
    constants=(1,),
    resolve=rounding.to_whole,
    needs=("types", "result"),
    order=(RISES,),
)
_PUT = (VARIANT, STRING, VARIANT)
_SET = Function((*_PUT, BOOLEAN), VARIANT, variants.put("set"), optional=1, constants=(1, 3), anything=(2,))
_INSERT = Function(_PUT, VARIANT, variants.put("insert"), constants=(1,), anything=(2,))
_APPEND = Function(_PUT, VARIANT, variants.put("append"), constants=(1,), anything=(2,))

FUNCTIONS: Mapping[str, Function] = {
    **bits.FUNCTIONS,
    **text_parts.FUNCTIONS,
    **encodings.FUNCTIONS,
    **date_parts.FUNCTIONS,
    **lists.FUNCTIONS,
    **reals.FUNCTIONS,
    "like": Function((STRING, STRING, STRING), BOOLEAN, strings.like, optional=1, constants=(2,), compares=True),
    "startswith": Function((STRING, STRING), BOOLEAN, strings.starts_with, binary=True, compares=True),
    "endswith": Function((STRING, STRING), BOOLEAN, strings.ends_with, binary=True, compares=True),
    "contains": Function((STRING, STRING), BOOLEAN, strings.contains, binary=True, compares=True),
    "size": Function((VOID,), INTEGER, generic.size, of_null=True, resolve=generic.of_collection, needs=("ansi",)),
    "array_size": Function((VOID,), INTEGER, generic.array_size, resolve=generic.of_array),
    "array_contains": Function(
        (VOID, VOID), BOOLEAN, generic.array_contains, elements=True, resolve=generic.holds_value, needs=("types",)
    ),
    "element_at": Function((VOID, VOID), VOID, generic.element_at, resolve=generic.at_place, needs=("ansi",)),
    "isnan": Function((VOID,), BOOLEAN, generic.is_nan, of_null=True, resolve=generic.of_real),
    "abs": Function((VOID,), VOID, generic.absolute, resolve=generic.of_number, needs=("ansi", "types")),
    "greatest": Function(
        (VOID,), VOID, generic.chosen(Op.GT), repeats=True, of_null=True, resolve=generic.of_common, needs=("types",)
    ),
    "least": Function(
        (VOID,), VOID, generic.chosen(Op.LT), repeats=True, of_null=True, resolve=generic.of_common, needs=("types",)
    ),
    "to_date": _TO_DATE,
    "try_to_date": replace(_TO_DATE, evaluate=variants.tried(_TO_DATE.evaluate), lenient=True),
    "to_timestamp": _TO_TIMESTAMP,
    "try_to_timestamp": replace(_TO_TIMESTAMP, evaluate=variants.tried(_TO_TIMESTAMP.evaluate), lenient=True),
    "date_format": Function(
        (VOID, STRING),
        STRING,
        time_patterns.date_format,
        constants=(1,),
        resolve=generic.of_time(TIMESTAMP, STRING),
        check=_second(time_patterns.check_printed),
        needs=("timezone",),
        order=(RISES,),
        orders=time_patterns.keeps_order,
        domain=time_patterns.FOUR_DIGITS,
    ),
    "from_unixtime": Function(
        (VOID, STRING),
        STRING,
        time_patterns.from_unixtime,
        optional=1,
        constants=(1,),
        resolve=generic.of_seconds,
        check=_second(time_patterns.check_printed),
        needs=("timezone",),
    ),
    "unix_timestamp": Function(
        (VOID, STRING),
        LONG,
        time_patterns.unix_timestamp,
        optional=1,
        constants=(1,),
        resolve=generic.to_seconds,
        check=_second(time_patterns.check_read),
        needs=("timezone",),
    ),
    "date_trunc": Function(
        (STRING, VOID),
        TIMESTAMP,
        truncation.timestamps,
        constants=(0,),
        resolve=generic.of_unit_and_time,
        needs=("timezone",),
        order=(UNORDERED, RISES),
    ),
    "trunc": Function(
        (VOID, STRING), DATE, truncation.dates, constants=(1,), resolve=generic.of_time(DATE, DATE), order=(RISES,)
    ),
    "rlike": Function((STRING, STRING), BOOLEAN, regexps.like, constants=(1,), check=_second(regexps.check)),
    "regexp_extract": Function(
        (STRING, STRING, INTEGER),
        STRING,
        regexps.extract,
        optional=1,
        constants=(1, 2),
        check=_second(regexps.check_extract),
    ),
    "regexp_count": Function(
        (STRING, STRING), INTEGER, regexps.count, constants=(1,), check=_second(regexps.check_replace)
    ),
    "regexp_instr": Function((STRING, STRING), INTEGER, regexps.place, constants=(1,), check=_second(regexps.check)),
    "typeof": Function((VOID,), STRING, generic.type_name, of_null=True, resolve=generic.of_named, needs=("types",)),
    "regexp_replace": Function(
        (STRING, STRING, STRING, INTEGER),
        STRING,
        regexps.replace,
        optional=1,
        constants=(1, 2, 3),
        check=_second(regexps.check_replace),
    ),
    "split": Function(
        (STRING, STRING, INTEGER),
        ArrayType(STRING),
        regexps.split,
        optional=1,
        constants=(1, 2),
        check=_second(regexps.check_split),
    ),
    "round": _ROUND,
    "bround": replace(_ROUND, evaluate=rounding.rounded("half_even")),
    "floor": _FLOOR,
    "ceil": replace(_FLOOR, evaluate=rounding.whole("up")),
    "xxhash64": Function(
        (VOID,), LONG, xxhash.xxhash64, repeats=True, of_null=True, resolve=xxhash.of_plain(LONG), needs=("types",)
    ),
    "hash": Function(
        (VOID,), INTEGER, murmur.murmur, repeats=True, of_null=True, resolve=xxhash.of_plain(INTEGER), needs=("types",)
    ),
    "array": Function(
        (VOID,),
        VOID,
        nested.array,
        optional=1,
        repeats=True,
        of_null=True,
        resolve=nested.of_elements,
        needs=("result",),
    ),
    "map": Function(
        (VOID,),
        VOID,
        nested.map_of,
        optional=1,
        repeats=True,
        of_null=True,
        constants=range(0, 1000, 2),
        resolve=nested.of_entries,
        check=nested.check_keys,
        needs=("result",),
    ),
    "named_struct": Function(
        (VOID,),
        VOID,
        nested.struct,
        repeats=True,
        of_null=True,
        constants=range(0, 1000, 2),
        resolve=nested.of_fields,
        needs=("result",),
    ),
    "[]": Function((VOID, VOID), VOID, nested.at_brackets, resolve=nested.in_brackets, needs=("ansi",)),
    ".": Function((VOID, STRING), VOID, nested.at_point, resolve=nested.named_field, needs=("result",)),
    "md5": Function((BINARY,), STRING, digests.md5, resolve=generic.of_bytes),
    "sha2": Function((BINARY, INTEGER), STRING, digests.sha2, constants=(1,), resolve=generic.of_bytes),
    "concat": Function((STRING,), STRING, texts.concat, binary=True, repeats=True),
    "lower": Function((STRING,), STRING, texts.lower),
    "upper": Function((STRING,), STRING, texts.upper),
    "trim": Function((STRING, STRING), STRING, texts.trim, optional=1),
    "ltrim": Function((STRING, STRING), STRING, texts.ltrim, optional=1),
    "rtrim": Function((STRING, STRING), STRING, texts.rtrim, optional=1),
    "length": Function((STRING,), INTEGER, texts.length, binary=True),
    texts.TOO_LONG: Function((STRING, STRING), BOOLEAN, texts.too_long, of_null=True),
    "year": Function((DATE,), INTEGER, times.part("year"), order=(RISES,)),
    "month": Function((DATE,), INTEGER, times.part("month"), order=(RISES,), within="Y"),
    "day": Function((DATE,), INTEGER, times.part("day"), order=(RISES,), within="M"),
    "hour": Function((TIMESTAMP_NTZ,), INTEGER, times.part("hour"), order=(RISES,), within="D"),
    "minute": Function((TIMESTAMP_NTZ,), INTEGER, times.part("minute"), order=(RISES,), within="h"),
    "second": Function((TIMESTAMP_NTZ,), INTEGER, times.part("second"), order=(RISES,), within="m"),
    "date_add": Function((DATE, INTEGER), DATE, times.date_add, order=(RISES,), wraps=True),
    "date_sub": Function((DATE, INTEGER), DATE, times.date_sub, order=(RISES,), wraps=True),
    "add_months": Function((DATE, INTEGER), DATE, intervals.add_months, order=(RISES,)),
    "datediff": Function((DATE, DATE), INTEGER, times.datediff, order=(RISES, FALLS), wraps=True),
    "timestamp_micros": Function((LONG,), TIMESTAMP, times.from_unit(1), exact=True, order=(RISES,)),
    "timestamp_millis": Function((LONG,), TIMESTAMP, times.from_unit(1_000), exact=True, order=(RISES,)),
    "unix_micros": Function((TIMESTAMP,), LONG, times.to_unit(1), exact=True, order=(RISES,)),
    "unix_millis": Function((TIMESTAMP,), LONG, times.to_unit(1_000), exact=True, order=(RISES,)),
    "unix_seconds": Function((TIMESTAMP,), LONG, times.to_unit(1_000_000), exact=True, order=(RISES,)),
    "to_json": Function((VARIANT,), STRING, variants.to_json, needs=("timezone",)),
    "parse_json": Function((STRING,), VARIANT, variants.parse_json, exact=True),
    "try_parse_json": Function((STRING,), VARIANT, variants.tried(variants.parse_json), exact=True),
    "to_variant_object": Function((VOID,), VARIANT, of_structs, resolve=variants.of_nested),
    "variant_get": Function((VARIANT, STRING), VARIANT, variants.get, constants=(1,)),
    "variant_set": _SET,
    "variant_insert": _INSERT,
    "variant_array_append": _APPEND,
    "variant_delete": Function(
        (VARIANT, STRING), VARIANT, variants.delete, constants=range(1, 1000), repeats=True, of_null=True
    ),
    "variant_strip_nulls": Function((VARIANT, BOOLEAN), VARIANT, variants.strip_nulls, optional=1, constants=(1,)),
    "try_variant_set": replace(_SET, evaluate=variants.tried(_SET.evaluate)),
    "try_variant_insert": replace(_INSERT, evaluate=variants.tried(_INSERT.evaluate)),
    "try_variant_array_append": replace(_APPEND, evaluate=variants.tried(_APPEND.evaluate)),
    "is_variant_null": Function((VARIANT,), BOOLEAN, variants.is_null, of_null=True),
    "schema_of_variant": Function((VARIANT,), STRING, variants.schema_of),
}

#: Other names of functions.
ALIASES: Mapping[str, str] = {
    "char_length": "length", "character_length": "length", "len": "length", "lcase": "lower", "ucase": "upper",
    "substr": "substring", "dayofmonth": "day", "dateadd": "date_add", "date_diff": "datediff", "cardinality": "size",
    "regexp": "rlike", "regexp_like": "rlike", "ceiling": "ceil", "to_unix_timestamp": "unix_timestamp",
    "chr": "char", "getbit": "bit_get", "sha": "sha1", "pow": "power", "signum": "sign",
    "to_timestamp_ltz": "to_timestamp",
}  # fmt: skip
