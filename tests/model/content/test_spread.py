"""Content with holes from bytes without them: read back as they were, in a bounded number of runs."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kyanite.model.content import spread
from kyanite.model.content.spread import RUNS_MAX, Run, joined


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
