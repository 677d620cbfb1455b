"""Optional libraries, imported by the call that needs them.

The rule: a library that is missing, or older than what mica declares to need, is an error that names the version and
the command that installs it. An old one would fail later, with an error of its own.

Source: "Core metadata specifications" of packaging.python.org, Requires-Dist: `duckdb>=2 ; extra == 'duckdb'`.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from mica import late
from mica.errors import UserError

_LEAST = late.pattern(r"([\w.-]+)(?:\[[^]]*\])?\s*>=\s*([0-9.]+)")
_NUMBERS = late.pattern(r"[0-9]+(?:\.[0-9]+)*")


def extra(module: str, asked: str) -> Any:
    """Imports an optional library for the call `asked`. Errors: NOT_INSTALLED."""
    name = module.partition(".")[0]
    has, least = _versions(name)
    if _numbers(has) < _numbers(least):
        what = f"{asked} needs {name} {least} or newer, and {has} is installed"
        raise UserError("NOT_INSTALLED", what, hint=_install(name))
    try:
        return importlib.import_module(module)
    except ImportError as e:
        what = f"{asked} needs {name}, which is not installed"
        raise UserError("NOT_INSTALLED", what, hint=_install(name)) from e


def _install(name: str) -> str:
    least = _least(name)
    return f'pip install "{name}>={least}"' if least else f"pip install {name}"


@cache
def _versions(name: str) -> tuple[str, str]:
    """The installed version and the least one; none where one of them is not known."""
    from importlib import metadata

    try:
        has, least = metadata.version(name), _least(name)
    except metadata.PackageNotFoundError:
        return "", ""
    return (has, least) if has else ("", "")  # metadata may lack it


@cache
def _least(name: str) -> str:
    """The least version that mica declares to need; none where mica itself is not installed."""
    from importlib import metadata

    try:
        declared = metadata.requires("mica") or []
    except metadata.PackageNotFoundError:
        return ""
    found = (_LEAST.match(one) for one in declared)
    return next((match[2] for match in found if match is not None and match[1] == name), "")


def _numbers(version: str) -> list[int]:
    """The numbers that a version begins with, `2.0.1rc1` as 2, 0, 1; zeros at the end say nothing."""
    found = _NUMBERS.match(version)
    numbers = [int(part) for part in found[0].split(".")] if found is not None else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers
