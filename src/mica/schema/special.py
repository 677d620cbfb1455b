"""Columns with a rule: keys of their metadata, and the table features that these need.

The rule: a key is spelled here only. All of them are metadata of fields; constraints of whole tables are properties.

Source: PROTOCOL.md, "Column Invariants", "Generated Columns", "Default Columns", "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Mapping

INVARIANTS = "delta.invariants"
GENERATED = "delta.generationExpression"
DEFAULT = "CURRENT_DEFAULT"
#: What Spark gives rows of files that lack the column, which is never the case in Delta.
EXISTS_DEFAULT = "EXISTS_DEFAULT"
IDENTITY_START = "delta.identity.start"
IDENTITY_STEP = "delta.identity.step"
HIGH_WATER_MARK = "delta.identity.highWaterMark"
IDENTITY_EXPLICIT = "delta.identity.allowExplicitInsert"
#: The type of a column that Spark declared as CHAR(n) or VARCHAR(n): in the schema it is a string.
CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"

#: Keys, and the table feature that each one needs.
FEATURES: Mapping[str, str] = {
    INVARIANTS: "invariants",
    GENERATED: "generatedColumns",
    DEFAULT: "allowColumnDefaults",
    IDENTITY_START: "identityColumns",
}
