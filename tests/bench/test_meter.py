"""The meter counts exactly what runs between its start and its pause."""

from concurrent.futures import ThreadPoolExecutor

import apsw
from bench.meter import Cost, Meter


def inner() -> None:
    len("")


def outer() -> None:
    inner()
    inner()


def test_calls_of_this_thread_and_of_others_are_counted() -> None:
    meter = Meter()
    with meter.installed(), ThreadPoolExecutor(1) as threads:
        threads.submit(len, "").result()
        meter.start()
        meter.pause()
        nothing = meter.cost()
        meter.start()
        outer()
        meter.pause()
        here = meter.cost()
        assert meter.functions()[f"{__file__}:inner"] == 2
        future = threads.submit(outer)
        future.result()
        threads.shutdown()
        functions = meter.functions()
    assert here.calls - nothing.calls == 3
    assert here.c_calls - nothing.c_calls == 2
    assert functions[f"{__file__}:inner"] == 4


def test_statements_and_rows_are_counted() -> None:
    meter = Meter()
    with meter.installed():
        connection = apsw.Connection(":memory:")
        connection.execute("CREATE TABLE numbers (number)")
        meter.start()
        connection.execute("INSERT INTO numbers VALUES (1), (2), (3)")
        assert connection.execute("SELECT number FROM numbers LIMIT 2").fetchall() == [(1,), (2,)]
        meter.pause()
    assert meter.cost()[2:] == Cost(0, 0, statements=2, rows_read=2, rows_written=3, hand_overs=0)[2:]
    assert meter.sql()[0].startswith("INSERT")
    connection.close()
