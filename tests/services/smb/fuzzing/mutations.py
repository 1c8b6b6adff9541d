"""What goes wrong with messages: fields, lengths, flags, order, signatures."""

import random
import struct
from collections.abc import Callable

Chance = random.Random
Mutation = Callable[[Chance, bytearray], None]

_SMALL = (0, 1, 2, 3, 7, 8, 9, 0x40, 0x48, 0x50, 0x60, 0x70, 0x7F, 0x80, 0xFF)
_NUMBERS = (*_SMALL, 0x100, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0xFFFFFFFF)
_HEADER_FIELDS = ((8, 4), (12, 2), (14, 2), (16, 4), (32, 4), (36, 4), (40, 8))
"""Where each begins, and its size."""
_CLOSING_FIELDS = ((0, 4), (4, 2), (6, 2), (20, 4), (24, 8))
"""The server closes the connection if one of these is wrong, so that they are changed less often."""
_HEADER_BYTES = 64


def _number(chance: Chance, size: int, near: int) -> int:
    limit = (1 << 8 * size) - 1
    chosen = chance.choice(
        (
            *_NUMBERS,
            near,
            near + 1,
            near - 1,
            near + 8,
            chance.getrandbits(8 * size),
            limit,
            limit >> 1,
            limit - 7,
        )
    )
    return chosen & limit


def _header_field(chance: Chance, message: bytearray) -> None:
    at, size = chance.choice(_HEADER_FIELDS if chance.random() < 0.9 else _CLOSING_FIELDS)
    if at + size <= len(message):
        old = int.from_bytes(message[at : at + size], "little")
        message[at : at + size] = _number(chance, size, old).to_bytes(size, "little")


def _header_flag(chance: Chance, message: bytearray) -> None:
    if len(message) >= 20:
        message[16 + chance.randrange(4)] ^= 1 << chance.randrange(8)


def _body_field(chance: Chance, message: bytearray) -> None:
    """A number of the body, most of them among the first: sizes, offsets and lengths."""
    size = chance.choice((1, 2, 2, 4, 4, 8))
    room = len(message) - 64 - size
    if room < 0:
        return
    at = 64 + chance.randint(0, min(room, 63) if chance.random() < 0.8 else room)
    at -= at % min(size, 4) if at - at % min(size, 4) >= 64 else 0
    near = len(message) if chance.random() < 0.3 else int.from_bytes(message[at : at + size], "little")
    message[at : at + size] = _number(chance, size, near).to_bytes(size, "little")


def _somewhere(chance: Chance, message: bytearray) -> int:
    """Most often behind the header."""
    if len(message) <= _HEADER_BYTES + 2 or chance.random() < 0.1:
        return chance.randrange(len(message))
    return chance.randrange(_HEADER_BYTES + 2, len(message))


def _byte(chance: Chance, message: bytearray) -> None:
    message[_somewhere(chance, message)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.getrandbits(8)))


def _cut(chance: Chance, message: bytearray) -> None:
    del message[_somewhere(chance, message) :]


def _extend(chance: Chance, message: bytearray) -> None:
    message += chance.randbytes(chance.choice((1, 4, 8, 64, 300)))


def _repeat_part(chance: Chance, message: bytearray) -> None:
    start = chance.randrange(len(message))
    piece = bytes(message[start : start + chance.randint(1, 32)])
    at = _somewhere(chance, message)
    message[at:at] = piece


def _next_command(chance: Chance, message: bytearray) -> None:
    if len(message) >= 24:
        message[20:24] = struct.pack(
            "<I", chance.choice((1, 8, 63, 64, 72, len(message), len(message) - 64 & 0xFFFFFFFF, 0xFFFFFFF8))
        )


MUTATIONS: tuple[tuple[Mutation, int], ...] = (
    (_header_field, 20),
    (_header_flag, 5),
    (_body_field, 50),
    (_byte, 10),
    (_cut, 8),
    (_extend, 4),
    (_repeat_part, 4),
    (_next_command, 1),
)
"""And how often each of them happens."""
_ALL = [each for each, _ in MUTATIONS]
_WEIGHTS = [weight for _, weight in MUTATIONS]


def mutate(chance: Chance, message: bytearray) -> None:
    for mutation in chance.choices(_ALL, _WEIGHTS, k=chance.choice((1, 1, 1, 2, 3))):
        if message:
            mutation(chance, message)
