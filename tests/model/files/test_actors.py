"""REST requests and SMB handles call the same functions, and other handles forbid different things to them."""

from collections.abc import Callable

import pytest

from kyanite.engine.api import Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.content import content
from kyanite.model.files import actors, directory, file, rename, tree
from kyanite.model.files.actors import Actor, RestActor, SmbActor
from kyanite.model.files.file import FileChange, NewFile, RangeWrite
from kyanite.model.files.opens import handles, open_files
from kyanite.model.files.opens.handles import HandleRequest
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.rename import Rename
from kyanite.model.files.tree import Found
from kyanite.model.lease import Action, LeaseRequest
from kyanite.model.records import HttpHeaders
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import EVERYTHING, Rights
from kyanite.values import LeaseId
from tests.model.content.world import outcome
from tests.model.files.builders import OWNER, SHARE, FileShare

R, W, D, NONE = Rights.READ, Rights.WRITE, Rights.DELETE, Rights.NONE
LENGTH = 100

Act = Callable[[Transaction, Found, Actor], object]

ACTS: dict[str, Act] = {
    "read properties": lambda tx, found, actor: file.check_readable(tx, found, actor, NONE),
    "read": lambda tx, found, actor: file.check_readable(tx, found, actor, start=10, length=5),
    "write": lambda tx, found, actor: file.write(tx, found, actor, RangeWrite(10, 5, b"12345")),
    "clear": lambda tx, found, actor: file.write(tx, found, actor, RangeWrite(10, 5, None)),
    "resize": lambda tx, found, actor: file.resize(tx, found, actor, 12),
    "change": lambda tx, found, actor: file.change(tx, found, actor, FileChange(None, None, SmbProperties())),
    "change metadata": lambda tx, found, actor: file.change_metadata(tx, found, actor, {"a": "b"}),
    "replace": lambda tx, found, actor: file.put(
        tx,
        found.location,
        found.entry,
        actor,
        NewFile(0, HttpHeaders(), {}, SmbProperties()),
        found.entry.content,
    ),
    "rename": lambda tx, found, actor: rename.move(tx, found, actor, Rename(("g",))),
}
WRITES = {"write", "clear", "resize", "change", "change metadata"}
IN_LOCKED_RANGE = {"write", "clear", "resize", "replace"}


@pytest.fixture
def files() -> FileShare:
    share = FileShare(MemoryEngine())
    share.make_file("f", LENGTH)
    return share


class Undone(Exception):
    pass


def attempt(files: FileShare, act: Act, actor: Actor, file_id: int | None = None) -> Reason | None:
    """Why it is refused, if it is; what it does is undone."""

    def body(tx: Transaction) -> None:
        share_tree = tree.open_tree(tx, SHARE)
        found = files.find(tx, "f") if file_id is None else open_files.find(tx, share_tree, file_id)
        act(tx, found, actor)
        raise Undone

    try:
        outcome(files.engine.run(body))
    except Undone:
        return None
    except Refused as refusal:
        return refusal.reason
    raise AssertionError("neither done nor refused")


def refused(files: FileShare, actor: Actor) -> dict[str, Reason]:
    found = {name: attempt(files, act, actor) for name, act in ACTS.items()}
    return {name: reason for name, reason in found.items() if reason is not None}


@pytest.mark.parametrize(
    ("shared", "failing"),
    [
        (NONE, WRITES | {"read", "replace", "rename"}),
        (R, WRITES | {"replace", "rename"}),
        (W, {"read", "replace", "rename"}),
        (D, WRITES | {"read", "replace"}),
        (R | W, {"replace", "rename"}),
        (R | D, WRITES | {"replace"}),
        (W | D, {"read"}),
        (R | W | D, set()),
    ],
)
def test_share_modes_forbid_to_rest_what_they_do_not_share(
    files: FileShare, shared: Rights, failing: set[str]
) -> None:
    files.open("f", R, shared)
    assert refused(files, RestActor()) == dict.fromkeys(failing, Reason.SHARING_VIOLATION)


