"""One watch: a directory that a client has open and wants to be told the changes of.

The first CHANGE_NOTIFY of a handle says what is watched, and how much the server may remember between two calls. Each
call then fetches what has happened, or waits for it; calls that wait are answered in their order.
"""

import asyncio

from kyanite.model.files.opens import watches
from kyanite.wire.smb2.change_notify import Action, Change, encode_changes
from kyanite.wire.smb2.status import Status

REMEMBERED_BYTES_MAX = 256 * 1024
"""Of one watch, whatever its client allows."""
_BYTES_PER_CHANGE = 12


Outcome = bytes | Status
"""Of a call: the changes, or the status that it has instead."""


class Watch:
    """To be made on the loop that uses it."""

    __slots__ = (
        "__weakref__",
        "_buffer_bytes",
        "_changes",
        "_filter",
        "_has_lost_changes",
        "_remembered_bytes",
        "_waiting",
        "_watches_tree",
        "directory_id",
        "first_number",
        "handle_id",
        "started",
    )

    def __init__(
        self,
        directory_id: int,
        handle_id: int,
        buffer_bytes: int,
        completion_filter: int,
        *,
        watches_tree: bool,
    ) -> None:
        self.directory_id = directory_id
        self.handle_id = handle_id
        self.first_number = 0
        """The number of the first change that it is about."""
        self.started: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether it is a watch: the first call of the handle may fail."""
        self._buffer_bytes = min(buffer_bytes, REMEMBERED_BYTES_MAX)
        self._filter = completion_filter
        self._watches_tree = watches_tree
        self._changes: list[Change] = []
        self._remembered_bytes = 0
        self._has_lost_changes = False
        self._waiting: dict[asyncio.Future[Outcome], int] = {}
        """The calls that wait, in their order, and how much each of them takes."""

    # --- What its client calls

    def fetch(self, output_bytes: int) -> Outcome | None:
        """What has happened since the last call; None if nothing has."""
        if not self._changes and not self._has_lost_changes:
            return None
        packed = None
        if not self._has_lost_changes:
            packed = encode_changes(self._changes, min(output_bytes, self._buffer_bytes))
        self._changes, self._remembered_bytes, self._has_lost_changes = [], 0, False
        return Status.NOTIFY_ENUM_DIR if packed is None else packed

    def wait(self, output_bytes: int) -> asyncio.Future[Outcome]:
        """The outcome of a call, once something has happened."""
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[outcome] = output_bytes
        return outcome

    def stop_waiting(self, outcome: asyncio.Future[Outcome]) -> None:
        """The call was answered, or cancelled."""
        self._waiting.pop(outcome, None)

    # --- What the feed calls

    def report(self, change: watches.Change) -> None:
        if change.number < self.first_number:
            return
        if change.marked_directory == self.directory_id:
            self.end_calls(Status.DELETE_PENDING)
        elif change.closed_handle == self.handle_id:
            self.end_calls(Status.NOTIFY_CLEANUP)
        elif change.filter & self._filter and not change.is_reported_by & self._filter:
            name = self._name_of(change)
            if name is not None:
                self._add(Change(Action(change.action), name))

    def lose_changes(self) -> None:
        """What happens is too much, or was missed: the client has to list the directory."""
        self._changes, self._remembered_bytes, self._has_lost_changes = [], 0, True
        self._answer()

    def end_calls(self, status: Status) -> None:
        """End the calls that wait."""
        for outcome in self._waiting:
            if not outcome.done():
                outcome.set_result(status)
        self._waiting.clear()

    def _name_of(self, change: watches.Change) -> str | None:
        """The name of what has changed, relative to the directory; None if it is not below it."""
        if not self._watches_tree:
            return change.names[-1] if change.above[-1] == self.directory_id else None
        if self.directory_id not in change.above:
            return None
        return "\\".join(change.names[change.above.index(self.directory_id) :])

    def _add(self, change: Change) -> None:
        if self._has_lost_changes:
            return
        if not self._changes or self._changes[-1] != change:
            self._changes.append(change)
            self._remembered_bytes += _BYTES_PER_CHANGE + 2 * len(change.name)
        if self._remembered_bytes > self._buffer_bytes:
            self.lose_changes()
        elif change.action is not Action.RENAMED_OLD_NAME:  # The new name follows: both go into one response.
            self._answer()

    def _answer(self) -> None:
        """Answer the first call that waits."""
        for outcome, output_bytes in self._waiting.items():
            if not outcome.done():
                fetched = self.fetch(output_bytes)
                assert fetched is not None, "A call is answered and nothing has happened."
                outcome.set_result(fetched)
                return
