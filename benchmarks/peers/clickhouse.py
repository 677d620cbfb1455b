"""ClickHouse's way to ingest, by chdb: a MergeTree table with one column of its JSON type.

python -m benchmarks.peers.clickhouse
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.serve import fresh, serve

_SESSION: list[Any] = []


def start(jars: str, threads: int) -> str:
    from chdb import session

    del jars
    _SESSION.append(session.Session())
    _run(f"SET max_threads = {threads}")
    _run("CREATE DATABASE IF NOT EXISTS bench")
    return _run("SELECT version()").strip()


def _run(text: str) -> str:
    return str(_SESSION[0].query(text, "CSV"))


def ingest(source: str, target: str, codec: str | None = None) -> None:
    fresh(target)
    name = Path(target).name.replace("-", "_")
    setting = f" SETTINGS default_compression_codec = '{codec.upper()}'" if codec else ""
    _run(f"DROP TABLE IF EXISTS bench.{name} SYNC")
    _run(f"CREATE TABLE bench.{name} (v JSON) ENGINE = MergeTree ORDER BY tuple(){setting}")
    _run(f"INSERT INTO bench.{name} SELECT json FROM file('{source}', 'JSONAsObject')")


def check(target: str) -> dict[str, Any]:
    name = Path(target).name.replace("-", "_")
    row = _run(
        "SELECT count(), sum(v.time_us::Int64 % 1000000), countIf(v.commit.collection IS NOT NULL), "
        f"uniqExactIf(v.commit.collection::String, v.commit.collection IS NOT NULL) FROM bench.{name}"
    )
    return dict(zip(["rows", "time", "collections", "distinct"], map(int, row.strip().split(",")), strict=True))


def size(target: str) -> int:
    """Bytes on disk of a table that lives in the session's own folder."""
    name = Path(target).name.replace("-", "_")
    return int(_run(f"SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = '{name}'"))


if __name__ == "__main__":
    serve({"start": start, "ingest": ingest, "check": check, "size": size})
