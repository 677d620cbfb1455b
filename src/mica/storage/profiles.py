"""Who asks Amazon's stores, in which region and where, by the profiles of `aws configure` and of single sign-on.

The rule: a profile says who asks where nothing before it in Amazon's order does: keys, roles and tokens of the
options, then those of the environment. The option `profile` comes before the environment. Region and endpoint that
neither options nor environment say are the profile's; beside keys of the options, which may be for another store, it is
its region for Amazon's own stores alone. boto3 reads the files (extra `aws`); obstore has no reader of its own. Without
a profile obstore asks the machine for its role.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mica.errors import MicaError, UserError
from mica.errors.installed import extra

#: The option that names a profile.
PROFILE = "profile"
#: Options that say who asks, and variables of the environment that do.
_OPTIONS = (
    "access_key_id", "session_token", "role_arn", "web_identity_token_file", "container_credentials_relative_uri",
    "container_credentials_full_uri",
)  # fmt: skip
_REGION, _ENDPOINT = ("region", "default_region"), ("endpoint", "endpoint_url", "endpoint_url_s3")
_VARIABLES = tuple(f"AWS_{name.upper()}" for name in _OPTIONS if not name.startswith("session"))
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}


def provider(options: Mapping[str, str]) -> Any:
    """Who gives obstore credentials for these options of an S3 store: obstore's provider, or None where no profile
    counts. Errors: NOT_INSTALLED for the option without boto3; INVALID_ARGUMENT for a profile that no file has, or
    that gives no credentials."""
    asked = options.get(PROFILE)
    if asked is None and _is_said(options):
        return None
    with _readable():
        session = _session(asked)
        if session is None or (asked is None and session.get_credentials() is None):
            return None
        if session.get_credentials() is None:
            raise UserError.bad_value("the profile", asked, "one that has credentials")
        from obstore.auth.boto3 import Boto3CredentialProvider

        found = Boto3CredentialProvider(session)
    found.config = {}  # see `settings`, which asks the environment first
    return found


def settings(options: Mapping[str, str]) -> dict[str, str]:
    """Region and endpoint of the profile, where nothing else says them. Errors: as those of `provider`."""
    said = {name for name in (*_REGION, *_ENDPOINT) if options.get(name) or os.environ.get(f"AWS_{name.upper()}")}
    of_keys, asked = any(map(options.get, _OPTIONS)) or _is_anonymous(options), options.get(PROFILE)
    needs_region = not said.intersection(_REGION) and (asked or not (of_keys and said.intersection(_ENDPOINT)))
    needs_endpoint = not said.intersection(_ENDPOINT) and (asked or not of_keys)
    if not (needs_region or needs_endpoint):
        return {}
    try:
        with _readable():
            session = _session(asked)
            if session is None:
                return {}
            found = {"region": session.region_name if needs_region else None}
            found["endpoint"] = _endpoint(session) if needs_endpoint else None
    except UserError:
        if asked is None and _is_said(options):
            return {}  # the profile was nobody's wish
        raise
    return {name: value for name, value in found.items() if value}


def _endpoint(session: Any) -> str | None:
    """The endpoint of S3 in a profile: that of its services, else that of all. Source: AWS SDKs, "Service-specific
    endpoints"."""
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return None
    read = session._session  # noqa: SLF001 - botocore's, which reads the files
    own = read.get_scoped_config()
    services = read.full_config.get("services", {}).get(own.get("services"), {})
    found = services.get("s3", {}).get("endpoint_url") or own.get("endpoint_url")
    return None if found is None else str(found)


def _session(asked: str | None) -> Any:
    """The session of boto3 for the profile that counts, None where none does."""
    if asked is None and (not any(_is_there(*file) for file in _FILES.items()) or find_spec("boto3") is None):
        return None
    boto3, botocore = extra("boto3", "a profile"), extra("botocore.session", "a profile")
    named = asked or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    there = sorted(botocore.Session(profile="").available_profiles)
    if named is not None and named not in there:
        raise UserError.bad_value("the profile", named, f"one of {', '.join(there) or 'none, since no file has one'}")
    if named is None and "default" not in there:
        return None
    return boto3.Session(profile_name=named or "default")


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Says what boto3 says of files and profiles that it cannot read."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MicaError) or type(error).__module__.partition(".")[0] != "botocore":
            raise
        hint = "Look at the files of `aws configure`, or name another profile."
        raise UserError("INVALID_ARGUMENT", f"the profile cannot be read: {error}", hint=hint) from None


def _is_said(options: Mapping[str, str]) -> bool:
    """Whether options or the environment say who asks, or that nobody does."""
    return _is_anonymous(options) or any(map(options.get, _OPTIONS)) or any(map(os.environ.get, _VARIABLES))


def _is_anonymous(options: Mapping[str, str]) -> bool:
    return options.get("skip_signature", "").lower() == "true"


def _is_there(variable: str, usual: str) -> bool:
    return Path(os.environ.get(variable) or usual).expanduser().exists()
