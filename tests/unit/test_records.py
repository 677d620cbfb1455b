"""Every dataclass of mica is what the standard library would make of it."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import pkgutil
from dataclasses import FrozenInstanceError, field
from importlib import import_module
from types import new_class
from typing import Any

import pytest

import mica
from mica import records
from mica.records import dataclass


@dataclass(frozen=True)
class _Base:
    a: int
    b: str = "x"
    at: int = field(default=0, compare=False, kw_only=True)


@dataclass(frozen=True)
class _More(_Base):
    c: list[int] = field(default_factory=list, hash=False)
    d: object = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("less than nothing")


@dataclass
class _Mutable:
    a: int
    seen: list[int] = field(default_factory=list, init=False)


@dataclass(eq=False)
class _Same:
    a: int


@dataclass(frozen=True)
class _Empty:
    pass


def test_its_classes_behave_as_the_standard_ones() -> None:
    one = _More(1, c=[2], at=5)
    assert repr(one) == "_More(a=1, b='x', at=5, c=[2])"
    assert one == _More(1, "x", [2], at=6)
    assert hash(one) == hash(_More(1, c=[3]))
    assert one != _More(1)
    assert _Base(1) != one
    assert _More(1).c is not _More(1).c
    assert _Empty() == _Empty()
    assert {_Base(1): 1}[_Base(1, at=9)] == 1
    assert dataclasses.replace(one, a=2) == _More(2, c=[2])
    assert dataclasses.asdict(one) == {"a": 1, "b": "x", "at": 5, "c": [2], "d": None}
    for twin in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert (twin, twin.at) == (one, 5)
    match one:
        case _More(a, b, c):
            assert (a, b, c) == (1, "x", [2])
    with pytest.raises(FrozenInstanceError, match="'a'"):
        one.a = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="'a'"):
        del one.a
    with pytest.raises(ValueError, match="less"):
        _More(-1)
    with pytest.raises(TypeError, match=r"_More\.__init__\(\) missing 1 required positional argument: 'a'"):
        _More()  # type: ignore[call-arg]
    changed = _Mutable(1)
    changed.a = 2
    assert changed.seen == []
    assert changed == _Mutable(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(changed)
    assert _Same(1) != _Same(1)
    assert len({_Same(1), _Same(1)}) == 2


def test_every_class_is_what_the_standard_library_makes_of_it() -> None:
    """What only the standard one knows (options, ClassVar, …) and what it would refuse is found here."""
    names = [module.name for module in pkgutil.walk_packages(mica.__path__, "mica.") if "__main__" not in module.name]
    found = [(name, one) for name in names for one in vars(import_module(name)).values() if inspect.isclass(one)]
    made: list[Any] = [one for name, one in found if one.__module__ == name and "__dataclass_fields__" in vars(one)]
    assert len(made) > 200
    for own in made:
        twin = _twin(own)
        assert _told(own, records._init(own)) == _told(twin, twin.__init__), own
        assert str(inspect.signature(own)) == str(inspect.signature(twin)), own


def _twin(own: Any) -> Any:
    body = {
        name: vars(own)[name]
        for name in ("__annotations__", "__module__", "__qualname__", "__post_init__")
        if name in vars(own)
    }
    for f in dataclasses.fields(own):
        if f.name in own.__annotations__:
            asked: Any = {name: getattr(f, name) for name in ("default", "default_factory", *_ASKED)}
            body[f.name] = field(**asked)
    params = own.__dataclass_params__
    bases = vars(own).get("__orig_bases__", own.__bases__)
    plain = new_class(own.__name__, bases, exec_body=lambda space: space.update({"__doc__": "", **body}))
    return dataclasses.dataclass(frozen=params.frozen, eq=params.eq)(plain)


_ASKED = ("repr", "hash", "compare", "kw_only", "init")


def _told(cls: Any, init: Any) -> Any:
    parameters = [(one.name, one.kind, one.default is one.empty) for one in inspect.signature(init).parameters.values()]
    fields = [(f.name, f.type, f.default, *(getattr(f, name) for name in _ASKED)) for f in dataclasses.fields(cls)]
    methods = [cls.__hash__ is None, cls.__eq__ is object.__eq__, cls.__setattr__ is object.__setattr__]
    return parameters, fields, methods, cls.__match_args__, init.__qualname__


_CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}), ((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((1, 2, 3, 4), {}), ((1, 2, 3, 4, 5), {}), ((), {"a": 1}),
    ((1,), {"a": 1}), ((1,), {"at": 5}), ((), {"at": 5}), ((1,), {"x": 1}), ((1,), {"c": [1], "d": 2}),
    ((1,), {"seen": [1]}), ((), {"a": 1, "b": 2, "c": 3, "d": 4, "at": 5}), ((-1,), {}),
]  # fmt: skip


@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize("kind", [_More, _Mutable, _Empty])
def test_the_first_instances_are_those_of_the_compiled_init(kind: Any, call: tuple[tuple[Any, ...], Any]) -> None:
    def answer() -> Any:
        try:
            return vars(kind(*call[0], **call[1]))
        except (TypeError, ValueError) as e:
            return type(e), str(e)

    kind.__init__ = records._init_when_called(kind)
    read = answer()
    kind.__init__ = records._init(kind)
    assert read == answer()


def test_a_class_of_some_instances_is_compiled() -> None:
    _Same.__init__ = records._init_when_called(_Same)  # type: ignore[method-assign]
    found = [_Same(n) for n in range(records._FEW)]
    assert _Same.__init__.__code__.co_varnames[:2] == ("self", "args")
    found.append(_Same(records._FEW))
    assert [one.a for one in found] == list(range(records._FEW + 1))
    assert _Same.__init__.__code__.co_varnames[:2] == ("self", "a")
