"""Another commit of mica beside this tree, in turns: what changed between them, whatever the machine does meanwhile.

python -m benchmarks.turns COMMIT [--rounds N]

The commit is built below `.bench/turns`. Each turn of a build is a process of its own; answers are compared.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks import environments, programs
from benchmarks.process import ROOT
from benchmarks.run import Run

FOLDER = environments.BENCH / "turns"

_APPENDS = """
import pyarrow as pa

def create(schema):
    shutil.rmtree(target, ignore_errors=True)
    return mica.Table.create(target, schema)

arrow = pa.table({"id": pa.array(range(100), pa.int64()), "s": [f"x{n}" for n in range(100)]})
table = create("id BIGINT, s STRING")
measured("append of 100 rows, in process", lambda: table.append(arrow), 30, 10)
answers.append(table.scan().count())
spark = mica.session()
rows = list(zip(range(100), arrow["s"].to_pylist()))
table = create("id BIGINT, s STRING")
listed = lambda: spark.createDataFrame(rows, "id BIGINT, s STRING")
for name, frame in {
    "rows of the driver": lambda: spark.createDataFrame(arrow),
    "rows of a list": listed,
    "rows of a job": lambda: listed().filter("id >= 0"),
}.items():
    measured(f"on Spark, {name}", lambda: table.append(frame()), 15, 6)
answers.append(table.scan().count())
spark.stop()
"""


def built(commit: str) -> Path:
    """A folder with the package of the commit, its kernel built."""
    name = subprocess.run(["git", "rev-parse", commit], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folder = FOLDER / name.strip()
    if not (folder / "mica").is_dir():
        sources = FOLDER / "sources"
        shutil.rmtree(sources, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", "--no-checkout", str(ROOT), str(sources)], check=True)
        subprocess.run(["git", "checkout", "-q", name.strip()], cwd=sources, check=True)
        cargo = (ROOT / ".venv/share/mica-cargo-bin").read_text().strip()
        path = os.pathsep.join([cargo, os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": path, "PYO3_BUILD_EXTENSION_MODULE": "1"}
        environment["CARGO_TARGET_DIR"] = str(FOLDER / "target")
        command = ["cargo", "build", "--release", "-p", "mica-native", "--lib"]
        subprocess.run(command, cwd=sources / "native", env=environment, check=True)
        _put(sources / "src/mica", FOLDER / "target/release/lib_native.so", folder)
    return folder


def _put(package: Path, kernel: Path, folder: Path) -> None:
    made = folder.with_suffix(".made")
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(package, made / "mica", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(kernel, made / "mica/_native.abi3.so")
    shutil.rmtree(folder, ignore_errors=True)
    made.rename(folder)


def main() -> None:
    """Prints the medians (and the least) of both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each build")
    parser.add_argument("--events", type=int, default=500_000)
    arguments = parser.parse_args()
    before, after = built(arguments.commit), FOLDER / "now"
    _put(ROOT / "src/mica", next((ROOT / "src/mica").glob("_native*.so")), after)
    given = programs.given(before, Run(1, arguments.events, 2, frozenset()).events(), FOLDER / "given")
    found: dict[str, dict[Path, list[float]]] = {}
    for turn in range(arguments.rounds):
        for program in (programs.ONE_CORE, _APPENDS):
            answers = []
            for build in (before, after) if turn % 2 == 0 else (after, before):
                told, answer = programs.run(build, program, given, FOLDER / "written", 2)
                answers.append(answer)
                for work, every in told.items():
                    found.setdefault(work, {}).setdefault(build, []).extend(every)
            if answers[0] != answers[1]:
                sys.exit("both builds gave other answers")
    shown = Table(title=f"{arguments.commit} and this tree, ms, medians (and the least)", title_justify="left")
    for column in ("work", arguments.commit, "this tree", "times as fast"):
        shown.add_column(column, justify="left" if column == "work" else "right")
    for work, times in found.items():
        old, new = times[before], times[after]
        both = [f"{median(every):.4g} ({min(every):.4g})" for every in (old, new)]
        shown.add_row(work, *both, f"{median(old) / median(new):.2f} ({min(old) / min(new):.2f})")
    Console(highlight=False, width=150).print(shown)


if __name__ == "__main__":
    main()
