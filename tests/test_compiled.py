"""What may be compiled, and what must stay interpreted: ``packaging/compiled.toml`` against the sources."""

import ast
import importlib
import pkgutil
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

import kyanite

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "kyanite"
TABLE = tomllib.loads((ROOT / "packaging" / "compiled.toml").read_text())
COMPILED = {
    name if folder == "." else f"{folder}/{name}"
    for folder, names in TABLE["compiled"].items()
    for name in names
}
CONSUMERS = {
    "all",
    "any",
    "bytes",
    "dict",
    "frozenset",
    "list",
    "max",
    "min",
    "next",
    "set",
    "sorted",
    "sum",
    "tuple",
}
SET_BY_TESTS = {
    "engine/postgres/writer._GATHER_SECONDS",
    "engine/postgres/writer._OTHERS_SECONDS",
    "engine/sqlite/reader._KEPT_ROWS",
    "model/content/content.SHORT_MAX",
    "model/content/content._PLAN_INTERVALS",
    "model/content/content._PLAN_PARTS",
    "model/content/content._SPLICE_ROWS_MAX",
}
"""What tests set, also those of what is compiled."""
INTERPRETED: dict[str, str] = TABLE["interpreted"]


def modules() -> list[str]:
    files = (file for file in SOURCE.rglob("*.py") if file.name != "__init__.py")
    return sorted(str(file.relative_to(SOURCE).with_suffix("")) for file in files)


def import_all() -> None:
    for module in pkgutil.walk_packages(kyanite.__path__, "kyanite."):
        importlib.import_module(module.name)


def test_every_module_is_compiled_or_has_a_reason_not_to_be() -> None:
    without = [
        module
        for module in modules()
        if module not in COMPILED and not any(fnmatchcase(module, pattern) for pattern in INTERPRETED)
    ]
    assert not without, "compile them, or say in packaging/compiled.toml why not"
    assert set(modules()) >= COMPILED


def test_every_reason_is_for_some_module() -> None:
    interpreted = set(modules()) - COMPILED
    assert not [
        pattern for pattern in INTERPRETED if not any(fnmatchcase(module, pattern) for module in interpreted)
    ]


def test_compiled_classes_lose_no_keyword_and_records_no_annotation() -> None:
    """mypyc drops the keywords of a class, so its base has to have them, and the annotations of its fields."""
    for module in COMPILED:
        for node in ast.walk(ast.parse((SOURCE / f"{module}.py").read_text())):
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base) for base in node.bases}
                assert not bases & {"msgspec.Struct", "Struct", "Record"}, f"{module}: {node.name}"
                assert "Value" not in bases or len(bases) == 1, f"{module}: {node.name} loses its other base"
                assert {keyword.arg for keyword in node.keywords} <= {"frozen"}, f"{module}: {node.name}"


def test_compiled_generator_expressions_are_consumed_where_they_are() -> None:
    """mypyc makes lists of them, so one that is returned or passed on would no longer be read step by step."""
    for module in COMPILED:
        tree = ast.parse((SOURCE / f"{module}.py").read_text())
        expressions = {node for node in ast.walk(tree) if isinstance(node, ast.GeneratorExp)}
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in CONSUMERS:
                    expressions -= {each for each in node.args if isinstance(each, ast.GeneratorExp)}
                case ast.Call(func=ast.Attribute(attr="join" | "update" | "extend" | "union")):
                    expressions -= {each for each in node.args if isinstance(each, ast.GeneratorExp)}
                case ast.Starred(value=ast.GeneratorExp() as each):
                    expressions.discard(each)
                case ast.Assign(targets=[ast.Tuple()], value=ast.GeneratorExp() as each):
                    expressions.discard(each)
                case _:
                    pass
        assert not [f"{module}:{each.lineno}" for each in expressions]


def test_no_compiled_coroutine_can_end_by_a_stop_iteration() -> None:
    """In a compiled generator or coroutine it is a return, where the interpreter makes an error of it."""
    for module in COMPILED - {"slices"}:  # Which handles it.
        for function in ast.walk(ast.parse((SOURCE / f"{module}.py").read_text())):
            match function:
                case ast.AsyncFunctionDef():
                    is_suspended = True
                case ast.FunctionDef():
                    is_suspended = any(
                        isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function)
                    )
                case _:
                    continue
            for node in ast.walk(function) if is_suspended else ():
                match node:
                    case ast.Call(func=ast.Name(id="next"), args=[_]):
                        raise AssertionError(f"{module}:{node.lineno}: next needs a default")
                    case _:
                        pass


