"""The clock of a server for tests. It goes on by itself, and further when a test says so; it never goes back."""

from datetime import UTC, datetime, timedelta

from kyanite.testing.admin import AdminPort


class Clock:
    def __init__(self, admin: AdminPort) -> None:
        self._admin = admin

    @property
    def now(self) -> datetime:
        """The time of the server."""
        return _time(self._admin.request("GET", "clock"))

    def advance(self, by: float | timedelta) -> datetime:
        """Go on from so many seconds later, on every worker at once. Returns the new time."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        return _time(self._admin.request("POST", "clock", {"advance_seconds": seconds}))

    def advance_to(self, time: datetime) -> datetime:
        """Go on from this time. Returns the new time."""
        if time.tzinfo is None:
            raise ValueError("The time needs a time zone.")
        text = time.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return _time(self._admin.request("POST", "clock", {"now": text}))


def _time(state: dict[str, str]) -> datetime:
    """Stored times have seven digits below the second, Python's have six."""
    seconds, _, digits = state["now"].rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{seconds}.{digits[:6] or 0:0<6}").replace(tzinfo=UTC)
