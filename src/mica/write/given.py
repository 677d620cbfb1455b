"""Converts the data of a call to Arrow: tables, streams, data frames, lists and generators of dicts.

The rule: Arrow data stays Arrow, and streams are never held as a whole. Only Python objects are converted one by one:
lists of dicts, and object columns of pandas and polars if the table has Variants. `schema.evolution` then decides on
types, in the same way for all of them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arguments import is_whole
from mica.arrays import arrow_array
from mica.errors import UserError
from mica.errors.installed import extra
from mica.schema.arrow import MARKED_VARIANT, to_arrow, to_arrow_type
from mica.schema.types import DOUBLE, FLOAT, VARIANT, ArrayType, DataType, MapType, Primitive, StructType, contains
from mica.variant.encode import from_python, is_null
from mica.variant.plain import MAX_SIZE
from mica.variant.values import from_json
from mica.write.rules import is_identity

EXPECTED = (
    "a Spark, pandas or polars DataFrame, a list of dicts, a Scan or Table, Arrow data (a table, batches, a Dataset, "
    "anything with __arrow_c_stream__), or an iterator of dicts or of any of these"
)

#: Number of dicts of an iterator that become one batch.
ROWS = 8_192


def arrow(data: Any, schema: StructType) -> pa.Table | pa.RecordBatchReader:
    """Converts `data` to Arrow; `schema` has the known columns of the target.

    A stream stays a stream: a Scan, a polars LazyFrame, a Dataset, a reader, an iterator, anything with `to_reader` or
    `__arrow_c_stream__`. The schema of an iterator is that of its first batch (`ROWS` dicts); later batches may differ,
    and the writer casts them. A key that a dict lacks is null. For a VARIANT column a str is parsed as JSON, every
    other Python value becomes the Variant of that value. Errors: INVALID_ARGUMENT for other types of data,
    INVALID_VALUE for Python objects that no column can hold.
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, list | tuple):
        if not _differ(data):
            return _listed(data, schema)
        data = iter(data)
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "columns"):
        return _of_pandas(data, schema)
    if library == "polars" and hasattr(data, "collect_batches"):
        return _of_lazy(data, schema)
    if library == "polars" and hasattr(data, "get_columns"):
        return _of_polars(data, schema)
    if library == "pyarrow" and hasattr(data, "scanner"):
        return data.scanner().to_reader()
    if hasattr(data, "to_reader"):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(data)
        except pa.ArrowInvalid:  # a stream of one column's values
            raise UserError.bad_value("the data", type(data).__name__, EXPECTED) from None
    if isinstance(data, Iterator):
        return _joined(_tables(data, schema)) or pa.RecordBatchReader.from_batches(to_arrow(_given(schema)), [])
    raise UserError.bad_value("the data", type(data).__name__, EXPECTED)


def _tables(items: Iterator[Any], schema: StructType) -> Iterator[pa.Table]:
    """The items of an iterator as tables, as they arrive; dicts are grouped."""
    dicts: list[Any] = []
    for item in items:
        if isinstance(item, Mapping):
            dicts.append(item)
        if dicts and (len(dicts) == ROWS or not isinstance(item, Mapping)):
            yield _listed(dicts, schema)
            dicts = []
        if not isinstance(item, Mapping):
            found = arrow(item, schema)
            yield from [found] if isinstance(found, pa.Table) else (pa.Table.from_batches([b]) for b in found)
    if dicts:
        yield _listed(dicts, schema)


def _joined(tables: Iterator[pa.Table]) -> pa.RecordBatchReader | None:
    """The tables as one stream; None if there are none. A column of nulls only has the type that it had before, so that
    writers need not begin anew for it."""
    first = next(tables, None)
    if first is None:
        return None
    types = {f.name: f.type for f in first.schema}

    def typed(table: pa.Table) -> pa.Table:
        for i, f in enumerate(table.schema):
            if not pa.types.is_null(f.type):
                types[f.name] = f.type
            elif not pa.types.is_null(known := types.get(f.name, f.type)):
                table = table.set_column(i, f.name, pa.nulls(table.num_rows, known))
        return table

    whole = itertools.chain([first], map(typed, tables))
    return pa.RecordBatchReader.from_batches(first.schema, (b for table in whole for b in table.to_batches()))


