"""The hostile loads over SMB."""

import socket
from collections.abc import Generator, Sequence

from bench.hostile import smb_lane
from bench.hostile.crowd import Member, connected_to, send_some
from bench.hostile.load import SHARE, Load, Sites, Sizes
from bench.hostile.rest import fill_files
from bench.hostile.smb_lane import ANY, SmbLane, SmbSession, converse, file_id_of, success
from bench.load.lane import Request, Work

MANY = "many"
FILE = "small"
_MIB = 1024 * 1024

OpenWork = Generator[Request, bytes, bytes]
"""A part of a work that returns the id of what it has opened."""


def opened(session: SmbSession, name: str, *, of_directory: bool = False) -> OpenWork:
    """Log on and open a file or directory; returns its id."""
    yield from session.log_on(SHARE)
    return (yield from open_one(session, name, of_directory=of_directory))


def open_one(session: SmbSession, name: str, *, of_directory: bool = False) -> OpenWork:
    body = smb_lane.create(name, of_directory=of_directory)
    answer = yield Request(session.frame(smb_lane.CREATE, body), success())
    return file_id_of(answer)


def polite(sites: Sites, sizes: Sizes, number: int) -> Work:
    """Reads 4 KiB, one request at a time."""
    session = SmbSession()
    file_id = yield from opened(session, FILE)
    while True:
        yield Request(session.frame(smb_lane.READ, smb_lane.read(file_id, 4096)), success())


def listing(sites: Sites, sizes: Sizes, number: int) -> Work:
    """All entries of a directory, again and again, in answers of up to 1 MiB."""
    session = SmbSession()
    file_id = yield from opened(session, MANY, of_directory=True)
    flags = 1
    while True:
        body = smb_lane.query_directory(file_id, length=_MIB, flags=flags)
        answer = yield Request(session.frame(smb_lane.QUERY_DIRECTORY, body, charge=16), ANY)
        flags = 0 if smb_lane.status_of(answer) == 0 else 1


def searching(sites: Sites, sizes: Sizes, number: int) -> Work:
    """For what no entry matches."""
    session = SmbSession()
    file_id = yield from opened(session, MANY, of_directory=True)
    while True:
        body = smb_lane.query_directory(file_id, "*no?such*", flags=0x11)
        yield Request(session.frame(smb_lane.QUERY_DIRECTORY, body), ANY)


def pipelines(sites: Sites, sizes: Sizes, number: int) -> Work:
    """Hundreds of requests for a buffer of entries at once."""
    session = SmbSession()
    file_id = yield from opened(session, MANY, of_directory=True)
    body = smb_lane.query_directory(file_id)
    while True:
        yield Request(b"".join(session.frame(smb_lane.QUERY_DIRECTORY, body) for _ in range(200)), ANY)


def compounds(sites: Sites, sizes: Sizes, number: int) -> Work:
    """The longest that are allowed."""
    session = SmbSession()
    file_id = yield from opened(session, MANY, of_directory=True)
    body = smb_lane.query_directory(file_id)
    while True:
        yield Request(session.compound([(smb_lane.QUERY_DIRECTORY, body)] * 64), ANY)


def opens(sites: Sites, sizes: Sizes, number: int) -> Work:
    """Opens the same file until there are too many handles, then closes one and opens another."""
    session = SmbSession()
    yield from session.log_on(SHARE)
    create = smb_lane.create("shared")
    found: list[bytes] = []
    while True:
        answer = yield Request(session.frame(smb_lane.CREATE, create), ANY)
        if smb_lane.status_of(answer) == 0:
            found.append(file_id_of(answer))
        if smb_lane.status_of(answer) or len(found) >= sizes.handles:
            yield Request(session.frame(smb_lane.CLOSE, smb_lane.close(found.pop())), ANY)


def locks(sites: Sites, sizes: Sizes, number: int) -> Work:
    """Locks as many ranges as a handle may have, in requests of 250, and unlocks them."""
    session = SmbSession()
    file_id = yield from opened(session, "locked")
    groups = [[(((number * 4 + group) * 250 + each) * 10, 5) for each in range(250)] for group in range(4)]
    while True:
        for flags in (0x12, 0x4):
            for ranges in groups:
                body = smb_lane.lock(file_id, ranges, flags)
                yield Request(session.frame(smb_lane.LOCK, body), ANY)


