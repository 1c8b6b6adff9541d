"""Blob index tags: how many a blob may have, how long they are, and of which characters.

Keys and values are case-sensitive texts of a small alphabet. So they sort by code point, in memory as in the keys of
the index (``model/blobs/tag_index.py``), and never contain the zero byte that ends them there.
"""

import re
from collections.abc import Sequence

from kyanite.rules.refusals import NameFacts, Reason, Refused

Tags = tuple[tuple[str, str], ...]
"""Keys and values, in the order of the keys: equal tags are equal values, and all responses have one order."""

NO_TAGS: Tags = ()
MAX_TAGS = 10
KEY_MAX_CHARACTERS = 128
VALUE_MAX_CHARACTERS = 256

_ALLOWED = re.compile(r"[A-Za-z0-9 +\-./:=_]*")


def checked(pairs: Sequence[tuple[str, str]]) -> Tags:
    """The tags in their order. Refused when there are too many, or one is too long, unnamed, illegal or there twice."""
    if len(pairs) > MAX_TAGS:
        raise Refused(Reason.TAGS_TOO_LARGE)
    for key, value in pairs:
        if not key:
            raise Refused(Reason.EMPTY_TAG_NAME)
        if len(key) > KEY_MAX_CHARACTERS or len(value) > VALUE_MAX_CHARACTERS:
            raise Refused(Reason.TAGS_TOO_LARGE, facts=NameFacts(key, "tag"))
        if not is_legal(key) or not is_legal(value):
            raise Refused(Reason.INVALID_TAG, facts=NameFacts(key, "tag"))
    if len({key for key, _ in pairs}) < len(pairs):
        raise Refused(Reason.DUPLICATE_TAG_NAMES)
    return tuple(sorted(pairs))


def is_legal(text: str) -> bool:
    """Whether a key or a value may have these characters."""
    return _ALLOWED.fullmatch(text) is not None
