"""Held-out values of any hat matrix against refits of the same model."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.interpolate

from fitonce import held_out


def least_squares(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.vander(x, 4), np.zeros((4, 4))


def ridge_with_free_bias(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.column_stack([np.ones_like(x), np.sin(np.outer(x, np.arange(1, 8)))]), np.diag(
        [0.0] + [0.3] * 7
    )


def penalised_spline(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    knots = np.concatenate([[0.0] * 3, np.linspace(0, 1, 12), [1.0] * 3])
    B = scipy.interpolate.BSpline.design_matrix(x, knots, 3).toarray()
    differences = np.diff(np.eye(B.shape[1]), 2, axis=0)
    return B, 0.1 * differences.T @ differences


@pytest.mark.parametrize("model", [least_squares, ridge_with_free_bias, penalised_spline])
@pytest.mark.parametrize("targets", [None, 3])
def test_held_out_equals_refitting_any_penalised_least_squares(model, targets):
    rng = np.random.default_rng(6)
    x = np.sort(rng.uniform(size=30))
    Z, penalty = model(x)
    Y = (
        np.sin(6 * x) + 0.1 * rng.normal(size=30)
        if targets is None
        else rng.normal(size=(30, targets))
    )
    H = Z @ np.linalg.solve(Z.T @ Z + penalty, Z.T)
    mask = x > 0.8
    test_sets = [[4], np.array([9, 2, 28]), [-1, 2], mask, rng.permutation(30)[:18]]
    results = held_out(H, Y, iter(test_sets))
    assert len(results) == len(test_sets)
    for rows, values in zip(
        [[4], [9, 2, 28], [29, 2], np.flatnonzero(mask), test_sets[-1]], results, strict=True
    ):
        kept, y_kept = np.delete(Z, rows, axis=0), np.delete(Y, rows, axis=0)
        expected = Z[rows] @ np.linalg.solve(kept.T @ kept + penalty, kept.T @ y_kept)
        assert values.shape == expected.shape
        np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"H": np.zeros((4, 3))}, r"H must be a square hat matrix, got shape \(4, 3\)"),
        ({"H": np.zeros(4)}, "H must be a square hat matrix"),
        ({"Y": np.zeros(5)}, r"one row per row of H \(4\)"),
        ({"Y": np.zeros((4, 1, 1))}, "at most two dimensions"),
        ({"H": np.full((4, 4), np.nan)}, "H contains NaN or infinite"),
        ({"Y": np.array([0.0, np.inf, 0.0, 0.0])}, "Y contains NaN or infinite"),
        (
            {"test_sets": [[0], [4]]},
            r"the rows of test set 1 contain row 4, but there are 4 rows, 0 to 3",
        ),
        ({"test_sets": [[-5]]}, "the rows of test set 0 contain row -5"),
        ({"test_sets": [[]]}, "test set 0 has no rows"),
        ({"test_sets": [[0.5]]}, "must be a list of row indices"),
        ({"test_sets": [[[0, 1]]]}, "must be a list of row indices"),
        ({"test_sets": [0, 1]}, "must be a list of row indices"),
        ({"test_sets": [[3, -1]]}, "contains a row twice"),
        (
            {"test_sets": [np.zeros(3, dtype=bool)]},
            r"a mask of 4 rows, got an array of bool of shape \(3,\)",
        ),
        ({"test_sets": [np.zeros(4, dtype=bool)]}, "test set 0 has no rows"),
    ],
)
def test_held_out_says_what_is_wrong(change, message):
    arguments = {"H": np.full((4, 4), 0.25), "Y": np.arange(4.0), "test_sets": [[0]]} | change
    with pytest.raises(ValueError, match=message):
        held_out(**arguments)


def test_held_out_refuses_to_leave_fewer_rows_than_unpenalised_columns():
    Z = np.column_stack([np.ones(6), np.random.default_rng(0).normal(size=(6, 2))])
    with pytest.raises(ValueError, match="test set 0"):
        held_out(Z @ np.linalg.pinv(Z), np.arange(6.0), [[0, 1, 2, 3]])
