"""Engines of two versions of ICU on one table: each writes bounds under its own version, and skips on those alone.

The older engine is the same Spark with ICU4J 77.1 among its jars, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import mica
from mica.engines.spark.comparator import SparkComparator
from mica.skipping.reasons import undecided_files
from tests.support import ROOT, older_icu

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What an engine does: appends words as a file each, scans for one, gives old files bounds.
PROGRAM = """
import json, sys, warnings
import mica
from mica.engines.spark.comparator import SparkComparator

path, words = sys.argv[1], sys.argv[2:]
spark = mica.session(master="local[1]", **{"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"})
spark.sparkContext.setLogLevel("ERROR")
table = mica.Table.open(path)
for word in words:
    table.append(spark.createDataFrame([(word,)], "s string").coalesce(1))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    before = len(table.scan("s = 'k'", spark=spark).plan.dropped)
rows = table.scan("s = 'APFEL'", spark=spark).to_df(spark).count()
done = table.restats(spark=spark).files
after = len(table.scan("s = 'k'", spark=spark).plan.dropped)
print("RESULT", json.dumps({
    "version": SparkComparator(spark).version, "before": before, "told": [str(w.message) for w in told], "rows": rows,
    "restats": done, "after": after,
}))
"""


@pytest.fixture(scope="module")
def older_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Spark home whose jars are PySpark's, but for ICU4J."""
    jar = older_icu()
    if jar is None:
        pytest.skip("ICU4J 77.1 is missing: run scripts/jars.sh")
    import pyspark

    source, home = Path(pyspark.__file__).parent, tmp_path_factory.mktemp("older") / "spark"
    (home / "jars").mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name != "jars":
            (home / entry.name).symlink_to(entry)
    for entry in (source / "jars").iterdir():
        if not entry.name.startswith("icu4j-"):
            (home / "jars" / entry.name).symlink_to(entry)
    (home / "jars" / jar.name).symlink_to(jar)
    return home


def older_engine(home: Path, path: Path, *words: str) -> dict[str, Any]:
    environment = os.environ | {"SPARK_HOME": str(home), "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")] or [run.stderr[-3000:]]
    found: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
    return found


@pytest.mark.slow
@pytest.mark.delta
def test_each_version_skips_on_its_own_bounds(spark: SparkSession, older_home: Path, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = mica.Table.create(path, "s STRING COLLATE de_CI")
    for word in ("Apfel", "Zebra", "Öl"):
        table.append(spark.createDataFrame([(word,)], "s string").coalesce(1))
    older = older_engine(older_home, path, "apfel", "Übel")
    assert (older["version"], SparkComparator(spark).version) == ("77.1", "78.3")
    # Before restats it skips the file of its own that holds no match, and says what it could not skip.
    assert (older["before"], older["rows"]) == (2, 2)
    assert len(older["told"]) == 1
    assert "3 of 5 files have bounds of icu.de_CI in version 78.3 only" in older["told"][0]
    assert "restats" in older["told"][0]
    # It adds bounds to the three others' files, whose own stay.
    assert (older["restats"], older["after"]) == (3, 5)

    table.refresh()
    assert orjson.loads(table.snapshot.domains["collations"]) == {"writeVersions": {"icu.de_CI": ["78.3", "77.1"]}}
    keys = [sorted(orjson.loads(text)["statsWithCollation"]) for text in table.files().column("stats").to_pylist()]
    assert sorted(keys) == [["icu.de_CI.77.1"]] * 2 + [["icu.de_CI.77.1", "icu.de_CI.78.3"]] * 3
    scan = table.scan("s = 'k'", spark=spark)
    with pytest.warns(UserWarning, match=r"2 of 5 files have bounds of icu.de_CI in version 77.1 only") as told:
        assert len(scan.plan.dropped) == 3
    assert len(scan.plan.dropped) == 3
    assert len(told) == 1
    reasons = {row["reason"] for row in undecided_files(scan.plan, scan.source.path_of)}
    assert reasons == {"bounds of icu.de_CI in version 77.1, and 78.3 is needed"}
    with pytest.warns(UserWarning, match="table.restats"):
        found = table.scan("s = 'APFEL'", spark=spark).to_df(spark)
    assert sorted(row.s for row in found.collect()) == ["Apfel", "apfel"]
    assert table.restats(spark=spark).files == 2
    assert len(table.scan("s = 'k'", spark=spark).plan.dropped) == 5
