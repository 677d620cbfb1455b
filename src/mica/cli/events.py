"""Generates events like those of Bluesky's firehose; the same number and seed always give the same bytes.

Events come in chunks of 10,000, each from a generator with its own seed, so chunks can be made in any order. `time_us`
grows through all chunks. 99 % of the events have the usual shape; the others have one path of another type, or an
unknown field (`ODD`). `did`, `time_us`, `kind` and the names of operation and collection never drift: the demo and the
benchmarks query them.

    python -m mica.cli.events events.ndjson --events 500000 --seed 1
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mica.cores import cores

CHUNK = 10_000
START_US = 1_732_206_349_000_000
GAP_US = 50_000
"""Mean time between two events; 500,000 of them span seven hours."""
PEOPLE = 200_000
POSTS = 3_000
"""Posts that the references of one chunk go to."""
ODD_SHARE = 0.01

Json = Any
Event = dict[str, Json]

_BASE32 = bytes(b"abcdefghijklmnopqrstuvwxyz234567"[i % 32] for i in range(256))

_WORDS = {
    "en": "the morning light is on my desk and coffee helps nobody asked but here we are again".split(),
    "pt": "hoje não consigo acreditar que já é quinta feira e o café acabou outra vez no escritório amanhã".split(),
    "ja": "今日 は とても 寒い ですね 新しい 本 を 読み ました 猫 が かわいい おはよう 写真 ありがとう".split(),
    "ru": "сегодня утром шёл снег и поезд опять опоздал но чай ещё горячий а новости как всегда".split(),
    "ar": "صباح الخير من المدينة القديمة اليوم الجو جميل والقهوة جاهزة كما في كل يوم".split(),
    "th": "สวัสดี ตอนเช้า วันนี้ ฝนตก อีกแล้ว กาแฟ อร่อย มาก รถไฟ มาช้า".split(),
    "ko": "오늘 아침 날씨 정말 좋네요 새 책 읽고 있어요 고양이 사진 고마워요".split(),
    "de": "heute früh war es größer als gedacht und über den Straßen lag Nebel schöne Grüße".split(),
    "hi": "आज सुबह बारिश हुई और चाय बहुत अच्छी थी फिर मिलेंगे धन्यवाद".split(),
}
_LANGS = list(_WORDS)
_LANG_WEIGHTS = [45, 14, 16, 4, 2, 3, 5, 7, 4]
_SPICE = [
    "🦋",
    "🎉",
    '"quoted"',
    "line\nbreak",
    "tab\there",
    "back\\slash",
    "https://example.org/a?b=1&c=2",
    "#topic",
    "𝔘𝔫𝔦",
    "",
    "…",
]

_KINDS = ["like", "post", "follow", "repost", "delete", "block", "profile", "listitem", "identity", "account"]
_KIND_WEIGHTS = [44, 18, 15, 8, 8, 2, 1.5, 1.5, 1, 1]
_COLLECTIONS = {
    "like": "app.bsky.feed.like",
    "post": "app.bsky.feed.post",
    "follow": "app.bsky.graph.follow",
    "repost": "app.bsky.feed.repost",
    "block": "app.bsky.graph.block",
    "profile": "app.bsky.actor.profile",
    "listitem": "app.bsky.graph.listitem",
}


class _Chunk:
    """What one chunk draws from: random numbers, a long run of base32 characters, words."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = random.Random(f"mica events {seed} {number}")
        # One draw for all identifiers: an event takes at most about 400 characters; the run is read in a circle.
        self.letters = self.random.randbytes(CHUNK * 256 + 64).translate(_BASE32).decode("ascii")
        self.at = 0
        self.time_us = START_US + number * CHUNK * GAP_US
        # Likes and replies refer to the posts of the hour, and most of them to a few of these.
        self.posts = [self._post() for _ in range(POSTS)]

    def take(self, count: int) -> str:
        """The next `count` base32 characters."""
        at = self.at
        if at + count > len(self.letters):
            at = 0
        self.at = at + count
        return self.letters[at : at + count]

    def did(self) -> str:
        """A user; a few users are much more frequent than the others."""
        person = int(self.random.random() ** 3 * PEOPLE)
        # A number spread over 24 characters, the same for the same person in every chunk.
        digits = f"{(person + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 120):030x}"
        return "did:plc:" + digits.translate(_DIGITS)[:24]

    def tid(self) -> str:
        """A timestamp identifier: the same start for about a minute, then anything."""
        coarse = self.time_us >> 26
        return "3" + "".join(_TID[coarse >> shift & 31] for shift in (20, 15, 10, 5, 0)) + self.take(7)

    def cid(self) -> str:
        return "bafyrei" + self.take(52)

    def uri(self, collection: str) -> str:
        return f"at://{self.did()}/{collection}/{self.tid()}"

    def _post(self) -> Event:
        return {"cid": self.cid(), "uri": self.uri("app.bsky.feed.post")}

    def post(self) -> Event:
        """A reference to a post."""
        return self.posts[int(self.random.random() ** 2 * POSTS)]

    def text(self, lang: str) -> str:
        draw = self.random
        words = draw.choices(_WORDS[lang], k=int(draw.random() ** 2 * 24))
        if draw.random() < 0.3:
            words.append(draw.choice(_SPICE))
        return " ".join(words)

    def created_at(self) -> str:
        milliseconds = self.time_us // 1000 - int(self.random.random() * 2000)
        seconds, rest = divmod(milliseconds, 1000)
        return f"{_minute(seconds // 60)}{seconds % 60:02d}.{rest:03d}Z"


