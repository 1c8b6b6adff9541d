"""State diagrams, drawn by trying every action in every state of the rules themselves."""

from collections.abc import Callable, Iterator, Mapping

from documentation.markdown import table
from kyanite.rules import leases, oplocks, preconditions, share_modes, visibility
from kyanite.rules.lease_records import NO_LEASE, Lease
from kyanite.rules.leases import INFINITE, State, state_of
from kyanite.rules.oplocks import ALL, Caching, Event, Grant
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Refused
from kyanite.rules.share_modes import EVERYTHING, Open, Rights
from kyanite.services.blob.errors import REASONS
from kyanite.services.rest.context import Resource
from kyanite.values import TICKS_PER_SECOND, ETag, Instant, LeaseId

_START = Instant(1_000_000 * TICKS_PER_SECOND)
_OWN, _OTHER = (
    LeaseId("00000000-0000-4000-8000-00000000000a"),
    LeaseId("00000000-0000-4000-8000-00000000000b"),
)


def _after(seconds: int) -> Instant:
    return Instant(_START + seconds * TICKS_PER_SECOND)


# --- Leases

_LATER = _after(100)
_LEASES: Mapping[State, Lease] = {
    State.AVAILABLE: NO_LEASE,
    State.LEASED: Lease(_OWN, 60, _after(130)),
    State.BREAKING: Lease(_OWN, 60, _after(130), breaks_at=_after(120)),
    State.BROKEN: Lease(_OWN, 60, _after(130), breaks_at=_after(90)),
    State.EXPIRED: Lease(_OWN, 60, _after(60)),
}
"""A lease in each state at the instant ``_LATER``."""

_LEASE_ACTIONS: Mapping[str, Callable[[Lease], Lease]] = {
    "acquire": lambda lease: leases.acquire(lease, _OTHER, 60, _LATER),
    "acquire, same id": lambda lease: leases.acquire(lease, _OWN, INFINITE, _LATER),
    "renew": lambda lease: leases.renew(lease, _OWN, _LATER),
    "change": lambda lease: leases.change(lease, _OWN, _OTHER, _LATER),
    "release": lambda lease: leases.release(lease, _OWN, _LATER),
    "break, period 10": lambda lease: leases.break_(lease, 10, _LATER)[0],
    "break, period 0": lambda lease: leases.break_(lease, 0, _LATER)[0],
    "write with the id": lambda lease: leases.check_write(lease, _OWN, _LATER),
    "write without id": lambda lease: leases.check_write(lease, None, _LATER),
}


def lease_diagram() -> str:
    return _diagram("[*] --> available", _lease_edges())


def _lease_edges() -> Iterator[tuple[str, str, str]]:
    for state, lease in _LEASES.items():
        assert state_of(lease, _LATER) is state
        for action, act in _LEASE_ACTIONS.items():
            try:
                after = act(lease)
            except Refused:
                continue
            if after != lease:
                yield state.value, state_of(after, _LATER).value, action
        passed = state_of(lease, _after(10_000))
        if passed is not state:
            yield state.value, passed.value, "time passes"


def lease_table() -> str:
    """What each action does in each state: the next state, or the answer of the Blob service."""
    rows = []
    for action, act in _LEASE_ACTIONS.items():
        cells = [action]
        for lease in _LEASES.values():
            try:
                cells.append(state_of(act(lease), _LATER).value)
            except Refused as refused:
                cells.append(_response(refused))
        rows.append(cells)
    return table(("action", *(state.value for state in _LEASES)), rows)


# --- Messages of a queue


def message_diagram() -> str:
    return _diagram("[*] --> visible : put", _message_edges())


def _message_edges() -> Iterator[tuple[str, str, str]]:
    put = visibility.put(delay_seconds=0, time_to_live_seconds=1000, secret=b"first", now=_START)
    got = visibility.get(put, timeout_seconds=30, secret=b"second", now=_START)
    states = {"visible": put, "hidden": got}
    for name, state in states.items():
        assert _message_state(state, _START) == name
        if visibility.is_visible(state, _START):
            after = visibility.get(state, timeout_seconds=30, secret=b"next", now=_START)
            yield name, _message_state(after, _START), "get (new receipt, one more dequeue)"
        for seconds in (0, 60):
            after = visibility.update(
                state, state.secret, timeout_seconds=seconds, secret=b"next", now=_START
            )
            yield name, _message_state(after, _START), f"update, timeout {seconds} (new receipt)"
        yield name, "[*]", "delete with the latest receipt"
        for seconds in (31, 1000):
            passed = _message_state(state, _after(seconds))
            if passed != name:
                yield name, passed, "time to live is over" if passed == "[*]" else "timeout is over"


def _message_state(state: visibility.MessageState, now: Instant) -> str:
    if visibility.is_expired(state, now):
        return "[*]"
    return "visible" if visibility.is_visible(state, now) else "hidden"


