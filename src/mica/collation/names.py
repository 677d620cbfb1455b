"""The collations that Spark has, and their names in other systems.

The rule: a name is valid if and only if Spark accepts it. The tables are those of Spark 4.2.1 and 4.3.0
(ICU4J 78.3): 145 ICU bases, each with any of `_CI`, `_AI`, `_RTRIM`, and four collations of Spark's own. Other
systems' names are mapped for columns and queries only, never for keys of statistics: another library's `de_DE` may
order some strings differently from Spark's `de`.

Source: Spark's `CollationFactory` (its SQL function `collations()` lists the same); Delta RFC "Collated String Type".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn, Protocol

from mica import late
from mica.collation.identifier import Identifier, parse
from mica.errors import UserError

#: The byte order, which is the default collation.
BINARY = Identifier("spark", "UTF8_BINARY")
LCASE = Identifier("spark", "UTF8_LCASE")

_OWN = ("UTF8_BINARY", "UTF8_BINARY_RTRIM", "UTF8_LCASE", "UTF8_LCASE_RTRIM")

#: The bases of ICU's collations as Spark spells them.
BASES = (
    "UNICODE",
    *(
        "af am ar ar_SAU as az be bg blo bn bo br bs bs_Cyrl ca ceb chr cs cy da de de_AUT dsb dz ee el en en_USA eo "
        "es et fa fa_AFG ff ff_Adlm fi fil fo fr fr_CAN fy ga gl gu ha haw he he_ISR hi hr hsb hu hy id id_IDN ig is "
        "it ja ka kk kk_Arab kl km kn ko kok ku ky lb lij lkt ln lo lt lv mk ml mn mr ms mt my nb nb_NOR ne nl nn no "
        "nso om or pa pa_Guru pa_Guru_IND pl ps pt ro ru sa se si sk sl smn sq sr sr_Cyrl sr_Cyrl_BIH sr_Cyrl_MNE "
        "sr_Cyrl_SRB sr_Latn sr_Latn_BIH sr_Latn_SRB st sv sw ta te th tk tn to tr ug uk ur uz vi wae wo xh yi yo zh "
        "zh_Hans zh_Hans_CHN zh_Hans_SGP zh_Hant zh_Hant_HKG zh_Hant_MAC zh_Hant_TWN zu"
    ).split(),
)

#: ICU's own names of locales → Spark's: a country of two letters, which Spark spells with three letters or omits if the
#: country has no special rules.
_ELSEWHERE: Mapping[str, str] = {
    "root": "UNICODE", "und": "UNICODE",
    "ar_SA": "ar_SAU", "bg_BG": "bg", "bn_BD": "bn", "ca_ES": "ca", "cs_CZ": "cs", "cy_GB": "cy", "da_DK": "da",
    "de_AT": "de_AUT", "de_CH": "de", "de_DE": "de", "el_GR": "el", "en_AU": "en", "en_CA": "en", "en_GB": "en",
    "en_US": "en_USA", "es_ES": "es", "es_MX": "es", "et_EE": "et", "fa_AF": "fa_AFG", "fa_IR": "fa", "fi_FI": "fi",
    "fr_BE": "fr", "fr_CA": "fr_CAN", "fr_CH": "fr", "fr_FR": "fr", "he_IL": "he_ISR", "hi_IN": "hi", "hr_HR": "hr",
    "hu_HU": "hu", "id_ID": "id_IDN", "is_IS": "is", "it_CH": "it", "it_IT": "it", "ja_JP": "ja", "ko_KR": "ko",
    "lo_LA": "lo", "lt_LT": "lt", "lv_LV": "lv", "nb_NO": "nb_NOR", "nl_BE": "nl", "nl_NL": "nl", "pl_PL": "pl",
    "pt_BR": "pt", "pt_PT": "pt", "ro_RO": "ro", "ru_RU": "ru", "sk_SK": "sk", "sl_SI": "sl", "sr_RS": "sr",
    "sv_FI": "sv", "sv_SE": "sv", "th_TH": "th", "tr_TR": "tr", "uk_UA": "uk", "vi_VN": "vi", "zh_CN": "zh_Hans_CHN",
    "zh_HK": "zh_Hant_HKG", "zh_SG": "zh_Hans_SGP", "zh_TW": "zh_Hant_TWN",
}  # fmt: skip

_BY_LOWER = {base.lower(): base for base in BASES}
_ELSEWHERE_BY_LOWER = {name.lower(): base for name, base in _ELSEWHERE.items()}

#: The letters of each modifier (and of its absence), in the order in which Spark writes them.
_MODIFIERS: tuple[tuple[str, str | None], ...] = (("ci", "cs"), ("ai", "as"), ("rtrim", None))


def all_names() -> Iterator[str]:
    """Yields every collation of Spark by its SQL name."""
    yield from _OWN
    for base in BASES:
        for case in ("", "_CI"):
            for accent in ("", "_AI"):
                for trim in ("", "_RTRIM"):
                    yield base + case + accent + trim


def from_sql(name: str) -> Identifier:
    """Returns the identifier of a collation named as in Spark's SQL: `de`, `unicode_ci`, `UTF8_LCASE_RTRIM`.

    Errors: UNKNOWN_COLLATION for a name that Spark does not have.
    """
    found = _normal(name, _BY_LOWER)
    if found is None:
        near = late.difflib.get_close_matches(name.lower(), {n.lower(): n for n in all_names()}, 3)
        shown = ", ".join(n for n in all_names() if n.lower() in near) or "UNICODE, UNICODE_CI, UTF8_LCASE"
        raise UserError(
            "UNKNOWN_COLLATION",
            f"there is no collation {name!r}",
            hint=f"Similar: {shown}. Spark's function collations() lists all of them.",
            collation=name,
        )
    return Identifier("spark" if found in _OWN else "icu", found)


class NameReader(Protocol):
    """A place in a text; what is asked of it here."""

    def identifier(self) -> str: ...  # noqa: D102
    def accept(self, text: str, /) -> bool: ...  # noqa: D102
    def fail(self, why: str, /) -> NoReturn: ...  # noqa: D102


def named(reader: NameReader) -> Identifier:
    """The collation whose name comes next: `de`, `system.builtin.de`. Errors: the reader's, UNKNOWN_COLLATION."""
    names = [reader.identifier()]
    while reader.accept("."):
        names.append(reader.identifier())
    name = built_in(names)
    if name is None:
        reader.fail("a collation is a name, or system.builtin and a name")
    return from_sql(name)


