"""What a queue should do, worked out from what has happened to each of its messages since it was put.

Written apart from the rules: they keep where a message stands, the oracle keeps its history. A receipt is the place of
the event, in the message's history, that gave it out. Times are whole seconds.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

SEVEN_DAYS = 7 * 24 * 3600


class Event(NamedTuple):
    what: str
    at: int
    hides_for: int


@dataclass(slots=True)
class History:
    """One message."""

    events: list[Event]
    lives_for: float
    text: str = ""
    ended: bool = False

    @property
    def put_at(self) -> int:
        return self.events[0].at

    @property
    def shows_at(self) -> int:
        return self.events[-1].at + self.events[-1].hides_for

    @property
    def dequeue_count(self) -> int:
        return sum(event.what == "get" for event in self.events)

    @property
    def receipt(self) -> int:
        return len(self.events) - 1

    def is_alive(self, now: int) -> bool:
        return not self.ended and now - self.put_at < self.lives_for

    def is_visible(self, now: int) -> bool:
        return self.is_alive(now) and now >= self.shows_at

    def accepts(self, receipt: int, now: int) -> bool:
        return self.is_alive(now) and receipt == self.receipt

    def may_hide_for(self, seconds: int, now: int) -> bool:
        return now + seconds <= self.put_at + self.lives_for

    def note(self, what: str, at: int, hides_for: int) -> int:
        self.events.append(Event(what, at, hides_for))
        return self.receipt


@dataclass(slots=True)
class Oracle:
    """One queue: its messages by name, in the order in which they were put."""

    messages: dict[str, History] = field(default_factory=dict)

    def put(self, name: str, text: str, *, delay: int, lives_for: float | None, now: int) -> int:
        life = SEVEN_DAYS if lives_for is None else lives_for
        self.messages[name] = History([Event("put", now, delay)], life, text)
        return 0

    def visible(self, now: int) -> list[str]:
        """In the order of delivery: the message that was visible first comes first."""
        visible = [name for name, history in self.messages.items() if history.is_visible(now)]
        return sorted(visible, key=lambda name: (self.messages[name].shows_at, self.messages[name].put_at))

    def alive(self, now: int) -> int:
        return sum(history.is_alive(now) for history in self.messages.values())

    def clear(self) -> None:
        for history in self.messages.values():
            history.ended = True


FOREVER = math.inf
