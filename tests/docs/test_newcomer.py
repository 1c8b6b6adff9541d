"""A newcomer's path: the README's commands, as they stand there, in an empty environment, until a blob is seen.

Ports come from the environment, which options fall back to, so that the commands need no change. The connection string
of the development account, whose ports are fixed, is the only text that is replaced.
"""

import json
import os
import queue
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import pytest
from documentation import options
from documentation.pages import ROOT, RUN, blocks_of, commands_of, with_endpoints

from kyanite.server.service_table import offered
from tests.packaging.environment import check_out, clean_environment
from tests.server_process import DEVELOPMENT_KEY

BLOCKS = [block for block in blocks_of(ROOT / "README.md") if block.mark == RUN]
PAGES_MAX = 40
COMMAND_SECONDS = 120.0
"""The longest that a command may take; installing takes some ten seconds."""


class Shell:
    """A shell that is typed into, command by command."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._errors = folder.parent / "errors"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                ["bash"],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._printed: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def type(self, command: str) -> None:
        """Wait for its end. It must succeed."""
        assert self._process.stdin is not None
        self._process.stdin.write(f'{command}\necho "ended with $?"\n')
        self._process.stdin.flush()
        line = self.wait_for("ended with ")
        assert line == "ended with 0\n", f"{command}\n{self._errors.read_text()}"

    def wait_for(self, beginning: str) -> str:
        """The first line that begins so; those before it are kept for later."""
        for line in self._printed:
            if line.startswith(beginning):
                self._printed.remove(line)
                return line
        while True:
            try:
                line = self._lines.get(timeout=COMMAND_SECONDS)
            except queue.Empty:
                raise AssertionError(f"no line begins with {beginning}\n{self._errors.read_text()}") from None
            if line.startswith(beginning):
                return line
            self._printed.append(line)

    def leave(self) -> None:
        """The server, which runs in the background, ends as well."""
        os.killpg(self._process.pid, signal.SIGTERM)
        self._reader.join(60)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    names = {f"KYANITE_{name.upper()}_PORT" for name in (*offered(), "console")}
    ports = dict.fromkeys(names & options.all_variables(), "0")
    shell = Shell(check_out(tmp_path / "kyanite"), clean_environment(**ports))
    yield shell
    shell.leave()


def test_from_nothing_to_a_blob(shell: Shell, tmp_path: Path) -> None:
    endpoints: dict[str, str] = {}
    for block in BLOCKS:
        if block.language == "python":
            account = (
                f"AccountName=devstoreaccount1;AccountKey={DEVELOPMENT_KEY};DefaultEndpointsProtocol=http"
            )
            connection = f"{account};BlobEndpoint={endpoints['blob']}"
            text = with_endpoints(block.text, endpoints, connection)
            (tmp_path / "kyanite" / "photos.py").write_text(text)
            continue
        for command in commands_of(block).splitlines():
            shell.type(command)
            if command.endswith("&"):
                endpoints = json.loads(shell.wait_for("ready ").removeprefix("ready "))
    assert shell.wait_for("b'meow'")
    assert is_in_console(endpoints["console"], "cat.txt")


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def is_in_console(address: str, text: str) -> bool:
    """Whether someone who follows links from the first page comes to one that shows the text."""
    known, pending = {address}, [address]
    for _ in range(PAGES_MAX):
        if not pending:
            return False
        url = pending.pop(0)
        with urllib.request.urlopen(url, timeout=60) as answer:
            if "html" not in answer.headers.get_content_type():
                continue
            page = answer.read().decode()
        if text in page:
            return True
        for link in Links(page).found:
            target = urljoin(url, link).partition("#")[0]
            if target.startswith(address) and target not in known:
                known.add(target)
                pending.append(target)
    return False


def test_the_path_has_all_its_steps() -> None:
    commands = [
        command
        for block in BLOCKS
        if block.language == "console"
        for command in commands_of(block).splitlines()
    ]
    assert [command.split()[0] for command in commands] == ["python3", "pip", "kyanite", "pip", "python"]
