"""What was asked and what was stored, in plain words: a function for each kind of facts and details."""

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from typing import Any

from kyanite.model.files.usage import QuotaFacts
from kyanite.model.requests.refusals import Refusal
from kyanite.rules.authorization import AccessFacts, PublicFacts, RoleFacts, SignatureFacts
from kyanite.rules.byte_locks import LockFacts
from kyanite.rules.entities import EntityFacts, KeyRangeFacts
from kyanite.rules.immutability import ProtectionFacts
from kyanite.rules.lease_records import LeaseFacts
from kyanite.rules.leases import State, state_of
from kyanite.rules.preconditions import AppendFacts, ConditionFacts, SequenceNumberFacts
from kyanite.rules.refusals import (
    AuthenticationProblem,
    Because,
    CallerAddress,
    CurrentETag,
    Explained,
    HiddenTooLong,
    HiddenUntilExpiry,
    NameFacts,
    TotalLength,
)
from kyanite.rules.roles import Grant
from kyanite.rules.sas_terms import AddressFacts, PolicyFacts, TimeFacts
from kyanite.rules.share_modes import HandleFacts, Open, OpenFileFacts, Rights
from kyanite.rules.tag_expressions import Condition
from kyanite.rules.token_claims import ClaimFacts
from kyanite.values import Instant, LeaseId, datetime_from_instant

_RIGHTS = {Rights.READ: "reading", Rights.WRITE: "writing", Rights.DELETE: "deleting"}
_SAS_FIELDS = {"ss": "services", "srt": "resource types", "sp": "permissions", "sr": "resource"}
_POLICY_FIELDS = {"sp": "permissions", "st": "start", "se": "expiry"}


# Conditions


def _conditions(facts: ConditionFacts) -> list[str]:
    """Each condition that was sent, beside what it was compared with."""
    conditions, etag, modified_at, tags = facts
    is_time_only = etag is None and modified_at is not None
    found = "the resource does not exist" if etag is None else f"its ETag is {etag}"
    said = []
    if conditions.if_match is not None:
        said.append(f"If-Match asks for the ETag {_etags(conditions.if_match)}; {found}.")
    if conditions.if_none_match is not None:
        said.append(f"If-None-Match asks for another ETag than {_etags(conditions.if_none_match)}; {found}.")
    changed = "" if modified_at is None else f"; it was last modified at {_second(modified_at)}"
    if conditions.if_modified_since is not None:
        said.append(
            f"If-Modified-Since asks for a change after {_second(conditions.if_modified_since)}{changed}."
        )
    if conditions.if_unmodified_since is not None:
        said.append(
            f"If-Unmodified-Since asks for no change after {_second(conditions.if_unmodified_since)}{changed}."
        )
    if conditions.if_tags is not None and not is_time_only:
        have = ", ".join(f"{key}={value}" for key, value in tags) or "none"
        said.append(f"x-ms-if-tags asks for {_tag_condition(conditions.if_tags)}; its tags are: {have}.")
    return said


def _etags(etags: tuple[str, ...]) -> str:
    return " or ".join("any (*)" if etag == "*" else etag for etag in etags)


def _tag_condition(condition: Condition) -> str:
    return " OR ".join(
        " AND ".join(f"\"{each.key}\" {each.operator.value} '{each.value}'" for each in conjunction)
        for conjunction in condition.alternatives
    )


def _append(facts: AppendFacts) -> list[str]:
    said = [f"The blob has {facts.length} bytes, and the request appends {facts.added}."]
    if facts.position is not None:
        said.append(f"The request expects {facts.position} bytes (x-ms-blob-condition-appendpos).")
    if facts.max_size is not None:
        said.append(f"The request allows {facts.max_size} bytes at most (x-ms-blob-condition-maxsize).")
    return said


def _sequence_number(facts: SequenceNumberFacts) -> list[str]:
    number, *bounds = facts
    wanted = [
        f"{word} {value}" for word, value in zip(("<=", "<", "="), bounds, strict=True) if value is not None
    ]
    return [f"The sequence number of the blob is {number}; the request asks for one {' and '.join(wanted)}."]


def _entity(facts: EntityFacts) -> list[str]:
    if not facts.if_match:
        return [f"The ETag of the entity is {facts.etag}."]
    return [f"If-Match has the ETag {facts.if_match}; that of the entity is {facts.etag}."]


# Leases


