"""What processes of several nodes do together: confirm changes of accounts, share the maintenance and a secret."""

import asyncio
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kyanite.engine.api import Transaction
from kyanite.extents.api import Extents
from kyanite.model import account_rows, members
from kyanite.model.account_rows import AccountRecord
from kyanite.model.accounts import Store
from kyanite.model.members import Member
from kyanite.model.records import encode
from kyanite.model.verification.rows import check_page
from kyanite.server.accounts import directory as accounts
from kyanite.server.accounts.directory import AccountDirectory, all_obey
from kyanite.server.accounts.sealed_keys import KeyFile, Sealer
from kyanite.server.failures import Failure
from kyanite.server.nodes import secrets
from kyanite.server.nodes.node import Node
from kyanite.server.processes.process_table import ProcessTable
from tests.server.nodes.cluster import DEAD_AFTER_SECONDS, START, Cluster, Process

SECRET = b"s" * 32
NO_EXTENTS = cast(Extents, SimpleNamespace(has_files=True))
"""Accounts are rows only."""


def node_of(process: Process) -> Node:
    return Node(process.engine, process.id)


def directory_of(process: Process, folder: Path) -> AccountDirectory:
    path = folder / "seal"
    path.write_bytes(SECRET)
    return AccountDirectory(
        Store(process.engine, NO_EXTENTS, process.membership),
        (),
        KeyFile(path, may_make=False),
        host="localhost",
        allow_development_key=True,
        slot=ProcessTable(["worker 1"]).slots["worker 1"],
        confirm=node_of(process).confirm,
    )


async def test_a_change_of_an_account_waits_for_every_node(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "OBEY_SECONDS", 0.05)
    first, second = await cluster.join("a"), await cluster.join("b")
    here, elsewhere = directory_of(first, tmp_path), directory_of(second, tmp_path)
    await here.load()
    await elsewhere.load()
    sealed = AccountRecord((Sealer(SECRET).seal("alpha", b"key"),))
    await first.engine.run(partial(account_rows.save, name="alpha", record=sealed))
    changed_at = await first.engine.read(account_rows.last_change)
    await here.load()
    with pytest.raises(Failure, match="worker 1 of node b has not confirmed yet"):
        await all_obey({}, changed_at, node_of(first).late)
    await elsewhere.load()
    await all_obey({}, changed_at, node_of(first).late)
    assert list(elsewhere.accounts) == ["alpha"]


async def test_a_process_that_has_read_no_account_is_not_waited_for(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    await first.engine.run(account_rows.note_change)
    changed_at = await first.engine.read(account_rows.last_change)
    assert await node_of(first).late(changed_at) == []
    # From the moment before it reads them on it is.
    await node_of(second).confirm(members.NO_CHANGE)
    assert await node_of(first).late(changed_at) == ["worker 1 of node b"]


async def test_a_dead_process_is_waited_for_no_longer(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    await node_of(second).confirm(members.NO_CHANGE)
    await first.engine.run(account_rows.note_change)
    changed_at = await first.engine.read(account_rows.last_change)
    second.stop()
    assert await node_of(first).late(changed_at)
    await cluster.pass_time(DEAD_AFTER_SECONDS * 4 / 3 + 1, first)
    assert await node_of(first).late(changed_at) == []


async def test_the_maintenance_passes_to_another_node(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    await node_of(first).until_maintainer()
    waiting = asyncio.create_task(node_of(second).until_maintainer())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await first.membership.left()
    await asyncio.wait_for(waiting, 10)


async def test_all_nodes_share_one_secret(cluster: Cluster) -> None:
    first, second = await cluster.join("a"), await cluster.join("b")
    assert await node_of(first).shared_secret(b"1" * 32) == b"1" * 32
    assert await node_of(second).shared_secret(b"2" * 32) == b"1" * 32
    derived = secrets.of_nodes(b"1" * 32, None)
    assert derived == secrets.of_nodes(b"1" * 32, None)
    assert derived != secrets.of_nodes(b"2" * 32, None)
    assert len({derived.server_guid, derived.sessions, derived.delegation}) == 3
    assert secrets.of_nodes(b"1" * 32, b"given").delegation == b"given"


async def test_the_rows_are_verified(cluster: Cluster) -> None:
    first, second, third = await cluster.join("a"), await cluster.join("b"), await cluster.join("c")
    await node_of(first).until_maintainer()
    await node_of(second).shared_secret(SECRET)
    await node_of(second).confirm(members.NO_CHANGE)
    await third.membership.left()
    page = await cluster.memory.read(lambda snap: check_page(snap, b""))
    assert page.rows == 8
    assert page.findings == []
    member = encode(Member("a", "worker 1", START, 15.0))
    for key, value, found in (
        (b"B\0" + b"x" * 11, member, "length"),
        (b"B\1" + b"x" * 12, b"?", "cannot be decoded"),
        (b"B\2" + b"x" * 12, b"?", "should be empty"),
        (b"B\3" + b"x" * 12, b"?", "not a number"),
        (b"B\7", b"", "no process has rows of this kind"),
    ):
        await cluster.memory.run(partial(_put, key=key, value=value))
        page = await cluster.memory.read(lambda snap: check_page(snap, b""))
        assert any(found in finding for finding in page.findings), found
        await cluster.memory.run(partial(_delete, key=key))


def _put(tx: Transaction, key: bytes, value: bytes) -> None:
    tx.put(key, value)


def _delete(tx: Transaction, key: bytes) -> None:
    tx.delete(key)
