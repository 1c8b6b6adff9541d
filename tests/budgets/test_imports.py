"""What a server imports before it serves: every module takes time of each start and memory of every process.

The supervisor imports all of it once, and the workers share that memory. What only some servers or few requests need is
imported by the function that needs it.
"""

import subprocess
import sys
from pathlib import Path

from tests.server_process import ServerProcess

MODULES_MAX = 697

NOT_IMPORTED = frozenset(
    (
        # For encrypted keys, clients of SMB and tokens.
        "cryptography",
        # For clients of SMB.
        "kyanite.services.smb",
        "kyanite.wire.smb2.create",
        # For engines and extents on other machines.
        "asyncpg",
        "kyanite.engine.postgres",
        "kyanite.extents.s3",
        "obstore",
        # For commands other than serve.
        "rich",
        # Of the standard library, and large.
        "email",
        "http.client",
        "shutil",
        "sqlite3",
        "tempfile",
        "urllib.request",
        "xml.etree",
    )
)

_IMPORTS = """
import sys
import kyanite.server.cli
import kyanite.server.serve_cli
import kyanite.server.serve
from kyanite.server.service_table import SERVICES
for row in SERVICES.values():
    if row.load is not None:
        row.load()
print(*sys.modules)
"""


def _imported() -> set[str]:
    # Isolated, so that nothing of the environment or of the folder is imported.
    run = subprocess.run([sys.executable, "-I", "-c", _IMPORTS], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_what_a_server_imports() -> None:
    modules = _imported()
    assert NOT_IMPORTED.isdisjoint(modules), sorted(NOT_IMPORTED & modules)
    assert len(modules) <= MODULES_MAX


def test_an_idle_worker_has_not_loaded_the_library_of_ciphers() -> None:
    with ServerProcess("--workers", "1") as server:
        (worker,) = server.worker_pids()
        libraries = {Path(line.split()[-1]).name for line in _maps(worker) if ".so" in line}
    assert any(
        name.startswith("libcrypto") for name in libraries
    )  # What the standard library needs is there.
    assert not any(name.startswith("_rust") for name in libraries), sorted(libraries)


def _maps(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
