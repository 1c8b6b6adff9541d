"""The head of a response: status line, headers, and how the body is framed."""

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from kyanite.values import instant_from_unix_seconds
from kyanite.wire import http_date
from kyanite.wire.http import Response

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n"
    for status in HTTPStatus
    if status.value >= 200
}
_UNSAFE: Final = str.maketrans(dict.fromkeys("\r\n\0", " "))
_NO_CONTENT: Final = 204
_NOT_MODIFIED: Final = 304


class _Dates:
    """The Date header, made once a second."""

    __slots__ = ("_line", "_second", "clock")

    def __init__(self) -> None:
        self.clock: Callable[[], float] = time.time
        self._second = -1
        self._line = ""

    def line(self) -> str:
        second = int(self.clock())
        if second != self._second:
            self._second = second
            self._line = f"Date: {http_date.encode(instant_from_unix_seconds(second))}\r\n"
        return self._line


_dates: Final = _Dates()


def use_clock(seconds: Callable[[], float]) -> None:
    """Take the Date header from this clock, in seconds since 1970, for all servers of this process."""
    _dates.clock = seconds


class AnswerError(Exception):
    """A head that would break the framing or that cannot be written down. The handler's fault, so a 500."""


def has_body(method: str, status: int) -> bool:
    return method != "HEAD" and status not in (_NO_CONTENT, _NOT_MODIFIED)


def is_chunked(response: Response, *, http_1_0: bool) -> bool:
    return response.length is None and not isinstance(response.body, bytes) and not http_1_0


def encode_head(response: Response, *, http_1_0: bool, keep_alive: bool) -> bytes:
    """Everything up to the empty line, that included."""
    if not keep_alive:
        connection = "Connection: close\r\n"
    else:
        connection = "Connection: keep-alive\r\n" if http_1_0 else ""
    status_line = _STATUS_LINES.get(response.status) if response.reason is None else None
    if status_line is None:
        status_line = _own_status_line(response.status, response.reason)
    end = f"{_length_line(response, http_1_0)}{connection}"
    head = f"{status_line}{response.lines()}{_dates.line()}{end}\r\n"
    try:
        return head.encode("latin-1")
    except UnicodeEncodeError as error:
        raise AnswerError("a header is not latin-1") from error


def _own_status_line(status: int, reason: str | None) -> str:
    if not 200 <= status <= 999:
        raise AnswerError(f"{status} is not the status of an answer")
    phrase = (reason or "").translate(_UNSAFE).encode("latin-1", "replace").decode("latin-1")
    return f"HTTP/1.1 {status} {phrase}\r\n"


def _length_line(response: Response, http_1_0: bool) -> str:
    status, body, length = response.status, response.body, response.length
    if status == _NO_CONTENT or (status == _NOT_MODIFIED and length is None):
        return ""
    if length is None and isinstance(body, bytes):
        length = len(body)
    if length is not None:
        return f"Content-Length: {length}\r\n"
    return "" if http_1_0 else "Transfer-Encoding: chunked\r\n"
