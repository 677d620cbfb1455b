"""Parses and prints Spark DDL.

The rule: DDL means here what it means in Spark, and Spark can parse what we print. DEFAULT, GENERATED and the length of
VARCHAR(n) and CHAR(n) are kept in the metadata of columns, as Delta has them; clauses that a schema cannot hold
(PRIMARY KEY, …) are rejected by name, never ignored.

Source: Spark's SqlBaseParser.g4, `colTypeList` and `dataType`; `StructField.toDDL` for printing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from mica import late
from mica.collation.identifier import Identifier, parse
from mica.collation.names import BINARY, is_binary, named, to_sql
from mica.errors import UserError
from mica.schema import special
from mica.schema.char import unsized
from mica.schema.collations import COLLATIONS
from mica.schema.lexical import COMMENT, HALF, QUOTED_NAME, QUOTED_STRING, RAW_STRING, REST
from mica.schema.spelling import as_spark, quote_if_needed, unquote, unquoted
from mica.schema.types import (
    TYPES,
    ArrayType,
    DataType,
    MapType,
    Primitive,
    StructField,
    StructType,
    decimal,
    is_text,
    refuse_twice,
)

_NAMES: Mapping[str, str] = {name: row.delta for row in TYPES.values() for name in row.ddl}

#: The strings with a length.
_LIMITED: Mapping[str, str] = {"VARCHAR": "varchar", "CHAR": "char", "CHARACTER": "char"}
_SIZED = late.pattern(r"(?i)\b(?:varchar|char|character)\b")

_TOKEN = late.pattern(
    rf"""(?P<space>\s+|{COMMENT})
      | (?P<quoted>{QUOTED_NAME})
      | (?P<raw>{RAW_STRING})
      | (?P<string>{QUOTED_STRING})
      | (?P<word>\w+)
      | (?P<mark>[<>(),:.-])
      | (?P<other>{REST} | .)""",
    re.VERBOSE | re.DOTALL,
)


def parse_ddl(text: str, collation: Identifier = BINARY) -> StructType:
    """Parses `a INT, b STRUCT<c: BIGINT> NOT NULL COMMENT 'x'`, or one `STRUCT<…>` around it all. Strings that name no
    collation have the given one.

    Errors: INVALID_DDL with the offset of the place that could not be read.
    """
    reader = _Reader(text, collation)
    if reader.word() == "STRUCT" and reader.peek(1).text == "<":
        found = reader.data_type("", {})
        if reader.done() and isinstance(found, StructType):
            return found
        reader = _Reader(text, collation)
    fields = [reader.field(top=True)]
    while reader.accept(","):
        fields.append(reader.field(top=True))
    if not reader.done():
        reader.fail("a comma or the end is expected")
    refuse_twice(f.name for f in fields)
    return StructType(tuple(fields))


class NewColumn(NamedTuple):
    """A column to add, or a field: `into` is the path to its struct. It comes `first`, `after` another, or last."""

    into: tuple[str, ...]
    field: StructField
    first: bool
    after: str | None


def parse_new_columns(text: str, collation: Identifier = BINARY) -> list[NewColumn]:
    """Parses what ADD COLUMNS takes: as `parse_ddl`, and fields of structs (`s.x INT`), FIRST and AFTER c.

    Errors: INVALID_DDL with the offset of the place that could not be read.
    """
    reader = _Reader(text, collation)
    if reader.word() == "STRUCT" and reader.peek(1).text == "<":
        return [NewColumn((), f, False, None) for f in parse_ddl(text, collation).fields]
    found = [reader.new_column()]
    while reader.accept(","):
        found.append(reader.new_column())
    if not reader.done():
        reader.fail("a comma or the end is expected")
    return found


def parse_type(text: str, *, exact_names: bool = False) -> DataType:
    """Parses one type: `BIGINT`, `STRUCT<a: INT>`, `decimal(10,2)`. Collations cannot be kept here and are rejected.

    `exact_names` allows fields that differ only in case, as keys of a Variant may.
    """
    return _parse_type(text, exact_names=exact_names)


def _parse_type(text: str, *, exact_names: bool = False, sized: bool = False) -> DataType:
    reader = _Reader(text)
    reader.exact_names, reader.sized = exact_names, sized
    collations: dict[str, str] = {}
    try:
        found = reader.data_type("", collations)
        if not reader.done():
            reader.fail("the end is expected")
    except UserError as e:
        if e.code == "INVALID_DDL" and _are_columns(text):
            raise UserError(e.code, e.message, hint=f"Fields are a struct: STRUCT<{text}>.", **e.context) from None
        raise
    if collations:
        raise UserError(
            "INVALID_DDL",
            f"a collation is not allowed in {text!r}, which must be a type",
            hint="Table.set_collation sets the collation of a column.",
        )
    return found


def _are_columns(text: str) -> bool:
    try:
        return bool(parse_ddl(text).fields)
    except UserError:
        return False


def parse_column_type(text: str, *, exact_names: bool = False) -> tuple[DataType, str]:
    """Parses the type of a column as `parse_type`; CHAR(n) and VARCHAR(n) in it are strings, and the second value is
    then the type as it is declared (`mica.schema.char`)."""
    if not _SIZED.search(text):
        return parse_type(text, exact_names=exact_names), ""
    return unsized(_parse_type(text, exact_names=exact_names, sized=True), {}, "")


def to_ddl(schema: StructType) -> str:
    """Prints the schema as Spark's `StructType.toDDL` does."""
    return ",".join(_print_field(f, " ") for f in schema.fields)