_DIGITS = {ord("0"): "q", ord("1"): "z", **{ord(c): c for c in "abcdef234567"}, ord("8"): "k", ord("9"): "v"}
_TID = "234567abcdefghijklmnopqrstuvwxyz"
_minutes: dict[int, str] = {}


def _minute(minute: int) -> str:
    """`2024-11-21T16:25:`, remembered: thousands of events share it."""
    known = _minutes.get(minute)
    if known is None:
        known = _minutes[minute] = datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:")
    return known


def _record(chunk: _Chunk, what: str) -> Event:
    draw = chunk.random
    record: Event = {"$type": _COLLECTIONS[what], "createdAt": chunk.created_at()}
    if what in ("like", "repost"):
        record["subject"] = chunk.post()
        if chunk.time_us // 60_000_000 % 3 == 0 and draw.random() < 0.1:  # a field that comes and goes
            record["via"] = {"cid": chunk.cid(), "uri": chunk.uri("app.bsky.feed.repost")}
    elif what in ("follow", "block"):
        record["subject"] = chunk.did()
    elif what == "listitem":
        record["subject"] = chunk.did()
        record["list"] = chunk.uri("app.bsky.graph.list")
    elif what == "profile":
        record["displayName"] = chunk.text(draw.choices(_LANGS, _LANG_WEIGHTS)[0])[:40]
        if draw.random() < 0.6:
            record["description"] = chunk.text(draw.choices(_LANGS, _LANG_WEIGHTS)[0])
        if draw.random() < 0.5:
            record["pinnedPost"] = chunk.post()
    else:
        _post(chunk, record)
    return record


