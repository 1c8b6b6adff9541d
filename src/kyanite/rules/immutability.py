"""Immutability policies and legal holds: what they protect, what they refuse, and how they may be changed.

There are two kinds of protection, and a container has one of them at a time:

    container-level   a policy of the container keeps every blob for some days after its creation; legal holds of the
                      container, each named by a tag, keep all of them
    version-level     every base blob, version and snapshot has a policy of its own, with the instant until which it is
                      kept, and a legal hold of its own; the policy of the container is the default for new ones

Either kind of policy is unlocked first and can be changed and deleted. Once it is locked it can only be extended. No
timer ends a policy: whether it is active follows from the instants that are stored and the time.
"""

from enum import Enum
from typing import NamedTuple

from kyanite.rules.refusals import Explained, Reason, Refused
from kyanite.values import TICKS_PER_SECOND, Instant

MAX_DAYS = 146_000
MAX_EXTENSIONS = 5
"""How often the locked policy of a container can be extended."""
MAX_TAGS = 10
_TAG_LENGTHS = range(3, 24)
_DAY_SECONDS = 24 * 3600


class BlobProtection(NamedTuple):
    """What protects one base blob, version or snapshot, as it is stored in its record."""

    until: Instant | None = None
    """The end of its policy, also after that has passed; None without a policy."""
    is_locked: bool = False
    has_legal_hold: bool = False


class Appends(Enum):
    """Which blobs the policy of a container lets grow."""

    NONE = ""
    APPEND_BLOBS = "append"
    ALL = "all"
    """Block blobs too. No operation of the Blob service appends to one, so this is the same here."""


class ContainerPolicy(NamedTuple):
    """The policy of a container, as it is stored."""

    days: int
    is_locked: bool = False
    extensions: int = 0
    """How often it was extended since it is locked."""
    appends: Appends = Appends.NONE


class ContainerProtection(NamedTuple):
    """What protects the blobs of a container, as it is stored in the record of the container."""

    policy: ContainerPolicy | None = None
    """With version-level immutability: the default of new versions, which protects nothing by itself."""
    legal_hold_tags: tuple[str, ...] = ()
    legal_hold_allows_appends: bool = False
    is_version_level: bool = False
    """Once it is true it stays so."""


NOT_PROTECTED = ContainerProtection()


# What is refused


class Change(Enum):
    """What a request does to a blob that exists. Reads, leases, tags and tiers are never refused."""

    DELETE = "Delete Blob, of a base blob, version or snapshot"
    OVERWRITE = "Put Blob, Put Block List, a copy onto it"
    SET_METADATA = "Set Blob Metadata"
    WRITE_PAGES = "Put Page, also to clear; a new size of a page blob"
    SET_PROPERTIES = "Set Blob Properties"
    APPEND = "Append Block"
    SEAL = "Append Blob Seal"
    SNAPSHOT = "Snapshot Blob, Incremental Copy Blob"


class _Verdict(Enum):
    YES = "allowed"
    NO = "refused"
    KEPT = "allowed if the blob becomes a previous version"
    APPENDS = "allowed if the policy or the hold lets append blobs grow"


_YES, _NO, _KEPT, _APPENDS = _Verdict

# Columns: version-level with an active policy or a hold; version-level with an expired policy; the same two of the
# container. Without a policy and a hold nothing is refused.
_TABLE = {
    Change.DELETE: (_NO, _YES, _NO, _YES),
    Change.OVERWRITE: (_KEPT, _YES, _NO, _NO),
    Change.SET_METADATA: (_NO, _NO, _NO, _NO),
    Change.WRITE_PAGES: (_NO, _NO, _NO, _NO),
    Change.SET_PROPERTIES: (_YES, _YES, _NO, _NO),
    Change.APPEND: (_NO, _NO, _APPENDS, _APPENDS),
    Change.SEAL: (_YES, _YES, _APPENDS, _APPENDS),
    Change.SNAPSHOT: (_YES, _YES, _NO, _NO),
}


class ProtectionFacts(NamedTuple):
    """What protects a blob or a container."""

    until: Instant | None
    """The end of the policy."""
    holds: tuple[str, ...]
    """The tags of the legal holds of the container."""
    is_of_container: bool


class BlobTimes(NamedTuple):
    """What the policy of a container needs to know of a blob."""

    created_at: Instant
    modified_at: Instant
    is_append_blob: bool = False


