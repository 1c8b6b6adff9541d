"""Whether one client at a time uses a process, so that it can wait for the disk on its event loop.

A commit in the thread costs two changes of threads, as long as a good part of the sync. On the loop it costs none, but
then nobody else is served meanwhile. So a commit is made on the loop only while nobody else is there: none of the last
commits had a read or a write beside it. Now and then one is made in the thread all the same, to look for others. So a
second client waits for a few short syncs at most; a disk that takes longer is always left to the thread.
"""

from typing import Final

_ALONE_MIN: Final = 8
"""After so many commits in the thread without anything beside them, the next ones are made on the loop."""

_ON_LOOP_MAX: Final = 15
"""How many are made on the loop before one is made in the thread again."""

_SLOW_SECONDS: Final = 0.002
_LEFT_TO_THREAD: Final = 50
"""How many commits are made in the thread after one on the loop that took longer than that."""


class LoneClient:
    __slots__ = ("_alone", "_on_loop", "has_company", "is_in_thread")

    def __init__(self) -> None:
        self._alone = 0
        """How many commits in the thread had nothing beside them, one after the other; below 0: too slow a disk."""
        self._on_loop = 0
        self.has_company = False
        """Whether anything was read or written since this was set to False."""
        self.is_in_thread = False
        """Whether a commit is being made in the thread."""

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
        if seconds > _SLOW_SECONDS:
            self._alone = -_LEFT_TO_THREAD

    def committed_in_thread(self) -> None:
        self.is_in_thread = False
        if not self.has_company:
            self._alone += 1
        elif self._alone > 0:
            self._alone = 0
