"""What is no matter of load: the time of a start, memory and size of an idle server, and what a crash costs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import sleep

from bench.durability import lost_percent
from bench.load.works import MIB
from bench.servers import installs, processes
from bench.servers.peers import KINDS, Server

IDLE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Reading:
    value: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Gauge:
    """``read`` is given the name of the peer and a folder that does not exist yet."""

    name: str
    title: str
    unit: str
    read: Callable[[str, Path], Reading]
    once: bool = False
    """Whether a second reading could not differ."""
    slow: bool = False
    """Whether a quick run leaves it out."""


def _start(peer: str, folder: Path) -> Reading:
    server = KINDS[peer](folder)
    try:
        return Reading(server.start())
    finally:
        server.stop()


def _idle_memory(peer: str, folder: Path) -> Reading:
    server = KINDS[peer](folder)
    try:
        server.start()
        sleep(IDLE_SECONDS)
        return Reading(*memory_of(server))
    finally:
        server.stop()


def memory_of(server: Server) -> tuple[float, str]:
    """MiB that a server's processes use together (PSS), and the share of each in words."""
    each = processes.memory(server.pids)
    words = ", ".join(f"{one.name} {one.pss_kib / 1024:.0f} (RSS {one.rss_kib / 1024:.0f})" for one in each)
    return sum(one.pss_kib for one in each) / 1024, f"{server.name}: {words}"


def _lost(peer: str, folder: Path) -> Reading:
    server = KINDS[peer](folder)
    try:
        return Reading(*lost_percent(server))
    finally:
        server.stop()


def _install_size(peer: str, folder: Path) -> Reading:
    if peer == "kyanite":
        return Reading(installs.kyanite_size() / MIB)
    node = installs.size_of(installs.node().parent.parent) / MIB
    return Reading(installs.size_of(installs.azurite()) / MIB, f"azurite: and {node:.0f} MiB for its Node")


GAUGES: tuple[Gauge, ...] = (
    Gauge("start", "start to first answer", " s", _start),
    Gauge("idle", "idle memory, all processes", " MiB", _idle_memory),
    Gauge("lost", "acknowledged puts lost by kill -9", " %", _lost),
    Gauge("install", "install size, without Python or Node", " MiB", _install_size, once=True, slow=True),
)
