"""Open a table of 10,000 files and plan a range: how many files stay. No data file exists: only the log is read.

The log is written here, by hand: ten commits of adds with statistics of a plain column and of a variant's path, then a
checkpoint by delta-spark in the form that it takes by itself. Fresh means that no snapshot is cached; warm means that
the last one is, and that the log is asked for news.
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

from benchmarks.run import Run, thing

FILES = 10_000
COMMITS = 10
ROWS = 1_000
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
FIELDS = [
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    {"name": "v", "type": "variant", "nullable": True, "metadata": {}},
]
FEATURES = ["variantType", "variantShredding"]


def _bound(key: str, number: int) -> str:
    """A variant object of one int64 as the log spells it: metadata, value, zeros to a multiple of four, in z85."""
    name = key.encode()
    metadata = bytes([0x11, 1, 0, len(name)]) + name
    value = bytes([0x02, 1, 0, 0, 9]) + bytes([6 << 2]) + struct.pack("<q", number)
    data = metadata + value
    data += bytes(-len(data) % 4)
    text = []
    for (word,) in struct.iter_unpack(">I", data):
        text.append("".join(Z85[word // 85**power % 85] for power in (4, 3, 2, 1, 0)))
    return "".join(text)


def _add(number: int) -> dict[str, object]:
    low, high = number * ROWS, (number + 1) * ROWS - 1
    stats = {
        "numRecords": ROWS,
        "minValues": {"id": low, "v": _bound("$['time_us']", low)},
        "maxValues": {"id": high, "v": _bound("$['time_us']", high)},
        "nullCount": {"id": 0, "v": 0},
        "tightBounds": True,
    }
    return {
        "path": f"part-{number:05d}-c000.zstd.parquet",
        "partitionValues": {},
        "size": 400_000,
        "modificationTime": 1_732_206_349_000 + number,
        "dataChange": True,
        "stats": json.dumps(stats),
    }


def table(path: Path) -> None:
    """Write the log's commits."""
    shutil.rmtree(path, ignore_errors=True)
    log = path / "_delta_log"
    log.mkdir(parents=True)
    schema = json.dumps({"type": "struct", "fields": FIELDS})
    metadata = {
        "id": "4f2a7a52-7f54-4d52-9a58-1c4f6d5f2b11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": {"delta.enableVariantShredding": "true"},
        "createdTime": 1_732_206_349_000,
    }
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": FEATURES,
        "writerFeatures": FEATURES,
    }
    for commit in range(COMMITS):
        actions: list[dict[str, object]] = [{"commitInfo": {"timestamp": 1_732_206_349_000, "operation": "WRITE"}}]
        if commit == 0:
            actions += [{"protocol": protocol}, {"metaData": metadata}]
        share = FILES // COMMITS
        actions += [{"add": _add(number)} for number in range(commit * share, (commit + 1) * share)]
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{commit:020d}.json").write_text(text)


def run(run: Run) -> None:
    """delta-spark asks for the plain column, which it skips on; mica for the same and for the variant's path."""
    target = run.target("plan")
    table(Path(target))
    run.peer("delta").ask("checkpoint", target=target)
    low = FILES // 2 * ROWS
    asked = {"target": target, "low": low, "high": low + 10 * ROWS - 1}
    for cached in (False, True):
        things = {"delta": thing("delta", "plan", cached=cached, **asked)}
        for column in ("id", "v:time_us::bigint"):
            things[f"mica, by {column}"] = thing("mica", "plan", column=column, cached=cached, **asked)
        name = "warm" if cached else "fresh"
        measures = run.measure(f"open and plan on {FILES:,} files, {name}", things)
        run.same(f"plan, {name}", {label: measure.replies[-1].found for label, measure in measures.items()})
        for label, ours in measures.items():
            if label != "delta":
                run.faster(ours, measures.get("delta"), 5 if cached else 20, f"plan, {name}")
    run.stop()
