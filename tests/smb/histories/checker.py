"""Whether a history could have happened on one file that does one thing at a time.

*Linearisability*: there is an instant within each read and write, such that in the order of these instants every read
has the value of the last write before it. The search is that of Wing and Gong with a memory of what was tried (Lowe).

*Mutual exclusion*: while a client has something that forbids an access, no other client's access begins and ends.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tests.smb.histories.history import Access, History, Holding, Kind

EXCLUSIVE_HANDLE = "handle that shares nothing"
READ_SHARING_HANDLE = "handle that shares reading"
EXCLUSIVE_LOCK = "exclusive lock"
SHARED_LOCK = "shared lock"
LEASE = "lease of REST"
WRITING_HANDLE = "handle for writing"

FORBIDDEN_TO_REST: dict[str, set[Kind]] = {
    EXCLUSIVE_HANDLE: {Kind.READ, Kind.WRITE},
    READ_SHARING_HANDLE: {Kind.WRITE},
    EXCLUSIVE_LOCK: {Kind.READ, Kind.WRITE},
    SHARED_LOCK: {Kind.WRITE},
    LEASE: {Kind.WRITE},
    WRITING_HANDLE: set(),
}
FORBIDDEN_TO_SMB: dict[str, set[Kind]] = {
    **FORBIDDEN_TO_REST,
    LEASE: {Kind.WRITE},
}
EXCLUDES: set[frozenset[str]] = {
    frozenset({EXCLUSIVE_HANDLE}),
    frozenset({EXCLUSIVE_HANDLE, READ_SHARING_HANDLE}),
    frozenset({EXCLUSIVE_HANDLE, LEASE}),
    frozenset({EXCLUSIVE_HANDLE, WRITING_HANDLE}),
    frozenset({READ_SHARING_HANDLE}),
    frozenset({READ_SHARING_HANDLE, WRITING_HANDLE}),
    frozenset({READ_SHARING_HANDLE, LEASE}),
    frozenset({WRITING_HANDLE, LEASE}),
    frozenset({LEASE}),
    frozenset({EXCLUSIVE_LOCK}),
    frozenset({EXCLUSIVE_LOCK, SHARED_LOCK}),
}
"""What two clients cannot have at the same time. The first two kinds of handles are for writing as well."""


def violations(history: History, first_value: int) -> list[str]:
    """All that is wrong. Every file had the first value in the beginning."""
    by_file: dict[str, list[Access]] = defaultdict(list)
    for access in history.accesses:
        by_file[access.file].append(access)
    found = [
        f"{file}: no order explains {_text_of(accesses)}"
        for file, accesses in by_file.items()
        if not is_linearisable(accesses, first_value)
    ]
    return found + list(_excluded(history.holdings)) + list(_forbidden(history))


def _text_of(accesses: Sequence[Access]) -> str:
    return "; ".join(str(each) for each in sorted(accesses, key=lambda each: each.began_at)[:40])


def is_linearisable(accesses: Sequence[Access], first_value: int) -> bool:
    """Depth first: whichever access may be the next is one that began before any that is left has ended."""
    ordered = sorted(accesses, key=lambda each: each.began_at)
    count = len(ordered)
    everything = (1 << count) - 1
    tried: set[tuple[int, int]] = set()
    states = [(0, first_value)]
    while states:
        done, value = states.pop()
        if done == everything:
            return True
        if (done, value) in tried:
            continue
        tried.add((done, value))
        first_end = _first_end(ordered, done)
        for index in range(_first_left(done), count):
            if done >> index & 1:
                continue
            access = ordered[index]
            if access.began_at > first_end:
                break
            if access.kind is Kind.WRITE:
                states.append((done | 1 << index, access.value))
            elif access.value == value:
                states.append((done | 1 << index, value))
    return False


def _first_left(done: int) -> int:
    return (~done & (done + 1)).bit_length() - 1


def _first_end(ordered: Sequence[Access], done: int) -> int:
    """When the first of those that are left has ended."""
    found = None
    for index in range(_first_left(done), len(ordered)):
        if done >> index & 1:
            continue
        if found is not None and ordered[index].began_at > found:
            break
        ended_at = ordered[index].ended_at
        found = ended_at if found is None else min(found, ended_at)
    assert found is not None
    return found


def _excluded(holdings: Sequence[Holding]) -> Iterable[str]:
    for number, one in enumerate(holdings):
        for two in holdings[number + 1 :]:
            if (
                one.file == two.file
                and one.client != two.client
                and one.began_at < two.ended_at
                and two.began_at < one.ended_at
                and frozenset({one.what, two.what}) in EXCLUDES
            ):
                yield f"{one}, and {two}"


def _forbidden(history: History) -> Iterable[str]:
    for holding in history.holdings:
        for access in history.accesses:
            forbidden = FORBIDDEN_TO_REST if access.is_rest else FORBIDDEN_TO_SMB
            if (
                access.file == holding.file
                and access.client != holding.client
                and access.kind in forbidden[holding.what]
                and holding.began_at < access.began_at
                and access.ended_at < holding.ended_at
            ):
                yield f"{holding}, and {access}"