def type_to_ddl(type_: DataType, collations: Mapping[str, str] | None = None, at: str = "") -> str:
    """Prints a type as Spark's `DataType.sql` does; `collations` maps places such as `a.element` to identifiers."""
    match type_:
        case Primitive(name):
            text = TYPES[name].ddl[0] if name in TYPES else name.upper()
            if is_text(type_) and collations and at in collations:
                identifier = parse(collations[at])
                return f"{text} COLLATE {quote_if_needed(to_sql(identifier) or identifier.name)}"
            return text
        case ArrayType(element):
            return f"ARRAY<{type_to_ddl(element, collations, f'{at}.element')}>"
        case MapType(key, value):
            k = type_to_ddl(key, collations, f"{at}.key")
            return f"MAP<{k}, {type_to_ddl(value, collations, f'{at}.value')}>"
        case StructType(fields):
            return f"STRUCT<{', '.join(_print_field(f, ': ') for f in fields)}>"
    raise TypeError(f"{type_!r} is not a type of a schema")


class _Token(NamedTuple):
    kind: str
    text: str
    at: int

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.at + len(self.text)


_END = "end of the text"


class _Reader:
    def __init__(self, text: str, collation: Identifier = BINARY) -> None:
        self.source = text
        #: That of strings that name none.
        self.collation = collation
        self.exact_names = False
        #: Whether CHAR(n) and VARCHAR(n) are types, which only a column of a table can keep.
        self.sized = False
        self.tokens: list[_Token] = []
        if half := re.search(HALF, text):
            raise _bad(text, half.start(), f"{half[0]!r} is half of a character")
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise _bad(text, at, f"{text[at]!r} is not allowed here")
            if match.lastgroup != "space":
                self.tokens.append(_Token(match.lastgroup, match[0], at))
            at = match.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> _Token:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else _Token("end", _END, len(self.source))

    def word(self) -> str:
        token = self.peek()
        return token.text.upper() if token.kind == "word" else ""

    def accept(self, text: str) -> bool:
        token = self.peek()
        if token.kind in ("mark", "word") and token.text.upper() == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"{text!r} is expected")

    def done(self) -> bool:
        return self.at == len(self.tokens)

    def fail(self, why: str) -> NoReturn:
        raise _bad(self.source, self.peek().at, f"{why}, {self.peek().text!r} is found")

    def identifier(self) -> str:
        token = self.peek()
        if token.kind == "quoted":
            self.at += 1
            return unquoted(token.text)
        if token.kind != "word":
            self.fail("a name is expected")
        if token.text.isdigit():
            self.fail("a name that is a number needs backticks")
        self.at += 1
        return token.text

    def field(self, *, top: bool = False, depth: int = 0) -> StructField:
        """One column or field; only a column of the table (`top`) may have a default or be generated."""
        name = self.identifier()
        self.accept(":")  # at the top level too, as PySpark reads it
        collations: dict[str, str] = {}
        self.sized = self.sized or top
        type_ = self.data_type(name, collations, depth)
        type_, text = unsized(type_, collations, name) if top else (type_, "")
        self.sized = self.sized and not top
        metadata: dict[str, Any] = {COLLATIONS: collations} if collations else {}
        metadata |= {special.CHAR_VARCHAR: text} if text else {}
        nullable = True
        while True:
            if nullable and self.accept("NOT"):
                self.expect("NULL")
                nullable = False
            elif "comment" not in metadata and self.accept("COMMENT"):
                metadata["comment"] = self.string()
            elif top and special.DEFAULT not in metadata and self.accept("DEFAULT"):
                metadata[special.DEFAULT] = self.expression()
            elif top and metadata.keys().isdisjoint(special.FEATURES) and self.accept("GENERATED"):
                metadata |= self.generated()
            else:
                break
        if self.word() in ("NOT", "DEFAULT", "GENERATED", "PRIMARY", "CHECK", "CONSTRAINT", "MASK", "REFERENCES"):
            self.fail(f"{self.word()} is not allowed here")
        return StructField(name, type_, nullable, metadata)

    def limited(self, kind: str) -> Primitive:
        """`varchar(n)` or `char(n)`, a string with a length."""
        self.expect("(")
        length = self.whole_number()
        if length < 1:
            self.fail("a length of 1 or more is expected")
        self.expect(")")
        return Primitive(f"{kind}({length})")

    def new_column(self) -> NewColumn:
        """A column or field to add, with its place."""
        into = []
        while self.peek(1).text == ".":
            into.append(self.identifier())
            self.expect(".")
        self.sized = bool(into)  # the column around it keeps the lengths (`char.restated`)
        field, first, after = self.field(top=not into), False, None
        self.sized = False
        if self.accept("FIRST"):
            first = True
        elif self.accept("AFTER"):
            after = self.identifier()
        if "comment" not in field.metadata and self.accept("COMMENT"):  # Spark takes it after the place too
            field = field.with_metadata({"comment": self.string()})
        return NewColumn(tuple(into), field, first, after)

    def expression(self, *, in_brackets: bool = False) -> str:
        """The text of an expression: up to a comma, a closing bracket or the next clause, which there is none of in
        brackets. In CASE and after IS, NOT NULL is of the expression."""
        start, depth, cases = self.at, 0, 0
        while self.peek().kind != "end":
            text, word = self.peek().text, self.word()
            is_constraint = word == "NOT" and self.peek(1).text.upper() == "NULL"
            of_expression = in_brackets or cases or (is_constraint and self.tokens[self.at - 1].text.upper() == "IS")
            begins = not of_expression and (is_constraint or word in ("COMMENT", "GENERATED"))
            if not depth and self.at > start and (text in (",", ")") or begins):
                break
            depth += (text == "(") - (text == ")")
            cases += (word == "CASE") - (word == "END" and cases > 0)
            self.at += 1
        if self.at == start:
            self.fail("an expression is expected")
        return self.source[self.tokens[start].at : self.tokens[self.at - 1].end]

    def generated(self) -> dict[str, Any]:
        """What follows GENERATED: ALWAYS AS (expr), or {ALWAYS | BY DEFAULT} AS IDENTITY [(START WITH n …)]."""
        always = self.accept("ALWAYS")
        if not always:
            self.expect("BY")
            self.expect("DEFAULT")
        self.expect("AS")
        if always and self.accept("("):
            text = self.expression(in_brackets=True)
            self.expect(")")
            return {special.GENERATED: text}
        self.expect("IDENTITY")
        numbers = {"START": 1, "INCREMENT": 1}
        if self.accept("("):
            while (word := self.word()) in numbers:
                self.at += 1
                self.accept("WITH" if word == "START" else "BY")
                numbers[word] = self.whole_number()
            self.expect(")")
        if numbers["INCREMENT"] == 0:
            self.fail("an identity column needs an increment other than 0")
        return {
            special.IDENTITY_START: numbers["START"],
            special.IDENTITY_STEP: numbers["INCREMENT"],
            special.IDENTITY_EXPLICIT: not always,
        }

    def whole_number(self) -> int:
        sign = -1 if self.accept("-") else 1
        if not self.peek().text.isdecimal():
            self.fail("a number is expected")
        self.at += 1
        return sign * int(self.tokens[self.at - 1].text)

    def string(self) -> str:
        parts = []
        while (token := self.peek()).kind in ("string", "raw"):
            parts.append(token.text[2:-1] if token.kind == "raw" else unquote(token.text))
            self.at += 1
        if not parts:
            self.fail("a string is expected")
        return "".join(parts)

    def data_type(self, at: str, collations: dict[str, str], depth: int = 0) -> DataType:
        if depth > 100:
            self.fail("types must not nest deeper than 100 levels")
        token = self.peek()
        name = self.word()
        if not name:
            self.fail("a type is expected")
        self.at += 1
        if name == "ARRAY":
            self.expect("<")
            element = self.data_type(f"{at}.element", collations, depth + 1)
            self.expect(">")
            return ArrayType(element)
        if name == "MAP":
            self.expect("<")
            key = self.data_type(f"{at}.key", collations, depth + 1)
            self.expect(",")
            value = self.data_type(f"{at}.value", collations, depth + 1)
            self.expect(">")
            return MapType(key, value)
        if name == "STRUCT":
            return self._struct(depth + 1)
        if name in ("DECIMAL", "DEC", "NUMERIC"):
            numbers = self._numbers()
            if len(numbers) > 2:
                self.fail("DECIMAL accepts a precision and a scale")
            return decimal(*(numbers + [10, 0][len(numbers) :]))
        if name == "STRING" or (self.sized and name in _LIMITED and self.peek().text == "("):
            found = Primitive("string") if name == "STRING" else self.limited(_LIMITED[name])
            self._collation(at, collations)
            return found
        if name == "TIMESTAMP" and self.word() in ("WITH", "WITHOUT"):
            return self._time_zone()
        if name not in _NAMES:
            self.at -= 1
            near = late.difflib.get_close_matches(name, [*_NAMES, "ARRAY", "MAP", "STRUCT", "DECIMAL"], 1)
            near = ["STRING"] if name in ("CHAR", "VARCHAR", "CHARACTER", "TEXT", "INTERVAL") else near
            hint = f"Is {near[0]} meant?" if near else None
            if at.upper() in ("CONSTRAINT", "PRIMARY", "FOREIGN"):
                hint = "Of constraints mica has CHECK: ALTER TABLE … ADD CONSTRAINT, or Table.add_constraint."
            raise _bad(self.source, token.at, f"{token.text!r} is not a type of a Delta table", hint)
        return Primitive(_NAMES[name])

    def _collation(self, at: str, collations: dict[str, str]) -> None:
        identifier = named(self) if self.accept("COLLATE") else self.collation
        if not is_binary(identifier):  # that is what a plain STRING is
            collations[at] = str(identifier)

    def _time_zone(self) -> Primitive:
        local = self.accept("WITH")
        for word in ("LOCAL", "TIME", "ZONE") if local else ("WITHOUT", "TIME", "ZONE"):
            self.expect(word)
        return Primitive("timestamp" if local else "timestamp_ntz")

    def _struct(self, depth: int) -> StructType:
        self.expect("<")
        fields: list[StructField] = []
        if not self.accept(">"):
            fields.append(self.field(depth=depth))
            while self.accept(","):
                fields.append(self.field(depth=depth))
            self.expect(">")
        refuse_twice((f.name for f in fields), exact=self.exact_names)
        return StructType(tuple(fields))

    def _numbers(self) -> list[int]:
        numbers: list[int] = []
        if self.accept("("):
            while not numbers or self.accept(","):
                numbers.append(self.whole_number())
            self.expect(")")
        return numbers


def _print_field(f: StructField, between: str) -> str:
    kept = f.metadata.get(COLLATIONS)
    collations = kept if isinstance(kept, Mapping) else None
    # A struct's own fields carry their own collations, so places count from the nearest field.
    text = f"{as_spark([f.name])}{between}{type_to_ddl(f.type, collations, f.name)}"
    if not f.nullable:
        text += " NOT NULL"
    if between == " " and isinstance(default := f.metadata.get(special.DEFAULT), str):  # a field of a struct has none
        text += f" DEFAULT {default}"
    comment = f.metadata.get("comment")
    if isinstance(comment, str):
        escaped = comment.replace("\\", "\\\\").replace("'", "\\'")
        text += f" COMMENT '{escaped}'"
    return text


def _bad(text: str, at: int, why: str, hint: str | None = None) -> UserError:
    return UserError("INVALID_DDL", f"the schema {text!r} cannot be read at offset {at}: {why}", hint=hint, offset=at)
