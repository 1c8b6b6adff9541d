"""Random requests against one name and its neighbours, compared with an oracle that keeps everything in plain values.

Whole-history changes, maintenance in tiny steps, changes of the settings and passing time come in any order. The oracle
applies every change to every item at once; the store applies it when maintenance comes to it. Nobody may see that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from kyanite.engine.api import EngineBusy
from kyanite.model.blobs import delete, history
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.listed_rows import ListedParts
from kyanite.model.blobs.listing import BlobItem
from kyanite.model.maintenance import blob_history
from kyanite.model.maintenance.tasks import step_each
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant, later
from tests.model.blobs.store import BlobStore, blob
from tests.model.content.world import outcome
from tests.profiles import examples

DAY = 86_400
NAMES = ["a", "b", "b/c"]


@dataclass
class Item:
    data: bytes
    deleted_at: Instant | None = None
    gone_at: Instant | None = None

    def is_active(self) -> bool:
        return self.deleted_at is None

    def is_restorable(self, now: Instant) -> bool:
        return self.gone_at is not None and now < self.gone_at


@dataclass
class Name:
    base: bytes | None = None
    base_id: Instant | None = None
    created_at: Instant | None = None
    deleted: Item | None = None
    items: dict[tuple[str, Instant], Item] = field(default_factory=dict)


@dataclass
class Oracle:
    """A store of histories in which every change is applied to every item."""

    names: dict[str, Name] = field(default_factory=lambda: {name: Name() for name in NAMES})
    versioning: bool = False
    days: int | None = None

    def gone_at(self, now: Instant) -> Instant:
        assert self.days is not None
        return later(now, self.days * DAY)

    def keep_version(self, name: Name) -> None:
        assert name.base is not None
        version_id = name.base_id or name.created_at
        assert version_id is not None
        name.items["version", version_id] = Item(name.base)

    def put(self, name: Name, data: bytes, now: Instant) -> None:
        created_at: Instant | None = now
        if name.base is not None:
            if self.versioning or name.base_id is not None:
                self.keep_version(name)
            else:
                created_at = name.created_at
                if self.days is not None:
                    name.items["snapshot", now] = Item(name.base, now, self.gone_at(now))
        elif name.deleted is not None and name.deleted.is_restorable(now):
            name.items["snapshot", now] = name.deleted
        name.deleted = None
        name.base, name.base_id = data, now if self.versioning else None
        name.created_at = created_at

    def revise(self, name: Name, now: Instant) -> None:
        if self.versioning or name.base_id is not None:
            self.keep_version(name)
            name.base_id, name.created_at = now if self.versioning else None, now

    def delete_base(self, name: Name, now: Instant) -> None:
        assert name.base is not None
        if self.versioning or name.base_id is not None:
            self.keep_version(name)
        elif self.days is not None:
            name.deleted = Item(name.base, now, self.gone_at(now))
        name.base = name.base_id = None

    def delete_snapshots(self, name: Name, now: Instant) -> None:
        for (kind, _), item in list(name.items.items()):
            if kind != "snapshot":
                continue
            if self.days is None:
                item.deleted_at = item.gone_at = item.deleted_at or now
            elif item.is_active():
                item.deleted_at, item.gone_at = now, self.gone_at(now)

    def delete_item(self, item: Item, now: Instant) -> None:
        item.deleted_at, item.gone_at = now, now if self.days is None else self.gone_at(now)

    def undelete(self, name: Name, now: Instant) -> None:
        if name.deleted is not None and name.deleted.is_restorable(now):
            name.base, name.base_id = name.deleted.data, None
        name.deleted = None
        for item in name.items.values():
            if item.is_restorable(now):
                item.deleted_at = item.gone_at = None

    def has_snapshots(self, name: Name, now: Instant) -> bool:
        return any(
            item.is_active() or (self.days is None and item.is_restorable(now))
            for (kind, _), item in name.items.items()
            if kind == "snapshot"
        )

    def exists(self, name: Name, now: Instant) -> bool:
        deleted = [] if name.deleted is None else [name.deleted]
        return name.base is not None or any(
            item.is_active() or item.is_restorable(now) for item in [*name.items.values(), *deleted]
        )

    def listed(self, now: Instant, parts: dict[str, bool]) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        for text, name in sorted(self.names.items()):
            kinds = [kind for kind in ("snapshot", "version") if parts[kind + "s"]]
            of_name = [
                (instant, kind, item)
                for (kind, instant), item in name.items.items()
                if kind in kinds and (item.is_active() or (parts["deleted"] and item.is_restorable(now)))
            ]
            ordered = sorted(of_name, key=lambda each: each[:2])
            found += [(text, kind, instant, item.deleted_at) for instant, kind, item in ordered]
            has_versions = any(
                kind == "version" and item.is_active() for (kind, _), item in name.items.items()
            )
            if name.base is not None:
                found.append((text, "base", name.base_id, None))
            elif parts["deleted"] and name.deleted is not None and name.deleted.is_restorable(now):
                found.append((text, "base", None, name.deleted.deleted_at))
            elif parts["only_versions"] and has_versions:
                found.append((text, "only versions"))
        return found


def listed_item(item: BlobItem) -> tuple[object, ...]:
    assert item.record is not None
    deleted_at = None if item.deletion is None else item.deletion.at
    if item.has_versions_only:
        return item.name, "only versions"
    if item.snapshot is not None:
        return item.name, "snapshot", item.snapshot, deleted_at
    if item.record.is_previous:
        return item.name, "version", item.record.version_at, deleted_at
    return item.name, "base", item.record.version_at, deleted_at


class Machine:
    def __init__(self) -> None:
        self.store, self.oracle = BlobStore(), Oracle()
        self.number = 0

    @property
    def now(self) -> Instant:
        return outcome(self.store.engine.read(lambda snap: snap.now))

    def act(self, action: str, text: str, number: int) -> None:
        name = self.oracle.names[text]
        handle: Callable[[str, Name, int], None] = getattr(self, "do_" + action)
        try:
            handle(text, name, number)
        except EngineBusy:
            self.store.maintain()

    def do_settings(self, _text: str, _name: Name, number: int) -> None:
        self.oracle.versioning = number % 2 == 0
        self.oracle.days = [None, 1, 3][number % 3]
        self.store.keep(versioning=self.oracle.versioning, days=self.oracle.days, permanent_delete=True)

    def do_wait(self, _text: str, _name: Name, number: int) -> None:
        self.store.wait(number % 6 * DAY / 3)

    def do_step(self, _text: str, _name: Name, number: int) -> None:
        for _ in range(number % 4):
            outcome(step_each(self.store._maintenance))

    def do_maintain(self, _text: str, _name: Name, _number: int) -> None:
        self.store.maintain()

    def do_put(self, text: str, name: Name, _number: int) -> None:
        self.number += 1
        data = b"%d" % self.number
        record = self.store.put(text, data)
        self.oracle.put(name, data, record.modified_at)
        assert record.version_at == name.base_id

    def do_snapshot(self, text: str, name: Name, _number: int) -> None:
        if name.base is None:
            assert self.refusal(lambda: self.store.snapshot(text)) is Reason.BLOB_NOT_FOUND
            return
        at = self.store.snapshot(text)
        name.items["snapshot", at] = Item(name.base)
        self.oracle.revise(name, at)

    def do_metadata(self, text: str, name: Name, _number: int) -> None:
        if name.base is not None:
            record = self.store.set_metadata(text, a="1")
            self.oracle.revise(name, record.modified_at)

    def do_delete(self, text: str, name: Name, number: int) -> None:
        choice = list(Snapshots)[number % 3]
        refusal = self.refusal(lambda: self.store.delete(text, snapshots=choice))
        now = self.now
        if name.base is None:
            assert refusal is Reason.BLOB_NOT_FOUND
        elif choice is Snapshots.REFUSE and self.oracle.has_snapshots(name, now):
            assert refusal is Reason.SNAPSHOTS_PRESENT
        else:
            assert refusal is None
            if choice is not Snapshots.REFUSE:
                self.oracle.delete_snapshots(name, now)
            if choice is not Snapshots.ONLY:
                self.oracle.delete_base(name, now)

    def do_delete_item(self, text: str, name: Name, number: int) -> None:
        if not name.items:
            return
        kind, instant = sorted(name.items)[number % len(name.items)]
        item = name.items[kind, instant]
        snapshot, version = (instant, None) if kind == "snapshot" else (None, instant)
        refusal = self.refusal(lambda: self.store.delete(text, snapshot, version=version))
        assert refusal is (None if item.is_active() else Reason.BLOB_NOT_FOUND)
        if refusal is None:
            self.oracle.delete_item(item, self.now)

    def do_end_item(self, text: str, name: Name, number: int) -> None:
        """Permanent delete."""
        if not name.items:
            return
        kind, instant = sorted(name.items)[number % len(name.items)]
        item, now = name.items[kind, instant], self.now
        key = blob(text, instant) if kind == "snapshot" else blob(text, None, instant)
        refusal = self.refusal(lambda: outcome(delete.delete_permanently(self.store.engine, key)))
        if item.is_active():
            assert refusal is Reason.PERMANENT_DELETE_NOT_ALLOWED
        elif not item.is_restorable(now):
            assert refusal is Reason.BLOB_NOT_FOUND
        elif refusal is None:
            item.gone_at = now
        else:
            assert refusal is Reason.PERMANENT_DELETE_NOT_ALLOWED, "before any settings"

    def do_undelete(self, text: str, name: Name, _number: int) -> None:
        refusal = self.refusal(lambda: self.store.undelete(text))
        now = self.now
        assert refusal is (None if self.oracle.exists(name, now) else Reason.BLOB_NOT_FOUND)
        if refusal is None:
            self.oracle.undelete(name, now)

    @staticmethod
    def refusal(request: Callable[[], object]) -> Reason | None:
        try:
            request()
        except Refused as refused:
            return refused.reason
        return None

    def check(self, parts: dict[str, bool], limit: int) -> None:
        now = self.now
        found = [listed_item(item) for item in self.store.listed(ListedParts(**parts), limit=limit)]
        assert found == self.oracle.listed(now, parts)
        for text, name in self.oracle.names.items():
            for (kind, instant), item in name.items.items():
                snapshot, version = (instant, None) if kind == "snapshot" else (None, instant)
                assert self.store.exists(text, snapshot, version=version) is item.is_active()
                if item.is_active():
                    assert self.store.read(text, snapshot, version=version) == item.data
            assert self.store.exists(text) is (name.base is not None)
            if name.base is not None:
                assert self.store.read(text) == name.base


ACTIONS = (
    ["put"] * 4
    + ["snapshot"] * 4
    + ["delete", "delete_item", "undelete"] * 3
    + ["metadata", "end_item", "settings", "wait", "step", "step", "maintain"]
)
PARTS = ("snapshots", "versions", "deleted", "only_versions")


@pytest.mark.parametrize("seed", range(examples(40)))
def test_histories_against_an_oracle(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(seed)
    monkeypatch.setattr(history, "INLINE_MAX", chance.choice([0, 2, 64]))
    monkeypatch.setattr(blob_history, "ROWS_PER_STEP", chance.choice([1, 3]))
    machine = Machine()
    machine.do_settings("", Name(), seed)
    limit = chance.randint(1, 6)
    for _ in range(150):
        name = chance.choices(NAMES, [1, 4, 1])[0]
        machine.act(chance.choice(ACTIONS), name, chance.randrange(60))
        machine.check({part: chance.random() < 0.6 for part in PARTS}, limit)
    assert machine.store.verify() == []
    machine.store.maintain()
    machine.check(dict.fromkeys(PARTS, True), limit)
    assert machine.store.rows(b"p") == []
    assert machine.store.verify() == []
    machine.store.check_nothing_leaks()
