"""ClickHouse's way to ingest, by chdb: a MergeTree table with one column of its JSON type.

python -m benchmarks.peers.clickhouse
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.peers.serve import fresh, serve

_SESSION: list[Any] = []

COLLECTION = "v.commit.collection::Nullable(String)"
CREATED = "v.kind = 'commit' AND v.commit.operation = 'create'"
POSTS = f"{CREATED} AND v.commit.collection = 'app.bsky.feed.post'"
FEEDS = "('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')"
DID, TIME = "v.did::String", "v.time_us::Int64"
QUERIES = {
    "count by collection": f"SELECT {COLLECTION} AS c, count() AS n FROM t GROUP BY c ORDER BY n DESC, c NULLS FIRST",
    "distinct users": f"SELECT {COLLECTION} AS c, count() AS n, uniqExact({DID}) FROM t WHERE {CREATED} "
    "GROUP BY c ORDER BY n DESC, c",
    "by hour": f"SELECT {COLLECTION} AS c, toHour(fromUnixTimestamp64Micro({TIME}, 'UTC')) AS h, count() FROM t "
    f"WHERE {CREATED} AND c IN {FEEDS} GROUP BY c, h ORDER BY h, c",
    "earliest posters": f"SELECT {DID} AS d, min({TIME}) AS f FROM t WHERE {POSTS} GROUP BY d ORDER BY f LIMIT 3",
    "longest spans": f"SELECT {DID} AS d, max({TIME}) - min({TIME}) AS s FROM t WHERE {POSTS} GROUP BY d "
    "ORDER BY s DESC, d LIMIT 3",
}


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


def query(target: str, name: str) -> list[list[Any]]:
    table = f"FROM bench.{Path(target).name.replace('-', '_')}"
    text = str(_SESSION[0].query(QUERIES[name].replace("FROM t", table), "JSONCompactEachRow"))
    rows = [json.loads(line) for line in text.splitlines()]
    # 64-bit integers come as strings.
    return [[int(x) if isinstance(x, str) and x.isdigit() else x for x in row] for row in rows]


if __name__ == "__main__":
    serve({"start": start, "ingest": ingest, "check": check, "size": size, "query": query})
