"""`make differential`: thousands of documents through every pair of engines; writes docs/compatibility.md."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.campaign.compare import Cell, Outcome, run
from tests.campaign.engines import all_engines
from tests.support import ROOT

#: What a kind of difference is; who is wrong follows from whether the file breaks a rule.
KINDS = {
    "digits": "numbers equal only as doubles: digits of decimals are lost",
    "null": "null where there is a value",
    "value": "another value",
    "length": "an array of another length",
    "keys": "an object with other keys",
    "rows": "another number of rows",
    "lookup": "a path that is there gives another value or nothing",
    "cannot read": "an error where the file is read",
    "cannot look up": "an error where a path is asked for",
    "cannot write": "an error where the documents are written",
}


def main() -> int:
    """Runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "compatibility.md")
    given = parser.parse_args()
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    with tempfile.TemporaryDirectory() as folder, all_engines() as engines:
        outcome = run(engines, seed, given.batches, given.rows, Path(folder))
        names = [engine.name for engine in engines]
    command = f"make differential SEED={seed} BATCHES={given.batches} ROWS={given.rows}"
    given.out.write_text(page(outcome, names, command, given.batches * given.rows))
    print(f"wrote {given.out}; {command}")
    wrong = [
        key for key, cell in outcome.cells.items() if "mica" in key and cell.wrong and blame(outcome, key) == "mica"
    ]
    for key in wrong:
        print("mica is wrong:", key, outcome.cells[key].wrong)
    return 1 if wrong else 0


def blame(outcome: Outcome, key: tuple[str, str, str]) -> str:
    """Who is wrong in a cell with differences: the writer whose own engine, or nobody, reads the document from its
    file; otherwise the reader.
    """
    writer, layout, _ = key
    readers = {key[2]: cell for key, cell in outcome.cells.items() if key[:2] == (writer, layout)}
    sound = [reader for reader, cell in readers.items() if not cell.wrong]
    if outcome.violations[writer, layout] or not sound:
        return writer
    return key[2]


def page(outcome: Outcome, names: list[str], command: str, documents: int) -> str:
    """The text of docs/compatibility.md."""
    lines = [
        "# Compatibility",
        "",
        f"Made by `{command}`; do not edit. {documents:,} random JSON documents (depth, types, drift, awkward keys)",
        "were written as Variants by each engine and read by each. A cell says how often the reader gave something",
        "else than the document; a row with several lookups may count more than once. 0: all equal. The specification",
        "decides who is wrong: the writer where its files break a rule or nobody reads the document from them, else",
        "the reader.",
        "",
        "| written by | " + " | ".join(f"read by {name}" for name in names) + " | rules broken in its files |",
        "|---" * (len(names) + 2) + "|",
    ]
    pairs = list(dict.fromkeys((writer, layout) for writer, layout, _ in outcome.cells))
    for writer, layout in pairs:
        cells = [outcome.cells.get((writer, layout, name), Cell()) for name in names]
        shown = [str(sum(count for count, _ in cell.wrong.values())) if cell.rows else "–" for cell in cells]
        broken = ", ".join(f"{kind} ({count:,})" for kind, count in outcome.violations[writer, layout].items())
        lines.append(f"| {writer}, {layout} | " + " | ".join(shown) + f" | {broken or 'none'} |")
    lines += ["", "## What differs", ""]
    for key, cell in outcome.cells.items():
        for kind, (count, example) in cell.wrong.items():
            writer, layout, reader = key
            lines += [
                f"- **{writer}, {layout}, read by {reader}**: {KINDS[kind]}, {count:,} times.",
                f"  Wrong is {blame(outcome, key)}.",
                f"  Example: `{example.replace('`', '´')}`",
            ]
    if lines[-1] == "":
        lines.append("Nothing.")
    return "\n".join(lines) + "\n"


sys.exit(main())
