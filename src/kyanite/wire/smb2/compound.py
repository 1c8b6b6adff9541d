"""Chains of messages in one frame (MS-SMB2 §2.2.1, NextCommand; §3.3.4.1.3, §3.3.5.2.7)."""

from collections.abc import Sequence
from typing import NamedTuple

from kyanite.wire.smb2 import header
from kyanite.wire.smb2.body import HEADER_BYTES, Data, invalid, padding
from kyanite.wire.smb2.header import Header

LONGEST_CHAIN = 64
_SHORTEST_MESSAGE = HEADER_BYTES + 2
"""A header and the StructureSize of a body."""


class Part(NamedTuple):
    header: Header
    message: memoryview
    """From the header up to the next one, with the padding, as it is signed."""


def split(message: memoryview) -> list[Part]:
    """The messages of a frame. Malformed closes the connection: none of them is answered."""
    parts: list[Part] = []
    while True:
        found = header.decode(message)
        step = found.next_command
        if len(message) < _SHORTEST_MESSAGE or len(parts) == LONGEST_CHAIN:
            raise invalid()
        if not step:
            parts.append(Part(found, message))
            return parts
        if step % 8 or not _SHORTEST_MESSAGE <= step < len(message):
            raise invalid()
        parts.append(Part(found, message[:step]))
        message = message[step:]


def join(responses: Sequence[tuple[Header, Sequence[Data]]]) -> list[list[Data]]:
    """The buffers of each response: its header, its body, and its padding if it is part of a chain.

    The last one of a chain is padded as well, as Windows does; a single response is not. The headers are bytearrays,
    so that each response can be signed where it stands.
    """
    if len(responses) == 1:
        head, body = responses[0]
        return [[header.encode(head), *body]]
    joined = []
    for number, (head, body) in enumerate(responses, 1):
        length = HEADER_BYTES + sum(map(len, body))
        padded = length + padding(length)
        following = padded if number < len(responses) else 0
        buffers: list[Data] = [header.encode(head._replace(next_command=following)), *body]
        if padded > length:
            buffers.append(bytes(padded - length))
        joined.append(buffers)
    return joined
