"""Restoring a deleted container or share: which of several deletions of one name a request means."""

import re

from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import required
from kyanite.values import Instant
from kyanite.wire.malformed import bad_header

_VERSION = re.compile("[0-7][0-9A-F]{15}")


def encode_version(deleted_at: Instant) -> str:
    """The version in a listing, which identifies one of several deletions of a name."""
    return f"{deleted_at:016X}"


def deletion_of(context: RequestContext, word: str) -> Instant:
    """The instant of the deletion that a request undoes.

    The name in the header must be that of the URL: what was deleted is restored under its own name.
    """
    name_header, version_header = f"x-ms-deleted-{word}-name", f"x-ms-deleted-{word}-version"
    name = required(context.headers, name_header)
    version = required(context.headers, version_header)
    if name != context.container:
        raise bad_header(name_header, name)
    if not _VERSION.fullmatch(version):
        raise bad_header(version_header, version)
    return Instant(int(version, 16))
