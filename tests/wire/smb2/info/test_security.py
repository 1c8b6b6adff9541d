"""Parts of security descriptors."""

import pytest
from smbprotocol.security_descriptor import SMB2CreateSDBuffer

from kyanite.wire import security_descriptor
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.info import security
from kyanite.wire.smb2.info.security import DACL, GROUP, OWNER, SACL

ALL = OWNER | GROUP | DACL | SACL
OLD = "O:BAG:SYD:PAI(A;OICI;FA;;;WD)S:AI(AU;SAFA;FA;;;WD)"
NEW = "O:SYG:BUD:(A;;FA;;;BA)(D;;0x3;;;WD)"


@pytest.mark.parametrize("text", [OLD, NEW, "O:SYG:SYD:NO_ACCESS_CONTROL"])
def test_all_parts_are_the_descriptor(text: str) -> None:
    descriptor = security_descriptor.encode(text)
    assert security.select(descriptor, ALL) == descriptor
    assert security.replace(security_descriptor.encode(OLD), descriptor, ALL) == descriptor


@pytest.mark.parametrize("parts", [0, OWNER, GROUP, DACL, SACL, OWNER | DACL])
def test_only_the_parts_that_are_requested(parts: int) -> None:
    selected = security.select(security_descriptor.encode(OLD), parts)
    found = SMB2CreateSDBuffer()
    found.unpack(selected)
    assert bool(found.get_owner()) == bool(parts & OWNER)
    assert bool(found.get_group()) == bool(parts & GROUP)
    assert bool(found.get_dacl()) == bool(parts & DACL)
    assert bool(found.get_sacl()) == bool(parts & SACL)
    assert bool(found["control"].get_value() & 0x1404) == bool(parts & DACL)
    assert bool(found["control"].get_value() & 0x0810) == bool(parts & SACL)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (0, OLD),
        (OWNER, "O:SYG:SYD:PAI(A;OICI;FA;;;WD)S:AI(AU;SAFA;FA;;;WD)"),
        (GROUP, "O:BAG:BUD:PAI(A;OICI;FA;;;WD)S:AI(AU;SAFA;FA;;;WD)"),
        (DACL, "O:BAG:SYD:(A;;FA;;;BA)(D;;CCDC;;;WD)S:AI(AU;SAFA;FA;;;WD)"),
        (SACL, "O:BAG:SYD:PAI(A;OICI;FA;;;WD)"),
        (OWNER | GROUP | DACL, "O:SYG:BUD:(A;;FA;;;BA)(D;;CCDC;;;WD)S:AI(AU;SAFA;FA;;;WD)"),
    ],
)
def test_parts_are_replaced(parts: int, expected: str) -> None:
    changed = security.select(security_descriptor.encode(NEW), ALL)
    merged = security.replace(security_descriptor.encode(OLD), changed, parts)
    assert security_descriptor.decode(merged) == expected


def test_a_descriptor_with_only_the_part_that_changes() -> None:
    changed = security.select(security_descriptor.encode(NEW), DACL)
    merged = security.replace(security_descriptor.encode(OLD), changed, DACL)
    assert security_descriptor.decode(merged) == "O:BAG:SYD:(A;;FA;;;BA)(D;;CCDC;;;WD)S:AI(AU;SAFA;FA;;;WD)"


WHOLE = security_descriptor.encode(OLD)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        WHOLE[:19],
        WHOLE[:-1],
        b"\2" + WHOLE[1:],
        WHOLE[:3] + b"\0" + WHOLE[4:],
        WHOLE[:4] + b"\x08\0\0\0" + WHOLE[8:],
        WHOLE[:4] + b"\xff\xff\xff\xff" + WHOLE[8:],
        WHOLE[:16] + b"\xff\xff\xff\xff" + WHOLE[20:],
        WHOLE[:16] + b"\x04\0\0\0" + WHOLE[20:],
        WHOLE[:22] + b"\x07\0" + WHOLE[24:],
        WHOLE[:22] + b"\xff\xff" + WHOLE[24:],
    ],
)
def test_malformed_descriptors(data: bytes) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        security.select(data, ALL)
