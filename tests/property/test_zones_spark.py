"""Every zone beside Spark, from 1850 to 2200: both sides of each change of the clocks, instants and wall clocks.

The JVM says where the changes are and Spark what becomes of the times around them, so that nothing here rests on zone
data of Python's. A few zones in `make test`, all of them in a campaign (`MICA_PROFILE=campaign`).
"""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.variant import kernel
from tests.support import CAMPAIGN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
MICROS = 1_000_000
FIRST, LAST = -3_786_825_600, 7_258_118_400  # 1850 to 2200
#: Years of which the last rules are asked, beyond those that Java's list of changes has.
LATER = (2038, 2040, 2044, 2077, 2100, 2199)

#: Where the database in the kernel (2026e) is not the JVM's (2025a in OpenJDK 17.0.15): zones, and the years from and
#: before which they may differ.
DIFFERENT = {
    **dict.fromkeys(("Africa/Casablanca", "Africa/El_Aaiun"), (2026, 2200)),
    **dict.fromkeys(
        [f"America/{c}" for c in "Edmonton Inuvik Rainy_River Vancouver Winnipeg Yellowknife".split()], (2026, 2200)
    ),
    **dict.fromkeys([f"Canada/{name}" for name in ("Central", "Mountain", "Pacific")], (2026, 2200)),
    **dict.fromkeys(
        ("America/Ensenada", "America/Santa_Isabel", "America/Tijuana", "Mexico/BajaNorte"), (1953, 1976)
    ),
    "America/Bogota": (1992, 1994),
    **dict.fromkeys(("Asia/Tehran", "Iran"), (1978, 1980)),
    **dict.fromkeys(("Europe/Chisinau", "Europe/Tiraspol"), (2022, 2200)),
    **dict.fromkeys(("Eire", "Europe/Dublin"), (1925, 1927)),
}  # fmt: skip

_CHANGE = re.compile(r"at (\d{4,})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d))?(Z|[+-][\d:]+) to (Z|[+-][\d:]+)\]")


def _seconds(offset: str) -> int:
    if offset == "Z":
        return 0
    parts = [int(part) for part in offset[1:].split(":")]
    return (-1 if offset[0] == "-" else 1) * sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))


