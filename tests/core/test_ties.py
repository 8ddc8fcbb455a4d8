"""Values that rounding has told apart are equal again, and others stay as they are."""

import numpy as np
import pytest

from fitonce.core.ties import levelled, settled, settled_decisions, settled_outputs, settled_sum


def test_neighbours_within_the_accuracy_take_one_value():
    values = np.array([0.5, 1.0 + 1e-15, 1.0, 1.0 - 1e-15, 2.0])
    result = settled(values, np.array(1e-14))
    assert len(set(result[1:4])) == 1
    np.testing.assert_array_equal(result[[0, 4]], values[[0, 4]])


def test_values_within_the_accuracy_of_zero_are_zero():
    np.testing.assert_array_equal(
        settled(np.array([-1e-16, 1e-16, 1e-3]), np.array(1e-15)), [0.0, 0.0, 1e-3]
    )


def test_each_fold_has_an_accuracy_of_its_own():
    values = np.array([[1.0, 1.0 + 1e-10], [1.0, 1.0 + 1e-10]])
    coarse, fine = settled(values, np.array([1e-9, 1e-12]))
    assert coarse[0] == coarse[1]
    assert fine[0] < fine[1]


def test_a_long_chain_of_neighbours_stays_in_order_and_moves_little():
    values, tau = np.arange(1.0, 1.1, 1e-4), 2e-4
    result = settled(np.random.default_rng(0).permutation(values), np.array(tau))
    result = np.sort(result)
    assert np.abs(result - values).max() <= 4 * tau
    assert len(np.unique(result)) > 100


def test_missing_and_infinite_values_stay():
    values = np.array([np.nan, -np.inf, 1.0, 1.0 + 1e-15, np.inf, -np.inf])
    result = settled(values, np.array(1e-14))
    np.testing.assert_array_equal(result, [np.nan, -np.inf, 1.0, 1.0, np.inf, -np.inf])


def test_largest_scores_of_a_row_that_agree_are_equal():
    scores = np.array([[1.0 - 1e-15, 1.0, 0.5], [0.1, 0.2, 0.3]])
    result = settled_outputs(scores, np.full(3, 1e-14))
    assert result.argmax(axis=1).tolist() == [0, 2]
    assert levelled(scores, np.zeros(3)).argmax(axis=1).tolist() == [1, 2]


def test_sums_keep_a_target_of_another_scale():
    total, size = np.array([3e10, 2e-9]), np.array([1e11, 1e-8])
    np.testing.assert_array_equal(settled_sum(total, size), total)
    assert settled_sum(np.array([1e-17]), np.array([1.0]))[0] == 0.0


@pytest.mark.parametrize("shape", [(0, 1), (1, 3)])
def test_few_rows(shape):
    assert settled_decisions(np.ones(shape), np.ones(shape[1])).shape == shape