def _lease(facts: LeaseFacts) -> list[str]:
    """The id of a lease is a secret of its holder, so no more of it is told than the client has sent."""
    lease, given_id, at = facts
    state = state_of(lease, at)
    if given_id is None:
        given = "The request names no lease id."
    elif given_id == lease.id:
        given = f"The request names the id of the lease ({_short(given_id)})."
    elif lease.id is None:
        given = f"The request names the lease id {_short(given_id)}."
    else:
        given = f"The request names the lease id {_short(given_id)}; the lease has another one."
    match state:
        case State.AVAILABLE:
            stored = "There is no lease."
        case State.LEASED if lease.ends_at is None:
            stored = "The lease is infinite: it is held until it is released or broken."
        case State.LEASED:
            assert lease.ends_at is not None
            stored = f"The lease is held until {_time(lease.ends_at)}, unless it is renewed or released."
        case State.BREAKING:
            assert lease.breaks_at is not None
            stored = f"The lease is breaking: it ends at {_time(lease.breaks_at)}."
        case State.BROKEN:
            assert lease.breaks_at is not None
            stored = f"The lease was broken, and ended at {_time(lease.breaks_at)}."
        case State.EXPIRED:
            assert lease.ends_at is not None
            stored = f"The lease expired at {_time(lease.ends_at)}."
    return [given, stored]


def _short(lease_id: LeaseId) -> str:
    return f"{lease_id[:8]}…"


# Open handles


def _handle(facts: HandleFacts) -> list[str]:
    said = [
        f"A handle of the client {facts.client or 'of an unknown address'}, opened at {_time(facts.opened_at)}, has "
        f"the file open for {_rights(facts.held.access)} and lets others open it for {_rights(facts.held.share)}."
    ]
    if facts.wanted is not None:
        said.append(_wanted(facts.wanted))
    return said


def _wanted(wanted: Open) -> str:
    return f"The request needs {_rights(wanted.access)} and would let others do {_rights(wanted.share)}."


def _rights(rights: Rights) -> str:
    return ", ".join(text for right, text in _RIGHTS.items() if right in rights) or "nothing of that"


def _open_file(facts: OpenFileFacts) -> list[str]:
    handles = "1 handle is" if facts.handles == 1 else f"{facts.handles} handles are"
    return [f"{handles} open on {facts.path or 'the root of the share'}."]


def _lock(facts: LockFacts) -> list[str]:
    lock = facts.lock
    kind = "an exclusive" if lock.is_exclusive else "a shared"
    of_client = f" of the client {facts.client}" if facts.client else ""
    return [
        f"The request is for {facts.length} bytes from {facts.start} on; {kind} lock{of_client} covers "
        f"{lock.length} bytes from {lock.start} on."
    ]


# Access


def _signature(facts: SignatureFacts) -> list[str]:
    said = [f"The signature ({facts.kind}) is not one that the server computes with a key of the account."]
    if facts.account:
        said = [f"The request is signed for the account {facts.account}, and its URL names another one."]
    elif not facts.has_key:
        said.append("The account has given out no user delegation key, or all of them were revoked.")
    elif facts.kind == "user delegation SAS":
        said.append("If the client has signed the same text, its key was revoked or is not of this server.")
    else:
        said.append("If the client has signed the same text, it has another key.")
    return said


def _times(facts: TimeFacts) -> list[str]:
    now = f"the request came at {_time(facts.at)}"
    what, start, expiry = (
        ("user delegation key", "skt", "ske") if facts.is_of_key else ("signature", "st", "se")
    )
    if facts.starts_at is not None and facts.at < facts.starts_at:
        return [f"The {what} is not valid before {_time(facts.starts_at)} (its start, {start}); {now}."]
    return [
        f"The {what} is not valid any more since {_time(facts.expires_at)} (its expiry, {expiry}); {now}."
    ]


def _addresses(facts: AddressFacts) -> list[str]:
    first, last = IPv4Address(facts.first), IPv4Address(facts.last)
    return [f"The signature allows {first if first == last else f'{first} to {last}'} (sip)."]


def _policy(facts: PolicyFacts) -> list[str]:
    if not facts.exists:
        return ["The stored access policy that the signature names (si) does not exist, or was deleted."]
    if facts.in_both:
        return [f"The signature and its stored access policy both have: {_fields(facts.in_both)}."]
    return [f"Neither the signature nor its stored access policy has: {_fields(facts.in_neither)}."]


def _fields(fields: tuple[str, ...]) -> str:
    return ", ".join(f"{_POLICY_FIELDS[field]} ({field})" for field in fields)


def _access(facts: AccessFacts) -> list[str]:
    if not facts.field:
        return [f"No {facts.kind} is ever enough for this operation."]
    name = _SAS_FIELDS[facts.field]
    needed = facts.needed.replace("&", " and ") if "&" in facts.needed else " or ".join(facts.needed)
    if facts.field == "sr":
        needed = facts.needed
    return [
        f"The {name} of the {facts.kind} ({facts.field}) are {facts.given or 'none'}; the operation needs {needed}."
    ]


def _role(facts: RoleFacts) -> list[str]:
    caller, container, grants, needed = facts
    where = f"for {container}" if container else "for the whole service"
    who = caller.principal or caller.object_id
    if not needed:
        return [f"The caller is {who}. No role is ever enough for this operation."]
    wants = needed.replace("|", " or ").replace("&", " and ")
    said = [f"The caller is {who}. The operation needs the action {wants} {where}."]
    return said + ([_grant(grant) for grant in grants] or ["The caller has no role in this service."])