def _around(instant: int, before: int, after: int) -> list[int]:
    """Instants and wall clocks (both are asked as both): the change itself, its sides, the gap or the hour twice."""
    walls = [instant + offset + step for offset in (before, after) for step in (-1, 0, 1)]
    return [instant - 1, instant, instant + 1, *walls, instant + (before + after) // 2]


def times(spark: SparkSession, zone: str) -> list[int]:
    """Seconds since the epoch that are worth asking in a zone."""
    rules = spark._jvm.java.time.ZoneId.of(zone).getRules()  # type: ignore[union-attr]
    found = [FIRST, -MICROS, 0, LAST - 1]
    for *numbers, before, after in _CHANGE.findall(rules.getTransitions().toString()):
        local = datetime(*(int(n or 0) for n in numbers), tzinfo=UTC)  # type: ignore[arg-type, misc]
        one, other = _seconds(before), _seconds(after)
        found += _around(int(local.timestamp()) - one, one, other)
    for rule in rules.getTransitionRules():
        one, other = (rule.getOffsetBefore().getTotalSeconds(), rule.getOffsetAfter().getTotalSeconds())
        for year in LATER:
            found += _around(rule.createTransition(year).toEpochSecond(), one, other)
    return [t for t in found if FIRST <= t < LAST]


def ours(zone: str, seconds: list[int]) -> tuple[list[int], list[int]]:
    """Wall clocks of the instants, and instants of the wall clocks."""
    plain = pa.array([t * MICROS for t in seconds], pa.int64())

    def cast(source: pa.DataType, target: pa.DataType) -> list[int]:
        batch = pa.record_batch([plain.cast(source)], names=["t"])
        return kernel.cast(batch, target, timezone=zone).column(0).cast(pa.int64()).to_pylist()

    ntz, utc = pa.timestamp("us"), pa.timestamp("us", "UTC")
    return cast(utc, ntz), cast(ntz, utc)


@pytest.mark.slow
def test_each_zone_changes_its_clocks_where_spark_has_it(spark: SparkSession, rng: random.Random) -> None:
    ids = sorted(spark._jvm.java.time.ZoneId.getAvailableZoneIds())  # type: ignore[union-attr]
    zones = [zone for zone in ids if not zone.startswith("SystemV/")]
    assert len(zones) > 550
    if not CAMPAIGN:
        zones = ["Europe/Moscow", "Europe/Berlin", "Pacific/Apia", "America/Caracas", *rng.sample(zones, 12)]
    asked = {zone: times(spark, zone) for zone in zones}
    rows = pa.table(
        {
            "zone": pa.array([zone for zone, found in asked.items() for _ in found]),
            "t": pa.array([t * MICROS for found in asked.values() for t in found], pa.int64()),
        }
    )
    table = spark.createDataFrame(rows).selectExpr(  # type: ignore[type-var]
        "zone", "t", "unix_micros(from_utc_timestamp(timestamp_micros(t), zone)) AS wall",
        "unix_micros(to_utc_timestamp(timestamp_micros(t), zone)) AS instant",
    ).toArrow()  # fmt: skip
    theirs: dict[str, dict[int, tuple[int, int]]] = {}
    for zone, t, wall, instant in zip(*(column.to_pylist() for column in table.columns), strict=True):
        theirs.setdefault(zone, {})[t // MICROS] = wall, instant
    wrong: list[Any] = []
    for zone, found in asked.items():
        first, last = DIFFERENT.get(zone, (3000, 3000))
        for t, wall, instant in zip(found, *ours(zone, found), strict=True):
            year = datetime.fromtimestamp(t, UTC).year
            if (wall, instant) != theirs[zone][t] and not first <= year < last:
                wrong.append((zone, t, wall, instant, theirs[zone][t]))
    assert not wrong, f"{len(wrong)} of {len(rows)}: {wrong[:10]}"


def offsets() -> list[str]:
    """Offsets of every form, right and wrong, alone and behind a prefix."""
    minutes = ("0", "5", "05", "00", "59", "60", "005", "")
    hours = [sign + h for sign in "+-" for h in ("", "0", "1", "01", "9", "18", "19", "001")]
    found = {h + colon + m for h in hours for m in minutes for colon in ("", ":")}
    found |= {
        f"{h}{one}{m}{two}{x}" for h in hours for m in minutes for x in minutes for one in ":" for two in ("", ":")
    }
    found |= {f"{h}{m}{x}" for h in hours for m in minutes for x in minutes} | set(hours)
    found |= set("18:00 Z z Z0 EST HST ROC Factory GMT0 GMT+0 UTC utc PST8PDT MIT Zulu UCT Etc/GMT+5 etc/gmt".split())
    return sorted(found | {prefix + o for o in found for prefix in ("UTC", "GMT", "UT", " ", "UTC ")})


def test_offsets_behind_a_time_are_read_as_spark_reads_them(spark: SparkSession) -> None:
    texts = [f"2024-01-01T10:11:12{offset}" for offset in offsets()]
    frame = spark.createDataFrame(pa.table({"text": texts}))  # type: ignore[type-var]
    rows = frame.selectExpr("text", "unix_micros(try_cast(text AS TIMESTAMP)) AS t").toArrow().to_pylist()
    theirs = {row["text"]: row["t"] for row in rows}
    batch = pa.record_batch([pa.array(texts)], names=["t"])
    found = kernel.cast(batch, pa.timestamp("us", "UTC")).column(0).cast(pa.int64()).to_pylist()
    wrong = [(t, mine, theirs[t]) for t, mine in zip(texts, found, strict=True) if mine != theirs[t]]
    assert wrong == []
    assert sum(mine is not None for mine in found) > 500


def test_a_zone_of_one_offset_is_known_for_one() -> None:
    for name, offset in (
        ("UTC", 0),
        ("Etc/UTC", 0),
        ("GMT0", 0),
        ("Zulu", 0),
        ("Etc/GMT+5", -18_000),
        ("+01:30", 5_400),
    ):
        assert kernel.fixed_offset(name) == offset
    assert kernel.fixed_offset("Europe/Moscow") is None


def test_long_after_and_before_all_rules_years_repeat() -> None:
    cycle = 146_097 * 86_400
    for zone in ("Europe/Moscow", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"):
        for t in (2_226_000_000 + 12_345 * n for n in range(-3000, 3000, 7)):
            near, far = ours(zone, [t]), ours(zone, [t + 700 * cycle])
            assert [v[0] + 700 * cycle * MICROS for v in near] == [v[0] for v in far]
        first = [v[0] + 3 * 10**17 for v in ours(zone, [-(3 * 10**11)])]
        assert first == [v[0] + 9 * 10**18 for v in ours(zone, [-(9 * 10**12)])]


@pytest.mark.parametrize("name", ["Factory", "ROC", "europe/moscow", "EUROPE/BERLIN", "Nowhere/At_All", "+1:2:3", ""])
def test_what_java_has_no_zone_for_is_refused(name: str) -> None:
    with pytest.raises(UserError) as found:
        kernel.fixed_offset(name)
    assert found.value.code == "UNKNOWN_TIME_ZONE"
