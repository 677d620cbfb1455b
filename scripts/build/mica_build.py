"""The build backend: maturin's, after a look for Rust.

The rule: without a Rust that can build the kernel `pip install` ends with two lines: what is missing, and the way out.
maturin alone would fetch a toolchain from the network, or end in a compiler's error.

Source: PEP 517, "Build backend interface"; the version is `rust-version` in native/Cargo.toml.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maturin

_NEEDED = re.compile(r'^rust-version = "1\.([0-9]+)"', re.MULTILINE)


def _refuse_without_rust() -> None:
    manifest = Path(__file__).resolve().parents[2] / "native" / "Cargo.toml"
    needed = int(_NEEDED.findall(manifest.read_text(encoding="utf-8"))[0])
    cargo = shutil.which("cargo")
    found = None
    if cargo is not None:
        said = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.match(r"cargo 1\.([0-9]+)", said)
        found = int(version[1]) if version else None
    if found is None or found < needed:
        has = "no cargo was found" if found is None else f"cargo 1.{found} was found"
        raise SystemExit(
            f"mica is built from source here, which needs Rust 1.{needed} or newer; {has}.\n"
            f"Install a wheel of mica for this platform (pip install dist/mica-….whl), or Rust: rustup, or Debian's "
            f"rustc-web."
        )


def _checked(hook: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        _refuse_without_rust()
        return hook(*args, **kwargs)

    return run


def _requires(config_settings: Any = None) -> list[str]:  # noqa: ARG001 - PEP 517's name
    """Nothing more is fetched: maturin would ask for a package that installs Rust."""
    return []


get_requires_for_build_wheel = _checked(_requires)
get_requires_for_build_editable = _checked(_requires)
get_requires_for_build_sdist = _requires
build_wheel = _checked(maturin.build_wheel)
build_editable = _checked(maturin.build_editable)
build_sdist = maturin.build_sdist
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
