"""Oplocks and leases in the transactions of both protocols: what each takes from clients, and what it waits for."""

from collections.abc import Callable
from itertools import product

import pytest

from kyanite.engine.api import Transaction
from kyanite.model.content import content
from kyanite.model.files import file, rename, tree
from kyanite.model.files.actors import RestActor, SmbActor
from kyanite.model.files.file import FileChange, NewFile, RangeWrite
from kyanite.model.files.opens import caching, data, handles, open_files
from kyanite.model.files.opens.caching import BreakNeeded, Granted
from kyanite.model.files.opens.data import HandleWrite
from kyanite.model.files.opens.waits import Wait
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.rename import Rename
from kyanite.model.files.tree import Found
from kyanite.model.records import HttpHeaders
from kyanite.model.verification.rows import check_page
from kyanite.rules.create_options import Disposition
from kyanite.rules.oplocks import BREAK_SECONDS, AcknowledgementError, Caching
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from tests.model.content.world import outcome
from tests.model.files.builders import OWNER, SHARE, path_of
from tests.model.files.opens.caching_clients import (
    READ_ATTRIBUTES,
    READ_DATA,
    CachingClients,
    Sent,
    lease,
    oplock,
)

DELETE_ON_CLOSE = 0x1000
ONE = "1.1"
"""The lease that ``lease`` makes if nothing else is said."""


@pytest.fixture
def clients() -> CachingClients:
    return CachingClients()


# --- Two clients open the file

SECOND_OPENS = [
    (held, wanted, broken_to, granted)
    for held, broken_to, row in [
        ("R", "", ("R", "RH", "R", "RH")),
        ("RH", "", ("R", "RH", "R", "RH")),
        ("RW", "R", ("R", "RH", "R", "RH")),
        ("RWH", "RH", ("R", "RH", "R", "RH")),
    ]
    for wanted, granted in zip(("R", "RH", "RW", "RWH"), row, strict=True)
]


@pytest.mark.parametrize(("held", "wanted", "broken_to", "granted"), SECOND_OPENS)
def test_a_second_client(
    clients: CachingClients, held: str, wanted: str, broken_to: str, granted: str
) -> None:
    first, second = lease(held), lease(wanted, client=2)
    assert clients.granted(first) == Granted(first.wanted, 1, version=2)
    if broken_to:
        assert isinstance(clients.open(second), Wait)
        assert clients.sent() == [Sent(ONE, f"{held}>{broken_to}", True)]
        assert isinstance(clients.open(second), Wait), "The first has not answered yet."
        assert clients.sent() == []
        clients.acknowledge(first, broken_to)
    clients.opened(second)
    assert (clients.state(first), clients.state(second)) == (broken_to or held, granted)
    assert clients.sent() == []


@pytest.mark.parametrize(("held", "left"), [("R", "-"), ("RH", "-"), ("RW", "-"), ("RWH", "-")])
def test_an_open_that_overwrites(clients: CachingClients, held: str, left: str) -> None:
    first = lease(held)
    clients.opened(first)
    opened = clients.open(disposition=Disposition.OVERWRITE)
    assert isinstance(opened, Wait) is ("W" in held)
    assert clients.sent() == [Sent(ONE, f"{held}>{left}", held != "R")]


def test_a_stat_open_breaks_nothing_and_is_no_other_open(clients: CachingClients) -> None:
    clients.opened(lease("RWH"))
    clients.opened(access=READ_ATTRIBUTES)
    assert clients.sent() == []
    assert clients.granted(lease("RWH", key=2, client=2), path="f", access=READ_ATTRIBUTES).state is (
        Caching.READ | Caching.HANDLE
    )


def test_a_sharing_violation_breaks_the_handle_first(clients: CachingClients) -> None:
    first = lease("RWH")
    handle = clients.opened(first, sharing=0)
    for _ in range(2):
        assert isinstance(clients.open(), Wait)
    assert clients.sent() == [Sent(ONE, "RWH>RW", True)]
    clients.acknowledge(first, "RW")
    with pytest.raises(Refused) as refused:
        clients.open()
    assert refused.value.reason is Reason.SHARING_VIOLATION
    clients.close(handle)
    clients.opened()


