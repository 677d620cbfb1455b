"""The build backend: maturin's, after a look for Rust and a C compiler.

The rule: without a Rust that can build the kernel, or without `cc`, `pip install` ends with two lines: what is missing,
and the way out. maturin alone would fetch a toolchain from the network, or end in a compiler's or linker's error.

Source: PEP 517, "Build backend interface"; the version is `rust-version` in native/Cargo.toml.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import maturin

_NEEDED = re.compile(r'^rust-version = "1\.([0-9]+)"', re.MULTILINE)
_MINUTES = "mica: the kernel is compiled in release mode, which takes some minutes\n"


def _refuse_without_compilers() -> None:
    manifest = Path(__file__).resolve().parents[2] / "native" / "Cargo.toml"
    needed = int(_NEEDED.findall(manifest.read_text(encoding="utf-8"))[0])
    has = _old_rust(needed)
    if has is not None:
        _refuse(
            f"Rust 1.{needed} or newer; {has}",
            "Rust: rustup (and its toolchain: rustup default stable), or Debian's rustc-web",
        )
    # Rust links with cc, and zstd is compiled with it; who sets CC has told cargo of another linker too.
    if os.name == "posix" and shutil.which("cc") is None and "CC" not in os.environ:
        _refuse("a C compiler; no cc was found", "cc: Debian's gcc and libc6-dev, macOS's xcode-select --install")


def _old_rust(needed: int) -> str | None:
    """What is the matter with the Rust that is here, or None."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return "no cargo was found"
    done = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"cargo 1\.([0-9]+)", done.stdout)
    if version is None:  # rustup's, without a toolchain: its first line says so
        why = done.stderr.partition("\n")[0].removeprefix("error: ").rstrip(".")
        return f"{cargo} does not run: {why or f'exit status {done.returncode}'}"
    return None if int(version[1]) >= needed else f"cargo 1.{version[1]} was found"


def _refuse(needs: str, install: str) -> NoReturn:
    raise SystemExit(
        f"mica is built from source here, which needs {needs}.\n"
        f"Install a wheel of mica for this platform (pip install dist/mica-….whl), or {install}."
    )


def _checked(hook: Callable[..., Any], said: str = "") -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        _refuse_without_compilers()
        print(said, end="", file=sys.stderr, flush=True)
        return hook(*args, **kwargs)

    return run


def _requires(config_settings: Any = None) -> list[str]:  # noqa: ARG001 - PEP 517's name
    """Nothing more is fetched: maturin would ask for a package that installs Rust."""
    return []


get_requires_for_build_wheel = _checked(_requires)
get_requires_for_build_editable = _checked(_requires)
get_requires_for_build_sdist = _requires
build_wheel = _checked(maturin.build_wheel, _MINUTES)
build_editable = _checked(maturin.build_editable, _MINUTES)
build_sdist = maturin.build_sdist
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