# --- Oplocks and leases of SMB

_EVENTS = {
    Event.OPEN: "open",
    Event.OVERWRITE: "overwrite",
    Event.WRITE: "write",
    Event.LOCK: "lock",
    Event.SHARING_VIOLATION: "sharing violation",
    Event.RENAME_OR_DELETE: "rename or delete",
}


def caching_diagram() -> str:
    return _diagram(f"[*] --> {_letters(ALL)} : granted", _caching_edges())


def _caching_edges() -> Iterator[tuple[str, str, str]]:
    known, todo = {ALL}, [ALL]
    while todo:
        state = todo.pop(0)
        for event, name in _EVENTS.items():
            broken = oplocks.break_for(event, Grant("client", state, is_lease=True), _START)
            if broken.message is None:
                continue
            target = broken.message.to
            yield _letters(state), _letters(target), f"{name}{' (waits)' if broken.waits else ''}"
            if target and target not in known:
                known.add(target)
                todo.append(target)


def _letters(state: Caching) -> str:
    text = "".join(letter for letter, bit in zip("RWH", _CACHING, strict=True) if bit & state)
    return text or "nothing"


_CACHING = (Caching.READ, Caching.WRITE, Caching.HANDLE)


# --- Share modes and conditions

_REST = {
    "read (Get File, List Ranges)": Rights.READ,
    "write (Put Range, Set File Properties, Set File Metadata)": Rights.WRITE,
    "write and delete (Create File over another)": Rights.WRITE | Rights.DELETE,
    "attributes (Get File Properties, List Directories and Files)": Rights.NONE,
}


def share_mode_table() -> str:
    """Whether a REST operation passes an SMB handle that reads and writes, by what that handle shares."""
    rows = []
    for mode in _modes():
        held = Open(Rights.READ, mode)
        cells = [_rights(mode)]
        for access in _REST.values():
            blocked = share_modes.conflict([held], Open(access, EVERYTHING))
            cells.append("409 `SharingViolation`" if blocked else "passes")
        rows.append(cells)
    return table(("the handle shares", *_REST), rows)


def condition_table() -> str:
    """What a condition does to reads and writes, of a blob that is there and has the ETag ``e``."""
    etag, modified = ETag("e"), _after(100)
    given = {
        "`If-Match: e`": Conditions(if_match=("e",)),
        "`If-Match: other`": Conditions(if_match=("other",)),
        "`If-Match: *`": Conditions(if_match=("*",)),
        "`If-None-Match: e`": Conditions(if_none_match=("e",)),
        "`If-None-Match: other`": Conditions(if_none_match=("other",)),
        "`If-None-Match: *`": Conditions(if_none_match=("*",)),
        "`If-Modified-Since`, earlier": Conditions(if_modified_since=_after(50)),
        "`If-Modified-Since`, the same second or later": Conditions(if_modified_since=_after(100)),
        "`If-Unmodified-Since`, the same second or later": Conditions(if_unmodified_since=_after(100)),
        "`If-Unmodified-Since`, earlier": Conditions(if_unmodified_since=_after(50)),
    }
    rows = []
    for name, c in given.items():
        tries: list[Callable[[], None]] = [
            lambda c=c: preconditions.check_read(c, etag, modified),  # type: ignore[misc]
            lambda c=c: preconditions.check_write(c, etag, modified, creates=True),  # type: ignore[misc]
            lambda c=c: preconditions.check_write(c, etag, modified, creates=False),  # type: ignore[misc]
            lambda c=c: preconditions.check_write(c, None, None, creates=True),  # type: ignore[misc]
        ]
        rows.append([name, *map(_outcome, tries)])
    headings = (
        "condition",
        "a read",
        "a write that may create",
        "another write",
        "creating what is not there",
    )
    return table(headings, rows)


def _outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except Refused as refused:
        return _response(refused)
    return "passes"


# --- All of them


def _diagram(first: str, edges: Iterator[tuple[str, str, str]]) -> str:
    labels: dict[tuple[str, str], list[str]] = {}
    for source, target, label in edges:
        labels.setdefault((source, target), []).append(label)
    lines = [
        f"    {source} --> {target} : {'<br/>'.join(texts)}" for (source, target), texts in labels.items()
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    {first}", *lines, "```"])


def _modes() -> list[Rights]:
    return [Rights(value) for value in range(EVERYTHING.value + 1)]


def _rights(rights: Rights) -> str:
    names = [
        right.name.lower()
        for right in (Rights.READ, Rights.WRITE, Rights.DELETE)
        if right & rights
        if right.name
    ]
    return ", ".join(names) or "nothing"


def _response(refused: Refused) -> str:
    """The Blob service's."""
    error = REASONS[Resource.OBJECT][refused.reason]
    return f"{error.status} `{error.code}`"
