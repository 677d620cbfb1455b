"""The kernel's door: stubs say what is registered, requests are typed, errors come out as ours."""

from __future__ import annotations

import ast
import inspect
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica import _native
from mica.errors import MicaError, StorageError, UserError
from mica.errors.codes import CODES
from mica.variant import from_json, kernel
from mica.variant.kernel import door
from mica.variant.kernel.request import Request
from mica.variant.shredding import Limits
from tests.support import ROOT

STUBS = ast.parse((ROOT / "src" / "mica" / "_native.pyi").read_text(encoding="utf-8"))
PACKAGE = ROOT / "src" / "mica" / "variant" / "kernel"
ROWS = pa.record_batch([from_json(['{"a": 1}', '{"a": "x"}', "null"])], names=["v"])


def parameters(stub: ast.FunctionDef) -> list[tuple[str, bool]]:
    """Names, and whether they are keywords alone."""
    return [(a.arg, False) for a in stub.args.args if a.arg != "self"] + [(a.arg, True) for a in stub.args.kwonlyargs]


def stubs() -> list[tuple[str, Any, ast.FunctionDef]]:
    """Each function and method of the stubs with what is registered."""
    found = []
    for node in STUBS.body:
        if isinstance(node, ast.FunctionDef):
            found.append((node.name, getattr(_native, node.name), node))
        elif isinstance(node, ast.ClassDef) and node.name != "KernelError":
            kind = getattr(_native, node.name)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    real = kind if inner.name == "__init__" else getattr(kind, inner.name)
                    found.append((f"{node.name}.{inner.name}", real, inner))
                elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    assert hasattr(kind, inner.target.id), (node.name, inner.target.id)
    return found


@pytest.mark.parametrize(("name", "real", "stub"), [pytest.param(*one, id=one[0]) for one in stubs()])
def test_a_stub_has_the_parameters_that_are_registered(name: str, real: Any, stub: ast.FunctionDef) -> None:
    if name.endswith(("__iter__", "__next__")):
        return
    registered = [
        (p.name, p.kind is p.KEYWORD_ONLY) for p in inspect.signature(real).parameters.values() if p.name != "self"
    ]
    assert parameters(stub) == registered


def test_all_that_is_registered_has_a_stub() -> None:
    named = {node.name for node in STUBS.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    named |= {node.target.id for node in STUBS.body if isinstance(node, ast.AnnAssign) and hasattr(node.target, "id")}
    registered = {name for name in vars(_native) if not name.startswith("__")} | {"__version__"}
    assert registered - {"_native"} <= named


def test_no_module_of_the_door_hides_types() -> None:
    """No `Any` stands for what crosses, and no call goes through `__getattr__`."""
    for path in sorted(PACKAGE.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        words = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
        assert "Any" not in words, path.name
        assert not [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "__getattr__"]


def test_a_request_is_a_value() -> None:
    asked = Request(("v",), ("a", 0), pa.int32(), "x", untyped_in=(1, 2))
    assert pickle.loads(pickle.dumps(asked)) == asked
    assert asked != Request(("v",), ("a", 0), pa.int64(), "x", untyped_in=(1, 2))


def test_each_part_of_a_request_is_read() -> None:
    found = kernel.extract(
        ROWS, [Request(("v",)), Request(("v",), ("a",)), Request(("v",), ("a",), pa.int32()), Request(("v",), name="w")]
    )
    assert found.schema.names == ["0", "1", "1!", "2", "2!", "w"]
    assert found.column("2").to_pylist() == [1, None, None]
    assert found.column("2!").to_pylist() == [False, True, False]
    assert found.column("w").equals(found.column("0"))


@pytest.mark.parametrize(
    "asked", [{"column": ["v"]}, Request("v"), Request(("v",), ("a", -1)), Request(("v",), (1.5,)), Request((1,))]
)
def test_what_is_no_request_is_refused(asked: Any) -> None:
    with pytest.raises((TypeError, AttributeError, MicaError)):
        kernel.extract(ROWS, [asked])


def test_an_unknown_layout_and_limits_beyond_reason_are_refused() -> None:
    with pytest.raises(UserError) as caught:
        kernel.extract(ROWS, [Request(("v",), layout="other")])  # type: ignore[arg-type]
    assert caught.value.code == "INVALID_ARGUMENT"
    limits = Limits()
    object.__setattr__(limits, "max_depth", 10_000)
    with pytest.raises(UserError) as caught:
        kernel.infer(ROWS, ["v"], limits)
    assert caught.value.code == "INVALID_ARGUMENT"


def kernel_error(code: str, message: str) -> Any:
    error = _native.KernelError(message)
    parts = {"code": code, "message": message, "rule": None, "path": "$.a", "row": 3, "offset": None}
    for name, value in parts.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize("code", ["INVALID_JSON", "INVALID_CAST", "CORRUPT_FILE", "INTERNAL", "IO"])
def test_an_error_of_the_kernel_is_one_of_the_table(code: str) -> None:
    error = door.to_error(kernel_error(code, "what was found"))
    assert type(error) is CODES[code].kinds[0]
    assert (error.code, error.hint) == (code, CODES[code].way_out)
    assert dict(error.context) == {"path": "$.a", "row": 3}


def test_what_the_disk_refuses_has_the_disks_code() -> None:
    error = door.to_error(kernel_error("IO", "No space left on device (os error 28)"))
    assert (type(error), error.code) == (StorageError, "DISK_FULL")


def test_what_fetch_raises_comes_out_as_it_was(tmp_path: Path) -> None:
    def fetch(_: Any) -> Any:
        raise StorageError("PERMISSION_DENIED", "not yours", path="s3://b/x")

    with pytest.raises(StorageError) as caught:
        kernel.FileReader(name="s3://b/x", size=100, fetch=fetch)
    assert (caught.value.code, caught.value.message) == ("PERMISSION_DENIED", "not yours")
    with pytest.raises(StorageError) as caught:
        kernel.FileReader(name="x", path=str(tmp_path / "x"))
    assert caught.value.code == "NOT_FOUND"


def test_a_filter_needs_a_judge(tmp_path: Path) -> None:
    writer = kernel.FileWriter(ROWS.schema, path=str(tmp_path / "x"))
    writer.write(ROWS)
    assert writer.close()["rows"] == ROWS.num_rows
    reader = kernel.FileReader(name="x", path=str(tmp_path / "x"))
    with pytest.raises(ValueError, match="judge"):
        list(reader.scan([Request(("v",))], filter=[Request(("v",))]))


@pytest.mark.parametrize("depth", [1, 2])
def test_a_null_that_must_not_be_is_refused_where_it_shows(tmp_path: Path, depth: int) -> None:
    """Nobody has checked what another library hands over."""

    def write(name: str, mask: list[bool]) -> None:
        array: pa.Array = pa.array(["a", None])
        for level in range(depth):
            field = pa.field(f"f{level}", array.type, nullable=False)
            shown = mask if level == depth - 1 else [False, True]
            array = pa.StructArray.from_arrays([array], fields=[field], mask=pa.array(shown))
        writer = kernel.FileWriter(pa.schema([("v", array.type)]), path=str(tmp_path / name))
        writer.write(pa.record_batch([array], ["v"]))
        writer.close()

    write("hidden", [False, True])
    assert pq.read_table(tmp_path / "hidden")["v"].is_valid().to_pylist() == [True, False]
    with pytest.raises(MicaError, match="contains nulls not present in parent"):
        write("shown", [False, False])
