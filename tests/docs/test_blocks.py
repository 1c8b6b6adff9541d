"""Every code block says whether it is run, and those that say so are run here.

A block is marked behind its language: ``python run``, ``go not run here: needs Go``, or ``js run by make clients``.
Blocks of a page run in their order, against one server, in a folder that is empty at first. They are written for the
usual ports and folders, which ``replaced`` exchanges for those of the test.
"""

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from documentation.pages import BY_CLIENTS, RUN, Block, blocks_of, commands_of, pages, with_endpoints

from kyanite.server.failures import BadUsage
from tests.docs.configuration import check_configuration
from tests.server_process import DEVELOPMENT_KEY, ServerProcess

ALL = [block for page in pages() for block in blocks_of(page)]
RUNNABLE = {"python", "console", "sh", "toml"}
WITH_RUN_BLOCKS = sorted({block.page for block in ALL if block.mark == RUN and block.language != "toml"})
TOML = [block for block in ALL if block.mark == RUN and block.language == "toml"]
SCRIPT_SECONDS = 120
OWN_TESTS = ("README.md",)
"""``test_newcomer.py`` runs it."""


def name_of(block: Block) -> str:
    return f"{block.page.name}:{block.line}"


@pytest.mark.parametrize("block", [block for block in ALL if block.is_code], ids=name_of)
def test_a_block_says_whether_it_is_run(block: Block) -> None:
    assert block.is_marked, (
        f"{name_of(block)}: a language, then a mark: see the top of tests/docs/test_blocks.py"
    )
    if block.mark == RUN:
        assert block.language in RUNNABLE
    if block.mark == BY_CLIENTS:
        assert block.language == "js"


# --- Running them


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With what pages take for granted: the folders ``/srv`` and ``/run/secrets``."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "srv").mkdir()
    (folder / "secrets").mkdir()
    for name in ("photos-1", "photos-2", "kyanite"):
        (folder / "secrets" / name).write_text("YSBrZXkgb2YgdGhlIHBhZ2U=")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    account = f"devstoreaccount1:{DEVELOPMENT_KEY}"
    location = folder / "srv" / "kyanite"
    with ServerProcess(
        "--account", account, "--admin-port", "0", "--workers", "1", location=location
    ) as server:
        yield server


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def replaced(text: str, folder: Path, server: ServerProcess | None) -> str:
    text = text.replace("10443", str(free_port()))
    text = text.replace("/srv/", f"{folder}/srv/").replace("/run/secrets/", f"{folder}/secrets/")
    return text if server is None else with_endpoints(text, server.endpoints, server.connection_string)


@pytest.mark.parametrize(
    "page", [page for page in WITH_RUN_BLOCKS if page.name not in OWN_TESTS], ids=lambda page: page.name
)
def test_the_blocks_of_a_page_run(
    page: Path, folder: Path, server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    working_folder = folder / page.stem
    working_folder.mkdir()
    monkeypatch.chdir(working_folder)
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks_of(page):
        if block.mark == RUN and block.language == "python":
            run_python(block, replaced(block.text, folder, server), namespace)
        elif block.mark == RUN and block.language in ("console", "sh"):
            run_shell(block, replaced(commands_of(block), folder, server), working_folder)


def run_python(block: Block, text: str, namespace: dict[str, object]) -> None:
    """Blocks of a page share their names, as they would for a reader who pastes them one after the other."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        exec(compile("\n" * block.line + text, str(block.page), "exec"), namespace)


def run_shell(block: Block, script: str, working_folder: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=working_folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = shell.communicate(timeout=SCRIPT_SECONDS)
        assert shell.returncode == 0, f"{name_of(block)}\n{script}\n{printed}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGTERM)  # What a block has left in the background.
        shell.communicate(timeout=SCRIPT_SECONDS)


@pytest.mark.parametrize("block", TOML, ids=name_of)
def test_a_configuration_is_accepted(block: Block, folder: Path, tmp_path: Path) -> None:
    check_configuration(replaced(block.text, folder, None), tmp_path)


def test_a_configuration_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="polish"):
        check_configuration("[server]\npolish = true\n", tmp_path)
