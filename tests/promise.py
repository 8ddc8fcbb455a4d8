"""Random problems on which fitonce must give what scikit-learn gives by refitting."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn.model_selection
from sklearn.model_selection import KFold, StratifiedKFold, StratifiedShuffleSplit

import fitonce
from fitonce import KernelFisherDiscriminant, LeastSquaresSVC
from fitonce.core.arrays import NotPositiveDefiniteError
from fitonce.crossval.decomposed import Decomposed
from fitonce.estimators.accuracy import conditioning_of

ROWS = ("binary", "levels", "repeated", "zeros", "normal", "far", "heavy", "constant column")
SCALED = ("rbf", "laplacian")
KERNELS = ("linear", "rbf", "laplacian", "cosine", "poly")


@dataclass(frozen=True)
class Promised:
    """One problem: an estimator, its data and the splits."""

    seed: int
    kind: str
    estimator: Any
    X: np.ndarray
    y: np.ndarray
    cv: Any
    params: dict[str, np.ndarray] | None

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y))

    @property
    def scoring(self) -> list[str]:
        ranked = ["roc_auc", "average_precision"] if self.n_classes == 2 else []
        return ["accuracy", "balanced_accuracy", *ranked]


def rows(kind: str, n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(n, p))
    if kind == "binary":
        return (X > 0).astype(float)
    if kind == "levels":
        return np.floor(2 * X) / 10
    if kind == "repeated":
        return X[rng.integers(0, n // 3, n)]
    if kind == "zeros":
        return X * (rng.random((n, 1)) < 0.5)
    if kind == "far":
        return X + 1e4
    if kind == "heavy":
        return rng.standard_t(1.5, size=(n, p))
    if kind == "constant column":
        return np.column_stack([X, np.full(n, 3.0)])
    return X


def problem(seed: int) -> Promised:
    rng = np.random.default_rng(seed)
    n, c, p = int(rng.integers(30, 80)), int(rng.choice([2, 2, 3])), int(rng.integers(1, 4))
    kind, kernel = str(rng.choice(ROWS)), str(rng.choice(KERNELS))
    if kernel == "poly" and kind in ("far", "heavy"):  # no digits are left of these
        kind = "normal"
    X, y = rows(kind, n, p, rng), rng.integers(0, c, n)
    y[: 4 * c] = np.tile(np.arange(c), 4)
    settings: dict[str, Any] = {"kernel": kernel, "alpha": float(10 ** rng.uniform(-4, 3))}
    settings["penalty"] = str(rng.choice(["function", "dual"]))
    if kernel in SCALED:
        settings["gamma"] = float(10 ** rng.uniform(-6, 3))
    if kernel == "poly":
        settings |= {"gamma": 1.0, "degree": 2, "coef0": 1.0}
    if rng.random() < 0.2:
        settings["landmarks"] = X[rng.permutation(n)[: n // 3]]
    bias = [True, True, False, "penalized"][rng.integers(4)]
    estimator = (
        LeastSquaresSVC(**settings, fit_intercept=bias)
        if rng.random() < 0.5
        else KernelFisherDiscriminant(**settings)
    )
    cv = [
        StratifiedKFold(4, shuffle=True, random_state=seed),
        KFold(4, shuffle=True, random_state=seed),
        StratifiedShuffleSplit(3, test_size=0.3, random_state=seed),
    ][rng.integers(3)]
    weighted = rng.random() < 0.25
    params = {"sample_weight": rng.uniform(0.5, 2.0, n)} if weighted else None
    return Promised(seed, kind, estimator, X, y, cv, params)


@dataclass(frozen=True)
class Outcome:
    """How far the two are apart: decisions over the tolerance, and the names of scores that
    differ.

    Scores are compared on the splits whose refit has no decisions that differ from each other or
    from zero by less than the tolerance; equal ones are welcome. `doubtful` where a fit warns that
    too few digits are left, or refuses.
    """

    seed: int
    deviation: float = 0.0
    scores: tuple[str, ...] = ()
    splits: int = 0
    doubtful: bool = False
    description: str = ""

    @property
    def kept(self) -> bool:
        return self.doubtful or (self.deviation <= 1.0 and not self.scores)


def compare(case: Promised) -> Outcome:
    """Decisions and scores of every split, in closed form and by refitting."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _compared(case)
        except NotPositiveDefiniteError:
            return Outcome(case.seed, doubtful=True)


def _compared(case: Promised) -> Outcome:
    weights = None if case.params is None else case.params["sample_weight"]
    decomposed = Decomposed.of(case.estimator, case.X, case.y, weights)
    conditioning = conditioning_of(
        decomposed.problem, case.estimator.alpha, readout=decomposed.readout
    )
    tolerance = max(1e-8, 1e3 * conditioning)
    arguments: Any = {"cv": case.cv, "scoring": case.scoring, "params": case.params}
    ours = fitonce.cross_validate(case.estimator, case.X, case.y, **arguments)
    theirs = sklearn.model_selection.cross_validate(
        case.estimator, case.X, case.y, return_estimator=True, return_indices=True, **arguments
    )
    tested = [case.X[rows] for rows in theirs["indices"]["test"]]
    expected = [
        model.decision_function(X) for model, X in zip(theirs["estimator"], tested, strict=True)
    ]
    size = max(float(np.abs(part).max()) for part in expected) or 1.0
    deviation = 0.0
    for train, test, part in zip(*theirs["indices"].values(), expected, strict=True):
        deleted = np.setdiff1d(np.arange(len(case.y)), train)
        if decomposed.covers(train, deleted):
            got = decomposed.output(deleted, test, "decision_function")
            deviation = max(deviation, float(np.abs(got - part).max()) / size)
    clear = np.array([not _near_ties(part, tolerance * max(size, 1.0)) for part in expected])
    different = [
        name
        for name in (f"test_{score}" for score in case.scoring)
        if not np.allclose(ours[name][clear], theirs[name][clear], atol=1e-9, equal_nan=True)
    ]
    return Outcome(
        case.seed,
        deviation / tolerance,
        tuple(different),
        int(clear.sum()),
        tolerance > 1e-4,
        f"{case.kind}, n = {len(case.y)}, {case.estimator!r}, {case.cv!r}",
    )


def _near_ties(decision: np.ndarray, tolerance: float) -> bool:
    """Whether decisions (n,) or (n, c) are close to each other, or to zero, without being equal."""
    columns = decision.reshape(len(decision), -1)
    with_zero = np.vstack([columns, np.zeros((1, columns.shape[1]))])
    steps = [np.diff(np.sort(with_zero, axis=0), axis=0).ravel()]
    steps.append(np.diff(np.sort(columns, axis=1), axis=1).ravel())
    together = np.concatenate(steps)
    return bool(np.any((together > 0) & (together <= tolerance)))
