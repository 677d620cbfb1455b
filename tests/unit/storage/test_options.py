"""Options of stores as obstore, deltalake and Spark spell them."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

import mica
from mica.errors import StorageError, UserError
from mica.storage import Storage, options

SECRET = "hush-hush-very-secret"
S3 = ("access_key_id", "secret_access_key", "endpoint")


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ({"AWS_ACCESS_KEY_ID": "a", "aws_secret_access_key": "b"}, {"access_key_id": "a", "secret_access_key": "b"}),
        ({"Aws_Region": "r", "AWS_ENDPOINT_URL": "http://e"}, {"region": "r", "endpoint": "http://e"}),
        ({"AWS_ALLOW_HTTP": "TRUE", "AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, {"allow_http": "TRUE"}),
        ({"fs.s3a.access.key": "a", "spark.hadoop.fs.s3a.secret.key": "b"}, dict(zip(S3, "ab", strict=False))),
        (
            {"fs.s3a.endpoint": "host:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"endpoint": "http://host:9000", "allow_http": "true"},
        ),
        ({"fs.s3a.endpoint": "http://h:9000"}, {"endpoint": "http://h:9000", "allow_http": "true"}),
        (
            {"fs.s3a.endpoint": "https://h", "fs.s3a.connection.ssl.enabled": "false"},
            {"endpoint": "https://h", "allow_http": "false"},
        ),
        (
            {"fs.s3a.endpoint": "s3.eu-central-1.amazonaws.com"},
            {"endpoint": "https://s3.eu-central-1.amazonaws.com", "region": "eu-central-1"},
        ),
        ({"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.endpoint.region": "r"}, {"region": "r"}),
        ({"fs.s3a.aws.credentials.provider": "org.x.AnonymousAWSCredentialsProvider"}, {"skip_signature": "true"}),
        ({"fs.s3a.aws.credentials.provider": "org.x.SimpleAWSCredentialsProvider"}, {"skip_signature": "false"}),
        ({"fs.s3a.path.style.access": "true"}, {"virtual_hosted_style_request": "false"}),
        ({"region": "r", "AWS_REGION": "r"}, {"region": "r"}),
    ],
)
def test_options_are_read_as_deltalake_and_spark_spell_them(given: dict[str, str], means: dict[str, str]) -> None:
    assert options.normalized(given, "s3") == means


def test_options_of_azure_and_google_are_read_too() -> None:
    key = "fs.azure.account.key.acct.dfs.core.windows.net"
    assert options.normalized({key: "k"}, "abfss") == {"account_key": "k", "account_name": "acct"}
    assert options.normalized({"AZURE_STORAGE_SAS_TOKEN": "t"}, "az") == {"sas_key": "t"}
    both = {"GOOGLE_SERVICE_ACCOUNT": "f", "AWS_REGION": "r", "fs.s3a.access.key": "a"}  # one set for several stores
    assert options.normalized(both, "gs") == {"service_account": "f"}


def test_options_of_one_bucket_or_account_hold_there_first_and_nowhere_else() -> None:
    both = {"fs.s3a.access.key": "all", "fs.s3a.bucket.my.logs.access.key": "one", "fs.s3a.bucket.other.endpoint": "e"}
    assert options.normalized(both, "s3", "my.logs") == {"access_key_id": "one"}
    assert options.normalized(both, "s3", "lake") == {"access_key_id": "all"}
    keys = {f"fs.azure.account.key.{name}.dfs.core.windows.net": name for name in ("one", "two")}
    assert options.normalized(keys, "abfss", "c@two.dfs.core.windows.net") == {
        "account_key": "two", "account_name": "two",
    }  # fmt: skip
    assert options.normalized({"account_name": "one", **keys}, "az", "c") == {
        "account_key": "one", "account_name": "one",
    }  # fmt: skip
    assert options.normalized({"account_name": "three"} | keys, "az", "c") == {"account_name": "three"}
    with pytest.raises(UserError, match="two values of account_key"):
        options.normalized(keys, "az", "container")


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"AWS_REGION": "one", "region": "two"}, "INVALID_ARGUMENT", "two values of region"),
        ({"acces_key_id": SECRET}, "UNKNOWN_STORAGE_OPTION", "Is access_key_id meant"),
        ({"secret_access_key": [SECRET]}, "INVALID_ARGUMENT", "a value of type list under 'secret_access_key'"),
        (SECRET, "INVALID_ARGUMENT", "got a str"),
    ],
)
def test_wrong_options_are_refused_without_their_values(given: Any, code: str, says: str) -> None:
    for call in (
        lambda: Storage.open("s3://bucket/x", given).read("y"),
        lambda: mica.Table.open("s3://bucket/x", storage_options=given),
        lambda: mica.read_parquet("s3://bucket/x.parquet", storage_options=given),
        lambda: mica.check("s3://bucket/x", storage_options=given),
    ):
        with pytest.raises(UserError, match=says) as caught:
            call()
        assert caught.value.code == code
        text = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert SECRET not in text.replace(repr(given), "")


@pytest.mark.slow
def test_every_spelling_makes_a_store_and_none_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    """obstore panics where two families of names are mixed."""
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    mixed = {"AWS_ALLOW_HTTP": "true", "access_key_id": "a", "fs.s3a.secret.key": "b", "aws_region": "r"}
    with pytest.raises(StorageError) as caught:
        Storage.open("s3://bucket/x", {**mixed, "endpoint": "http://127.0.0.1:1", "timeout": "1s"}).read("y")
    assert "anic" not in caught.value.message
    assert options.normalized({}, "s3") == {"allow_http": "true"}


@pytest.mark.parametrize("endpoint", ["", " http://h", "http://", "http:///b", "ftp://h", "http://h x", "http://h?q"])
def test_an_endpoint_that_is_no_url_of_a_server_is_refused(endpoint: str) -> None:
    """obstore panics of it, with a trace of Rust."""
    with pytest.raises(UserError, match="the endpoint of storage_options is not") as caught:
        Storage.open("s3://b/t", {"endpoint": endpoint})
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("endpoint", ["http://h", "HTTPS://h:9000/", "h:9000", "http://h:1/x", "http://[::1]:9"])
def test_an_endpoint_is_a_url_or_a_host(endpoint: str) -> None:
    assert Storage.open("s3://b/t", {"endpoint": endpoint}).options["endpoint"].lower().startswith("http")
