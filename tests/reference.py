"""What the closed forms must equal: models solved from their definitions, rows deleted, solved
again.

Nothing here is taken from the package, and nothing uses a hat matrix, an eigendecomposition of a
smoother or a closed-form held-out value. A model is f(x) = k(x, X) α + p(x) β with unpenalised
columns p (the bias first, where it is free); `intercept` is True (free), False (none),
"penalized" (K + 1) or, for the dual norm, "coefficient" (penalised like every α).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import mpmath
import numpy as np
import scipy.linalg
from sklearn.base import clone


@dataclass(frozen=True)
class Model:
    """Coefficients α (n, t) and β (u, t).

    `b` is the bias (t,), zero where there is none of its own.
    """

    alpha: np.ndarray
    beta: np.ndarray
    intercept: bool | str

    @property
    def b(self) -> np.ndarray:
        if self.intercept == "penalized":
            return self.alpha.sum(axis=0)
        return self.beta[0] if self.intercept else np.zeros(self.alpha.shape[1])

    def predict(self, K_new: np.ndarray, unpenalised: np.ndarray | None = None) -> np.ndarray:
        """Values (m, t) for the kernel K_new (m, n) of new rows with the training rows."""
        columns = unpenalised_columns(len(K_new), self.intercept, unpenalised)
        return penalise_bias(K_new, self.intercept) @ self.alpha + columns @ self.beta


Fit = Callable[..., Model]


def unpenalised_columns(
    n: int, intercept: bool | str, unpenalised: np.ndarray | None
) -> np.ndarray:
    """(n, u): a column of ones for a bias of its own, then the columns given."""
    ones = np.ones((n, 1 if intercept in (True, "coefficient") else 0))
    return ones if unpenalised is None else np.hstack([ones, unpenalised])


def penalise_bias(K: np.ndarray, intercept: bool | str) -> np.ndarray:
    return K + 1.0 if intercept == "penalized" else K


def ridge_function_norm(
    K: np.ndarray,
    Y: np.ndarray,
    mu: float,
    weights: np.ndarray | None = None,
    intercept: bool | str = True,
    unpenalised: np.ndarray | None = None,
) -> Model:
    """argmin Σ w (y - f)² + μ αᵀKα, by a system: [[K + μ/w, P], [Pᵀ, 0]] [α; β] = [Y; 0]."""
    n = len(K)
    w = np.ones(n) if weights is None else weights
    P = unpenalised_columns(n, intercept, unpenalised)
    u = P.shape[1]
    bordered = np.block(
        [[penalise_bias(K, intercept) + np.diag(mu / w), P], [P.T, np.zeros((u, u))]]
    )
    solution = np.linalg.solve(bordered, np.vstack([Y, np.zeros((u, Y.shape[1]))]))
    return Model(solution[:n], solution[n:], intercept)


def ridge_dual_norm(
    K: np.ndarray,
    Y: np.ndarray,
    mu: float,
    weights: np.ndarray | None = None,
    intercept: bool | str = True,
    unpenalised: np.ndarray | None = None,
) -> Model:
    """argmin Σ w (y - f)² + μ Σ α²/w, by the normal equations of Z = [K P]."""
    n = len(K)
    w = np.ones(n) if weights is None else weights
    Z = np.hstack([penalise_bias(K, intercept), unpenalised_columns(n, intercept, unpenalised)])
    of_bias = np.where(np.arange(Z.shape[1] - n) == 0, mu * (intercept == "coefficient"), 0.0)
    penalty = np.concatenate([mu / w, of_bias])
    solution = np.linalg.solve(Z.T @ (w[:, None] * Z) + np.diag(penalty), Z.T @ (w[:, None] * Y))
    return Model(solution[:n], solution[n:], intercept)


def refit(
    fit: Fit,
    K: np.ndarray,
    Y: np.ndarray,
    mu: float,
    train: np.ndarray,
    weights: np.ndarray | None = None,
    intercept: bool | str = True,
    unpenalised: np.ndarray | None = None,
) -> Model:
    """The model of the training rows alone."""
    w = None if weights is None else weights[train]
    P = None if unpenalised is None else unpenalised[train]
    return fit(K[np.ix_(train, train)], Y[train], mu, w, intercept, P)


def refit_held_out(
    fit: Fit,
    K: np.ndarray,
    Y: np.ndarray,
    mu: float,
    train: np.ndarray,
    test: np.ndarray,
    weights: np.ndarray | None = None,
    intercept: bool | str = True,
    unpenalised: np.ndarray | None = None,
) -> np.ndarray:
    """Values (m, t) at the test rows of the model solved again on the training rows alone."""
    model = refit(fit, K, Y, mu, train, weights, intercept, unpenalised)
    return model.predict(K[np.ix_(test, train)], None if unpenalised is None else unpenalised[test])


@dataclass(frozen=True)
class Basis:
    """Functions of the rows that a model combines, Z (n, p), and their penalty μ xᵀRx."""

    Z: np.ndarray
    R: np.ndarray

    def with_bias(self, intercept: bool | str) -> Basis:
        """One more function, the constant: free or, where penalised, with a penalty of one."""
        if intercept is False:
            return self
        penalty = 1.0 if intercept == "penalized" else 0.0
        Z = np.hstack([self.Z, np.ones((len(self.Z), 1))])
        return Basis(Z, scipy.linalg.block_diag(self.R, penalty))

    def predictions(
        self, Y: np.ndarray, mu: float, train: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Values (n, t) at all rows of the model that the training rows alone determine.

        argmin Σ w (y - Zx)² + μ xᵀRx by (ZᵀWZ + μR) x = ZᵀWY; any x where there are many.
        """
        Z = self.Z[train]
        w = np.ones((len(train), 1)) if weights is None else weights[train, None]
        normal = Z.T @ (w * Z) + mu * self.R
        return self.Z @ np.linalg.lstsq(normal, Z.T @ (w * Y[train]), rcond=1e-14)[0]


