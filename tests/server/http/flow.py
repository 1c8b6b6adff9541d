"""A connection as the parser sees it."""


class StillFlow:
    """A connection that records the calls of its bodies."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def body_wanted(self) -> None:
        self.calls.append("wanted")

    def pause_body(self) -> None:
        self.calls.append("pause")

    def resume_body(self) -> None:
        self.calls.append("resume")