def check(
    change: Change,
    container: ContainerProtection | None,
    blob: BlobProtection | None,
    times: BlobTimes,
    now: Instant,
    *,
    keeps_version: bool = False,
) -> None:
    """Refuse what the protection of the blob, or that of its container, does not allow.

    ``keeps_version`` says of an overwrite that what is there becomes a previous version with its own protection.
    """
    if blob is not None:
        if blob.has_legal_hold and _forbids(_TABLE[change][0], keeps_version=keeps_version):
            facts = ProtectionFacts(None, (), is_of_container=False)
            raise Refused(Reason.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD, facts=facts)
        if blob.until is not None:
            column = 0 if now < blob.until else 1
            if _forbids(_TABLE[change][column], keeps_version=keeps_version):
                facts = ProtectionFacts(blob.until, (), is_of_container=False)
                raise Refused(Reason.BLOB_IMMUTABLE_DUE_TO_POLICY, facts=facts)
    if container is None or container.is_version_level:
        return
    tags = container.legal_hold_tags
    if tags and _forbids(_TABLE[change][2], appends=container.legal_hold_allows_appends):
        facts = ProtectionFacts(None, tags, is_of_container=True)
        raise Refused(Reason.BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD, facts=facts)
    policy = container.policy
    if policy is not None:
        until = retained_until(policy, times)
        if _forbids(_TABLE[change][2 if now < until else 3], appends=policy.appends is not Appends.NONE):
            facts = ProtectionFacts(until, (), is_of_container=True)
            raise Refused(Reason.BLOB_IMMUTABLE_DUE_TO_POLICY, facts=facts)


def _forbids(verdict: _Verdict, *, keeps_version: bool = False, appends: bool = False) -> bool:
    return verdict is _NO or (verdict is _KEPT and not keeps_version) or (verdict is _APPENDS and not appends)


def retained_until(policy: ContainerPolicy, times: BlobTimes) -> Instant:
    """Until when a policy of its container keeps a blob: days after its creation, or after the last append."""
    grows = times.is_append_blob and policy.appends is not Appends.NONE
    return _after_days(times.modified_at if grows else times.created_at, policy.days)


def is_active(blob: BlobProtection, now: Instant) -> bool:
    return blob.has_legal_hold or (blob.until is not None and now < blob.until)


# The protection of one base blob, version or snapshot


def check_version_level(container: ContainerProtection | None) -> None:
    """Refuse a policy or a hold of a single blob in a container that does not support them."""
    if container is None or not container.is_version_level:
        raise Refused(Reason.VERSION_LEVEL_IMMUTABILITY_NOT_ENABLED)


def new_version_level(*, has_versioning: bool) -> ContainerProtection:
    """For a container that has no protection: version-level immutability, which needs versioning."""
    if not has_versioning:
        raise Refused(Reason.VERSIONING_NOT_ENABLED)
    return ContainerProtection(is_version_level=True)


def of_new_blob(
    container: ContainerProtection | None, requested: BlobProtection | None, now: Instant
) -> BlobProtection | None:
    """The protection of a new current version: the policy in the request, or the default of the container."""
    if requested is not None:
        check_version_level(container)
        if requested.until is not None:
            _check_date(requested.until, now)
            return requested
    if container is None or not container.is_version_level:
        return None
    held = requested is not None and requested.has_legal_hold
    policy = container.policy
    if policy is None:
        return BlobProtection(has_legal_hold=True) if held else None
    return BlobProtection(_whole_second(_after_days(now, policy.days)), policy.is_locked, held)


def set_policy(
    blob: BlobProtection | None, until: Instant, *, is_locked: bool, now: Instant
) -> BlobProtection:
    """Set or change the policy. A locked one stays locked, and its end can only be moved to a later date."""
    old = blob or BlobProtection()
    _check_date(until, now)
    if old.until is not None and old.is_locked and (not is_locked or until < old.until):
        facts = ProtectionFacts(old.until, (), is_of_container=False)
        raise Refused(Reason.IMMUTABILITY_POLICY_LOCKED, facts=facts)
    return old._replace(until=until, is_locked=is_locked)


def delete_policy(blob: BlobProtection | None) -> BlobProtection | None:
    """Without a policy nothing happens. A locked one cannot be deleted, even after it has expired."""
    if blob is None or blob.until is None:
        return blob
    if blob.is_locked:
        raise Refused(Reason.IMMUTABILITY_POLICY_DELETE_ON_LOCKED_POLICY)
    return _or_none(blob._replace(until=None))


def set_legal_hold(blob: BlobProtection | None, held: bool) -> BlobProtection | None:
    return _or_none((blob or BlobProtection())._replace(has_legal_hold=held))


def _or_none(blob: BlobProtection) -> BlobProtection | None:
    return None if blob == BlobProtection() else blob


def _check_date(until: Instant, now: Instant) -> None:
    if not now < until <= _after_days(now, MAX_DAYS):
        raise Refused(Reason.IMMUTABILITY_DATE_OUT_OF_RANGE)


def _after_days(instant: Instant, days: int) -> Instant:
    return Instant(instant + days * _DAY_SECONDS * TICKS_PER_SECOND)


