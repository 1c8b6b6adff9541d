"""How many files, and so how many connections, a process may have open."""

import resource

_WANTED = 65_536
_FOR_OTHERS = 128
"""Kept free for the database, open content and the log."""

_MOST_CONNECTIONS = 10_000


def raise_files_limit() -> None:
    """Go as far towards what is wanted as this user may. Inherited by every process started afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_max() -> int:
    """How many connections one process takes. Half the files are left to what those connections read and write."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(16, min(_MOST_CONNECTIONS, (soft - _FOR_OTHERS) // 2))
