"""Row numbers, test sets and splits."""

from __future__ import annotations

import numpy as np
import pytest

from fitonce.core.splits import check_test_sets, checked_splits, complement


def test_splits_with_a_test_row_in_training_are_refused():
    train, test = np.array([0, 1, 2]), np.array([3, 4])
    assert [tuple(map(list, pair)) for pair in checked_splits([(train, test)], 5)] == [
        ([0, 1, 2], [3, 4])
    ]
    with pytest.raises(
        ValueError, match=r"split 1 has 1 test row\(s\) inside its own training set \(row 4"
    ):
        list(checked_splits([(train, test), (np.array([0, 4]), test)], 5))
    masks = np.array([True, True, False]), np.array([False, True, True])
    with pytest.raises(ValueError, match="split 0 has 1 test row"):
        list(checked_splits([masks], 3))
    with pytest.raises(ValueError, match=r"row 4 is the first"):
        list(checked_splits([(np.array([-1, 0]), test)], 5))


def test_complement_and_checked_sets_are_row_numbers():
    assert complement([3, 0], 5).tolist() == [1, 2, 4]
    assert [
        rows.tolist() for rows in check_test_sets([[-1, 0], np.array([False, True, False])], 3)
    ] == [[2, 0], [1]]