def changes(sites: Sites, sizes: Sizes, number: int) -> Work:
    """Every lane but the first watches a directory with many handles; the first makes and removes files in it."""
    session = SmbSession()
    yield from session.log_on(SHARE)
    if number == 0:
        create = smb_lane.create(f"{MANY}\\changing", disposition=3, access=0x13019F)
        while True:
            answer = yield Request(session.frame(smb_lane.CREATE, create), ANY)
            yield Request(session.frame(smb_lane.CLOSE, smb_lane.close(file_id_of(answer))), ANY)
    watched = []
    for _ in range(min(80, sizes.handles // 4)):
        watched.append((yield from open_one(session, MANY, of_directory=True)))
    while True:
        yield Request(
            b"".join(
                session.frame(smb_lane.CHANGE_NOTIFY, smb_lane.change_notify(file_id)) for file_id in watched
            ),
            ANY,
        )


# Crowds


def _logged_on(sites: Sites, session: SmbSession) -> socket.socket:
    connected = connected_to(sites["smb"])
    converse(connected, session.log_on(SHARE))
    return connected


def half_sent(sites: Sites, sizes: Sizes) -> Sequence[Member]:
    """Messages of 8 MiB of which a byte is missing."""
    members = []
    for _ in range(sizes.crowd):
        connected = _logged_on(sites, SmbSession())
        connected.setblocking(False)
        length = 8 * _MIB + 112
        send_some(connected, length.to_bytes(4, "big") + b"\xfeSMB" + bytes(length - 5))
        members.append(Member(connected))
    return members


def half_sent_by_strangers(sites: Sites, sizes: Sizes) -> Sequence[Member]:
    """Clients that are not logged on."""
    members = []
    for _ in range(sizes.crowd):
        connected = connected_to(sites["smb"])
        send_some(connected, (128 * 1024).to_bytes(4, "big") + b"\xfeSMB" + bytes(100 * 1024))
        members.append(Member(connected, b"x"))
    return members


def never_read(sites: Sites, sizes: Sizes) -> Sequence[Member]:
    """Each asks for all that its credits pay for."""
    members = []
    for _ in range(sizes.crowd):
        session = SmbSession()
        connected = _logged_on(sites, session)
        found: list[bytes] = []

        def work(session: SmbSession = session, found: list[bytes] = found) -> Work:
            found.append((yield from open_one(session, "large")))

        converse(connected, work())
        connected.setblocking(False)
        body = smb_lane.read(found[0], _MIB)
        send_some(connected, b"".join(session.frame(smb_lane.READ, body, charge=16) for _ in range(100)))
        members.append(Member(connected))
    return members


LOADS = (
    Load("SMB: list 10,000 entries", 4, listing, fill=fill_files, service="smb", lane=SmbLane),
    Load("SMB: list 10,000 entries", 24, listing, fill=fill_files, service="smb", lane=SmbLane),
    Load("SMB: a search that matches nothing", 24, searching, fill=fill_files, service="smb", lane=SmbLane),
    Load("SMB: 200 requests at once", 24, pipelines, fill=fill_files, service="smb", lane=SmbLane),
    Load("SMB: compounds of 64", 24, compounds, fill=fill_files, service="smb", lane=SmbLane),
    Load("SMB: 2,000 handles of a file", 24, opens, service="smb", lane=SmbLane),
    Load("SMB: 4,000 locks of a file", 24, locks, service="smb", lane=SmbLane),
    Load("SMB: 1,840 watches of a directory", 24, changes, fill=fill_files, service="smb", lane=SmbLane),
    Load("SMB: 300 half-sent messages of 8 MiB", 24, crowd=half_sent, service="smb"),
    Load("SMB: 300 half-sent by strangers", 24, crowd=half_sent_by_strangers, service="smb"),
    Load("SMB: 300 that never read 100 MiB", 24, crowd=never_read, service="smb"),
)
