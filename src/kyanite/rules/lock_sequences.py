"""Telling a LOCK request that a client repeats from a new one (MS-SMB2 §3.3.5.14).

A client whose connection was lost cannot know whether its last LOCK was carried out. It sends it again with the same
index and number, and it must not be carried out twice. A handle keeps the last number of each index.
"""

INDEXES = 64
NONE_YET = bytes([0xFF]) * INDEXES
_NO_NUMBER = 0xFF


def is_repeated(numbers: bytes, index: int, number: int) -> bool:
    """Whether the request with this index and number was carried out already. ``numbers`` may be empty."""
    return bool(numbers) and is_counted(index) and numbers[index - 1] == number


def is_counted(index: int) -> bool:
    """Whether repeats of a request with this index are noticed."""
    return 1 <= index <= INDEXES


def remembered(numbers: bytes, index: int, number: int | None) -> bytes:
    """The numbers when a request was carried out, or, with None, when it has begun or failed."""
    if not is_counted(index):
        return numbers
    changed = bytearray(numbers or NONE_YET)
    changed[index - 1] = _NO_NUMBER if number is None else number
    return bytes(changed)
