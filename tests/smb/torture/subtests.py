"""Which sub-tests there are, and which of them are run.

A name is that of smbtorture: ``smb2.lock.rw-shared`` is the sub-test ``rw-shared`` of the suite ``lock``, and
``smb2.connect`` is a suite without parts.
"""

import functools
import subprocess
from collections.abc import Iterable, Sequence

from tests.smb.programs import program

REQUIRED = (
    *("connect", "tcon", "session", "sharemode", "deny", "lock", "read", "rw"),
    *("create", "dir", "rename", "compound", "oplock", "credits"),
)
"""The suites of which this server passes at least 95 of 100 sub-tests that smbd passes."""

FURTHER = (
    *("lease", "durable-open", "durable-v2-open", "durable-open-disconnect", "durable-v2-delay", "replay"),
    *("notify", "ioctl", "getinfo", "setinfo", "timestamps", "timestamp_resolution", "delete-on-close-perms"),
    *("compound_find", "compound_async", "charset", "maxfid", "mkdir", "openattr", "winattr", "fileid"),
    *(
        "acls",
        "acls_non_canonical",
        "maximum_allowed",
        "sdread",
        "secleak",
        "session-id",
        "mangle",
        "dosmode",
    ),
    *("set-sparse-ioctl", "zero-data-ioctl", "ea", "create_no_streams", "check-sharemode", "twrp"),
)
"""Suites that say something about this server as well."""

LEFT_OUT = {
    "bench": "they measure",
    "scan": "they list what a server knows and cannot fail",
    "hold-oplock": "it waits for a signal",
    "hold-sharemode": "it waits for a signal",
    "streams": "Azure Files has no named streams",
    "ioctl-on-stream": "Azure Files has no named streams",
    "multichannel": "one channel is used",
    "kernel-oplocks": "they open files of smbd's own machine",
    "samba3misc": "they open files of smbd's own machine",
    "notify-inotify": "they open files of smbd's own machine",
    "change_notify_disabled": "it is about an option of smbd",
    "aio_delay": "it is about an option of smbd",
    "async_dosmode": "it is about an option of smbd",
    "session-require-signing": "it is about an option of smbd",
}


@functools.cache
def known() -> tuple[str, ...]:
    """All sub-tests of smbtorture for SMB 2 and 3."""
    listed = subprocess.run([program("smbtorture"), "--list"], capture_output=True, text=True, check=True)
    names = [line.strip() for line in listed.stdout.splitlines()]
    return tuple(_short(name) for name in names if name.startswith("smb2."))


def _short(name: str) -> str:
    """A listed name says the sub-test twice, for it is a suite of one."""
    first, _, last = name.rpartition(".")
    return first if first.endswith(f".{last}") else name


def suite_of(name: str) -> str:
    return name.split(".")[1]


def selected(wanted: Sequence[str]) -> list[str]:
    """The sub-tests of some suites, suite by suite, or those whose whole names are given."""
    names = [name for one in wanted for name in known() if one in {suite_of(name), name}]
    if unknown := set(wanted) - {suite_of(name) for name in names} - set(names):
        raise SystemExit(f"smbtorture has no {', '.join(sorted(unknown))}")
    return names


def by_suite(names: Iterable[str]) -> dict[str, list[str]]:
    suites: dict[str, list[str]] = {}
    for name in names:
        suites.setdefault(suite_of(name), []).append(name)
    return suites
