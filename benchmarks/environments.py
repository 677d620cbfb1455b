"""Each peer in an environment of its own under `.bench/`, made from its lock once."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from benchmarks.process import ROOT

BENCH = ROOT / ".bench"
LOCKS = ROOT / "benchmarks" / "requirements"


def python(peer: str) -> Path:
    """The interpreter that runs a peer; mica runs in the project's own environment."""
    if peer.startswith("mica"):
        return Path(sys.executable)
    folder = BENCH / "environments" / peer
    interpreter = folder / "bin" / "python"
    lock = LOCKS / f"{peer}.lock"
    want = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = folder / "mica.stamp"
    if not stamp.is_file() or stamp.read_text() != want:
        print(f"bench: making the environment of {peer}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
        subprocess.run([*pip, "--disable-pip-version-check", "-r", str(lock)], check=True)
        stamp.write_text(want)
    return interpreter
