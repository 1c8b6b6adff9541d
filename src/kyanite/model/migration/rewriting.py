"""Rows of one store as rows of another: what they refer to, and what takes its place.

A *portable* row has the ids, layers and extents of the target, and in place of the numbers of inline bodies 1, 2, 3 …
with the bytes beside it. A row of the source, by what has moved, and a row of the target have the same portable form if
and only if clients get the same from both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from kyanite.engine.api import Damaged, Transaction
from kyanite.extents.api import Extent
from kyanite.model import keys
from kyanite.model.content import content as contents
from kyanite.model.content import layers, references
from kyanite.model.content.content import Content
from kyanite.model.content.intervals import Interval
from kyanite.model.migration.rows import Moved, Owner


class Portable(NamedTuple):
    key: bytes
    value: bytes
    bodies: tuple[bytes, ...] = ()


class NotMoved(Exception):
    """A row refers to what has not moved, because it is only waiting to be purged."""


@dataclass(slots=True)
class Needs:
    """Collects what rows refer to."""

    ids: set[tuple[Owner, int]] = field(default_factory=set)
    layers: set[int] = field(default_factory=set)
    extents: set[Extent] = field(default_factory=set)
    bodies: set[int] = field(default_factory=set)

    def id(self, owner: Owner, number: int) -> int:
        self.ids.add((owner, number))
        return number

    def content(self, content: Content) -> Content:
        if content.body:
            self.bodies.add(content.body)
        if content.layer:
            self.layers.add(content.layer)
        self.intervals(content.intervals)
        return content

    def intervals(self, intervals: Iterable[Interval]) -> None:
        for interval in intervals:
            if interval.extent is not None:
                self.extents.add(interval.extent)
            elif interval.body:
                self.bodies.add(interval.body)


@dataclass(slots=True)
class Translation:
    """What has taken the place of what, for some rows of the source."""

    ids: dict[tuple[Owner, int], int] = field(default_factory=dict)
    layers: dict[int, int] = field(default_factory=dict)
    extents: dict[Extent, Extent] = field(default_factory=dict)
    bodies: dict[int, bytes] = field(default_factory=dict)
    """The bytes of inline bodies."""


class _Porting:
    """From a row of the source to its portable form."""

    def __init__(self, translation: Translation) -> None:
        self._translation = translation
        self.bodies: list[bytes] = []

    def id(self, owner: Owner, number: int) -> int:
        moved = self._translation.ids.get((owner, number))
        if moved is None:
            raise NotMoved
        return moved

    def content(self, content: Content) -> Content:
        if content.body:
            return Content(body=self._body(content.body))
        if content.layer:
            return Content(layer=self._layer(content.layer))
        return Content(intervals=tuple(map(self.interval, content.intervals)))

    def interval(self, interval: Interval) -> Interval:
        if interval.extent is not None:
            return replace(interval, extent=self._extent(interval.extent))
        return replace(interval, body=self._body(interval.body)) if interval.body else interval

    def _body(self, number: int) -> int:
        body = self._translation.bodies.get(number)
        if body is None:
            raise Damaged(f"The inline body {number} is missing.")
        self.bodies.append(body)
        return len(self.bodies)

    def _layer(self, layer: int) -> int:
        return self._translation.layers[layer]

    def _extent(self, extent: Extent) -> Extent:
        return self._translation.extents[extent]


class _Present(_Porting):
    """From a row of the target to its portable form."""

    def id(self, owner: Owner, number: int) -> int:
        return number

    def _layer(self, layer: int) -> int:
        return layer

    def _extent(self, extent: Extent) -> Extent:
        return extent


def ported(moved: Moved, key: bytes, value: bytes, translation: Translation) -> Portable:
    """For a row of the source. Raises NotMoved."""
    porting = _Porting(translation)
    return Portable(moved.key(key, porting), moved.rewrite(value, porting), tuple(porting.bodies))


def present(moved: Moved, key: bytes, value: bytes, bodies: dict[int, bytes]) -> Portable:
    """For a row of the target."""
    porting = _Present(Translation(bodies=bodies))
    return Portable(key, moved.rewrite(value, porting), tuple(porting.bodies))


def ported_intervals(
    intervals: Iterable[Interval], translation: Translation
) -> tuple[list[Interval], list[bytes]]:
    """The same for the intervals of a layer."""
    porting = _Porting(translation)
    return [porting.interval(each) for each in intervals], porting.bodies


class Writing:
    """From a portable row to one of the target. Counts the references, and stores inline bodies."""

    def __init__(self, tx: Transaction, bodies: Iterable[bytes]) -> None:
        self._tx = tx
        self._bodies = list(bodies)

    def id(self, _owner: Owner, number: int) -> int:
        return number

    def content(self, content: Content) -> Content:
        if content.body:
            return Content(body=self._body(content.body))
        if content.layer:
            layers.share(self._tx, content.layer)
            return content
        return Content(intervals=tuple(self.intervals(content.intervals)))

    def intervals(self, intervals: Iterable[Interval]) -> list[Interval]:
        stored = [replace(each, body=self._body(each.body)) if each.body else each for each in intervals]
        references.add(self._tx, [each for each in stored if each.extent is not None])
        return stored

    def _body(self, number: int) -> int:
        """Each reference gets a body of its own, so none is counted."""
        new = self._tx.new_id()
        self._tx.put(keys.body(new), self._bodies[number - 1])
        return new


class Dropping:
    """Removes the references of a row of the target that is replaced or deleted."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    def id(self, _owner: Owner, number: int) -> int:
        return number

    def content(self, content: Content) -> Content:
        contents.drop(self._tx, content)
        return content
