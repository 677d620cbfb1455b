"""What the sources of a version hold of its files beside names and sizes: statistics, tags, and more.

The rule: a column is read for the files that are asked for, in their order. `wanted` are numbers of files of the state,
all if it is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, from_numpy, one_array, to_numpy
from mica.log.arrays import taken
from mica.log.line_source import LineSource
from mica.log.replay import State
from mica.stats.read import SHARE, Share, Texts, is_ascending, shares_of

if TYPE_CHECKING:
    from mica.log.checkpoint import PartSource

#: So few statistics of a checkpoint are read whole and kept.
_FEW = 1 << 12


def gathered(
    state: State, wanted: np.ndarray | None, kind: pa.DataType, read: Callable[[Any, np.ndarray], pa.Array]
) -> pa.Array:
    """Returns a column: what `read` returns for the rows of each source."""
    sources, rows = _places(state, wanted)
    parts, places = [], []
    for number in np.unique(sources):
        place = np.flatnonzero(sources == number)
        parts.append(read(state.sources[number], rows[place]))
        places.append(place)
    if not parts:
        return pa.nulls(0, kind)
    if len(parts) == 1:
        return parts[0]
    order = np.empty(len(sources), np.int64)
    order[np.concatenate(places)] = np.arange(len(sources))
    return pa.concat_arrays(parts).take(from_numpy(order))


def stats_in_shares(state: State, wanted: np.ndarray | None) -> Iterator[Share]:
    """Yields the statistics of the files some at a time, with places in `wanted`. Of a checkpoint only what is yielded
    is in memory."""
    sources, rows = _places(state, wanted)
    for number in np.unique(sources) if len(state.sources) > 1 else range(len(state.sources)):
        ours = sources == number
        place, own = (np.arange(len(rows)), rows) if ours.all() else (np.flatnonzero(ours), rows[ours])
        source = state.sources[number]
        if isinstance(source, LineSource) or "stats" not in source.columns or len(own) <= _FEW:
            yield from ((place[at], texts) for at, texts in shares_of(stats_of(source, own)))
            continue
        if not is_ascending(own):
            order = np.argsort(own, kind="stable")
            place, own = place[order], own[order]
        for start, count, texts in source.column_shares("stats", SHARE):
            here = slice(*np.searchsorted(own, np.array((start, start + count), own.dtype)))
            if here.start < here.stop:
                yield place[here], partial(_texts_of, source, texts, start, own[here])


def _places(state: State, wanted: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the files' sources, and their rows there."""
    sources, rows = (to_numpy(one_array(state.files[name])) for name in ("source", "row"))
    return (sources, rows) if wanted is None else (sources[wanted], rows[wanted])


def stats_of(source: Any, rows: np.ndarray) -> pa.Array:
    """The statistics of rows of a source as JSON strings; null for a file without."""
    if isinstance(source, LineSource):
        return taken(source.stats, rows)
    text = source.add_column("stats")
    return _or_parsed(
        source, rows, pa.nulls(len(rows), pa.string()) if text is None else taken(text, rows).cast(pa.string())
    )


def _texts_of(source: PartSource, texts: Texts, start: int, rows: np.ndarray) -> Iterator[pa.Array]:
    """The statistics of these rows, which ascend, out of texts whose first is that of row `start`."""
    for some in texts():
        own = rows[slice(*np.searchsorted(rows, (start, start + len(some))))]
        if len(own):
            yield _or_parsed(source, own, taken(some, own - start).cast(pa.string()))
        start += len(some)


def _or_parsed(source: PartSource, rows: np.ndarray, found: pa.Array) -> pa.Array:
    """The texts, those that are missing made from `stats_parsed`."""
    if not found.null_count or "stats_parsed" not in source.columns:
        return found
    parsed = source.add_column("stats_parsed")
    assert parsed is not None
    from mica.log.stats_struct import format_stats

    return pc.coalesce(found, format_stats(taken(parsed, rows)))


def providers_of(source: Any, rows: np.ndarray) -> pa.Array:
    """Who clustered the files of rows of a source; null if nobody did."""
    return _of_adds(source, rows, "clusteringProvider", pa.string(), _text)


def tags_of(source: Any, rows: np.ndarray, kind: pa.DataType) -> pa.Array:
    """The tags of the files of rows of a source, as `kind`: a map of strings."""
    return _of_adds(source, rows, "tags", kind, _tags)


def _of_adds(source: Any, rows: np.ndarray, key: str, kind: pa.DataType, readable: Callable[[object], Any]) -> pa.Array:
    """What few of the add actions of a source have under this key; null for the others."""
    if isinstance(source, LineSource):
        lines = source.lines(rows)
        found: list[Any] = [None] * len(rows)
        for at in np.flatnonzero(to_numpy(pc.match_substring(lines, f'"{key}"'.encode()))):
            found[at] = readable(orjson.loads(lines[int(at)].as_buffer().to_pybytes())["add"].get(key))
        return arrow_array(found, kind)
    column = source.add_column(key)
    return pa.nulls(len(rows), kind) if column is None else taken(column, rows).cast(kind)


def _text(found: object) -> str | None:
    return found if isinstance(found, str) else None


def _tags(found: object) -> list[tuple[str, str]] | None:
    """Returns the readable part of a file's tags; an unreadable tag is ignored, which is always safe."""
    if not isinstance(found, dict):
        return None
    return [(name, text) for name, text in found.items() if isinstance(text, str)]
