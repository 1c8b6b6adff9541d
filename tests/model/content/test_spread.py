"""Content with holes from bytes without them: read back as they were, in a bounded number of runs."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kyanite.model.content import spread
from kyanite.model.content.spread import PORTION_RUNS, RUNS_MAX, Run, joined, portions


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=3 * RUNS_MAX))
def test_joined_runs_cover_the_same_bytes(gaps: list[tuple[int, int]]) -> None:
    runs, at = [], 0
    for gap, length in gaps:
        runs.append(Run(at + gap, length))
        at += gap + length
    found = joined(runs)
    assert len(found) <= RUNS_MAX
    assert all(first.offset + first.length <= second.offset for first, second in itertools.pairwise(found))
    for run in runs:
        assert any(
            each.offset <= run.offset and run.offset + run.length <= each.offset + each.length
            for each in found
        )
    if len(runs) <= spread.RUNS_MAX:
        assert found == runs


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 50)), max_size=2 * PORTION_RUNS), st.integers(1, 99)
)
def test_portions_are_the_same_bytes_with_the_same_blocks(
    gaps: list[tuple[int, int]], bytes_max: int
) -> None:
    runs, at = [], 0
    for number, (gap, length) in enumerate(gaps):
        runs.append(Run(at + gap, length, b"%d" % number))
        at += gap + length
    found = list(portions(runs, bytes_max))
    assert all(
        0 < len(each) <= PORTION_RUNS and sum(run.length for run in each) <= bytes_max for each in found
    )
    parts = [run for portion in found for run in portion]
    assert [(run.offset, run.tag) for run in parts if run.tag] == [(run.offset, run.tag) for run in runs]
    covered = [at for run in parts for at in range(run.offset, run.offset + run.length)]
    assert covered == [at for run in runs for at in range(run.offset, run.offset + run.length)]
