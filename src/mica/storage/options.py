"""Storage options: their names here, in deltalake, in the environment and in Spark. One table per store.

The rule: a name is accepted in any of its spellings, in any case. Two spellings of one option with different
values are rejected, and so is an unknown name, with the nearest known one. What is given for one bucket or account
holds there before what is given for all, and nowhere else. No error contains an option's value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from mica import late
from mica.arguments import OPTIONS, refuse_other
from mica.errors import UserError

#: Allows a table's log to name files outside the table's own bucket or disk (true), or none outside its folder (false).
ALLOW_EXTERNAL = "allow_external_paths"

#: Options of the connection, the same for every store.
CLIENT = frozenset(
    "allow_http allow_invalid_certificates connect_timeout pool_idle_timeout pool_max_idle_per_host proxy_url "
    "proxy_ca_certificate proxy_excludes timeout user_agent".split()
)

#: The options of each kind of store, as obstore calls them, and their prefixes in deltalake and the environment.
STORES: Mapping[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "s3": (
        ("aws_",),
        frozenset(
            "access_key_id secret_access_key session_token profile region default_region endpoint bucket "
            "checksum_algorithm conditional_put copy_if_not_exists container_credentials_relative_uri "
            "container_credentials_full_uri container_authorization_token_file disable_tagging imdsv1_fallback "
            "metadata_endpoint request_payer role_arn role_session_name s3_express server_side_encryption "
            "skip_signature sse_bucket_key_enabled sse_customer_key_base64 sse_kms_key_id sts_endpoint "
            "unsigned_payload virtual_hosted_style_request web_identity_token_file".split()
        ),
    ),
    "gs": (
        ("google_", "gcs_", "gcp_"),
        frozenset(
            "service_account service_account_key base_url bearer_token bucket application_credentials "
            "skip_signature".split()
        ),
    ),
    "azure": (
        ("azure_storage_", "azure_"),
        frozenset(
            "account_name account_key client_id client_secret credential_type tenant_id authority_host sas_key token "
            "use_emulator use_fabric_endpoint encryption_key endpoint msi_endpoint object_id msi_resource_id "
            "federated_token_file use_azure_cli skip_signature container_name disable_tagging".split()
        ),
    ),
}

#: Other names of options, without a prefix and in lower case.
SYNONYMS: Mapping[str, Mapping[str, str]] = {
    "s3": {
        "access_key": "access_key_id", "secret_key": "secret_access_key", "token": "session_token",
        "endpoint_url": "endpoint", "endpoint_url_s3": "endpoint", "bucket_name": "bucket",
        "virtual_hosted_style": "virtual_hosted_style_request",
    },
    "gs": {
        "service_account_path": "service_account", "service_account_file": "service_account", "bucket_name": "bucket",
        "service_account_json": "service_account_key",
    },
    "azure": {
        "access_key": "account_key", "master_key": "account_key", "sas_token": "sas_key", "account": "account_name",
        "container": "container_name", "authority_id": "tenant_id", "bearer_token": "token",
    },
}  # fmt: skip

#: Hadoop's names, as in Spark (the prefix `spark.hadoop.` is optional), as (option, value) of ours. `{}` is
#: the value; `not {}` its opposite; any other text whether it is in the value. A group of the pattern is the bucket
#: or account that it is for alone.
HADOOP: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "s3": (
        (r"fs\.s3[an]?\.(?:bucket\.(?P<of>.+?)\.)?access\.key", "access_key_id", "{}"),
        (r"fs\.s3[an]?\.(?:bucket\.(?P<of>.+?)\.)?secret\.key", "secret_access_key", "{}"),
        (r"fs\.s3[an]?\.(?:bucket\.(?P<of>.+?)\.)?session\.token", "session_token", "{}"),
        (r"fs\.s3[an]?\.(?:bucket\.(?P<of>.+?)\.)?endpoint", "endpoint", "{}"),
        (r"fs\.s3[an]?\.(?:bucket\.(?P<of>.+?)\.)?endpoint\.region", "region", "{}"),
        (r"fs\.s3[an]?\.(?:bucket\.(?P<of>.+?)\.)?path\.style\.access", "virtual_hosted_style_request", "not {}"),
        (r"fs\.s3[an]?\.(?:bucket\.(?P<of>.+?)\.)?connection\.ssl\.enabled", "allow_http", "not {}"),
        (r"fs\.s3[an]?\.(?:bucket\.(?P<of>.+?)\.)?aws\.credentials\.provider", "skip_signature", "Anonymous"),
    ),
    "gs": ((r"(?:google\.cloud|fs\.gs)\.auth\.service\.account\.json\.keyfile", "service_account", "{}"),),
    "azure": (
        (r"fs\.azure\.account\.key(?:\.(?P<of>[^.]+).*)?", "account_key", "{}"),
        (r"fs\.azure\.sas\.fixed\.token(?:\.(?P<of>[^.]+).*)?", "sas_key", "{}"),
        (r"fs\.azure\.account\.oauth2\.client\.id(?:\.(?P<of>[^.]+).*)?", "client_id", "{}"),
        (r"fs\.azure\.account\.oauth2\.client\.secret(?:\.(?P<of>[^.]+).*)?", "client_secret", "{}"),
    ),
}

#: The URL of a server; Azure's emulator and stores behind others have a path, too.
_ENDPOINT = late.pattern(r"(?i)https?://[^\s/?#]+(/[^\s?#]*)?")

#: How other engines commit; ignored, because mica always uses a put that fails if the file exists.
IGNORED = frozenset({"s3_allow_unsafe_rename", "copy_if_not_exists_header"})

#: Names of S3A's options, and Amazon's endpoints.
_S3A = late.pattern(r"(?i)\s*(?:spark\.hadoop\.)?fs\.s3a\.")
_AMAZON = late.pattern(
    r"(?i)s3(?:[.-](?:dualstack\.)?(?P<region>[a-z]{2}(?:-[a-z]+)+-\d+))?\.amazonaws\.com(?:\.cn)?/?"
)

_KINDS = {"s3": "s3", "gs": "gs"}


def kind_of(scheme: str) -> str:
    """Returns the key in `STORES` for one of obstore's schemes."""
    return _KINDS.get(scheme, "azure")


