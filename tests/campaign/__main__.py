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
    "lookup": "a path that is there gives another value or NULL, without an error",
    "cannot read": "an error where the file is read",
    "cannot look up": "an error where a path is asked for",
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
    given.out.write_text(page(outcome, names, command, given.batches, given.rows))
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


INTRODUCTION = """\
# Compatibility

Can one engine read the Variants that another wrote? {documents:,} random JSON documents (nested, of all types that
JSON has, with paths whose type drifts and keys that are empty, quoted or beyond U+FFFF) were written to Parquet files
by each engine, unshredded and shredded, in batches of {rows}. Every file was read back by every engine: whole, as
JSON, and by Spark and mica by single paths too, which readers find by bisection.

Made by `{command}`; do not edit.

**equal**: every document came back with the same keys and values; numbers are compared by value, digit for digit, and
the order of keys does not count. A number says how many documents or lookups did not; what became of them stands
below the table. "Rules broken" is what `mica check` says of the files (the words are those of [check.md](check.md));
`mica repair` writes such a file anew without them. The specification decides who is wrong: the writer where its files
break a rule or where nobody reads the document from them, otherwise the reader.

Types that JSON lacks (dates, binary, UUID, …) are not among these documents: `tests/conformance` holds mica against
the public files of every type, and Spark's part is told in [decisions.md](decisions.md).
"""


def page(outcome: Outcome, names: list[str], command: str, batches: int, rows: int) -> str:
    """The text of docs/compatibility.md."""
    documents = batches * rows
    lines = [
        *INTRODUCTION.format(documents=documents, rows=rows, command=command).splitlines(),
        "",
        "| written by | documents | " + " | ".join(f"read by {name}" for name in names) + " | rules broken |",
        "|---" * (len(names) + 3) + "|",
    ]
    pairs = list(dict.fromkeys([*outcome.written, *outcome.refused]))
    for writer, layout in pairs:
        cells = [outcome.cells.get((writer, layout, name), Cell()) for name in names]
        shown = [_shown(cell) for cell in cells]
        broken = ", ".join(f"`{kind}` ({count:,})" for kind, count in outcome.violations[writer, layout].items())
        written = f"{outcome.written[writer, layout]:,}"
        lines.append(f"| {writer}, {layout} | {written} | " + " | ".join(shown) + f" | {broken or 'none'} |")
    lines += ["", "## What differs", ""]
    for (writer, layout), said in outcome.refused.items():
        missing = documents - outcome.written[writer, layout]
        lines += [
            f"- **{writer}, {layout}** did not write {missing:,} of {documents:,} documents: one that it refuses takes",
            f"  its whole batch of {rows} with it. It said: `{_quoted(said)}`",
        ]
    for key, cell in outcome.cells.items():
        for kind, (count, example) in cell.wrong.items():
            writer, layout, reader = key
            lines += [
                f"- **{writer}, {layout}, read by {reader}**: {KINDS[kind]}, {count:,} times.",
                f"  Wrong is {blame(outcome, key)}. An example: `{_quoted(example)}`",
            ]
    if lines[-1] == "":
        lines.append("Nothing.")
    return "\n".join(lines) + "\n"


def _shown(cell: Cell) -> str:
    if not cell.rows:
        return "–"
    return f"{sum(count for count, _ in cell.wrong.values()):,}" if cell.wrong else "equal"


def _quoted(text: str) -> str:
    return text.replace("`", "´").replace("|", "¦")


sys.exit(main())
