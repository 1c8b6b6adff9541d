"""What Kyanite has to reach: so many times a peer, or no more than so much."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Kyanite's figure over the peer's, both medians of the same interleaved run."""

    times: float
    peer: str

    def __str__(self) -> str:
        return f"≥ {self.times:g}× {self.peer}"

    def reached(self, medians: Mapping[str, float]) -> bool | None:
        """None when one of the two was not measured."""
        ours, theirs = medians.get("kyanite"), medians.get(self.peer)
        if ours is None or not theirs:
            return None
        return ours >= self.times * theirs


@dataclass(frozen=True, slots=True)
class AtMost:
    """A figure of Kyanite's that must not be exceeded."""

    limit: float
    unit: str

    def __str__(self) -> str:
        return f"≤ {self.limit:g}{self.unit}"

    def reached(self, medians: Mapping[str, float]) -> bool | None:
        ours = medians.get("kyanite")
        return None if ours is None else ours <= self.limit


Bar = AtLeast | AtMost


def _azurite(times: float) -> AtLeast:
    return AtLeast(times, "azurite")


_RECEIVER = AtLeast(0.6, "receiver")

BARS: Mapping[str, tuple[Bar, ...]] = {
    "put-1k/1": (_azurite(5),),
    "put-1k/32": (_azurite(28),),
    "get-1k/32": (_azurite(42), AtLeast(0.38, "nginx")),
    "if-match/32": (_azurite(22),),
    "lease-cycle/1": (_azurite(3),),
    "lease-cycle/32": (_azurite(17),),
    "list-page/32": (_azurite(40),),
    "list-prefix/32": (_azurite(30),),
    "list-delimiter/32": (_azurite(170),),
    "upload-256m/1": (_azurite(4), AtLeast(0.85, "md5")),
    "upload-256m/4": (_azurite(4),),
    "upload-blocks/1": (_azurite(8), _RECEIVER),
    "upload-blocks/4": (_azurite(8), _RECEIVER),
    "upload-appends/1": (_azurite(2), _RECEIVER),
    "upload-appends/4": (_RECEIVER,),
    "upload-pages/1": (_azurite(2), _RECEIVER),
    "upload-pages/4": (_RECEIVER,),
    "download-256m/1": (_azurite(2.7),),
    "download-256m/4": (_azurite(2.7),),
    "queue-cycle/32": (_azurite(8),),
    "queue-cycle-backlog/32": (_azurite(8),),
    "table-insert/32": (_azurite(11),),
    "table-point/32": (_azurite(18),),
    "table-partition/32": (_azurite(10),),
    "table-batch/32": (_azurite(12),),
    "file-upload-256m/1": (_RECEIVER,),
    "start": (AtMost(0.4, " s"),),
    "idle": (AtMost(60, " MiB"),),
    "install": (AtMost(80, " MiB"),),
    "lost": (AtMost(0, " %"),),
}
"""By the name of the row or gauge."""

ONE_CLIENT = _azurite(2)
"""Of every row with one client that has no other bar."""


def bars_of(name: str) -> tuple[Bar, ...]:
    if name in BARS:
        return BARS[name]
    return (ONE_CLIENT,) if name.endswith("/1") and not name.startswith("file-") else ()
