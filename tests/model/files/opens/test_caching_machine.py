"""Clients at random: what each may rely on, and that nothing is left when all have gone."""

from contextlib import suppress
from functools import partial

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kyanite.engine.api import Transaction
from kyanite.model.files import file, tree
from kyanite.model.files.opens import caching, durable, grants, open_files
from kyanite.model.files.opens.caching import NO_CACHING, BreakNeeded, CachingRequest
from kyanite.model.files.opens.data import HandleWrite, write_all
from kyanite.model.files.opens.durable import Reconnection
from kyanite.model.files.opens.opening import Opened
from kyanite.model.files.opens.records import Handle, OpenFile
from kyanite.model.verification.rows import check_page
from kyanite.rules.create_options import Disposition
from kyanite.rules.oplocks import BREAK_SECONDS, Caching, is_stat_open
from kyanite.rules.refusals import Refused
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE, path_of
from tests.model.files.opens.caching_clients import (
    EVERYTHING,
    NAMES,
    READ_ATTRIBUTES,
    READ_DATA,
    CachingClients,
    lease,
    oplock,
)
from tests.profiles import examples

REQUESTS = [NO_CACHING]
REQUESTS += [oplock(state) for state in ("R", "RW", "RWH")]
REQUESTS += [
    lease(state, client, key) for state in ("R", "RH", "RW", "RWH") for client in (1, 2) for key in (1, 2)
]
DISPOSITIONS = st.sampled_from([Disposition.OPEN, Disposition.OPEN, Disposition.OVERWRITE])
INDEX = st.integers(0, 30)


class Clients(RuleBasedStateMachine):
    """One file. Breaks are acknowledged at some time, or never."""

    @initialize()
    def start(self) -> None:
        self.clients = CachingClients()
        self.engine = self.clients.engine

    def present(self) -> tuple[OpenFile, list[Handle]] | None:
        return outcome(
            self.engine.read(lambda snap: open_files.load(snap, self.clients.share.id, self.clients.file_id))
        )

    def handle_at(self, index: int) -> Handle | None:
        present = self.present()
        return None if present is None else present[1][index % len(present[1])]

    @rule(
        wanted=st.sampled_from(REQUESTS),
        access=st.sampled_from([EVERYTHING, READ_DATA, READ_ATTRIBUTES]),
        sharing=st.sampled_from([0, 1, 7, 7]),
        disposition=DISPOSITIONS,
        is_durable=st.booleans(),
    )
    def open(
        self, wanted: CachingRequest, access: int, sharing: int, disposition: Disposition, is_durable: bool
    ) -> None:
        with suppress(Refused):
            self.clients.open(
                wanted,
                access=access,
                sharing=sharing,
                disposition=disposition,
                durable_seconds=60 if is_durable else 0,
            )

    @rule(index=INDEX)
    def close(self, index: int) -> None:
        handle = self.handle_at(index)
        if handle is not None and handle.is_connected:
            self.clients.close(handle)

    @rule(index=INDEX)
    def acknowledge(self, index: int) -> None:
        """What the last break asks for, or less."""
        present = self.present()
        breaking = [each for each in present[0].grants if each.requested is not None] if present else []
        if breaking:
            grant = breaking[index % len(breaking)]
            requested = Caching(grant.requested or 0)
            kept = requested if index % 3 else Caching.NONE
            if grant.version:
                outcome(self.engine.run(lambda tx: caching.acknowledge_lease(tx, grant.key, kept)))
            else:
                handle = next(each for each in self.handles() if each.caching_key == grant.key)
                self.clients.acknowledge_oplock(handle, NAMES[kept])

    def handles(self) -> list[Handle]:
        present = self.present()
        return [] if present is None else present[1]

    @rule(index=INDEX)
    def write(self, index: int) -> None:
        handle = self.handle_at(index)
        if handle is None or not handle.is_connected or handle.granted != EVERYTHING:
            return

        def body(tx: Transaction) -> None:
            writes = [HandleWrite(handle.id, 0, 1, b"x")]
            write_all(tx, tree.open_tree(tx, SHARE), self.clients.file_id, writes)

        outcome(self.engine.run(body))

    @rule()
    def read_by_rest(self) -> None:
        try:
            outcome(file.get_properties(self.engine, path_of("f"), None))
        except BreakNeeded as needed:
            outcome(self.engine.run(partial(caching.send_breaks, needed=needed)))

    @rule(index=INDEX)
    def lose_connection(self, index: int) -> None:
        handle = self.handle_at(index)
        if handle is not None and handle.is_connected:
            ids = self.clients.share.id, self.clients.file_id, handle.id
            if not outcome(self.engine.run(lambda tx: durable.disconnect(tx, *ids))):
                self.clients.close(handle)

    @rule(index=INDEX)
    def reconnect(self, index: int) -> None:
        handle = self.handle_at(index)
        if handle is None or handle.is_connected:
            return
        wanted = CachingRequest(lease=handle.caching_key) if handle.lease_key else NO_CACHING
        request = Reconnection(handle.id, None, ("f",), wanted, b"another one.", 8, "192.0.2.2", "")

        def body(tx: Transaction) -> Opened:
            return durable.reconnect(tx, tree.open_tree(tx, SHARE), request)

        assert outcome(self.engine.run(body)).handle.id == handle.id

    @rule(seconds=st.sampled_from([1, BREAK_SECONDS, 61]))
    def pass_time(self, seconds: int) -> None:
        self.clients.pass_time(seconds)
        found, _ = outcome(self.engine.read(lambda snap: durable.find_expired(snap, b"")))
        outcome(self.engine.run(lambda tx: durable.remove_expired(tx, found)))

    @invariant()
    def who_caches_writes_is_alone(self) -> None:
        present = self.present()
        if present is None:
            return
        rules = [grants.rule_of(each, self.clients.now) for each in present[0].grants]
        for each in rules:
            if each.state & Caching.WRITE:
                others = [other for other in present[1] if other.caching_key != each.owner]
                assert all(is_stat_open(other.granted, against_lease=True) for other in others)
                assert sum(bool(other.state & Caching.WRITE) for other in rules) == 1

    @invariant()
    def every_grant_has_its_handles(self) -> None:
        present = self.present()
        if present is not None:
            for each in present[0].grants:
                count = sum(other.caching_key == each.key for other in present[1])
                assert each.handle_count == count > 0

    @invariant()
    def what_is_stored_is_sound(self) -> None:
        page = outcome(self.engine.read(lambda snap: check_page(snap, b"")))
        assert page.findings == []

    def teardown(self) -> None:
        for handle in self.handles():
            self.pass_time(61)
            if handle.is_connected:
                self.clients.close(handle)
        for prefix in (b"H", b"O", b"Q", b"J", b"C"):
            assert self.clients.share.rows(prefix) == {}


TestClients = Clients.TestCase
TestClients.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)
