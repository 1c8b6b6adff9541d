"""The conditional headers of a request, and the refusal when a condition is not met.

    If-Match: e               it exists and its ETag is e; ``*``: it exists
    If-None-Match: e          its ETag is not e; ``*``: it does not exist
    If-Modified-Since: t      its Last-Modified is later than t
    If-Unmodified-Since: t    its Last-Modified is t or earlier
    x-ms-if-tags: c           it exists and its tags meet c (``tag_expressions.py``)

A read may have any combination, a write one condition or one of two pairs; a read may return 304, a write never does.
Times compare as whole seconds, the resolution of the headers and of Last-Modified: what was modified at 12:00:00.7
has not been modified since 12:00:00. The condition on tags may stand beside any others. It has to be met too, and is
never answered with 304.

Each service decides which operation has which conditions. ETags are without their quotes here, and an invalid time,
which Azure ignores, is None.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kyanite.rules.refusals import CurrentETag, Reason, Refused
from kyanite.rules.tag_expressions import Condition
from kyanite.rules.tags import NO_TAGS, Tags
from kyanite.values import TICKS_PER_SECOND, ETag, Instant

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Conditions:
    if_match: tuple[str, ...] | None = None
    if_none_match: tuple[str, ...] | None = None
    if_modified_since: Instant | None = None
    if_unmodified_since: Instant | None = None
    if_tags: Condition | None = None


NONE: Final = Conditions()


class ConditionFacts(NamedTuple):
    """What a refusal compared. ETag and time are None when the resource does not exist."""

    conditions: Conditions
    etag: ETag | None
    modified_at: Instant | None
    tags: Tags


class AppendFacts(NamedTuple):
    length: int
    added: int
    position: int | None
    max_size: int | None


class SequenceNumberFacts(NamedTuple):
    number: int
    le: int | None
    lt: int | None
    eq: int | None


def check_read(c: Conditions, etag: ETag, modified_at: Instant, tags: Tags = NO_TAGS) -> None:
    """If-Match AND If-Unmodified-Since AND (If-None-Match OR If-Modified-Since); a missing header is left out.

    ``If-None-Match: *`` means reading what does not exist, and is always refused.
    """
    if c is NONE:
        return
    if c.if_none_match is not None and ANY in c.if_none_match:
        raise _refused(Reason.UNSATISFIABLE_CONDITION, c, etag, modified_at, tags)
    if not _is_expected(c, etag, modified_at, tags):
        raise _refused(Reason.CONDITION_NOT_MET, c, etag, modified_at, tags)
    if not _is_new_to_client(c, etag, modified_at):
        raise Refused(Reason.NOT_MODIFIED, CurrentETag(etag), ConditionFacts(c, etag, modified_at, tags))


def check_tags_read(c: Conditions, etag: ETag, modified_at: Instant, tags: Tags) -> None:
    """The ``x-ms-blob-if-*`` conditions of Get Blob Tags: like those of a read, but always 412."""
    if c is not NONE and not _are_met(c, etag, modified_at, tags):
        raise _refused(Reason.CONDITION_NOT_MET, c, etag, modified_at, tags)


def check_source(c: Conditions, etag: ETag, modified_at: Instant, tags: Tags = NO_TAGS) -> None:
    """The ``x-ms-source-if-*`` conditions of Copy Blob: likewise.

    One on tags that is not met has the code of the destination's conditions: a test of the official client, recorded
    with Azure, has it.
    """
    if c is NONE:
        return
    others = c if c.if_tags is None else replace(c, if_tags=None)
    if not _are_met(others, etag, modified_at, tags):
        raise _refused(Reason.SOURCE_CONDITION_NOT_MET, c, etag, modified_at, tags)
    check_tags(c, tags)


def check_source_read(c: Conditions, etag: ETag, modified_at: Instant, tags: Tags = NO_TAGS) -> None:
    """The same where a source is read by its URL: the refusal is the status that the read itself would get.

    Azure returns 304 and 412 there, both with the code for a source that cannot be verified.
    """
    if c is NONE:
        return
    if not _is_expected(c, etag, modified_at, tags):
        raise _refused(Reason.COPY_SOURCE_CONDITION_NOT_MET, c, etag, modified_at, tags)
    if not _is_new_to_client(c, etag, modified_at):
        raise _refused(Reason.COPY_SOURCE_NOT_MODIFIED, c, etag, modified_at, tags)


def check_write(
    c: Conditions,
    etag: ETag | None,
    modified_at: Instant | None,
    tags: Tags = NO_TAGS,
    *,
    creates: bool,
    holds_lease: bool = False,
) -> None:
    """One condition, or a pair: If-Match beside If-Unmodified-Since, If-None-Match beside If-Modified-Since.

    In a pair the ETag alone decides. ETag and time are None when the blob does not exist; then time conditions are
    skipped, and one on tags is not met. An operation ``creates`` if it does not need the blob to exist (Put Blob, Put
    Block List, the copies): its ``If-None-Match: *`` on an existing blob returns 409 rather than 412, and does not
    apply to the holder of the lease. Clients send both when they upload with a lease and without overwriting.
    """
    if c is NONE:
        return
    if not _may_combine(c):
        raise _refused(Reason.MULTIPLE_CONDITIONS, c, etag, modified_at, tags)
    if c.if_match is not None:
        is_met = etag is not None and _names(c.if_match, etag)
    elif c.if_none_match == (ANY,) and creates:
        if etag is not None and not holds_lease:
            raise _refused(Reason.BLOB_ALREADY_EXISTS, c, etag, modified_at, tags)
        is_met = True
    elif c.if_none_match is not None:
        is_met = etag is None or not _names(c.if_none_match, etag)
    else:
        is_met = modified_at is None or _times_are_met(c, modified_at)
    if not is_met or (c.if_tags is not None and (etag is None or not c.if_tags.is_met(tags))):
        raise _refused(Reason.CONDITION_NOT_MET, c, etag, modified_at, tags)


def check_delete(c: Conditions, etag: ETag, modified_at: Instant, tags: Tags = NO_TAGS) -> None:
    """Like another write, but ``If-None-Match: *`` does not hinder it: Azure deletes the blob."""
    if c.if_none_match != (ANY,) or not _may_combine(c):
        check_write(c, etag, modified_at, tags, creates=False)
    else:
        check_tags(c, tags)


def check_tags(c: Conditions, tags: Tags) -> None:
    """For operations on a blob with no other condition than that on its tags."""
    if c.if_tags is not None and not c.if_tags.is_met(tags):
        raise _refused(Reason.CONDITION_NOT_MET, c, None, None, tags)


def check_time_write(c: Conditions, modified_at: Instant) -> None:
    """For operations with a time condition only: on containers, and on the time of a blob's last change of tier."""
    if c is NONE:
        return
    if c.if_modified_since is not None and c.if_unmodified_since is not None:
        raise _refused(Reason.MULTIPLE_CONDITIONS, c, None, modified_at, NO_TAGS)
    if not _times_are_met(c, modified_at):
        raise _refused(Reason.CONDITION_NOT_MET, c, None, modified_at, NO_TAGS)