def built_in(names: Sequence[str]) -> str | None:
    """The name of a collation in the parts of a name: `de` of `system.builtin.de`. None for other parts."""
    return names[-1] if [name.lower() for name in names[:-1]] in ([], ["system", "builtin"]) else None


def to_sql(identifier: Identifier) -> str | None:
    """Returns Spark's SQL name of a collation, in any spelling; None if Spark does not have it. Ignores the version."""
    provider = identifier.provider.lower()
    if provider not in ("icu", "spark"):
        return None
    found = _normal(identifier.name, _BY_LOWER)
    if found is None and provider == "icu":
        found = _normal(identifier.name, _ELSEWHERE_BY_LOWER)
    return found if found is not None and (found in _OWN) is (provider == "spark") else None


def is_binary(identifier: Identifier) -> bool:
    """Whether it is the plain byte order, which is never stored."""
    return identifier.at(None).same(BINARY)


def read(text: str) -> Identifier:
    """Parses an identifier as tables hold it, or Spark's SQL name: `icu.de`, `ICU.de_DE.75.1`, `de`, `UNICODE_CI`.

    Errors: INVALID_COLLATION, UNKNOWN_COLLATION.
    """
    return parse(text) if "." in text else from_sql(text)


def base_of(name: str) -> str:
    """Returns a SQL name without its modifiers: `de` of `de_CI_AI_RTRIM`."""
    words = name.split("_")
    while len(words) > 1 and words[-1].upper() in ("CI", "CS", "AI", "AS", "RTRIM"):
        words.pop()
    return "_".join(words)


def _normal(name: str, bases: Mapping[str, str]) -> str | None:
    """Returns Spark's spelling: the base and its modifiers in order; None for an invalid name."""
    lower = name.lower()
    own = [n for n in _OWN if n.lower() == lower]
    if own:
        return own[0]
    parts = lower.split("_")
    # The longest base wins: `as` is both Assamese and a modifier.
    for count in range(len(parts), 0, -1):
        base = bases.get("_".join(parts[:count]))
        if base is not None:
            modifiers = _modified(parts[count:])
            return None if modifiers is None else base + modifiers
    return None


def _modified(parts: list[str]) -> str | None:
    """Returns `_CI_AI_RTRIM` of modifiers in any order, each kind once; None if a part is not a modifier."""
    text = ""
    left = list(parts)
    for letters, absent in _MODIFIERS:
        given = [part for part in left if part in (letters, absent)]
        if len(given) > 1:
            return None
        text += f"_{letters.upper()}" if given == [letters] else ""
        left = [part for part in left if part not in given]
    return None if left else text
