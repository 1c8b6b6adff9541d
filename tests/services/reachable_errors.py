"""Which errors a service can meet: the reasons and codes in the functions that its own functions lead to.

The source is read, not run. A function, class or constant at the top level of a module is a node; it leads to every
other one that it names. That is too much where a refusal is caught, and never too little as long as functions are
called by their names.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import kyanite
from kyanite.rules.refusals import Reason

Node = tuple[str, str]
"""A module, and a name at its top level."""

_ROOT = Path(kyanite.__file__).parent.parent
_TABLES = ("conflicts", "errors", "statuses")
"""Modules of these names list reasons and raise none."""


Error = Reason | str
"""A reason of ``Refused`` or a code of ``Malformed``."""


@cache
def reachable_errors(service: str) -> dict[Error, set[str]]:
    """The errors that a package of ``services`` can meet, each with the functions that name it."""
    start = [node for module in _modules_of(service) for node in _read(module).bodies_by_node]
    found: dict[Error, set[str]] = {}
    todo, known = start, set(start)
    while todo:
        module, name = todo.pop()
        for statement in _read(module).bodies_by_node[module, name]:
            for error in _errors_in(statement):
                found.setdefault(error, set()).add(f"{module}.{name}")
            for node in _named_in(module, statement):
                if node not in known:
                    known.add(node)
                    todo.append(node)
    return found


def _modules_of(service: str) -> list[str]:
    folder = _ROOT / "kyanite" / "services" / service
    return [
        f"kyanite.services.{service}.{path.stem}" for path in folder.glob("*.py") if path.stem not in _TABLES
    ]


class _Module:
    def __init__(self, name: str) -> None:
        tree = ast.parse(_file_of(name).read_text())
        self.bodies_by_node: dict[Node, list[ast.stmt]] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        """Name here to module and name there; the latter is empty for a module."""
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom):
                self._add_imports(statement)
            for own in _names_bound_by(statement):
                self.bodies_by_node.setdefault((name, own), []).append(statement)

    def _add_imports(self, statement: ast.ImportFrom) -> None:
        module = statement.module or ""
        for alias in statement.names:
            inner = f"{module}.{alias.name}"
            found = (inner, "") if _file_of(inner).exists() else (module, alias.name)
            self.imported[alias.asname or alias.name] = found


@cache
def _read(module: str) -> _Module:
    return _Module(module)


def _file_of(module: str) -> Path:
    return _ROOT.joinpath(*module.split(".")).with_suffix(".py")


def _names_bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _errors_in(statement: ast.stmt) -> Iterator[Error]:
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=ast.Name(id="Reason"), attr=name):
                yield Reason[name]
            case ast.Call(func=ast.Name(id="Malformed"), args=[ast.Constant(value=str(code)), *_]):
                yield code


def _named_in(module: str, statement: ast.stmt) -> Iterator[Node]:
    read = _read(module)
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if (module, node.id) in read.bodies_by_node:
                yield module, node.id
            elif read.imported.get(node.id, ("", ""))[1]:
                yield from _existing(*read.imported[node.id])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            imported, name = read.imported.get(node.value.id, ("", ""))
            if imported and not name:
                yield from _existing(imported, node.attr)


def _existing(module: str, name: str) -> Iterator[Node]:
    if (
        not module.startswith("kyanite.")
        or module.rpartition(".")[2] in _TABLES
        or not _file_of(module).exists()
    ):
        return
    read = _read(module)
    if (module, name) in read.bodies_by_node:
        yield module, name
    elif name in read.imported and read.imported[name][1]:
        yield from _existing(*read.imported[name])