@pytest.mark.parametrize("shared", [NONE, R, W, D, R | W, R | D, W | D, EVERYTHING])
def test_share_modes_are_decided_when_an_smb_client_opens(files: FileShare, shared: Rights) -> None:
    """The other handle is there first; whatever the second was allowed to open, it may use."""
    files.open("f", NONE, NONE)
    files.open("f", R, shared)
    access = shared & EVERYTHING
    own = files.open("f", access, EVERYTHING)
    assert refused(files, SmbActor(own.id)) == {}


@pytest.mark.parametrize("is_exclusive", [True, False])
@pytest.mark.parametrize("is_own", [True, False])
def test_locks(files: FileShare, is_exclusive: bool, is_own: bool) -> None:
    """An exclusive lock forbids all but its own handle to read and write; a shared one to write, even its own."""
    file_id = files.find_id("f")
    own, other = files.open("f", EVERYTHING), files.open("f", EVERYTHING)
    files.lock(file_id, own.id if is_own else other.id, (14, 2, is_exclusive))
    for_rest = IN_LOCKED_RANGE | {"read"} if is_exclusive else IN_LOCKED_RANGE
    assert refused(files, RestActor()) == dict.fromkeys(for_rest, Reason.FILE_LOCK_CONFLICT)
    for_smb = set() if is_own and is_exclusive else for_rest
    assert refused(files, SmbActor(own.id)) == dict.fromkeys(for_smb, Reason.FILE_LOCK_CONFLICT)


@pytest.mark.parametrize(
    ("start", "conflicts"), [(0, False), (9, False), (10, True), (14, True), (15, False)]
)
def test_a_lock_forbids_its_range_only(files: FileShare, start: int, conflicts: bool) -> None:
    file_id = files.find_id("f")
    own, other = files.open("f", EVERYTHING), files.open("f", EVERYTHING)
    files.lock(file_id, other.id, (10, 5, True))
    for actor in (RestActor(), SmbActor(own.id)):
        read = attempt(
            files, lambda tx, found, who: file.check_readable(tx, found, who, start=start, length=1), actor
        )
        assert read == (Reason.FILE_LOCK_CONFLICT if conflicts else None)


def test_a_pending_delete_forbids_everything_to_rest_and_nothing_to_open_handles(files: FileShare) -> None:
    own = files.open("f", EVERYTHING)
    files.mark("f")
    assert refused(files, RestActor()) == dict.fromkeys(ACTS, Reason.DELETE_PENDING)
    assert refused(files, SmbActor(own.id)) == {}


def test_a_closed_handle_does_nothing(files: FileShare) -> None:
    own = files.open("f", EVERYTHING)
    files.open("f", EVERYTHING)
    files.close(files.find_id("f"), own.id)
    assert refused(files, SmbActor(own.id)) == dict.fromkeys(ACTS, Reason.HANDLE_CLOSED)


def test_a_handle_of_another_file_is_none_of_this_one(files: FileShare) -> None:
    files.make_file("other")
    own = files.open("other", EVERYTHING)
    assert refused(files, SmbActor(own.id)) == dict.fromkeys(ACTS, Reason.HANDLE_CLOSED)


@pytest.mark.parametrize(
    ("access", "reason"),
    [(NONE, None), (R, None), (W, Reason.SHARING_VIOLATION), (D, Reason.SHARING_VIOLATION)],
)
def test_a_lease_leaves_smb_clients_handles_that_only_read(
    files: FileShare, access: Rights, reason: Reason | None
) -> None:
    def acquire(tx: Transaction) -> None:
        request = LeaseRequest(Action.ACQUIRE, proposed_id=LeaseId("1"), seconds=-1)
        file.change_lease(tx, files.find(tx, "f"), RestActor(), request)

    outcome(files.engine.run(acquire))
    assert refused(files, RestActor())["write"] is Reason.LEASE_ID_MISSING
    assert refused(files, RestActor(LeaseId("1"))) == {}
    if reason is None:
        own = files.open("f", access)
        assert attempt(files, ACTS["change"], SmbActor(own.id)) is None
        return
    with pytest.raises(Refused) as refusal:
        files.open("f", access)
    assert refusal.value.reason is reason


