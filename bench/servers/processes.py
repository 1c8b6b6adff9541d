"""What the kernel says about a server's processes: who they are, the memory and the processor time they use.

Memory is given twice. RSS counts a shared page in every process that maps it, PSS divides it among them, so
PSS may be added up over the processes of a server and RSS may not.
"""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Memory:
    """One process. ``peak_kib`` is the highest RSS it ever had."""

    pid: int
    name: str
    rss_kib: int
    pss_kib: int
    peak_kib: int


def family(root: int) -> list[int]:
    """The process and all its descendants, parents first."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


@dataclass(frozen=True, slots=True)
class Spent:
    """Processor time, in the program itself and in the kernel on its behalf."""

    user_seconds: float = 0.0
    system_seconds: float = 0.0

    def since(self, earlier: "Spent") -> "Spent":
        user = self.user_seconds - earlier.user_seconds
        return Spent(user, self.system_seconds - earlier.system_seconds)


def spent(pids: list[int]) -> Spent:
    """What these processes have used up to now."""
    user = system = 0
    for pid in pids:
        if fields := _stat(pid):
            user += int(fields[11])
            system += int(fields[12])
    return Spent(user / _TICKS_PER_SECOND, system / _TICKS_PER_SECOND)


def memory(pids: list[int]) -> list[Memory]:
    """The memory of each process; those that have ended are left out."""
    found = []
    for pid in pids:
        try:
            status = _fields(_PROC / str(pid) / "status")
            rollup = _fields(_PROC / str(pid) / "smaps_rollup")
        except OSError:
            continue
        if "VmRSS" in status:
            memory = Memory(
                pid, status["Name"], _kib(rollup["Rss"]), _kib(rollup["Pss"]), _kib(status["VmHWM"])
            )
            found.append(memory)
    return found


def kill(pid: int) -> None:
    """Kill a process, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on (state), or nothing when the process is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _fields(path: Path) -> dict[str, str]:
    lines = (line.partition(":") for line in path.read_text().splitlines())
    return {name: value.strip() for name, _, value in lines}


def _kib(value: str) -> int:
    return int(value.removesuffix(" kB"))
