"""Security descriptors as text."""

import pytest

from kyanite.rules.sddl import ROOT, inherited, is_complete

LONG = (
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513"
    "D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)"
)


@pytest.mark.parametrize(
    "text",
    [
        ROOT,
        LONG,
        LONG + "S:NO_ACCESS_CONTROL",
        "O:BAG:SYD:",
        "O:BAG:SYD:P(D;OICI;GA;;;WD)",
        "O:BAG:BAD:(A;;FA;;;WD)S:(AU;SA;FA;;;WD)",
    ],
)
def test_owner_group_and_list_make_it_complete(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "inherit",
        "D:(A;;FA;;;SY)",
        "O:SYD:(A;;FA;;;SY)",
        "O:SYG:SY",
        "O:SYG:SYD:(A;;FA;;;)",
        "O:SYG:SYD:(A;;FA",
    ],
)
def test_less_is_not_enough(text: str) -> None:
    assert not is_complete(text)


@pytest.mark.parametrize(
    ("ace", "of_file", "of_directory"),
    [
        ("(A;;FA;;;SY)", "", ""),
        ("(A;OICI;FA;;;BA)", "(A;ID;FA;;;BA)", "(A;OICIID;FA;;;BA)"),
        ("(A;OI;FA;;;BA)", "(A;ID;FA;;;BA)", "(A;OIIOID;FA;;;BA)"),
        ("(A;CI;FA;;;BA)", "", "(A;CIID;FA;;;BA)"),
        ("(A;OICIIO;GR;;;BU)", "(A;ID;GR;;;BU)", "(A;OICIID;GR;;;BU)"),
        ("(A;OICINP;FA;;;BA)", "(A;ID;FA;;;BA)", "(A;ID;FA;;;BA)"),
        ("(A;OINP;FA;;;BA)", "(A;ID;FA;;;BA)", ""),
        ("(A;OICIIO;GA;;;CO)", "(A;ID;GA;;;SY)", "(A;ID;GA;;;SY)(A;OICIIOID;GA;;;CO)"),
    ],
)
def test_children_inherit_what_is_flagged_so(ace: str, of_file: str, of_directory: str) -> None:
    text = f"O:SYG:BAD:{ace}"
    assert inherited(text, by_directory=False) == f"O:SYG:BAD:AI{of_file}"
    assert inherited(text, by_directory=True) == f"O:SYG:BAD:AI{of_directory}"


def test_what_is_inherited_is_complete() -> None:
    for by_directory in (False, True):
        assert is_complete(inherited(ROOT, by_directory=by_directory))
