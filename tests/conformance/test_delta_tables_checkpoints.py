"""Checkpoints of one writer read by another: ours by delta-spark and its by us, in every form of statistics."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica.log.checkpoint_writer import write_checkpoint
from mica.log.paths import encode_path, escape_partition_value
from mica.log.snapshot import Snapshot, load
from mica.log.transaction import Transaction
from mica.storage import Storage
from tests.support import dealt
from tests.unit.log.tables import create

DDL = "id BIGINT, s STRING, d DATE, t TIMESTAMP, x DECIMAL(10,2), f DOUBLE, n STRUCT<a: INT>, p STRING, q DATE"
ROWS = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("x", pa.decimal128(10, 2)),
        ("f", pa.float64()),
        ("n", pa.struct([("a", pa.int32())])),
    ]
)
FORMS = [
    {"delta__checkpoint__writeStatsAsStruct": "true"},
    {"delta__checkpoint__writeStatsAsJson": "false", "delta__checkpoint__writeStatsAsStruct": "true"},
    {},
]


def append(table: Snapshot, number: int) -> Snapshot:
    """One file of two rows in a partition with an odd name."""
    value = f"a/b ä%{number % 2}"
    rel = f"p={escape_partition_value(value)}/q=2024-01-0{number % 9 + 1}/part {number}.parquet"
    path = Path(table.storage.path(rel))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist(
            [{"id": number * 2 + i, "s": f"s{number}", "f": i / 2, "n": {"a": i}} for i in (0, 1)], ROWS
        ),
        path,
    )
    bounds = {"id": number * 2, "s": f"s{number}", "f": 0.0, "n": {"a": 0}}
    stats = {
        "numRecords": 2,
        "minValues": bounds,
        "maxValues": {**bounds, "id": number * 2 + 1, "f": 0.5, "n": {"a": 1}},
        "nullCount": {"id": 0, "s": 0, "d": 2, "t": 2, "x": 2, "f": 0, "n": {"a": 0}},
    }
    transaction = Transaction(table, "WRITE", {"mode": "Append"})
    transaction.add_files(
        [
            {
                "path": encode_path(rel),
                "size": path.stat().st_size,
                "modification_time": 1,
                "partition_values": {"p": value, "q": f"2024-01-0{number % 9 + 1}"},
                "stats": orjson.dumps(stats).decode(),
            }
        ]
    )
    return transaction.commit().snapshot


def ids(frame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


@pytest.mark.slow
@pytest.mark.parametrize("form", dealt(FORMS, 0, 3))
def test_delta_spark_reads_our_checkpoints_and_we_its(tmp_path: Path, delta_session, form: dict[str, str]) -> None:
    table = create(tmp_path / "t", DDL, ("p", "q"), delta__checkpointInterval="4", **form)
    for number in range(6):
        table = append(table, number)
    log = tmp_path / "t" / "_delta_log"
    for version in range(4):
        (log / f"{version:020d}.json").unlink()  # from here on the checkpoint is the only source

    frame = delta_session.read.format("delta").load(str(tmp_path / "t"))
    assert ids(frame) == list(range(12))
    assert ids(frame.where("id = 5 and p = 'a/b ä%0'")) == [5]
    assert ids(frame.where("n.a = 1 and f = 0.5 and q = DATE'2024-01-02'")) == [3]

    for low in (100, 200, 300):
        delta_session.range(low, low + 2).selectExpr(
            "id", "'z' s", "DATE'2024-05-05' d", "TIMESTAMP'2024-05-05 01:02:03.456789' t",
            "CAST(1.5 AS DECIMAL(10,2)) x", "1D f", "named_struct('a', 1) n", "'a=b' p", "DATE'2024-02-03' q",
        ).write.format("delta").mode("append").save(str(tmp_path / "t"))  # fmt: skip
    ours = load(table.storage)
    assert ours.version == 9
    assert ours.segment.checkpoint is not None
    assert ours.segment.checkpoint.version == 8
    stats = [orjson.loads(text) for text in ours.stats().to_pylist()]
    lows = sorted(each["minValues"]["id"] for each in stats)
    assert len(stats) == ours.files.num_rows
    assert lows[0] == 0
    assert lows[-1] >= 300
    theirs = next(each for each in stats if each["minValues"]["id"] == 100)
    assert theirs["minValues"]["d"] == "2024-05-05"
    assert theirs["maxValues"]["x"] == 1.5
    assert theirs["maxValues"]["t"].startswith("2024-05-05T01:02:03.456")
    assert ids(delta_session.read.format("delta").load(str(tmp_path / "t"))) == [
        *range(12),
        100,
        101,
        200,
        201,
        300,
        301,
    ]
    # Our own statistics came through two checkpoints unchanged.
    ours_again = next(each for each in stats if each["minValues"]["id"] == 2)
    assert ours_again["maxValues"] == {"id": 3, "s": "s1", "f": 0.5, "n": {"a": 1}}


@pytest.mark.slow
def test_both_writers_find_each_others_transactions(tmp_path: Path, delta_session) -> None:
    table = create(tmp_path / "t", "id BIGINT", delta__checkpointInterval="2", delta__enableInCommitTimestamps="true")
    path = str(tmp_path / "t")
    for low in (0, 10, 20):
        delta_session.range(low, low + 2).write.format("delta").mode("append").option("txnAppId", "a").option(
            "txnVersion", low
        ).save(path)
    table = table.refresh()
    assert table.version == 3
    assert table.app_transactions == {"a": 20}
    transaction = Transaction(table, "WRITE", {"mode": "Overwrite"})
    transaction.read()
    transaction.remove_files()
    transaction.set_application_transactions({"a": 30})
    table = transaction.commit().snapshot  # version 4: a checkpoint with tombstones and a transaction
    for version in range(4):
        (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").unlink()
    assert ids(delta_session.read.format("delta").load(path)) == []
    delta_session.range(5).write.format("delta").mode("append").option("txnAppId", "a").option("txnVersion", 30).save(
        path
    )
    assert load(table.storage).version == 4  # delta-spark found that batch 30 was there
    delta_session.range(5).write.format("delta").mode("append").save(path)
    found = load(table.storage)
    assert found.timestamp > table.timestamp
    assert ids(delta_session.read.format("delta").load(path)) == [0, 1, 2, 3, 4]


VARIANT_STATS = {
    "spark.databricks.delta.stats.limitPerVariant": "100",
    "spark.databricks.delta.variantShredding.parseFooterForStats": "true",
}


def with_variants(path: str, session, **properties: str) -> Snapshot:
    """A table by delta-spark with statistics on variant paths: versions 0 to 2, two files."""
    listed = ", ".join(f"'{name}'='{value}'" for name, value in properties.items())
    session.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v VARIANT, n STRUCT<w: VARIANT, x: INT>) USING delta TBLPROPERTIES ("
        f"'delta.enableVariantShredding'='true', {listed})"
    )
    for name, value in VARIANT_STATS.items():
        session.conf.set(name, value)
    try:
        for low in (0, 10):
            session.range(low, low + 10).selectExpr(
                "id",
                """parse_json(concat('{"a":', id, ',"b":{"c":"s', id, '"}, "d": 1.5}')) v""",
                """named_struct('w', parse_json(concat('{"q":', id, '}')), 'x', 1) n""",
            ).coalesce(1).write.format("delta").mode("append").save(path)
    finally:
        for name in VARIANT_STATS:
            session.conf.unset(name)
    return load(Storage.open(path))


def written_stats(root: Path) -> dict[str, object]:
    """The statistics as they stand in the commits."""
    commits = [(root / "_delta_log" / f"{v:020d}.json").read_bytes().splitlines() for v in (1, 2)]
    written = [orjson.loads(text)["add"] for lines in commits for text in lines if text.startswith(b'{"add"')]
    return {add["path"]: orjson.loads(add["stats"]) for add in written}


def stats_of(table: Snapshot) -> dict[str, object]:
    return dict(zip(table.files["path"].to_pylist(), map(orjson.loads, table.stats().to_pylist()), strict=True))


@pytest.mark.slow
def test_delta_sparks_variant_columns_become_the_text_that_it_wrote_itself(tmp_path: Path, delta_session) -> None:
    """Where `stats_parsed` is the only source, the JSON with its z85 is made again, to the byte."""
    table = with_variants(
        str(tmp_path / "t"),
        delta_session,
        **{
            "delta.checkpointInterval": "2",
            "delta.checkpoint.writeStatsAsJson": "false",
            "delta.checkpoint.writeStatsAsStruct": "true",
        },
    )
    assert table.segment.checkpoint is not None
    assert stats_of(table) == written_stats(tmp_path / "t")
    assert all(len(stats["minValues"]["v"]) % 5 == 0 for stats in stats_of(table).values())


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("json", dealt(["true", "false"], 0))
def test_delta_spark_reads_our_variant_columns(tmp_path: Path, delta_session, json: str) -> None:
    properties = {"delta.checkpointInterval": "100", "delta.checkpoint.writeStatsAsJson": json}
    properties["delta.checkpoint.writeStatsAsStruct"] = "true"
    with_variants(str(tmp_path / "t"), delta_session, **properties)
    written = written_stats(tmp_path / "t")
    # Under another name, for delta-spark keeps what it knows of a path.
    (tmp_path / "t").rename(tmp_path / "u")
    path = str(tmp_path / "u")
    write_checkpoint(load(Storage.open(path)))
    for version in range(2):  # delta-spark wants to see the commit of the checkpoint's version
        (tmp_path / "u" / "_delta_log" / f"{version:020d}.json").unlink()

    frame = delta_session.read.format("delta").load(path)
    assert ids(frame) == list(range(20))
    assert ids(frame.where("id > 12 and v is not null and variant_get(v, '$.a', 'int') < 15")) == [13, 14]
    delta_session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.checkpointInterval'='1')")
    delta_session.range(50, 51).selectExpr("id", "parse_json('1') v", "NULL n").write.format("delta").mode(
        "append"
    ).save(path)
    found = load(Storage.open(path))
    assert found.segment.checkpoint is not None
    assert found.segment.checkpoint.version == found.version == 4
    kept = {name: stats for name, stats in stats_of(found).items() if name in written}
    assert kept == written  # our Variants went through delta-spark's checkpoint and came back the same
