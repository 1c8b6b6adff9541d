"""A connection as the parser sees it."""

from kyanite.server.http.request_body import DirectBody


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

    def receive_directly(self, body: DirectBody) -> None:
        self.calls.append("directly")

    def receive_pieces(self) -> None:
        self.calls.append("pieces")
