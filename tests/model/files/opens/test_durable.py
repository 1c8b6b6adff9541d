"""Durable handles: when they stay, who takes them up again, and what ends them."""

import pytest

from kyanite.engine.api import Transaction
from kyanite.model.files import file, tree
from kyanite.model.files.opens import caching, durable, handles
from kyanite.model.files.opens.caching import NO_CACHING, BreakNeeded, CachingRequest
from kyanite.model.files.opens.durable import Reconnection
from kyanite.model.files.opens.opening import Opened
from kyanite.model.files.opens.records import Handle
from kyanite.model.verification.rows import check_page
from kyanite.rules.create_options import Action, Disposition
from kyanite.rules.refusals import Reason, Refused
from tests.model.content.world import outcome
from tests.model.files.builders import SHARE, path_of
from tests.model.files.opens.caching_clients import (
    READ_ATTRIBUTES,
    CachingClients,
    lease,
    oplock,
)

OTHER = b"another one."
GUID = b"a create guid..."


class DurableClients(CachingClients):
    def disconnect(self, handle: Handle) -> bool:
        return outcome(
            self.engine.run(lambda tx: durable.disconnect(tx, self.share.id, self.file_id, handle.id))
        )

    def kept(self, wanted: CachingRequest, **terms: object) -> Handle:
        """A handle whose client has lost its connection."""
        handle = self.opened(wanted, durable_seconds=60, **terms)
        assert self.disconnect(handle)
        return handle

    def reconnect(
        self,
        handle_id: int,
        wanted: CachingRequest = NO_CACHING,
        *,
        create_guid: bytes | None = None,
        path: str = "f",
    ) -> Opened:
        request = Reconnection(handle_id, create_guid, (path,), wanted, OTHER, 8, "192.0.2.2", "name")

        def body(tx: Transaction) -> Opened:
            return durable.reconnect(tx, tree.open_tree(tx, SHARE), request)

        return outcome(self.engine.run(body))

    def refusal(self, handle_id: int, wanted: CachingRequest = NO_CACHING, **terms: object) -> Reason:
        with pytest.raises(Refused) as refused:
            self.reconnect(handle_id, wanted, **terms)  # type: ignore[arg-type]
        return refused.value.reason

    def expire(self) -> list[bytes]:
        found, position = outcome(self.engine.read(lambda snap: durable.find_expired(snap, b"")))
        assert position == b""
        outcome(self.engine.run(lambda tx: durable.remove_expired(tx, found)))
        return found

    def is_open(self) -> bool:
        return self.share.open_file(self.file_id) is not None


@pytest.fixture
def clients() -> DurableClients:
    return DurableClients()


@pytest.mark.parametrize(
    ("wanted", "is_durable"),
    [
        (NO_CACHING, False),
        (oplock("R"), False),
        (oplock("RW"), False),
        (oplock("RWH"), True),
        (lease("R"), False),
        (lease("RW"), False),
        (lease("RH"), True),
        (lease("RWH"), True),
    ],
)
def test_only_a_cached_handle_is_durable(
    clients: DurableClients, wanted: CachingRequest, is_durable: bool
) -> None:
    handle = clients.opened(wanted, durable_seconds=60)
    assert bool(handle.durable_seconds) is is_durable
    assert clients.disconnect(handle) is is_durable


def test_it_is_not_kept_if_its_client_did_not_want_that(clients: DurableClients) -> None:
    assert not clients.disconnect(clients.opened(lease("RWH")))


@pytest.mark.parametrize("options", [0, 0x1000])
def test_it_is_not_kept_if_the_file_is_to_be_deleted(clients: DurableClients, options: int) -> None:
    handle = clients.opened(lease("RH"), durable_seconds=60, options=options)
    if not options:
        clients.share.mark("f")
    assert not clients.disconnect(handle)


def test_it_is_not_kept_while_another_client_waits(clients: DurableClients) -> None:
    handle = clients.opened(lease("RWH"), durable_seconds=60)
    clients.open()
    assert not clients.disconnect(handle)


def test_a_client_takes_its_handle_up_again_in_another_process(clients: DurableClients) -> None:
    wanted = lease("RWH", epoch=4)
    old = clients.kept(wanted)
    opened = clients.reconnect(old.id, wanted)
    assert (opened.caching.state, opened.caching.epoch, opened.caching.version) == (wanted.wanted, 5, 2)
    new = clients.share.handle(clients.file_id, old.id)
    assert (new.owner, new.session_id, new.client_ip) == (OTHER, 8, "192.0.2.2")
    assert new.disconnected_at is None
    assert new.reconnected_at is not None
    clients.open()
    assert len(clients.sent(OTHER)) == 1, "Its breaks are sent there, too."
    assert clients.disconnect(new) is False


def test_an_oplock_does_not_need_the_path(clients: DurableClients) -> None:
    old = clients.kept(oplock("RWH"))
    assert clients.reconnect(old.id, path="elsewhere").entry.id == clients.file_id


def test_who_does_not_get_the_handle(clients: DurableClients) -> None:
    wanted = lease("RWH")
    old = clients.opened(wanted, durable_seconds=60, create_guid=GUID)
    assert clients.refusal(old.id, wanted) is Reason.PATH_NOT_FOUND, "It is still connected."
    assert clients.disconnect(old)
    assert clients.refusal(old.id + 1, wanted) is Reason.PATH_NOT_FOUND
    assert clients.refusal(old.id) is Reason.PATH_NOT_FOUND
    assert clients.refusal(old.id, lease("RWH", key=2)) is Reason.PATH_NOT_FOUND
    assert clients.refusal(old.id, lease("RWH", client=2)) is Reason.PATH_NOT_FOUND
    assert clients.refusal(old.id, wanted, create_guid=bytes(16)) is Reason.PATH_NOT_FOUND
    assert clients.refusal(old.id, wanted, path="elsewhere") is Reason.INVALID_PARAMETER
    clients.reconnect(old.id, wanted, create_guid=GUID)
    assert clients.refusal(old.id, wanted) is Reason.PATH_NOT_FOUND, "It has been taken up."


