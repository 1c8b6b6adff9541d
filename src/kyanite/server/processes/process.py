"""A process of the server other than the supervisor: how it begins, what it reports, and how it ends.

A role (a worker, the admin process) is a function of a ``ProcessContext``. The supervisor forks and calls ``live``,
which never returns into the supervisor's code. The process reports ``ready`` once it serves, or why it cannot, through
a pipe that the supervisor reads. A second pipe, the parent-death pipe, carries nothing. Its writing end is open in the
supervisor only, so when the supervisor is killed every process reads an end of file and exits, even if its event loop
is busy.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import msgspec

from kyanite.server.failures import Failure
from kyanite.server.observability import logs
from kyanite.server.processes.process_table import Slot, State

READY = b"ready\n"
BEAT_SECONDS = 0.5

_log = logging.getLogger("kyanite.process")


class ProcessContext:
    """What a process gets beside its configuration: its slot in the process table and its pipes to the supervisor."""

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
        """Exit when the supervisor is gone. A thread does this, so that a busy event loop cannot delay it."""
        threading.Thread(target=self._wait_for_end, name="parent-death pipe", daemon=True).start()

    def _wait_for_end(self) -> None:
        while os.read(self._parent_death_pipe, 1):
            pass
        # Whatever was acknowledged is on disk, so this is as safe as any other crash.
        os._exit(1)

    async def beat(self, each_time: Callable[[], None] | None = None) -> None:
        """Count heartbeats while the event loop runs, and call ``each_time`` as often."""
        while True:
            self.slot.count_beat()
            if each_time is not None:
                each_time()
            await asyncio.sleep(BEAT_SECONDS)


class Role(msgspec.Struct, frozen=True):
    """One process that the supervisor keeps alive. ``work`` returns when the process has stopped."""

    name: str
    work: Callable[[ProcessContext], None]
    listeners: tuple[socket.socket, ...]
    """The sockets it accepts on. Other processes close them, so that they end with the processes that use them."""
    uses_store: bool = True
    may_restart: bool = True
    """False for a process whose memory is the store: a successor would be an empty store."""


def live(
    role: Role, context: ProcessContext, close_inherited: Callable[[], None], log_level: str
) -> NoReturn:
    """Run a role, from just after the fork until the process exits.

    ``close_inherited`` closes what the process inherited and must not keep.
    """
    code = 1
    try:
        close_inherited()
        gc.enable()
        # A terminal sends SIGINT to every process of the group; only the supervisor acts on it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for name in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        _set_title(role.name)
        logs.configure(log_level, role.name)
        context.slot.take(os.getpid())
        context.watch_parent_death_pipe()
        role.work(context)
        code = 0
    except Failure as failure:
        context.failed(failure.sentence)
    except BaseException:
        _log.critical("process failed", exc_info=True)
    finally:
        os._exit(code)


def _set_title(name: str) -> None:
    """Show the role in ``ps`` and ``top``, where the system lets a process rename itself."""
    with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as title:
        title.write(f"kyanite {name.replace(' ', '')}")


async def until_stopped() -> None:
    """Wait until the supervisor sends SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
