"""Copies from another store: bytes are read as of one moment and stored anew, since no extent belongs to two stores.

Few runs are stored by the transaction that makes the copy. Many come in portions (``model/content/spread.py``).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from kyanite.model.accounts import Store
from kyanite.model.content import reading, spread
from kyanite.model.content.spread import NewContent, PreparedLayer, ReceivedRuns, Run
from kyanite.services.rest.streams import pin_numbers
from kyanite.services.rest.uploads import NO_HASHES, PiecedBody, ReceivedBody, store_body

T = TypeVar("T")

Transaction = Callable[[NewContent], Awaitable[T]]
"""Makes the copy, with this content."""


async def store_runs(
    store: Store, pieces: AsyncGenerator[bytes, None], runs: Sequence[Run], transaction: Transaction[T]
) -> T:
    """Store the bytes of these runs, which the pieces have one after the other, and make the copy."""
    divided = list(spread.portions(runs))
    if len(divided) > 1:
        return await _store_portions(store, pieces, divided, transaction)
    length = sum(run.length for run in runs)

    def make(received: ReceivedBody) -> Awaitable[T]:
        return transaction(ReceivedRuns(received.payload, runs))

    return (await store_body(store, PiecedBody(pieces, length), length, NO_HASHES, make))[1]


async def _store_portions(
    store: Store,
    pieces: AsyncGenerator[bytes, None],
    divided: Sequence[Sequence[Run]],
    transaction: Transaction[T],
) -> T:
    owner, number = store.membership.id, next(pin_numbers)
    engine, cutter = store.engine, _Cutter(pieces)
    begin = partial(spread.begin, owner=owner, number=number)
    prepared = await engine.run(begin, durable=False)
    try:
        for runs in divided:
            length = sum(run.length for run in runs)
            body = PiecedBody(cutter.take(length), length)
            extend = partial(_extend, store, prepared, runs)
            _, prepared = await store_body(store, body, length, NO_HASHES, extend)
        return await transaction(prepared)
    except BaseException:
        await reading.release_pinned(engine, owner, number)
        raise


def _extend(
    store: Store, prepared: PreparedLayer, runs: Sequence[Run], received: ReceivedBody
) -> Awaitable[PreparedLayer]:
    portion = ReceivedRuns(received.payload, runs)
    return store.engine.run(partial(spread.extend, prepared=prepared, portion=portion), durable=False)


class _Cutter:
    """Gives out the same bytes in stretches of stated lengths."""

    def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
        self._pieces = pieces
        self._rest = b""

    async def take(self, length: int) -> AsyncGenerator[bytes, None]:
        """Less if there is no more: whoever stores it notices."""
        while length:
            piece = self._rest or await anext(self._pieces, b"")
            if not piece:
                return
            self._rest = piece[length:]
            some = piece[:length]
            length -= len(some)
            yield some
