"""Open a table of 10,000 files and plan a range: how many files stay. No data file exists: only the log is read.

The log is written here, by hand: ten commits of adds with statistics of a plain column and of a variant's path, then a
checkpoint by delta-spark in the form that it takes by itself. Fresh means that no snapshot is cached; warm means that
the last one is, and that the log is asked for news.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from statistics import median

import mica
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


def _bound(keys: Sequence[str], number: int) -> str:
    """A variant object of equal int64 as the log spells it: metadata, value, zeros to a multiple of four, in z85."""
    names = [key.encode() for key in keys]
    ends = [0, *accumulate(map(len, names))]
    metadata = bytes([0x11, len(names), *ends]) + b"".join(names)
    value = bytes([0x02, len(names), *range(len(names)), *range(0, 9 * len(names) + 1, 9)])
    data = metadata + value + (bytes([6 << 2]) + struct.pack("<q", number)) * len(names)
    data += bytes(-len(data) % 4)
    text = []
    for (word,) in struct.iter_unpack(">I", data):
        text.append("".join(Z85[word // 85**power % 85] for power in (4, 3, 2, 1, 0)))
    return "".join(text)


def _add(number: int, keys: Sequence[str]) -> dict[str, object]:
    low, high = number * ROWS, (number + 1) * ROWS - 1
    stats = {
        "numRecords": ROWS,
        "minValues": {"id": low, "v": _bound(keys, low)},
        "maxValues": {"id": high, "v": _bound(keys, high)},
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


def table(path: Path, files: int = FILES, paths: int = 1) -> None:
    """Write the log's commits; `paths` paths have bounds, `time_us` and others."""
    shutil.rmtree(path, ignore_errors=True)
    log = path / "_delta_log"
    log.mkdir(parents=True)
    keys = sorted(f"$['{name}']" for name in ("time_us", *(f"p{i}" for i in range(1, paths))))
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
        share = files // COMMITS
        with (log / f"{commit:020d}.json").open("w") as out:
            out.writelines(json.dumps(action) + "\n" for action in actions)
            numbers = range(commit * share, (commit + 1) * share)
            out.writelines(json.dumps({"add": _add(number, keys)}) + "\n" for number in numbers)


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


#: What a new process prints: seconds of the import; of opening and planning, three times (first, again, again with the
#: same object); and the peak of its memory (getrusage's is that of the process that started it, if it was higher).
_NEW = """
import sys, time
began = time.perf_counter()
import mica
print(time.perf_counter() - began)
kept = None
for low in range(3):
    began = time.perf_counter()
    kept = kept if low == 2 else mica.Table.open(sys.argv[1])
    opened = time.perf_counter()
    found = kept.scan(where=f"v:time_us::bigint BETWEEN {500000000 + low} AND 500009999").kept.num_rows
    assert found == 10, found
    print(opened - began, time.perf_counter() - opened)
print(next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def million(run: Run) -> None:
    """The same on 1,000,000 files with one bounded path, and with eight; the logs take minutes to write."""
    for paths, times in ((1, 1), (8, 2)):
        target = Path(run.target(f"million-{paths}"))
        if not target.is_dir():
            table(target, 1_000_000, paths)
            mica.Table.open(target).checkpoint()
        rounds = []
        for _ in range(run.rounds):
            done = subprocess.run([sys.executable, "-c", _NEW, target], capture_output=True, text=True, check=True)
            rounds.append([float(number) for number in done.stdout.split()])
        imported, opened, planned, again, warm, _, same, memory = map(median, zip(*rounds, strict=True))
        what = f"1,000,000 files, {paths} bounded {'path' if paths == 1 else 'paths'}"
        run.console.print(
            f"{what}: import {imported:.3f} s, open {opened:.3f}, plan {planned:.3f}; warm {again:.3f} and {warm:.3f}; "
            f"same table {same:.3f}; {memory / 1e6:.0f} MB"
        )
        run.promise(f"{what}, new process", imported + opened + planned, 1.0 * times, " s", at_most=True)
        run.promise(f"{what}, warm process", again + warm, 0.5 * times, " s", at_most=True)
        run.promise(f"{what}, same table again", same, 0.03 * times, " s", at_most=True)
        run.promise(f"{what}, memory", memory / 1e9, 1, " GB", at_most=True)