def test_a_client_that_only_cached_its_handle_closes_it(clients: CachingClients) -> None:
    handle = clients.opened(lease("RH"), access=READ_DATA, sharing=0)
    assert isinstance(clients.open(), Wait)
    clients.close(handle)
    clients.opened()


@pytest.mark.parametrize(("held", "broken"), [("RH", ["RH>R"]), ("RWH", ["RWH>RH", "RH>R"]), ("R", [])])
def test_an_open_that_deletes_the_file_at_its_end(
    clients: CachingClients, held: str, broken: list[str]
) -> None:
    """A client that only caches its handle closes it, so that the file goes."""
    clients.opened(lease(held))
    for change in broken:
        assert isinstance(clients.open(options=DELETE_ON_CLOSE), Wait)
        assert clients.sent() == [Sent(ONE, change, True)]
        clients.acknowledge(lease(held), change.split(">")[1])
    clients.opened(options=DELETE_ON_CLOSE)


@pytest.mark.parametrize(
    ("held", "wanted", "granted"),
    [("R", "RWH", "R"), ("RW", "R", "R"), ("RWH", "RWH", "R")],
)
def test_oplocks(clients: CachingClients, held: str, wanted: str, granted: str) -> None:
    first = clients.opened(oplock(held))
    if "W" in held:
        assert isinstance(clients.open(oplock(wanted)), Wait)
        assert clients.sent() == [Sent("oplock", f"{held}>R", True)]
        assert clients.acknowledge_oplock(first, "R") is Caching.READ
    assert clients.granted(oplock(wanted)).state == Caching.READ
    assert granted == "R"


def test_a_stat_open_gets_an_oplock_only_of_a_file_that_it_makes(clients: CachingClients) -> None:
    assert clients.granted(oplock("RWH"), access=READ_ATTRIBUTES).state is Caching.NONE
    made = clients.granted(oplock("RWH"), path="new", access=READ_ATTRIBUTES, disposition=Disposition.CREATE)
    assert made.state == oplock("RWH").wanted


def test_a_directory_is_not_cached(clients: CachingClients) -> None:
    clients.share.make_directory("d")
    assert clients.granted(lease("RWH"), path="d", options=1).state is Caching.NONE
    assert clients.lease_keys() == 0


# --- One lease key


def test_a_lease_key_is_for_one_file(clients: CachingClients) -> None:
    clients.share.make_file("g")
    handle = clients.opened(lease("R"))
    for path, disposition in (("g", Disposition.OPEN), ("new", Disposition.CREATE)):
        with pytest.raises(Refused) as refused:
            clients.open(lease("R"), path=path, disposition=disposition)
        assert refused.value.reason is Reason.LEASE_KEY_IN_USE
    clients.opened(lease("R", client=2), path="g")
    clients.close(handle)
    clients.opened(lease("R"), path="g")


def test_a_lease_lasts_as_long_as_its_handles(clients: CachingClients) -> None:
    first, second = clients.opened(lease("RWH")), clients.opened(lease("RWH"))
    assert clients.sent() == []
    clients.close(first)
    assert (clients.state(lease("RWH")), clients.lease_keys()) == ("RWH", 1)
    clients.close(second)
    assert (clients.state(lease("RWH")), clients.lease_keys()) == ("gone", 0)


def test_a_lease_grows_and_does_not_shrink(clients: CachingClients) -> None:
    grown = [clients.granted(lease(each, epoch=8)) for each in ("R", "RH", "R", "RWH")]
    assert [(each.state, each.epoch) for each in grown] == [
        (lease("R").wanted, 9),
        (lease("RH").wanted, 10),
        (lease("RH").wanted, 10),
        (lease("RWH").wanted, 11),
    ]


def test_an_open_of_the_same_key_hears_of_a_break(clients: CachingClients) -> None:
    clients.opened(lease("RWH"))
    clients.open(lease("R", client=2))
    assert clients.granted(lease("RWH")) == Granted(lease("RWH").wanted, 2, is_breaking=True, version=2)


# --- The end of a break


