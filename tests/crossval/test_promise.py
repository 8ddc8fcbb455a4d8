"""The promise on random problems: decisions, and scores that rank and threshold them."""

import pytest

from promise import compare, problem


@pytest.mark.parametrize("block", range(4))
def test_random_problems(block):
    outcomes = [compare(problem(seed)) for seed in range(8 * block, 8 * block + 8)]
    assert sum(outcome.splits for outcome in outcomes if not outcome.doubtful) >= 12
    assert [outcome for outcome in outcomes if not outcome.kept] == []
