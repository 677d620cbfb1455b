"""Options of locations that are opened without any."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from mica.storage import Storage, unsaid
from mica.storage.options import ALLOW_EXTERNAL

MADE = {"fs.s3a.access.key": "a", "fs.s3a.bucket.mine.secret.key": "m", "fs.azure.account.key": "z", "other": "o"}


@pytest.fixture(autouse=True)
def source(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(pattern: str) -> Mapping[str, str]:
        return {name: value for name, value in MADE.items() if re.search(pattern, name)}

    monkeypatch.setattr(unsaid, "_SOURCES", [known])


def test_a_location_without_options_gets_those_of_its_kind_of_store() -> None:
    assert Storage.open("s3a://mine/t").options == {"access_key_id": "a", "secret_access_key": "m"}
    assert Storage.open("s3://yours/t").options == {"access_key_id": "a"}
    assert Storage.open("az://c/t").options == {"account_key": "z"}
    assert Storage.open("gs://b/t").options == {}


def test_options_that_are_given_stand_alone() -> None:
    assert Storage.open("s3://mine/t", {"region": "r"}).options == {"region": "r"}


def test_what_says_nothing_of_the_connection_is_no_option_of_it() -> None:
    found = Storage.open("s3://yours/t", {ALLOW_EXTERNAL: "false"})
    assert found.options == {"access_key_id": "a", ALLOW_EXTERNAL: "false"}
    assert found.external is False


def test_a_location_like_another_has_its_options_if_the_store_is_of_that_kind() -> None:
    given = Storage.open("s3://mine/t", {"region": "r"})
    assert given.like("s3a://yours/u").options == {"region": "r"}
    assert given.like("az://c/u").options == {"account_key": "z"}
    assert given.like("/tmp/u").local_path == "/tmp/u"
