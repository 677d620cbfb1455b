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

#: What a kind of difference is, for so many documents (lookups: paths that were asked for).
KINDS = {
    "digits": "the numbers of {} documents are equal only as doubles: digits of decimals are lost",
    "null": "{} documents come back as NULL",
    "value": "{} documents come back with another value",
    "length": "{} documents come back with an array of another length",
    "keys": "{} documents come back with an object of other keys",
    "rows": "another number of rows comes back, for files of {} documents",
    "lookup": "{} lookups of a path that is there return another value or NULL, without an error",
    "cannot read": "reading fails for {} documents",
    "cannot look up": "looking up paths fails for {} documents",
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
        key for key, cell in outcome.cells.items() if "mica" in key and cell.wrong and blame(outcome, key)[0] == "mica"
    ]
    for key in wrong:
        print("mica is wrong:", key, outcome.cells[key].wrong)
    return 1 if wrong else 0


def blame(outcome: Outcome, key: tuple[str, str, str]) -> tuple[str, str]:
    """Who is wrong in a cell with differences, and why: the writer if its files break a rule or no engine reads all
    that it wrote; otherwise the reader.
    """
    writer, layout, reader = key
    if outcome.violations[writer, layout]:
        cells = {at[2]: cell for at, cell in outcome.cells.items() if at[:2] == (writer, layout)}
        right = sum(not cell.wrong for cell in cells.values())
        return writer, f"{writer}'s files break the specification; {right} of {len(cells)} engines read them"
    if all(cell.wrong for at, cell in outcome.cells.items() if at[:2] == (writer, layout)):
        return writer, f"no engine reads all that {writer} wrote"
    return reader, f"{reader} is wrong, since the files keep the specification and other engines read them"


INTRODUCTION = """\
# Compatibility

Can one engine read the Variants that another wrote? Each engine that writes Variants was given {documents:,} random
JSON documents to write to Parquet files, unshredded and shredded, {rows} to a file. The documents are nested and have
all types of JSON, paths whose type drifts, and keys that are empty, quoted or beyond U+FFFF. Every engine then read
every file back as JSON; Spark and mica also looked up single paths, which readers find by bisection. Spark, DuckDB and
Iceberg choose the columns of shredded files themselves; parquet-java and arrow-rs are told those that mica chooses.

Made by `{command}`; do not edit.

**equal**: every document came back with the same keys and values. Numbers are compared digit for digit, as values; the
order of keys does not count. A number counts the documents or lookups that differ; the list below the table says how.
"Rules broken" is what `mica check` finds in the files, in the words of [check.md](check.md), and `mica repair` rewrites
such files without it. The specification decides who is wrong: the writer if its files break a rule or no engine reads
all that it wrote, otherwise the reader.

JSON documents hold no dates, binary values, UUIDs and the like: `tests/conformance` compares mica with the public
files of every type, and [decisions.md](decisions.md) says what Spark does with them.
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
            f"- **{writer}, {layout}** did not write {missing:,} of {documents:,} documents: if it refuses one, all",
            f"  {rows} of that file are missing. Its error: `{_quoted(said)}`",
        ]
    for key, cell in outcome.cells.items():
        for kind, (count, example) in cell.wrong.items():
            writer, layout, reader = key
            lines += [
                f"- **{writer}, {layout}, read by {reader}**: {KINDS[kind].format(f'{count:,}')};",
                f"  {blame(outcome, key)[1]}. An example: `{_quoted(example)}`",
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


if __name__ == "__main__":
    sys.exit(main())
