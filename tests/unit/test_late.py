"""What is made on first use is what the standard library makes."""

from __future__ import annotations

import concurrent.futures
import difflib
import hashlib
import re
import urllib.parse

import pytest

from mica import late


def test_it_gives_the_modules_by_name() -> None:
    assert (late.difflib, late.futures, late.hashlib, late.urls) == (difflib, concurrent.futures, hashlib, urllib.parse)
    pattern = late.pattern("a(B)", re.IGNORECASE)
    assert (pattern.sub("x", "zAb"), pattern.groups) == ("zx", 1)
    with pytest.raises(AttributeError, match="secrets"):
        late.secrets  # type: ignore[attr-defined]  # noqa: B018
