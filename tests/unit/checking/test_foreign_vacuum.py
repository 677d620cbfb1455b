"""What a VACUUM of delta-spark does not cope with, in tables that mica wrote once, is noted by a check."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import mica
from mica.log.deletion_vectors import vector_of
from mica.stats import z85


def test_names_that_encode_letters_beyond_ascii_are_noted(tmp_path: Path) -> None:
    mica.Table.create(tmp_path / "t", "id INT, p STRING", partition_by=["p"]).append([{"id": 1, "p": p} for p in "ü%a"])
    assert mica.check(tmp_path / "t").notes == ()
    for commit in (tmp_path / "t/_delta_log").glob("*.json"):
        commit.write_text(commit.read_text().replace("p=ü/", "p=%C3%BC/"))
    report = mica.check(tmp_path / "t")
    assert report.ok
    (note,) = report.notes
    assert "of 1 file, one is p=ü/" in note


def test_vectors_in_the_log_are_noted(tmp_path: Path) -> None:
    t = mica.Table.create(tmp_path / "t", "id INT", properties={"delta.enableDeletionVectors": "true"})
    t.append([{"id": 1}, {"id": 2}])
    t.delete("id = 1")
    assert mica.check(tmp_path / "t").notes == ()
    (commit,) = (tmp_path / "t/_delta_log").glob("*2.json")
    data = vector_of(np.array([0], np.uint64))
    inline = {"storageType": "i", "pathOrInlineDv": z85.encode(data), "sizeInBytes": len(data), "cardinality": 1}
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["deletionVector"] = inline
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert mica.Table.open(tmp_path / "t").to_arrow().to_pylist() == [{"id": 2}]
    (note,) = mica.check(tmp_path / "t").notes
    assert "of 1 file: a VACUUM of delta-spark fails" in note
