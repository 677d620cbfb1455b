"""Every engine's files read by every engine: what differs from the document that was written.

The rule: the document is what is right. Where an engine gives something else of a file, either the file or its reader
is wrong: the file where its rows break a rule of the specification (`mica check` says so) or where nobody reads the
document from it, the reader otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mica
from tests.campaign.documents import canonical, differs, documents
from tests.campaign.engines import EngineError


@dataclass
class Cell:
    """What one engine made of the files of another."""

    rows: int = 0
    #: Kind of difference → (how many rows, an example).
    wrong: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, kind: str, example: str, count: int = 1) -> None:
        """Counts a difference; the shortest example is kept."""
        before, shown = self.wrong.get(kind, (0, example))
        self.wrong[kind] = before + count, min(shown, example, key=len)


@dataclass
class Outcome:
    """Reads by (writer, layout, reader); violations and writes by (writer, layout)."""

    cells: dict[tuple[str, str, str], Cell] = field(default_factory=lambda: defaultdict(Cell))
    violations: dict[tuple[str, str], dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    #: Documents that were written, and what the writer said to those that were not, by (writer, layout).
    written: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    refused: dict[tuple[str, str], str] = field(default_factory=dict)


def run(engines: Sequence[Any], seed: int, batches: int, rows: int, folder: Path) -> Outcome:
    """Writes and reads `batches` of `rows` documents each."""
    outcome = Outcome()
    for batch in range(batches):
        texts = documents(seed + batch, rows)
        expected = [canonical(text) for text in texts]
        for writer in engines:
            for layout in writer.layouts:
                place = folder / f"{batch}-{writer.name.replace(' ', '')}-{layout.replace(' ', '')}.parquet"
                try:
                    path = writer.write(texts, place, layout)
                except EngineError as e:
                    outcome.refused[writer.name, layout] = min(
                        str(e), outcome.refused.get((writer.name, layout), str(e)), key=len
                    )
                    continue
                outcome.written[writer.name, layout] += rows
                found = outcome.violations[writer.name, layout]
                for total in mica.check(path, limit=1).totals.to_pylist():
                    found[total["kind"]] = found.get(total["kind"], 0) + total["count"]
                for reader in engines:
                    _read(outcome.cells[writer.name, layout, reader.name], reader, path, texts, expected)
                _lookups(outcome, engines, writer.name, layout, path, expected)
    return outcome


def _read(cell: Cell, reader: Any, path: str, texts: Sequence[str], expected: Sequence[Any]) -> None:
    cell.rows += len(texts)
    try:
        found = reader.read(path)
    except (EngineError, mica.MicaError) as e:
        cell.add("cannot read", str(e).splitlines()[0][:200], len(texts))
        return
    if len(found) != len(texts):
        cell.add("rows", f"{len(found)} rows of {len(texts)}", len(texts))
        return
    for text, wanted, given in zip(texts, expected, found, strict=True):
        kind = differs(wanted, canonical(given))
        if kind is not None:
            cell.add(kind, f"{_cut(text)} → {_cut(given)}")


def _lookups(
    outcome: Outcome, engines: Sequence[Any], writer: str, layout: str, path: str, expected: Sequence[Any]
) -> None:
    """Strings by their paths, which readers find by bisection: order matters there and nowhere else."""
    names: dict[str, None] = {}
    for row in expected:
        names |= dict.fromkeys(row) if isinstance(row, dict) else {}
    keys = [name for name in names if name and not set(name) & set("\"'[].\\")][:12]
    if not keys:
        return
    for reader in engines:
        if not hasattr(reader, "lookups"):
            continue
        cell = outcome.cells[writer, layout, reader.name]
        try:
            found = reader.lookups(path, keys)
        except (EngineError, mica.MicaError) as e:
            cell.add("cannot look up", str(e).splitlines()[0][:200], len(expected))
            continue
        for row, values in zip(expected, found, strict=True):
            for key, value in zip(keys, values, strict=True):
                wanted = row.get(key) if isinstance(row, dict) else None
                if isinstance(wanted, str) and value != wanted:
                    cell.add("lookup", f"{key!r} is {_cut(wanted)!r}, found {_cut(value)}")
                elif isinstance(wanted, bool | int | float) and value is None:
                    cell.add("lookup", f"{key!r} is {wanted}, found nothing")


def _cut(text: Any) -> str:
    shown = "NULL" if text is None else str(text)
    return shown if len(shown) <= 90 else f"{shown[:90]}…"
