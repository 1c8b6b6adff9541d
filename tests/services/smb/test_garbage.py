"""Any body of QUERY_INFO, SET_INFO, QUERY_DIRECTORY and IOCTL is answered, or refused with a status."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kyanite.rules.refusals import Refused
from kyanite.services.smb.controls.ioctl import control
from kyanite.services.smb.info.query_directory import query_directory
from kyanite.services.smb.info.query_info import query_info
from kyanite.services.smb.info.set_info import set_info
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open
from kyanite.services.smb.statuses import STATUSES
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import fsctl, ioctl
from kyanite.wire.smb2.fsctl import Fsctl
from kyanite.wire.smb2.status import Status
from tests.profiles import examples
from tests.services.smb.requests import Handler, SmbShare

U8, U32, U64 = (st.integers(0, (1 << bits) - 1) for bits in (8, 32, 64))
SIZES = st.one_of(st.integers(0, 300), U32)
INFO_TYPES = st.one_of(st.integers(0, 5), U8)
CLASSES = st.one_of(st.integers(0, 70), U8)
NUMBERS = st.one_of(st.sampled_from([0, 1, 4096, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]), U64)
DATA = st.one_of(
    st.binary(max_size=200),
    st.lists(NUMBERS, max_size=12).map(lambda found: struct.pack(f"<{len(found)}Q", *found)),
)
PATTERNS = st.one_of(st.text('df*?<>".', max_size=6), st.text())
SETTINGS = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def share() -> SmbShare:
    made = SmbShare()
    made.files.make_directory("d")
    made.files.make_file("d/f", 1000)
    made.files.make_file("d/g", 1000)
    at = made.take_snapshot()
    made.open("d")
    made.open("d/f")
    made.open("d/g")
    made.open_snapshot("d", at, is_directory=True)
    made.open_snapshot("d/f", at, is_directory=False)
    return made


def opens(share: SmbShare) -> list[Open]:
    return list(share.tree.opens.values())


def answered(share: SmbShare, handler: Handler, which: int, body: bytes) -> Status:
    """Whatever it is, it ends with a status that clients know. Any other exception is a failure."""
    try:
        return share.call(handler, opens(share)[which % 5], body).status
    except Failed as failed:
        return failed.status
    except Malformed as malformed:
        return Status[malformed.code]
    except Refused as refused:
        return STATUSES[refused.reason]


@SETTINGS
@given(which=U8, kind=INFO_TYPES, information_class=CLASSES, size=SIZES, additional=U32, data=DATA)
def test_query_info(
    share: SmbShare, which: int, kind: int, information_class: int, size: int, additional: int, data: bytes
) -> None:
    fixed = struct.pack(
        "<HBBIHHIIIQQ", 41, kind, information_class, size, 104, 0, len(data), additional, 0, 0, 0
    )
    answered(share, query_info, which, fixed + data)


@SETTINGS
@given(which=U8, kind=INFO_TYPES, information_class=CLASSES, additional=U32, data=DATA)
def test_set_info(
    share: SmbShare, which: int, kind: int, information_class: int, additional: int, data: bytes
) -> None:
    if information_class in (10, 13, 64, 65):  # Renames and deletes would leave nothing to try.
        information_class = 4
    fixed = struct.pack("<HBBIHHIQQ", 33, kind, information_class, len(data), 96, 0, additional, 0, 0)
    answered(share, set_info, which, fixed + (data or b"\0"))


@SETTINGS
@given(
    which=U8,
    information_class=CLASSES,
    flags=U8,
    size=SIZES,
    pattern=st.one_of(st.text('df*?<>".', max_size=6), st.text()),
)
def test_query_directory(
    share: SmbShare, which: int, information_class: int, flags: int, size: int, pattern: str
) -> None:
    name = pattern.encode("utf-16-le", "surrogatepass")
    fixed = struct.pack("<HBBIQQHHI", 33, information_class, flags, 0, 0, 0, 96, len(name), size)
    answered(share, query_directory, which, fixed + (name or b"\0"))


async def controlled(request: Request) -> Answer:
    return await control(request, ioctl.decode(request.message))


@SETTINGS
@given(
    which=U8,
    code=st.one_of(st.sampled_from(list(Fsctl)), U32),
    size=SIZES,
    flags=st.integers(0, 2),
    data=DATA,
)
def test_ioctl(share: SmbShare, which: int, code: int, size: int, flags: int, data: bytes) -> None:
    if code in (Fsctl.SRV_COPYCHUNK, Fsctl.SRV_COPYCHUNK_WRITE):
        key = fsctl.encode_resume_key(opens(share)[len(data) % 5].id)[:24]
        data = key + struct.pack("<II", len(data) // 24, 0) + data
    fixed = struct.pack("<HHIQQIIIIIIII", 57, 0, code, 1, 2, 120, len(data), 0, 0, 0, size, flags, 0)
    answered(share, controlled, which, fixed + data)
