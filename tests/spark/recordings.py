"""Values and texts on which mica must agree with Spark, and how Spark's answers are written down.

The rule: `native/kernel/tests/data` holds what a real Spark said, so that the kernel's own tests need no JVM;
`test_values.py` asks the live one. Write the recordings anew with `python -m tests.spark.recordings`.
"""

from __future__ import annotations

import re
import struct
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from tests.support import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATA = ROOT / "native" / "kernel" / "tests" / "data"
ZONE = "America/Los_Angeles"
TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(38,10)": pa.decimal128(38, 10),
    "decimal(3,0)": pa.decimal128(3, 0),
    "decimal(38,0)": pa.decimal128(38, 0),
    "decimal(38,38)": pa.decimal128(38, 38),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

# fmt: off
TEXTS: list[bytes] = [
    b"1 2", b"1x", b"{} x", b"[1]]", b"", b" ", b"01", b"-01", b"00", b"-", b"+1", b".5", b"1.", b"1.e5",
    b"1e5", b"1E+5", b"1e", b"-0", b"-0.0", b"0.0", b"0.000", b"-0e0", b"1e400", b"1e-400", b"-1e400", b"NaN",
    b"Infinity", b"-Infinity", b"-INF", b"'a'", b"{a:1}", b"{'a':1}", b"[1,]", b"[,1]", b'{"a":1,}', b"[1 2]",
    b"// c\n1", b"/* c */1", b'"a\tb"', b'"a\nb"', b'"a\x01b"', b'"a\x7fb"', b'"\\x41"', b'"\\u00e9"',
    b'"\\ud83d\\ude00"', b'"\\ud83d"', b'"\\ude00"', b'"\\ud83dx"', b'"a\\ud83d\\ud83d\\ude00"', b'"\\u12"',
    b'"\\u00G0"', b'"\\/"', b'"\\\'"', b'"\\0"', b'"\xff"', b'"\xc3("', b'"\xed\xa0\x80"', b'"\xf0\x9f\x98"',
    b'"\xf0\x9f"', b'"\xe2\x82x"', b'"\xc0\x80"', b'"\xf4\x90\x80\x80"', b'"\xf8\x88\x80\x80\x80"',
    b"\xef\xbb\xbf1", b'{"\xff":1}', b'{"\xff":1,"\xfe":2}', b'{"\\ud800":1}', b'{"\\ud800":1,"?":2}',
    b'{"a":1,"a":2}', b'{"a":1,"\\u0061":2}', b'{"a":{"a":1}}', b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775808", b"-9223372036854775809", b"99999999999999999999999999999999999999",
    b"999999999999999999999999999999999999999", b"-99999999999999999999999999999999999999",
    b"0.00000000000000000000000000000000000001", b"0.000000000000000000000000000000000000001",
    b"0.0000000000000000000000000000000000000000", b"0.00000000000000000000000000000000000000",
    b"1.0000000000000000000000000000000000000", b"1.00000000000000000000000000000000000000", b"1.0", b"1.50",
    b"127", b"128", b"-128", b"-129", b"32767", b"32768", b"2147483648", b"999999999.9", b"99999999.9",
    b"1234567890.12345", b"123456789012345678.9", b"0.123456789", b"0.1234567890", b"0.0000000001",
    b"1.7976931348623157e308", b"4.9e-324", b"1e23", b"1.0e10", b"1e7", b"1e6", b"1.2345e-3", b"1e-4",
    b"123456789e-5", b"true", b"True", b"tru", b"truex", b"true,", b"nul", b"null", b"nullx",
    b"\t\r\n 1\t\r\n ", b"\x0b1", b"\xc2\xa01", b"\x00", b"1\x00", b'"\x00"', b"[[[]]]", b'{"":1}',
    b'{"a" : 1 , "b":2}', b'{"a"}', b'{"a":}', b"{1:2}", b'{"a":1', b"[1", b'"abc', b'"abc\\', b"}", b"]", b":",
    b",", b'"\\u0000"', b'{"b":1,"a":2}', b'{"\xf0\x9f\x98\x80":1,"\xef\xbf\xbd":2}', b"1 ,", b"1]", b"1}",
    b'1"', b"1/", b'"a""b"', b'"a"b', b"[1]x", b"12a", b"1.5x", b"1.5 x", b"1e5x", b"-a", b"- 1", b"[1x]",
    b"[truex]", b"[true x]", b'["a"x]', b"0x10", b"1_000", b"[-]", b'{"a":1 "b":2}', b"1 x", b"1\nx", b"1#",
    b"[1#c\n]",
]
# fmt: on
TEXTS += [sign + digits for sign in (b"", b"-") for digits in (b"9" * 38, b"9" * 39, b"1" + b"0" * 400)]
TEXTS += [b"0." + b"0" * zeros + last for zeros in (36, 37, 38, 39) for last in (b"", b"1")]
TEXTS += [b"1." + b"0" * zeros for zeros in (37, 38)]
TEXTS += [b'"' + b"x" * length + b'"' for length in (63, 64)]

