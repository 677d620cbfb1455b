"""Libraries that are missing or old, by the metadata of what is installed here and of a package made for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mica.errors import UserError, installed
from mica.errors.installed import extra


@pytest.fixture(autouse=True)
def _forgets() -> Iterator[None]:
    yield
    installed._versions.cache_clear()
    installed._least.cache_clear()


def test_what_is_installed_is_imported() -> None:
    for module in ("pandas", "polars.io.plugins", "duckdb"):
        assert extra(module, "this") is sys.modules[module]


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UserError, match="to_duckdb needs duckdb, which is not installed") as raised:
        extra("duckdb", "to_duckdb")
    assert raised.value.code == "NOT_INSTALLED"
    assert raised.value.hint == 'pip install "duckdb>=2"'


@pytest.mark.parametrize(
    ("version", "old"),
    [("1.4.3", True), ("1.9.0rc1", True), ("2", False), ("2.0.0.dev3", False), ("10.0", False), ("3rc1", False)],
)
def test_a_version(version: str, old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "duckdb.dist-info"
    made.mkdir()
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: duckdb\nVersion: {version}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    installed._versions.cache_clear()
    if not old:
        assert extra("duckdb", "to_duckdb") is sys.modules["duckdb"]
        return
    with pytest.raises(UserError, match=rf"needs duckdb 2 or newer, and {version} is installed") as raised:
        extra("duckdb", "to_duckdb")
    assert raised.value.hint == 'pip install "duckdb>=2"'


def test_without_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """mica from a folder that is on the path and nothing else; a library that mica does not name."""
    monkeypatch.setattr("importlib.metadata.distribution", _unknown)
    installed._least.cache_clear()
    assert extra("duckdb", "this") is sys.modules["duckdb"]
    with pytest.raises(UserError) as raised:
        extra("no_such_library", "this")
    assert raised.value.hint == "pip install no_such_library"


def _unknown(name: str) -> None:
    from importlib.metadata import PackageNotFoundError

    raise PackageNotFoundError(name)


@pytest.mark.parametrize("call", ["sql('SELECT 1')", "explain('SELECT 1')", "session()"])
def test_what_needs_spark_says_so_without_it(call: str) -> None:
    program = f"""
import sys
sys.modules["pyspark"] = None
import mica
try:
    mica.{call}
except mica.MicaError as e:
    print(e.code)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "NOT_INSTALLED\n", done.stderr