def test_acknowledgements(clients: CachingClients) -> None:
    first = lease("RWH")
    clients.opened(first)
    assert clients.acknowledge(first, "R") is AcknowledgementError.NOT_BREAKING
    clients.open(lease("R", client=2))
    assert clients.acknowledge(first, "RW") is AcknowledgementError.TOO_MUCH
    assert clients.acknowledge(first, "R") is Caching.READ
    with pytest.raises(Refused) as refused:
        clients.acknowledge(lease("R", key=9), "R")
    assert refused.value.reason is Reason.LEASE_KEY_NOT_FOUND


def test_breaks_go_on_in_steps(clients: CachingClients) -> None:
    first = lease("RWH")
    clients.opened(first)
    clients.open(lease("R", client=2))
    clients.open(lease("R", client=3), disposition=Disposition.OVERWRITE)
    assert clients.sent() == [Sent(ONE, "RWH>RH", True)]
    clients.acknowledge(first, "RH")
    assert clients.sent() == [Sent(ONE, "RH>R", True)]
    clients.acknowledge(first, "R")
    assert clients.sent() == [Sent(ONE, "R>-", False)]
    assert clients.state(first) == "-"


def test_an_open_that_waits_does_so_to_the_end_of_the_break(clients: CachingClients) -> None:
    first = lease("RWH")
    clients.opened(first)
    clients.open()
    clients.open(disposition=Disposition.OVERWRITE)
    clients.acknowledge(first, "RH")
    assert isinstance(clients.open(has_waited=True), Wait)
    clients.opened()
    clients.acknowledge(first, "R")
    clients.opened(has_waited=True)


def test_the_first_open_of_a_lease_decides_its_version(clients: CachingClients) -> None:
    clients.opened(lease("R", version=1))
    assert clients.granted(lease("RH", epoch=7)) == Granted(lease("RH").wanted, 1, version=1)


@pytest.mark.parametrize("held", ["RW", "RWH"])
def test_a_break_that_is_not_acknowledged_ends(clients: CachingClients, held: str) -> None:
    clients.opened(lease(held))
    batch = clients.opened(oplock("RWH"), path="g", disposition=Disposition.CREATE)
    assert isinstance(clients.open(), Wait)
    assert isinstance(clients.open(path="g"), Wait)
    clients.pass_time(BREAK_SECONDS - 1)
    assert isinstance(clients.open(), Wait)
    clients.pass_time(2)
    clients.opened()
    clients.opened(path="g")
    assert clients.state(lease(held)) == "-"
    assert clients.acknowledge_oplock(batch, "R") is AcknowledgementError.NOT_BREAKING


def test_closing_the_last_handle_of_a_key_ends_the_wait(clients: CachingClients) -> None:
    handle = clients.opened(lease("RW"))
    assert isinstance(clients.open(), Wait)
    clients.close(handle)
    clients.opened()


def test_what_a_dead_process_served_ends(clients: CachingClients) -> None:
    dead = b"a dead one.."
    clients.opened(lease("RWH"), owner=dead)
    assert isinstance(clients.open(), Wait)
    assert len(clients.share.rows(b"K")) == 1
    while outcome(clients.engine.run(lambda tx: handles.close_handles_of_owner(tx, dead))):
        pass
    clients.opened()
    assert clients.lease_keys() == 0
    assert clients.share.rows(b"K") == {}


def test_the_oldest_handle_of_a_client_is_sent_the_break(clients: CachingClients) -> None:
    other = b"another one."
    first = clients.opened(lease("RH"))
    clients.opened(lease("RH", key=2), owner=other)
    clients.open(disposition=Disposition.OVERWRITE)
    assert sorted(clients.sent()) == [Sent(ONE, "RH>-", True), Sent("1.2", "RH>-", True)]
    clients.acknowledge(lease("RH"), "-")
    clients.close(first)
    clients.acknowledge(lease("RH", key=2), "-")
    clients.opened(lease("R", key=2), owner=other)
    clients.open(disposition=Disposition.OVERWRITE)
    assert (clients.sent(), clients.sent(other)) == ([], [Sent("1.2", "R>-", False)])


# --- REST: the table of concurrency.md §9.5


def write(tx: Transaction, found: Found) -> object:
    return file.write(tx, found, RestActor(), RangeWrite(10, 5, b"12345"))


