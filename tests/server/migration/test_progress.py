"""What ``kyanite migrate`` shows while it works: bars on a terminal, plain lines elsewhere."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from tests.server.backup.test_backup import MIB, command, run
from tests.server.terminal.terminal import OnTerminal, environment
from tests.server_process import ServerProcess

ESCAPE = "\x1b"
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """6 MiB in extents of one account."""
    folder = tmp_path_factory.mktemp("source")
    with ServerProcess("--workers", "1", location=folder) as server:
        with BlobServiceClient.from_connection_string(server.connection_string) as blobs:
            container = blobs.create_container("container")
            for number in range(6):
                container.upload_blob(f"blob {number}", os.urandom(MIB))
        assert server.stop() == 0
    return folder


def last_bars(screen: str) -> list[str]:
    """The bars as they were drawn last."""
    plain = _CONTROLS.sub("", screen.replace("\r", "\n"))
    lines = [line for line in plain.splitlines() if "━" in line]
    return lines[-2:]


@pytest.mark.parametrize("names", [(), ("--account", ServerProcess.account)], ids=["all", "one"])
def test_bars_on_a_terminal_reach_their_end(source: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    with OnTerminal("migrate", "--from", str(source), "--to", str(tmp_path / "target"), *names) as terminal:
        assert terminal.code == 0
        copied, checked = last_bars(terminal.text)
        assert (ServerProcess.account if names else "all accounts") in copied
        assert "read back" in checked
        assert "6.0/6.0 MiB" in copied
        assert "6.0/6.0 MiB" in checked
        assert "6291456 bytes were read back, all as they were." in " ".join(terminal.text.split())


def test_without_a_terminal_there_are_plain_lines(source: Path, tmp_path: Path) -> None:
    code, output, errors = run("migrate", "--from", source, "--to", tmp_path / "target")
    assert (code, errors) == (0, "")
    assert ESCAPE not in output
    assert "\r" not in output
    assert any("6291456 bytes were read back" in line for line in output.splitlines())


def test_what_is_printed_goes_into_a_file_while_bars_are_on_the_terminal(
    source: Path, tmp_path: Path
) -> None:
    screen, other = pty.openpty()
    try:
        ended = subprocess.run(
            command("migrate", "--from", source, "--to", tmp_path / "target"),
            stdout=subprocess.PIPE,
            stderr=other,
            env=environment(COLUMNS="90"),
            text=True,
            timeout=60,
            check=True,
        )
        drawn = os.read(screen, 65536).decode()
    finally:
        os.close(other)
        os.close(screen)
    assert "6291456 bytes were read back" in ended.stdout
    assert ESCAPE not in ended.stdout
    assert "6.0/6.0 MiB" in drawn
