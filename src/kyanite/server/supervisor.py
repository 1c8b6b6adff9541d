"""The supervisor: starts the processes of a server, keeps them alive, and stops them.

It is one plain loop around ``select`` without threads, without an event loop and without a database, so that it can
fork at any time and has next to nothing to go wrong. It imports what its processes need once and then forks: they
start in milliseconds and share that memory.

What it does about a process:

- *it ended*: start it again, at once the first time, then with growing pauses. If it keeps ending right after its
  start, or says that it cannot serve, give up with its reason.
- *its event loop has not turned for long*, or *it has kept the turn to write for long*: kill it, and so on as above.
- *a commit ended with an unknown outcome*: end all of them, for only who opens the store alone may put it right.
"""

import logging
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from kyanite.engine.board import Turn
from kyanite.server.failures import Failure
from kyanite.server.processes import READY, Post, Role, live
from kyanite.server.roster import Roster, Slot, State

TICK_SECONDS = 1.0
SILENT_TICKS_MAX = 30
"""Heartbeats are looked at once a tick, and counted in ticks: a machine that was suspended blames nobody."""
TURN_TICKS_MAX = 20
START_SECONDS_MAX = 120.0
CLOSE_SECONDS = 5.0
"""What a process gets on top of the bound for what is in flight, to close the store."""
QUICK_SECONDS = 3.0
"""A process that ends sooner than this after its start ended 'right after its start'."""
QUICK_DEATHS_MAX = 5
_PAUSES = (0.0, 0.1, 0.3, 1.0, 2.0)

_log = logging.getLogger("kyanite.supervisor")


@dataclass(slots=True)
class _Process:
    """A role and the process that fills it at present."""

    role: Role
    slot: Slot
    pid: int = 0
    """0 while there is none."""
    report: int = -1
    reason: str = ""
    """Why it cannot serve, in its own words."""
    started_at: float = 0.0
    start_at: float | None = None
    """When to start it (again)."""
    ready: bool = False
    quick_deaths: int = 0
    last_beat: int = -1
    silent_ticks: int = 0


class StoreWatch(Protocol):
    """What the supervisor looks at of the store: a page of shared memory, never the database."""

    @property
    def turn(self) -> Turn | None:
        """Who has the turn to write."""

    @property
    def failed(self) -> bool:
        """Whether the store refuses writes until it has been opened anew."""


