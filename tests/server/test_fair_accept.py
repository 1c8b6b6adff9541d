"""Fair accepting: which process waits, for how long, and for which it does not wait."""

import asyncio
import errno
import os
import socket
from collections.abc import Iterator

import pytest

from kyanite.server import fair_accept
from kyanite.server.fair_accept import PAUSES_SECONDS, FairAccept
from kyanite.server.processes.process_table import ProcessTable, Slot, State


class Listener(socket.socket):
    """A listening socket that fails on command."""

    failures: list[int]

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            number = self.failures.pop()
            raise OSError(number, os.strerror(number))
        return super().accept()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as made:
        made.failures = []
        made.bind(("127.0.0.1", 0))
        made.listen()
        made.setblocking(False)
        yield made


def slots(own: int, other: int, state: State) -> tuple[Slot, Slot]:
    first, second = ProcessTable(["own", "other"]).slots.values()
    first.connections, second.connections = own, other
    first.state, second.state = State.SERVING, state
    return first, second


async def steps_back(listener: Listener, own: Slot, other: Slot, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the listener steps back before it takes a connection."""
    accepted: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
    pauses = []
    pause = FairAccept._pause

    def counted(accepting: FairAccept, seconds: float) -> None:
        pauses.append(seconds)
        pause(accepting, seconds)

    monkeypatch.setattr(FairAccept, "_pause", counted)
    accepting = FairAccept(listener, accepted.set_result, own, [other])
    with socket.create_connection(listener.getsockname()):
        async with asyncio.timeout(30):
            (await accepted).close()
    accepting.close()
    return len(pauses)


@pytest.mark.parametrize(
    ("own", "other", "state", "expected"),
    [
        (0, 0, State.SERVING, 0),
        (3, 3, State.SERVING, 0),
        (3, 4, State.SERVING, 0),
        (3, 2, State.SERVING, len(PAUSES_SECONDS)),
        (3, 2, State.GONE, 0),
        (3, 2, State.STARTING, 0),
        (3, 2, State.STOPPING, 0),
    ],
)
def test_stepping_back(
    own: int, other: int, state: State, expected: int, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other process accepts the connection here, so in the end it is accepted all the same."""
    pair = slots(own, other, state)
    assert asyncio.run(steps_back(listener, *pair, monkeypatch)) == expected


@pytest.mark.parametrize("failure", [errno.ECONNABORTED, errno.EAGAIN, errno.EMFILE, errno.ENOBUFS])
def test_accepting_goes_on_after_a_failure(
    failure: int, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_accept, "_EXHAUSTED_SECONDS", 0.01)
    listener.failures = [failure]
    pair = slots(0, 0, State.SERVING)
    assert asyncio.run(steps_back(listener, *pair, monkeypatch)) == (failure in (errno.EMFILE, errno.ENOBUFS))
    assert listener.failures == []


def test_nothing_is_accepted_after_close(listener: Listener) -> None:
    async def close_while_stepping_back() -> list[socket.socket]:
        accepted: list[socket.socket] = []
        accepting = FairAccept(listener, accepted.append, *_pair())
        with socket.create_connection(listener.getsockname()):
            await asyncio.sleep(0)
            accepting.close()
            await asyncio.sleep(0.05)
        return accepted

    def _pair() -> tuple[Slot, list[Slot]]:
        own, other = slots(1, 0, State.SERVING)
        return own, [other]

    assert asyncio.run(close_while_stepping_back()) == []
    assert listener.fileno() == -1