def _post(chunk: _Chunk, record: Event) -> None:
    draw = chunk.random
    lang = draw.choices(_LANGS, _LANG_WEIGHTS)[0]
    record["text"] = chunk.text(lang)
    if draw.random() < 0.9:
        record["langs"] = [lang] if draw.random() < 0.9 else [lang, "en"]
    if draw.random() < 0.35:
        parent = chunk.post()
        root = parent if draw.random() < 0.4 else chunk.post()
        record["reply"] = {"parent": parent, "root": root}
    luck = draw.random()
    if luck < 0.1:
        picture = {
            "$type": "blob",
            "ref": {"$link": chunk.cid()},
            "mimeType": "image/jpeg",
            "size": int(draw.random() * 1e6),
        }
        ratio = {"height": draw.randrange(200, 2000), "width": draw.randrange(200, 2000)}
        image = {"alt": chunk.text(lang) if draw.random() < 0.3 else "", "aspectRatio": ratio, "image": picture}
        record["embed"] = {"$type": "app.bsky.embed.images", "images": [image] * draw.randrange(1, 4)}
    elif luck < 0.16:
        external = {
            "title": chunk.text(lang),
            "description": chunk.text(lang),
            "uri": f"https://example.org/{chunk.take(12)}",
        }
        record["embed"] = {"$type": "app.bsky.embed.external", "external": external}
    elif luck < 0.2:
        record["embed"] = {"$type": "app.bsky.embed.record", "record": chunk.post()}
    if draw.random() < 0.12:
        feature = {"$type": "app.bsky.richtext.facet#tag", "tag": draw.choice(_WORDS[lang])}
        start = draw.randrange(50)
        record["facets"] = [
            {"features": [feature], "index": {"byteEnd": start + draw.randrange(1, 30), "byteStart": start}}
        ]
    if chunk.time_us // 600_000_000 % 2 and draw.random() < 0.1:  # ten minutes with, ten without
        record["tags"] = draw.choices(_WORDS["en"], k=draw.randrange(1, 4))


