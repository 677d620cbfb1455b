"""`dataclass` as in the standard library, as far as mica uses it, at a tenth of the time that a class takes to make.

The standard one compiles up to six methods a class (before Python 3.13 one by one, 0.6 ms in all), and a new process
makes dozens of classes before its first row, most of which have one instance then. Here only `__init__` is compiled,
once a class has some instances; the others are functions that all classes share. `fields`, `replace`, `asdict` and
`is_dataclass` of the standard library work, and `inspect.signature` and `help`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

_FIELD = getattr(dataclasses, "_FIELD")  # noqa: B009 - what marks a field for `dataclasses.fields`; no stub has it
_NOT_GIVEN = getattr(dataclasses, "_HAS_DEFAULT_FACTORY")  # noqa: B009 - shown as `<factory>`; no stub has it
#: Instances of a class for which compiling takes longer than reading its fields.
_FEW = 3


def _dataclass(made: Any = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
    if made is None:
        return lambda given: _dataclass(given, frozen=frozen, eq=eq)
    fields = _fields(made)
    given: dict[str, Any] = {
        "__dataclass_fields__": fields,
        "__dataclass_params__": SimpleNamespace(frozen=frozen, eq=eq),
        "__match_args__": tuple(field.name for field in fields.values() if field.init and not field.kw_only),
        "__init__": _init_when_called(made),
        "__signature__": _Signature(),
        "__replace__": dataclasses.replace,
    }
    if "__repr__" not in vars(made):
        given["__repr__"] = _repr
    if frozen:
        given |= {"__setattr__": _no_assignment, "__delattr__": _no_deletion}
    if eq and "__eq__" not in vars(made):
        given["_compared"] = _values(field.name for field in fields.values() if field.compare)
        given["_hashed"] = _values(f.name for f in fields.values() if (f.compare if f.hash is None else f.hash))
        given |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    for name, value in given.items():
        setattr(made, name, value)
    return made


def _fields(cls: Any) -> dict[str, Field[Any]]:
    """By name, the inherited ones first. The class keeps defaults as attributes, as dataclasses do."""
    fields: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        fields.update(vars(base).get("__dataclass_fields__", {}))
    for name, kind in cls.__annotations__.items():
        if str(kind).removeprefix("typing.").startswith("ClassVar"):
            continue
        default = vars(cls).get(name, MISSING)
        field: Any = default if isinstance(default, Field) else dataclasses.field(default=default)
        field.name, field.type, field.kw_only, field._field_type = name, kind, field.kw_only is True, _FIELD  # noqa: SLF001
        if field is default and field.default is MISSING:
            delattr(cls, name)
        elif field is default:
            setattr(cls, name, field.default)
        fields[name] = field
    return fields


def _init_when_called(cls: Any) -> Callable[..., None]:
    left = _FEW

    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
        nonlocal left
        left -= 1
        if left >= 0 and (values := _values_of(cls, args, given)) is not None:
            for name, value in values.items():
                (object.__setattr__ if cls.__dataclass_params__.frozen else setattr)(self, name, value)
            if hasattr(cls, "__post_init__"):
                self.__post_init__()
            return
        cls.__init__ = _init(cls)
        cls.__init__(self, *args, **given)

    return __init__


def _values_of(cls: Any, args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any] | None:
    """The values of the fields; None for a wrong call, which the compiled `__init__` refuses as Python does."""
    values, positional, by_name = {}, list(reversed(args)), dict(given)
    for name, field in cls.__dataclass_fields__.items():
        if field.init and positional and not field.kw_only:
            values[name] = positional.pop()
        elif field.init and name in by_name:
            values[name] = by_name.pop(name)
        elif field.default_factory is not MISSING:
            values[name] = field.default_factory()
        elif field.init and field.default is not MISSING:
            values[name] = field.default
        elif field.init:
            return None
    return None if positional or by_name else values


def _init(cls: Any) -> Any:
    """`__init__` of the class, compiled: as fast to call as the standard one."""
    names: dict[str, Any] = {"not_given_": _NOT_GIVEN, "set_": object.__setattr__}
    parameters, by_name, lines = ["self"], ["*"], []
    for name, field in cls.__dataclass_fields__.items():
        default, value, parameter = f"default_{name}_", name, name
        if field.default_factory is not MISSING:
            names[default], parameter = field.default_factory, f"{name}=not_given_"
            value = f"{default}() if {name} is not_given_ else {name}" if field.init else f"{default}()"
        elif field.default is not MISSING:
            names[default], parameter = field.default, f"{name}={default}"
        if field.init:
            (by_name if field.kw_only else parameters).append(parameter)
        elif field.default_factory is MISSING:
            continue
        lines.append(f"set_(self, {name!r}, {value})" if cls.__dataclass_params__.frozen else f"self.{name} = {value}")
    lines.append("self.__post_init__()" if hasattr(cls, "__post_init__") else "pass")
    head = ", ".join(parameters + by_name if len(by_name) > 1 else parameters)
    exec(f"def __init__({head}):\n " + "\n ".join(lines), names)  # noqa: S102 - names of attributes, no text of others
    made = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    given = {name: field.type for name, field in cls.__dataclass_fields__.items() if field.init}
    made.__annotations__ = given | {"return": None}
    return made


class _Signature:
    """What `inspect.signature` and `help` show of a class: that of its `__init__`, which is compiled for it."""

    def __get__(self, record: object, cls: Any) -> Any:
        if record is not None:
            raise AttributeError("__signature__")
        owner = next(one for one in cls.__mro__ if "__init__" in vars(one))
        if "__dataclass_fields__" not in vars(owner):
            return None  # a subclass with an `__init__` of its own
        import inspect

        owner.__init__ = _init(owner)
        found = inspect.signature(owner.__init__)
        return found.replace(parameters=list(found.parameters.values())[1:])


def _values(names: Iterable[str]) -> Any:
    """What gives the values of these attributes as a tuple."""
    match tuple(names):
        case ():
            return staticmethod(lambda _: ())
        case (name,):
            return staticmethod(lambda record: (getattr(record, name),))
        case several:
            return attrgetter(*several)


def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name, field in self.__dataclass_fields__.items() if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:
    return self._compared(self) == self._compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._hashed(self))


def _no_assignment(_: object, name: str, __: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(_: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


if TYPE_CHECKING:  # what a type checker knows of dataclasses holds here
    from dataclasses import dataclass
else:
    dataclass = _dataclass
