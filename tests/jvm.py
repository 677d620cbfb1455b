"""A JVM for processes of Python that come one after another: it starts, and compiles Spark, once for them all."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self


class Jvm:
    """A JVM without a Spark context: each process that has `environment` makes one in it, and stops it."""

    def __init__(self, folder: Path, *options: str) -> None:
        """Start it, with options of spark-submit; what it says goes into a file of `folder`."""
        import pyspark

        there = folder / "connection"
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        with (folder / "jvm.log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(submit), *options, "pyspark-shell"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=folder,
                env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(there)},
            )  # fmt: skip
        # The file comes under its name when it is whole.
        while not there.exists():
            assert self._process.poll() is None, (folder / "jvm.log").read_text()
            try:
                self._process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        with there.open("rb") as file:
            port, length = struct.unpack(">ii", file.read(8))
            secret = file.read(length).decode()
        self.environment: Mapping[str, str] = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}

    def __enter__(self) -> Self:
        """It ends with the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """A JVM whose input ends ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
