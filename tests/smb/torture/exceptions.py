"""The sub-tests that smbd passes and this server does not, each with the reason. ``docs/smb-torture.md`` shows them."""

from fnmatch import fnmatchcase

_STREAMS = "Azure Files has no named streams: the name is refused."
_SPARSE = "Azure Files has no sparse files."
_ATTRIBUTES = "Azure Files has no extended attributes."
_INHERITED = (
    "All that a new file inherits is marked so, as in Azure; the test expects it in marked directories only."
)
_OBJECT_IDS = "Azure Files has no object ids: the FSCTL that makes one is refused."
_AT_ONCE = (
    "It expects the time of a write two seconds later, as Windows sets it; here it is set with the write."
)

EXCEPTIONS: dict[str, str] = {
    "smb2.acls.INHERITFLAGS": _INHERITED,
    "smb2.acls.SDFLAGSVSCHOWN": _INHERITED,
    "smb2.compound.compound-padding": _STREAMS,
    "smb2.compound.related3": _OBJECT_IDS,
    "smb2.create.quota-fake-file": "The file is that of NTFS's quotas of users, which Azure Files does not have.",
    "smb2.fileid.fileid": _STREAMS,
    "smb2.fileid.fileid-dir": _STREAMS,
    "smb2.getinfo.fsinfo": "It queries NTFS's quotas of users, which Azure Files does not have.",
    "smb2.getinfo.getinfo_access": "It needs a short name for a long one; Azure Files has none.",
    "smb2.getinfo.normalized": _STREAMS,
    "smb2.getinfo.qfile_buffercheck": _ATTRIBUTES,
    "smb2.ioctl.copy-chunk streams": _STREAMS,
    "smb2.ioctl.sparse_*": _SPARSE,
    "smb2.lease.request": _STREAMS,
    "smb2.mangle": "It needs a short name for a long one; Azure Files has none.",
    "smb2.oplock.batch26": _STREAMS,
    "smb2.replay.channel-sequence": _OBJECT_IDS,
    "smb2.replay.replay-commands": _OBJECT_IDS,
    "smb2.replay.replay6": "A repeated CREATE gets its first open, even one that was used meanwhile.",
    "smb2.timestamps.delayed-2write": _AT_ONCE,
    "smb2.timestamps.delayed-write-*": _AT_ONCE,
    "smb2.timestamps.test_close_not_attrib": _STREAMS,
}
"""By the name of the sub-test, or a pattern for several."""


def reason_for(name: str) -> str | None:
    """Why this server does not pass a sub-test; None if it should."""
    return next((reason for pattern, reason in EXCEPTIONS.items() if fnmatchcase(name, pattern)), None)
