"""Several processes, one store: all see what one has committed, the write lock is fair, and a death harms no other."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.engine.sqlite.shared_state import SharedState
from tests.engine.sqlite import store_process
from tests.engine.sqlite.store_process import Worker
from tests.engine.suite import counter_value, everything

PATIENCE_SECONDS = 30


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Worker]]:
    """Starts workers on one store, and sees to it that none is left behind."""
    started: list[Worker] = []

    def start_one(name: str) -> Worker:
        started.append(Worker(tmp_path / "store", name))
        return started[-1]

    yield start_one
    for one in started:
        with suppress(ProcessLookupError, OSError):
            one.kill()


def stored(folder: Path) -> dict[bytes, bytes]:
    """What a new user of the store finds in it."""

    async def main() -> dict[bytes, bytes]:
        engine = SqliteEngine.open(folder)
        rows = dict(await everything(engine))
        await engine.close()
        return rows

    return uvloop.run(main())


def wait_until(claim: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not claim():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.005)


def wait_for_notes(workers: Iterable[Worker], count: int) -> None:
    wait_until(lambda: all(len(one.noted()) >= count for one in workers))


def test_what_one_committed_all_others_read_at_once(start: Callable[[str], Worker]) -> None:
    workers = [start(f"w{number}") for number in range(3)]
    for step in range(60):
        value = b"%d" % step
        workers[step % 3].call(store_process.put, b"k", value)
        assert [one.call(store_process.get, b"k") for one in workers] == [value] * 3


def test_counters_lose_no_step_and_instants_are_never_shared(
    start: Callable[[str], Worker], tmp_path: Path
) -> None:
    workers = [start(f"w{number}") for number in range(3)]
    for number, one in enumerate(workers):
        one.begin(store_process.count_up, b"own%d" % number, 10, 25)
    instants = [instant for one in workers for instant in one.end()]
    for one in workers:
        one.stop()
    rows = stored(tmp_path / "store")
    assert counter_value(rows[b"shared"]) == 750
    assert [counter_value(rows[b"own%d" % number]) for number in range(3)] == [250] * 3
    assert len(set(instants)) == 750


def test_every_process_gets_the_write_lock(start: Callable[[str], Worker]) -> None:
    """The order is tested in ``test_write_lock.py``; how many transactions each commits depends on the machine."""
    workers = [start(f"w{number}") for number in range(3)]
    for one in workers:
        one.begin(store_process.write_for, 1.0)
    shares = [one.end() for one in workers]
    longest = max(longest for _, longest in shares)
    counts = [count for count, _ in shares]
    print(f"transactions of three processes in a second: {counts}; the longest wait: {longest * 1000:.1f} ms")
    assert min(counts) > 0


def test_a_process_that_dies_with_the_write_lock_harms_no_other(
    start: Callable[[str], Worker], tmp_path: Path
) -> None:
    dying, living = start("dying"), start("living")
    shared_state = SharedState(tmp_path / "store")
    dying.begin(store_process.keep_the_write_lock)
    wait_until(lambda: dying.noted() == ["inside"])
    writer = shared_state.writer
    assert writer is not None
    assert writer.pid == dying.pid
    living.begin(store_process.put, b"k", b"v")
    dying.kill()
    living.end()
    assert living.call(store_process.get, b"k") == b"v"
    assert living.call(store_process.get, b"never") is None
    wait_until(lambda: shared_state.writer is None)
    shared_state.close()


def test_a_process_killed_under_load_loses_nothing_and_the_others_go_on(
    start: Callable[[str], Worker], tmp_path: Path
) -> None:
    others = [start("a"), start("b")]
    for round_number in range(3):
        dying = start(f"dying{round_number}")
        own = b"dying%d" % round_number
        dying.begin(store_process.fill, own, 8)
        for number, one in enumerate(others):
            one.begin(store_process.count_up, b"own%d" % number, 5, 20)
        wait_for_notes([dying], 50 * (round_number + 1))
        dying.kill()
        for one in others:
            one.end()
        check_filled(stored(tmp_path / "store"), own, dying.noted())
    for one in others:
        one.stop()
    assert counter_value(stored(tmp_path / "store")[b"shared"]) == 3 * 2 * 100


def test_all_killed_at_once_lose_nothing_that_was_acknowledged(
    start: Callable[[str], Worker], tmp_path: Path
) -> None:
    for round_number in range(3):
        workers = {b"%d-%d" % (round_number, n): start(f"{round_number}-{n}") for n in range(2)}
        for own, one in workers.items():
            one.begin(store_process.fill, own, 16)
        wait_for_notes(workers.values(), 40 * (round_number + 1))
        for one in workers.values():
            one.kill()
        rows = stored(tmp_path / "store")
        for own, one in workers.items():
            check_filled(rows, own, one.noted())


def check_filled(rows: dict[bytes, bytes], own: bytes, noted: list[str]) -> None:
    """All that was noted is there, and whatever is there is whole."""
    found = {int(key.split(b"/")[1]): value for key, value in rows.items() if key.startswith(own + b"/")}
    assert found.keys() >= {int(number) for number in noted}
    for number, key in found.items():
        assert rows[key] == store_process.content(own, number)


def test_notifications_reach_other_processes(start: Callable[[str], Worker]) -> None:
    listening, ringing = start("listening"), start("ringing")
    for attempt in range(2):
        listening.begin(store_process.subscribe, b"topic", 2)
        for notifications in range(2):
            wait_for_notes([listening], 3 * attempt + 1 + notifications)
            ringing.call(store_process.notify, b"another topic")
            ringing.call(store_process.notify, b"topic")
        assert listening.end() == 2


def test_the_pipe_of_a_dead_process_is_removed(start: Callable[[str], Worker], tmp_path: Path) -> None:
    dying, ringing = start("dying"), start("ringing")
    dying.begin(store_process.subscribe, b"topic", 1000)
    wait_until(lambda: dying.noted() == ["listening"])
    ringing.call(store_process.notify, b"topic")
    wait_until(lambda: "heard" in dying.noted())
    pipes = tmp_path / "store" / "bells"
    assert len(list(pipes.iterdir())) == 1
    dying.kill()
    ringing.call(store_process.notify, b"topic")
    assert list(pipes.iterdir()) == []
    ringing.call(store_process.notify, b"topic")


def test_another_process_takes_the_checkpoints_over(start: Callable[[str], Worker], tmp_path: Path) -> None:
    """The first one is the checkpoint leader; when it is dead, another must keep the log short."""
    first, second = start("first"), start("second")
    first.call(store_process.put, b"k", b"v")
    first.kill()
    log = tmp_path / "store" / "store.sqlite3-wal"
    written_bytes = 0
    until = time.monotonic() + PATIENCE_SECONDS
    while log.stat().st_size * 2 > written_bytes or written_bytes < 10_000_000:
        assert time.monotonic() < until, f"{log.stat().st_size} bytes in the log after {written_bytes}"
        second.call(store_process.put, b"large", bytes(1_000_000))
        written_bytes += 1_000_000


def test_closing_one_of_them_leaves_the_store_to_the_others(
    start: Callable[[str], Worker], tmp_path: Path
) -> None:
    leaving, staying = start("leaving"), start("staying")
    staying.begin(store_process.count_up, b"own", 10, 50)
    leaving.call(store_process.count_up, b"other", 2, 5)
    leaving.stop()
    staying.end()

    async def main() -> None:
        engine = SqliteEngine.open(tmp_path / "store")
        assert await engine.read(lambda state: store_process.value_of(state, b"shared")) == 510
        await engine.close()

    uvloop.run(main())
    assert staying.call(store_process.get, b"shared") == (510).to_bytes(8, "big")
