"""The table of codes is what the sources raise: none is missing, none is unused, none is made of other words.

Whatever may become the code of an error is followed to the words that it is spelled by: through parameters called
`code` to their callers, through results of functions, and through tables. Beside that, every error that any test meets
is looked up when it is made (`tests/conftest.py`).
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from mica import errors
from mica.errors.codes import CODES
from tests.support import ROOT, kernel_codes

PACKAGE = ROOT / "src" / "mica"
KINDS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}


def own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function that are not of a function inside it."""
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            todo += ast.iter_child_nodes(node)


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


class Sources:
    """The code positions of a set of modules, and the words in them."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.used: dict[str, set[str]] = defaultdict(set)  # code → classes, "" where that is not written there
        self.faults: list[str] = []
        trees = {name: ast.parse(text) for name, text in texts.items()}
        nodes = {name: list(ast.walk(tree)) for name, tree in trees.items()}
        self.kinds = set(KINDS) | {"RowError", "AlreadyExistsError"}
        functions = [(name, n) for name, found in nodes.items() for n in found if isinstance(n, ast.FunctionDef)]
        self.returning = {f.name: f for _, f in functions}
        # Functions that make an error of their parameter `code`: its position without `self`, by module and name.
        self.taking: dict[tuple[str, str], int] = {}
        self.place = ""
        for name, f in functions:
            names = [a.arg for a in f.args.args if a.arg not in ("self", "cls")]
            if "code" in names and any(isinstance(n, ast.Call) and name_of(n) in self.kinds for n in own(f)):
                at = self.taking[name, f.name] = names.index("code")
                if at - len(names) >= -len(f.args.defaults):
                    self.word(f.args.defaults[at - len(names)], None, "")
        self.defined: dict[str, set[str]] = defaultdict(set)  # function → modules
        for name, f in functions:
            self.defined[f.name].add(name)
        self.tables = {
            target.id: node.value
            for found in nodes.values()
            for node in found
            if isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Dict)
            for target in ([node.target] if isinstance(node, ast.AnnAssign) else node.targets)
            if isinstance(target, ast.Name)
        }
        for name, found in nodes.items():
            self.place = name
            for scope in [trees[name], *(n for n in found if isinstance(n, ast.FunctionDef))]:
                for node in own(scope):
                    if isinstance(node, ast.Call):
                        self.call(node, scope)

    def call(self, call: ast.Call, scope: ast.AST) -> None:
        name = name_of(call)
        if name in self.kinds or (name in ("kind", "cls") and self.place == "errors/__init__.py"):
            if call.args:
                self.word(call.args[0], scope, name if name in KINDS else "")
        elif (at := self.position(name)) is not None:
            for given in [*call.args[at : at + 1], *(k.value for k in call.keywords if k.arg == "code")]:
                self.word(given, scope, "")
        elif name == "kind" and call.args:
            self.word(call.args[0], scope, "")

    def position(self, function: str) -> int | None:
        """Where a function takes a code. Of two of one name the module's own is meant; of others', none but one that
        all of them agree on."""
        modules = self.defined.get(function, set())
        if self.place in modules:
            return self.taking.get((self.place, function))
        found = {self.taking.get((module, function)) for module in modules}
        return found.pop() if len(found) == 1 else None

    def word(self, node: ast.expr, scope: ast.AST | None, kind: str) -> None:
        """What may stand in a code position."""
        match node:
            case ast.Constant(value=str(code)):
                self.used[code].add(kind)
            case ast.IfExp():
                self.word(node.body, scope, kind)
                self.word(node.orelse, scope, kind)
            case ast.Tuple():  # of a table: the code comes first
                self.word(node.elts[0], scope, kind)
            case ast.Attribute(attr="code") | ast.Constant(value=None):
                pass  # of an error that was made elsewhere, or none
            case ast.Subscript(slice=ast.Constant(value="code")):
                pass  # of an error that came from a worker
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=0)) | ast.Name(id=name):
                self.named(name, scope, kind)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=table), attr="get"), args=[_, *default]):
                for row in [*self.tables[table].values, *default]:
                    self.word(row, scope, kind)
            case ast.Subscript(value=ast.Name(id=table)) if table in self.tables:
                for row in self.tables[table].values:
                    self.word(row, scope, kind)
            case ast.Call(func=ast.Name(id=name)) if name in self.returning:
                for inner in own(self.returning[name]):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        self.word(inner.value, self.returning[name], kind)
            case ast.Call(func=ast.Name(id="str"), args=[ast.Call(func=ast.Name(id="getattr"), args=[_, _, default])]):
                self.word(default, scope, kind)  # of the kernel's error
            case _:
                self.faults.append(f"{self.place}:{node.lineno}: {ast.unparse(node)}")

    def named(self, name: str, scope: ast.AST | None, kind: str) -> None:
        """A variable: a parameter `code`, whose values are the callers', or what it is assigned."""
        assert isinstance(scope, ast.FunctionDef)
        every = [*scope.args.args, *scope.args.kwonlyargs]
        if name == "code" and any(a.arg == "code" for a in every):
            return
        for node in own(scope):
            if isinstance(node, ast.Assign):
                target = node.targets[0]
                first = target.elts[0] if isinstance(target, ast.Tuple) else target
                if isinstance(first, ast.Name) and first.id == name:
                    self.word(node.value, scope, kind)
                    return
        self.faults.append(f"{self.place}:{scope.lineno}: {name}")


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources({p.relative_to(PACKAGE).as_posix(): p.read_text("utf-8") for p in sorted(PACKAGE.rglob("*.py"))})


@pytest.mark.slow
def test_no_code_is_made_of_other_words(sources: Sources) -> None:
    assert sources.faults == []


def test_the_table_lists_the_codes_that_are_raised_and_no_others(sources: Sources) -> None:
    raised = set(sources.used) | kernel_codes()
    assert (raised - set(CODES), set(CODES) - raised) == (set(), set())


def test_the_table_lists_the_classes_that_carry_a_code(sources: Sources) -> None:
    said = {(code, kind) for code, kinds in sources.used.items() for kind in kinds if kind}
    assert [(c, k) for c, k in sorted(said) if not issubclass(KINDS[k], CODES[c].kinds)] == []


@pytest.mark.parametrize("code", CODES)
def test_a_row_is_whole(code: str) -> None:
    row = CODES[code]
    assert re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", row.name)
    assert row.kinds
    assert row.cause.endswith(".")
    assert row.way_out.endswith(".")


def test_the_test_sees_what_it_looks_for() -> None:
    program = """
T = {1: ("IN_A_TABLE", "x")}
U = {1: ("BY_KEY", "x")}
def helper(what, code="BY_DEFAULT"):
    return UserError(code, what)
def pair():
    return "BY_RESULT", 1
def f(e):
    raise UserError("DIRECT", "x")
    raise helper("x", "BY_ARGUMENT")
    raise helper("x", code="BY_KEYWORD")
    known = T.get(1)
    raise StorageError(known[0], "x")
    code, what = pair()
    raise UserError(code, what)
    raise UserError(f"MADE_{e}", "x")
    raise UserError(e.code, "x")
def g(key):
    code, what = U[key]
    raise UserError(code, what)
"""
    found = Sources({"x.py": program})
    assert set(found.used) == {
        "IN_A_TABLE", "BY_KEY", "BY_DEFAULT", "BY_RESULT", "DIRECT", "BY_ARGUMENT", "BY_KEYWORD",
    }  # fmt: skip
    assert [fault.partition(": ")[2] for fault in found.faults] == ["f'MADE_{e}'"]