DECIMALS = """
0.00 1.00 123.45 -123.55 0.5 -0.5 1.5 2.5 0.005 0.015 -0.005 2147483647.9 2147483648.5 -2147483648.9
99999999.994 99999999.995 9223372036854775807.5 9223372036854775808 -9223372036854775808.5
12345678901234567890123456789012345678 0.00000000000000000000000000000000000001 1732206349.123456789
-1732206349.1234567 127.9 128.0 -128.9 -129.0 100 1000 999.4 999.5 9223372036854.775807 9223372036854.775808 0.1
123456789.123 1234567.0 100000000000000000000000 0.999999999999999999 -7.99999999999999999999 127.99999999999999999
""".split()
DOUBLES = """
0.0 -0.0 0.5 1.5 2.5 -1.5 -0.5 NaN Infinity -Infinity 1e10 1e18 1e19 -1e19 1e-7 1e-3 1e38 9.9e37 1e39
1.7976931348623157e308 4.9e-324 123456.789 127.9 128.0 -128.9 -129.0 2147483647.9 2147483648.0 -2147483648.9
9223372036854775807.0 -9223372036854775808.0 0.1 1234567.0 12345678.0 1.0E7 9999999.999 3.4028235e38 3.5e38
1732206349.123456 -1732206349.1234567 1.005 1.015 99999999.994 99999999.995 123.445 1e-40
2.2250738585072014E-308 9223372036854.775 9223372036855.0 1e-10 123456789012345680000.0 0.001 0.00099
""".split()
FLOATS = """
0.0 -0.0 0.1 1.5 2.5 NaN Infinity -Infinity 3.4e38 16777216 1e10 127.9 128 2147483520 2147483648 9.2233720e18
1.4e-45 1.1754944e-38 1234567.0 12345678.0 0.001 1e-4 1732206349.5 1.005 33333.335
""".split()

