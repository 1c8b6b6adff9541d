"""The last refusals of this process, by their request id: what was asked and what was stored, as values.

A refusal is kept as it is: nothing is formatted, copied or looked up until somebody asks (``explanations.py``). What a
process keeps is bounded in number and in bytes, since a client chooses how long the texts are that it is refused.
"""

from collections import OrderedDict
from collections.abc import Mapping

import msgspec

from kyanite.model.records import Value
from kyanite.rules.refusals import Detail, Reason
from kyanite.values import Instant

KEPT_MAX = 10_000
KEPT_BYTES_MAX = 16 * 1024 * 1024
"""Of texts that clients have chosen. A usual refusal has less than 1 KiB of them."""


class Refusal(Value, frozen=True):
    request_id: str
    at: Instant
    service: str
    account: str
    """The one that the request names, whether or not there is one; empty if it names none."""
    operation: str
    """Empty if the request was refused before it was found."""
    method: str
    path: str
    query: str
    """As it came, so it may have a signature: it is cut when the refusal is explained."""
    client: str
    """The address."""
    user_agent: str
    client_request_id: str
    status: int | str
    code: str
    """Azure's error code, or the name of a status of SMB."""
    reason: Reason | None
    """None if the request could not be read, or the server failed."""
    detail: Detail | Mapping[str, str] | None = None
    """What the response tells the client. A mapping says what could not be read, by Azure's names."""
    facts: object = None
    """What the rule compared. Each kind is defined beside the rule."""
    is_of_source: bool = False
    """Whether it is the source of a copy that is refused."""
    length: int = 0
    """About how many bytes the texts have that the client has chosen."""


class Explanation(msgspec.Struct, frozen=True):
    request_id: str
    at: str
    """When the request was refused, in UTC."""
    account: str
    service: str
    operation: str
    """Empty if the request was refused before it was known which one it is."""
    method: str
    url: str
    """Path and query, without a signature."""
    client: str
    user_agent: str
    client_request_id: str
    status: int | str
    code: str
    """Azure's error code, or the name of a status of SMB."""
    reason: str
    """The server's own name for the rule; empty if the request could not be read."""
    sentences: tuple[str, ...]
    """Which rule refused the request, what was asked and what was stored."""
    string_to_sign: str = ""
    """What the server has computed the signature of, if that was not the one in the request."""


class Refusals:
    """Keeps the last refusals of this process."""

    def __init__(self, kept_max: int = KEPT_MAX, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._kept: OrderedDict[str, Refusal] = OrderedDict()  # A dict is slow at losing its first.
        self._kept_max = kept_max
        self._bytes_max = bytes_max
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, refusal: Refusal) -> None:
        kept, request_id = self._kept, refusal.request_id
        before = kept.pop(request_id, None)  # Of another part of the same batch.
        if before is not None:
            self._bytes -= before.length
        kept[request_id] = refusal
        self._bytes += refusal.length
        while len(kept) > self._kept_max or self._bytes > self._bytes_max:
            self._bytes -= kept.popitem(last=False)[1].length

    def find(self, request_id: str, account: str | None = None) -> Refusal | None:
        """The refusal of a request; with an account only if the request was for that one."""
        refusal = self._kept.get(request_id)
        if refusal is None or (account is not None and refusal.account != account):
            return None
        return refusal
