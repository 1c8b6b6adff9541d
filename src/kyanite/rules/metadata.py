"""Metadata that a client may attach to a container, blob, queue, share, directory or file.

A name is a C# identifier that can be part of a header name: ASCII letters, digits and underscores. Its case is kept,
but two names that differ only in case are duplicates.
"""

import re
from collections.abc import Sequence
from typing import Final

from kyanite.rules.refusals import NameFacts, Reason, Refused

MAX_BYTES: Final = 8 * 1024

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def check(pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse empty, illegal or duplicate names, values that a header cannot contain, and too much metadata."""
    names = set[str]()
    total = 0
    for name, value in pairs:
        if not name:
            raise Refused(Reason.EMPTY_METADATA_KEY)
        if _NAME.fullmatch(name) is None or name.lower() in names or _CONTROL.search(value):
            raise Refused(Reason.INVALID_METADATA, facts=NameFacts(name, "metadata"))
        names.add(name.lower())
        total += len(name) + len(value)
    if total > MAX_BYTES:
        raise Refused(Reason.METADATA_TOO_LARGE)
