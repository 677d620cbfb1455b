"""Documents of eight kinds, each hard in a way of its own; the same at each call."""

from __future__ import annotations

import random
import string
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

_WORDS = random.Random(0)
WORDS = ["".join(_WORDS.choices(string.ascii_lowercase, k=_WORDS.randint(3, 10))) for _ in range(3000)]


def _text(draw: random.Random, least: int, most: int) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(least, most)))


def _hash(draw: random.Random) -> str:
    return f"{draw.getrandbits(160):040x}"


def _time(number: int) -> str:
    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)).isoformat()


def code(draw: random.Random, number: int) -> dict[str, Any]:
    """Events of a code host: what is in `payload` depends on `type`, objects lie in arrays in objects."""
    who, repo = draw.randint(1, 50_000), draw.randint(1, 20_000)
    name = f"org{repo % 977}/repo{repo}"
    user = {"id": who, "login": f"user{who}", "url": f"https://api.example.com/users/user{who}"}
    kind = draw.choice(["Push", "Push", "Push", "Watch", "Issues", "PullRequest", "Create"])
    payload: dict[str, Any]
    if kind == "Push":
        commits = [
            {"sha": _hash(draw), "author": {"name": draw.choice(WORDS)}, "message": _text(draw, 3, 20)}
            for _ in range(draw.randint(1, 3))
        ]
        payload = {"push_id": 10**10 + number, "ref": "refs/heads/main", "head": _hash(draw), "commits": commits}
    elif kind == "Issues":
        labels = [{"id": draw.randint(1, 99), "name": draw.choice(WORDS)} for _ in range(draw.randint(0, 3))]
        closed = None if draw.random() < 0.5 else _time(number + 5)
        issue = {"id": number * 7, "title": _text(draw, 6, 6), "user": user, "labels": labels, "closed_at": closed}
        payload = {"action": draw.choice(["opened", "closed"]), "issue": issue | {"body": _text(draw, 5, 80)}}
    elif kind == "PullRequest":
        head = {"ref": draw.choice(WORDS), "sha": _hash(draw), "repo": {"id": repo, "owner": user}}
        payload = {"number": draw.randint(1, 9999), "pull_request": {"title": _text(draw, 5, 5), "head": head}}
    else:
        payload = {"action": "started"} if kind == "Watch" else {"ref": draw.choice(WORDS), "ref_type": "branch"}
    event = {"id": str(30_000_000_000 + number), "type": f"{kind}Event", "actor": user, "payload": payload}
    event |= {"repo": {"id": repo, "name": name}, "created_at": _time(number)}
    return event | ({"org": {"id": repo % 977}} if draw.random() < 0.3 else {})


def metrics(draw: random.Random, number: int) -> dict[str, Any]:
    """Sixty numbers of a device: integers, and decimals of three places."""
    values = {f"m{k}": round(draw.gauss(50, 10), 3) if k % 4 else draw.randint(0, 1000) for k in range(60)}
    return {"device": f"dev-{draw.randint(1, 500)}", "ts": 1_760_000_000_000 + number * 10, "m": values}


def logs(draw: random.Random, number: int) -> dict[str, Any]:
    """Lines of containers: names of labels have dots and slashes, and depend on the application."""
    app = draw.randint(0, 300)
    labels = {f"app.example.io/{WORDS[(app * 7 + k) % len(WORDS)]}": WORDS[(app + k) % len(WORDS)] for k in range(6)}
    pod = {"name": f"app{app}-{draw.getrandbits(40):x}", "namespace": f"ns{app % 20}", "labels": labels}
    line = {"time": _time(number), "stream": draw.choice(["stdout", "stderr"]), "log": _text(draw, 5, 25) + "\n"}
    return line | {"kubernetes": pod | {"host": f"node-{app % 50}", "docker_id": _hash(draw)}}


def posts(draw: random.Random, number: int) -> dict[str, Any]:
    """Texts in many alphabets, with quotes and ends of lines; most arrays are empty."""
    ranges = [(0x4E00, 0x9FFF), (0x400, 0x44F), (0x1F600, 0x1F64F), (97, 122)]
    text = "".join(chr(draw.randint(*draw.choice(ranges))) for _ in range(draw.randint(20, 100)))
    tags = [{"text": draw.choice(WORDS), "indices": [k, k + 9]} for k in range(draw.choice([0, 0, 0, 1, 2]))]
    place = [round(draw.uniform(-180, 180), 6), round(draw.uniform(-90, 90), 6)]
    post = {"id": 10**18 + number, "text": f'"{text}"\n', "entities": {"hashtags": tags, "urls": []}}
    user = {"id": draw.randint(1, 10**9), "name": text[:10]}
    return post | {"user": user, "place": place if number % 3 == 0 else None}


def identifiers(draw: random.Random, number: int) -> dict[str, Any]:
    """Keys that are identifiers: nearly every row has names that no other has."""
    users = {f"u{draw.randint(1, 10**7)}": {"clicks": draw.randint(0, 99), "last": _time(number)} for _ in range(5)}
    return {"session": str(uuid.UUID(int=draw.getrandbits(128))), "users": users, "n": number}


def vectors(draw: random.Random, number: int) -> dict[str, Any]:
    """Arrays of 256 numbers."""
    return {"id": number, "title": _text(draw, 5, 5), "vector": [round(draw.gauss(0, 1), 6) for _ in range(256)]}


def drifting(draw: random.Random, number: int) -> dict[str, Any]:
    """Every field is now a number, now a text, an object or an array, or is not there."""

    def value() -> Any:
        made = draw.randint(0, 9), draw.choice(WORDS), draw.random(), {"x": 1, "y": draw.choice(WORDS)}, [1, "a", None]
        return draw.choices(made, [3, 3, 2, 1, 1])[0]

    return {"id": number} | {f"f{k}": value() for k in range(15) if draw.random() < 0.7}


def wide(draw: random.Random, number: int) -> dict[str, Any]:
    """Any two hundred of four hundred fields."""
    there = [k for k in range(400) if draw.random() < 0.5]
    return {f"c{k}": number * k % 1000 if k % 3 else draw.choice(WORDS) for k in there}


KINDS: dict[str, Callable[[random.Random, int], dict[str, Any]]] = {
    kind.__name__: kind for kind in (code, metrics, logs, posts, identifiers, vectors, drifting, wide)
}


def documents(folder: Path, kind: str, size: int) -> Path:
    """A file of NDJSON of at least so many bytes."""
    path = folder / f"{kind}-{size}.ndjson"
    if path.exists():
        return path
    draw, written, number, make = random.Random(1), 0, 0, KINDS[kind]
    part = path.with_suffix(".part")
    with part.open("wb") as out:
        while written < size:
            written += out.write(orjson.dumps(make(draw, number)) + b"\n")
            number += 1
    return part.rename(path)
