"""What Hatchling runs for a wheel: it compiles the modules of ``compiled.toml`` and adds them to it.

Every wheel has the sources too. Without a C compiler, or when compiling fails, it has nothing else and is a wheel for
any machine. ``KYANITE_COMPILE=no`` asks for that one, and ``KYANITE_COMPILE=yes`` makes anything else an error.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))  # Hatchling loads this file by its path.

import compilation

_REQUIREMENTS = ["mypy[mypyc]>=1.18", "setuptools>=70", "msgspec>=0.19"]
"""msgspec for its types: without them the records would be of unknown type to the compiler."""


def requirements() -> list[str]:
    return [] if _reason_against() else _REQUIREMENTS


def _reason_against() -> str:
    """Why this build does not compile; empty if it does."""
    wanted = os.environ.get("KYANITE_COMPILE", "")
    if wanted == "no":
        return "KYANITE_COMPILE is no"
    missing = compilation.missing()
    if missing and wanted == "yes":
        raise SystemExit(f"KYANITE_COMPILE is yes, and there is no {missing}.")
    return f"there is no {missing}" if missing else ""


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        reason = _reason_against()
        if not reason:
            reason = self._compile(build_data)
        if reason:
            self.app.display_warning(f"kyanite: a wheel without compiled modules, because {reason}.")

    def _compile(self, build_data: dict[str, Any]) -> str:
        """Add the compiled modules; what went wrong, if anything did."""
        self._target = tempfile.TemporaryDirectory()
        program = [sys.executable, compilation.__file__, str(Path(self.root) / "src"), self._target.name]
        ended = subprocess.run(program, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            output = "\n".join((ended.stdout + ended.stderr).splitlines()[-40:])
            if os.environ.get("KYANITE_COMPILE") == "yes":
                raise SystemExit(output)
            return f"mypyc or the C compiler failed:\n{output}\n"
        target = Path(self._target.name)
        for file in target.rglob("*"):
            if file.is_file():
                build_data["force_include"][str(file)] = str(file.relative_to(target))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        return ""
