"""Legal names of accounts, containers, queues, shares and blobs.

Containers, queues and shares follow one rule, that of DNS labels, because their names may be part of host names.
Blob names may contain nearly anything: the reference lists characters that are "not recommended" as well as
forbidden ones, and the official clients' own tests store names with U+FFFF, so only control characters are
refused.
"""

import re
from functools import lru_cache
from typing import Final

from kyanite.rules.refusals import NameFacts, Reason, Refused

SPECIAL_CONTAINERS: Final = frozenset(("$root", "$web", "$logs", "$blobchangefeed"))

MAX_BLOB_NAME_UNITS: Final = 1024
MAX_BLOB_SEGMENTS: Final = 254

_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")
_LABEL: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LABEL_MIN, _LABEL_MAX = 3, 63
_CONTROL: Final = re.compile("[\x00-\x1f\x80\x82-\x8c\x8e\x91-\x9c\x9e\x9f]")


def is_account(name: str) -> bool:
    return _ACCOUNT.fullmatch(name) is not None


@lru_cache(maxsize=1024)
def check_container(name: str) -> None:
    """Refuse a name that no container can have. Legal names are cached: the same few are used all the time."""
    if name not in SPECIAL_CONTAINERS:
        _check_label(name, "container")


@lru_cache(maxsize=1024)
def check_queue(name: str) -> None:
    _check_label(name, "queue")


def check_share(name: str) -> None:
    _check_label(name, "share")


def blob_name(path: str) -> str:
    """The name that a path means: a backslash is a slash."""
    return path.replace("\\", "/")


def check_blob(name: str, container: str = "") -> None:
    """Refuse a name that no blob can have. In the root container a slash would make the first part a container."""
    # Azure counts as .NET does: a character beyond the basic plane counts two.
    is_ascii = name.isascii()
    units = len(name) if is_ascii else len(name.encode("utf-16-le", "surrogatepass")) // 2
    if not 1 <= units <= MAX_BLOB_NAME_UNITS:
        raise Refused(Reason.NAME_LENGTH_OUT_OF_RANGE, facts=NameFacts(name, "blob"))
    too_deep = name.count("/") >= MAX_BLOB_SEGMENTS
    has_control = not (is_ascii and name.isprintable()) and _CONTROL.search(name) is not None
    if too_deep or (container == "$root" and "/" in name) or has_control:
        raise Refused(Reason.INVALID_RESOURCE_NAME, facts=NameFacts(name, "blob"))


def _check_label(name: str, kind: str) -> None:
    if not _LABEL_MIN <= len(name) <= _LABEL_MAX:
        raise Refused(Reason.NAME_LENGTH_OUT_OF_RANGE, facts=NameFacts(name, kind))
    if _LABEL.fullmatch(name) is None:
        raise Refused(Reason.INVALID_RESOURCE_NAME, facts=NameFacts(name, kind))
