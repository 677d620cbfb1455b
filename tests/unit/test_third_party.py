"""THIRD-PARTY.txt, which each wheel carries, names the crates that the kernel links, and no others."""

from __future__ import annotations

import re
import runpy
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "third_party.py"))
TEXT = (ROOT / "THIRD-PARTY.txt").read_text(encoding="utf-8")
#: name version (licence), a line each, before the texts
NAMED = re.findall(r"^(\S+) (\d\S+) \((.+)\)$", TEXT.split("=" * 80)[0], re.MULTILINE)


def test_each_crate_that_the_module_links_is_named_and_no_other() -> None:
    try:
        linked = SCRIPT["linked"]()
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cargo does not tell what the module links: {error}")
    assert [(name, version) for name, version, _ in NAMED] == linked, "run `make lock`"


def test_the_versions_are_those_of_the_lock_file() -> None:
    lock = tomllib.loads((ROOT / "native" / "Cargo.lock").read_text(encoding="utf-8"))
    locked = {(crate["name"], crate["version"]) for crate in lock["package"]}
    named = {(name, version) for name, version, _ in NAMED}
    assert {"arrow-array", "parquet", "zlib-rs", "zstd-sys"} <= {name for name, _ in named}
    assert named <= locked, "run `make lock`"


def test_each_crate_has_a_text_once_and_nothing_of_this_machine_is_there() -> None:
    heads, texts = TEXT.split("=" * 80)[1::2], TEXT.split("=" * 80)[2::2]
    listed = " ".join(" ".join(heads).split())
    assert [name for name, version, _ in NAMED if f" {name} {version}" not in listed] == []
    assert len({" ".join(text.split()) for text in texts}) == len(texts)
    assert not re.search(re.escape(str(Path.home())) + r"|\.cargo|crates\.io", TEXT)


def test_every_wheel_carries_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "THIRD-PARTY.txt" in project["license-files"]
