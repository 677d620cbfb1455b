"""A table kept through many commits has few sources, and each file still its own statistics and line."""

from __future__ import annotations

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from mica.log.replay import State, apply, parse_commits

#: Commits of files to add and to remove, by few names: they are added again and removed again.
NAMES = st.sampled_from([f"f{i}" for i in range(12)])
COMMITS = st.lists(st.tuples(st.lists(NAMES, unique=True, max_size=5), st.lists(NAMES, max_size=2)), max_size=60)


@given(COMMITS)
def test_each_file_keeps_its_statistics_and_its_line(commits: list[tuple[list[str], list[str]]]) -> None:
    state, adds = State(), 0
    expected: dict[str, str] = {}
    for number, (added, removed) in enumerate(commits):
        gone = [name for name in removed if name not in added]
        lines = [_line("remove", path=name) for name in gone]
        lines += [_line("add", path=name, size=1, stats=f"{name} of {number}", dataChange=True) for name in added]
        state = apply(state, parse_commits([b"\n".join(lines)], (), "c"))
        expected = {name: old for name, old in expected.items() if name not in gone}
        expected |= {name: f"{name} of {number}" for name in added}
        adds += len(added)
    assert dict(_facts(state)) == expected
    assert len(state.sources) <= max(1, adds.bit_length())
    assert state.files["path"].num_chunks <= max(1, adds.bit_length())


def _line(kind: str, **action: object) -> bytes:
    return orjson.dumps({kind: {"partitionValues": {}, "modificationTime": 2, **action}})


def _facts(state: State) -> list[tuple[str, str]]:
    """Path and statistics of each file, by its source's statistics; its line says the same."""
    found = []
    for file in state.files.to_pylist():
        source, row = state.sources[file["source"]], file["row"]
        line = orjson.loads(source.lines(np.array([row]))[0].as_py())["add"]
        assert (line["path"], line["stats"]) == (file["path"], source.stats[row].as_py())
        found.append((file["path"], line["stats"]))
    return found
