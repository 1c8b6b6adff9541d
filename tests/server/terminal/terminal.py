"""A program on a terminal of its own, as a person would see it."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

KYANITE = (sys.executable, "-m", "kyanite.server.cli")
_SECONDS = 60.0
_OPTIONS = ("KYANITE_", "NO_COLOR", "COLUMNS")


def environment(**more: str) -> dict[str, str]:
    """Without options for the server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OPTIONS)}
    return {**kept, "TERM": "xterm", **more}


class OnTerminal:
    """Runs ``kyanite`` with a terminal as its standard output and standard error. Ends it with the block."""

    def __init__(self, *arguments: str, more: Mapping[str, str] | None = None) -> None:
        self._screen, other = pty.openpty()
        self._process = subprocess.Popen(
            [*KYANITE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=other,
            stderr=other,
            env=environment(COLUMNS="90", **(more or {})),
            start_new_session=True,
        )
        os.close(other)
        self.text = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self.read_to_end()
        os.close(self._screen)
        self._process.wait(_SECONDS)

    @property
    def code(self) -> int:
        """The exit code, when the program has ended."""
        self.read_to_end()
        return self._process.wait(_SECONDS)

    def wait_for(self, words: str) -> str:
        """All that was shown so far, when the words are there."""
        deadline = time.monotonic() + _SECONDS
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            assert self._read(), f"it ended: {self.text}"
        return self.text

    def read_to_end(self) -> str:
        deadline = time.monotonic() + _SECONDS
        while self._read():
            assert time.monotonic() < deadline, self.text
        return self.text

    def _read(self) -> bool:
        if not select.select([self._screen], [], [], 0.2)[0]:
            return True
        try:
            piece = os.read(self._screen, 65536)
        except OSError:  # What Linux says when the other side is closed.
            return False
        self.text += piece.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(piece)