# fmt: off
INTEGERS: list[int] = [
    0, 1, -1, 5, 127, 128, -128, -129, 32767, 32768, 2147483647, 2147483648, -2147483649, 9223372036854775807,
    -9223372036854775807, 9223372036855, 9223372036854, -9223372036855, 1732206349, -1732206349, 99999999,
    100000000, 16777217, 9007199254740993, 999,
]
STRINGS: list[str] = [
    "5", " 5 ", "+5", "-5", "5.", ".5", "5.9", "-5.9", "1e3", "1E3", "1e-2", "0x10", "1_0", "", " ", "5L", "5d",
    "5D", "5f", "5F", "1e3d", "NaN", "nan", "NAN", "Infinity", "infinity", "inf", "INF", "+Infinity", "-inf",
    "-Infinity", "+inf", "+NaN", "1e400", "1e-400", "127", "128", "-128", "-129", "2147483648",
    "9223372036854775807", "9223372036854775808", "99999999999999999999", "1.", ".", "-", "+", "e5", "1e",
    "1e+5", "00012", "-0", "-0.0", "- 5", "5 5", "t", "T", "true", " TRUE ", "y", "Y", "yes", "YES", "1", "f",
    "F", "false", "n", "no", "0", "tr", "on", "off", "null", "abc", "2024-02-29", "2023-02-29", "2024-2-9",
    "2024-02", "2024", "2024-", "24-01-01", "024-01-01", "2024-13-01", "2024-02-30", "2024-00-10", "2024-01-00",
    "2024-02-29T", "2024-02-29 10:00:00", "2024-02-29Tjunk", "2024-02-29 junk", "2024-02-29junk", "2024-02T",
    "2024T", "+2024-01-01", "-2024-01-01", "12345-01-01", "+12345-01-01", "1234567-01-01", "12345678-01-01",
    "0000-01-01", "2024-001-01", "2024-01-001", "2024-01-011", "2024/01/01", "20240101", "epoch", "now",
    "today", "5881580-07-11", "5881580-07-12", "-5877641-06-23", "-5877641-06-22", "2024-01-01 10:11:12",
    "2024-01-01T10:11:12", "2024-01-01t10:11:12", "2024-01-01T10:11:12.123456", "2024-01-01T10:11:12.1234567",
    "2024-01-01T10:11:12.123456789", "2024-01-01T10:11:12.1234567891", "2024-01-01T10:11:12.12345678912345",
    "2024-01-01T10:11:12Z", "2024-01-01T10:11:12z", "2024-01-01T10:11:12 Z", "2024-01-01T10:11:12.5Z",
    "2024-01-01T10:11:12+01:00", "2024-01-01T10:11:12 +01:00", "2024-01-01T10:11:12+1:0",
    "2024-01-01T10:11:12+1:00", "2024-01-01T10:11:12+01:0", "2024-01-01T10:11:12+0100",
    "2024-01-01T10:11:12+01", "2024-01-01T10:11:12+1", "2024-01-01T10:11:12-07:30", "2024-01-01T10:11:12-18:00",
    "2024-01-01T10:11:12-19:00", "2024-01-01T10:11:12+01:00:15", "2024-01-01T10:11:12+010015",
    "2024-01-01 10:11:12UTC", "2024-01-01 10:11:12 UTC", "2024-01-01 10:11:12 utc", "2024-01-01 10:11:12 GMT",
    "2024-01-01 10:11:12 GMT+8", "2024-01-01 10:11:12 GMT+08:00", "2024-01-01 10:11:12 UTC+8",
    "2024-01-01 10:11:12 UTC-08:30", "2024-01-01 10:11:12 UT+08:00", "2024-01-01 10:11:12 UTC0",
    "2024-01-01 10:11:12 America/New_York", "2024-01-01 10:11:12America/New_York",
    "2024-01-01 10:11:12 america/new_york", "2024-01-01 10:11:12 PST", "2024-01-01 10:11:12 EST",
    "2024-01-01 10:11:12 CET", "2024-01-01 10:11:12 Foo/Bar", "2024-01-01 1:2:3", "2024-01-01 10:11",
    "2024-01-01 10", "2024-01-01 10:", "2024-01-01 10:11:", "2024-01-01 ", "10:11:12", "T10:11:12", "T1:2",
    "1:2", "10:11", "2024-01-01 24:00:00", "2024-01-01 23:59:60", "2024-01-01 10:60:00", "2024-01-01 010:11:12",
    "2024-03-10 02:30:00", "2024-11-03 01:30:00", "2024-03-10 02:30:00 America/Los_Angeles",
    "2024-01-01 10:11:12.", "2024-01-01 10:11:12.Z", "2024-01-01 10:11:12. UTC", "2024-01-01 10:11:12.1 +02:30",
    "2024-01-01 10:11 +02:30", "2024-01-01 10 +02:30", "2024-01-01 10Z", "2024-01-01 10:11Z", "2024-01-01Z",
    "2024-01-01 Z", "2024-01Z", "2024-01-01+01:00", "294247-01-10T04:00:54.775807Z",
    "294247-01-10T04:00:54.775808Z", "-290308-12-21T19:59:05.224192Z", "-290308-12-21T19:59:05.224191Z",
    "294248-01-01T00:00:00Z", "2024 10:00:00", "2024-01-01  10:00:00", "1700000000", "1582-10-10",
    "1582-10-10 00:00:00", "1883-11-18 12:00:00", "1900-01-01 00:00:00", "2100-07-01 12:00:00",
    "2500-07-01 12:00:00", "9999-12-31 23:59:59.999999", "  2024-01-01 10:11:12  ", "2024-01-01 10:11:12 +1 ",
    "2024-01-01 10:11:12+", "2024-01-01 10:11:12 +24:00", "-0001-01-01 00:00:00", "-2024-01-01 10:11:12",
    "+2024-01-01 10:11:12", "2024-01-01-01", "2024-01-01 10-11-12", "2024:01:01", "1.5e3", "123.456",
    "-123.455", "99999999.995", "1234567890123456789012345678901234567890",
    "0.000000000000000000000000000000000000001", "1e37", "1e38", "1e39", "1E-39", ".e5", "5e.", "++5", "1,000",
    "$5", "0x1p3", "0X1P3", "1p3", "\uff11", "5.5.5", "1e5.5", "--5", "12e0", "true1", "  ", "\xa05", "\u20035",
    "\t5\n", "\x005", "5\x00", "\x1f5\x7f", "h\xe9llo", "2024-01-01\xa0", "2024-01-01 10:11:12\u2003",
]
# fmt: on
DATES = ["1970-01-01", "2024-02-29", "9999-12-31", "0001-01-01", "1900-01-01", "2024-03-10", "2500-07-01"]
TIMES = [
    *["1970-01-01 00:00:00", "2024-02-29 10:11:12.123456", "2024-02-29 10:11:12.1", "1969-12-31 23:59:59.999999"],
    *["9999-12-31 23:59:59.999999", "0001-01-01 00:00:00", "2024-03-10 02:30:00", "2024-11-03 01:30:00"],
    *["1883-11-18 12:00:00", "1850-01-01 01:02:03.000004", "2024-06-01 12:00:00", "2100-07-01 12:00:00"],
    *["2500-07-01 12:00:00", "2038-07-01 00:00:00"],
]
VALUES = [
    *[f"{i}L" for i in INTEGERS],
    "5Y",
    *[f"{d}BD" for d in DECIMALS],
    *[f"double('{d}')" for d in DOUBLES],
    *[f"float('{d}')" for d in FLOATS],
    *["true", "false"],
    *["parse_json('null')", """parse_json('{"a":[1,2.50,"x"],"b":null}')""", "parse_json('[]')", "parse_json('{}')"],
    *[f"date'{d}'" for d in DATES],
    *[f"date_add(date'{day}', {days})" for day, days in [("9999-12-31", 366), ("0001-01-01", -400)]],
    *[f"date_add(date'1970-01-01', {days})" for days in (2147483647, -2147483647)],
    *[f"timestamp'{t}'" for t in TIMES],
    *[f"timestamp_ntz'{t}'" for t in TIMES],
    *[f"timestamp_micros({t})" for t in (9223372036854775807, -9223372036854775807, 128000000, -1)],
    *[f"x'{b}'" for b in ("", "41", "ff", "c3a9", "00" * 16, "616263")],
]
"""SQL expressions; STRINGS come on top of them."""


