"""Fault rules: which requests fail, how, and how often. Pure: the counts of a rule come in and go out."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Annotated

import msgspec

from kyanite.values import TICKS_PER_SECOND, Instant

DEFAULT_CODES = {
    403: "AuthenticationFailed",
    404: "ResourceNotFound",
    408: "RequestTimeout",
    412: "ConditionNotMet",
    413: "RequestBodyTooLarge",
    500: "InternalError",
    501: "NotImplemented",
    503: "ServerBusy",
    507: "InsufficientStorage",
}
"""The error code of a status, where the rule names none."""

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]


class FaultRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """As the HTTP API has it. What is left out matches every request, or has no effect."""

    # Which requests.
    service: str | None = None
    operation: str | None = None
    """Its name in the REST reference."""
    account: _Text | None = None
    path: _Text | None = None
    """A pattern of the decoded path without the account, as in ``photos/*.jpg``."""
    method: _Text | None = None
    # What happens to them.
    status: Annotated[int, msgspec.Meta(ge=400, le=599)] | None = None
    code: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9]{1,64}$")] | None = None
    retry_after_seconds: _Count | None = None
    drop: bool = False
    """The connection is reset instead of an answer."""
    truncate_bytes: _Count | None = None
    """The connection is reset after so many bytes of the answer's body."""
    delay_seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 0.0
    """Of real time, before anything else."""
    after_commit: bool = False
    """The request is carried out first; only its answer is replaced."""
    # How often.
    times: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    skip: _Count = 0
    """So many matching requests are left alone at first."""
    probability: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    seed: Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] = 0
    """Decides, with the number of the matching request, which ones a probability hits."""
    beyond_per_second: _Count | None = None
    """Only requests beyond so many within a second, by the clock of the server."""


def problem_of(rule: FaultRule, operations: Collection[str], services: Collection[str]) -> str | None:
    """Why a rule cannot be obeyed, in one sentence."""
    effects = [rule.status is not None, rule.drop, rule.truncate_bytes is not None]
    if sum(effects) > 1:
        return "A fault has one of status, drop and truncate_bytes."
    if not any(effects) and not rule.delay_seconds:
        return "Say what happens: status, drop, truncate_bytes or delay_seconds."
    if rule.after_commit and rule.status is None and not rule.drop:
        return "after_commit goes with status or drop."
    if rule.status is None and (rule.code is not None or rule.retry_after_seconds is not None):
        return "code and retry_after_seconds go with status."
    if rule.status is not None and rule.code is None and rule.status not in DEFAULT_CODES:
        return f"A fault with status {rule.status} needs the code of its error."
    if rule.service is not None and rule.service not in services:
        return f"There is no service {rule.service!r}. There is {', '.join(services)}."
    if rule.operation is not None and rule.operation not in operations:
        near = get_close_matches(rule.operation, operations, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return f"There is no operation {rule.operation!r}.{hint}"
    return None


@dataclass(frozen=True, slots=True)
class Identified:
    """What is known of a request before it is served. Empty texts where it cannot be read."""

    service: str
    operation: str
    account: str
    path: str
    method: str


def matches(rule: FaultRule, request: Identified) -> bool:
    return (
        rule.service in (None, request.service)
        and rule.operation in (None, request.operation)
        and rule.account in (None, request.account)
        and (rule.method is None or rule.method.upper() == request.method)
        and (rule.path is None or fnmatchcase(request.path, rule.path.removeprefix("/")))
    )


@dataclass(frozen=True, slots=True)
class Counts:
    matched: int = 0
    fired: int = 0
    window_began_at: int = 0
    """When the first request came of the second in which requests are counted; 0 for none."""
    window_requests: int = 0


def next_counts(rule: FaultRule, counts: Counts, now: Instant) -> tuple[Counts, bool]:
    """The counts after one more request that the rule matches, and whether the fault happens to it."""
    matched = counts.matched + 1
    began_at, requests = counts.window_began_at, counts.window_requests + 1
    if not began_at or now - began_at >= TICKS_PER_SECOND:
        began_at, requests = now, 1
    happens = (
        matched > rule.skip
        and (rule.times is None or counts.fired < rule.times)
        and (rule.beyond_per_second is None or requests > rule.beyond_per_second)
        and _drawn(rule, matched)
    )
    return Counts(matched, counts.fired + happens, began_at, requests), happens


def _drawn(rule: FaultRule, number: int) -> bool:
    if rule.probability == 1:
        return True
    digest = blake2b(f"{rule.seed}:{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < rule.probability * 2**64
