"""The setting of Treder (2019): no bias, nearest centroid, several classes, against algorithm 1
written out with a literal fit of every training set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import sklearn.model_selection as plain
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneOut, ShuffleSplit, StratifiedKFold

import fitonce
from fitonce import KernelFisherDiscriminant, held_out, held_out_discriminant

MU = 0.3
FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)


def rows(c: int) -> tuple[np.ndarray, np.ndarray]:
    """Unequal classes, a row that occurs twice, labels that are words."""
    X, y = load_iris(return_X_y=True)
    chosen = np.r_[0:9, 50:69, 100:115, 100] if c == 3 else np.r_[50:62, 100:121, 100]
    return X[chosen], np.array(["a", "b", "c"])[y[chosen]]


def kernel(X: np.ndarray, bias: Any = False, centred: bool = False) -> np.ndarray:
    K = rbf_kernel(X, gamma=0.2) if not centred else (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T
    return K + 1.0 if bias == "penalized" else K


def indicators(y: np.ndarray) -> np.ndarray:
    return (y[:, None] == np.unique(y)).astype(float)


def algorithm_1(
    K: np.ndarray, y: np.ndarray, test: np.ndarray, train: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Projections, centroids and labels of the test rows, from ridge fitted to the others."""
    train = np.setdiff1d(np.arange(len(y)), test) if train is None else train
    Y = indicators(y)
    B = np.linalg.solve(K[np.ix_(train, train)] + MU * np.eye(len(train)), Y[train])
    fitted, predicted = K[np.ix_(train, train)] @ B, K[np.ix_(test, train)] @ B
    N = np.diag(Y[train].sum(axis=0))
    a2, theta = scipy.linalg.eigh(fitted.T @ Y[train], N)
    trivial = np.argmax(np.abs(np.ones(len(N)) @ N @ theta))  # nearest to a constant
    a2, theta = np.delete(a2, trivial)[::-1], np.delete(theta, trivial, axis=1)[:, ::-1]
    axes = theta / np.sqrt(a2 * (1 - a2))
    projections, centroids = predicted @ axes, np.linalg.inv(N) @ Y[train].T @ fitted @ axes
    nearest = ((projections[:, None] - centroids) ** 2).sum(axis=2).argmin(axis=1)
    return projections, centroids, np.unique(y)[nearest]


