"""Security descriptors as text (SDDL): whether one is complete, and what a child inherits from its directory.

A descriptor needs an owner, a group and a discretionary list: ``O:…G:…D:…``. REST does not enforce descriptors; they
are stored, inherited by children and returned.
"""

import re
from functools import lru_cache

ROOT = (
    "O:SYG:SYD:(A;OICI;FA;;;BA)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICI;0x1301bf;;;AU)"
    "(A;;FA;;;SY)(A;OICIIO;GA;;;SY)(A;OICIIO;GA;;;CO)"
)
"""The descriptor of the root directory of a new share."""

_SID = r"(?:[A-Z]{2}|S-1-[0-9A-Fa-fx]+(?:-[0-9]+)+)"
_ACE = r"\([A-Z]{1,2};[A-Z]*;[^();]*;[^();]*;[^();]*;" + _SID + r"(?:;[^()]*)?\)"
_DESCRIPTOR = re.compile(
    rf"O:(?P<owner>{_SID})G:(?P<group>{_SID})D:(?P<flags>[A-Z_]*?)(?P<aces>(?:{_ACE})*|NO_ACCESS_CONTROL)"
    rf"(?:S:(?:NO_ACCESS_CONTROL|[A-Z]*(?:{_ACE})*))?"
)
_PARTS = re.compile(r"\(([^()]*)\)")
_CREATOR = "CO"


def is_complete(text: str) -> bool:
    return _DESCRIPTOR.fullmatch(text) is not None


@lru_cache(maxsize=256)
def inherited(text: str, *, by_directory: bool) -> str:
    """The descriptor of a child that was created without one. Pure, so it can be cached."""
    match = _DESCRIPTOR.fullmatch(text)
    if match is None:
        return text
    owner = match["owner"]
    entries = [
        handed_on
        for ace in _PARTS.findall(match["aces"])
        for handed_on in _handed_on(ace.split(";"), owner, by_directory)
    ]
    return f"O:{owner}G:{match['group']}D:AI{''.join(entries)}"


def _handed_on(ace: list[str], owner: str, by_directory: bool) -> list[str]:
    flags = {ace[1][index : index + 2] for index in range(0, len(ace[1]), 2)}
    is_last = "NP" in flags
    trustee = owner if ace[5] == _CREATOR else ace[5]
    if not by_directory:
        return [_entry(ace, ["ID"], trustee)] if "OI" in flags else []
    if "CI" not in flags:
        return [_entry(ace, ["OI", "IO", "ID"], ace[5])] if "OI" in flags and not is_last else []
    if is_last:
        return [_entry(ace, ["ID"], trustee)]
    onward = [flag for flag in ("OI", "CI") if flag in flags]
    if ace[5] == _CREATOR:
        return [_entry(ace, ["ID"], trustee), _entry(ace, [*onward, "IO", "ID"], _CREATOR)]
    return [_entry(ace, [*onward, "ID"], trustee)]


def _entry(ace: list[str], flags: list[str], trustee: str) -> str:
    return f"({';'.join([ace[0], ''.join(flags), *ace[2:5], trustee, *ace[6:]])})"
