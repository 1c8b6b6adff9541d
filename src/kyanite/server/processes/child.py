"""A process as the supervisor handles it: started, read from, checked by its heartbeat, and reaped."""

import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from kyanite.server.processes.process import READY, ProcessContext, Role, live
from kyanite.server.processes.process_table import Slot, State

SILENT_TICKS_MAX = 30
"""Counted in ticks of the supervisor and not in seconds, so that a suspended machine kills no process."""
STOPPED_TICKS_MAX = 2
START_SECONDS_MAX = 120.0

_log = logging.getLogger("kyanite.supervisor")


def waits_for_disk(pid: int) -> bool:
    """Whether a thread of the process waits for a device at this moment, as far as the system tells."""
    with suppress(OSError), os.scandir(f"/proc/{pid}/task") as threads:
        for thread in threads:
            with suppress(OSError), open(f"{thread.path}/stat", encoding="latin-1") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "D":
                    return True
    return False


class Child:
    """A role and the process that runs it at present."""

    def __init__(self, role: Role, slot: Slot) -> None:
        self.role = role
        self.slot = slot
        self.pid = 0
        """0 while there is none."""
        self.report = -1
        """The pipe on which the process reports that it is ready, or why it cannot serve; -1 when it is closed."""
        self.ready = False
        self.reason = ""
        """Why it cannot serve, in its own words."""
        self.started_at = 0.0
        self.start_at: float | None = time.monotonic()
        """When to start it (again)."""
        self.quick_deaths = 0
        """How often in a row it ended soon after its start."""
        self.stillborn = 0
        """How often in a row it ended before it was ready."""
        self._last_beat = -1
        self._silent_ticks = 0
        self._is_stopped = False
        self._stopped_ticks = 0

    def start(
        self, parent_death_pipe: int, close_inherited: Callable[["Child"], None], log_level: str
    ) -> bool:
        """Fork. Returns False, having done nothing, if the system refuses another process."""
        reading, writing = os.pipe()
        # A signal between the fork and the child's own handlers would run the supervisor's handlers in the child.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
        try:
            pid = os.fork()
            if pid == 0:
                self.report = reading
                live(
                    self.role,
                    ProcessContext(self.slot, writing, parent_death_pipe),
                    lambda: close_inherited(self),
                    log_level,
                )
        except OSError as error:
            _log.error("cannot start a process", extra={"of": self.role.name, "why": error.strerror})
            os.close(reading)
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            os.close(writing)
        self.pid, self.report, self.reason, self.ready = pid, reading, "", False
        self.started_at, self.start_at = time.monotonic(), None
        self._last_beat, self._silent_ticks = -1, 0
        self._is_stopped, self._stopped_ticks = False, 0
        return True

    def read_report(self) -> None:
        """Read what the process reports; waits if there is nothing yet."""
        text = os.read(self.report, 4096)
        if text == READY:
            self.ready = True
            _log.debug("process ready", extra={"of": self.role.name, "pid": self.pid})
        elif text:
            self.reason = text.decode("utf-8", "replace")
        else:
            self._close_report()

    def reap(self, *, wait: bool = False) -> str | None:
        """How the process ended; None if it still runs, or has been stopped by a signal and may go on."""
        pid, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if not pid:
            return None
        if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
            self._is_stopped, self._stopped_ticks = os.WIFSTOPPED(status), 0
            return self.reap()
        while self.report >= 0:
            self.read_report()
        self.pid = 0
        self.slot.leave()
        code = os.waitstatus_to_exitcode(status)
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def complaint(self) -> str | None:
        """Why a running process should be killed, if it should. To be called once a tick.

        A process that a signal has stopped may have any of the locks that the others wait for, so it is not waited for
        long. One that waits for a slow disk is not stopped, and the time that it waits does not count.
        """
        if self._is_stopped:
            self._stopped_ticks += 1
            return "was stopped by a signal" if self._stopped_ticks >= STOPPED_TICKS_MAX else None
        if not self.ready:
            return "did not become ready" if self.lived_seconds > START_SECONDS_MAX else None
        if self.slot.beat != self._last_beat:
            self._last_beat, self._silent_ticks = self.slot.beat, 0
            return None
        if not waits_for_disk(self.pid):
            self._silent_ticks += 1
        return "stopped answering" if self._silent_ticks >= SILENT_TICKS_MAX else None

    @property
    def lived_seconds(self) -> float:
        return time.monotonic() - self.started_at

    def stop(self) -> None:
        """Send the signal to finish and exit."""
        self.slot.state = State.STOPPING
        os.kill(self.pid, signal.SIGTERM)

    def kill(self, why: str) -> None:
        _log.error("process killed", extra={"of": self.role.name, "pid": self.pid, "why": why})
        os.kill(self.pid, signal.SIGKILL)

    def _close_report(self) -> None:
        os.close(self.report)
        self.report = -1
