"""Just enough of HTTP/1.1 to know where an answer ends and whether it is the expected one.

The servers are trusted to frame their answers; what is checked is that each is complete and has the right
status.
"""

_CONTENT_LENGTH = b"\r\ncontent-length:"
_CHUNKED = b"\r\ntransfer-encoding: chunked"

INCOMPLETE = 0
CHUNKED = -1


def length_of(data: bytes) -> int:
    """How many bytes the answer that starts ``data`` has; INCOMPLETE until its head is there, or CHUNKED."""
    end = data.find(b"\r\n\r\n") + 4
    if end < 4:
        return INCOMPLETE
    head = data[:end].lower()
    at = head.find(_CONTENT_LENGTH)
    if at >= 0:
        at += len(_CONTENT_LENGTH)
        return end + int(head[at : head.index(b"\r", at)])
    return CHUNKED if _CHUNKED in head else end


def header(answer: bytes, name: bytes) -> bytes:
    """The value of a header that the answer must have."""
    head = answer[: answer.index(b"\r\n\r\n") + 2]
    at = head.lower().index(b"\r\n" + name.lower() + b":") + len(name) + 3
    return head[at : head.index(b"\r", at)].strip()


def inside(answer: bytes, element: bytes) -> bytes:
    """The text of the first XML element of that name."""
    return answer.partition(b"<%b>" % element)[2].partition(b"</")[0]


def body_of(answer: bytes) -> bytes:
    """The body of a whole answer, taken out of its chunks if it came in chunks."""
    start = answer.index(b"\r\n\r\n") + 4
    if length_of(answer) != CHUNKED:
        return answer[start:]
    pieces: list[bytes] = []
    while True:
        line_end = answer.index(b"\r\n", start)
        size = int(answer[start:line_end].split(b";")[0], 16)
        if size == 0:
            return b"".join(pieces)
        pieces.append(answer[line_end + 2 : line_end + 2 + size])
        start = line_end + 2 + size + 2


class Chunks:
    """Follows a chunked body to its end without keeping it. Trailers are not expected."""

    __slots__ = ("_last", "_line", "_missing")

    def __init__(self) -> None:
        self._line = b""
        self._missing = 0
        """Bytes of the present chunk and its line end still to come."""
        self._last = False

    def feed(self, data: bytes) -> bool:
        """Take the next bytes of the body; True once the last chunk has gone by."""
        at = 0
        while True:
            passed = min(self._missing, len(data) - at)
            self._missing -= passed
            at += passed
            if self._missing:
                return False
            if self._last:
                return True
            line_end = data.find(b"\n", at)
            if line_end < 0:
                self._line += data[at:]
                return False
            size = int((self._line + data[at:line_end]).split(b";")[0], 16)
            self._line = b""
            self._last = size == 0
            self._missing = size + 2
            at = line_end + 1