def test_a_renamed_file_has_its_new_name(clients: DurableClients) -> None:
    wanted = lease("RH")
    old = clients.kept(wanted)
    clients.share.make_file("g")
    assert clients.refusal(old.id, wanted, path="g") is Reason.INVALID_PARAMETER


# --- What ends it


@pytest.mark.parametrize("disposition", [Disposition.OPEN, Disposition.OVERWRITE])
def test_an_open_that_needs_an_answer_closes_it(clients: DurableClients, disposition: int) -> None:
    clients.kept(lease("RWH"))
    new = clients.opened(disposition=disposition)
    assert clients.sent() == []
    assert clients.share.open_file(clients.file_id).handle_count == 1  # type: ignore[union-attr]
    assert clients.lease_keys() == 0
    clients.close(new)


def test_its_share_mode_closes_it_rather_than_refuse(clients: DurableClients) -> None:
    clients.kept(oplock("RWH"), sharing=0)
    clients.opened()


def test_what_needs_no_answer_leaves_it(clients: DurableClients) -> None:
    wanted = lease("RH")
    old = clients.kept(wanted)
    clients.opened(lease("RH", client=2))
    clients.opened(access=READ_ATTRIBUTES)
    clients.reconnect(old.id, wanted)


def test_rest_does_not_wait_for_a_client_that_is_gone(clients: DurableClients) -> None:
    clients.kept(lease("RWH"), sharing=0)
    with pytest.raises(BreakNeeded) as needed:
        outcome(file.delete(clients.engine, path_of("f"), None))
    assert not outcome(clients.engine.run(lambda tx: caching.send_breaks(tx, needed.value)))
    outcome(file.delete(clients.engine, path_of("f"), None))


def test_maintenance_closes_what_no_client_reconnects_to_in_time(clients: DurableClients) -> None:
    old = clients.kept(lease("RWH"))
    clients.pass_time(59)
    assert clients.expire() == []
    clients.pass_time(2)
    assert len(clients.expire()) == 1
    assert not clients.is_open()
    assert clients.refusal(old.id, lease("RWH")) is Reason.PATH_NOT_FOUND
    assert outcome(clients.engine.run(lambda tx: tree.load(tx, path_of("f"), None))).entry.length == 100


def test_maintenance_leaves_what_a_client_has_reconnected_to(clients: DurableClients) -> None:
    old = clients.kept(oplock("RWH"))
    clients.pass_time(61)
    found, _ = outcome(clients.engine.read(lambda snap: durable.find_expired(snap, b"")))
    clients.reconnect(old.id)
    outcome(clients.engine.run(lambda tx: durable.remove_expired(tx, found)))
    assert clients.is_open()


def test_the_death_of_a_process_does_not_touch_it(clients: DurableClients) -> None:
    old = clients.kept(oplock("RWH"))
    while outcome(clients.engine.run(lambda tx: handles.close_handles_of_owner(tx, old.owner))):
        pass
    clients.reconnect(old.id)


def test_what_is_stored_is_sound(clients: DurableClients) -> None:
    clients.kept(lease("RWH"))
    page = outcome(clients.engine.read(lambda snap: check_page(snap, b"")))
    assert page.findings == []


# --- A CREATE that is repeated


def test_a_create_guid_names_one_handle(clients: DurableClients) -> None:
    handle = clients.opened(oplock("RWH"), durable_seconds=60, create_guid=GUID)
    with pytest.raises(Refused) as refused:
        clients.open(create_guid=GUID)
    assert refused.value.reason is Reason.CREATE_GUID_IN_USE
    clients.close(handle)
    assert clients.share.rows(b"C") == {}
    clients.opened(create_guid=GUID)


@pytest.mark.parametrize("wanted", [NO_CACHING, lease("RH")])
def test_a_repeated_create_finds_what_it_has_made(clients: DurableClients, wanted: CachingRequest) -> None:
    client_guid = wanted.lease[:16]
    handle = clients.opened(
        wanted, path="new", disposition=Disposition.CREATE, durable_seconds=60, create_guid=GUID
    )

    def repeat(guid: bytes) -> Opened | None:
        return outcome(
            clients.engine.read(
                lambda snap: durable.repeat(snap, tree.open_tree(snap, SHARE), client_guid, guid)
            )
        )

    found = repeat(GUID)
    assert found is not None
    assert (found.handle, found.action) == (handle, Action.CREATED)
    assert found.caching.state == wanted.wanted
    assert repeat(b"another guid....") is None


def test_a_guid_that_is_used_again_names_the_later_handle(clients: DurableClients) -> None:
    first = clients.opened(create_guid=GUID)
    second = clients.opened(create_guid=GUID, reuses_guid=True)
    clients.close(first)
    found = outcome(
        clients.engine.read(lambda snap: durable.repeat(snap, tree.open_tree(snap, SHARE), b"", GUID))
    )
    assert found is not None
    assert found.handle.id == second.id
    clients.close(second)
    assert clients.share.rows(b"C") == {}
