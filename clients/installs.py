"""Fetching the clients into ``.clients/``, where ``make clean`` finds them.

The JavaScript libraries and AzCopy come from the npm registry, the Azure CLI and the Python packages from PyPI into
virtual environments of their own. What AzCopy and npm need of the system comes from Debian, if it is missing and we may
install it.
"""

import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_HOME = ROOT / ".clients"

PACKAGES = {
    "@azure-tools/azcopy-linux": "10.32.2",
    "@azure/identity": "4.14.1",
    "@azure/storage-blob": "12.32.0",
    "@azure/storage-queue": "12.30.0",
    "@azure/data-tables": "13.3.2",
    "@azure/storage-file-share": "12.31.0",
}
AZURE_CLI_VERSION = "2.91.0"
PYTHON_PACKAGES = {"pyarrow": "26.0.1", "obstore": "0.12.1"}
_NODE_LEAST = 20


class UnavailableError(Exception):
    """A client cannot be installed on this machine; the text says why."""


def home() -> Path:
    _HOME.mkdir(exist_ok=True)
    return _HOME


def azcopy() -> Path:
    if platform.machine() != "x86_64":
        raise UnavailableError(f"npm has no AzCopy for {platform.machine()}")
    _debian("libsecret-1-0")
    binary = _package("@azure-tools/azcopy-linux") / "dist" / "bin" / "azcopy_linux_amd64"
    binary.chmod(0o755)
    return binary


def node() -> Path:
    """Node, which includes npm."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        _debian("npm")
        found = shutil.which("node")
    if found is None:
        raise UnavailableError("there is no node")
    version = _run([found, "--version"]).strip().lstrip("v")
    if int(version.partition(".")[0]) < _NODE_LEAST:
        raise UnavailableError(f"the libraries need node {_NODE_LEAST} or newer, and this is {version}")
    return Path(found)


def node_modules() -> Path:
    """All JavaScript libraries, in a folder for ``NODE_PATH``."""
    for package in PACKAGES:
        _package(package)
    return home() / "node_modules"


def azure_cli() -> Path:
    return _virtual_environment("az", {"azure-cli": AZURE_CLI_VERSION}) / "az"


def python_packages() -> Path:
    """The interpreter that can import all Python packages."""
    return _virtual_environment("python", PYTHON_PACKAGES) / "python"


def samba() -> None:
    """smbclient, and what the tests need beside it."""
    _run([str(ROOT / "scripts" / "samba")])


def _virtual_environment(name: str, packages: Mapping[str, str]) -> Path:
    """The folder of the commands, once these versions are installed."""
    commands = home() / name / "bin"
    wanted = [f"{package}=={version}" for package, version in packages.items()]
    installed = home() / name / ".installed"
    if not installed.exists() or installed.read_text().split() != wanted:
        _run([str(ROOT / "scripts" / "venv"), sys.executable, str(home() / name)])
        _run([str(commands / "pip"), "install", "--quiet", "--disable-pip-version-check", *wanted])
        installed.write_text("\n".join(wanted))
    return commands


def _package(name: str) -> Path:
    folder = home() / "node_modules" / name
    if not folder.exists():
        node()
        wanted = [f"{package}@{version}" for package, version in PACKAGES.items()]
        _run(
            [
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
                str(home()),
                *wanted,
            ]
        )
    return folder


def _debian(package: str) -> None:
    _run([str(ROOT / "scripts" / "debian"), package])


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    except OSError as problem:
        raise UnavailableError(f"{command[0]} cannot be run: {problem}") from problem
    if done.returncode:
        raise UnavailableError(f"{' '.join(command[:3])} failed: {done.stderr.strip()[-500:]}")
    return done.stdout
