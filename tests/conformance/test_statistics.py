"""Statistics that other engines wrote into public tables, read and skipped on."""

import json
from pathlib import Path

import pytest

from mica.expressions.bind import bind
from mica.log import snapshot
from mica.log.snapshot import Snapshot
from mica.skipping.plan import plan_files
from mica.stats.paths import Value, read_all
from mica.storage import Storage


def table(shared: Path, name: str) -> Snapshot:
    return snapshot.load(Storage.open(str(shared / "conformance" / "delta-tables" / name)))


def kept(found: Snapshot, where: str) -> int:
    return len(plan_files(bind(where, found.schema), found).kept)


def test_variant_bounds_of_databricks(shared: Path) -> None:
    found = table(shared, "variant-stats-no-checkpoint")
    (text,) = found.stats().to_pylist()
    document = json.loads(text)
    assert read_all(document["minValues"]["v"]) == {"$['name']": Value("string", "1"), "$['id']": Value("exact", 0)}
    assert kept(found, "v:id::int = 3 AND nv.v:id::bigint >= 19") == 1
    for where in ("v:id::int > 9", "v:id::double = 9.5", "nv.v:id::decimal(5,1) < 10", "v:name::string > '9'", "i = 1"):
        assert kept(found, where) == 0, where
    # '3' as a number: text bounds say nothing about it.
    assert kept(found, "v:name::int = 100") == 1


@pytest.mark.parametrize(
    "name", ["data-skipping-basic-stats-all-types", "data-skipping-basic-stats-all-types-checkpoint"]
)
def test_every_plain_type(shared: Path, name: str) -> None:
    found = table(shared, name)
    holds = "as_int = 0 AND as_long <= 0 AND as_double < 1 AND as_string = '0' AND as_date = '2000-01-01'"
    assert kept(found, f"{holds} AND as_timestamp >= '2000-01-01 08:00:00' AND as_big_decimal = 0") == 1
    for where in (
        "as_int = 1", "as_long < 0", "as_byte <> 0", "as_short > 0", "as_float < 0", "as_double < -0.5",
        "as_string = '1'",
        "as_date > '2000-01-01'", "as_timestamp > '2000-01-01 08:00:00.001'", "as_big_decimal = 1", "as_int IS NULL",
    ):  # fmt: skip
        assert kept(found, where) == 0, where
    # NaN is above every number, and no bound says that there is none.
    assert kept(found, "as_float > 0") == 1
