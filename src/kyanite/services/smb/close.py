"""CLOSE (MS-SMB2 §3.3.5.10), and closing what a client leaves open when it goes."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from kyanite.engine.api import Engine, EngineBusy, EngineError, EngineFull, Transaction
from kyanite.model.files.entry import Entry
from kyanite.model.files.opens import closing, durable
from kyanite.model.files.opens.closing import Closed
from kyanite.rules.create_options import DELETE_ON_CLOSE
from kyanite.rules.refusals import Refused
from kyanite.services.smb.info.entry import allocation_size, attributes_of, times_of
from kyanite.services.smb.request import Answer, Request
from kyanite.services.smb.state import Open, TreeConnect
from kyanite.wire.smb2 import close as codec
from kyanite.wire.smb2.close import ClosedFile

T = TypeVar("T")
_AGAIN_SECONDS = 1.0


async def close(request: Request) -> Answer:
    wants_attributes = codec.decode_close(request.message).wants_attributes
    entry = await close_open(request.open, wants_entry=wants_attributes)
    return Answer(codec.encode_close(None if entry is None else closed_file(entry)))


async def close_open(opened: Open, *, wants_entry: bool = False) -> Entry | None:
    """Close one open as its client does, and forget it; if the engine fails, it stays open. What it was, if wanted."""
    _forget(opened)
    if opened.tree.share is None:
        return None
    try:
        return await _closed(opened, wants_entry=wants_entry)
    except EngineError:
        opened.tree.opens[opened.id.volatile] = opened
        raise


async def _closed(opened: Open, *, wants_entry: bool) -> Entry | None:
    await opened.writes.drained()
    engine = opened.tree.account.store.engine
    if opened.snapshot is not None:
        return (await engine.read(opened.find)).entry if wants_entry else None
    body = partial(_close, opened=opened, wants_entry=wants_entry)
    if not opened.options & DELETE_ON_CLOSE:
        closed = await engine.run(partial(body, may_delete=False), durable=False)
        if closed is not None:
            return closed.entry
    closed = await engine.run(partial(body, may_delete=True))
    assert closed is not None
    return closed.entry


def _forget(opened: Open) -> None:
    """No request finds the open any more, and those that wait end."""
    opened.tree.opens.pop(opened.id.volatile, None)
    for each in tuple(opened.waiting):
        each.interrupt_at_close()


def _close(tx: Transaction, *, opened: Open, wants_entry: bool, may_delete: bool) -> Closed | None:
    return closing.close(
        tx,
        opened.tree.load(tx),
        opened.file_id,
        opened.handle_id,
        wants_entry=wants_entry,
        may_delete=may_delete,
    )


async def close_opens(opens: Iterable[Open], *, keeps_durable: bool = False) -> None:
    """Close many, when a client logs off, disconnects from a share or is gone. What another has closed by force, or
    with its share, is closed already. A client that has lost its connection keeps its durable handles."""
    by_tree: dict[TreeConnect, list[Open]] = {}
    for each in opens:
        _forget(each)
        await each.writes.drained()
        if each.tree.share is not None and each.snapshot is None:
            by_tree.setdefault(each.tree, []).append(each)
    for tree_connect, found in by_tree.items():
        engine = tree_connect.account.store.engine
        for start in range(0, len(found), closing.CLOSED_PER_TRANSACTION):
            part = found[start : start + closing.CLOSED_PER_TRANSACTION]
            some = [(one.file_id, one.handle_id) for one in part]
            kept = [(one.file_id, one.handle_id) for one in part if keeps_durable and one.is_durable]
            if kept:
                kept = await _run_at_last(
                    engine, partial(_disconnect, tree_connect=tree_connect, opens=kept), durable=False
                )
                some = [each for each in some if each not in kept]
            body = partial(_close_some, tree_connect=tree_connect, opens=some)
            if not await _run_at_last(engine, partial(body, may_delete=False), durable=False):
                await _run_at_last(engine, partial(body, may_delete=True), durable=True)


async def _run_at_last(engine: Engine, body: Callable[[Transaction], T], *, durable: bool) -> T:
    """Run the body, however long the engine is busy or the disk full: no client is there that could try again."""
    while True:
        try:
            return await engine.run(body, durable=durable)
        except (EngineBusy, EngineFull):
            await asyncio.sleep(_AGAIN_SECONDS)


def _disconnect(
    tx: Transaction, *, tree_connect: TreeConnect, opens: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Those that stay."""
    return [each for each in opens if durable.disconnect(tx, tree_connect.share_id, *each)]


def _close_some(
    tx: Transaction, *, tree_connect: TreeConnect, opens: list[tuple[int, int]], may_delete: bool
) -> bool:
    try:
        share_tree = tree_connect.load(tx)
    except Refused:  # The share was deleted, and its handles go with it.
        return True
    return closing.close_all(tx, share_tree, opens, may_delete=may_delete)


def closed_file(entry: Entry) -> ClosedFile:
    """What CREATE and CLOSE tell of a file."""
    return ClosedFile(times_of(entry), allocation_size(entry.length), entry.length, attributes_of(entry))
