"""Small problems: kernels of every kind, with and without weights, biases and confounds, for the
core; rows with labels or numbers for everything above it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from sklearn.base import is_regressor
from sklearn.metrics.pairwise import pairwise_kernels

import reference
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from fitonce.core.banded import Banded
from fitonce.core.dual import DualNorm
from fitonce.core.holdout import Fitted, Smoother, Targets
from fitonce.core.inverse import Inverse
from fitonce.core.resolvent import Resolvent
from fitonce.core.smoothers import FunctionNorm
from fitonce.core.spectrum import Spectrum, orthonormal, spectrum_of_features, spectrum_of_kernel

EPS = float(np.finfo(np.float64).eps)
KERNELS = ("rbf", "singular", "duplicated", "indefinite")
SETTINGS = ("bias", "no bias", "penalised bias", "weights", "confounds", "weights and confounds")
NORMS = ("function", "dual")


def features(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(n, 3))
    return X[np.arange(n) % (n - n // 4)] if kind == "duplicated" else X


def rbf(X: np.ndarray, gamma: float = 0.3) -> np.ndarray:
    return np.exp(-gamma * np.sum((X[:, None] - X) ** 2, axis=2))


def kernel(kind: str, X: np.ndarray) -> np.ndarray:
    if kind == "singular":
        return X @ X.T
    return np.tanh(0.6 * X @ X.T - 1.0) if kind == "indefinite" else rbf(X)


def no_columns(n: int) -> np.ndarray:
    return np.zeros((n, 0))


def leverage(smoother: Smoother, targets: Targets, mu: float) -> np.ndarray:
    """The diagonal of H at one mu, where any targets of the smoother are at hand."""
    return 1.0 - smoother.path(targets, np.array([mu])).one_minus_h[0, ...]


def refit_without(smoother: Smoother, targets: Targets, rows: np.ndarray, mu: float) -> Fitted:
    """The fit without some rows, by all steps that lead there."""
    removal = smoother.leave_out(rows, mu)
    held_out = removal.held_out(smoother.fit(targets, mu))
    return smoother.refit_without(targets, removal, held_out, mu)


def banded(K: np.ndarray, Q0: np.ndarray, width: int) -> FunctionNorm:
    """The function norm by a band of this width."""
    return FunctionNorm(Banded.of(K + 0.0, Q0, width), K @ Q0)


@dataclass(frozen=True)
class Case:
    """A kernel, targets and a setting, with the smoother under test beside its reference."""

    norm: str
    X: np.ndarray
    K: np.ndarray
    Y: np.ndarray
    weights: np.ndarray | None = None
    intercept: bool | str = True
    unpenalised: np.ndarray | None = None
    thin: bool = False

    @property
    def n(self) -> int:
        return len(self.K)

    @cached_property
    def s(self) -> np.ndarray:
        """Square roots of the weights (n, 1)."""
        return np.ones((self.n, 1)) if self.weights is None else np.sqrt(self.weights)[:, None]

    @cached_property
    def scaled_K(self) -> np.ndarray:
        return self.s * reference.penalise_bias(self.K, self.intercept) * self.s.T

    @property
    def scaled_Y(self) -> np.ndarray:
        return self.s * self.Y

    @cached_property
    def Q0(self) -> np.ndarray:
        columns = reference.unpenalised_columns(self.n, self.intercept, self.unpenalised)
        return orthonormal(self.s * columns) if columns.shape[1] else columns

    @cached_property
    def smoother(self) -> FunctionNorm | DualNorm:
        KQ0 = self.scaled_K @ self.Q0
        if self.norm == "function":
            return FunctionNorm(self._spectrum(self.Q0), KQ0)
        return DualNorm(self._spectrum(no_columns(self.n)), self.Q0, KQ0)

    @cached_property
    def targets(self) -> Targets:
        """The scaled targets as the smoother takes them."""
        return self.smoother.project(self.scaled_Y)

    def single(self, mu: float, make: Callable[[], Resolvent] | None = None) -> FunctionNorm:
        """The function norm at one mu, without a decomposition; at others by what `make` makes."""
        inverse = Inverse.of(self.scaled_K.copy(), self.Q0, mu, make)
        return FunctionNorm(inverse, self.scaled_K @ self.Q0)

    def _spectrum(self, Q0: np.ndarray) -> Spectrum:
        if not self.thin:
            return spectrum_of_kernel(self.scaled_K.copy(), Q0)
        Z = np.hstack([self.X, np.ones((self.n, 1))]) if self.intercept == "penalized" else self.X
        return spectrum_of_features(self.s * Z, Q0)

    @cached_property
    def spectrum_bounds(self) -> tuple[float, float]:
        """Smallest eigenvalue and largest modulus of the matrix that mu is added to."""
        G = self.scaled_K
        if self.norm == "dual":
            return 0.0, float(np.linalg.norm(G, 2)) ** 2
        project = np.eye(self.n) - self.Q0 @ self.Q0.T
        eigenvalues = np.linalg.eigvalsh(project @ G @ project)
        return float(eigenvalues[0]), float(np.abs(eigenvalues).max())

    def mus(self, factors: tuple[float, ...] = (1e-6, 1e-3, 1.0, 1e4)) -> np.ndarray:
        """Multiples of λ_max, moved above -λ_min where the kernel is indefinite."""
        lowest, largest = self.spectrum_bounds
        return max(0.0, -1.2 * lowest) + np.array(factors) * largest

    def tolerance(self, mu: float) -> float:
        """The package's promise."""
        return max(1e-8, 1e3 * EPS * self.spectrum_bounds[1] / mu)

    @property
    def solver(self) -> reference.Fit:
        return (
            reference.ridge_function_norm if self.norm == "function" else reference.ridge_dual_norm
        )

    @property
    def _settings(self) -> tuple[np.ndarray | None, bool | str, np.ndarray | None]:
        return self.weights, self.intercept, self.unpenalised

    def reference_fit(self, mu: float) -> reference.Model:
        return self.solver(self.K, self.Y, mu, *self._settings)

    def reference_refit(self, train: np.ndarray, mu: float) -> reference.Model:
        return reference.refit(self.solver, self.K, self.Y, mu, train, *self._settings)

    def reference_held_out(self, test: np.ndarray, mu: float) -> np.ndarray:
        train = reference.complement(test, self.n)
        return reference.refit_held_out(
            self.solver, self.K, self.Y, mu, train, test, *self._settings
        )

    def close(
        self, got: np.ndarray, expected: np.ndarray, mu: float, scale: float | None = None
    ) -> None:
        """Within the promise, relative to the largest expected entry (or the given scale)."""
        assert got.shape == expected.shape
        size = np.abs(expected).max() if scale is None else scale
        error = np.abs(got - expected).max() / size
        assert error <= self.tolerance(mu), (
            f"relative error {error:.2e} at mu = {mu:.2e}, promised {self.tolerance(mu):.2e}"
        )


