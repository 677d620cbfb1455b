"""The metadata domain of collations: the versions of a collation for which statistics are kept.

The rule: the domain is a hint and guarantees nothing. mica adds a version when it first writes bounds of it, and keeps
other writers' versions in their order.

The RFC describes the content under "`collations` Domain Metadata", so the domain has that name:
`{"writeVersions": {"icu.de": ["78.3"]}}`.

Source: Delta RFC "Collated String Type", "Collation versions".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from mica.collation.identifier import parse
from mica.errors import CorruptDataError, UserError
from mica.log import features
from mica.log.actions import Protocol

CLUSTERING_DOMAIN = "delta.clustering"
COLLATIONS_DOMAIN = "collations"
#: The domains that tell of content, which a restore and a clone take over. Others are their owners' (PROTOCOL.md,
#: "Domain Metadata"): mica may not change a system's that it does not know, and delta-spark leaves users' alone.
OF_CONTENT = (CLUSTERING_DOMAIN, COLLATIONS_DOMAIN)


def write_versions(configuration: str | None, table: str) -> dict[str, list[str]]:
    """Returns collation → versions from the domain. Errors: INVALID_DOMAIN, with the table."""
    return _read(configuration, table)[1]


def with_versions(configuration: str | None, collations: Iterable[str], version: str, table: str) -> str | None:
    """Adds a version of these collations (identifiers without one) to the domain; None if it has them already.

    Errors: INVALID_DOMAIN if the domain cannot be read; it is then not changed.
    """
    document, versions = _read(configuration, table)
    spelled = {name.lower(): name for name in versions}
    changed = False
    for name in sorted(set(collations)):
        kept = versions.setdefault(spelled.get(name.lower(), name), [])
        if version not in kept:
            kept.append(version)
            changed = True
    return orjson.dumps({**document, "writeVersions": versions}).decode() if changed else None


def newer_versions(
    protocol: Protocol, domains: Mapping[str, str], collations: Iterable[str], version: str, table: str
) -> str | None:
    """The domain to write with statistics of this version of the collations; None if it stays as it is.

    Who writes statistics should do so (RFC, "`collations` Domain Metadata"); in a table without the feature
    domainMetadata, such as Delta Kernel makes, the statistics say it alone. Errors: as those of `with_versions`.
    """
    if not features.supports(protocol, "domainMetadata"):
        return None
    return with_versions(domains.get(COLLATIONS_DOMAIN), collations, version, table)


def _read(configuration: str | None, table: str) -> tuple[Mapping[str, Any], dict[str, list[str]]]:
    if not configuration:
        return {}, {}
    try:
        document = orjson.loads(configuration)
    except orjson.JSONDecodeError as e:
        raise _bad(table, f"it is not JSON: {e}") from None
    if not isinstance(document, dict):
        raise _bad(table, "it is not an object")
    found = document.get("writeVersions", {})
    if not isinstance(found, dict):
        raise _bad(table, "its writeVersions are not an object")
    seen: dict[str, str] = {}
    for name, versions in found.items():
        try:
            parse(name)
        except UserError as e:
            raise _bad(table, e.message) from None
        if name.lower() in seen:
            raise _bad(table, f"{seen[name.lower()]!r} and {name!r} differ only in case")
        seen[name.lower()] = name
        if not isinstance(versions, list) or not all(isinstance(v, str) and all(v.split(".")) for v in versions):
            raise _bad(table, f"the versions of {name} are {versions!r}")
    return document, {name: list(versions) for name, versions in found.items()}


def _bad(table: str, why: str) -> CorruptDataError:
    return CorruptDataError(
        "INVALID_DOMAIN",
        f"the domain {COLLATIONS_DOMAIN!r} of {table} cannot be used: {why}",
        hint="Let the engine that wrote it repair or remove it.",
        domain=COLLATIONS_DOMAIN,
        table=table,
    )


def clustering_columns(configuration: str | None) -> frozenset[tuple[str, ...]]:
    """The columns by which a table is clustered, by their physical names. Source: PROTOCOL.md, "Clustered Table"."""
    try:
        found = orjson.loads(configuration or "{}").get("clusteringColumns") or []
        return frozenset(tuple(map(str, names)) for names in found if isinstance(names, list))
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        return frozenset()
