"""Legal names of directories and files, and which of them are equal.

A path is names separated by slashes. Each has at most 255 characters, counted in UTF-16 as Windows does, the path
2,048, and it is at most 250 names deep. Names keep their case and compare without it.
"""

import re

from kyanite.rules.refusals import Reason, Refused

MAX_NAME_UNITS = 255
MAX_PATH_UNITS = 2048
MAX_DEPTH = 250

_FORBIDDEN = re.compile('["\\\\/:|<>*?\x00-\x1f\x7f\ud800-\udfff]')
_DEVICE = re.compile(r"(LPT[1-9]|COM[1-9]|PRN|AUX|NUL|CON|CLOCK\$)", re.IGNORECASE)
_RELATIVE = frozenset((".", ".."))
_LAST_OF_BASIC_PLANE = "\uffff"


def split(path: str, *, keeps_trailing_dots: bool = False) -> tuple[str, ...]:
    """The names of a path, from the root on; none for the root itself. One slash at the end is ignored."""
    if not path:
        return ()
    names = path.removesuffix("/").split("/")
    if len(names) > MAX_DEPTH or _units(path) > MAX_PATH_UNITS:
        raise Refused(Reason.INVALID_PATH_NAME)
    return tuple(_checked(name, keeps_trailing_dots) for name in names)


def fold(name: str) -> str:
    """The form in which equal names are the same: in upper case, as NTFS folds it."""
    return name.upper() if name.isascii() else "".join(map(_upper, name))


def _checked(name: str, keeps_trailing_dots: bool) -> str:
    if name in _RELATIVE:
        raise Refused(Reason.INVALID_PATH_NAME)
    kept = name if keeps_trailing_dots else name.rstrip(".")
    if not kept or _units(kept) > MAX_NAME_UNITS:
        raise Refused(Reason.INVALID_PATH_NAME)
    if _FORBIDDEN.search(kept) or _DEVICE.fullmatch(kept):
        raise Refused(Reason.INVALID_RESOURCE_NAME)
    return kept


def _upper(character: str) -> str:
    upper = character.upper()
    is_simple = (
        len(upper) == 1 and character <= _LAST_OF_BASIC_PLANE and upper.isascii() == character.isascii()
    )
    return upper if is_simple else character


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
