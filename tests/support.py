"""What tests share without pytest: where things are, and one way to run a peer."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("MICA_SHARED", ROOT.parent / "shared")).resolve()
"""The folder of conformance and real data, `MICA_SHARED`, by default beside the project. May be missing."""

JARS = Path(os.environ.get("MICA_JARS", Path(sys.prefix) / "share" / "mica-jars"))
"""Where scripts/jars.sh puts delta-spark and an older ICU4J: beside the environment that runs the tests."""


CAMPAIGN = os.environ.get("MICA_PROFILE") == "campaign"

Case = TypeVar("Case")


def dealt(cases: Sequence[Case], part: int, parts: int = 2) -> Sequence[Case]:
    """The cases of one of several runs of a test that share them, since each takes seconds; in a campaign all.

    Which ones a run has is of its seed (`MICA_SEED`, see tests/conftest.py): a test that asks for one part has another
    one with another seed.
    """
    return cases if CAMPAIGN else cases[(part + int(os.environ["MICA_SEED"])) % parts :: parts]


def kernel_codes() -> set[str]:
    """The error codes of the kernel, from its source."""
    text = (ROOT / "native" / "kernel" / "src" / "error.rs").read_text(encoding="utf-8")
    found = re.findall(r'Code::\w+ => "([A-Z_0-9]+)"', text)
    assert len(found) == len(set(found)) == len(re.findall(r"^    [A-Z]\w+,$", text, re.MULTILINE))
    return set(found)


def delta_jars() -> list[Path]:
    """The jars of delta-spark 4.4.0, or none when scripts/jars.sh has not run."""
    return sorted(JARS.glob("delta-*.jar"))


def older_icu() -> Path | None:
    """ICU4J 77.1, or None when scripts/jars.sh has not run."""
    jar = JARS / "icu4j-77.1.jar"
    return jar if jar.is_file() else None


def spark_version() -> tuple[int, int]:
    """The installed PySpark, as (4, 2). What Spark 4.1 does otherwise is in docs/decisions.md, "other Sparks"."""
    import pyspark  # not where a test has no Spark

    major, minor, *_ = pyspark.__version__.split(".")
    return int(major), int(minor)


def refuses_between(where: str) -> bool:
    """Whether Spark itself refuses the condition on a collated column: 4.1 does not find BETWEEN's collation."""
    return spark_version() < (4, 2) and " between " in where.lower()


def shared_files(pattern: str) -> list[Path]:
    """Files of the shared folder that match, for `parametrize`; none where the folder is missing."""
    return sorted(SHARED.glob(pattern)) if SHARED.is_dir() else []


def stored(path: str | Path) -> list[str]:
    """The rows of a table, read by mica in process: delta-spark reads a small table a hundred times as slowly."""
    import mica  # not where a script of another engine takes a path from here

    return sorted(map(str, mica.Table.open(path).to_arrow().to_pylist()))
