"""Security descriptors as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire.security_descriptor import InvalidDescriptorError, decode, encode

# A descriptor spelled out: owner and group BUILTIN\Administrators, one entry that allows everyone everything.
ADMINISTRATORS = bytes.fromhex("01020000000000052000000020020000")
EVERYONE = bytes.fromhex("010100000000000100000000")
BYTES = (
    bytes.fromhex("0100049030000000400000000000000014000000")
    + bytes.fromhex("02001c000100000000031400ff011f00")
    + EVERYONE
    + ADMINISTRATORS * 2
)
TEXT = "O:BAG:BAD:P(A;OICI;FA;;;WD)"

TEXTS = [
    TEXT,
    "O:SYG:SYD:",
    "O:S-1-5-21-1-2-3-500G:S-1-5-21-1-2-3-513D:AI(A;ID;FA;;;SY)(D;OICIIO;0x1200a9;;;S-1-5-21-1-2-3-1001)",
    "O:SYG:SYD:(A;OICI;FA;;;BA)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICIIO;GA;;;CO)",
    "O:SYG:SYD:NO_ACCESS_CONTROL",
    "O:SYG:SYD:AI(A;;FA;;;SY)S:NO_ACCESS_CONTROL",
    "O:SYG:SYD:PAI(A;;FA;;;SY)S:AI(AU;SAFA;FA;;;WD)",
    "O:SYG:SYD:S:",
]


def test_a_descriptor_is_what_the_reference_says() -> None:
    assert encode(TEXT) == BYTES
    assert decode(BYTES) == TEXT


@pytest.mark.parametrize("text", TEXTS)
def test_there_and_back(text: str) -> None:
    assert decode(encode(text)) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("GRGX", "GXGR"),
        ("RPWPCCDCLCSWRCWDWOGA", "CCDCLCSWRPWPRCWDWOGA"),
        ("0x1f01ff", "FA"),
        ("0x3", "CCDC"),
        ("0x1200a9", "0x1200a9"),
        ("0x0", "0x0"),
    ],
)
def test_rights_are_written_by_their_names_if_all_have_one(given: str, text: str) -> None:
    assert decode(encode(f"O:SYG:SYD:(A;;{given};;;BU)")) == f"O:SYG:SYD:(A;;{text};;;BU)"


def test_sids_of_every_machine_are_written_by_their_names() -> None:
    assert decode(encode("O:S-1-5-32-548G:S-1-5-21-1-2-3-512D:(A;;FA;;;S-1-1-0)")) == (
        "O:AOG:S-1-5-21-1-2-3-512D:(A;;FA;;;WD)"
    )


def test_a_system_list_comes_first_and_is_announced() -> None:
    """No list at all is announced too, and has no place."""
    with_list, without_list = encode("O:SYG:SYD:S:(AU;SA;FA;;;WD)"), encode("O:SYG:SYD:S:NO_ACCESS_CONTROL")
    assert with_list[2:4] == without_list[2:4] == bytes.fromhex("1480")
    assert with_list[12:20] == bytes.fromhex("1400000030000000")
    assert without_list[12:20] == bytes.fromhex("0000000014000000")


def test_a_descriptor_without_a_discretionary_list_is_refused() -> None:
    with pytest.raises(InvalidDescriptorError):
        decode(BYTES[:2] + bytes.fromhex("0090") + BYTES[4:])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "O:SYG:SY",
        "O:XXG:SYD:",
        "O:SYG:SYD:ZZ",
        "O:SYG:SYD:(XA;;FA;;;SY)",
        "O:SYG:SYD:S:ZZ",
        "O:SYG:SYD:S:(XA;;FA;;;SY)",
        "O:SYG:SYD:(A;QQ;FA;;;SY)",
        "O:SYG:SYD:(A;;QQ;;;SY)",
        "O:SYG:SYD:(A;;0x1ffffffff;;;SY)",
        "O:SYG:SYD:(A;;FA;;;S-1-5-99999999999)",
        "O:SYG:SYD:(A;;FA;00000000-0000-0000-0000-000000000000;;SY)",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidDescriptorError):
        encode(text)


@pytest.mark.parametrize("length", range(len(BYTES)))
def test_less_than_the_whole_is_refused(length: int) -> None:
    with pytest.raises(InvalidDescriptorError):
        decode(BYTES[:length])


@given(st.binary(max_size=120), st.integers(0, len(BYTES)))
def test_garbage_is_text_or_refused(data: bytes, at: int) -> None:
    for spoiled in (data, BYTES[:at] + data):
        try:
            assert decode(spoiled).startswith("O:")
        except InvalidDescriptorError:
            continue
