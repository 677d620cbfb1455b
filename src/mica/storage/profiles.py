"""Who asks Amazon's stores, by the profiles of `aws configure` and of single sign-on.

The rule: a profile counts where nothing before it in Amazon's order says who asks: keys, roles and tokens of the
options, then those of the environment. The option `profile` comes before the environment. boto3 reads the files (extra
`aws`); obstore has no reader of its own. Without a profile obstore asks the machine for its role.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mica.errors import UserError
from mica.errors.installed import extra

#: The option that names a profile.
PROFILE = "profile"
#: Options that say who asks, and variables of the environment that do.
_OPTIONS = (
    "access_key_id", "session_token", "role_arn", "web_identity_token_file", "container_credentials_relative_uri",
    "container_credentials_full_uri",
)  # fmt: skip
_VARIABLES = tuple(f"AWS_{name.upper()}" for name in _OPTIONS if not name.startswith("session"))
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}


def provider(options: Mapping[str, str]) -> Any:
    """Who gives obstore credentials for these options of an S3 store: obstore's provider, or None where no profile
    counts. Errors: NOT_INSTALLED for the option without boto3; INVALID_ARGUMENT for a profile that no file has."""
    asked = options.get(PROFILE)
    if asked is None and (_is_said(options) or not any(_is_there(*file) for file in _FILES.items())):
        return None
    if asked is None and find_spec("boto3") is None:
        return None
    boto3, botocore = extra("boto3", "a profile"), extra("botocore.session", "a profile")
    named = asked or os.environ.get("AWS_PROFILE")
    there = sorted(botocore.Session(profile="").available_profiles)
    if named is not None and named not in there:
        raise UserError.bad_value("the profile", named, f"one of {', '.join(there) or 'none, since no file has one'}")
    if named is None and "default" not in there:
        return None
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider(boto3.Session(profile_name=named or "default"))


def _is_said(options: Mapping[str, str]) -> bool:
    """Whether options or the environment say who asks, or that nobody does."""
    anonymous = options.get("skip_signature", "").lower() == "true"
    return anonymous or any(map(options.get, _OPTIONS)) or any(map(os.environ.get, _VARIABLES))


def _is_there(variable: str, usual: str) -> bool:
    return Path(os.environ.get(variable) or usual).expanduser().exists()
