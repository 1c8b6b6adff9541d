"""The requests that a testing server has received, in memory that all its processes share.

A request takes its number when it arrives, on any worker, and is written again when it is about to be answered: so
whoever has an answer finds its request here. Only the last ones are kept. Keys, tokens and signatures are left out.
"""

import mmap
from collections.abc import Mapping

import msgspec

from kyanite.model.requests.secrets import cut_query, cut_secrets
from kyanite.server.testing.process_lock import ProcessLock
from kyanite.server.testing.rules import Identified
from kyanite.values import Instant, iso_text
from kyanite.wire.http import Request

KEPT = 4096
_SLOT_BYTES = 8192
_HEAD_BYTES = 16
"""Of a slot: the number of the request and the length of its text."""
_NEXT, _FIRST = 0, 1
_VALUE_CHARACTERS_MAX = 512
_PATH_CHARACTERS_MAX = 1024
_SECRET_HEADERS = ("authorization", "encryption-key", "cookie")
"""How the names of headers end that are left out."""


class RecordedRequest(msgspec.Struct, frozen=True):
    number: int
    """In the order of arrival, from 1."""
    time: str
    service: str
    operation: str
    account: str
    method: str
    path: str
    """Decoded and without the account."""
    query: str
    headers: dict[str, str]
    """Names in lower case. Long values are cut."""
    client_request_id: str
    request_id: str = ""
    status: int | None = None
    """None while it is being served, or if it got no answer."""
    code: str = ""
    """The error code of the answer."""
    fault: int | None = None
    """The fault that happened to it."""
    done: bool = False
    """Whether it has been answered, or never will be."""


_decode = msgspec.json.Decoder(RecordedRequest).decode


class Recorder:
    """Made before the first fork. Memory is used as it is written."""

    def __init__(self) -> None:
        self._words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")
        self._slots = memoryview(mmap.mmap(-1, KEPT * _SLOT_BYTES))
        self._heads = self._slots.cast("q")
        self._lock = ProcessLock()
        self._words[_NEXT] = self._words[_FIRST] = 1

    # For workers.

    def begin(self, request: Request, found: Identified, now: Instant) -> RecordedRequest:
        record = RecordedRequest(
            number=0,
            time=iso_text(now),
            service=found.service,
            operation=found.operation,
            account=_cut(found.account, 64),
            method=found.method,
            path=_cut(found.path, _PATH_CHARACTERS_MAX),
            query=_cut(cut_query(request.query), _PATH_CHARACTERS_MAX),
            headers=_headers(request.headers),
            client_request_id=_cut(request.headers.get("x-ms-client-request-id", "")),
        )
        with self._lock:
            number = self._words[_NEXT]
            self._words[_NEXT] = number + 1
            record = msgspec.structs.replace(record, number=number)
            self._write(record)
        return record

    def end(self, record: RecordedRequest) -> None:
        """Write it again, unless later ones have taken its room."""
        with self._lock:
            if self._words[_NEXT] - record.number <= KEPT:
                self._write(record)

    # For the admin process.

    @property
    def last(self) -> int:
        """The number of the last request; 0 before the first."""
        return self._words[_NEXT] - 1

    def all(self, after: int = 0) -> tuple[list[RecordedRequest], int]:
        """The requests after this number and since the last ``clear``, and how many of the oldest are not kept."""
        with self._lock:
            next_number, first = self._words[_NEXT], max(self._words[_FIRST], after + 1)
            kept_from = max(first, next_number - KEPT)
            texts = [self._text(number) for number in range(kept_from, next_number)]
        return [_decode(text) for text in texts], kept_from - first

    def clear(self) -> None:
        with self._lock:
            self._words[_FIRST] = self._words[_NEXT]

    # Under the lock.

    def _write(self, record: RecordedRequest) -> None:
        text = _encode(record)
        at = record.number % KEPT * _SLOT_BYTES
        self._heads[at // 8] = record.number
        self._heads[at // 8 + 1] = len(text)
        self._slots[at + _HEAD_BYTES : at + _HEAD_BYTES + len(text)] = text

    def _text(self, number: int) -> bytes:
        at = number % KEPT * _SLOT_BYTES
        assert self._heads[at // 8] == number
        return bytes(self._slots[at + _HEAD_BYTES : at + _HEAD_BYTES + self._heads[at // 8 + 1]])


def _encode(record: RecordedRequest) -> bytes:
    """At most as long as a slot, by leaving out what is long."""
    text = msgspec.json.encode(record)
    if len(text) > _SLOT_BYTES - _HEAD_BYTES:
        text = msgspec.json.encode(msgspec.structs.replace(record, headers={}))
    if len(text) > _SLOT_BYTES - _HEAD_BYTES:
        path = _cut(record.path, _VALUE_CHARACTERS_MAX // 2)
        text = msgspec.json.encode(msgspec.structs.replace(record, headers={}, path=path, query=""))
    return text


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        _cut(name): _cut(cut_secrets(value))
        for name, value in headers.items()
        if not name.endswith(_SECRET_HEADERS)
    }


def _cut(text: str, characters_max: int = _VALUE_CHARACTERS_MAX) -> str:
    text = text.encode("utf-8", "replace").decode()  # What is no text cannot be JSON.
    return text if len(text) <= characters_max else f"{text[:characters_max]}…"