def make_case(
    norm: str,
    kind: str = "rbf",
    setting: str = "bias",
    *,
    n: int = 24,
    seed: int = 0,
    thin: bool = False,
) -> Case:
    rng = np.random.default_rng(seed)
    X = features(kind, n, rng)
    Y = np.column_stack([np.sin(X[:, 0]) + 0.3 * rng.normal(size=n), rng.normal(size=n) + 2.0])
    case = Case(norm, X, kernel(kind, X), Y, thin=thin)
    if "no bias" in setting or "penalised bias" in setting:
        case = replace(case, intercept="penalized" if "penalised" in setting else False)
    if "weights" in setting:
        case = replace(case, weights=rng.uniform(0.2, 3.0, size=n))
    if "confounds" in setting:
        case = replace(case, unpenalised=rng.normal(size=(n, 2)))
    return case


def classes_case(
    norm: str, sizes: tuple[int, ...], weighted: bool = False, seed: int = 0
) -> tuple[Case, np.ndarray]:
    """Unbalanced, overlapping classes as indicator targets, and the class of each row."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(size=(len(y), 3)) + np.eye(len(sizes), 3)[y] * 1.5
    weights = rng.uniform(0.3, 2.5, size=len(y)) if weighted else None
    return Case(norm, X, rbf(X), np.eye(len(sizes))[y], weights), y


def scatter_of(case: Case, mu: float) -> np.ndarray:
    """The residual scatter E (t, t) of all rows."""
    return case.smoother.residual_scatter(case.targets, np.array([mu]))[0]


# ---- estimators ----------------------------------------------------------------------------------

ESTIMATORS = (KernelFisherDiscriminant, LeastSquaresSVC, KernelRidge)
CLASSIFIERS = (KernelFisherDiscriminant, LeastSquaresSVC)
PENALTIES = ("function", "dual")

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
every_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)

PARAMETERS: dict[str, dict[str, float]] = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0},
    "laplacian": {"gamma": 0.2},
    "cosine": {},
    "sigmoid": {"gamma": 0.02, "coef0": 0.0},
    "exponential": {"gamma": 0.3},
    "matern52": {"gamma": 0.3},
    "precomputed": {},
}


def some_kernels(*names: str) -> dict[str, dict[str, float]]:
    """Names with their parameters."""
    return {name: PARAMETERS[name] for name in names}


def gram(kernel: str, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """scikit-learn's kernel matrix, with these parameters."""
    return np.asarray(pairwise_kernels(A, B, metric=kernel, **PARAMETERS[kernel]))


