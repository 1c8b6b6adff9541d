"""Random requests, settings, passing time and maintenance: what is protected stays as it is until its protection ends.

Before and after each action all active base blobs, versions and snapshots are read. One that was protected before, and
would still be by the time after, must be there with its bytes and with the same protection. Only requests about its own
policy or hold may change that, and of a locked policy they may only move the end to a later date.
"""

from random import Random
from typing import NamedTuple

import pytest

from kyanite.engine.api import EngineBusy
from kyanite.model.blobs import blob as blobs
from kyanite.model.blobs import delete, history, protection, put
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.listed_rows import ListedParts
from kyanite.model.blobs.put import NewBlob
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.maintenance import blob_history
from kyanite.model.maintenance.tasks import step_each
from kyanite.rules import immutability
from kyanite.rules.immutability import BlobProtection
from kyanite.rules.refusals import Refused
from kyanite.values import Instant, later
from tests.model.blobs.store import CONTAINER, HTTP, BlobStore, blob, run
from tests.profiles import examples

HOUR = 3600
NAMES = ("a", "b")
EVERYTHING = ListedParts(snapshots=True, versions=True)


class Identity(NamedTuple):
    """A snapshot by its instant. A version, current or not, by its id; a base blob without one by its creation."""

    name: str
    kind: str
    instant: Instant


class State(NamedTuple):
    data: bytes
    protection: BlobProtection | None


class Machine:
    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.store = BlobStore()
        self.store.keep(versioning=True)
        run(protection.enable_version_level(self.store.engine, CONTAINER))
        self._count = 0
        self.addressed: Identity | None = None
        """Whose policy or hold the last action was about."""

    def states(self) -> dict[Identity, State]:
        found = {}
        for item in self.store.listed(EVERYTHING):
            record = item.record
            assert record is not None
            if item.snapshot is not None:
                identity = Identity(item.name, "snapshot", item.snapshot)
                data = self.store.read(item.name, item.snapshot)
            else:
                identity = Identity(item.name, "version", record.version_at or record.created_at)
                version = record.version_at if record.is_previous else None
                data = self.store.read(item.name, version=version)
            found[identity] = State(data, record.protection)
        return found

    def act(self) -> str:
        actions = (
            [self.put] * 4
            + [self.snapshot] * 3
            + [self.protect, self.delete, self.delete_item, self.undelete] * 2
            + [
                self.unprotect,
                self.end_item,
                self.settings,
                self.default,
                self.wait,
                self.step,
                self.metadata,
            ]
        )
        action = self.chance.choice(actions)
        self.addressed = None
        try:
            action()
        except (Refused, EngineBusy):
            return f"{action.__name__}, refused"
        return action.__name__

    def name(self) -> str:
        return self.chance.choice(NAMES)

    def some_item(self) -> Identity:
        return self.chance.choice(sorted(self.states()) or [Identity("a", "version", Instant(1))])

    def key(self, identity: Identity) -> BlobKey:
        if identity.kind == "snapshot":
            return blob(identity.name, identity.instant)
        if self.store.exists(identity.name):
            base = self.store.record(identity.name)
            if base.version_at is None and base.created_at == identity.instant:
                return blob(identity.name)
        return blob(identity.name, None, identity.instant)

    def put(self) -> None:
        self._count += 1
        data = b"%d" % self._count
        wanted = None
        if self.chance.random() < 0.4:
            until = later(self.store.now, self.chance.choice((1, 5)) * HOUR)
            wanted = BlobProtection(until, self.chance.random() < 0.5, self.chance.random() < 0.2)
        new = NewBlob(data, len(data), HTTP, {}, protection=wanted)
        run(put.put(self.store.engine, blob(self.name()), new, UNCONDITIONAL, may_overwrite=True))

    def snapshot(self) -> None:
        self.store.snapshot(self.name())

    def metadata(self) -> None:
        self._count += 1
        changed = {"count": str(self._count)}
        run(blobs.set_metadata(self.store.engine, blob(self.name()), changed, UNCONDITIONAL))

    def protect(self) -> None:
        self.addressed = self.some_item()
        key = self.key(self.addressed)
        if self.chance.random() < 0.3:
            run(protection.set_legal_hold(self.store.engine, key, True))
            return
        until = later(self.store.now, self.chance.choice((1, 2, 9)) * HOUR)
        locked = self.chance.random() < 0.5
        run(protection.set_policy(self.store.engine, key, until, is_locked=locked))

    def unprotect(self) -> None:
        self.addressed = self.some_item()
        key = self.key(self.addressed)
        if self.chance.random() < 0.5:
            run(protection.set_legal_hold(self.store.engine, key, False))
        else:
            run(protection.delete_policy(self.store.engine, key))

    def default(self) -> None:
        days = self.chance.choice((0, 1))

        def change(before: immutability.ContainerProtection | None) -> immutability.ContainerProtection:
            if days:
                return immutability.set_container_policy(before, days)
            return immutability.delete_container_policy(before)

        run(protection.change_container(self.store.engine, CONTAINER, change))

    def delete(self) -> None:
        self.store.delete(self.name(), snapshots=self.chance.choice(list(Snapshots)))

    def delete_item(self) -> None:
        identity = self.some_item()
        run(delete.delete(self.store.engine, self.key(identity), UNCONDITIONAL))

    def end_item(self) -> None:
        """Permanent delete, of anything."""
        found = self.store.listed(ListedParts(snapshots=True, versions=True, deleted=True))
        if found:
            item = self.chance.choice(found)
            version = None if item.record is None else item.record.version_at
            key = blob(item.name, item.snapshot, None if item.snapshot else version)
            if key != blob(item.name):
                run(delete.delete_permanently(self.store.engine, key))

    def undelete(self) -> None:
        self.store.undelete(self.name())

    def settings(self) -> None:
        self.store.keep(
            versioning=self.chance.random() < 0.6,
            days=self.chance.choice((None, 1)),
            permanent_delete=self.chance.random() < 0.5,
        )

    def wait(self) -> None:
        self.store.wait(self.chance.choice((0.2, 1, 3, 30)) * HOUR)

    def step(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            run(step_each(self.store._maintenance))


def check(machine: Machine, action: str, before: dict[Identity, State], after: dict[Identity, State]) -> int:
    """Returns how many protected items there were."""
    now, count = machine.store.now, 0
    for identity, state in before.items():
        old = state.protection
        if old is None or not immutability.is_active(old, now):
            continue
        count += 1
        assert identity in after, action
        assert after[identity].data == state.data, action
        new = after[identity].protection
        if identity != machine.addressed:
            assert new == old, action
        elif old.until is not None and old.is_locked and now < old.until:
            assert new is not None, action
            assert new.is_locked, action
            assert new.until is not None, action
            assert new.until >= old.until, action
    return count


@pytest.mark.parametrize("seed", range(examples(30)))
def test_what_is_protected_stays(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(seed)
    monkeypatch.setattr(history, "INLINE_MAX", chance.choice([0, 2, 64]))
    monkeypatch.setattr(blob_history, "ROWS_PER_STEP", chance.choice([1, 3]))
    machine = Machine(chance)
    before, protected = machine.states(), 0
    for _ in range(120):
        action = machine.act()
        after = machine.states()
        protected += check(machine, action, before, after)
        before = after
    assert protected > 20
    assert machine.store.verify() == []
    machine.store.maintain()
    assert machine.states().keys() == before.keys()
    assert machine.store.verify() == []
