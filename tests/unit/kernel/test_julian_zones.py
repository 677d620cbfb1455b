"""The table of zones in `parquet/julian_zones.txt` is Spark's (`RebaseDateTime`), in short."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyspark

from tests.support import ROOT

#: The instants at which the calendars drift apart by a day, in UTC, up to the change of the calendar.
RESOURCE = "julian-gregorian-rebase-micros.json"


def spark_s() -> dict[str, tuple[list[int], list[int]]]:
    for jar in Path(pyspark.__file__).parent.joinpath("jars").glob("spark-*.jar"):
        with zipfile.ZipFile(jar) as archive:
            if RESOURCE in archive.namelist():
                found = json.loads(archive.read(RESOURCE))
                return {row["tz"]: (row["switches"], row["diffs"]) for row in found}
    raise AssertionError(f"no jar of Spark holds {RESOURCE}")


def test_every_zone_of_spark_is_there_and_changes_when_spark_s_does() -> None:
    expected = spark_s()
    switches, diffs = expected["UTC"]
    found = {}
    for line in (ROOT / "native/kernel/src/parquet/julian_zones.txt").read_text().splitlines():
        offset, added, changes, *zones = line.split(" ")
        late = [tuple(map(int, pair.split(":"))) for pair in changes.split(",") if pair != "-"]
        own = [at - int(offset) for at in switches], [diff + int(added) for diff in diffs]
        for zone in zones:
            found[zone] = (own[0] + [at for at, _ in late], own[1] + [diff for _, diff in late])
    assert found == expected
