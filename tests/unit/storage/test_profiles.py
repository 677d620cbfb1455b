"""Profiles of Amazon's tools, and when they count."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mica.errors import UserError
from mica.storage import profiles

pytest.importorskip("boto3", reason="profiles are boto3's")

FILE = """
[default]
aws_access_key_id = usual
aws_secret_access_key = hush
[work]
aws_access_key_id = worker
aws_secret_access_key = hush
aws_session_token = for-now
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of profiles and one of settings; nothing else in the environment says who asks."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SECRET_ACCESS_KEY", *profiles._VARIABLES):
        monkeypatch.delenv(name, raising=False)
    file, config = tmp_path / "credentials", tmp_path / "config"
    file.write_text(FILE)
    config.write_text("[profile work]\nregion = eu-central-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    return file


def _key(options: dict[str, str]) -> str | None:
    found = profiles.provider(options)
    return None if found is None else found()["access_key_id"]


def test_the_default_profile_counts_if_nothing_else_says_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _key({"region": "r"}) == "usual"
    monkeypatch.setenv("AWS_PROFILE", "work")
    found = profiles.provider({})
    assert (found()["access_key_id"], found()["token"], found.config) == (
        "worker",
        "for-now",
        {"region": "eu-central-1"},
    )
    assert _key({"profile": "default"}) == "usual"


@pytest.mark.parametrize("said", [*profiles._OPTIONS])
def test_what_comes_before_a_profile_stands(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    assert _key({said: "x"}) is None
    variable = f"AWS_{said.upper()}"
    if variable in profiles._VARIABLES:
        monkeypatch.setenv(variable, "x")
        assert _key({}) is None
        assert _key({"profile": "work"}) == "worker", "the option comes before the environment"


def test_nobody_asks_where_that_is_said() -> None:
    assert _key({"skip_signature": "true"}) is None
    assert _key({"skip_signature": "false"}) == "usual"


def test_without_a_file_or_a_default_the_machine_is_asked(files: Path) -> None:
    files.write_text("[work]\naws_access_key_id = worker\naws_secret_access_key = hush\n")
    assert _key({}) is None
    files.unlink()
    assert _key({}) is None


def test_a_profile_that_is_named_and_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="one of default, work") as raised:
        profiles.provider({"profile": "play"})
    assert raised.value.code == "INVALID_ARGUMENT"
    monkeypatch.setenv("AWS_PROFILE", "play")
    with pytest.raises(UserError, match="'play'"):
        profiles.provider({})


def test_without_boto3_only_the_option_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setattr(profiles, "find_spec", lambda _: None)
    assert _key({}) is None
    with pytest.raises(UserError, match="needs boto3") as raised:
        profiles.provider({"profile": "work"})
    assert raised.value.code == "NOT_INSTALLED"
