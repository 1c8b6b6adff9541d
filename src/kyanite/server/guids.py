"""New random GUIDs, fast: randomness is read from the kernel in bulk."""

import os

_BATCH = 256


class FreshGuids:
    """Each call returns a new version 4 GUID in its canonical spelling.

    To be created after the fork: two processes with copies of one pool would return the same ids.
    """

    __slots__ = ("_pool",)

    def __init__(self) -> None:
        self._pool: list[str] = []

    def __call__(self) -> str:
        if not self._pool:
            self._refill()
        return self._pool.pop()

    def _refill(self) -> None:
        digits = os.urandom(16 * _BATCH).hex()
        for start in range(0, len(digits), 32):
            text = digits[start : start + 32]
            variant = "89ab"[int(text[16], 16) & 3]
            self._pool.append(f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}")
