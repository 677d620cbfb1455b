"""Names of collations: Provider.Name[.Version].

The rule: names are compared without regard to case and keep their spelling; nothing is guessed.

Source: Delta RFC "Collated String Type", section "Collation identifiers".
"""

from __future__ import annotations

from dataclasses import dataclass

from mica.errors import UserError

#: The collations of Spark itself; every other Spark name is ICU's.
_SPARK_OWN = ("UTF8_BINARY", "UTF8_LCASE")


@dataclass(frozen=True, slots=True)
class Identifier:
    """`version` is None where the text has none: any version is then meant."""

    provider: str
    name: str
    version: str | None = None

    def __str__(self) -> str:
        return ".".join(part for part in (self.provider, self.name, self.version) if part is not None)

    def same(self, other: Identifier) -> bool:
        """Whether both mean the same collation: provider, name and version without regard to case."""
        return str(self).lower() == str(other).lower()


def parse(text: str) -> Identifier:
    """Reads `icu.UNICODE_CI` or `icu.UNICODE_CI.78.3`; empty parts are an error."""
    provider, _, rest = text.partition(".")
    name, dot, version = rest.partition(".")
    if not provider or not name or (dot and not all(version.split("."))):
        raise UserError(
            "INVALID_COLLATION",
            f"{text!r} is no collation identifier",
            hint="Write PROVIDER.NAME or PROVIDER.NAME.VERSION, as in icu.UNICODE_CI or icu.UNICODE_CI.78.3.",
        )
    return Identifier(provider, name, version if dot else None)


def from_spark(name: str) -> Identifier:
    """The identifier of a collation that is named as in Spark's SQL: `de`, `UNICODE_CI`, `UTF8_LCASE_RTRIM`."""
    if name.upper().startswith(_SPARK_OWN):
        return Identifier("spark", name.upper())
    return Identifier("icu", "_".join(_spell(part, i) for i, part in enumerate(name.split("_"))))


def _spell(part: str, place: int) -> str:
    """`sr_cyrl_srb_ci` is `sr_Cyrl_SRB_CI`: language lower, script title, country and modifiers upper."""
    if place == 0:
        return part.upper() if part.upper() == "UNICODE" else part.lower()
    return part.title() if len(part) == 4 else part.upper()