@pytest.mark.parametrize("access", [NONE, R, W, D])
def test_a_handle_that_writes_or_deletes_forbids_a_lease(files: FileShare, access: Rights) -> None:
    files.open("f", access)
    request = LeaseRequest(Action.ACQUIRE, proposed_id=LeaseId("1"), seconds=-1)
    reason = attempt(files, lambda tx, found, who: file.change_lease(tx, found, who, request), RestActor())
    assert reason is (Reason.SHARING_VIOLATION if access & (W | D) else None)


def test_an_open_file_has_the_names_that_are_stored(files: FileShare) -> None:
    files.make_directory("Dir")
    file_id = files.make_file("dir/File")
    files.open("DIR/FILE")
    assert files.path_of_open_file(file_id) == "Dir/File"


def test_a_handle_finds_its_file_after_a_rename(files: FileShare) -> None:
    files.make_directory("d")
    file_id = files.find_id("f")
    own = files.open("f", EVERYTHING)
    moved = rename.rename(files.engine, files.path("f"), 1, Rename(("d", "New")))
    assert outcome(moved)[1] == files.find_id("d")

    def body(tx: Transaction) -> tuple[str, int, int]:
        found = open_files.find(tx, tree.open_tree(tx, SHARE), file_id)
        entry = file.write(tx, found, SmbActor(own.id), RangeWrite(0, 3, b"abc"))
        again = rename.move(tx, found._replace(entry=entry), SmbActor(own.id), Rename(("back",)))
        return again.entry.name, again.entry.id, again.location.directory_id

    assert outcome(files.engine.run(body)) == ("back", file_id, 0)
    assert files.path_of_open_file(file_id) == "back"


@pytest.mark.parametrize("exists", [True, False])
def test_an_smb_client_creates_or_overwrites_and_opens_in_one_transaction(
    files: FileShare, exists: bool
) -> None:
    files.make_directory("d")
    old_id = files.make_file("d/new", LENGTH) if exists else None

    def body(tx: Transaction) -> tuple[int, int]:
        location = tree.location_of(tx, tree.open_tree(tx, SHARE), ("d", "New"))
        location, old = tree.look_up(tx, location)
        request = HandleRequest(OWNER, R | W, R, 7, "192.0.2.1")
        new_file = NewFile(3, HttpHeaders(), {}, SmbProperties())
        if old is None:
            entry = file.put(tx, location, None, RestActor(), new_file, content.create(tx, b""))
            handle = handles.open_handle(tx, Found(location, entry), request)
        else:
            handle = handles.open_handle(tx, Found(location, old), request)
            entry = file.put(tx, location, old, SmbActor(handle.id), new_file, content.create(tx, b""))
        file.write(tx, Found(location, entry), SmbActor(handle.id), RangeWrite(0, 3, b"abc"))
        return entry.id, handle.id

    file_id, handle_id = outcome(files.engine.run(body))
    assert old_id in {None, file_id}
    assert files.handle(file_id, handle_id).access == (R | W).value
    assert files.path_of_open_file(file_id) == "d/New"
    with pytest.raises(Refused) as refusal:
        files.open("d/new", W)
    assert refusal.value.reason is Reason.SHARING_VIOLATION


def test_a_directory_changes_for_either_actor(files: FileShare) -> None:
    files.make_directory("d")
    own = files.open("d", EVERYTHING)

    def change(tx: Transaction, actor: Actor) -> int:
        request = SmbProperties(attributes=0x12)
        return directory.change(tx, files.find(tx, "d"), actor, request).attributes

    assert outcome(files.engine.run(lambda tx: change(tx, SmbActor(own.id)))) == 0x12
    files.mark("d")
    assert outcome(files.engine.run(lambda tx: change(tx, SmbActor(own.id)))) == 0x12
    with pytest.raises(Refused) as refusal:
        outcome(files.engine.run(lambda tx: change(tx, actors.RestActor())))
    assert refusal.value.reason is Reason.DELETE_PENDING