def spell(column: pa.ChunkedArray) -> list[str]:
    """One text per value, exact: bits of doubles, numbers of days and microseconds, bytes as hex; `-` for null."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        values = column.cast(pa.int64()).to_pylist()
    elif pa.types.is_date32(kind):
        values = column.cast(pa.int32()).to_pylist()
    else:
        values = column.to_pylist()

    def one(value: Any) -> str:
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, float):
            return struct.pack(">f" if pa.types.is_float32(kind) else ">d", value).hex()
        return format(value, "f") if pa.types.is_decimal(kind) else str(value).lower()

    return ["-" if value is None else "=" + one(value) for value in values]


def variants(spark: SparkSession) -> DataFrame:
    """All values as the column `v`, numbered by `i`."""
    array = ",".join(f"cast({value} as variant)" for value in VALUES)
    typed = spark.sql(f"select posexplode(array({array})) as (i, v)")
    texts = spark.createDataFrame(list(enumerate(STRINGS, len(VALUES))), "i int, s string")
    return typed.union(texts.selectExpr("i", "cast(s as variant) v")).repartition(1)


def casts(frame: DataFrame) -> dict[str, list[str]]:
    """What Spark makes of `v` in every type, in the order of `i`. Strings as binary: they need not be UTF-8."""
    asked = {
        name: "cast(try_variant_get(v, '$', 'string') as binary)"
        if name == "string"
        else f"try_variant_get(v, '$', '{name}')"
        for name in TYPES
    }
    columns = [f"{expression} as `{name}`" for name, expression in asked.items()]
    table = frame.orderBy("i").selectExpr(*columns, "to_json(v) as json").toArrow()
    return {name: spell(table.column(name)) for name in [*TYPES, "json"]}


def of_today(text: str, timestamp: str) -> str:
    """The spelled timestamp; of a time without a date, which means today, the microseconds of the wall clock."""
    if timestamp == "-" or not re.match(r'"T?\d+:', text):
        return timestamp
    wall = datetime.fromtimestamp(int(timestamp[1:]) / 1_000_000, ZoneInfo(ZONE))
    return f"=today {((wall.hour * 60 + wall.minute) * 60 + wall.second) * 1_000_000}"


def parsed(spark: SparkSession) -> list[Any]:
    """The rows (value, metadata and text) that Spark's parser makes of TEXTS; v is null where it refuses."""
    frame = spark.createDataFrame(
        [(i, bytearray(text)) for i, text in enumerate(TEXTS)], "i int, t binary"
    ).repartition(1)
    rows = frame.selectExpr("i", "try_parse_json(cast(t as string)) v").selectExpr("i", "v", "to_json(v) j")
    return list(rows.orderBy("i").collect())


def main() -> None:
    """Write both recordings."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    with (DATA / "spark_parse_json.tsv").open("w") as out:
        for text, row in zip(TEXTS, parsed(spark), strict=True):
            found = ["refused", "", ""] if row.v is None else [row.v.value.hex(), row.v.metadata.hex(), row.j]
            out.write("\t".join([text.hex(), *found]) + "\n")
    frame = variants(spark).cache()
    found = casts(frame)
    with (DATA / "spark_casts.tsv").open("w") as out:
        out.write("\t".join(["value", "json", *TYPES]) + "\n")
        for at, row in enumerate(frame.orderBy("i").collect()):
            text = bytes.fromhex(found["json"][at][1:]).decode(errors="replace")
            found["timestamp"][at] = of_today(text, found["timestamp"][at])
            value = row.v.value.hex() + ":" + row.v.metadata.hex()
            out.write("\t".join([value, found["json"][at][1:], *(found[name][at] for name in TYPES)]) + "\n")


if __name__ == "__main__":
    main()
