"""Without a Rust that can build the kernel, an install from source ends with what is missing and the way out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT


def asked(hook: str, path: Path) -> subprocess.CompletedProcess[str]:
    """What pip does first with a source distribution, where the programs in `path` are all that there are."""
    code = f"import mica_build; print(mica_build.{hook}())"
    environment = {**os.environ, "PATH": str(path), "PYTHONPATH": str(ROOT / "scripts" / "build")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, timeout=60
    )


@pytest.mark.parametrize(("version", "found"), [(None, "no cargo was found"), ("1.70.0", "cargo 1.70 was found")])
def test_a_missing_or_old_rust_is_named(tmp_path: Path, version: str | None, found: str) -> None:
    if version is not None:
        cargo = tmp_path / "cargo"
        cargo.write_text(f"#!/bin/sh\necho 'cargo {version} (abc 2024-01-01)'\n")
        cargo.chmod(0o755)
    done = asked("get_requires_for_build_wheel", tmp_path)
    assert done.returncode == 1
    what, way_out = done.stderr.splitlines()
    assert what == f"mica is built from source here, which needs Rust 1.88 or newer; {found}."
    assert "Install a wheel" in way_out


def test_a_new_rust_needs_nothing_more_and_a_source_distribution_needs_none(tmp_path: Path) -> None:
    assert asked("get_requires_for_build_sdist", tmp_path).stdout == "[]\n"
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\necho 'cargo 1.99.0 (abc 2026-01-01)'\n")
    cargo.chmod(0o755)
    assert asked("get_requires_for_build_wheel", tmp_path).stdout == "[]\n"
