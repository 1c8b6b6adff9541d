"""What an account holds by name: containers, queues, tables and shares. How they are keyed, loaded and found."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Final, TypeVar

from kyanite.engine.api import Engine, Snapshot
from kyanite.model.records import NamedKey
from kyanite.rules.refusals import Reason, Refused

K = TypeVar("K", bound=NamedKey)
R = TypeVar("R")

_REMEMBERED: Final = 256


def remembering(decode: Callable[[bytes], R]) -> Callable[[bytes], R]:
    """Most requests find a row that others have found before. Its record is remembered by the bytes of the row."""
    return lru_cache(maxsize=_REMEMBERED)(decode)


def loader(
    row_of: Callable[[str, str], bytes], decode: Callable[[bytes], R], absent: Reason
) -> Callable[[Snapshot, K], R]:
    """A function that loads what has a key, or refuses because there is none."""
    remembered = remembering(decode)

    def load(snap: Snapshot, key: K) -> R:
        stored = snap.get(row_of(key.account, key.name))
        if stored is None:
            raise Refused(absent)
        return remembered(stored)

    return load


def finder(
    row_of: Callable[[str, str], bytes], decode: Callable[[bytes], R]
) -> Callable[[Engine, K], Awaitable[R | None]]:
    """A function that finds what has a key, or None: for authorisation, before the operation itself runs."""

    def find(engine: Engine, key: K) -> Awaitable[R | None]:
        def body(snap: Snapshot) -> R | None:
            stored = snap.get(row_of(key.account, key.name))
            return None if stored is None else decode(stored)

        return engine.read(body)

    return find
