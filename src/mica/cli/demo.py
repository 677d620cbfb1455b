"""`mica demo`: runs the main job on generated events and prints each step."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mica import late
from mica.cli import events as demo
from mica.cli import options
from mica.cli.console import out, print_json, print_rows
from mica.cli.sessions import spark_session
from mica.errors import UserError
from mica.storage.local import local_errors
from mica.wording import counted

if TYPE_CHECKING:
    from mica.table import Table

WHERE = (
    "v:commit.collection::string = 'app.bsky.feed.post' AND v:time_us::bigint >= {low} AND v:time_us::bigint < {high}"
)

#: The second of Java's compilers pays after a minute, which the demo does not take; nor does it verify Spark's classes,
#: which takes two seconds.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
_SESSION = {"spark.sql.session.timeZone": "UTC", "spark.driver.extraJavaOptions": _JAVA}


def run(
    directory: Annotated[Path, typer.Argument(help="The directory for events and table.")] = Path("demo"),
    count: Annotated[int, typer.Option("--events", min=1, help="How many events.")] = 100_000,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Run on an embedded Spark session or in process.")
    ] = True,
    json: options.Json = False,
) -> None:
    """Generate events, ingest them, skip files, and read the table with Spark's own reader."""
    from mica.table import Table
    from mica.write.ingest import ingest_json

    console = out()

    def say(text: str) -> None:
        if not json:
            console.print(text, markup=False, highlight=False)

    events, table = directory / "events", directory / "table"
    for old in (events, table):
        if old.exists() and not (old / ".mica-demo").exists():
            raise UserError("FILE_EXISTS", f"{old} exists and was not made by the demo", hint="Name another directory.")
        shutil.rmtree(old, ignore_errors=True)
    with local_errors(str(directory)):
        events.mkdir(parents=True)
        (events / ".mica-demo").touch()
    with late.futures.ThreadPoolExecutor(1) as pool:  # while Spark starts
        writing = pool.submit(demo.write_files, events, count, files=8)
        engine = spark_session(**_SESSION) if spark else None
        paths = writing.result()
    size = sum(p.stat().st_size for p in paths) / 1e6
    say(f"1. {count:,} events in {len(paths)} NDJSON files, {size:.1f} MB: {events}")

    report = ingest_json(
        [str(p) for p in paths], table, spark=engine, sort_by=["try_variant_get(v, '$.time_us', 'bigint')"],
        target_file_size=max(64 << 10, count * 5),
    )  # fmt: skip
    (table / ".mica-demo").touch()
    say(f"2. mica.ingest_json(…, sort_by=…) {'on Spark' if spark else 'in process'}\n   {report}")

    opened = Table.open(table)
    middle = _middle(opened)
    where = WHERE.format(low=middle, high=middle + 1_000_000)
    scan = opened.scan(where=where, columns={"did": "v:did::string", "v": "v"})
    explained = scan.explain()
    say(f"3. Table.open(…).scan(where=…).explain()\n   {where}")
    if not json:
        console.print(explained)
    began = time.monotonic()
    found = scan.to_arrow()
    say(f"   to_arrow(): {counted(found.num_rows, 'row')} in {time.monotonic() - began:.3f} s")
    steps = {"ingest": report.to_dict(), "explain": explained.to_dict(), "rows": found.num_rows}
    if engine is not None:
        began = time.monotonic()
        rows = scan.to_df(engine).count()
        say(f"   to_df(spark): {counted(rows, 'row')} in {time.monotonic() - began:.3f} s")
        frame = engine.read.parquet(*[str(table / f) for f in opened.files().column("path").to_pylist()])
        groups = (
            frame.selectExpr("try_variant_get(v, '$.commit.collection', 'string') AS collection")
            .groupBy("collection").count().orderBy("count", ascending=False).collect()
        )  # fmt: skip
        say("4. The same files, read by Spark's own Parquet reader")
        if not json:
            counts = [[r["collection"] or "NULL", f"{r['count']:,}"] for r in groups]
            print_rows("", ["collection", "count"], counts, right=["count"])
        steps |= {"rows_on_spark": rows, "collections": {str(r["collection"]): r["count"] for r in groups}}
        if rows != found.num_rows or sum(r["count"] for r in groups) != count:
            sys.stderr.write("the engines disagree: this is a bug in mica\n")
            raise typer.Exit(1)
    if json:
        print_json(steps)


def _middle(table: Table) -> int:
    """A time in the middle of the events."""
    times = table.scan(columns={"t": "try_variant_get(v, '$.time_us', 'bigint')"}).to_arrow()
    ordered = sorted(t for t in times.column("t").to_pylist() if t is not None)
    return int(ordered[len(ordered) // 2])