def _event(chunk: _Chunk, what: str) -> Event:
    draw = chunk.random
    event: Event = {"did": chunk.did(), "time_us": chunk.time_us, "kind": "commit"}
    if what in ("identity", "account"):
        event["kind"] = what
        body: Event = {"did": event["did"], "seq": chunk.time_us // 1000, "time": chunk.created_at()}
        body |= {"handle": chunk.take(9) + ".bsky.social"} if what == "identity" else {"active": draw.random() < 0.9}
        event[what] = body
        return event
    commit: Event = {"rev": chunk.tid(), "operation": "create"}
    event["commit"] = commit
    if what == "delete":
        commit["operation"] = "delete"
        commit["collection"] = draw.choice(["app.bsky.feed.like", "app.bsky.graph.follow", "app.bsky.feed.post"])
        commit["rkey"] = chunk.tid()
        return event
    if what == "profile":
        commit["operation"] = "update"
    commit["collection"] = _COLLECTIONS[what]
    commit["rkey"] = "self" if what == "profile" else chunk.tid()
    commit["record"] = _record(chunk, what)
    commit["cid"] = chunk.cid()
    if draw.random() < ODD_SHARE:
        draw.choice(ODD)(chunk, commit, commit["record"])
    return event


def _set(*path: str, value: Callable[[_Chunk], Json]) -> Callable[[_Chunk, Event, Event], None]:
    """A change of one path of the commit to a value of another type; a missing path is created."""

    def change(chunk: _Chunk, commit: Event, _record: Event) -> None:
        node = commit
        for key in path[:-1]:
            below = node.get(key)
            # A copy: one reference may occur twice in an event.
            node[key] = dict(below) if isinstance(below, dict) else {}
            node = node[key]
        node[path[-1]] = value(chunk)

    return change


def _stranger(chunk: _Chunk, _commit: Event, record: Event) -> None:
    record[f"x_{chunk.take(3)}"] = {"note": chunk.take(5), "n": chunk.random.randrange(1000)}


ODD: list[Callable[[_Chunk, Event, Event], None]] = [
    _set("rev", value=lambda chunk: chunk.time_us),
    _set("rkey", value=lambda chunk: chunk.random.randrange(10**9)),
    _set("cid", value=lambda chunk: {"$link": chunk.cid()}),
    _set("record", "$type", value=lambda _: None),
    _set("record", "createdAt", value=lambda chunk: chunk.time_us // 1000),
    _set("record", "text", value=lambda chunk: chunk.random.random()),
    _set("record", "text", value=lambda _: None),
    _set("record", "langs", value=lambda _: "en"),
    _set("record", "subject", value=lambda chunk: chunk.random.randrange(1000)),
    _set("record", "subject", "uri", value=lambda _: False),
    _set("record", "subject", "cid", value=lambda chunk: chunk.random.randrange(1000)),
    _set("record", "reply", value=lambda chunk: chunk.uri("app.bsky.feed.post")),
    _set("record", "reply", "parent", "uri", value=lambda chunk: [chunk.did()]),
    _set("record", "reply", "parent", "cid", value=lambda chunk: chunk.random.randrange(1000)),
    _set("record", "reply", "root", "uri", value=lambda _: None),
    _set("record", "reply", "root", "cid", value=lambda chunk: chunk.random.random()),
    _set("record", "embed", "$type", value=lambda _: 7),
    _set("record", "embed", "external", "uri", value=lambda _: {}),
    _set("record", "embed", "external", "title", value=lambda _: 12.5),
    _set("record", "embed", "record", "uri", value=lambda _: True),
    _set("record", "tags", value=lambda _: {"0": "first"}),
    _stranger,
    _stranger,
]


def events(first: int, count: int, seed: int = 1) -> Iterator[Event]:
    """Events number `first` to `first + count` as Python values."""
    for number in range(first // CHUNK, -(-(first + count) // CHUNK)):
        chunk = _Chunk(seed, number)
        kinds = chunk.random.choices(_KINDS, _KIND_WEIGHTS, k=CHUNK)
        # Distances of two neighbours are anything; the chunk as a whole takes exactly its share of time.
        moments = sorted(chunk.random.sample(range(CHUNK * GAP_US), CHUNK))
        start = chunk.time_us
        for offset, (what, moment) in enumerate(zip(kinds, moments, strict=True)):
            chunk.time_us = start + moment
            event = _event(chunk, what)
            if first <= number * CHUNK + offset < first + count:
                yield event


def lines(first: int, count: int, seed: int = 1) -> bytes:
    """The same as NDJSON."""
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
    return "".join([encode(event) + "\n" for event in events(first, count, seed)]).encode()


def _chunk_lines(work: tuple[int, int, int]) -> bytes:
    return lines(*work)


def write(path: Path, count: int, seed: int = 1, *, processes: int | None = None) -> int:
    """Write `count` events to `path`, gzipped if its name ends in `.gz`; returns the number of bytes of JSON."""
    work = [(first, min(CHUNK, count - first), seed) for first in range(0, count, CHUNK)]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    size = 0
    with (
        gzip.open(part, "wb", compresslevel=5) if path.suffix == ".gz" else part.open("wb") as out,
        ProcessPoolExecutor(min(processes or cores(), len(work) or 1)) as pool,
    ):
        # A few chunks are made faster than a second process starts.
        for text in map(_chunk_lines, work) if len(work) < 20 else pool.map(_chunk_lines, work):
            out.write(text)
            size += len(text)
    part.rename(path)
    return size


def write_files(directory: Path, count: int, files: int, seed: int = 1) -> list[Path]:
    """The first `count` events as NDJSON files in the order of time."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(files):
        first, end = count * number // files, count * (number + 1) // files
        path = directory / f"events-{number:03d}.ndjson"
        path.write_bytes(lines(first, end - first, seed))
        paths.append(path)
    return paths


def main() -> None:
    """The generator by itself."""
    parser = argparse.ArgumentParser(description="Write Bluesky-like events as NDJSON.")
    parser.add_argument("path", type=Path, help="the file to write; .gz compresses it")
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.path.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    size = write(arguments.path, arguments.events, arguments.seed)
    seconds = time.perf_counter() - start
    print(f"{arguments.events:,} events, {size / 1e6:.1f} MB, {seconds:.1f} s: {arguments.path}")


if __name__ == "__main__":
    main()