def check_append(length: int, added: int, *, position: int | None, max_size: int | None) -> None:
    """``x-ms-blob-condition-appendpos``: the length before. ``-maxsize``: the maximum afterwards."""
    if position is not None and length != position:
        raise Refused(
            Reason.APPEND_POSITION_CONDITION_NOT_MET, facts=AppendFacts(length, added, position, max_size)
        )
    if max_size is not None and length + added > max_size:
        raise Refused(
            Reason.MAX_BLOB_SIZE_CONDITION_NOT_MET, facts=AppendFacts(length, added, position, max_size)
        )


def check_sequence_number(number: int, *, le: int | None, lt: int | None, eq: int | None) -> None:
    """``x-ms-if-sequence-number-le``, ``-lt``, ``-eq``: compare the page blob's number with the given one."""
    if (
        (le is not None and number > le)
        or (lt is not None and number >= lt)
        or (eq is not None and number != eq)
    ):
        raise Refused(Reason.SEQUENCE_NUMBER_CONDITION_NOT_MET, facts=SequenceNumberFacts(number, le, lt, eq))


def _refused(
    reason: Reason, c: Conditions, etag: ETag | None, modified_at: Instant | None, tags: Tags
) -> Refused:
    return Refused(reason, facts=ConditionFacts(c, etag, modified_at, tags))


def _may_combine(c: Conditions) -> bool:
    """Whether a write may have these together. A list of ETags counts as several conditions."""
    if c.if_match is not None:
        return len(c.if_match) == 1 and c.if_none_match is None and c.if_modified_since is None
    if c.if_none_match is not None:
        return len(c.if_none_match) == 1 and c.if_unmodified_since is None
    return c.if_modified_since is None or c.if_unmodified_since is None


def _are_met(c: Conditions, etag: ETag, modified_at: Instant, tags: Tags) -> bool:
    return _is_expected(c, etag, modified_at, tags) and _is_new_to_client(c, etag, modified_at)


def _is_expected(c: Conditions, etag: ETag, modified_at: Instant, tags: Tags) -> bool:
    """If-Match AND If-Unmodified-Since AND x-ms-if-tags: it is what the client expects."""
    return (
        (c.if_match is None or _names(c.if_match, etag))
        and (c.if_unmodified_since is None or not _is_later(modified_at, c.if_unmodified_since))
        and (c.if_tags is None or c.if_tags.is_met(tags))
    )


def _is_new_to_client(c: Conditions, etag: ETag, modified_at: Instant) -> bool:
    """If-None-Match OR If-Modified-Since: it is not what the client already has."""
    if c.if_none_match is None and c.if_modified_since is None:
        return True
    return (c.if_none_match is not None and not _names(c.if_none_match, etag)) or (
        c.if_modified_since is not None and _is_later(modified_at, c.if_modified_since)
    )


def _times_are_met(c: Conditions, modified_at: Instant) -> bool:
    return (c.if_modified_since is None or _is_later(modified_at, c.if_modified_since)) and (
        c.if_unmodified_since is None or not _is_later(modified_at, c.if_unmodified_since)
    )


def _names(etags: tuple[str, ...], etag: ETag) -> bool:
    return etag in etags or ANY in etags


def _is_later(modified_at: Instant, moment: Instant) -> bool:
    return modified_at // TICKS_PER_SECOND > moment // TICKS_PER_SECOND