def _grant(grant: Grant) -> str:
    scope = f" for {grant.container} only" if grant.container else ""
    return f"The caller has the role {grant.role}{scope}, with these actions: {', '.join(sorted(grant.actions))}."


def _public(facts: PublicFacts) -> list[str]:
    if facts.needed is None:
        return ["This operation always needs credentials."]
    return [
        f"The public access of the container is {facts.level or 'none'}; the operation needs {facts.needed}."
    ]


def _claim(facts: ClaimFacts) -> list[str]:
    said = f"The claim {facts.claim} of the token is {facts.value!r}"
    is_time = facts.claim in ("nbf", "exp") and facts.at_seconds is not None
    return [f"{said}; the request came at {facts.at_seconds}." if is_time else f"{said}."]


def _key_range(facts: KeyRangeFacts) -> list[str]:
    allowed = facts.allowed
    return [
        f"The request is for the entity ({facts.partition_key!r}, {facts.row_key!r}); the signature allows those from "
        f"({allowed.start_partition!r}, {allowed.start_row!r}) to ({allowed.end_partition!r}, {allowed.end_row!r}) "
        "(spk, srk, epk, erk)."
    ]


# The rest


def _protection(facts: ProtectionFacts) -> list[str]:
    whose = "of the container" if facts.is_of_container else "of the blob"
    said = []
    if facts.until is not None:
        said.append(f"The policy {whose} protects it until {_time(facts.until)}.")
    elif not facts.holds:
        said.append(f"The legal hold is one {whose}.")
    if facts.holds:
        said.append(f"The legal holds {whose} have the tags: {', '.join(facts.holds)}.")
    return said


def _quota(facts: QuotaFacts) -> list[str]:
    return [
        f"The files of the share have {facts.used_bytes} bytes, the request adds {facts.added_bytes}, and the quota is "
        f"{facts.quota_gib} GiB."
    ]


def _name(facts: NameFacts) -> list[str]:
    if facts.kind == "account":
        return [f"There is no account {facts.name!r}, or it has no secondary location."]
    return [f"The name of the {facts.kind} is {facts.name!r}."]


def _because(facts: Because) -> list[str]:
    return [facts.text]


def _time(instant: Instant) -> str:
    return f"{datetime_from_instant(instant):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"


def _second(instant: Instant) -> str:
    return f"{datetime_from_instant(instant):%Y-%m-%d %H:%M:%S} UTC"


FACTS: Mapping[type, Callable[[Any], list[str]]] = {
    AccessFacts: _access,
    AddressFacts: _addresses,
    AppendFacts: _append,
    Because: _because,
    ClaimFacts: _claim,
    ConditionFacts: _conditions,
    EntityFacts: _entity,
    HandleFacts: _handle,
    KeyRangeFacts: _key_range,
    LeaseFacts: _lease,
    LockFacts: _lock,
    NameFacts: _name,
    OpenFileFacts: _open_file,
    PolicyFacts: _policy,
    ProtectionFacts: _protection,
    PublicFacts: _public,
    QuotaFacts: _quota,
    RoleFacts: _role,
    SequenceNumberFacts: _sequence_number,
    SignatureFacts: _signature,
    TimeFacts: _times,
}


def sentences_of_facts(facts: object) -> list[str]:
    return [] if facts is None else FACTS[type(facts)](facts)


def string_to_sign_in(facts: object) -> str:
    return facts.string_to_sign if isinstance(facts, SignatureFacts) else ""


def sentences_of_detail(refusal: Refusal) -> list[str]:
    """What the response has told the client already, as far as the facts do not say it better."""
    detail = refusal.detail
    match detail:
        case TotalLength():
            return [f"The content has {detail.bytes} bytes."]
        case CallerAddress():
            return [f"The request came from {detail.address}."]
        case Explained():
            return [detail.text]
        case AuthenticationProblem():
            return [] if refusal.facts is not None else [detail.text]
        case HiddenUntilExpiry():
            return [f"It was to be hidden for {detail.seconds} seconds."]
        case HiddenTooLong():
            return [
                f"It was to be hidden for {detail.seconds} seconds; {detail.maximum} is the most that is possible now."
            ]
        case CurrentETag() | None:
            return []
    return _malformed(refusal.code, detail)


def _malformed(code: str, detail: Mapping[str, str]) -> list[str]:
    """What could not be read, by the names that Azure gives it in the body of an error."""
    values = dict(detail)
    said = []
    for kind, name, value in (
        ("header", "HeaderName", "HeaderValue"),
        ("query parameter", "QueryParameterName", "QueryParameterValue"),
        ("XML element", "XmlNodeName", "XmlNodeValue"),
    ):
        if name in values:
            text = f"The {kind} {values.pop(name)}"
            given = values.pop(value, None)
            said.append(f"{text} is missing or not accepted." if given is None else f"{text} is {given!r}.")
    said += [values.pop(name) for name in ("Reason", "AuthenticationErrorDetail") if name in values]
    said += [f"{name}: {value}." for name, value in values.items()]
    return [f"The request could not be read ({code}).", *said]
