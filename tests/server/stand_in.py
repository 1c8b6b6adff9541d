"""The server with a stand-in for the blob service, which does on request what a test of processes needs.

Run as a program it takes the options of ``kyanite``. The worker that answers says its process id in ``X-Pid``.
"""

import asyncio
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs

import msgspec

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.sqlite.write_lock import WriteLock
from kyanite.server.cli import main
from kyanite.server.processes import child, supervisor
from kyanite.server.service_table import SERVICES, Factory
from kyanite.server.store import upgrades
from kyanite.services.rest.environment import Environment
from kyanite.wire.http import Request, Response

_CLONE_VFORK = 0x4000

PROGRAM = (sys.executable, "-P", __file__, "serve")


class StandIn:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._engine = next(iter(environment.accounts.values())).store.engine
        self._engine_folder = Path(os.environ.get("STAND_IN_STORE", "")) / "engine"
        if "STAND_IN_DIES" in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)

    async def __call__(self, request: Request) -> Response:
        request.operation = "Stand In"
        request.account = "devstoreaccount1"
        request.request_id = self._environment.fresh_guid()
        action = request.path.rpartition("/")[2]
        arguments = {name: values[0] for name, values in parse_qs(request.query).items()}
        body = await self._act(action, arguments, request)
        return Response(200, [("X-Pid", str(os.getpid()))], body, length=None)

    async def _act(
        self, action: str, arguments: dict[str, str], request: Request
    ) -> bytes | AsyncIterator[bytes]:
        match action:
            case "sleep":
                await asyncio.sleep(float(arguments["seconds"]))
            case "block":
                time.sleep(float(arguments["seconds"]))
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "drip":
                return self._drip(int(arguments["pieces"]))
            case "keep-write-lock":
                WriteLock(self._engine_folder, SharedState(self._engine_folder)).acquire()
            case "wait-for-disk":
                threading.Thread(target=_wait_as_for_a_disk, args=(int(arguments["seconds"]),)).start()
            case "fail-store":
                SharedState(self._engine_folder).fail()
            case "put":
                value = await request.body.read_all(1000) or b""
                await self._engine.run(lambda tx: _put(tx, value))
            case "get":
                return await self._engine.read(_get)
        return action.encode()

    async def _drip(self, pieces: int) -> AsyncIterator[bytes]:
        for _ in range(pieces):
            yield b"drop"
            await asyncio.sleep(0.05)


def _wait_as_for_a_disk(seconds: int) -> None:
    """Wait in the state that the system calls uninterruptible: for a child of its own that has not ended yet.

    The child runs a function of the C library, and nothing of Python: another thread may have had its lock at the fork.
    """
    library, stack = ctypes.CDLL(None), ctypes.create_string_buffer(64 * 1024)
    top = ctypes.c_void_p((ctypes.addressof(stack) + len(stack)) & ~15)
    library.clone(library.sleep, top, _CLONE_VFORK | signal.SIGCHLD, ctypes.c_void_p(seconds))


def _put(tx: Transaction, value: bytes) -> None:
    tx.put(b"stand-in", value)


def _get(snapshot: Snapshot) -> bytes:
    return snapshot.get(b"stand-in") or b""


def _slow_step(tx: Transaction, cursor: bytes) -> bytes | None:
    """Takes a second for each of three calls, and counts them."""
    time.sleep(1)
    _put(tx, (tx.get(b"stand-in") or b"") + b"+")
    return None if cursor == b"??" else cursor + b"?"


def _load() -> Factory:
    return StandIn


if __name__ == "__main__":
    if "STAND_IN_IMPATIENT" in os.environ:
        supervisor.TICK_SECONDS = 0.2
        child.SILENT_TICKS_MAX = supervisor.WRITE_LOCK_TICKS_MAX = 8
    if "STAND_IN_PATIENT" in os.environ:
        child.STOPPED_TICKS_MAX = 100
    if "STAND_IN_SLOW_UPGRADE" in os.environ:
        upgrades.UPGRADES = (upgrades.Upgrade(2, "a slow step", _slow_step),)
    SERVICES["blob"] = msgspec.structs.replace(SERVICES["blob"], load=_load)
    main()
