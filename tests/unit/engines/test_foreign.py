"""A process ends, whatever thread of a library was reading a scan."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mica

LEFT = {
    "head": "mica.dataset(place).head(1)",
    "loop": "for batch in mica.dataset(place).to_batches(): break",
    "kept": "batches = mica.dataset(place).to_batches(); next(batches)",
    "scanner": "scanner = ds.Scanner.from_batches(mica.Table.open(place).to_reader()); scanner.head(1)",
    "forked": "batches = mica.dataset(place).to_batches(); next(batches); os.fork() or sys.exit(); os.wait()",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "t"
    table = mica.Table.create(path, "id BIGINT, v VARIANT")
    for _ in range(3):
        table.append([{"id": n, "v": {"a": n}} for n in range(20_000)])
    return path


def run(code: str, place: Path) -> str:
    code = f"import atexit, os, sys\nimport pyarrow.dataset as ds\nimport mica\nplace = sys.argv[1]\n{code}"
    done = subprocess.run([sys.executable, "-c", code, place], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("left", LEFT)
def test_a_process_that_left_rows_in_the_middle_ends(left: str, place: Path) -> None:
    run(LEFT[left], place)


def test_the_main_thread_reads_on_while_python_ends(place: Path) -> None:
    code = "atexit.register(lambda: print(sum(batch.num_rows for batch in reader)))\n"
    assert run(code + "reader = mica.Table.open(place).to_reader()", place) == "60000\n"


def test_rows_that_the_main_thread_left_are_not_waited_for(place: Path) -> None:
    code = (
        "from types import SimpleNamespace\nimport time\nfrom mica.engines import foreign\n"
        "slept = []\nforeign.time = SimpleNamespace(monotonic=time.monotonic, sleep=slept.append)\n"
        "reader = mica.Table.open(place).to_reader()\nreader.read_next_batch()\nforeign._end()\nprint(slept)"
    )
    assert run(code, place) == "[]\n"
