"""Which names a search pattern of SMB matches (MS-FSA §2.1.4.4).

    *   any run of characters
    ?   one character
    <   any run of characters, but none beyond the last dot of the name (DOS_STAR)
    >   one character that is not a dot; at a dot or at the end of the name, nothing (DOS_QM)
    "   a dot; at the end of the name, nothing (DOS_DOT)

Names and patterns come in folded (``file_names.fold``). The time that a match takes grows with the length of the name
and hardly with the pattern: all positions of the pattern at which a match may be are the bits of one number.
"""

from collections.abc import Callable
from typing import NamedTuple

_WILD = frozenset('*?<>"')
_DOT = "."


class Pattern(NamedTuple):
    """A pattern that is ready to be matched."""

    prefix: str
    """What every name that matches begins with: the pattern up to its first wildcard."""
    is_exact: bool
    """Whether the prefix is all there is: the one name that matches."""
    matches: Callable[[str], bool]
    is_simple: bool
    """Whether a match costs next to nothing."""
    matches_all: bool = False
    """Whether every name with the prefix matches."""


def parse(pattern: str) -> Pattern:
    first = next((index for index, character in enumerate(pattern) if character in _WILD), len(pattern))
    prefix, rest = pattern[:first], pattern[first:]
    if not rest:
        return Pattern(prefix, True, prefix.__eq__, True)
    if rest == "*":
        return Pattern(prefix, False, lambda name: name.startswith(prefix), True, matches_all=True)
    if rest[0] == "*" and _WILD.isdisjoint(rest[1:]):
        least, suffix = len(pattern) - 1, rest[1:]
        return Pattern(
            prefix,
            False,
            lambda name: len(name) >= least and name.startswith(prefix) and name.endswith(suffix),
            True,
        )
    return Pattern(prefix, False, _matcher(pattern), False)


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Bit ``i`` of a set of positions says that the first ``i`` elements of the pattern have been matched."""
    consuming: dict[str, int] = {}
    for index, element in enumerate(pattern):
        consuming[element] = consuming.get(element, 0) | 1 << index
    star, one = consuming.pop("*", 0), consuming.pop("?", 0)
    dos_star, dos_one, dos_dot = consuming.pop("<", 0), consuming.pop(">", 0), consuming.pop('"', 0)
    may_be_empty = star | dos_star
    end = 1 << len(pattern)

    def matches(name: str) -> bool:
        last_dot, last = name.rfind(_DOT), len(name) - 1
        positions = 1
        for index, character in enumerate(name):
            step = one | consuming.get(character, 0)
            stay = star | dos_star
            if character == _DOT:
                positions = _skip(positions, may_be_empty | dos_one)
                step |= dos_dot
                if index == last:
                    step |= dos_one
                if index == last_dot:
                    step |= dos_star
                    stay = star
            else:
                positions = _skip(positions, may_be_empty)
                step |= dos_one
            positions = (positions & step) << 1 | positions & stay
            if not positions:
                return False
        return bool(_skip(positions, may_be_empty | dos_one | dos_dot) & end)

    return matches


def _skip(positions: int, empty: int) -> int:
    """Add the positions behind elements that match nothing. Adding carries through each run of such elements."""
    return positions | ((positions & empty) + empty) ^ empty