def at_landmarks(K: np.ndarray, own: np.ndarray, penalty: str, intercept: bool | str) -> Basis:
    """Kernels at landmarks, of rows and of the landmarks: μ αᵀK_mmα (+ μ b² where the bias is
    penalised), or for the dual norm μ‖α‖² (and the kernel k + 1).
    """
    if penalty == "function":
        return Basis(K, own).with_bias(intercept)
    return Basis(penalise_bias(K, intercept), np.eye(len(own))).with_bias(intercept is True)


def complement(rows: np.ndarray, n: int) -> np.ndarray:
    return np.setdiff1d(np.arange(n), rows)


# ---- the kernel Fisher discriminant --------------------------------------------------------------


def explicit_features(K: np.ndarray) -> np.ndarray:
    """Φ with K = ΦΦᵀ, for a positive semi-definite kernel of all rows, training and test."""
    eigenvalues, U = np.linalg.eigh(K)
    return U * np.sqrt(np.maximum(eigenvalues, 0.0))


class Discriminant(NamedTuple):
    """Scores (m, c) and projections (m, c-1) of new rows, and the eigenvalues Λ (c-1,), largest
    first.
    """

    scores: np.ndarray
    projections: np.ndarray
    eigenvalues: np.ndarray


def fisher(
    features: np.ndarray,
    y: np.ndarray,
    mu: float,
    new_features: np.ndarray,
    w: np.ndarray,
) -> Discriminant:
    """Fisher's discriminant with S_w + μI on explicit features.

    Classes are those in y. Directions solve S_b W = (S_w + μI) W Λ with Wᵀ(S_w + μI)W = I;
    projections are centred on the training mean and multiplied by √(n - c); the score of a class is
    z·m - ½‖m‖² + log prior.
    """
    classes = np.unique(y)
    mean = np.average(features, axis=0, weights=w)
    p = features.shape[1]
    between, within = np.zeros((p, p)), np.zeros((p, p))
    sizes, centroids = [], []
    for label in classes:
        members, size = features[y == label], w[y == label].sum()
        centroid = np.average(members, axis=0, weights=w[y == label])
        between += size * np.outer(centroid - mean, centroid - mean)
        within += (members - centroid).T @ (w[y == label][:, None] * (members - centroid))
        sizes.append(size)
        centroids.append(centroid)
    eigenvalues, W = scipy.linalg.eigh(between, within + mu * np.eye(p))
    leading = np.argsort(-eigenvalues)[: len(classes) - 1]
    scale = np.sqrt(w.sum() - len(classes))
    z, m = (
        scale * (points - mean) @ W[:, leading] for points in (new_features, np.array(centroids))
    )
    log_priors = np.log(np.array(sizes) / w.sum())
    return Discriminant(z @ m.T - 0.5 * np.sum(m**2, axis=1) + log_priors, z, eigenvalues[leading])


