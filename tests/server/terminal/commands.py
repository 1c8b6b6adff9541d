"""Runs commands beside a server, in this process: a new one for each would take most of the time."""

import io
import os
import sys
from dataclasses import dataclass
from unittest import mock

from kyanite.server.cli import main
from tests.server.terminal.terminal import environment
from tests.server_process import ServerProcess


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stdout: str
    stderr: str


def run(server: ServerProcess, *words: str, text: str = "", **variables: str) -> Ended:
    """Standard input has the ``text``. None of the three is a terminal."""
    stdin, stdout, stderr = (_stream(each) for each in (text, "", ""))
    around = environment(KYANITE_LOCATION=str(server.location), **variables)
    with (
        mock.patch.multiple(sys, argv=["kyanite", *words], stdin=stdin, stdout=stdout, stderr=stderr),
        mock.patch.dict(os.environ, around, clear=True),
    ):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ended(code, _text(stdout), _text(stderr))


def _stream(text: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode("utf-8")), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")


def output(server: ServerProcess, *words: str, text: str = "", **variables: str) -> str:
    """What a command that must succeed prints."""
    done = run(server, *words, text=text, **variables)
    assert done.code == 0, done.stderr
    return done.stdout


def failure(server: ServerProcess, *words: str, code: int = 1, **variables: str) -> str:
    """The one sentence of a command that must fail."""
    done = run(server, *words, **variables)
    assert done.code == code, done
    assert done.stderr.startswith("kyanite: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("kyanite: ").strip()
