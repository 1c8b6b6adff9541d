"""The conditions a request may set on what it reads or writes, and the refusal when one is not met.

    If-Match: e               it exists and its ETag is e; ``*``: it exists
    If-None-Match: e          its ETag is not e; ``*``: it does not exist
    If-Modified-Since: t      its Last-Modified is later than t
    If-Unmodified-Since: t    its Last-Modified is t or earlier

Reads take any combination, writes one condition or one of two pairs; a read may be answered 304, a write
never. Times compare as whole seconds, which is all that the headers and Last-Modified can tell: what was
modified at 12:00:00.7 has not been modified since 12:00:00.

Which operation takes which conditions is its service's affair. ETags come here without their quotes, and a
time that could not be read, which the service ignores, as None.
"""

from dataclasses import dataclass

from kyanite.rules.refusals import CurrentETag, Reason, Refused
from kyanite.values import TICKS_PER_SECOND, ETag, Instant

ANY = "*"


@dataclass(frozen=True, slots=True)
class Conditions:
    if_match: tuple[str, ...] | None = None
    if_none_match: tuple[str, ...] | None = None
    if_modified_since: Instant | None = None
    if_unmodified_since: Instant | None = None


NONE = Conditions()


def check_read(c: Conditions, etag: ETag, modified_at: Instant) -> None:
    """If-Match AND If-Unmodified-Since AND (If-None-Match OR If-Modified-Since); an absent header drops out.

    ``If-None-Match: *`` asks to read what does not exist, and is refused as such.
    """
    if c is NONE:
        return
    if c.if_none_match is not None and ANY in c.if_none_match:
        raise Refused(Reason.UNSATISFIABLE_CONDITION)
    if not _is_expected(c, etag, modified_at):
        raise Refused(Reason.CONDITION_NOT_MET)
    if not _is_news(c, etag, modified_at):
        raise Refused(Reason.NOT_MODIFIED, CurrentETag(etag))


def check_source(c: Conditions, etag: ETag, modified_at: Instant) -> None:
    """The ``x-ms-source-if-*`` conditions of Copy Blob: those of a read, but 412 whichever is not met."""
    if c is not NONE and not (_is_expected(c, etag, modified_at) and _is_news(c, etag, modified_at)):
        raise Refused(Reason.SOURCE_CONDITION_NOT_MET)


def check_source_read(c: Conditions, etag: ETag, modified_at: Instant) -> None:
    """The same where a source is read by its URL: what is not met is told as the answer to that reading.

    Live exchanges show 304 and 412 there, both with the code for a source that cannot be verified.
    """
    if c is NONE:
        return
    if not _is_expected(c, etag, modified_at):
        raise Refused(Reason.COPY_SOURCE_CONDITION_NOT_MET)
    if not _is_news(c, etag, modified_at):
        raise Refused(Reason.COPY_SOURCE_NOT_MODIFIED)


def check_write(
    c: Conditions, etag: ETag | None, modified_at: Instant | None, *, creates: bool, holds_lease: bool = False
) -> None:
    """One condition, or a pair: If-Match beside If-Unmodified-Since, If-None-Match beside If-Modified-Since.

    Of a pair the ETag alone decides. ETag and time are None when there is nothing yet; time conditions are
    then skipped. An operation ``creates`` when it does not need the blob to exist (Put Blob, Put Block
    List, the copies): its ``If-None-Match: *`` on an existing one is answered 409 rather than 412, and is
    not enforced on the holder of the lease. The clients' uploads send both when asked not to overwrite and
    given a lease.
    """
    if c is NONE:
        return
    if not _may_combine(c):
        raise Refused(Reason.MULTIPLE_CONDITIONS)
    if c.if_match is not None:
        is_met = etag is not None and _names(c.if_match, etag)
    elif c.if_none_match == (ANY,) and creates:
        if etag is not None and not holds_lease:
            raise Refused(Reason.BLOB_ALREADY_EXISTS)
        return
    elif c.if_none_match is not None:
        is_met = etag is None or not _names(c.if_none_match, etag)
    else:
        is_met = modified_at is None or _times_are_met(c, modified_at)
    if not is_met:
        raise Refused(Reason.CONDITION_NOT_MET)


def check_time_write(c: Conditions, modified_at: Instant) -> None:
    """For what takes a time condition only: containers, and when a blob last changed its tier."""
    if c is NONE:
        return
    if c.if_modified_since is not None and c.if_unmodified_since is not None:
        raise Refused(Reason.MULTIPLE_CONDITIONS)
    if not _times_are_met(c, modified_at):
        raise Refused(Reason.CONDITION_NOT_MET)


def check_append(length: int, added: int, *, position: int | None, max_size: int | None) -> None:
    """``x-ms-blob-condition-appendpos``: the length before. ``-maxsize``: the most it may be afterwards."""
    if position is not None and length != position:
        raise Refused(Reason.APPEND_POSITION_CONDITION_NOT_MET)
    if max_size is not None and length + added > max_size:
        raise Refused(Reason.MAX_BLOB_SIZE_CONDITION_NOT_MET)


def check_sequence_number(number: int, *, le: int | None, lt: int | None, eq: int | None) -> None:
    """``x-ms-if-sequence-number-le``, ``-lt``, ``-eq``: the page blob's number against the one sent."""
    if (
        (le is not None and number > le)
        or (lt is not None and number >= lt)
        or (eq is not None and number != eq)
    ):
        raise Refused(Reason.SEQUENCE_NUMBER_CONDITION_NOT_MET)


def _may_combine(c: Conditions) -> bool:
    """Whether a write may carry these together. A list of ETags counts as several conditions."""
    if c.if_match is not None:
        return len(c.if_match) == 1 and c.if_none_match is None and c.if_modified_since is None
    if c.if_none_match is not None:
        return len(c.if_none_match) == 1 and c.if_unmodified_since is None
    return c.if_modified_since is None or c.if_unmodified_since is None


def _is_expected(c: Conditions, etag: ETag, modified_at: Instant) -> bool:
    """If-Match AND If-Unmodified-Since: it is still what the client believes it to be."""
    return (c.if_match is None or _names(c.if_match, etag)) and (
        c.if_unmodified_since is None or not _is_later(modified_at, c.if_unmodified_since)
    )


def _is_news(c: Conditions, etag: ETag, modified_at: Instant) -> bool:
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


def _names(tags: tuple[str, ...], etag: ETag) -> bool:
    return etag in tags or ANY in tags


def _is_later(modified_at: Instant, moment: Instant) -> bool:
    return modified_at // TICKS_PER_SECOND > moment // TICKS_PER_SECOND