def normalized(options: Mapping[str, str] | None, scheme: str, host: str = "") -> dict[str, str]:
    """Returns the options under obstore's names; `host` is what follows the scheme of a location, its bucket or
    container. Errors: INVALID_ARGUMENT, UNKNOWN_STORAGE_OPTION."""
    refuse_other("storage_options", options, OPTIONS, optional=True)
    kind = kind_of(scheme)
    read = [(given, *_named(given, text, kind)) for given, text in (options or {}).items()]
    found = _values((given, names) for given, only, names in read if not only)
    own = host
    if kind == "azure":  # a location may name its account, and so may an option
        own = host.partition("@")[2].partition(".")[0] or found.get("account_name", "")
    found |= _values((given, names) for given, only, names in read if only and own.lower() in ("", only))
    if kind == "s3" and any(_S3A.match(name) for name in options or {}):
        _as_s3a(found)
    if found.get("endpoint") and "://" not in found["endpoint"]:
        # Hadoop accepts a host only.
        found["endpoint"] = f"{'http' if _is_true(found.get('allow_http', '')) else 'https'}://{found['endpoint']}"
    if "endpoint" in found and not _ENDPOINT.fullmatch(found["endpoint"]):  # obstore panics
        raise UserError(
            "INVALID_ARGUMENT",
            "the endpoint of storage_options is not the URL of a server",
            hint="Write it as https://host or https://host:port.",
        )
    allowed = os.environ.get("AWS_ALLOW_HTTP") if kind == "s3" else None
    if allowed is not None:
        found.setdefault("allow_http", allowed)
    return found


