"""Which processes of several nodes are alive, and what one that was declared dead can still do: nothing."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from kyanite.engine.api import EngineBusy, EngineError, Transaction
from kyanite.engine.faulty import Call, Fail, FaultyEngine
from kyanite.membership.api import OWNER_BYTES
from kyanite.model import members
from kyanite.model.members import DeclaredDead
from kyanite.server.failures import Failure
from kyanite.server.nodes import membership
from tests.server.nodes.cluster import DEAD_AFTER_SECONDS, SECOND, Cluster, Process


def put(tx: Transaction, value: bytes = b"1") -> None:
    tx.put(b"row", value)


async def written(cluster: Cluster) -> bytes | None:
    return await cluster.memory.read(lambda snap: snap.get(b"row"))


async def test_members_are_alive_to_one_another(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    assert len(first.id) == OWNER_BYTES
    assert first.id != second.id
    await first.beat()
    for process in (first, second):
        assert process.membership.is_alive(first.id)
        assert process.membership.is_alive(second.id)
        assert process.membership.dead_owners() == []


async def test_one_that_leaves_is_dead_until_it_is_forgotten(cluster: Cluster) -> None:
    leaving, staying = await cluster.join("a"), await cluster.join("b")
    await leaving.membership.left()
    await staying.beat()
    assert not staying.membership.is_alive(leaving.id)
    assert staying.membership.dead_owners() == [leaving.id]
    staying.membership.forget(leaving.id)
    assert staying.membership.dead_owners() == []
    await staying.beat()
    assert not staying.membership.is_alive(leaving.id)
    later = await cluster.join("a")
    assert later.membership.dead_owners() == []
    assert (await cluster.memory.read(members.load)).dead == []


async def test_a_killed_process_is_dead_at_once_to_its_node_and_to_others(cluster: Cluster) -> None:
    killed, sibling, other = await cluster.join("a"), await cluster.join("a"), await cluster.join("b")
    killed.kill()
    await sibling.beat()
    await other.beat()
    for process in (sibling, other):
        assert not process.membership.is_alive(killed.id)
        assert process.membership.dead_owners() == [killed.id]
    assert sibling.local.dead_owners() == []


async def test_a_node_that_starts_again_declares_what_was_left_of_it_dead(cluster: Cluster) -> None:
    killed = await cluster.join("a")
    killed.kill()
    successor = await cluster.join("a")
    await successor.beat()
    assert successor.membership.dead_owners() == [killed.id]


async def test_a_silent_process_is_dead_after_the_stated_time_and_not_before(cluster: Cluster) -> None:
    silent, other = await cluster.join("a"), await cluster.join("b")
    silent.stop()
    await cluster.pass_time(DEAD_AFTER_SECONDS - 1, other)
    assert other.membership.is_alive(silent.id)
    await cluster.pass_time(1 + DEAD_AFTER_SECONDS / 3, other)
    assert not other.membership.is_alive(silent.id)
    assert other.membership.dead_owners() == [silent.id]


async def test_one_that_renews_lives(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    await cluster.pass_time(10 * DEAD_AFTER_SECONDS, first, second)
    assert first.membership.is_alive(second.id)
    assert second.membership.is_alive(first.id)


async def test_one_that_was_declared_dead_commits_nothing_and_ends(cluster: Cluster) -> None:
    paused, other = await cluster.join("a"), await cluster.join("b")
    await paused.engine.run(put)
    paused.stop()
    await cluster.pass_time(60, other)
    with pytest.raises(DeclaredDead):
        await paused.engine.run(partial(put, value=b"2"))
    with pytest.raises(DeclaredDead):
        await paused.engine.run(partial(put, value=b"2"), durable=False)
    assert await written(cluster) == b"1"
    await paused.beat()
    assert paused.is_lost
    assert other.membership.is_alive(other.id)


async def test_one_that_slept_reads_nothing_until_it_has_renewed(cluster: Cluster) -> None:
    paused, other = await cluster.join("a"), await cluster.join("b")
    paused.stop()
    cluster.clock.pass_seconds(DEAD_AFTER_SECONDS * 0.9)
    with pytest.raises(EngineBusy):
        await paused.engine.read(lambda snap: snap.get(b"row"))
    # It was not declared dead, so it goes on.
    await paused.beat()
    assert await paused.engine.read(lambda snap: snap.get(b"row")) is None
    await paused.engine.run(put)
    assert not paused.is_lost
    assert other.membership.is_alive(paused.id)


async def test_a_clock_that_jumps_declares_no_one_dead(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    for _ in range(3):
        cluster.clock.engine += 3600 * SECOND  # type: ignore[assignment]
        await first.beat()
        await second.beat()
    await cluster.pass_time(DEAD_AFTER_SECONDS - 2, first)
    assert first.membership.is_alive(second.id)


async def test_an_engine_that_was_away_declares_no_one_dead(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    await cluster.pass_time(4, first, second)
    cluster.clock.pass_seconds(300)
    for _ in range(3):
        cluster.clock.pass_seconds(1)
        await first.beat()
    assert first.membership.is_alive(second.id)
    await second.beat()
    assert not second.is_lost


async def test_a_renewal_between_look_and_declaration_counts(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    observed = (await cluster.memory.read(members.load)).heartbeats[second.id]
    cluster.clock.pass_seconds(60)
    await second.beat()
    declare = partial(members.declare_dead, owner=second.id, observed=observed)
    assert not await first.engine.run(declare)
    assert await second.engine.read(lambda snap: True)


async def test_an_unknown_process_is_alive_until_it_was_searched_for(cluster: Cluster) -> None:
    first = await cluster.join("a")
    second = await cluster.join("b")
    assert first.membership.is_alive(second.id)
    never = bytes(OWNER_BYTES)
    assert first.membership.is_alive(never)
    await first.beat()
    assert not first.membership.is_alive(never)
    assert first.membership.is_alive(second.id)


async def test_any_thread_may_look_up_a_member(cluster: Cluster) -> None:
    leaving, staying = await cluster.join("a"), await cluster.join("b")
    await leaving.membership.left()
    await staying.beat()
    with ThreadPoolExecutor(8) as threads:
        alive = list(threads.map(staying.membership.is_alive, [leaving.id, staying.id] * 200))
    assert alive == [False, True] * 200


async def test_one_process_does_the_maintenance(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")

    async def take(process: Process) -> bool:
        return await process.engine.run(partial(members.take_maintenance, owner=process.id))

    assert await take(first)
    assert not await take(second)
    await first.membership.left()
    assert await take(second)


async def test_an_engine_that_is_busy_only_delays_joining(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "LOCAL_SECONDS", 0.0)
    busy = Fail(EngineBusy("not yet"))
    failing = FaultyEngine(
        cluster.memory,
        {(Call.RUN, 1): busy, (Call.RUN, 2): Fail(EngineBusy("?"), done=True), (Call.READ, 1): busy},
    )
    first = await cluster.join("a", failing)
    failing.check_all_hit()
    second = await cluster.join("b")
    assert second.membership.is_alive(first.id)
    await first.engine.run(put)


async def test_an_engine_that_cannot_be_used_is_an_error(cluster: Cluster) -> None:
    failing = FaultyEngine(cluster.memory, {(Call.RUN, 1): Fail(EngineError("no such database"))})
    with pytest.raises(EngineError, match="no such database"):
        await cluster.join("a", failing)


async def test_nodes_that_cannot_read_content_of_one_another_do_not_meet(cluster: Cluster) -> None:
    def join_alone(tx: Transaction, node: str) -> None:
        members.join(
            tx, node.encode() * 12, node=node, process="worker 1", dead_after_seconds=15, has_own_extents=True
        )

    await cluster.memory.run(partial(join_alone, node="a"))
    await cluster.join("a")
    with pytest.raises(Failure, match="Node a serves this store too"):
        await cluster.join("b")
    with pytest.raises(members.ContentNotShared):
        await cluster.memory.run(partial(join_alone, node="c"))
    await cluster.memory.run(partial(members.declare_dead, owner=b"a" * 12))
    await cluster.join("b")


async def test_closing_leaves(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    first.membership.close()
    await first.membership.left()
    await second.beat()
    assert second.membership.dead_owners() == [first.id]
    assert second.local.dead_owners() == []
