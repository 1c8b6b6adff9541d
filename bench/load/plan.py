"""Requests as data, so that two clients can send the same: raw sockets of ours, and wrk by a script.

Every lane repeats a cycle of steps. A step keeps what later requests of its lane need from an answer, such as an ETag.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple
from urllib.parse import quote

from bench.load.answers import header, inside
from bench.load.client import LaneWork
from bench.load.lane import Request, Work, expecting

CLIENT_REQUEST_ID = "x-ms-client-request-id: @lane@\r\n"
"""A header that servers return. Steps that keep something must send it: wrk knows by it which lane an answer is for."""

_STRIDE = 37
"""So many steps apart do neighbouring lanes begin, where the order does not matter."""


class Kept(NamedTuple):
    """What is kept of an answer under a name: the value of a header, or the text of an XML element."""

    name: str
    header: str = ""
    element: str = ""
    quoted: bool = False
    """Percent-encoded, for a query."""

    def found_in(self, answer: bytes) -> bytes:
        if self.header:
            value = header(answer, self.header.encode())
        else:
            value = inside(answer, self.element.encode())
        return quote(value, safe="").encode() if self.quoted else value


class Step(NamedTuple):
    """A request and its answer. Of the pieces, every second one is a name whose value goes there."""

    pieces: tuple[bytes, ...]
    status: int
    kept: tuple[Kept, ...] = ()

    @classmethod
    def of(cls, template: bytes, status: int, *kept: Kept, body: bytes = b"") -> "Step":
        """``@name@`` in the template is replaced: @lane@, @number@ (of the cycle), or what an answer had. In the body
        nothing is."""
        pieces = re.split(rb"@([a-z]+)@", template)
        pieces[-1] += body
        return cls(tuple(pieces), status, kept)

    def data(self, values: dict[str, bytes]) -> bytes:
        return b"".join(
            values[piece.decode()] if index % 2 else piece for index, piece in enumerate(self.pieces)
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """``first`` is sent once by each lane, then the cycle without end."""

    cycle: Sequence[Step]
    first: Sequence[Step] = ()
    is_independent: bool = False
    """Whether any request may be sent at any time, by any connection."""

    def lane_work(self) -> LaneWork:
        """The plan for raw sockets."""

        def work(lane: int) -> Work:
            values = {"lane": b"%02d" % lane}
            yield from _steps(self.first, values)
            start = lane * _STRIDE % len(self.cycle) if self.is_independent else 0
            cycle = [*self.cycle[start:], *self.cycle[:start]]
            for number in count():
                values["number"] = b"%08d" % number
                yield from _steps(cycle, values)

        return work

    def as_lua(self) -> str:
        """The plan for wrk: a program whose value is a table."""
        first, cycle = (f"{{{','.join(map(_lua_step, steps))}}}" for steps in (self.first, self.cycle))
        independent = "true" if self.is_independent else "false"
        return f"return {{independent={independent}, stride={_STRIDE}, first={first}, cycle={cycle}}}\n"


def fixed(requests: Sequence[Request]) -> Plan:
    """These requests over and over, each lane beginning elsewhere."""
    return Plan([Step((request.data,), _status(request)) for request in requests], is_independent=True)


def _status(request: Request) -> int:
    return int(request.expected.split()[1])


def _steps(steps: Sequence[Step], values: dict[str, bytes]) -> Work:
    for step in steps:
        answer = yield Request(step.data(values), expecting(step.status))
        for kept in step.kept:
            values[kept.name] = kept.found_in(answer)


def _lua_step(step: Step) -> str:
    pieces = ",".join(map(_lua_text, step.pieces))
    kept = ",".join(
        f"{{name={_lua_text(one.name.encode())}, header={_lua_text(one.header.lower().encode())}, "
        f"element={_lua_text(one.element.encode())}, quoted={'true' if one.quoted else 'false'}}}"
        for one in step.kept
    )
    return f"{{status={step.status}, pieces={{{pieces}}}, kept={{{kept}}}}}\n"


def _lua_text(data: bytes) -> str:
    """A Lua string of these bytes: those that are not printable, quotes and backslashes by their number."""
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03}" for byte in data)
    return f'"{"".join(plain)}"'
