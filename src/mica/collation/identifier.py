"""Identifiers of collations: Provider.Name[.Version].

The rule: identifiers are compared case-insensitively and keep their spelling; nothing is guessed. `names` lists
those that Spark has.

Source: Delta RFC "Collated String Type", section "Collation identifiers".
"""

from __future__ import annotations

from dataclasses import replace

from mica.errors import UserError
from mica.records import dataclass


@dataclass(frozen=True)
class Identifier:
    """A collation. `version` is None if the text has none: any version is then meant."""

    provider: str
    name: str
    version: str | None = None

    def __str__(self) -> str:
        return ".".join(part for part in (self.provider, self.name, self.version) if part is not None)

    @property
    def key(self) -> str:
        """Returns the same text for all spellings of the same collation."""
        return str(self).lower()

    def same(self, other: Identifier) -> bool:
        """Whether both are the same collation: provider, name and version, in any case."""
        return self.key == other.key

    def at(self, version: str | None) -> Identifier:
        """Returns the same collation in a version; None: in any version."""
        return replace(self, version=version)


def parse(text: str) -> Identifier:
    """Parses `icu.UNICODE_CI` or `icu.UNICODE_CI.78.3`; empty parts are an error."""
    provider, _, rest = text.partition(".")
    name, dot, version = rest.partition(".")
    parts = [provider, name, *(version.split(".") if dot else ())]
    if not all(part and not any(c.isspace() for c in part) for part in parts):
        raise UserError(
            "INVALID_COLLATION",
            f"{text!r} is not a collation identifier",
            hint="Write PROVIDER.NAME or PROVIDER.NAME.VERSION, as in icu.UNICODE_CI or icu.UNICODE_CI.78.3.",
            collation=text,
        )
    return Identifier(provider, name, version if dot else None)