def _as_s3a(found: dict[str, str]) -> None:
    """What Hadoop reads out of an endpoint: its scheme says whether there is TLS, Amazon's hosts name their region."""
    scheme, _, host = found.get("endpoint", "").rpartition("://")
    if scheme:
        found["allow_http"] = str(scheme.lower() == "http").lower()
    of_amazon = _AMAZON.fullmatch(host)
    if of_amazon is not None and of_amazon["region"]:
        found.setdefault("region", of_amazon["region"])
    elif of_amazon is not None:
        del found["endpoint"]  # it answers for every region, and obstore finds the region's


def _values(named: Iterable[tuple[str, list[tuple[str, str]]]]) -> dict[str, str]:
    """The values of the options. Errors: INVALID_ARGUMENT if one has two."""
    found = dict[str, tuple[str, str]]()
    for given, names in named:
        for name, value in names:
            known, origin = found.setdefault(name, (value, given))
            if known != value:
                raise UserError(
                    "INVALID_ARGUMENT",
                    f"storage_options has two values of {name}: under {origin!r} and under {given!r}",
                    hint="Remove one of them.",
                )
    return {name: value for name, (value, _) in found.items()}


def _named(given: str, value: str, kind: str) -> tuple[str, list[tuple[str, str]]]:
    """The bucket or account that a name in any spelling is for, or nothing, and the options by obstore's names."""
    prefixes, names = STORES[kind]
    text = given.strip().lower().removeprefix("spark.hadoop.")
    for pattern, name, meaning in HADOOP[kind]:
        found = re.fullmatch(pattern, text)
        if found is not None:
            only = found.groupdict().get("of") or ""
            more = [("account_name", only)] if only and kind == "azure" else []
            return only, [(name, _meant(value, meaning)), *more]
    prefix = next((p for p in prefixes if text.startswith(p)), "")
    bare = text[len(prefix) :]
    bare = SYNONYMS[kind].get(bare, bare)
    if bare in names or bare in CLIENT or bare == ALLOW_EXTERNAL:
        return "", [(bare, value)]
    if bare in IGNORED or _of_another(text, kind):
        return "", []
    near = late.difflib.get_close_matches(bare, [*names, *CLIENT, ALLOW_EXTERNAL], 1)
    hint = f"Is {near[0]} meant?" if near else f"There are: {', '.join(sorted({*names, *CLIENT}))}."
    raise UserError("UNKNOWN_STORAGE_OPTION", f"there is no storage option {given!r} for {kind}", hint=hint)


def _meant(value: str, meaning: str) -> str:
    if meaning == "{}":
        return value
    return str(not _is_true(value) if meaning == "not {}" else meaning in value).lower()


def _of_another(text: str, kind: str) -> bool:
    """Whether the name belongs to another kind of store: one set of options may serve tables in several."""
    patterns = [pattern for other, lines in HADOOP.items() if other != kind for pattern, _, _ in lines]
    prefixes = tuple(prefix for other, (those, _) in STORES.items() if other != kind for prefix in those)
    return text.startswith(prefixes) or any(re.fullmatch(pattern, text) for pattern in patterns)


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


def of_connection(options: Mapping[str, str] | None) -> bool:
    """Whether there are options of a connection."""
    return any(name.lower() != ALLOW_EXTERNAL for name in options or {})


def with_own(options: Mapping[str, str] | None, own: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The options that are given for a location; where none of the connection is, those of another one's connection,
    too. What the log there may name is not said by them."""
    if of_connection(options):
        return options
    return {name: value for name, value in (own or {}).items() if name.lower() != ALLOW_EXTERNAL} | dict(options or {})


def allows_external(options: Mapping[str, str] | None) -> bool | None:
    """Whether a log may name files outside the table's own storage; None: those in its bucket or on its disk, False:
    none but those in its folder."""
    given = [_is_true(str(value)) for name, value in (options or {}).items() if name.lower() == ALLOW_EXTERNAL]
    return any(given) if given else None
