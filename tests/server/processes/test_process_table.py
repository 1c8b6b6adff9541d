"""The process table: what one process writes, another reads, and a successor takes over."""

import os

from kyanite.server.processes.process_table import METRICS_BYTES, ProcessTable, State


def test_a_slot_from_start_to_end() -> None:
    slot = ProcessTable(["one", "two"]).slots["two"]
    assert (slot.state, slot.pid, slot.restarts, slot.connections) == (State.GONE, 0, 0, 0)
    slot.take(41)
    slot.connections = 3
    slot.count_beat()
    slot.state = State.SERVING
    assert (slot.state, slot.pid, slot.restarts, slot.connections, slot.beat) == (State.SERVING, 41, 0, 3, 1)
    slot.leave()
    assert (slot.state, slot.connections) == (State.GONE, 0)
    slot.take(42)
    assert (slot.state, slot.pid, slot.restarts) == (State.STARTING, 42, 1)


def test_slots_do_not_touch_each_other() -> None:
    process_table = ProcessTable(["one", "two", "three"])
    for number, slot in enumerate(process_table.slots.values(), 1):
        slot.take(number)
        slot.connections = number * 10
        assert slot.write_metrics(bytes([number]) * METRICS_BYTES)
    for number, slot in enumerate(process_table.slots.values(), 1):
        assert (slot.pid, slot.connections) == (number, number * 10)
        assert slot.read_metrics() == bytes([number]) * METRICS_BYTES


def test_metrics() -> None:
    slot = ProcessTable(["one"]).slots["one"]
    assert slot.read_metrics() == b""
    assert slot.write_metrics(b"many metrics")
    assert slot.write_metrics(b"few")
    assert slot.read_metrics() == b"few"
    assert not slot.write_metrics(bytes(METRICS_BYTES + 1))
    assert slot.read_metrics() == b"few"


def test_metrics_of_a_writer_that_died_while_writing() -> None:
    slot = ProcessTable(["one"]).slots["one"]
    slot.write_metrics(b"old")
    slot._words[5] |= 1  # The writer's first step.
    assert slot.read_metrics() == b""
    assert slot.write_metrics(b"new")
    assert slot.read_metrics() == b"new"


def test_other_processes_see_it() -> None:
    slot = ProcessTable(["one"]).slots["one"]
    child = os.fork()
    if child == 0:
        slot.take(os.getpid())
        slot.write_metrics(b"from the child")
        os._exit(0)
    os.waitpid(child, 0)
    assert slot.pid == child
    assert slot.read_metrics() == b"from the child"