def _differ(data: list[Any] | tuple[Any, ...]) -> bool:
    """Whether these are batches, which have not all the same columns."""
    return all(isinstance(b, pa.RecordBatch) for b in data) and any(b.schema != data[0].schema for b in data)


def _listed(data: list[Any] | tuple[Any, ...], schema: StructType) -> pa.Table:
    if data and all(isinstance(b, pa.RecordBatch) for b in data):
        return pa.Table.from_batches(data)
    for row in data:
        if not isinstance(row, Mapping):
            raise UserError.bad_value("the data", f"a list with a {type(row).__name__}", EXPECTED)
    names = list(dict.fromkeys(key for row in data for key in row))
    if not names:
        return pa.Table.from_batches([], to_arrow(_given(schema))) if not data else without_columns(len(data))
    for name in names:
        if not isinstance(name, str):
            raise UserError.bad_value("the data", f"dicts with the key {name!r}", "dicts with column names as keys")
    return _table({name: _column([row.get(name) for row in data], _type(schema, name), name) for name in names})


def without_columns(count: int) -> pa.Table:
    """So many rows that have no column."""
    return pa.table({"": pa.nulls(count)}).select([])


def _given(schema: StructType) -> StructType:
    """The columns of rows that name none: all but identity columns, whose values the table makes."""
    return StructType(tuple(f for f in schema.fields if not is_identity(f)))


