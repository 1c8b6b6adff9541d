"""The supervisor: starts the processes of a server, keeps them alive, and stops them.

It is one plain loop around ``poll``, without threads, an event loop or a database, so that it can fork at any time and
little can go wrong. It imports what its processes need once and then forks: they start in milliseconds and share that
memory.

What it does when

- *a process ended*: it starts the process again, immediately the first time, then after growing pauses. If a process
  keeps ending before it is ready, or reports at the start that it cannot serve, the supervisor stops with that reason.
- *an event loop has not run for long*, or *a process has held the write lock for long*: it kills that process, which
  is then started again as above. While the process waits for a disk, that does not count.
- *a signal has stopped a process*: it kills that process after two ticks, because others may wait for its locks.
- *a commit ended with an unknown outcome*: it kills all processes that use the store, because only a process that
  opens the store alone can repair it.
"""

import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from types import FrameType

from kyanite.server.failures import Failure
from kyanite.server.processes import child as child_process
from kyanite.server.processes.child import Child
from kyanite.server.processes.process import Role
from kyanite.server.processes.process_table import ProcessTable
from kyanite.server.store.api import StoreWatch, WriteLockHolder

TICK_SECONDS = 1.0
WRITE_LOCK_TICKS_MAX = 20
CLOSE_SECONDS = 5.0
"""How long a process may take to close the store, after the time for requests in flight is over."""
QUICK_SECONDS = 3.0
PAUSES_SECONDS = (0.0, 0.1, 0.3, 1.0)
"""The pause before a process is started again, by how often it has ended within QUICK_SECONDS of its start."""
STILLBORN_MAX = 5
"""How often in a row a process may end before it is ready."""

_log = logging.getLogger("kyanite.supervisor")


