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
