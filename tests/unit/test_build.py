"""Without Rust or a C compiler an install from source ends with what is missing and the way out."""

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


def program(path: Path, name: str, script: str) -> None:
    (path / name).write_text(f"#!/bin/sh\n{script}\n")
    (path / name).chmod(0o755)


# What rustup's cargo does when no toolchain is the default.
NO_TOOLCHAIN = "echo 'error: no default is configured.\nhelp: run rustup default stable' >&2; exit 1"


@pytest.mark.parametrize(
    ("cargo", "found"),
    [
        (None, "no cargo was found"),
        ("echo 'cargo 1.70.0 (abc 2024-01-01)'", "cargo 1.70 was found"),
        (NO_TOOLCHAIN, "{cargo} does not run: no default is configured"),
        ("exit 3", "{cargo} does not run: exit status 3"),
    ],
)
def test_a_missing_or_old_rust_is_named(tmp_path: Path, cargo: str | None, found: str) -> None:
    if cargo is not None:
        program(tmp_path, "cargo", cargo)
    done = asked("get_requires_for_build_wheel", tmp_path)
    assert done.returncode == 1
    what, way_out = done.stderr.splitlines()
    found = found.format(cargo=tmp_path / "cargo")
    assert what == f"mica is built from source here, which needs Rust 1.88 or newer; {found}."
    assert "Install a wheel" in way_out
    assert "rustup default stable" in way_out


def test_a_missing_c_compiler_is_named_unless_another_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    program(tmp_path, "cargo", "echo 'cargo 1.99.0 (abc 2026-01-01)'")
    done = asked("get_requires_for_build_wheel", tmp_path)
    assert done.returncode == 1
    what, way_out = done.stderr.splitlines()
    assert what == "mica is built from source here, which needs a C compiler; no cc was found."
    assert "gcc" in way_out
    monkeypatch.setenv("CC", "clang")
    assert asked("get_requires_for_build_wheel", tmp_path).stdout == "[]\n"


def test_compilers_need_nothing_more_and_a_source_distribution_needs_none(tmp_path: Path) -> None:
    assert asked("get_requires_for_build_sdist", tmp_path).stdout == "[]\n"
    program(tmp_path, "cargo", "echo 'cargo 1.99.0 (abc 2026-01-01)'")
    program(tmp_path, "cc", "")
    assert asked("get_requires_for_build_wheel", tmp_path).stdout == "[]\n"
