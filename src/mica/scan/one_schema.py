"""One schema for files that each have their own.

The rule: a type holds the values of every file. Structs get the fields of all files, in order of first appearance; what
a file lacks is null there; nulls are allowed where any file allows them; a column that holds nothing but nulls (VOID)
takes the type that others have. Types that differ otherwise are an error: no value is widened or parsed.

Names that differ only in case are one where mica reads the files; not in files that become a table's (`exact`), whose
other readers may tell names apart by case.

Source: Spark's `mergeSchema`, and delta-spark's CONVERT TO DELTA.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from mica.errors import UserError
from mica.schema.arrow import looks_like_variant
from mica.schema.ddl import type_to_ddl
from mica.schema.types import VARIANT, VOID, ArrayType, DataType, MapType, StructField, StructType, contains


def one_schema(
    paths: Sequence[str], schemas: Sequence[StructType], others: Container[str], *, exact: bool = False
) -> StructType:
    """The columns of all files in order of first appearance; nullable where a file lacks them. The types of `others`,
    in lower case, whose values are not the files', may differ. Errors: INCOMPATIBLE_FILES; DUPLICATE_COLUMN, if names
    must be `exact`."""
    fields: dict[str, StructField] = {}
    origin: dict[str, str] = {}
    present: dict[str, int] = {}
    for path, schema in zip(paths, schemas, strict=True):
        for f in schema.fields:
            key = f.name.lower()
            present[key] = present.get(key, 0) + 1
            known = fields.get(key)
            if known is None:
                fields[key], origin[key] = f, path
                continue
            if exact and known.name != f.name and key not in others:
                raise UserError(
                    "DUPLICATE_COLUMN",
                    f"the column {known.name!r} of {origin[key]} is called {f.name!r} in {path}",
                    hint="Write the files with one name: Delta's readers may tell names apart by case.",
                    column=f.name,
                )
            type_ = known.type if key in others else merged(known.type, f.type, exact=exact)
            if type_ is None:
                raise UserError(
                    "INCOMPATIBLE_FILES",
                    f"column {f.name!r} is {type_to_ddl(known.type)} in {origin[key]}"
                    f" and {type_to_ddl(f.type)} in {path}",
                    hint="Read the files separately.",
                    column=f.name,
                )
            fields[key] = StructField(known.name, type_, known.nullable or f.nullable, known.metadata)
    return StructType(
        tuple(
            f if present[key] == len(schemas) else StructField(f.name, f.type, True, f.metadata)
            for key, f in fields.items()
        )
    )


def merged(one: DataType, other: DataType, *, exact: bool = False) -> DataType | None:
    """The type that holds the values of both; None if there is none. With `exact`, names are told apart by case."""
    if one == other:
        return one
    if VOID in (one, other):
        type_ = other if one == VOID else one
        return None if contains(type_, VARIANT) else type_  # the kernel reads no Variants from a column without bytes
    if all(type_ == VARIANT or looks_like_variant(type_) for type_ in (one, other)):
        return VARIANT
    match one, other:
        case StructType(), StructType():
            return _merged_structs(one, other, exact=exact)
        case ArrayType(), ArrayType():
            element = merged(one.element, other.element, exact=exact)
            return None if element is None else ArrayType(element, one.contains_null or other.contains_null)
        case MapType(), MapType():
            key, value = merged(one.key, other.key, exact=exact), merged(one.value, other.value, exact=exact)
            nulls = one.value_contains_null or other.value_contains_null
            return None if key is None or value is None else MapType(key, value, nulls)
    return None


def _merged_structs(one: StructType, other: StructType, *, exact: bool) -> StructType | None:
    fields = {f.name.lower(): f for f in one.fields}
    missing = set(fields)
    if len(fields) < len(one.fields) or len({f.name.lower() for f in other.fields}) < len(other.fields):
        return None  # which of two fields the other file's would be of cannot be said
    for f in other.fields:
        key = f.name.lower()
        known = fields.get(key)
        missing.discard(key)
        if known is None:
            fields[key] = StructField(f.name, f.type, True, f.metadata)
            continue
        type_ = merged(known.type, f.type, exact=exact)
        if type_ is None or (exact and known.name != f.name):
            return None
        fields[key] = StructField(known.name, type_, known.nullable or f.nullable, known.metadata)
    return StructType(
        tuple(StructField(f.name, f.type, True, f.metadata) if key in missing else f for key, f in fields.items())
    )
