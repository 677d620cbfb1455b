"""Reads many commits some at a time: a parse of one commit takes as long as one of hundreds of small ones.

The rule: a share is parsed as one text. If it cannot be, each of its commits is parsed by itself, so an error names the
commit that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from mica.errors import CorruptDataError
from mica.log.replay import Commits, parse_commits
from mica.log.snapshot import read_each
from mica.storage import Entry, Storage

#: A share has at most so many commits, and so many bytes unless it is one commit.
COMMITS, BYTES = 64, 8 << 20
T = TypeVar("T")


def in_shares(
    storage: Storage, commits: Iterable[Entry], parse: Callable[[Sequence[Entry], Sequence[bytes]], T]
) -> Iterator[T]:
    """Yields what `parse` makes of some commits in turn and of their texts."""
    for share in _shares(commits):
        texts = read_each(storage, [entry.path for entry in share], bytes)
        try:
            found = [parse(share, texts)]
        except CorruptDataError:
            if len(share) == 1:
                raise
            yield from (parse([entry], [text]) for entry, text in zip(share, texts, strict=True))
        else:
            yield from found


def parsed(
    storage: Storage, commits: Iterable[Entry], keys: Sequence[str]
) -> Iterator[tuple[Sequence[Entry], Commits, np.ndarray]]:
    """Yields commits in turn, their actions, and the place in the share of the commit of each line; `keys` as for
    `parse_commits`. Errors: CORRUPT_LOG, which names the commit."""

    def parse(share: Sequence[Entry], texts: Sequence[bytes]) -> tuple[Sequence[Entry], Commits, np.ndarray]:
        found = parse_commits(texts, keys, storage.path(share[0].path))
        return share, found, places_of(texts, len(found.lines))

    return in_shares(storage, commits, parse)


def places_of(texts: Sequence[bytes], lines: int) -> np.ndarray:
    """The place of the text of each line that `split_lines` finds in all of them, which are so many. Errors:
    CORRUPT_LOG if blank lines among them leave it open."""
    if len(texts) == 1:
        return np.zeros(lines, np.int64)
    # Each has at most so many lines, so if all of them have, each has.
    counts = [text.count(b"\n") + 1 if text else 0 for text in (text.rstrip(b"\r\n") for text in texts)]
    if sum(counts) != lines:
        raise CorruptDataError("CORRUPT_LOG", "some commits have blank lines", hint="Read them one by one.")
    return np.repeat(np.arange(len(texts)), counts)


def _shares(commits: Iterable[Entry]) -> Iterator[list[Entry]]:
    share, size = list[Entry](), 0
    for entry in commits:
        if share and (len(share) == COMMITS or size + entry.size > BYTES):
            yield share
            share, size = [], 0
        share.append(entry)
        size += entry.size
    if share:
        yield share