def kfda_brute(
    K: np.ndarray,
    y: np.ndarray,
    mu: float,
    train: np.ndarray,
    test: np.ndarray,
    weights: np.ndarray | None = None,
    penalty: str = "function",
) -> Discriminant:
    """The kernel discriminant of the training rows, at the test rows; K is of all rows.

    The dual norm is the same problem with the kernel values at the training rows as features, and
    √w times those with weights: its penalty is μ Σ α²/w.
    """
    w = np.ones(len(K)) if weights is None else weights
    features = explicit_features(K) if penalty == "function" else K[:, train] * np.sqrt(w[train])
    return fisher(features[train], y[train], mu, features[test], w[train])


# ---- fifty digits --------------------------------------------------------------------------------


def held_out_exactly(
    K: np.ndarray, y: np.ndarray, mu: float, train: np.ndarray, test: np.ndarray, penalty: str
) -> np.ndarray:
    """Held-out values (m,) with a free bias in 50-digit arithmetic, rounded at the very end.

    For n up to about 12.
    """
    with mpmath.workdps(50):
        n = len(train)
        K_train, K_test = (mpmath.matrix(K[np.ix_(rows, train)].tolist()) for rows in (train, test))
        ones = mpmath.ones(n, 1)
        target = mpmath.matrix(y[train].tolist())
        system, right = mpmath.zeros(n + 1, n + 1), mpmath.zeros(n + 1, 1)
        shift = mpmath.mpf(float(mu)) * mpmath.eye(n)
        if penalty == "function":
            system[:n, :n] = K_train + shift
            system[:n, n], system[n, :n] = ones, ones.T
            right[:n, 0] = target
        else:
            system[:n, :n] = K_train.T * K_train + shift
            system[:n, n], system[n, :n], system[n, n] = (
                K_train.T * ones,
                ones.T * K_train,
                mpmath.mpf(n),
            )
            right[:n, 0], right[n, 0] = K_train.T * target, (ones.T * target)[0]
        solution = mpmath.lu_solve(system, right)
        values = K_test * solution[:n, 0] + solution[n] * mpmath.ones(len(test), 1)
        return np.array([float(value) for value in values])


# ---- estimators fitted again ---------------------------------------------------------------------


def output(model: Any, X: Any) -> Any:
    """The main output: decision values, or predictions of a regressor."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def held_out_of(model: Any) -> Any:
    """The main output of every row by models that have not seen it, as the fit left it."""
    classifier = hasattr(model, "held_out_decision_")
    return model.held_out_decision_ if classifier else model.held_out_prediction_


def refitted_held_out(
    model: Any, X: np.ndarray, y: np.ndarray, splits: Any, weights: np.ndarray | None = None
) -> np.ndarray:
    """What models fitted literally on each training set say of its test rows.

    The mean over splits, NaN where never tested.
    """
    total, count = 0.0, np.zeros(len(X))
    for train, test in splits:
        w = None if weights is None else weights[train]
        fitted = clone(model).set_params(cv=None).fit(X[train], y[train], sample_weight=w)
        said = output(fitted, X[test])
        part = np.zeros((len(X), *said.shape[1:]))
        part[test] = said
        total, count = total + part, count + np.isin(np.arange(len(X)), test)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count.reshape(-1, *[1] * (np.ndim(total) - 1)))


# ---- agreement -----------------------------------------------------------------------------------


def assert_close(got: Any, expected: Any, tolerance: float = 1e-9, what: str = "") -> None:
    """Equal within `tolerance` of the largest expected number (of 1, where all are zero).

    NaN, infinities and what stands for them (beyond 1e30) exactly where expected.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: {got.shape} instead of {expected.shape}"
    if expected.dtype.kind in "OU":  # a kernel's name
        assert np.all(got == expected), f"{what}: {got} instead of {expected}"
        return
    usual = np.isfinite(expected) & (np.abs(expected) < 1e30)
    np.testing.assert_array_equal(got[~usual], expected[~usual], err_msg=what)
    error = np.abs(got[usual] - expected[usual]).max(initial=0.0)
    size = np.abs(expected[usual]).max(initial=0.0) or 1.0
    assert error <= tolerance * size, (
        f"{what}: relative deviation {error / size:.2e}, allowed {tolerance:.2e}"
    )