def _table(columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def _wider(table: pa.Table, more: list[tuple[str, pa.Array]]) -> pa.Table:
    """A table with more columns, which alone say how many rows there are if it has none of its own."""
    schema = pa.schema([*table.schema, *(pa.field(name, made.type) for name, made in more)])
    return pa.Table.from_arrays([*table.columns, *(made for _, made in more)], schema=schema)


def _type(schema: StructType, name: str) -> DataType | None:
    f = schema.find(name)
    return None if f is None else f.type


def _objects(schema: StructType, name: str) -> bool:
    """Whether Python objects in this column become Variants, or values that contain Variants."""
    type_ = _type(schema, name)
    return type_ is not None and contains(type_, VARIANT)


def _of_pandas(frame: Any, schema: StructType) -> pa.Table:
    """A pandas DataFrame without its index."""
    if not frame.shape[1] and len(frame):
        return without_columns(len(frame))
    odd = [i for i, name in enumerate(frame.columns) if _objects(schema, str(name)) and _is_python(frame.iloc[:, i])]
    rest = frame.iloc[:, [i for i in range(frame.shape[1]) if i not in odd]]
    try:
        table = pa.Table.from_pandas(rest, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, ValueError, TypeError) as e:
        raise UserError("INVALID_VALUE", f"Arrow cannot read the pandas DataFrame: {e}") from None
    more = []
    for i in odd:
        name = str(frame.columns[i])
        # In object columns pandas stores NaN for missing values.
        values = [None if isinstance(v, float) and v != v else v for v in frame.iloc[:, i].tolist()]  # noqa: PLR0124
        more.append((name, _column(values, _type(schema, name), name)))
    return _wider(table, more)


def _is_python(column: Any) -> bool:
    """Whether a pandas column holds Python objects that need conversion; Arrow converts columns of str itself."""
    kind = extra("pandas", "a DataFrame").api.types.infer_dtype(column, skipna=True)
    return bool(
        column.dtype.kind == "O" and not hasattr(column.dtype, "pyarrow_dtype") and kind not in ("string", "empty")
    )


def _of_polars(frame: Any, schema: StructType) -> pa.Table:
    """A polars DataFrame; columns of type Object hold Python values, as `Scan.to_polars` makes them."""
    odd = [name for name, kind in frame.schema.items() if str(kind) == "Object" and _objects(schema, name)]
    try:
        table = pa.table(frame.drop(odd))
    except pa.ArrowException as e:
        raise UserError("INVALID_VALUE", f"Arrow cannot read the polars DataFrame: {e}") from None
    return _wider(table, [(name, _column(frame[name].to_list(), _type(schema, name), name)) for name in odd])


def _of_lazy(frame: Any, schema: StructType) -> pa.RecordBatchReader:
    """A polars LazyFrame, run batch by batch."""
    found = _joined(_of_polars(batch, schema) for batch in frame.collect_batches())
    return found or _of_polars(frame.head(0).collect(), schema).to_reader()


# --- Python objects --------------------------------------------------------------------------------------------------


def _column(values: list[Any], type_: DataType | None, at: str) -> pa.Array:
    """Python values as an array for a column of `type_` (None: unknown, Arrow infers it)."""
    match type_:
        case Primitive("variant"):
            return _variants(values, at)
        case StructType() if any(isinstance(v, Mapping) for v in values):
            return _structs(values, type_, at)
        case ArrayType(element) if any(isinstance(v, list | tuple) for v in values):
            return _lists(values, element, at)
        case MapType(key, item) if any(isinstance(v, Mapping | list | tuple) for v in values):
            pairs = [list(v.items()) if isinstance(v, Mapping) else v for v in values]
            return _maps(pairs, key, item, at)
    wanted = None
    if isinstance(type_, Primitive) and type_.decimal is not None:
        # Arrow would infer the scale from the first value; with a given type it refuses values that it would round.
        wanted = to_arrow_type(type_) if all(isinstance(v, int | Decimal) or is_null(v) for v in values) else None
    elif type_ in (DOUBLE, FLOAT) and all(v is None or is_whole(v) for v in values):
        wanted, values = pa.float64(), [None if v is None else _exactly(v, at) for v in values]
    try:
        made = arrow_array(values, wanted)
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as e:
        raise UserError("INVALID_VALUE", f"the values of the column {at!r} have no common type: {e}") from None
    if isinstance(made, pa.ChunkedArray):
        made = made.combine_chunks()
    if type_ != FLOAT or not pa.types.is_float64(made.type):
        return made
    return _narrow(made, at, exactly=wanted is not None)


def _exactly(integer: Any, at: str) -> float:
    """An integer of Python or numpy as a double, which Arrow gives of some only that are exact."""
    with contextlib.suppress(OverflowError):
        if (double := float(integer)) == int(integer):
            return double
    raise UserError("INVALID_VALUE", f"an integer of the column {at!r} is not exact as a DOUBLE: {integer}", column=at)


def _narrow(doubles: pa.Array, at: str, *, exactly: bool) -> pa.Array:
    """Python's numbers as the nearest 32-bit floats, which it lacks: 0.1 is written as PySpark writes it. If `exactly`,
    they are integers, of which none may become another: the doubles stay, for an error, where one would."""
    narrow = doubles.cast(pa.float32())
    if exactly and pc.all(pc.equal(narrow.cast(pa.float64()), doubles)).as_py() is False:
        return doubles
    beyond = doubles.filter(pc.and_(pc.is_inf(narrow), pc.is_finite(doubles)))
    if len(beyond):
        raise UserError("INVALID_VALUE", f"a value of the column {at!r} is beyond FLOAT: {beyond[0]}", column=at)
    return narrow


def _variants(values: list[Any], at: str) -> pa.Array:
    """Each value by its own form, whatever the others are: two binary parts, a JSON text, or another of Python's."""
    forms = [_form(value) for value in values]
    present = list(dict.fromkeys(form for form in forms if form is not None)) or [_of_python]
    try:
        made = [form([v if f is form else None for v, f in zip(values, forms, strict=True)]) for form in present]
    except UserError as e:
        raise UserError(e.code, f"in the column {at!r}, {e.message}", column=at, **e.context) from None
    if len(made) == 1:
        return made[0]
    places = [0 if form is None else len(values) * present.index(form) for form in forms]
    return pa.concat_arrays(made).take(arrow_array([place + i for i, place in enumerate(places)]))


def _form(value: Any) -> Callable[[list[Any]], pa.Array] | None:
    """What makes Variants of values like this one; None for a null, of which any does."""
    if is_null(value):
        return None
    return _of_parts if _is_bytes(value) else _of_texts if isinstance(value, str) else _of_python


def _is_bytes(value: Any) -> bool:
    """Whether it is a Variant as a Python dict of its two binary parts."""
    return isinstance(value, dict) and value.keys() == _PARTS and all(isinstance(v, bytes) for v in value.values())


_PARTS = {"metadata", "value"}


def _of_parts(values: list[Any]) -> pa.Array:
    return arrow_array(values, MARKED_VARIANT)


def _of_texts(values: list[Any]) -> pa.Array:
    return from_json(values, max_size=MAX_SIZE)


def _of_python(values: list[Any]) -> pa.Array:
    return from_python(values, max_size=MAX_SIZE)


def _mask(values: list[Any]) -> pa.Array:
    return arrow_array([is_null(value) for value in values], pa.bool_())


def _structs(values: list[Any], type_: StructType, at: str) -> pa.Array:
    rows: list[Mapping[str, Any]] = [{} if is_null(value) else value for value in values]
    _refuse_others(rows, Mapping, "a dict", at)
    names = dict.fromkeys(key for row in rows for key in row)
    _refuse_others(names, str, "dicts with names of fields as keys", at)
    children = [_column([row.get(name) for row in rows], _type(type_, name), f"{at}.{name}") for name in names]
    fields = [_field(name, child) for name, child in zip(names, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(values))


def _lists(values: list[Any], element: DataType, at: str) -> pa.Array:
    rows: list[list[Any]] = [[] if is_null(value) else value for value in values]
    _refuse_others(rows, list | tuple, "a list", at)
    inner = _column([item for row in rows for item in row], element, f"{at}.element")
    return pa.ListArray.from_arrays(_offsets(rows), inner, type=pa.list_(_field("element", inner)), mask=_mask(values))


def _maps(values: list[Any], key: DataType, item: DataType, at: str) -> pa.Array:
    rows: list[list[Any]] = [[] if is_null(value) else value for value in values]
    _refuse_others(rows, list | tuple, "a dict or a list of pairs", at)
    pairs = [pair for row in rows for pair in row]
    _refuse_others(pairs, list | tuple, "a pair", at)
    for pair in pairs:
        if len(pair) != 2 or is_null(pair[0]):
            told = f"the column {at!r} needs pairs of a key that is not null and a value, got {pair!r}"
            raise UserError("INVALID_VALUE", told, column=at)
    # Of no pairs Python's values do not tell a type, and a map has no keys without one.
    keys = _column([pair[0] for pair in pairs], key, f"{at}.key") if pairs else pa.nulls(0, to_arrow_type(key))
    items = _column([pair[1] for pair in pairs], item, f"{at}.value")
    wanted = pa.map_(_field("key", keys).with_nullable(False), _field("value", items))
    return pa.MapArray.from_arrays(_offsets(rows), keys, items, type=wanted, mask=_mask(values))


def _field(name: str, array: pa.Array) -> pa.Field:
    return pa.field(name, MARKED_VARIANT if array.type == MARKED_VARIANT else array.type)


def _offsets(rows: Iterable[list[Any]]) -> pa.Array:
    return arrow_array([0, *itertools.accumulate(len(row) for row in rows)], pa.int32())


def _refuse_others(rows: Iterable[Any], kind: Any, expected: str, at: str) -> None:
    for row in rows:
        if not isinstance(row, kind):
            raise UserError("INVALID_VALUE", f"the column {at!r} needs {expected}, got {row!r}", column=at)
