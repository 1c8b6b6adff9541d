"""CREATE of SMB: which requests are allowed, and what a disposition does (MS-SMB2 §3.3.5.9, MS-FSA §2.1.5.1).

The checks come in the order in which servers make them, since a request may be wrong in several ways.
"""

from enum import IntEnum
from typing import NamedTuple

from kyanite.rules import access_masks
from kyanite.rules.file_attributes import STORED, Attributes, is_read_only
from kyanite.rules.refusals import Reason, Refused


class Disposition(IntEnum):
    SUPERSEDE = 0
    OPEN = 1
    CREATE = 2
    OPEN_IF = 3
    OVERWRITE = 4
    OVERWRITE_IF = 5


class Action(IntEnum):
    """What was done."""

    SUPERSEDED = 0
    OPENED = 1
    CREATED = 2
    OVERWRITTEN = 3


DIRECTORY_FILE = 0x00000001
NON_DIRECTORY_FILE = 0x00000040
DELETE_ON_CLOSE = 0x00001000
_OPEN_BY_FILE_ID = 0x00002000
_RESERVE_OPFILTER = 0x00100000
_UNSUPPORTED_OPTIONS = _OPEN_BY_FILE_ID | _RESERVE_OPFILTER | 0x80
_UNKNOWN_OPTIONS = 0xFF000000
_SHARE_ALL = 7
_UNKNOWN_ATTRIBUTES = 0xFFFF8048
_SETTABLE = STORED & ~Attributes.NO_SCRUB_DATA
_FILES_ONLY = Attributes.ARCHIVE | Attributes.TEMPORARY
_KEPT = Attributes.HIDDEN | Attributes.SYSTEM
"""An overwrite must name these if the file has them."""
_IMPERSONATION_LEVELS = 4

_OVERWRITES = {
    Disposition.SUPERSEDE: Action.SUPERSEDED,
    Disposition.OVERWRITE: Action.OVERWRITTEN,
    Disposition.OVERWRITE_IF: Action.OVERWRITTEN,
}
_MAKES = frozenset((Disposition.SUPERSEDE, Disposition.CREATE, Disposition.OPEN_IF, Disposition.OVERWRITE_IF))


class CreateTerms(NamedTuple):
    """The numbers of a request, as they were sent."""

    desired_access: int
    file_attributes: int
    share_access: int
    disposition: int
    options: int
    impersonation_level: int = 2

    @property
    def wants_directory(self) -> bool:
        return bool(self.options & DIRECTORY_FILE)

    @property
    def wants_file(self) -> bool:
        return bool(self.options & NON_DIRECTORY_FILE)

    @property
    def deletes_on_close(self) -> bool:
        return bool(self.options & DELETE_ON_CLOSE)


def check(terms: CreateTerms) -> None:
    """Refuse a request that is wrong whatever it names."""
    access, options, disposition = terms.desired_access, terms.options, terms.disposition
    if terms.impersonation_level >= _IMPERSONATION_LEVELS:
        raise Refused(Reason.BAD_IMPERSONATION_LEVEL)
    if options & _UNSUPPORTED_OPTIONS:
        raise Refused(Reason.NOT_SUPPORTED)
    if options & _UNKNOWN_OPTIONS or (terms.wants_directory and terms.wants_file):
        raise Refused(Reason.INVALID_PARAMETER)
    if terms.deletes_on_close and not access_masks.granted(access) & access_masks.DELETE:
        raise Refused(Reason.INVALID_PARAMETER)
    if not access or access & access_masks.UNKNOWN:
        raise Refused(Reason.ACCESS_DENIED)
    if terms.share_access > _SHARE_ALL or disposition > Disposition.OVERWRITE_IF:
        raise Refused(Reason.INVALID_PARAMETER)
    if terms.file_attributes & _UNKNOWN_ATTRIBUTES:
        raise Refused(Reason.INVALID_PARAMETER)
    if access & access_masks.ACCESS_SYSTEM_SECURITY:
        raise Refused(Reason.PRIVILEGE_NOT_HELD)
    if terms.wants_directory and (terms.file_attributes & Attributes.TEMPORARY or disposition in _OVERWRITES):
        raise Refused(Reason.INVALID_PARAMETER)


def may_change(disposition: int) -> bool:
    """Whether it makes or overwrites a file as a rule. OPEN_IF mostly opens."""
    return disposition not in (Disposition.OPEN, Disposition.OPEN_IF)


def for_reading(terms: CreateTerms) -> CreateTerms:
    """The same where nothing can be changed; refused if the request would."""
    desired = terms.desired_access
    if desired & access_masks.MAXIMUM_ALLOWED:
        desired = desired & ~access_masks.MAXIMUM_ALLOWED | access_masks.READS
    changes = access_masks.granted(desired) & ~access_masks.READS
    disposition = terms.disposition
    if disposition == Disposition.OPEN_IF:  # Opening what is there changes nothing.
        disposition = Disposition.OPEN
    if changes or disposition != Disposition.OPEN or terms.deletes_on_close:
        raise Refused(Reason.SNAPSHOT_IS_READ_ONLY)
    return terms._replace(desired_access=desired, disposition=disposition)


def on_existing(terms: CreateTerms, *, is_directory: bool) -> Action:
    """What is done with an entry that exists, if it may be."""
    disposition = terms.disposition
    if is_directory and terms.wants_file:
        raise Refused(Reason.FILE_IS_A_DIRECTORY)
    if disposition == Disposition.CREATE:
        raise Refused(Reason.PATH_ALREADY_EXISTS)
    if not is_directory and terms.wants_directory:
        raise Refused(Reason.NOT_A_DIRECTORY)
    action = _OVERWRITES.get(Disposition(disposition), Action.OPENED)
    if is_directory and action is not Action.OPENED:
        raise Refused(Reason.INVALID_PARAMETER)
    return action


def check_missing(disposition: int) -> None:
    """Refuse to make what does not exist, unless the disposition says so."""
    if disposition not in _MAKES:
        raise Refused(Reason.PATH_NOT_FOUND)


def check_attributes(terms: CreateTerms, attributes: int, action: Action, *, is_directory: bool) -> None:
    """What the attributes of an entry that exists forbid. The read-only attribute of a directory only protects it
    from being deleted."""
    if terms.deletes_on_close and is_read_only(attributes):
        raise Refused(Reason.CANNOT_DELETE_FILE_OR_DIRECTORY)
    if is_directory:
        return
    if is_read_only(attributes):
        writes = access_masks.granted(terms.desired_access, is_read_only=True) & access_masks.WRITES
        if writes or action is not Action.OPENED:
            raise Refused(Reason.READ_ONLY_ATTRIBUTE)
    if action is not Action.OPENED and attributes & _KEPT & ~terms.file_attributes:
        raise Refused(Reason.ACCESS_DENIED)


def check_new(terms: CreateTerms) -> None:
    """What the attributes of an entry that is about to be made forbid."""
    if terms.deletes_on_close and is_read_only(terms.file_attributes):
        raise Refused(Reason.CANNOT_DELETE_FILE_OR_DIRECTORY)


def new_attributes(requested: int, *, of_directory: bool) -> int:
    """The attributes of a new or overwritten entry."""
    settable = requested & _SETTABLE
    if of_directory:
        return int((settable & ~_FILES_ONLY) | Attributes.DIRECTORY)
    return int(settable | Attributes.ARCHIVE)