REST: dict[str, Callable[[Transaction, Found], object]] = {
    "Get File": lambda tx, found: file.check_readable(tx, found, RestActor(), start=0, length=10),
    "Get Properties": lambda tx, _: file.load_for_read(tx, path_of("f"), None, Rights.NONE),
    "Put Range": write,
    "Set Properties": lambda tx, found: file.change(
        tx, found, RestActor(), FileChange(None, None, SmbProperties())
    ),
    "Set Metadata": lambda tx, found: file.change_metadata(tx, found, RestActor(), {}),
    "Create File": lambda tx, found: file.put(
        tx, *found, RestActor(), NewFile(0, HttpHeaders(), {}, SmbProperties()), content.NO_CONTENT
    ),
    "Delete File": lambda tx, found: caching.check_unopened(tx, found.location.tree.id, found.entry.id),
    "Rename": lambda tx, found: rename.move(tx, found, RestActor(), Rename(("g",))),
}
READS, ENDS = {"Get File", "Get Properties"}, {"Delete File", "Rename"}
LEFT = {
    "reads": {"RWH": "RH", "RW": "R", "RH": "", "R": ""},
    "writes": {"RWH": "-", "RW": "-", "RH": "-", "R": "-"},
    "ends": {"RWH": "RW", "RW": "", "RH": "R", "R": ""},
}
WAITS = {"reads": "W", "writes": "W", "ends": "H"}


@pytest.mark.parametrize(("name", "held"), list(product(REST, ("RWH", "RW", "RH", "R"))))
def test_rest(clients: CachingClients, name: str, held: str) -> None:
    group = "reads" if name in READS else "ends" if name in ENDS else "writes"
    first = lease(held)
    clients.opened(first)
    left, waits = LEFT[group][held], bool(set(WAITS[group]) & set(held))
    needed = attempt(clients, name)
    assert (needed is not None) is waits
    if needed is not None:
        assert clients.sent() == [], "A transaction that must wait writes nothing."
        assert outcome(clients.engine.run(lambda tx: caching.send_breaks(tx, needed)))
        assert attempt(clients, name) is not None
    assert clients.sent() == ([Sent(ONE, f"{held}>{left}", held != "R")] if left else [])
    if waits:
        clients.acknowledge(first, left)
        assert attempt(clients, name) is None
        assert clients.state(first) == left


def attempt(clients: CachingClients, name: str) -> BreakNeeded | None:
    try:
        outcome(clients.engine.run(lambda tx: REST[name](tx, clients.share.find(tx, "f"))))
    except BreakNeeded as needed:
        return needed
    except Refused:
        if name != "Delete File":
            raise
    return None


def test_rest_breaks_the_handle_before_a_sharing_violation(clients: CachingClients) -> None:
    handle = clients.opened(lease("RH"), access=READ_DATA, sharing=1)
    needed = attempt(clients, "Put Range")
    assert needed is not None
    outcome(clients.engine.run(lambda tx: caching.send_breaks(tx, needed)))
    assert clients.sent() == [Sent(ONE, "RH>R", True)]
    clients.close(handle)
    assert attempt(clients, "Put Range") is None


def test_rest_deletes_a_file_whose_handle_was_only_cached(clients: CachingClients) -> None:
    handle = clients.opened(lease("RWH"))
    with pytest.raises(BreakNeeded) as needed:
        outcome(file.delete(clients.engine, path_of("f"), None))
    outcome(clients.engine.run(lambda tx: caching.send_breaks(tx, needed.value)))
    clients.close(handle)
    outcome(file.delete(clients.engine, path_of("f"), None))


# --- Through handles


def test_a_write_takes_what_others_cache_and_waits_for_none(clients: CachingClients) -> None:
    mine = lease("R", client=2)
    clients.opened(lease("R"))
    clients.opened(oplock("R"))
    writer = clients.opened(mine)
    write_through(clients, writer.id)
    assert sorted(clients.sent()) == [Sent(ONE, "R>-", False), Sent("oplock", "R>-", False)]
    assert clients.state(mine) == "R"


