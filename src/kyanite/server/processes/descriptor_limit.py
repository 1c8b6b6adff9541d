"""How many files, and so how many connections, a process may have open."""

import resource

_WANTED = 65_536
_RESERVED = 128
"""For the database, open content and the log."""

_MOST_CONNECTIONS = 10_000


def raise_files_limit() -> None:
    """Raise the limit as far as this user may, up to what is wanted. Processes started afterwards inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_max() -> int:
    """How many connections one process accepts. Half of its files are for what those connections read and write."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(16, min(_MOST_CONNECTIONS, (soft - _RESERVED) // 2))
