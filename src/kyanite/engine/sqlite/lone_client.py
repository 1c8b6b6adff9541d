"""Whether one client at a time uses a process, so that it can wait for the disk on its event loop.

A commit in the thread costs two changes of threads, as long as a good part of the sync. On the loop it costs none, but
then no other client is served meanwhile. So a commit is made on the loop only after several in the thread that were
quick and had no read and no write beside them. Now and then one is made in the thread all the same, to find other
clients. So a second client waits for a few short syncs at most, and a slow disk is left to the thread.
"""

from typing import Final

_ALONE_MIN: Final = 8
"""After so many such commits in the thread the next ones are made on the loop."""

_ON_LOOP_MAX: Final = 15
"""How many are made on the loop before one is made in the thread again."""

_QUICK_SECONDS: Final = 0.002


class LoneClient:
    __slots__ = ("_alone", "_on_loop", "has_company", "is_in_thread", "seconds_in_thread")

    def __init__(self) -> None:
        self._alone = 0
        """How many commits in the thread were quick and had nothing beside them, one after the other."""
        self._on_loop = 0
        self.has_company = False
        """Whether anything was read or written since this was set to False."""
        self.is_in_thread = False
        """Whether a commit is being made in the thread."""
        self.seconds_in_thread = 0.0
        """How long the last one there took."""

    def may_commit_on_loop(self) -> bool:
        """Asked once for each commit that could be made on the loop."""
        if self._alone < _ALONE_MIN:
            return False
        if self._on_loop == _ON_LOOP_MAX:
            self._on_loop = 0
            return False
        self._on_loop += 1
        return True

    def committed_on_loop(self, seconds: float) -> None:
        if seconds > _QUICK_SECONDS:
            self._alone = self._on_loop = 0

    def committed_in_thread(self) -> None:
        self.is_in_thread = False
        if self.has_company or self.seconds_in_thread > _QUICK_SECONDS:
            self._alone = self._on_loop = 0
        else:
            self._alone += 1
