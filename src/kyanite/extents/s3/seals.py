"""Which segments of a process are sealed: one small object of each process says it to the others.

    owners/<owner>    {"below": 17, "open": [3, 12]}

All segments of that owner whose number is below 17 are sealed, but for 3 and 12. A sealed segment stays so, hence an
older state is never wrong, only late. A process that writes publishes its state every few seconds.
"""

import asyncio
from collections.abc import Callable

import msgspec

from kyanite.engine.api import EngineError
from kyanite.extents.s3.bucket import Bucket, ObjectMissing

PUBLISH_SECONDS = 10.0


class SealState(msgspec.Struct, frozen=True):
    below: int
    open: list[int]

    def is_sealed(self, number: int) -> bool:
        return number < self.below and number not in self.open


NOTHING_SEALED = SealState(0, [])

_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], SealState] = msgspec.json.Decoder(SealState).decode


class Seals:
    def __init__(self, bucket: Bucket, owner: bytes, state: Callable[[], SealState]) -> None:
        self._bucket = bucket
        self._owner = owner
        self._state = state
        self._published = NOTHING_SEALED
        self._timer: asyncio.TimerHandle | None = None
        self._publishing: asyncio.Future[None] | None = None
        self._is_closing = False

    def changed(self) -> None:
        """Publish soon, together with what changes until then."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PUBLISH_SECONDS, self._begin)

    async def of(self, owner: bytes) -> SealState:
        """What another process has published."""
        try:
            return _decode(await self._bucket.get_whole(_name(owner)))
        except (ObjectMissing, msgspec.DecodeError):
            return NOTHING_SEALED

    async def remove(self, owner: bytes) -> None:
        await self._bucket.delete(_name(owner))

    async def close(self) -> None:
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        if self._publishing is not None:
            await self._publishing
        await self._publish()

    def _begin(self) -> None:
        self._timer = None
        self._publishing = asyncio.ensure_future(self._publish())

    async def _publish(self) -> None:
        """If it fails, it is tried again; others wait longer for what is sealed."""
        state = self._state()
        if state == self._published or state == SealState(1, []):  # Nothing new, or never a segment.
            return
        try:
            await self._bucket.put(_name(self._owner), _encode(state))
        except EngineError:
            if not self._is_closing:
                self.changed()
            return
        self._published = state


def _name(owner: bytes) -> str:
    return f"owners/{owner.hex()}"