def _whole_second(instant: Instant) -> Instant:
    """Rounded up: clients see whole seconds, and what they see and send back must not be earlier."""
    return Instant(-(-instant // TICKS_PER_SECOND) * TICKS_PER_SECOND)


# Deleting and renaming the container


def check_delete_container(container: ContainerProtection | None) -> None:
    """A client cannot delete or rename a protected container, even an empty one. The operator can delete that."""
    if container is None:
        return
    if container.is_version_level:
        raise Refused(Reason.CONTAINER_IMMUTABLE_STORAGE_WITH_VERSIONING_ENABLED)
    if container.legal_hold_tags:
        raise Refused(
            Reason.CONTAINER_HAS_LEGAL_HOLD,
            facts=ProtectionFacts(None, container.legal_hold_tags, is_of_container=True),
        )
    if container.policy is not None:
        raise Refused(
            Reason.CONTAINER_IMMUTABILITY_POLICY_LOCKED
            if container.policy.is_locked
            else Reason.CONTAINER_PROTECTED_FROM_DELETION
        )


def check_operator_deletes(container: ContainerProtection | None, *, is_empty: bool) -> None:
    """The operator deletes a protected container when it is empty and has no legal hold."""
    if container is None or container == NOT_PROTECTED:
        return
    if container.legal_hold_tags:
        raise _cannot("The container has legal holds: clear them first.")
    if not is_empty:
        raise _cannot(
            "The container has an immutability policy or supports version-level immutability: it can be deleted "
            "only when it is empty."
        )


# The protection of a container, which the operator changes


def set_container_policy(
    container: ContainerProtection | None, days: int, appends: Appends = Appends.NONE
) -> ContainerProtection:
    """Give the container a policy, or change one that is unlocked."""
    old = container or NOT_PROTECTED
    _check_days(days)
    if old.is_version_level and appends is not Appends.NONE:
        raise _cannot("Version-level policies do not allow protected append writes.")
    if old.policy is not None and old.policy.is_locked:
        raise _cannot("The policy is locked: it can only be extended.")
    return old._replace(policy=ContainerPolicy(days, appends=appends))


def lock_container_policy(container: ContainerProtection | None) -> ContainerProtection:
    """For ever. Locking a locked policy changes nothing."""
    old = container or NOT_PROTECTED
    return old._replace(policy=_policy_of(old)._replace(is_locked=True))


def extend_container_policy(container: ContainerProtection | None, days: int) -> ContainerProtection:
    """Make a locked policy longer, up to five times."""
    old = container or NOT_PROTECTED
    policy = _policy_of(old)
    _check_days(days)
    if not policy.is_locked:
        raise _cannot("The policy is unlocked: set it instead.")
    if days <= policy.days:
        raise _cannot(f"The policy is locked and has {policy.days} days: it can only be extended.")
    if policy.extensions >= MAX_EXTENSIONS:
        raise _cannot(f"The policy was extended {MAX_EXTENSIONS} times already, which is the limit.")
    return old._replace(policy=policy._replace(days=days, extensions=policy.extensions + 1))


def delete_container_policy(container: ContainerProtection | None) -> ContainerProtection:
    old = container or NOT_PROTECTED
    if _policy_of(old).is_locked:
        raise _cannot("The policy is locked: it cannot be deleted.")
    return old._replace(policy=None)


def set_legal_holds(
    container: ContainerProtection | None, tags: tuple[str, ...], *, allows_appends: bool | None = None
) -> ContainerProtection:
    """Add legal holds. ``allows_appends`` is for all holds of the container; None leaves it as it is."""
    old = container or NOT_PROTECTED
    if old.is_version_level:
        raise _cannot("The container supports version-level immutability: set holds on its blobs.")
    merged = tuple(sorted({*old.legal_hold_tags, *map(_tag, tags)}))
    if not tags:
        raise _cannot("Name at least one tag.")
    if len(merged) > MAX_TAGS:
        raise _cannot(f"A container has {MAX_TAGS} legal holds at the most.")
    allows = old.legal_hold_allows_appends if allows_appends is None else allows_appends
    return old._replace(legal_hold_tags=merged, legal_hold_allows_appends=allows)


def clear_legal_holds(container: ContainerProtection | None, tags: tuple[str, ...]) -> ContainerProtection:
    """Remove the holds of these tags. Tags that the container does not have are ignored."""
    old = container or NOT_PROTECTED
    left = tuple(tag for tag in old.legal_hold_tags if tag not in set(map(_tag, tags)))
    return old._replace(
        legal_hold_tags=left, legal_hold_allows_appends=old.legal_hold_allows_appends and bool(left)
    )


def enable_version_level(
    container: ContainerProtection | None, *, has_versioning: bool
) -> ContainerProtection:
    """Support policies and holds of single versions from now on, for ever.

    What the container protects as a whole must not lose its protection by this.
    """
    old = container or NOT_PROTECTED
    if old.is_version_level:
        return old
    if old.policy is not None or old.legal_hold_tags:
        raise _cannot("The container has a policy or legal holds of its own: delete them first.")
    return new_version_level(has_versioning=has_versioning)


def _policy_of(container: ContainerProtection) -> ContainerPolicy:
    if container.policy is None:
        raise _cannot("The container has no immutability policy.")
    return container.policy


def _check_days(days: int) -> None:
    if not 1 <= days <= MAX_DAYS:
        raise _cannot(f"A policy has between 1 and {MAX_DAYS} days.")


def _tag(text: str) -> str:
    """Tags are compared without case."""
    if len(text) not in _TAG_LENGTHS or not (text.isascii() and text.isalnum()):
        raise _cannot(f"The tag {text!r} does not consist of 3 to 23 letters and digits.")
    return text.lower()


def _cannot(sentence: str) -> Refused:
    return Refused(Reason.PROTECTION_CANNOT_CHANGE, Explained(sentence))
