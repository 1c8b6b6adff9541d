"""Compiles the modules of ``compiled.toml`` with mypyc: ``python packaging/compilation.py SOURCE TARGET``.

SOURCE is a folder with the package ``kyanite``. TARGET gets the extension modules, each at the place of its module, and
one more beside the package, which has the code of all. The work is done in a temporary copy, so SOURCE never has
anything compiled in it. This is a program of its own because mypyc ends its process when it refuses a module.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent / "compiled.toml"
OPT_LEVEL = "2"

_MYPY = """
[mypy]
mypy_path = src
explicit_package_bases = True
ignore_missing_imports = True
"""


def modules() -> list[str]:
    """The files of the modules to compile, below the source folder."""
    table = tomllib.loads(TABLE.read_text())["compiled"]
    return [f"kyanite/{folder}/{name}.py".replace("/./", "/") for folder in table for name in table[folder]]


def missing() -> str:
    """What a machine lacks for compiling; empty when it has all."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"C compiler ({compiler})"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python.h (Debian: python3-dev)"
    return ""


def compile_modules(source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(source / "kyanite", Path(folder) / "src" / "kyanite")
        os.chdir(folder)
        Path("mypy.ini").write_text(_MYPY)
        _build([f"src/{module}" for module in modules()])
        shutil.copytree("lib", target, dirs_exist_ok=True)


def _build(files: Sequence[str]) -> None:
    from mypyc.build import mypycify
    from setuptools import setup
    from setuptools.command.build_ext import build_ext

    class BuildOnAllCores(build_ext):
        """Most of the C files belong to one extension, which setuptools compiles one after the other."""

        def build_extensions(self) -> None:
            compile_files = self.compiler.compile

            def on_all_cores(sources: Sequence[str], *options: Any, **named: Any) -> list[str]:
                with ThreadPoolExecutor(os.cpu_count()) as threads:
                    objects = threads.map(lambda file: compile_files([file], *options, **named), sources)
                    return [each for some in objects for each in some]

            self.compiler.compile = on_all_cores
            super().build_extensions()

    extensions = mypycify(
        ["--config-file=mypy.ini", *files],
        opt_level=OPT_LEVEL,
        debug_level="0",
        multi_file=True,
        group_name="kyanite",
    )
    for extension in extensions:
        extension.extra_compile_args += ["-fvisibility=hidden"]
    setup(
        name="kyanite",
        package_dir={"": "src"},
        ext_modules=extensions,
        cmdclass={"build_ext": BuildOnAllCores},
        script_args=["--quiet", "build_ext", "--build-lib", "lib"],
    )


if __name__ == "__main__":
    compile_modules(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