@dataclass(slots=True)
class Supervisor:
    roles: Sequence[Role]
    roster: Roster
    listeners: Sequence[socket.socket]
    stop_seconds: float
    log_level: str
    announce: Callable[[], None]
    """Called once, when every process serves."""
    keep_as_worker: Callable[[], None] = lambda: None
    """Called in each new process, to let go of what is the supervisor's alone."""
    store_watch: StoreWatch | None = None
    _processes: list[_Process] = field(default_factory=list, init=False)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector, init=False)
    _wake: tuple[socket.socket, socket.socket] = field(default_factory=socket.socketpair, init=False)
    _life_line: tuple[int, int] = field(default_factory=os.pipe, init=False)
    _signals: int = field(default=0, init=False)
    _stop_at: float | None = field(default=None, init=False)
    """When a stop that has begun turns into a kill."""
    _announced: bool = field(default=False, init=False)
    _failure: Failure | None = field(default=None, init=False)
    _reopening: bool = field(default=False, init=False)
    """All who use the store are being ended, and none is started before the last is gone."""
    _turn: Turn | None = field(default=None, init=False)
    _turn_ticks: int = field(default=0, init=False)

    def run(self) -> None:
        """Serve until told to stop. Raises a Failure when it has to give up."""
        self._listen_to_signals()
        now = time.monotonic()
        self._processes = [_Process(role, self.roster.slots[role.name], start_at=now) for role in self.roles]
        next_tick = now + TICK_SECONDS
        while True:
            self._start_due()
            if self._stop_at is not None and not any(process.pid for process in self._processes):
                break
            self._selector_turn(next_tick)
            self._reap()
            self._obey_signals()
            if time.monotonic() >= next_tick:
                self._tick()
                next_tick = time.monotonic() + TICK_SECONDS
        if self._failure is not None:
            raise self._failure

    def _listen_to_signals(self) -> None:
        for end in self._wake:
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake[1].fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_stop_signal)
        signal.signal(signal.SIGINT, self._on_stop_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._selector.register(self._wake[0], selectors.EVENT_READ)

    def _on_stop_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    def _obey_signals(self) -> None:
        if self._signals >= 2:
            self._stop_at = time.monotonic()
        if self._signals and self._stop_at is None:
            self._begin_stop()
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            self._kill_all()

    # Starting

    def _start_due(self) -> None:
        now = time.monotonic()
        if self._reopening and not any(process.pid for process in self._processes if process.role.uses_store):
            self._reopening = False
        for process in self._processes:
            if (
                process.start_at is None
                or process.start_at > now
                or (self._reopening and process.role.uses_store)
            ):
                continue
            self._start(process)

    def _start(self, process: _Process) -> None:
        reading, writing = os.pipe()
        # A signal between the fork and the child's own handlers would run the supervisor's handlers in the child.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
        try:
            pid = os.fork()
            if pid == 0:
                process.report = reading
                live(
                    process.role,
                    Post(process.slot, writing, self._life_line[0]),
                    self._let_go,
                    self.log_level,
                )
        except OSError as error:
            _log.error("cannot start a process", extra={"why": error.strerror})
            process.start_at = time.monotonic() + TICK_SECONDS
            os.close(reading)
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            os.close(writing)
        os.set_blocking(reading, False)
        process.pid, process.report, process.reason = pid, reading, ""
        process.started_at, process.start_at = time.monotonic(), None
        process.ready, process.last_beat, process.silent_ticks = False, -1, 0
        self._selector.register(reading, selectors.EVENT_READ, process)

    def _let_go(self) -> None:
        """In a new process: close what belongs to the supervisor, so that its end is seen as such."""
        signal.set_wakeup_fd(-1)
        self._selector.close()
        for end in self._wake:
            end.close()
        for sibling in self._processes:
            if sibling.report >= 0:
                os.close(sibling.report)
        os.close(self._life_line[1])
        self.keep_as_worker()

    # Watching

    def _selector_turn(self, next_tick: float) -> None:
        now = time.monotonic()
        wanted = [next_tick]
        if not self._reopening:
            wanted += [process.start_at for process in self._processes if process.start_at is not None]
        if self._stop_at is not None:
            wanted.append(self._stop_at)
        for key, _ in self._selector.select(max(0.0, min(wanted) - now)):
            if key.data is None:
                self._wake[0].recv(4096)
            else:
                self._hear(key.data)

    def _hear(self, process: _Process) -> None:
        """Read what a process reports: that it is ready, or why it cannot serve."""
        said = os.read(process.report, 4096)
        if not said:
            self._close_report(process)
        elif said == READY:
            process.ready = True
            _log.info("process ready", extra={"of": process.role.name, "pid": process.pid})
            self._announce_if_all_ready()
        else:
            process.reason = said.decode("utf-8", "replace")

    def _announce_if_all_ready(self) -> None:
        if not self._announced and all(process.ready for process in self._processes):
            self._announced = True
            self.announce()

    def _close_report(self, process: _Process) -> None:
        if process.report >= 0:
            self._selector.unregister(process.report)
            os.close(process.report)
            process.report = -1

    def _reap(self) -> None:
        for process in self._processes:
            if process.pid:
                pid, status = os.waitpid(process.pid, os.WNOHANG)
                if pid:
                    self._bury(process, _in_words(status))

    def _bury(self, process: _Process, how: str) -> None:
        if process.report >= 0:
            self._hear(process)
            self._close_report(process)
        lived = time.monotonic() - process.started_at
        _log.log(
            logging.INFO if self._stop_at is not None else logging.ERROR,
            "process ended",
            extra={"of": process.role.name, "pid": process.pid, "how": process.reason or how},
        )
        process.pid = 0
        process.slot.leave()
        if self._stop_at is None:
            self._succeed(process, how, quick=lived < QUICK_SECONDS)

    def _succeed(self, process: _Process, how: str, *, quick: bool) -> None:
        """Plan a successor for a process that ended unasked, or give up."""
        process.quick_deaths = process.quick_deaths + 1 if quick else 0
        name = process.role.name.capitalize()
        if process.reason and not self._announced:
            self._give_up(process.reason)
        elif not process.role.may_restart:
            self._give_up(f"{name}, whose memory was the store, {process.reason or how}.")
        elif process.quick_deaths >= QUICK_DEATHS_MAX:
            last = process.reason or f"The last time it {how}."
            self._give_up(f"{name} ended {QUICK_DEATHS_MAX} times right after its start. {last}")
        else:
            process.start_at = (
                time.monotonic() + _PAUSES[min(process.quick_deaths, len(_PAUSES)) - 1 if quick else 0]
            )

    def _tick(self) -> None:
        now = time.monotonic()
        for process in self._processes:
            if not process.pid:
                continue
            if not process.ready:
                if now - process.started_at > START_SECONDS_MAX:
                    self._end(process, "did not become ready")
            elif process.slot.beat == process.last_beat:
                process.silent_ticks += 1
                if process.silent_ticks >= SILENT_TICKS_MAX and self._stop_at is None:
                    self._end(process, "stopped answering")
            else:
                process.last_beat, process.silent_ticks = process.slot.beat, 0
        if self.store_watch is not None and self._stop_at is None:
            self._watch_store(self.store_watch)

    def _watch_store(self, store: StoreWatch) -> None:
        turn = store.turn
        self._turn_ticks = self._turn_ticks + 1 if turn is not None and turn == self._turn else 0
        self._turn = turn
        for process in self._processes:
            if not process.pid:
                continue
            # A process that died in its turn leaves its number behind, and a successor may get the same one.
            own_turn = (
                turn is not None and turn.pid == process.pid and turn.since_ns >= process.started_at * 1e9
            )
            if own_turn and self._turn_ticks >= TURN_TICKS_MAX:
                self._end(process, "kept the turn to write for too long")
            elif store.failed and process.role.uses_store and process.ready:
                self._reopening = True
                self._end(process, "the outcome of a commit is unknown, so the store has to be opened anew")

    def _end(self, process: _Process, why: str) -> None:
        _log.error("process killed", extra={"of": process.role.name, "pid": process.pid, "why": why})
        os.kill(process.pid, signal.SIGKILL)

    # Stopping

    def _give_up(self, sentence: str) -> None:
        self._failure = Failure(sentence)
        self._begin_stop()

    def _begin_stop(self) -> None:
        _log.info("stopping")
        for listener in self.listeners:
            listener.close()
        self._stop_at = time.monotonic() + self.stop_seconds + CLOSE_SECONDS
        for process in self._processes:
            process.start_at = None
            if process.pid:
                process.slot.state = State.STOPPING
                os.kill(process.pid, signal.SIGTERM)

    def _kill_all(self) -> None:
        self._stop_at = time.monotonic() + TICK_SECONDS
        for process in self._processes:
            if process.pid:
                os.kill(process.pid, signal.SIGKILL)


def _in_words(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
