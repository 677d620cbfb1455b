"""A Spark Connect session does the whole job: ingest, append, scan."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pathlib import Path
import mica
from pyspark.sql import SparkSession

if __name__ == "__main__":
    spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    home = Path(sys.argv[1])
    (home / "a.ndjson").write_text("".join('{"n": %d}\\n' % n for n in range(1000)))
    options = {"sort_by": ["v:n::int"], "columns": {"p": "v:n::int"}}
    report = mica.ingest_json(home / "a.ndjson", home / "t", spark=spark, **options)
    assert report.rows == 1000, report
    table = mica.Table.open(home / "t")
    table.append(spark.range(5).selectExpr("parse_json('{\\"n\\": 7}') AS v", "0 AS p"))
    frame = table.scan(where="v:n::int = 7", columns=["v"]).to_df(spark)
    assert [str(row.v) for row in frame.collect()] == ['{"n":7}'] * 6
    assert table.to_df(spark).count() == 1005
    words = mica.Table.create(home / "w", "p INT, s STRING COLLATE UNICODE_CI", ["p"])
    words.append(spark.sql("SELECT * FROM VALUES (1, 'ä'), (1, 'B'), (2, 'x') AS t(p, s)"))
    # One that is certain without the comparator, and one that is not.
    for where, found in (("s = 'b'", "B"), ("s = 'Ä'", "ä")):
        scan = words.scan(where, columns=["s"], spark=spark)
        assert len(scan.plan.dropped) == 1, scan.explain()
        assert [row.s for row in scan.to_df(spark).collect()] == [found]
    assert mica.check(words, spark=spark).ok
    assert words.restats(spark=spark).files == 0
    try:
        mica.ingest_json(home / "none.json", home / "t", spark=spark)
    except mica.MicaError as e:
        assert e.code == "NOT_FOUND"
    (home / "bad.json").write_text("{")
    try:
        mica.ingest_json(home / "bad.json", home / "t", spark=spark)
        raise SystemExit("a broken line went in")
    except mica.CorruptDataError as e:
        assert "bad.json" in str(e), e
    print("connected and done")
"""


def test_spark_connect_does_the_whole_job(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    (tmp_path / "job.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "job.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, env=os.environ)
    assert "connected and done" in done.stdout, done.stderr[-3000:]
