"""Damage in the words of clients: one line for each damaged range of each blob, file or other record."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import NamedTuple

from kyanite.engine.api import Engine
from kyanite.model.verification.damage import Damage
from kyanite.model.verification.hurt import Hurt, Spend, hurt_records
from kyanite.model.verification.names import names_of
from kyanite.model.verification.rows import name_of

_NAMED_AT_ONCE = 1000
"""To find names, all containers and directories are read. So this is done for many records together."""


_ID_END = 9


class Description(NamedTuple):
    subject: bytes
    """The key of the extent or row that is damaged."""
    text: str


async def descriptions(engine: Engine, damage: Damage, spend: Spend) -> AsyncGenerator[Description, None]:
    """What the damage hurts, by the names that clients use."""
    some: list[Hurt] = []
    async for hurt in hurt_records(engine, damage, spend):
        some.append(hurt)
        if len(some) == _NAMED_AT_ONCE:
            for each in await _named(engine, some, spend):
                yield each
            some = []
    for each in await _named(engine, some, spend):
        yield each
    for each in await _before_ranges(engine, damage, spend):
        yield each


async def _named(engine: Engine, some: Sequence[Hurt], spend: Spend) -> list[Description]:
    names = await names_of(engine, {hurt.key for hurt in some}, spend)
    return [
        Description(hurt.subject, f"{name}: {each}")
        for hurt in some
        for name in names[hurt.key]
        for each in _sentences(hurt)
    ]


def _sentences(hurt: Hurt) -> Iterator[str]:
    if hurt.key == hurt.subject:
        yield "its record is damaged."
    elif not hurt.spans:
        yield f"it is damaged ({name_of(hurt.subject)})."
    for start, end in hurt.spans:
        yield f"{end - start} bytes from {start} are damaged ({name_of(hurt.subject)})."


async def _before_ranges(engine: Engine, damage: Damage, spend: Spend) -> list[Description]:
    """Of several rows that cannot be read the names are not known, but that of the row before them."""
    before = {
        row.start.removesuffix(b"\0"): row
        for row in damage.rows
        if row.key is None and len(row.start) > _ID_END
    }
    names = await names_of(engine, before, spend)
    return [
        Description(row.subject, f"{name}: what follows it cannot be read.")
        for key, row in before.items()
        for name in names[key]
    ]