class Supervisor:
    def __init__(
        self,
        roles: Sequence[Role],
        process_table: ProcessTable,
        *,
        stop_seconds: float,
        drain_seconds: float = 0.0,
        log_level: str,
        announce: Callable[[], None],
        keep_as_worker: Callable[[], None],
        store_watch: StoreWatch | None,
    ) -> None:
        """``announce`` is called once, when every process serves; ``keep_as_worker`` in each new process, to close what
        belongs to the supervisor alone.
        """
        self._children = [Child(role, process_table.slots[role.name]) for role in roles]
        self._stop_seconds = stop_seconds
        self._drain_seconds = drain_seconds
        self._log_level = log_level
        self._announce = announce
        self._keep_as_worker = keep_as_worker
        self._store_watch = store_watch
        self._listeners = {listener for role in roles for listener in role.listeners}
        self._wake, self._waker = socket.socketpair()
        self._parent_death_pipe = os.pipe()
        self._signals = 0
        self._stop_at: float | None = None
        """When a server that is being drained begins to stop; None while it is not."""
        self._kill_at: float | None = None
        """When a stop that has begun becomes a kill; None while there is no stop."""
        self._announced = False
        self._failure: Failure | None = None
        self._reopening = False
        """All processes that use the store are being killed, and none starts before the last has ended."""
        self._write_lock_holder: WriteLockHolder | None = None
        self._write_lock_ticks = 0

    def run(self) -> None:
        """Serve until a signal asks to stop. Raises a Failure when serving cannot go on."""
        self._handle_signals()
        next_tick = time.monotonic() + TICK_SECONDS
        while self._kill_at is None or any(child.pid for child in self._children):
            self._start_due()
            self._wait(next_tick)
            self._announce_if_all_ready()
            self._reap()
            self._obey_signals()
            if time.monotonic() >= next_tick:
                self._tick()
                next_tick = time.monotonic() + TICK_SECONDS
        if self._failure is not None:
            raise self._failure
        _log.info("stopped")

    def _handle_signals(self) -> None:
        for end in (self._wake, self._waker):
            end.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_stop_signal)
        signal.signal(signal.SIGINT, self._on_stop_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)

    def _on_stop_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    def _obey_signals(self) -> None:
        """The first signal begins a stop, the next one kills what has not stopped yet.

        A server that is to be drained first serves on for a while. Another signal ends that.
        """
        signals, self._signals = self._signals, 0
        if signals and self._kill_at is None and self._stop_at is None and self._drain_seconds:
            self._begin_drain()
            signals -= 1
        is_drained = self._stop_at is not None and time.monotonic() >= self._stop_at
        if self._kill_at is None and (signals or is_drained):
            self._begin_stop()
            signals -= 1
        if self._kill_at is not None and (signals > 0 or time.monotonic() >= self._kill_at):
            self._kill_all()

    # Starting

    def _start_due(self) -> None:
        if self._reopening and not any(child.pid for child in self._children if child.role.uses_store):
            self._reopening = False
        for child in self._children:
            if self._may_start(child) and not child.start(
                self._parent_death_pipe[0], self._close_inherited, self._log_level
            ):
                child.start_at = time.monotonic() + TICK_SECONDS

    def _may_start(self, child: Child) -> bool:
        if child.start_at is None or child.start_at > time.monotonic():
            return False
        return not (self._reopening and child.role.uses_store)

    def _close_inherited(self, child: Child) -> None:
        """In a new process: close what belongs to the supervisor and to other processes, so that it ends with them."""
        signal.set_wakeup_fd(-1)
        self._wake.close()
        self._waker.close()
        for other in self._children:
            if other.report >= 0:
                os.close(other.report)
        for listener in self._listeners.difference(child.role.listeners):
            listener.close()
        os.close(self._parent_death_pipe[1])
        self._keep_as_worker()

    # Watching

    def _wait(self, next_tick: float) -> None:
        """Wait until a signal arrives, a process reports, or something is due."""
        due = [next_tick]
        if not self._reopening:
            due += [child.start_at for child in self._children if child.start_at is not None]
        due += [at for at in (self._stop_at, self._kill_at) if at is not None]
        reports = {child.report: child for child in self._children if child.report >= 0}
        poll = select.poll()
        for descriptor in (self._wake.fileno(), *reports):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(max(0.0, min(due) - time.monotonic()) * 1000):
            if descriptor in reports:
                reports[descriptor].read_report()
            else:
                self._wake.recv(4096)

    def _announce_if_all_ready(self) -> None:
        if not self._announced and self._kill_at is None and all(child.ready for child in self._children):
            self._announced = True
            self._announce()

    def _reap(self) -> None:
        for child in self._children:
            pid, how = child.pid, child.reap() if child.pid else None
            if how is None:
                continue
            if self._kill_at is None:
                self._replace(child, how)
            level = logging.DEBUG if self._kill_at is not None else logging.ERROR
            _log.log(
                level, "process ended", extra={"of": child.role.name, "pid": pid, "how": child.reason or how}
            )

    def _replace(self, child: Child, how: str) -> None:
        """Plan a successor for a process that ended unexpectedly, or stop the server."""
        child.quick_deaths = child.quick_deaths + 1 if child.lived_seconds < QUICK_SECONDS else 0
        child.stillborn = 0 if child.ready else child.stillborn + 1
        name = child.role.name.capitalize()
        if child.reason and not self._announced:
            self._stop_with(child.reason)
        elif not child.role.may_restart:
            self._stop_with(f"{name}, whose memory was the store, {how}.")
        elif child.stillborn >= STILLBORN_MAX:
            last = child.reason or f"The last time it {how}."
            self._stop_with(f"{name} ended {child.stillborn} times before it was ready. {last}")
        else:
            pause = min(child.quick_deaths, len(PAUSES_SECONDS)) - 1
            child.start_at = time.monotonic() + PAUSES_SECONDS[max(0, pause)]

    def _tick(self) -> None:
        if self._kill_at is not None:
            return
        for child in self._children:
            if child.pid and (why := child.complaint()):
                child.kill(why)
        if self._store_watch is not None:
            self._watch_write_lock(self._store_watch.write_lock_holder())
            if self._store_watch.is_outcome_unknown():
                self._reopen_store()

    def _watch_write_lock(self, holder: WriteLockHolder | None) -> None:
        if holder is None or holder != self._write_lock_holder:
            self._write_lock_ticks = 0
        elif not child_process.waits_for_disk(holder.pid):
            self._write_lock_ticks += 1
        self._write_lock_holder = holder
        if holder is None or self._write_lock_ticks < WRITE_LOCK_TICKS_MAX:
            return
        for child in self._children:
            # A process that died with the lock is still named, and a successor may get the same process id.
            if child.pid == holder.pid and holder.since_ns >= child.started_at * 1e9:
                child.kill("held the write lock for too long")

    def _reopen_store(self) -> None:
        """Kill the processes that use the store, but those that are not ready yet: they may be repairing it."""
        for child in self._children:
            if child.pid and child.ready and child.role.uses_store:
                self._reopening = True
                child.kill("the outcome of a commit is unknown, so the store has to be reopened")

    # Stopping

    def _stop_with(self, sentence: str) -> None:
        self._failure = Failure(sentence)
        self._begin_stop()

    def _begin_drain(self) -> None:
        _log.info("draining", extra={"seconds": self._drain_seconds})
        self._stop_at = time.monotonic() + self._drain_seconds
        for child in self._children:
            child.slot.drain()

    def _begin_stop(self) -> None:
        self._stop_at = None
        if self._announced:
            _log.info("stopping")
        self._kill_at = time.monotonic() + self._stop_seconds + CLOSE_SECONDS
        for listener in self._listeners:
            listener.close()
        for child in self._children:
            child.start_at = None
            if child.pid:
                child.stop()

    def _kill_all(self) -> None:
        self._kill_at = time.monotonic() + TICK_SECONDS
        for child in self._children:
            if child.pid:
                child.kill("did not stop in time")
