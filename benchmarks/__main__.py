"""python -m benchmarks [WORK…] [--rounds N] [--events N] [--peers a,b]: measure, print, and say what was promised."""

from __future__ import annotations

import argparse
import json
import os
import sys

from benchmarks import (
    arrays,
    change,
    collations,
    core,
    documents,
    early,
    far,
    ingest,
    lookup,
    memory,
    partitions,
    plan,
    queries,
    remote,
    skip,
    small,
    sql,
    stream,
)
from benchmarks.run import Run

WORKS = {
    "ingest": ingest.run,
    "core": core.run,
    "documents": documents.run,
    "memory": memory.run,
    "partitions": partitions.run,
    "skip": skip.run,
    "plan": plan.run,
    "small": small.run,
    "lookup": lookup.run,
    "queries": queries.run,
    "arrays": arrays.run,
    "sql": sql.run,
    "stream": stream.run,
    "remote": remote.run,
    "far": far.run,
    "collations": collations.run,
    "early": early.run,
    "change": change.run,
    "million": plan.million,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("works", nargs="*", help=f"which: {', '.join(WORKS)}; all by default")
    parser.add_argument("--rounds", type=int, default=5, help="warm rounds, after a first one that is told apart")
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 2), help="cores that each may use")
    parser.add_argument("--peers", default="", help="only these, by commas: spark43,delta,sail,duckdb,clickhouse")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a target is missed")
    arguments = parser.parse_args()
    unknown = set(arguments.works) - set(WORKS)
    if unknown:
        parser.error(f"no such work: {', '.join(sorted(unknown))}")
    # Whatever a run starts has these cores and no others, whether it can be told so or not.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])
    run = Run(
        arguments.rounds, arguments.events, arguments.threads, frozenset(filter(None, arguments.peers.split(",")))
    )
    try:
        for name in arguments.works or WORKS:
            WORKS[name](run)
    finally:
        run.stop()
    held = run.summary()
    (run.folder / "results.json").write_text(json.dumps(run.records, indent=1, default=str))
    return 0 if held or not arguments.strict else 1


if __name__ == "__main__":
    sys.exit(main())
