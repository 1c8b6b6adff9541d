"""A copy of the repository as git has it, and virtual environments that have nothing in them yet."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from documentation.pages import ROOT

INSTALL_SECONDS = 280
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR")
"""Of the environment of the tests; what pip needs to find packages is kept as well."""


def clean_environment(**more: str) -> dict[str, str]:
    """What a newcomer's shell has, without the environment of the tests. Nothing is compiled, which takes long."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(("PIP_", "SSL_"))
    }
    folder = str(Path(sys.executable).parent)
    path = os.pathsep.join(each for each in kept["PATH"].split(os.pathsep) if each != folder)
    quick = {"KYANITE_COMPILE": "no", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1"}
    return {**kept, "PATH": path, **quick, **more}


def run(*command: str, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """The output of a command that must succeed."""
    ran = subprocess.run(
        command,
        cwd=folder,
        env=environment or clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def check_out(folder: Path) -> Path:
    """The files that git knows, with what was changed since."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, listed):
        source, target = ROOT / name, folder / name
        if source.is_file() and not name.startswith(("tests/", "bench/")):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode & 0o777)
    return folder
