"""Profiles of Amazon's tools, and when they count."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mica.errors import UserError
from mica.storage import Storage, profiles
from tests.faulty_s3 import FaultyS3

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
    assert (found()["access_key_id"], found()["token"]) == ("worker", "for-now")
    assert profiles.settings({}) == {"region": "eu-central-1"}
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_DEFAULT_PROFILE", "work")
    assert _key({}) == "worker"
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


KEYS = {"access_key_id": "x", "secret_access_key": "y"}


@pytest.mark.parametrize(
    ("options", "environment", "found"),
    [
        ({"profile": "work"}, {}, {"region": "eu-central-1", "endpoint": "https://own.example"}),
        ({"profile": "work", "region": "r"}, {}, {"endpoint": "https://own.example"}),
        ({"profile": "work", "default_region": "r", "endpoint": "e"}, {}, {}),
        ({"profile": "work"}, {"AWS_REGION": "r", "AWS_ENDPOINT_URL": "e"}, {}),
        ({"profile": "work"}, {"AWS_DEFAULT_REGION": "r", "AWS_ENDPOINT_URL_S3": "e"}, {}),
        ({"profile": "work"}, {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, {"region": "eu-central-1"}),
        ({}, {"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "x"}, {"region": "eu-central-1", "endpoint": "https://own.example"}),
        (KEYS, {"AWS_PROFILE": "work"}, {"region": "eu-central-1"}),
        ({**KEYS, "endpoint": "e"}, {"AWS_PROFILE": "work"}, {}),
        ({"skip_signature": "true"}, {"AWS_PROFILE": "work"}, {"region": "eu-central-1"}),
        (KEYS, {"AWS_PROFILE": "play"}, {}),
        ({"profile": "all"}, {}, {"endpoint": "https://all.example"}),
        ({}, {}, {}),
    ],
)  # fmt: skip
def test_region_and_endpoint_that_nothing_else_says_are_the_profiles(
    files: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], environment: dict[str, str],
    found: dict[str, str],
) -> None:  # fmt: skip
    files.with_name("config").write_text(
        "[profile work]\nregion = eu-central-1\nservices = own\nendpoint_url = https://all.example\n"
        "[services own]\ns3 =\n  endpoint_url = https://own.example\n[profile all]\nendpoint_url = https://all.example\n"
    )
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert profiles.settings(options) == found


def test_the_region_of_a_profile_signs_the_requests(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    with FaultyS3() as store:
        place = store.options["endpoint"]
        files.with_name("config").write_text(f"[profile work]\nregion = eu-central-1\nendpoint_url = {place}\n")
        assert list(Storage.open("s3://b/t", {"allow_http": "true"}).list()) == []
        assert "Credential=x/" in store.signed
        assert "/eu-central-1/s3/" in store.signed


@pytest.mark.parametrize(
    ("file", "config", "says"),
    [
        ("[work]\nsource_profile = nope\nrole_arn = arn:aws:iam::1:role/x\n", "", 'source_profile "nope"'),
        ("[work]\ncredential_process = /bin/false\n", "", "custom-process"),
        (FILE, "[profile work\n", "Unable to parse"),
        ("", "[profile work]\nregion = eu-central-1\n", "one that has credentials"),
    ],
)
def test_a_profile_that_cannot_be_read_is_an_error_by_its_name(
    files: Path, monkeypatch: pytest.MonkeyPatch, file: str, config: str, says: str
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    files.write_text(file)
    files.with_name("config").write_text(config)
    with pytest.raises(UserError, match=says) as raised:
        list(Storage.open("s3://b/t", {"profile": "work"}).list())
    assert raised.value.code == "INVALID_ARGUMENT"
    assert _key(KEYS) is None
    assert profiles.settings({**KEYS}).keys() <= {"region"}


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
