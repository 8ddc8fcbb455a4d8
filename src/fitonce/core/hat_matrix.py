"""Held-out values for a user's own hat matrix, and their discriminant step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from .arrays import Array, asarray_like, eye_like, namespace, square_block, take, to_numpy
from .readout import Evidence, Indicators, indicators, labels_of
from .refused import refuse
from .splits import check_test_sets

SINGULAR = 1e-11  # smallest singular value of I - H at which a test set can be held out
SYMMETRIC = 1e-8  # largest difference of H from its transpose
FREE = 1e-8  # and of H1 from 1, at which the smoother has a free bias


def held_out(H: Array, Y: Array, test_sets: Iterable[Any]) -> list[Array]:
    """Held-out predictions of any linear smoother Ŷ = H Y, without refitting (Treder 2019,
    algorithm 1).

    For each test set Te the residuals solve (I - H_TeTe) R = (Y - Ŷ)_Te, and the held-out values
    are Y_Te - R. This equals deleting the rows and fitting again for every smoother that minimizes
    a sum of squared errors plus a quadratic penalty that does not depend on the rows: least
    squares, ridge, kernel ridge, splines.

    Parameters
    ----------
    H : array of shape (n_samples, n_samples)
        The hat matrix of all rows, including the bias.
    Y : array of shape (n_samples,) or (n_samples, n_targets)
        Targets; columns may be permuted copies of the labels.
    test_sets : iterable of index arrays or bool masks
        Any collection, overlapping or not.

    Returns
    -------
    list of arrays
        One per test set, in its row order, of shape (n_test,) or (n_test, n_targets).

    Notes
    -----
    Exact. Cost: one product H Y, then O(m³ + m² t) for a test set of m rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import held_out
    >>> X = np.column_stack([np.ones(6), np.arange(6.0)])
    >>> H = X @ np.linalg.pinv(X)
    >>> y = np.array([0.0, 1.2, 1.9, 3.2, 3.9, 5.1])
    >>> [values.round(2).tolist() for values in held_out(H, y, [[0], [4, 5]])]
    [[0.12], [4.15, 5.18]]
    """
    H, Y = _checked(H, Y)
    xp = namespace(H, Y)
    targets = xp.reshape(Y, (Y.shape[0], -1))
    shape = tuple(Y.shape[1:])
    return [
        xp.reshape(take(targets, rows) - rho, (len(rows), *shape))
        for rows, _, rho in _residuals(H, targets, test_sets)
    ]


@dataclass(frozen=True)
class HeldOutDiscriminant:
    """The discriminant of the rows outside a test set, and its results for the rows of the test
    set.

    Attributes
    ----------
    classes : array of shape (n_classes,)
    projections : array of shape (n_test, n_classes - 1)
        The test rows on the discriminant axes, in units of the within-class standard deviation, as
        `KernelFisherDiscriminant.transform` has them (without a free bias, not centered).
    axes : array of shape (n_classes, n_classes - 1)
        Optimal scores, scaled: ``projections = held_out(H, indicators, …) @ axes``, with one column
        of indicators for each class.
    centroids : array of shape (n_classes, n_classes - 1)
        Class means of the training rows on the axes.
    eigenvalues : array of shape (n_classes - 1,)
        a² of each axis, largest first: the share of the variance of its optimal scores that the
        smoother explains on the training rows.
    decision : array of shape (n_test,) or (n_test, n_classes)
        Minus half the squared distance to each centroid, up to a constant that all classes share;
        for two classes the difference, positive for the second. -inf for a class without training
        rows.
    predicted : array of shape (n_test,)
        The class of the nearest centroid.
    """

    classes: np.ndarray
    projections: Array
    axes: Array
    centroids: Array
    eigenvalues: Array
    decision: Array
    predicted: np.ndarray


def held_out_discriminant(H: Array, y: Any, test_sets: Iterable[Any]) -> list[HeldOutDiscriminant]:
    """Discriminant axes, projections and classes of held-out rows, for the hat matrix of your own
    smoother (Treder 2019, algorithm 1, both steps).

    Step 1 predicts the class indicators Y of the test rows with `held_out`. Step 2 rotates and
    scales them: with the fitted values Ŷ of the training rows and their class sizes N,

        ŶᵀY θ = a² N θ,    θᵀNθ = I,    projections Ŷ_Te θ D,    D = √ν / √(a² (1 - a²)),

    ν = n_Tr - c. A row is assigned to the class with the nearest centroid. One of the c solutions
    is trivial and left out: the constant, if the smoother has a free bias (H1 = 1), and otherwise
    the one whose scores θ are closest to a constant.

    Parameters
    ----------
    H : array of shape (n_samples, n_samples)
        The hat matrix of all rows, symmetric.
    y : array-like of shape (n_samples,)
        Labels of any type.
    test_sets : iterable of index arrays or bool masks
        Any collection, overlapping or not.

    Returns
    -------
    list of HeldOutDiscriminant
        One per test set, in its row order.

    Notes
    -----
    Exact: equal to deleting the rows, fitting the smoother to the indicators of the others and
    solving the eigenproblem there. Cost: one product H Y, then O(m³ + m²c + c³) for a test set of m
    rows. The projections of the paper have WᵀS_wW = I; these are √ν times as long.

    For permutation tests, compute a kernel matrix from H: with ``K = H (I - H)⁻¹``,
    ``KernelFisherDiscriminant("precomputed", alpha=1, fit_intercept=False, readout="centroid")``
    has the hat matrix H, and `permutation_test_score` its null distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from fitonce import held_out_discriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> K = X @ X.T
    >>> G = K @ np.linalg.inv(K + 0.1 * np.eye(150))   # the paper's: no bias
    >>> folds = [np.arange(150) % 10 == k for k in range(10)]
    >>> found = held_out_discriminant(G, y, folds)
    >>> found[0].projections.shape, found[0].centroids.shape
    ((15, 2), (3, 2))
    >>> right = [part.predicted == y[rows] for part, rows in zip(found, folds)]
    >>> print(f"{np.mean(right):.3f}")
    0.973
    """
    classes, codes = np.unique(to_numpy(y), return_inverse=True)
    if np.ndim(to_numpy(y)) != 1 or len(classes) < 2:
        raise ValueError(
            f"y must be a vector of labels of at least two classes, got shape "
            f"{np.shape(to_numpy(y))} and {len(classes)} class(es) instead."
        )
    given = H if is_array_api_obj(H) else np.asarray(H, dtype=np.float64)
    H, Y = _checked(given, asarray_like(indicators(codes, len(classes)), given))
    xp = namespace(H)
    if float(xp.max(xp.abs(H - H.T))) > SYMMETRIC * max(1.0, float(xp.max(xp.abs(H)))):
        raise ValueError(
            "H must be symmetric for a discriminant, and differs from its transpose: the smoother "
            "weights rows, or is not penalized least squares. held_out gives its predictions."
        )
    free = float(xp.max(xp.abs(xp.sum(H, axis=1) - 1.0))) < FREE
    readout = Indicators(len(classes), equal_priors=True, free_bias=free)
    sizes, E = xp.sum(Y, axis=0), Y.T @ (Y - H @ Y)
    found: list[HeldOutDiscriminant] = []
    for rows, r, rho in _residuals(H, Y, test_sets):
        left = sizes - xp.sum(take(Y, rows), axis=0)
        _check_training(to_numpy(left), len(found))
        E_left, P = E - r.T @ rho, take(Y, rows) - rho
        evidence = Evidence(E_left, left)
        solved = readout.axes(evidence)
        decision = readout.shaped(readout.read(P, readout.rule(evidence)))
        predicted = labels_of(to_numpy(decision), classes)
        values = P @ solved.axes, solved.axes, solved.centroids, solved.a2
        found.append(HeldOutDiscriminant(classes, *values, decision, predicted))
    return found


def _checked(H: Array, Y: Array) -> tuple[Array, Array]:
    """Arrays of the right shapes with finite numbers."""
    H, Y = (
        array if is_array_api_obj(array) else np.asarray(array, dtype=np.float64)
        for array in (H, Y)
    )
    xp = namespace(H, Y)
    refuse(
        (
            H.ndim != 2 or H.shape[0] != H.shape[1],
            f"H must be a square hat matrix, got shape {tuple(H.shape)} instead: row i of H maps "
            "all targets to the fitted value of row i.",
        )
    )
    refuse(
        (
            Y.ndim not in (1, 2) or Y.shape[0] != H.shape[0],
            f"Y must have one row per row of H ({H.shape[0]}) and at most two dimensions, got "
            f"shape {tuple(Y.shape)} instead.",
        ),
        *(
            (
                not bool(xp.all(xp.isfinite(array))),
                f"{name} contains NaN or infinite values; remove or impute them first.",
            )
            for name, array in (("H", H), ("Y", Y))
        ),
    )
    return H, Y


def _residuals(
    H: Array, Y: Array, test_sets: Iterable[Any]
) -> Iterator[tuple[np.ndarray, Array, Array]]:
    """The rows of every test set, their residuals r, and held out ρ = (I - H_TeTe)⁻¹ r."""
    xp = namespace(H, Y)
    residual = Y - H @ Y
    for number, rows in enumerate(check_test_sets(test_sets, H.shape[0])):
        block = eye_like(len(rows), H) - square_block(H, rows)
        _check_determined(block, number)
        r = take(residual, rows)
        yield rows, r, xp.linalg.solve(block, r)


def _check_training(sizes: np.ndarray, number: int) -> None:
    """Refuse class sizes of training rows that give no discriminant."""
    if np.sum(sizes > 0) < 2 or sizes.sum() <= np.sum(sizes > 0):
        raise ValueError(
            f"test set {number} leaves {sizes.sum():g} rows of {np.sum(sizes > 0)} class(es): a "
            "discriminant needs two classes, and more rows than classes. Leave out fewer rows."
        )


def _check_determined(block: Array, number: int) -> None:
    """I - H_TeTe is singular where the rows that remain cannot determine the model."""
    smallest = float(namespace(block).min(namespace(block).linalg.svdvals(block)))
    if smallest < SINGULAR:
        raise ValueError(
            f"test set {number} cannot be held out: I - H is singular there (smallest singular "
            f"value {smallest:.1g}), which means "
            "that the remaining rows do not determine the fit of the smoother. Leave out fewer "
            "rows, or regularize."
        )
