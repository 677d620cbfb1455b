"""Which table properties may be set, and which table features they add.

The rule: a known property (`mica.properties`) may be set, with its name in any case; an unknown `delta.` or `mica.`
name and an unreadable value are errors; other names are free. A property that requires a table feature adds it, or is
rejected if mica cannot write tables with the feature. Unknown properties of an existing table are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from mica import late, properties
from mica.errors import UnsupportedTableError, UserError
from mica.properties import (
    COMMENT,
    CONSTRAINTS,
    ENABLE_SHREDDING,
    FEATURE,
    PROPERTIES,
    PROTOCOL_VERSIONS,
    REFUSED,
    SET_BY_WRITERS,
    Property,
)

V = TypeVar("V", str, str | None)

_BY_LOWER = {name.lower(): known for name, known in PROPERTIES.items()}


def checked(changes: Mapping[str, str | None]) -> dict[str, str | None]:
    """Checks properties that are being set (None: removed) and returns them under their canonical names.

    Errors: INVALID_ARGUMENT for a value that is not a string, INVALID_PROPERTY for an invalid one,
    UNKNOWN_TABLE_PROPERTY, UNSUPPORTED_WRITER_FEATURE for what mica does not support.
    """
    found = {}
    for given, text in changes.items():
        known = _BY_LOWER.get(given.lower())
        name = _feature(given) if known is None else known.name
        found[name] = text
        if text is None:
            continue
        if not isinstance(text, str):
            raise UserError.bad_value(f"the table property {name}", text, "a string")
        if known is None:
            _check_unknown(name, text)
        else:
            found[name] = _spelled(known, text)
    return found


def _feature(name: str) -> str:
    """A property `delta.feature.*` in the case of the feature; any other as it is."""
    if not name.lower().startswith(FEATURE):
        return name
    feature = name[len(FEATURE) :]
    return FEATURE + next((one for one in properties.FEATURES if one.lower() == feature.lower()), feature)


def refuse_writers(changes: Mapping[str, str | None], before: Mapping[str, str]) -> None:
    """Refuses to change what writers set for themselves in a table that exists: with another highest id a new column
    finds the values of a dropped one. Errors: INVALID_PROPERTY."""
    for known in SET_BY_WRITERS:
        if known.name in changes and changes[known.name] != before.get(known.name):
            what = f"the table property {known.name} is set by writers"
            raise UserError("INVALID_PROPERTY", f"{what} and cannot be changed", hint="Leave it out.")


def kept(changes: Mapping[str, V]) -> dict[str, V]:
    """Returns the properties that the table keeps: `delta.feature.*` goes into the protocol instead, the comment into
    the description. No reader takes metadata with the versions of the protocol in it."""
    elsewhere = {COMMENT, *(known.name for known in PROTOCOL_VERSIONS)}
    return {name: text for name, text in changes.items() if not name.startswith(FEATURE) and name not in elsewhere}


def needed_features(configuration: Mapping[str, str]) -> set[str]:
    """Returns the table features that a table's properties require."""
    needed = {
        known.feature
        for known in PROPERTIES.values()
        if known.feature is not None and known.name in configuration and known.of(configuration) in known.asks
    }
    return needed | {
        name[len(FEATURE) :]
        for name, value in configuration.items()
        if name.startswith(FEATURE) and value.lower() in ("supported", "enabled")
    }


def _spelled(known: Property[Any], text: str) -> str:
    """Returns the text as the log gets it: without spaces around it, and with words in Delta's case. delta-spark cannot
    write a table with `delta.checkpointPolicy = V2`. Errors: those of `checked`."""
    try:
        value = known.values.parse(text)
        if known is ENABLE_SHREDDING and text not in ("true", "false"):
            raise ValueError  # the parser would read it as false, surely not the caller's intent
    except ValueError:
        raise _bad_text(known.name, text, known.values.expected) from None
    if known.refuses(value):
        raise UnsupportedTableError(
            "UNSUPPORTED_WRITER_FEATURE",
            f"{known.name}={text}: {known.refused}",
            hint="Leave the property out.",
            feature=known.feature,
        )
    return value if isinstance(value, str) else text.strip()


def _check_unknown(name: str, text: str) -> None:
    lowered = name.lower()
    if lowered.startswith(CONSTRAINTS):
        raise UnsupportedTableError(
            "UNSUPPORTED_WRITER_FEATURE",
            f"{name} cannot be set as a property: existing rows would not be checked",
            hint="Use Table.add_constraint and Table.drop_constraint.",
            feature="checkConstraints",
        )
    if lowered.startswith(FEATURE):
        feature = name[len(FEATURE) :]
        if properties.feature_of(feature) is None:
            raise _unknown(name, [f"{FEATURE}{one}" for one in properties.FEATURES], FEATURE)
        if text.lower() not in ("supported", "enabled"):
            raise _bad_text(name, text, "supported")
    elif lowered.startswith(("delta.", "mica.")):
        raise _unknown(name, list(PROPERTIES))


def _bad_text(name: str, text: str, expected: str) -> UserError:
    return UserError("INVALID_PROPERTY", f"the table property {name} cannot be {text!r}", hint=f"Give {expected}.")


def _unknown(name: str, known: list[str], prefix: str = "") -> UserError:
    def own(one: str) -> str:
        """What is not the same in all names: names of one prefix are not alike by it."""
        return one.lower().removeprefix(prefix.lower() or f"{one.partition('.')[0].lower()}.")

    by_lower = {own(one): one for one in known}
    near = late.difflib.get_close_matches(own(name), list(by_lower), 1, 0.7)
    refused = {one.name for one in REFUSED}
    family = sorted(
        one for one in known if one.partition(".")[0] == name.partition(".")[0].lower() and one not in refused
    )
    hint = f"Is {by_lower[near[0]]} meant?" if near else f"There are: {', '.join(family)}."
    return UserError("UNKNOWN_TABLE_PROPERTY", f"there is no table property {name!r}", hint=hint)
