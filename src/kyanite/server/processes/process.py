"""A process of the server other than the supervisor: how it begins, what it tells the supervisor, and how it ends.

A role (a worker, the admin process) is a function of the ``ProcessContext`` it is given. The supervisor forks and calls
``live``; that never returns into the supervisor's code. The process says ``ready`` once it serves, or why it cannot,
through a pipe whose other end the supervisor watches. A second pipe, the life line, carries nothing: its writing end is
open in the supervisor only, so when the supervisor is killed every reader gets its end of file and goes too, whatever
its event loop may be busy with.
"""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from kyanite.server.failures import Failure
from kyanite.server.observability import logs
from kyanite.server.processes.process_table import Slot, State

READY = b"ready\n"
BEAT_SECONDS = 0.5

_log = logging.getLogger("kyanite.process")


class ProcessContext:
    """What a process is given beside its configuration: its slot in the roster and its supervisor's ear."""

    def __init__(self, slot: Slot, report: int, parent_death_pipe: int) -> None:
        self.slot = slot
        self._report = report
        self._parent_death_pipe = parent_death_pipe

    def ready(self) -> None:
        self.slot.state = State.SERVING
        os.write(self._report, READY)

    def failed(self, sentence: str) -> None:
        os.write(self._report, sentence.encode("utf-8", "replace")[:4000])

    def watch_parent_death_pipe(self) -> None:
        """End this process when the supervisor is gone. A thread, so that a busy event loop cannot miss it."""
        threading.Thread(target=self._wait_for_end, name="life line", daemon=True).start()

    def _wait_for_end(self) -> None:
        while os.read(self._parent_death_pipe, 1):
            pass
        # Whatever was acknowledged is on disk, so there is nothing to tidy up: this is a crash like any other.
        os._exit(1)

    async def beat(self, each_time: Callable[[], None] | None = None) -> None:
        """Show for ever that the event loop turns, and do what else is due as often."""
        while True:
            self.slot.count_beat()
            if each_time is not None:
                each_time()
            await asyncio.sleep(BEAT_SECONDS)


@dataclass(frozen=True, slots=True)
class Role:
    """One process the supervisor keeps alive. ``work`` returns when the process was told to stop and did."""

    name: str
    work: Callable[[ProcessContext], None]
    listeners: tuple[socket.socket, ...]
    """What it listens on. The others close these, so that a listener is gone when those it belongs to are."""
    uses_store: bool = True
    may_restart: bool = True
    """False for a process whose memory is the store: a successor would be an empty store."""


def live(role: Role, post: ProcessContext, let_go: Callable[[], None], log_level: str) -> NoReturn:
    """Be the process of a role, from just after the fork until the end. ``let_go`` closes what is not for it."""
    code = 1
    try:
        let_go()
        # The terminal sends an interrupt to all processes at once; who stops, and when, is the supervisor's to say.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for name in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        _set_title(role.name)
        logs.configure(log_level, role.name)
        post.slot.take(os.getpid())
        post.watch_parent_death_pipe()
        role.work(post)
        code = 0
    except Failure as failure:
        post.failed(failure.sentence)
    except BaseException:
        _log.critical("process failed", exc_info=True)
    finally:
        os._exit(code)


def _set_title(name: str) -> None:
    """Show in ``ps`` and ``top`` who is who, where the system lets a process rename itself by writing a file."""
    with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as title:
        title.write(f"kyanite {name.replace(' ', '')}")


async def until_stopped() -> None:
    """Wait for the supervisor's word."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
