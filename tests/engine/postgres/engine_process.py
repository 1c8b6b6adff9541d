"""A process with an engine of its own: python -m tests.engine.postgres.engine_process URL WORK NUMBER.

It carries out its work, NUMBER times by each of several clients, and prints what it found as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import uvloop

from kyanite.engine.api import Scope, Snapshot, Transaction
from kyanite.engine.postgres.address import parse
from kyanite.engine.postgres.engine import PostgresEngine

CLIENTS = 32
HOT_KEYS = [b"hot%d" % number for number in range(4)]
PAIR = (b"left", b"right")


def add_one(key: bytes) -> Callable[[Transaction], tuple[int, int]]:
    def body(tx: Transaction) -> tuple[int, int]:
        count = int.from_bytes(tx.get(key) or b"", "big") + 1
        tx.put(key, count.to_bytes(8, "big"))
        return count, tx.now

    return body


async def count_on_hot_keys(engine: PostgresEngine, times: int) -> Any:
    """Each client adds to one of four counters. Returns all counts with their instants, and for how many batches of
    this process each client waited."""
    counts: list[tuple[int, int, int]] = []
    batches: list[int] = []

    async def client(number: int) -> None:
        key = number % len(HOT_KEYS)
        for _ in range(times):
            before = engine.commits.batches
            count, now = await engine.run(add_one(HOT_KEYS[key]), Scope(HOT_KEYS[key]))
            batches.append(engine.commits.batches - before)
            counts.append((key, count, now))

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return {"counts": counts, "waits": batches}


async def leave(engine: PostgresEngine, times: int) -> Any:
    """Two keys, of which one may be deleted only while the other one is there; and ranges without phantoms."""
    broken = 0

    def delete(me: bytes, other: bytes) -> Callable[[Transaction], bool]:
        def body(tx: Transaction) -> bool:
            is_broken = tx.get(me) is None and tx.get(other) is None
            if tx.get(other) is not None:
                tx.delete(me)
            return is_broken

        return body

    def come_back(tx: Transaction) -> None:
        for key in PAIR:
            tx.put(key, b"on")

    def reserve(tx: Transaction) -> int:
        """As many rows as the row that counts them says."""
        rows = len(list(tx.scan(b"n", b"o")))
        stated = int.from_bytes(tx.get(b"count") or b"", "big")
        tx.put(b"n%08d" % rows, b"")
        tx.put(b"count", (rows + 1).to_bytes(8, "big"))
        return int(rows != stated)

    def torn(snap: Snapshot) -> int:
        return int(len({snap.get(b"twin1"), snap.get(b"twin2")}) > 1)

    def write_twins(tx: Transaction) -> None:
        value = tx.now.to_bytes(8, "big")
        tx.put(b"twin1", value)
        tx.put(b"twin2", value)

    async def client(number: int) -> None:
        nonlocal broken
        for _ in range(times):
            broken += await engine.run(delete(*PAIR) if number % 2 else delete(*PAIR[::-1]))
            if number == 0:
                await engine.run(come_back)
            if number < 4:
                broken += await engine.run(reserve)
            await engine.run(write_twins)
            broken += await engine.read(torn)

    await engine.run(come_back)
    await asyncio.gather(*(client(number) for number in range(8)))
    return {"broken": broken}


WORK: Mapping[str, Callable[[PostgresEngine, int], Coroutine[Any, Any, Any]]] = {
    "count": count_on_hot_keys,
    "leave": leave,
}


async def main(url: str, work: str, times: int) -> None:
    engine = PostgresEngine(parse(url))
    found = await WORK[work](engine, times)
    print(json.dumps({**found, "counters": dict(engine.counters())}))
    await engine.close()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