def test_no_compiled_handler_of_an_error_waits_and_raises_it_again() -> None:
    """A compiled coroutine forgets what it handles while it waits, and ``raise`` alone then ends the process if the
    error was thrown into it, as cancelling does. ``raise error`` does not."""
    for module in COMPILED:
        for node in ast.walk(ast.parse((SOURCE / f"{module}.py").read_text())):
            if isinstance(node, ast.ExceptHandler) and any(
                isinstance(each, ast.Await) for each in ast.walk(node)
            ):
                again = [each for each in ast.walk(node) if isinstance(each, ast.Raise) and each.exc is None]
                assert not again, f"{module}:{node.lineno}"


def test_no_compiled_function_has_one_name_for_errors_of_two_classes() -> None:
    """mypyc gives the name the first class, and an error of the second one becomes a TypeError if that is compiled."""
    trees = {module: ast.parse((SOURCE / f"{module}.py").read_text()) for module in COMPILED}
    compiled = {
        node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }
    for module, tree in trees.items():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            classes: dict[str, set[str]] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                    classes.setdefault(node.name, set()).add(ast.unparse(node.type))
            for name, of_name in classes.items():
                assert len(of_name) == 1 or not of_name & compiled, f"{module}: {function.name}: {name}"


def test_no_compiled_protocol_is_checked_at_run_time() -> None:
    """mypyc makes a class of a protocol, which ``runtime_checkable`` refuses when the module is imported."""
    for module in COMPILED:
        for node in ast.walk(ast.parse((SOURCE / f"{module}.py").read_text())):
            if isinstance(node, ast.ClassDef):
                decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
                assert "runtime_checkable" not in decorators, f"{module}: {node.name}"


def test_constants_that_compiled_functions_use_are_final() -> None:
    """mypyc looks any other global name up in a dictionary, each time."""
    for module in COMPILED:
        tree = ast.parse((SOURCE / f"{module}.py").read_text())
        functions = [
            node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        inside = [node for function in functions for node in ast.walk(function)]
        used = {node.id for node in inside if isinstance(node, ast.Name)}
        changed = {name for node in inside if isinstance(node, ast.Global) for name in node.names}
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    is_type = name.lstrip("_")[:1].isupper() and not name.isupper()
                    is_final = is_type or (
                        isinstance(value, ast.Call) and "TypeVar" in ast.unparse(value.func)
                    )
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    is_final = ast.unparse(annotation).startswith("Final")
                case _:
                    continue
            is_set_by_tests = f"{module}.{name}" in SET_BY_TESTS
            assert is_final or name not in used - changed or is_set_by_tests, f"{module}.{name}"


def test_no_stored_type_is_compiled() -> None:
    for stored in _stored_types():
        module = stored.__module__.removeprefix("kyanite.").replace(".", "/")
        assert module not in COMPILED, f"{stored.__name__} is stored, and mypyc drops its annotations"


def _stored_types() -> set[type]:
    """Records, and everything that a field of one may be."""
    import_all()
    found: set[type] = set()
    for struct in _subclasses(msgspec.Struct):
        if struct.__module__.startswith("kyanite.") and struct.__struct_config__.array_like:
            _collect(struct, found)
    return found


def _subclasses(base: Any) -> Iterator[Any]:
    for each in base.__subclasses__():
        yield each
        yield from _subclasses(each)


def _collect(annotation: Any, found: set[type]) -> None:
    if isinstance(annotation, type) and annotation not in found:
        is_named_tuple = issubclass(annotation, tuple) and hasattr(annotation, "_fields")
        if is_named_tuple or issubclass(annotation, msgspec.Struct):
            found.add(annotation)
            for hint in get_type_hints(annotation).values():
                _collect(hint, found)
    for argument in get_args(annotation):
        _collect(argument, found)


def test_nothing_compiled_lies_in_the_sources() -> None:
    assert not [file for suffix in EXTENSION_SUFFIXES for file in ROOT.joinpath("src").rglob(f"*{suffix}")]
    assert not list(ROOT.joinpath("src").rglob("*.c"))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_git_would_show_a_compiled_module_in_the_sources() -> None:
    for suffix in (*EXTENSION_SUFFIXES, ".c"):
        command = ["git", "check-ignore", "--quiet", "--no-index", f"src/kyanite/values{suffix}"]
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == 1, suffix


def test_no_interpreted_class_has_a_compiled_base() -> None:
    """A compiled function that expects the base refuses objects of a subclass that it has not seen."""
    import_all()
    compiled = {f"kyanite.{module.replace('/', '.')}" for module in COMPILED}
    for name in compiled:
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, type) and value.__module__ == name and not issubclass(value, Exception):
                subclasses = {each.__module__ for each in _subclasses(value)}
                assert {each for each in subclasses if each.startswith("kyanite.")} <= compiled, value
