"""Writes THIRD-PARTY.txt, which each wheel and the sdist carry: `python scripts/third_party.py` (`make lock`).

The rule: each crate that the compiled module links, on any platform of scripts/wheel.sh, is named with its version and
licence, and each text of licence, copyright or notice in its source (C's too) is there once. Macros and what only a
build runs are left out. tests/unit/test_third_party.py holds the names against native/Cargo.lock.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = ROOT / "THIRD-PARTY.txt"
SYSTEMS = ("apple-darwin", "unknown-linux-gnu")
TEXT = re.compile(r"((un)?licen[cs]e|copying|copyright|notice)([-.].+)?", re.IGNORECASE)
HEAD = """\
The compiled module of mica's wheels, mica._native, contains the Rust crates that are named here, with the C sources
that are part of them, and Rust's standard library (MIT OR Apache-2.0, by the Rust Project's contributors). The texts
of their licences and their notices follow.

Made by `make lock`; do not edit.
"""


def _cargo(*words: str) -> str:
    """What cargo prints about native/; asked first is the cargo that set-up found."""
    found = Path(sys.prefix) / "share" / "mica-cargo-bin"
    first = [found.read_text(encoding="utf-8").strip()] if found.is_file() else []
    return subprocess.run(
        ["cargo", *words, "--locked", "--manifest-path", str(ROOT / "native" / "Cargo.toml")],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
        env={**os.environ, "PATH": os.pathsep.join([*first, os.environ["PATH"]])},
    ).stdout


def linked() -> list[tuple[str, str]]:
    """Name and version of each crate that mica-native links, but mica's own, in order.

    `cargo metadata` would add what only features of the tests ask for.
    """
    words = "tree --package mica-native --edges normal,no-proc-macro --prefix none --no-dedupe --format {p}".split()
    for system in SYSTEMS:
        words += ["--target", f"aarch64-{system}", "--target", f"x86_64-{system}"]
    crates = [line.split() for line in _cargo(*words).splitlines() if line]
    return sorted({(name, version.removeprefix("v")) for name, version, *_ in crates if not name.startswith("mica-")})


def texts(crate: dict[str, Any]) -> list[str]:
    """The texts in the source of a crate; not the GPL, which zstd offers beside the licence that its crate names."""
    folder = Path(crate["manifest_path"]).parent
    found = sorted(path for path in folder.rglob("*") if TEXT.fullmatch(path.name) and path.is_file())
    read = ["\n".join(map(str.rstrip, path.read_text(encoding="utf-8").splitlines())).strip("\n") for path in found]
    return [text for text in read if not text.lstrip().startswith("GNU GENERAL PUBLIC LICENSE")]


def document() -> str:
    """The text of THIRD-PARTY.txt."""
    told = json.loads(_cargo("metadata", "--format-version=1"))["packages"]
    packages = {(crate["name"], crate["version"]): crate for crate in told}
    crates = [packages[one] for one in linked()]
    own = {crate["id"]: texts(crate) for crate in crates}
    names: list[str] = []
    printed: dict[str, str] = {}  # by their words: indents and ends of lines differ
    users: dict[str, list[str]] = {}
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        names.append(f"{name} ({crate['license']})\n")
        for text in own[crate["id"]] or _lent(crate, crates, own):
            words = " ".join(text.split())
            printed.setdefault(words, text)
            if name not in (of_text := users.setdefault(words, [])):
                of_text.append(name)
    rule = "=" * 80
    parts = [f"\n{rule}\n{_wrapped(users[words])}\n{rule}\n\n{text}\n" for words, text in printed.items()]
    return "".join([HEAD, "\n", *names, *parts])


def _lent(crate: dict[str, Any], crates: list[dict[str, Any]], own: dict[str, list[str]]) -> list[str]:
    """The texts for a crate that carries none: those of a crate from the same repository, or mica's own licence."""
    for other in crates:
        if other["repository"] == crate["repository"] and own[other["id"]]:
            return own[other["id"]]
    if crate["license"] != "Apache-2.0":
        raise SystemExit(f"{crate['name']} {crate['version']} carries no text of its licence, {crate['license']}")
    return [(ROOT / "LICENSE").read_text(encoding="utf-8").strip("\n")]


def _wrapped(names: list[str]) -> str:
    return textwrap.fill(f"For {', '.join(names)}:", 80, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    WRITTEN.write_text(document(), encoding="utf-8")
