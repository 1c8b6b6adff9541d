"""Operations that name a second resource, and what each needs on it: one table, which drives the check.

The first resource, that of the URL, is authorised by the tables of operations. The second is the source of a copy or
of a rename, the target of a link, or what a part of a batch names. It is authorised on its own, so that no operation
opens, moves or removes what its caller could not reach by a request for it.

The text of a symbolic link names nothing: it is stored, and no operation follows it.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from kyanite.rules.authorization import Access


class Credentials(Enum):
    """What opens a second resource."""

    OWN = "its own"
    """The signature in its URL or in the part of the batch; a bearer token for it; or public access."""
    OWN_OR_KEY = "its own, or the account key"
    """Also the account key that signed the request, or the roles of its OAuth caller, in the same account."""
    OF_REQUEST = "those of the request"
    """The key or token of the request, which must be valid for this resource too; or its own."""


class SecondResource(NamedTuple):
    credentials: Credentials
    access: Access | None
    """None for a part of a batch: what the operation of the part needs."""


_READ_FILE = "files/read&fileServices/readFileBackupSemantics"
_WRITE_FILE = "files/write&fileServices/writeFileBackupSemantics"
READ_BLOB = Access(account="o r", service="r", public="blob", role="blobs/read")
READ_TAGS = Access(account="o t", service="t", role="blobs/tags/read")
"""Needed as well on a source whose tags are copied, or compared by a condition."""
READ_FILE = Access(account="o r", service="r", role=_READ_FILE)
MOVE_FILE = Access(account="o r&w", service="r&w", writes=True, role=f"{_READ_FILE}&{_WRITE_FILE}")
"""A rename gives the content another name and takes the old one away. Azure accepts read and write for it: recorded
tests of the Python client rename with a token that cannot delete."""
MOVE_DIRECTORY = Access(
    account="o r&w", service="r&w", writes=True, whole_container=True, role=f"{_READ_FILE}&{_WRITE_FILE}"
)
"""Everything in the directory moves along, so a token for a single path is not enough."""
LINK_FILE = Access(account="o r&w", service="r&w", writes=True, role=f"{_READ_FILE}&{_WRITE_FILE}")
"""Whatever a token allows on the new name, it allows on the file."""
MOVE_CONTAINER = Access(account="c w&d", writes=True, role="containers/write&containers/delete")
"""Its old name is gone, as after a deletion. No document says what Azure demands."""

OWN, OWN_OR_KEY, OF_REQUEST = Credentials.OWN, Credentials.OWN_OR_KEY, Credentials.OF_REQUEST

# fmt: off
SECOND_RESOURCES: Mapping[tuple[str, str], SecondResource] = {
    # operation, service of the second resource
    ("Copy Blob",                "blob"):  SecondResource(OWN_OR_KEY, READ_BLOB),
    ("Copy Blob",                "file"):  SecondResource(OWN,        READ_FILE),
    ("Copy Blob From URL",       "blob"):  SecondResource(OWN,        READ_BLOB),
    ("Copy Blob From URL",       "file"):  SecondResource(OWN,        READ_FILE),
    ("Put Blob From URL",        "blob"):  SecondResource(OWN,        READ_BLOB),
    ("Put Blob From URL",        "file"):  SecondResource(OWN,        READ_FILE),
    ("Put Block From URL",       "blob"):  SecondResource(OWN,        READ_BLOB),
    ("Put Block From URL",       "file"):  SecondResource(OWN,        READ_FILE),
    ("Append Block From URL",    "blob"):  SecondResource(OWN,        READ_BLOB),
    ("Append Block From URL",    "file"):  SecondResource(OWN,        READ_FILE),
    ("Put Page From URL",        "blob"):  SecondResource(OWN,        READ_BLOB),
    ("Put Page From URL",        "file"):  SecondResource(OWN,        READ_FILE),
    ("Copy File",                "file"):  SecondResource(OWN_OR_KEY, READ_FILE),
    ("Copy File",                "blob"):  SecondResource(OWN,        READ_BLOB),
    ("Put Range From URL",       "file"):  SecondResource(OWN,        READ_FILE),
    ("Put Range From URL",       "blob"):  SecondResource(OWN,        READ_BLOB),
    ("Rename File",              "file"):  SecondResource(OWN_OR_KEY, MOVE_FILE),
    ("Rename Directory",         "file"):  SecondResource(OWN_OR_KEY, MOVE_DIRECTORY),
    ("Create Hard Link",         "file"):  SecondResource(OF_REQUEST, LINK_FILE),
    ("Rename Container",         "blob"):  SecondResource(OF_REQUEST, MOVE_CONTAINER),
    ("Blob Batch",               "blob"):  SecondResource(OWN,        None),
    ("Entity Group Transaction", "table"): SecondResource(OF_REQUEST, None),
}
# fmt: on