def distances(Z: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Between all rows and centroids: what does not depend on the directions of the axes."""
    return np.sqrt(((Z[:, None] - centroids) ** 2).sum(axis=2))


def model(bias: Any = False, **given: Any) -> KernelFisherDiscriminant:
    given = {"alpha": MU, "readout": "centroid", "calibration": None} | given
    return KernelFisherDiscriminant("precomputed", fit_intercept=bias, **given)


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("bias", [False, "penalized"])
@pytest.mark.parametrize("centred", [False, True])
def test_estimator_is_algorithm_1(c: int, bias: Any, centred: bool) -> None:
    """Every fold's projections, centroids and labels; the axis that is left out is the paper's
    "trivial" one for kernels that are centred (a² near 0) and for others (near 1).
    """
    X, y = rows(c)
    K = kernel(X, centred=centred)
    own = kernel(X, bias, centred)
    cv_labels = fitonce.cross_val_predict(model(bias), K, y, cv=FOLDS)
    for train, test in FOLDS.split(K, y):
        Z, centroids, labels = algorithm_1(own, y, test)
        fitted = model(bias).fit(K[np.ix_(train, train)], y[train])
        scale = np.sqrt(len(train) - c)
        found = distances(fitted.transform(K[np.ix_(test, train)]), fitted.means_)
        np.testing.assert_allclose(found, scale * distances(Z, centroids), rtol=1e-8)
        np.testing.assert_array_equal(cv_labels[test], labels)


@pytest.mark.parametrize(
    ("penalty", "bias", "readout"),
    [
        ("function", True, "centroid"),
        ("function", False, "lda"),
        ("function", "penalized", "centroid"),
        ("dual", False, "centroid"),
    ],
)
def test_cross_validation_is_refitting(penalty: str, bias: Any, readout: str) -> None:
    """Three classes, weights; also outputs without an n×n matrix, and tuned."""
    X, y = rows(3)
    weights = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    for estimator in (
        KernelFisherDiscriminant(gamma=0.2, alpha=MU),
        KernelFisherDiscriminant("linear", alpha=MU),
        KernelFisherDiscriminant(gamma=0.2, alpha=[0.1, 1.0], landmarks=X[::3]),
    ):
        given = {"penalty": penalty, "fit_intercept": bias, "readout": readout}
        estimator.set_params(**given, calibration=None)
        what: dict[str, Any] = {"cv": FOLDS, "params": {"sample_weight": weights}}
        what["method"] = "decision_function"
        ours = fitonce.cross_val_predict(estimator, X, y, **what)
        theirs = plain.cross_val_predict(estimator, X, y, **what)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)
        assert estimator.fit(X, y, sample_weight=weights).verify(2).passed


class Literal(ClassifierMixin, BaseEstimator):
    """Algorithm 1 as an estimator that fitonce knows nothing of, on a kernel matrix."""

    def fit(self, K: np.ndarray, y: np.ndarray) -> Literal:
        self.K_, self.y_, self.classes_ = K, y, np.unique(y)
        return self

    def predict(self, K: np.ndarray) -> np.ndarray:
        n, m = len(self.y_), len(K)
        both = np.vstack([np.hstack([self.K_, K.T]), np.hstack([K, np.zeros((m, m))])])
        y = np.append(self.y_, np.resize(self.classes_, m))  # of the new rows: not looked at
        return algorithm_1(both, y, np.arange(n, n + m))[2]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("permute", ["resplit", "within-folds", "cosets"])
def test_permutations_are_refits(c: int, permute: str) -> None:
    """Every score of the null distribution is that of algorithm 1, fitted for every labelling."""
    X, y = rows(c)
    K = kernel(X)
    options: dict[str, Any] = {"cv": FOLDS, "n_permutations": 12, "random_state": 0}
    ours = fitonce.permutation_test_score(model(), K, y, permute=permute, **options)
    if permute == "resplit":
        literal = plain.permutation_test_score(Literal(), K, y, **options)
    else:
        with pytest.warns(fitonce.RefitWarning):
            literal = fitonce.permutation_test_score(Literal(), K, y, permute=permute, **options)
    np.testing.assert_allclose(ours[0], literal[0])
    np.testing.assert_allclose(ours[1], literal[1])
    assert ours.route.name == "one" and len(set(ours[1])) > 3


def test_all_axes_are_the_rule_of_a_free_bias() -> None:
    """The LDA rule knows no origin: with all c axes kept, no bias is as good as a free one."""
    X, y = rows(3)
    K, Y = kernel(X), indicators(y)
    H = K @ np.linalg.inv(K + MU * np.eye(len(y)))
    a2, theta = scipy.linalg.eigh(Y.T @ H @ Y, np.diag(Y.sum(axis=0)))
    axes = theta / np.sqrt(a2 * (1 - a2))
    Z, centroids = H @ Y @ axes, a2 * axes
    without = -0.5 * (len(y) - 3) * distances(Z, centroids) ** 2
    free = model(True).fit(K, y).decision_function(K)
    centred = [scores - scores.mean(axis=1, keepdims=True) for scores in (without, free)]
    np.testing.assert_allclose(*centred, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_step_2_for_a_hat_matrix(c: int, bias: bool) -> None:
    """Both steps of algorithm 1, for any test sets, against literal fits; and against the estimator
    whose hat matrix it is.
    """
    X, y = rows(c)
    K, n = kernel(X), len(y)
    G = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean() if bias else K
    H = G @ np.linalg.inv(G + MU * np.eye(n)) + bias / n
    sets = [test for _, test in ShuffleSplit(4, test_size=0.4, random_state=1).split(X)] + [[3]]
    mask = np.arange(n) % 5 == 0
    each = held_out_discriminant(H, y, [*sets, mask])
    for part, found in zip([*sets, np.flatnonzero(mask)], each, strict=True):
        test = np.asarray(part)
        train = np.setdiff1d(np.arange(n), test)
        fitted = model(bias).fit(K[np.ix_(train, train)], y[train])
        for ours, theirs in (
            (found.projections, fitted.transform(K[np.ix_(test, train)])),
            (found.centroids, fitted.means_),
            (found.decision, fitted.decision_function(K[np.ix_(test, train)])),
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)
        np.testing.assert_array_equal(found.predicted, fitted.predict(K[np.ix_(test, train)]))
        (values,) = held_out(H, indicators(y), [test])
        np.testing.assert_allclose(values @ found.axes, found.projections)
        if not bias:
            Z, centroids, labels = algorithm_1(K, y, test)
            scale = np.sqrt(len(train) - c)
            expected = scale * distances(Z, centroids)
            np.testing.assert_allclose(distances(found.projections, found.centroids), expected)
            np.testing.assert_array_equal(found.predicted, labels)


def test_a_hat_matrix_is_that_of_a_kernel() -> None:
    """K = H (I - H)⁻¹, as the docstring says, for permutation tests."""
    X, y = rows(3)
    K = kernel(X)
    H = K @ np.linalg.inv(K + MU * np.eye(len(y)))
    made = H @ np.linalg.inv(np.eye(len(y)) - H)
    made = 0.5 * (made + made.T)
    folds = [test for _, test in FOLDS.split(X, y)]
    predicted = fitonce.cross_val_predict(model(alpha=1.0), made, y, cv=FOLDS)
    for test, found in zip(folds, held_out_discriminant(H, y, folds), strict=True):
        np.testing.assert_array_equal(found.predicted, predicted[test])


def test_a_class_without_training_rows() -> None:
    X, y = rows(3)
    H = kernel(X) @ np.linalg.inv(kernel(X) + MU * np.eye(len(y)))
    (found,) = held_out_discriminant(H, y, [y == "a"])
    assert np.all(np.isneginf(found.decision[:, 0])) and np.all(found.predicted != "a")
    train = np.flatnonzero(y != "a")
    fitted = model().fit(kernel(X)[np.ix_(train, train)], y[train])
    expected = fitted.predict(kernel(X)[np.ix_(y == "a", train)])
    np.testing.assert_array_equal(found.predicted, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(6)}, "at least two classes"),
        ({"y": np.eye(6)}, "vector of labels"),
        ({"y": np.arange(5) % 2}, "one row per row of H"),
        ({"H": np.triu(np.full((6, 6), 0.1))}, "H must be symmetric"),
        ({"test_sets": [[0, 2, 4]]}, "leaves 3 rows of 1 class"),
        ({"test_sets": [[0, 1, 2, 3]]}, "more rows than classes"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"H": np.full((6, 6), 0.1), "y": np.arange(6) % 2, "test_sets": [[0]]}
    with pytest.raises(ValueError, match=message):
        held_out_discriminant(**(given | change))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"readout": "centroid", "priors": [0.5, 0.5]}, "all classes as equally"),
        ({"fit_intercept": "none"}, "fit_intercept must be"),
        ({"readout": "mean"}, "readout must be"),
    ],
)
def test_settings_that_do_not_go_together(given: dict[str, Any], message: str) -> None:
    X, y = rows(2)
    with pytest.raises(ValueError, match=message):
        KernelFisherDiscriminant(alpha=1.0, gamma=0.2, **given).fit(X, y)


def test_other_rooms_take_the_setting() -> None:
    """Leave-one-out, sets and positions, which take a free bias for granted elsewhere; pairs are
    refused.
    """
    X, y = (part[::2] for part in rows(2))
    estimator = KernelFisherDiscriminant(
        gamma=0.2, alpha=MU, fit_intercept=False, readout="centroid", calibration=None
    )
    expected = plain.cross_val_predict(
        estimator, X, y, cv=LeaveOneOut(), method="decision_function"
    )
    fitted = clone(estimator).fit(X, y)
    np.testing.assert_allclose(fitted.held_out_decision_, expected, rtol=1e-8)
    with pytest.raises(ValueError, match="use fit_intercept=True"):
        fitonce.leave_pair_out(estimator, X, y)
    # full conformal sets: the new row joins as each class, and is as odd as at least a fifth
    sets = fitted.predict_set(X[:3] + 0.1, 0.8, method="full")
    for row, found in zip(X[:3] + 0.1, sets, strict=True):
        for code, label in enumerate(fitted.classes_):
            joined, labels = np.vstack([X, row]), np.append(y, label)
            d = clone(estimator).fit(joined, labels).held_out_decision_
            odd = np.where(labels == fitted.classes_[1], -d, d)
            assert found[code] == (np.sum(odd >= odd[-1] - 1e-9) > 0.2 * len(labels))
    linear = estimator.set_params(kernel="linear")
    X3, y3 = rows(3)
    positions = np.stack([X3, X3[:, ::-1] + 1.0], axis=2)
    found = fitonce.positions.cross_val_score(linear, positions, y3, cv=FOLDS)
    for place in (0, 1):
        scores = plain.cross_val_score(linear, positions[:, :, place], y3, cv=FOLDS)
        np.testing.assert_allclose(found[place], scores)
