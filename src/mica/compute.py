"""Functions of `pyarrow.compute`, each made when it is first asked for.

The import of `pyarrow.compute` makes a documented wrapper of every function of Arrow, 40 ms; the first row of a table
needs a dozen. Methods of arrays and tables that compute (`filter`, `take`, `cast`, `is_valid`) import it too. Functions
and options are those of Arrow's registry, called as there. What pyarrow spells out in Python and is not here, such as
`random`, is taken from `pyarrow.compute`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import _compute

from mica.arrays import from_numpy, scalar

_NAMES = {"and_": "and", "or_": "or"}
_SPELLED_OUT = frozenset({"random"})
#: The values of Python that pyarrow takes. It imports pandas to do so.
_PLAIN = frozenset({bool, int, float, str})


def cast(values: Any, target: pa.DataType, safe: bool = True) -> Any:
    """Values of another type."""
    options = (_compute.CastOptions.safe if safe else _compute.CastOptions.unsafe)(target)
    return _compute.call_function("cast", [values], options)


def as_type(values: Any, wanted: pa.DataType) -> Any:
    """The values in a type: themselves if they have it."""
    return values if values.type == wanted else cast(values, wanted)


def cast_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with columns of these types; `schema` has the same names."""
    assert rows.column_names == schema.names
    return pa.Table.from_arrays([cast(rows.column(at), one.type) for at, one in enumerate(schema)], schema=schema)


def take(values: Any, indices: Any) -> Any:
    """The values, or rows, at these places."""
    return _compute.call_function("take", [values, indices], _compute.TakeOptions())


def copied(values: Any) -> Any:
    """The same values in memory of their own, without what slices leave out and null rows hide."""
    return take(values, from_numpy(np.arange(len(values))))


def fill_null(values: Any, value: Any) -> Any:
    """The values, with one value or those of another array in place of nulls."""
    if not isinstance(value, (pa.Array, pa.ChunkedArray)):
        value = _of_type(value, values.type)
    return _compute.call_function("coalesce", [values, value])


def index(values: Any, value: Any) -> Any:
    """The first place of a value; -1 if there is none."""
    return _compute.call_function("index", [values], _compute.IndexOptions(_of_type(value, values.type)))


def _of_type(value: Any, kind: pa.DataType) -> pa.Scalar:
    """One value, of Python or Arrow, as a scalar of a type."""
    if not isinstance(value, pa.Scalar):
        return scalar(value, kind)
    return value if value.type == kind else scalar(value.as_py(), kind)


def min_element_wise(one: Any, other: Any, *, skip_nulls: bool = True) -> Any:
    """The lesser of two values each."""
    return _outer("min_element_wise", one, other, skip_nulls)


def max_element_wise(one: Any, other: Any, *, skip_nulls: bool = True) -> Any:
    """The greater of two values each."""
    return _outer("max_element_wise", one, other, skip_nulls)


def _outer(name: str, one: Any, other: Any, skip_nulls: bool) -> Any:
    """Arrow has no kernel for times with a zone, but orders them as those without."""
    kind, options = one.type, _compute.ElementWiseAggregateOptions(skip_nulls=skip_nulls)
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return _compute.call_function(name, [one, other], options)
    bare = pa.timestamp(kind.unit)
    return cast(_compute.call_function(name, [cast(one, bare), cast(other, bare)], options), kind)


def grouped(rows: Any, keys: Sequence[str], sums: Sequence[Sequence[Any]] = (), *, use_threads: bool = True) -> Any:
    """What `rows.group_by(keys).aggregate(sums)` returns; that imports `pyarrow.dataset`, and with it pandas."""
    from pyarrow import _acero

    of_groups = "hash_" if keys else ""
    wanted = [
        ([name] if name else [], of_groups + function, *(more or [None]), f"{name}_{function}")
        for name, function, *more in sums
    ]
    source = _acero.Declaration("table_source", _acero.TableSourceNodeOptions(rows))
    found = _acero.Declaration("aggregate", _acero.AggregateNodeOptions(wanted, keys=list(keys)))
    return _acero.Declaration.from_sequence([source, found]).to_table(use_threads=use_threads)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        made = getattr(_compute, name) if name[0].isupper() else _function(name)
    except (KeyError, AttributeError):  # none of the registry
        made = getattr(import_module("pyarrow.compute"), name)
    globals()[name] = made
    return made


def _function(name: str) -> Callable[..., Any]:
    if name in _SPELLED_OUT:
        raise KeyError(name)
    function = _compute.get_function(_NAMES.get(name, name))
    call, arity, options = function.call, function.arity, function._doc.options_class  # noqa: SLF001 - as pyarrow does
    if not options:
        return lambda *values: call([_datum(value) for value in values])
    options_of = getattr(_compute, options)

    def with_options(*given: Any, **named: Any) -> Any:
        values, more = (given, ()) if arity is Ellipsis else (given[:arity], given[arity:])
        return call([_datum(value) for value in values], options_of(*more, **named) if more or named else None)

    return with_options


def _datum(value: Any) -> Any:
    return scalar(value) if type(value) in _PLAIN else value