def targets_of(estimator: type, y: np.ndarray) -> np.ndarray:
    """The columns that an estimator regresses on: indicators, ±1, or the numbers themselves."""
    if estimator is KernelRidge:
        return y.reshape(len(y), -1)
    own = (y[:, None] == np.unique(y)).astype(float)
    if estimator is KernelFisherDiscriminant:
        return own
    return (2 * own - 1)[:, 1:] if own.shape[1] == 2 else 2 * own - 1


# ---- rows with labels or numbers -----------------------------------------------------------------


def unbalanced_labels(n: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Labels 0 … n_classes - 1 in random order, each class larger than the one before it."""
    ends = np.round(np.linspace(0, 1, n_classes + 1) ** 1.5 * n).astype(int)
    return rng.permutation(np.repeat(np.arange(n_classes), np.diff(ends)))


def labelled_rows(
    n: int, n_classes: int = 3, seed: int = 0, repeated: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 3) of unbalanced classes that overlap; the last `repeated` rows repeat the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = unbalanced_labels(n, n_classes, rng)
    X[:, 0] += 1.5 * y
    return _with_repeated(X, y, repeated)


def numbered_rows(
    n: int, n_targets: int = 1, seed: int = 0, repeated: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 3) with noisy numbers far from zero, (n,) or (n, 2)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2])[:, :n_targets]
    Y = Y + 0.3 * rng.normal(size=(n, n_targets)) + 5.0
    return _with_repeated(X, Y[:, 0] if n_targets == 1 else Y, repeated)


def rows_for(
    estimator: type,
    n: int,
    n_classes: int = 3,
    n_targets: int = 1,
    seed: int = 0,
    repeated: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows with targets of the kind that the estimator learns."""
    if is_regressor(estimator()):
        return numbered_rows(n, n_targets, seed, repeated)
    return labelled_rows(n, n_classes, seed, repeated)


def row_weights(n: int, zeros: int = 0, seed: int = 1) -> np.ndarray:
    """Unequal weights, some of them zero."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.3, 3.0, size=n)
    weights[rng.permutation(n)[:zeros]] = 0.0
    return weights


def _with_repeated(X: np.ndarray, y: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    if count:
        X[-count:], y[-count:] = X[:count], y[:count]
    return X, y
