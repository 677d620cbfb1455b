"""Modules that are imported on first use are those of the standard library."""

from __future__ import annotations

import concurrent.futures
import difflib
import hashlib
import urllib.parse

import pytest

from mica import late


def test_it_gives_the_modules_by_name() -> None:
    assert (late.difflib, late.futures, late.hashlib, late.urls) == (difflib, concurrent.futures, hashlib, urllib.parse)
    with pytest.raises(AttributeError, match="secrets"):
        late.secrets  # type: ignore[attr-defined]  # noqa: B018
