"""DuckDB's ways to do the works: Parquet files with VARIANT columns that it shreds itself.

python -m benchmarks.peers.duckdb
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.peers.serve import fresh, serve

_CONNECTION: list[Any] = []

COLLECTION, DID, TIME = "v.commit.collection::VARCHAR", "v.did::VARCHAR", "v.time_us::BIGINT"
CREATED = "v.kind::VARCHAR = 'commit' AND v.commit.operation::VARCHAR = 'create'"
POSTS = f"{CREATED} AND {COLLECTION} = 'app.bsky.feed.post'"
FEEDS = "('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')"
QUERIES = {
    "count by collection": f"SELECT {COLLECTION} AS c, count(*) AS n FROM t GROUP BY c ORDER BY n DESC, c NULLS FIRST",
    "distinct users": f"SELECT {COLLECTION} AS c, count(*) AS n, count(DISTINCT {DID}) FROM t WHERE {CREATED} "
    "GROUP BY c ORDER BY n DESC, c",
    "by hour": f"SELECT {COLLECTION} AS c, hour(make_timestamp({TIME})) AS h, count(*) FROM t WHERE {CREATED} "
    f"AND {COLLECTION} IN {FEEDS} GROUP BY c, h ORDER BY h, c",
    "earliest posters": f"SELECT {DID} AS d, min({TIME}) AS f FROM t WHERE {POSTS} GROUP BY d ORDER BY f LIMIT 3",
    "longest spans": f"SELECT {DID} AS d, max({TIME}) - min({TIME}) AS s FROM t WHERE {POSTS} GROUP BY d "
    "ORDER BY s DESC, d LIMIT 3",
}


def start(jars: str, threads: int) -> str:
    import duckdb

    del jars
    _CONNECTION.append(duckdb.connect(config={"threads": threads}))
    return str(duckdb.__version__)


def _run(text: str) -> list[tuple[Any, ...]]:
    return list(_CONNECTION[0].execute(text).fetchall())


def _copy(source: str, target: str, codec: str | None) -> None:
    read = f"read_ndjson_objects('{source}', maximum_object_size = 134217728)"
    options = f", COMPRESSION {codec}" if codec else ""
    _run(f"COPY (SELECT json::VARIANT AS v FROM {read}) TO '{target}' (FORMAT parquet{options})")


def ingest(source: str, target: str, codec: str | None = None) -> None:
    Path(fresh(target)).mkdir()
    _copy(source, f"{target}/part.parquet", codec)


def sliced(source: str, target: str, files: int) -> None:
    """One COPY a slice: DuckDB has no option that makes a given number of files in an order."""
    folder = Path(fresh(target))
    folder.mkdir()
    with Path(source).open("rb") as lines:
        count = sum(1 for _ in lines)
        lines.seek(0)
        for number in range(files):
            part = folder / f"{number:05d}.ndjson"
            share = count * (number + 1) // files - count * number // files
            part.write_bytes(b"".join(islice(lines, share)))
            _copy(str(part), f"{target}/{number:05d}.parquet", None)
            part.unlink()


def check(target: str) -> dict[str, Any]:
    row = _run(
        "SELECT count(*), sum(t % 1000000), count(c), count(DISTINCT c) FROM (SELECT v.time_us::BIGINT AS t, "
        f"v.commit.collection::VARCHAR AS c FROM read_parquet('{target}/*.parquet'))"
    )[0]
    return dict(zip(["rows", "time", "collections", "distinct"], map(int, row), strict=True))


def ranged(target: str, low: int, high: int) -> dict[str, Any]:
    # No view: DuckDB's pushdown does not pass through one.
    row = _run(
        f"SELECT count(*), min(v.did::VARCHAR) FROM read_parquet('{target}/*.parquet') "
        f"WHERE v.time_us::BIGINT BETWEEN {low} AND {high}"
    )[0]
    return {"rows": row[0], "least": row[1]}


def identified(target: str, value: str) -> list[int]:
    rows = _run(f"SELECT {TIME} FROM read_parquet('{target}/*.parquet') WHERE v.commit.cid::VARCHAR = '{value}'")
    return sorted(row[0] for row in rows)


def elements(target: str) -> list[int]:
    # Its lists count from 1.
    price = "v.items[1].price::BIGINT"
    read = f"read_parquet('{target}/*.parquet')"
    row = _run(f"SELECT count(*), sum({price})::BIGINT FROM {read} WHERE {price} >= 50000")[0]
    return [row[0], row[1]]


def query(target: str, name: str) -> list[list[Any]]:
    # The table by name would be a view, which its pushdown does not pass.
    return [list(row) for row in _run(QUERIES[name].replace("FROM t", f"FROM read_parquet('{target}/*.parquet')"))]


if __name__ == "__main__":
    works = (start, ingest, sliced, check, ranged, identified, elements, query)
    serve({work.__name__: work for work in works})
