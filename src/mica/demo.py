"""Events for the demonstration: like those of a social network's firehose, with a shape that drifts.

The rule: the same seed gives the same events; fields come and go, and about one row in a hundred is out of line.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

#: 2024-11-21 15:00 UTC, in microseconds.
_BEGIN = 1_732_201_200_000_000

_WORDS = ("hello", "wörld", "空", "سلام", "привет", "mica", "sheet", "🙂", "table", "thin", "γειά", "data")
_KINDS: tuple[tuple[str, int], ...] = (
    ("app.bsky.feed.like", 45),
    ("app.bsky.feed.post", 30),
    ("app.bsky.graph.follow", 15),
    ("app.bsky.feed.repost", 10),
)


def events(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """`count` events in the order of their time."""
    rng = random.Random(seed)  # noqa: S311 - nothing secret
    names, weights = [name for name, _ in _KINDS], [weight for _, weight in _KINDS]
    time = _BEGIN
    for number in range(count):
        time += rng.randrange(1_000, 60_000)
        did = f"did:plc:{rng.randrange(20_000):024x}"
        moment = datetime.fromtimestamp(time / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event: dict[str, Any] = {"did": did, "time_us": time, "time": moment, "kind": "commit"}
        if rng.random() < 0.02:
            event |= {"kind": "identity", "identity": {"did": did, "seq": number, "handle": f"user{number}.example"}}
        else:
            event["commit"] = _commit(rng, rng.choices(names, weights)[0], moment)
        if rng.random() < 0.01:
            event |= rng.choice(
                ({"time_us": str(time)}, {"kind": 7}, {f"odd_{rng.randrange(500)}": None}, {"did": [did]})
            )
        yield event


def write(directory: Path, count: int, files: int, seed: int = 1) -> list[Path]:
    """The events in NDJSON files, in order."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"events-{n:03d}.ndjson" for n in range(files)]
    source = events(count, seed)
    for number, path in enumerate(paths):
        rows = count * (number + 1) // files - count * number // files
        with path.open("wb") as file:
            for _ in range(rows):
                file.write(orjson.dumps(next(source), option=orjson.OPT_APPEND_NEWLINE))
    return paths


def _commit(rng: random.Random, collection: str, moment: str) -> dict[str, Any]:
    operation = "delete" if rng.random() < 0.05 else "create"
    commit: dict[str, Any] = {
        "rev": f"{rng.randrange(1 << 60):x}", "operation": operation, "collection": collection,
        "rkey": f"{rng.randrange(1 << 60):x}",
    }  # fmt: skip
    if operation == "delete":
        return commit
    record: dict[str, Any] = {"$type": collection, "createdAt": moment}
    if collection.endswith("post"):
        record["text"] = " ".join(rng.choices(_WORDS, k=rng.randrange(3, 25)))
        record["langs"] = rng.sample(["en", "de", "ja", "pt"], rng.randrange(1, 3))
        if rng.random() < 0.3:
            parent = {
                "cid": f"bafy{rng.randrange(1 << 90):x}",
                "uri": f"at://{rng.randrange(1 << 40):x}/{rng.randrange(1 << 40):x}",
            }
            record["reply"] = {"parent": parent, "root": parent}
    elif collection.endswith("follow"):
        record["subject"] = f"did:plc:{rng.randrange(20_000):024x}"
    else:
        record["subject"] = {"cid": f"bafy{rng.randrange(1 << 90):x}", "uri": f"at://{rng.randrange(1 << 40):x}"}
    return {**commit, "record": record, "cid": f"bafy{rng.randrange(1 << 90):x}"}
