"""The attributes of files and directories, by their Windows numbers and their names in the REST reference."""

from enum import IntFlag

_SEPARATOR = "|"


class Attributes(IntFlag):
    READ_ONLY = 0x1
    HIDDEN = 0x2
    SYSTEM = 0x4
    DIRECTORY = 0x10
    ARCHIVE = 0x20
    NORMAL = 0x80
    """No other attribute; only alone. REST calls it None."""
    TEMPORARY = 0x100
    OFFLINE = 0x1000
    NOT_CONTENT_INDEXED = 0x2000
    NO_SCRUB_DATA = 0x20000


NAMES = {
    Attributes.READ_ONLY: "ReadOnly",
    Attributes.HIDDEN: "Hidden",
    Attributes.SYSTEM: "System",
    Attributes.DIRECTORY: "Directory",
    Attributes.ARCHIVE: "Archive",
    Attributes.NORMAL: "None",
    Attributes.TEMPORARY: "Temporary",
    Attributes.OFFLINE: "Offline",
    Attributes.NOT_CONTENT_INDEXED: "NotContentIndexed",
    Attributes.NO_SCRUB_DATA: "NoScrubData",
}
_BY_NAME = {name.lower(): attribute for attribute, name in NAMES.items()}
_FILES_ONLY = Attributes.TEMPORARY
STORED = (
    Attributes.READ_ONLY
    | Attributes.HIDDEN
    | Attributes.SYSTEM
    | Attributes.ARCHIVE
    | Attributes.TEMPORARY
    | Attributes.OFFLINE
    | Attributes.NOT_CONTENT_INDEXED
    | Attributes.NO_SCRUB_DATA
)


def read(text: str, *, of_directory: bool) -> Attributes | None:
    """The attributes in a text, or None when the text is not a list of attributes that a file, or directory, can have.

    A name may occur twice: AzCopy copies a directory's as ``Directory|Directory``.
    """
    found = Attributes(0)
    for part in text.split(_SEPARATOR):
        attribute = _BY_NAME.get(part.strip().lower())
        if attribute is None:
            return None
        found |= attribute
    if Attributes.NORMAL in found and found & ~(Attributes.NORMAL | Attributes.DIRECTORY):
        return None
    if of_directory:
        return None if found & _FILES_ONLY else (found & ~Attributes.NORMAL) | Attributes.DIRECTORY
    return None if Attributes.DIRECTORY in found else found


def text_of(attributes: int) -> str:
    return _SINGLE.get(attributes) or _joined(attributes)


def _joined(attributes: int) -> str:
    return " | ".join(name for attribute, name in NAMES.items() if attributes & attribute) or "None"


_SINGLE = {int(attribute): name for attribute, name in NAMES.items()}
"""Most entries have one attribute only."""


def changed(wanted: int, *, of_directory: bool) -> int | None:
    """The attributes of a file or directory for which an SMB client wants these, or None when it cannot have them.

    Attributes that are not stored here are ignored, as a file system does that lacks compression, say.
    """
    if wanted & (_FILES_ONLY if of_directory else Attributes.DIRECTORY):
        return None
    kept = wanted & STORED
    return int(kept | Attributes.DIRECTORY) if of_directory else int(kept or Attributes.NORMAL)


def archived(attributes: int) -> int:
    """The attributes of a file that is new, or has changed, since it was last backed up."""
    return int((Attributes(attributes) & ~Attributes.NORMAL) | Attributes.ARCHIVE)


def is_read_only(attributes: int) -> bool:
    return bool(attributes & Attributes.READ_ONLY)
