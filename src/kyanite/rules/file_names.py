"""Legal names of directories and files, and which of them are equal.

A path is names separated by slashes. Each has at most 255 characters, counted in UTF-16 as Windows does, the path
2,048, and it is at most 250 names deep. Names keep their case and compare without it.
"""

import re
from typing import NamedTuple

from kyanite.rules.refusals import NameFacts, Reason, Refused

MAX_NAME_UNITS = 255
MAX_PATH_UNITS = 2048
MAX_DEPTH = 250

_FORBIDDEN = re.compile('["\\\\/:|<>*?\x00-\x1f\x7f\ud800-\udfff]')
_DEVICE = re.compile(r"(LPT[1-9]|COM[1-9]|PRN|AUX|NUL|CON|CLOCK\$)", re.IGNORECASE)
_SHORT = re.compile(
    r"[A-Z0-9!#$%&'()\-@^_`{}~]{1,8}(\.[A-Z0-9!#$%&'()\-@^_`{}~]{1,3})?", re.IGNORECASE | re.ASCII
)
_RELATIVE = frozenset((".", ".."))
_LAST_OF_BASIC_PLANE = "\uffff"
_DATA_STREAM = "::$DATA"


def split(path: str, *, keeps_trailing_dots: bool = False) -> tuple[str, ...]:
    """The names of a path, from the root on; none for the root itself. One slash at the end is ignored."""
    if not path:
        return ()
    names = path.removesuffix("/").split("/")
    if len(names) > MAX_DEPTH or _units(path) > MAX_PATH_UNITS:
        raise Refused(Reason.INVALID_PATH_NAME)
    return tuple(_checked(name, keeps_trailing_dots) for name in names)


class SmbPath(NamedTuple):
    """A name of CREATE or of a rename."""

    names: tuple[str, ...]
    names_data: bool = False
    """Whether it names the data of a file by ``::$DATA``, so that it cannot be a directory."""
    is_marked_directory: bool = False
    """Whether it ends in a backslash."""


_ROOT = SmbPath(())


def split_smb(path: str) -> SmbPath:
    """The names of a path that is separated by backslashes and relative to the share. They keep trailing dots, and
    ``..`` leads upwards, but not out of the share. A file has no other stream than its data."""
    if not path:
        return _ROOT
    if path[0] in "\\/":
        raise Refused(Reason.INVALID_PARAMETER)
    if path[-1] == "/":
        raise Refused(Reason.INVALID_PATH_NAME)
    is_marked = path[-1] == "\\"
    path = path.removesuffix("\\")
    names_data = path[-len(_DATA_STREAM) :].upper() == _DATA_STREAM
    if names_data:
        path = path[: -len(_DATA_STREAM)]
    parts = path.split("\\")
    if len(parts) > MAX_DEPTH or _units(path) > MAX_PATH_UNITS:
        raise Refused(Reason.INVALID_PATH_NAME)
    if "." in parts[:-1]:
        raise Refused(Reason.PARENT_NOT_FOUND)
    names: list[str] = []
    for part in parts:
        if part != "..":
            names.append(_checked(part, keeps_trailing_dots=True))
        elif names:
            names.pop()
        else:
            raise Refused(Reason.PATH_OUTSIDE_SHARE)
    return SmbPath(tuple(names), names_data, is_marked)


def is_short(name: str) -> bool:
    """Whether the name has the form of DOS: up to eight characters, and up to three behind a dot."""
    return _SHORT.fullmatch(name) is not None


def fold(name: str) -> str:
    """The form in which equal names are the same: in upper case, as NTFS folds it."""
    return name.upper() if name.isascii() else "".join(map(_upper, name))


def _checked(name: str, keeps_trailing_dots: bool) -> str:
    if name in _RELATIVE:
        raise _illegal(name)
    kept = name if keeps_trailing_dots else name.rstrip(".")
    if not kept or _units(kept) > MAX_NAME_UNITS:
        raise _illegal(name)
    if _FORBIDDEN.search(kept) or _DEVICE.fullmatch(kept):
        raise Refused(Reason.INVALID_RESOURCE_NAME, facts=NameFacts(name, "file or directory"))
    return kept


def _illegal(name: str) -> Refused:
    return Refused(Reason.INVALID_PATH_NAME, facts=NameFacts(name, "file or directory"))


def _upper(character: str) -> str:
    upper = character.upper()
    is_simple = (
        len(upper) == 1 and character <= _LAST_OF_BASIC_PLANE and upper.isascii() == character.isascii()
    )
    return upper if is_simple else character


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
