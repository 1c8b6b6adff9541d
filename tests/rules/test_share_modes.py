"""Share modes: the whole table of access against sharing, and opens at random against the counters of a file system.

The oracle keeps no opens, only how many there are, how many use each right and how many share it, as kernels do.
"""

from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kyanite.rules.share_modes import EVERYTHING, Open, Rights, conflict
from tests.profiles import examples

MODES = {
    "-": Rights.NONE,
    "r": Rights.READ,
    "w": Rights.WRITE,
    "d": Rights.DELETE,
    "rw": Rights.READ | Rights.WRITE,
    "rd": Rights.READ | Rights.DELETE,
    "wd": Rights.WRITE | Rights.DELETE,
    "rwd": Rights.READ | Rights.WRITE | Rights.DELETE,
}
# What one open wants, by row, against what the other shares, by column: whether it goes.
# fmt: off
TABLE = {
    #       -    r    w    d    rw   rd   wd   rwd
    "-":   "yes  yes  yes  yes  yes  yes  yes  yes",
    "r":   "no   yes  no   no   yes  yes  no   yes",
    "w":   "no   no   yes  no   yes  no   yes  yes",
    "d":   "no   no   no   yes  no   yes  yes  yes",
    "rw":  "no   no   no   no   yes  no   no   yes",
    "rd":  "no   no   no   no   no   yes  no   yes",
    "wd":  "no   no   no   no   no   no   yes  yes",
    "rwd": "no   no   no   no   no   no   no   yes",
}
# fmt: on
CELLS = {
    (access, share): said == "yes"
    for access, row in TABLE.items()
    for share, said in zip(MODES, row.split(), strict=True)
}
DATA = [mode for mode in MODES if mode != "-"]


def goes(held: Open, new: Open) -> bool:
    return conflict([held], new) is None


@pytest.mark.parametrize(("access", "share"), CELLS)
def test_what_the_new_open_wants_must_be_shared_by_the_held_one(access: str, share: str) -> None:
    for other in DATA:
        held = Open(MODES[other], MODES[share])
        assert goes(held, Open(MODES[access], EVERYTHING)) is CELLS[access, share]


@pytest.mark.parametrize(("access", "share"), CELLS)
def test_what_the_held_open_wants_must_be_shared_by_the_new_one(access: str, share: str) -> None:
    for other in DATA:
        held = Open(MODES[access], EVERYTHING)
        assert goes(held, Open(MODES[other], MODES[share])) is CELLS[access, share]


def test_both_directions_hold_at_once() -> None:
    for held_access, held_share, access, share in product(DATA, MODES, DATA, MODES):
        held, new = Open(MODES[held_access], MODES[held_share]), Open(MODES[access], MODES[share])
        assert goes(held, new) is (CELLS[access, held_share] and CELLS[held_access, share]), (held, new)


def test_an_open_without_data_access_conflicts_with_none() -> None:
    for own_share, access, share in product(MODES.values(), MODES.values(), MODES.values()):
        looker, other = Open(Rights.NONE, own_share), Open(access, share)
        assert goes(looker, other)
        assert goes(other, looker)


def test_the_first_conflict_is_returned() -> None:
    looker, sharing = Open(Rights.NONE, Rights.NONE), Open(Rights.READ, EVERYTHING)
    first, second = Open(Rights.READ, Rights.READ), Open(Rights.WRITE, Rights.NONE)
    new = Open(Rights.WRITE, EVERYTHING)
    assert conflict([looker, sharing, first, second], new) == first
    assert conflict([looker, sharing], new) is None
    assert conflict([], new) is None


class Counters:
    """How many data opens there are, and of these how many use, and how many share, each letter of a mode."""

    def __init__(self) -> None:
        self.opens = 0
        self.using: Counter[str] = Counter()
        self.sharing: Counter[str] = Counter()

    def admits(self, access: str, share: str) -> bool:
        if access == "-":
            return True
        all_share = all(self.sharing[letter] == self.opens for letter in access)
        return all_share and not any(self.using[letter] and letter not in share for letter in "rwd")

    def count(self, access: str, share: str, change: int) -> None:
        if access == "-":
            return
        self.opens += change
        for letter in "rwd":
            self.using[letter] += change * (letter in access)
            self.sharing[letter] += change * (letter in share)


class Opens(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[str, str]] = []
        self.counters = Counters()

    @property
    def opens(self) -> list[Open]:
        return [Open(MODES[access], MODES[share]) for access, share in self.held]

    @rule(access=st.sampled_from(list(MODES)), share=st.sampled_from([*MODES, "rw", "rwd", "rwd"]))
    def open(self, access: str, share: str) -> None:
        against = conflict(self.opens, Open(MODES[access], MODES[share]))
        assert (against is None) is self.counters.admits(access, share)
        if against is None:
            self.held.append((access, share))
            self.counters.count(access, share, 1)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        access, share = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.counters.count(access, share, -1)

    @invariant()
    def every_data_open_tolerates_every_other(self) -> None:
        data_opens = [each for each in self.held if each[0] != "-"]
        for (access, share), (other_access, other_share) in combinations(data_opens, 2):
            assert set(access) <= set(other_share)
            assert set(other_access) <= set(share)

    @invariant()
    def the_same_would_be_let_in(self) -> None:
        opens = self.opens
        for access, share in product(MODES, MODES):
            is_free = conflict(opens, Open(MODES[access], MODES[share])) is None
            assert is_free is self.counters.admits(access, share), (access, share)


Opens.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=20)
TestOpens = Opens.TestCase
