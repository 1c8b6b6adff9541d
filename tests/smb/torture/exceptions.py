"""The sub-tests that smbd passes and this server does not, each with the reason. ``docs/smb-torture.md`` shows them."""

_STREAMS = "Azure Files has no named streams: the name is refused."

EXCEPTIONS: dict[str, str] = {
    "smb2.compound.compound-padding": _STREAMS,
    "smb2.compound.related3": "Azure Files has no object ids: the FSCTL that makes one is refused.",
    "smb2.create.quota-fake-file": "The file is that of NTFS's quotas of users, which Azure Files does not have.",
    "smb2.oplock.batch26": _STREAMS,
}