def test_a_write_ends_the_oplock_of_its_own_handle_if_that_is_for_reading(clients: CachingClients) -> None:
    clients.opened()
    handle = clients.opened(oplock("R"))
    write_through(clients, handle.id)
    assert clients.sent() == [Sent("oplock", "R>-", False)]


def write_through(clients: CachingClients, handle_id: int) -> None:
    def body(tx: Transaction) -> None:
        writes = [HandleWrite(handle_id, 0, 1, b"x")]
        assert data.write_all(tx, tree.open_tree(tx, SHARE), clients.file_id, writes).refusals == [None]

    outcome(clients.engine.run(body))


def test_setting_attributes_through_a_handle_breaks_nothing(clients: CachingClients) -> None:
    handle = clients.opened(lease("RH", client=2))
    clients.opened(lease("RH"))
    act(clients, handle.id, lambda tx, found, actor: file.change(tx, found, actor, NO_CHANGE))
    assert clients.sent() == []
    act(clients, handle.id, lambda tx, found, actor: file.resize(tx, found, actor, 7))
    assert clients.sent() == [Sent(ONE, "RH>-", True)]


NO_CHANGE = FileChange(None, None, SmbProperties())


def test_a_rename_through_a_handle_breaks_other_handles(clients: CachingClients) -> None:
    mine, other = lease("RH", client=2), lease("RH")
    handle = clients.opened(mine)
    clients.opened(other)
    rename_it = Rename(("g",))
    with pytest.raises(BreakNeeded) as needed:
        act(clients, handle.id, lambda tx, found, actor: rename.move(tx, found, actor, rename_it))
    outcome(clients.engine.run(lambda tx: caching.send_breaks(tx, needed.value)))
    assert clients.sent() == [Sent(ONE, "RH>R", True)]
    clients.acknowledge(other, "R")
    act(clients, handle.id, lambda tx, found, actor: rename.move(tx, found, actor, rename_it))
    assert (clients.state(mine), clients.state(other)) == ("RH", "R")


def act(
    clients: CachingClients, handle_id: int, what: Callable[[Transaction, Found, SmbActor], object]
) -> None:
    def body(tx: Transaction) -> None:
        found = open_files.find(tx, tree.open_tree(tx, SHARE), clients.file_id)
        what(tx, found, SmbActor(handle_id))

    outcome(clients.engine.run(body))


@pytest.mark.parametrize("closes", [True, False])
def test_a_directory_is_renamed_once_cached_handles_below_are_closed(
    clients: CachingClients, closes: bool
) -> None:
    clients.share.make_directory("d")
    inside = [clients.share.make_file(f"d/{number}") for number in range(3)]
    wanted = [lease("RWH", key=number + 1) for number in range(3)]
    opened = [clients.opened(each, path=f"d/{number}") for number, each in enumerate(wanted)]

    def move(tx: Transaction) -> None:
        rename.move(tx, tree.load(tx, path_of("d"), None), RestActor(), Rename(("e",)))

    with pytest.raises(BreakNeeded) as needed:
        outcome(clients.engine.run(move))
    outcome(clients.engine.run(lambda tx: caching.send_breaks(tx, needed.value)))
    assert clients.sent() == [Sent(f"1.{number}", "RWH>RW", True) for number in (1, 2, 3)]
    for number, handle in enumerate(opened):
        if closes:
            clients.close(handle, inside[number])
        else:
            clients.acknowledge(wanted[number], "RW")
    if closes:
        outcome(clients.engine.run(move))
    else:
        with pytest.raises(Refused) as refused:
            outcome(clients.engine.run(move))
        assert refused.value.reason is Reason.SHARING_VIOLATION


def test_what_is_stored_is_sound(clients: CachingClients) -> None:
    clients.opened(lease("RH"))
    clients.opened(lease("RH"))
    clients.opened(oplock("R"), owner=OWNER)
    clients.opened(lease("RWH", key=2), path="new", disposition=Disposition.CREATE)
    clients.open(path="new")
    page = outcome(clients.engine.read(lambda snap: check_page(snap, b"")))
    assert page.findings == []
    assert len(clients.share.rows(b"J")) == 2
    assert len(clients.share.rows(b"K")) == 1
