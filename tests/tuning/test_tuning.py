"""The lattice search: criteria, candidates, ties, windows, nesting.

Against literal refits and scikit-learn's metrics.
"""

from __future__ import annotations

import importlib
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
import scipy.special
import sklearn.model_selection
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    make_scorer,
    mean_squared_error,
    r2_score,
    recall_score,
    roc_auc_score,
)
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    StratifiedKFold,
)

import fitonce
import reference
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, NumericalWarning
from fitonce.datasets import make_torus
from fitonce.estimators.fitted import criterion_of
from fitonce.estimators.setup import setup_of
from fitonce.kernels import Kernel
from fitonce.tuning import Branch, GammaLattice, Trial, Trials, search
from fitonce.tuning.solution import Solution
from fitonce.tuning.trial_runner import TrialRunner
from problems import ESTIMATORS
from reference import held_out_of

COMPRESSION = 3.0


def blobs(n: int, classes: int, seed: int = 0, p: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping Gaussians, unbalanced, labels in no order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % (classes + 1) % classes)
    return rng.normal(size=(n, p)) + 1.3 * np.eye(max(classes, p))[y][:, :p], y


def data_for(
    estimator: type, n: int = 36, classes: int = 2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    X, labels = blobs(n, classes, seed)
    if estimator is not KernelRidge:
        return X, np.array(["moss", "fern", "reed"])[labels]
    y = np.sin(X[:, :classes]) + 0.3 * np.random.default_rng(seed + 1).normal(size=(n, classes))
    return X, y[:, 0] if classes == 1 else y


# ---- criteria, from literal refits ---------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """An estimator, its data and how rows are held out."""

    estimator: type
    classes: int  # targets, for regression
    penalty: str = "function"
    weighted: bool = False
    folds: int | None = None

    def __str__(self) -> str:
        weights, folds = "w" if self.weighted else "u", self.folds or "loo"
        return f"{self.estimator.__name__}-{self.classes}-{self.penalty}-{weights}-{folds}"

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        X, y = data_for(self.estimator, 30, self.classes)
        return X, y, np.random.default_rng(5).uniform(0.3, 3.0, size=30) if self.weighted else None

    @property
    def cv(self) -> Any:
        return None if self.folds is None else KFold(self.folds, shuffle=True, random_state=1)


@dataclass(frozen=True)
class Literal:
    """Held-out values of literal refits, one (gamma, alpha), in the order of the splits."""

    y: np.ndarray
    targets: np.ndarray
    predicted: np.ndarray
    weights: np.ndarray
    fold: np.ndarray
    labels: np.ndarray | None = None
    scores: np.ndarray | None = None
    separation: np.ndarray | None = None

    def rows(self, rows: np.ndarray) -> Literal:
        parts = {
            k: None if v is None or k == "separation" else v[rows] for k, v in vars(self).items()
        }
        return Literal(**{**parts, "separation": self.separation})


def literal_scores(
    estimator: type, Y: np.ndarray, fitted: np.ndarray, held_out: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Class scores of held-out targets.

    The discriminant's on the axes of the fit of all rows (generalised eigenproblem).
    """
    c = Y.shape[1]
    if estimator is LeastSquaresSVC:
        scores = np.column_stack([np.zeros(len(Y)), held_out]) if c == 1 else held_out
        return scores, np.full((max(c, 2),) * 2, 1.0 if c == 1 else 2.0)
    N, A = np.diag(w @ Y), Y.T @ (w[:, None] * fitted)
    a2, theta = scipy.linalg.eigh(0.5 * (A + A.T), N)
    constant = np.argmax(np.abs(theta.T @ (w @ Y)))
    a2, theta = np.delete(a2, constant), np.delete(theta, constant, axis=1)
    axes = theta * np.sqrt((w.sum() - c) / (a2 * (1.0 - a2)))
    centroids = np.linalg.solve(N, A @ axes)
    scores = (
        held_out @ axes @ centroids.T
        - 0.5 * np.sum(centroids**2, axis=1)
        + np.log(np.diag(N) / w.sum())
    )
    return scores, 0.5 * np.sum((centroids[:, None] - centroids) ** 2, axis=2)


@cache
def literal(setting: Setting, gamma: float, alpha: float) -> Literal:
    X, y, weights = setting.data
    n, w = len(X), np.ones(len(X)) if weights is None else weights
    K = pairwise_kernels(X, metric="rbf", gamma=gamma)
    regression = setting.estimator is KernelRidge
    classes, labels = (None, None) if regression else np.unique(y, return_inverse=True)
    if regression:
        Y = y.reshape(n, -1)
    else:
        Y = np.eye(len(classes))[labels]
        Y = (
            Y
            if setting.estimator is KernelFisherDiscriminant
            else (2.0 * Y - 1.0)[:, 1 if len(classes) == 2 else 0 :]
        )
    fit = (
        reference.ridge_function_norm
        if setting.penalty == "function"
        else reference.ridge_dual_norm
    )
    splits = list((LeaveOneOut() if setting.cv is None else setting.cv).split(X))
    held_out, fold = np.zeros_like(Y), np.zeros(n, dtype=int)
    for number, (train, test) in enumerate(splits):
        held_out[test] = reference.refit_held_out(fit, K, Y, alpha, train, test, weights)
        fold[test] = number
    if regression:
        return Literal(y, Y, held_out, w, fold)
    fitted = fit(K, Y, alpha, weights).predict(K)
    scores, separation = literal_scores(setting.estimator, Y, fitted, held_out, w)
    return Literal(y, Y, held_out, w, fold, labels, scores, separation)


def literal_score(
    setting: Setting, metric: Callable[[Literal], float], pooled: bool, gamma: float, alpha: float
) -> float:
    """Of all rows, or the mean over folds."""
    h = literal(setting, gamma, alpha)
    parts = [h] if pooled else [h.rows(h.fold == fold) for fold in np.unique(h.fold)]
    return float(np.mean([metric(part) for part in parts]))


def with_temperature(h: Literal) -> np.ndarray:
    """Probabilities at the temperature that minimises the cross-entropy with targets (n + 1)/(n +
    2), half a row's worth of them shared by all classes.
    """
    c, n = h.scores.shape[1], h.weights.sum()
    own = np.eye(c)[h.labels]
    targets = (own * (n + 1.0) + (1.0 - own) / (c - 1.0)) / (n + 2.0)
    scale = np.abs(h.scores - h.scores.max(axis=1, keepdims=True)).mean()

    def cross_entropy(t: float) -> float:
        return -h.weights @ np.sum(
            targets * scipy.special.log_softmax(np.exp(t) / scale * h.scores, axis=1), axis=1
        )

    t = scipy.optimize.minimize_scalar(
        cross_entropy, bounds=(-10, 10), method="bounded", options={"xatol": 1e-11}
    ).x
    share = 0.5 / (n + 1.0)
    return (1.0 - share) * scipy.special.softmax(np.exp(t) / scale * h.scores, axis=1) + share / c


def naive_smoothed(h: Literal) -> float:
    losses = []
    for label, row in zip(h.labels, h.scores, strict=True):
        rival = max((j for j in range(len(row)) if j != label), key=lambda j: row[j])
        losses.append(
            scipy.special.expit(
                -COMPRESSION * (row[label] - row[rival]) / h.separation[label, rival]
            )
        )
    return float(np.average(losses, weights=h.weights))


def naive_auc(h: Literal) -> float:
    if h.scores.shape[1] == 2:
        return 1 - roc_auc_score(h.labels, h.scores[:, 1] - h.scores[:, 0], sample_weight=h.weights)
    return 1 - np.mean(
        [
            roc_auc_score(h.labels == j, h.scores[:, j], sample_weight=h.weights)
            for j in np.unique(h.labels)
        ]
    )


def own_criterion(y: np.ndarray, output: np.ndarray) -> float:
    """A user's score, of whatever the estimator's main output is."""
    return (
        -float(np.median(np.abs(output)))
        if y.dtype.kind == "f"
        else float(np.mean(output.reshape(len(y), -1)[y == "moss", 0]))
    )


def output_of(h: Literal) -> np.ndarray:
    if h.scores is None:
        return h.predicted[:, 0] if h.predicted.shape[1] == 1 else h.predicted
    return h.scores[:, 1] - h.scores[:, 0] if h.scores.shape[1] == 2 else h.scores


def naive_both(h: Literal) -> float:
    """n times the log-loss and 50 times the squared error, over those of constants."""
    if len(np.unique(h.labels)) == 1:
        return (h.weights.sum() * NAIVE["log_loss"](h) + 50.0 * NAIVE["squared_error"](h)) / (
            h.weights.sum() + 50.0
        )
    own = np.eye(h.scores.shape[1])[h.labels]
    share = np.tile(np.average(own, axis=0, weights=h.weights), (len(own), 1))
    frequencies = log_loss(
        h.labels, share, labels=range(h.scores.shape[1]), sample_weight=h.weights
    )
    mean = np.tile(np.average(h.targets, axis=0, weights=h.weights), (len(h.targets), 1))
    constant = mean_squared_error(h.targets, mean, sample_weight=h.weights)
    n = h.weights.sum()
    return (
        n * NAIVE["log_loss"](h) / frequencies + 50.0 * NAIVE["squared_error"](h) / constant
    ) / (n + 50.0)


NAIVE: dict[Any, Callable[[Literal], float]] = {
    "squared_error+log_loss": naive_both,
    "squared_error": lambda h: mean_squared_error(h.targets, h.predicted, sample_weight=h.weights),
    "r2": lambda h: 1 - r2_score(h.targets, h.predicted, sample_weight=h.weights),
    "error": lambda h: (
        1 - accuracy_score(h.labels, h.scores.argmax(axis=1), sample_weight=h.weights)
    ),
    "balanced_error": lambda h: (
        1
        - recall_score(h.labels, h.scores.argmax(axis=1), average="macro", sample_weight=h.weights)
    ),
    "smoothed_error": naive_smoothed,
    "log_loss": lambda h: log_loss(
        h.labels, with_temperature(h), labels=range(h.scores.shape[1]), sample_weight=h.weights
    ),
    "brier": lambda h: np.average(
        np.sum((with_temperature(h) - np.eye(h.scores.shape[1])[h.labels]) ** 2, axis=1),
        weights=h.weights,
    ),
    "auc": naive_auc,
    own_criterion: lambda h: -own_criterion(h.y, output_of(h)),
}
FOR_CLASSES = tuple(name for name in NAIVE if name != "r2")
FOR_NUMBERS = ("squared_error", "r2", own_criterion)
SETTINGS = (
    Setting(KernelFisherDiscriminant, 2),
    Setting(KernelFisherDiscriminant, 3, weighted=True),
    Setting(KernelFisherDiscriminant, 2, "dual", True, 3),
    Setting(KernelFisherDiscriminant, 3, "dual", folds=3),
    Setting(LeastSquaresSVC, 2, weighted=True, folds=3),
    Setting(LeastSquaresSVC, 3, "dual"),
    Setting(LeastSquaresSVC, 3, "function", True),
    Setting(KernelRidge, 1, "dual", True),
    Setting(KernelRidge, 2, folds=3),
)


def names_for(setting: Setting) -> tuple[Any, ...]:
    return FOR_NUMBERS if setting.estimator is KernelRidge else FOR_CLASSES


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("pooled", [True, False], ids=["pooled", "per fold"])
def test_every_criterion_is_the_direct_computation_from_literal_refits(
    setting: Setting, pooled: bool
) -> None:
    if not pooled and setting.folds is None:
        pytest.skip("folds of one row")
    X, y, weights = setting.data
    alphas = np.array([0.03, 0.5, 8.0])
    for criterion in names_for(setting):
        options = {} if setting.estimator is KernelRidge else {"compression": COMPRESSION}
        model = setting.estimator(
            alpha=alphas,
            penalty=setting.penalty,
            criterion=criterion,
            pooled=pooled,
            cv=setting.cv,
            **options,
        )
        model.fit(X, y, sample_weight=weights)
        params, scores = model.cv_results_["params"], model.cv_results_["mean_test_score"]
        for number in range(0, len(params), 7):
            point = params[number]["gamma"], params[number]["alpha"]
            expected = literal_score(setting, NAIVE[criterion], pooled, *point)
            perfect = 1.0 if criterion in ("auc", "r2") else 0.0
            close = 1e-8 if criterion in ("squared_error", "r2") else 2e-6
            assert scores[number] == pytest.approx(perfect - expected, rel=close, abs=1e-9), (
                criterion,
                point,
            )


@pytest.mark.parametrize("estimator", [KernelFisherDiscriminant, LeastSquaresSVC])
@pytest.mark.parametrize(("classes", "meant"), [(2, "squared_error+log_loss"), (3, "brier")])
def test_the_default_criterion_depends_on_the_number_of_classes(
    estimator: type, classes: int, meant: str
) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) % classes
    X = rng.normal(size=(40, 2)) + y[:, None]
    chosen, named = (estimator(**given).fit(X, y) for given in ({}, {"criterion": meant}))
    np.testing.assert_array_equal(
        chosen.cv_results_["mean_test_score"], named.cv_results_["mean_test_score"]
    )
    assert chosen.criterion == "auto"
    assert criterion_of(chosen) == meant


def test_smoothed_error_of_two_classes_is_that_of_the_trained_targets() -> None:
    """Saadi et al., eq. 9 for the least-squares machine: mean σ(-γ y f(x)) with leave-one-out f."""
    X, y = make_torus(60, random_state=2)
    model = LeastSquaresSVC(
        gamma=0.4, alpha=0.2, criterion="smoothed_error", compression=4.0, calibration=None
    ).fit(X, y)
    assert -model.best_score_ == pytest.approx(
        np.mean(scipy.special.expit(-4.0 * y * model.held_out_decision_)), rel=1e-9
    )


# ---- the choice, and its record ------------------------------------------------------------------


CHOICES: dict[str, dict[str, Any]] = {
    "gamma and alpha": {},
    "candidates": {"gamma": 0.3, "alpha": [0.01, 0.1, 1.0, 10.0]},
    "nothing": {"gamma": 0.3, "alpha": 0.5},
    "penalty": {"penalty": "tune"},
    "polynomial": {"kernel": "poly", "degree": "tune", "coef0": "tune"},
    "folds": {"cv": 3, "pooled": False},
    "landmarks": {"landmarks": 12, "random_state": 0},
    "refined": {"refine": True},
    "Newton": {"refine": True, "gamma": 0.3, "criterion": "squared_error"},
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("choice", CHOICES)
def test_results_are_scikit_learns_and_the_row_of_rank_one_is_the_model(
    estimator: type, choice: str
) -> None:
    X, y = data_for(estimator)
    model = estimator(**CHOICES[choice]).fit(X, y)
    results = model.cv_results_
    params, scores, rank = results["params"], results["mean_test_score"], results["rank_test_score"]
    for name in params[0]:
        assert list(results[f"param_{name}"]) == [p[name] for p in params]
    np.testing.assert_array_equal(rank, [1 + np.sum(scores > score) for score in scores])
    if not model.refine:
        assert len(params) == len({tuple(p.items()) for p in params})
        limit = scores.max() - 2e-9 * abs(scores.max())
        tied = [p["alpha"] for p, score in zip(params, scores, strict=True) if score >= limit]
        assert model.alpha_ == max(tied)
    for number in np.flatnonzero(rank == 1):
        np.testing.assert_equal(results["params"][number], model.best_params_)
        assert results["mean_test_score"][number] == pytest.approx(model.best_score_, rel=1e-12)
    assert "alpha" in model.best_params_
    for name, value in model.best_params_.items():
        np.testing.assert_array_equal(value, getattr(model, f"{name}_"))
    other = model.at(2.5)
    assert other.best_params_ == {"alpha": 2.5} == other.cv_results_["params"][0]
    assert list(other.cv_results_["rank_test_score"]) == [1]
    assert list(other.cv_results_["mean_test_score"]) == [other.best_score_]
    assert model.best_params_["alpha"] == model.alpha_  # as it was


def test_ties_go_to_the_larger_alpha_then_to_the_smaller_gamma() -> None:
    alphas = np.array([1.0, 2.0, 4.0])
    close = 0.5 * (1 + 5e-10)
    trials = [
        Trial({"gamma": 4.0}, alphas, np.array([0.5, close, 0.7])),
        Trial({"gamma": 2.0}, alphas, np.array([0.6, 0.5, 0.5 * (1 + 1e-7)])),
        Trial({"gamma": 1.0}, alphas, np.array([close, 0.6, 0.6])),
    ]
    winner = Trials(trials).winner
    assert (winner.parameters["gamma"], winner.alpha) == (2.0, 2.0)


TUNED: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "penalty": ({}, {"penalty": ("function", "dual")}),
    "polynomial": ({"kernel": "poly"}, {"degree": (2, 3, 4), "coef0": (0.0, 1.0)}),
}


@pytest.mark.parametrize("name", TUNED)
@pytest.mark.parametrize("estimator", [KernelFisherDiscriminant, KernelRidge])
def test_what_is_tuned_is_the_best_of_its_values(estimator: type, name: str) -> None:
    X, y = data_for(estimator)
    given, values = TUNED[name]
    tuned = estimator(**given, **dict.fromkeys(values, "tune")).fit(X, y)
    each = [dict(zip(values, one, strict=True)) for one in itertools.product(*values.values())]
    fits = [estimator(**given, **one).fit(X, y) for one in each]
    best, own = max(zip(fits, each, strict=True), key=lambda pair: pair[0].best_score_)
    assert tuned.best_params_ == {**own, **best.best_params_}
    assert tuned.best_score_ == best.best_score_
    np.testing.assert_array_equal(tuned.dual_coef_, best.dual_coef_)


def test_tuned_penalty_with_a_precomputed_kernel_sees_the_kernel_twice() -> None:
    X, y = data_for(KernelFisherDiscriminant)
    K = pairwise_kernels(X, metric="rbf", gamma=0.25)
    got = KernelFisherDiscriminant(kernel="precomputed", penalty="tune").fit(K, y)
    expected = KernelFisherDiscriminant(gamma=0.25, penalty="tune").fit(X, y)
    np.testing.assert_allclose(
        got.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-9
    )
    assert (got.penalty_, got.alpha_) == (expected.penalty_, expected.alpha_)
    np.testing.assert_allclose(
        got.held_out_decision_, expected.held_out_decision_, rtol=1e-8, atol=1e-10
    )


# ---- lattices ------------------------------------------------------------------------------------


def is_power_of_two(values: Any) -> bool:
    return bool(np.all(np.frexp(np.asarray(values, dtype=float))[0] == 0.5))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("penalty", ["function", "dual"])
def test_candidates_are_powers_of_two_finer_near_the_best(estimator: type, penalty: str) -> None:
    X, y = make_torus(50, random_state=3)
    model = estimator(penalty=penalty).fit(X, y)
    gammas, alphas = (
        np.unique(model.cv_results_[f"param_{name}"].data) for name in ("gamma", "alpha")
    )
    assert is_power_of_two(gammas)
    assert is_power_of_two(alphas)
    assert {model.gamma_ / 2, model.gamma_ * 2} & set(
        gammas
    )  # every second value first, then finer
    assert np.array_equal(alphas[1:], 2 * alphas[:-1])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", ["function", "dual"])
def test_default_alphas_surround_the_mean_eigenvalue_of_the_centred_kernel(
    penalty: str, weighted: bool
) -> None:
    rng = np.random.default_rng(5)
    A = rng.normal(size=(40, 40)) / np.sqrt(40)
    w = rng.uniform(0.5, 2.0, 40) if weighted else np.ones(40)
    s, K = np.sqrt(w)[:, None], A @ A.T
    scaled = s * K * s.T
    C = np.eye(40) - s @ s.T / w.sum()
    G = C @ scaled @ C if penalty == "function" else C @ scaled @ scaled @ C
    model = KernelRidge(kernel="precomputed", penalty=penalty)
    model.fit(K, rng.normal(size=40), sample_weight=w if weighted else None)
    alphas = np.unique(model.cv_results_["param_alpha"].data)
    bound = np.linalg.eigvalsh(G if penalty == "function" else scaled @ scaled)[-1]
    mean = np.round(np.log2(np.trace(G) / w.sum()))
    least = max(4e-9 * bound, 2.3e-9 * np.sqrt(bound * np.trace(G)))
    assert np.log2(alphas[0]) == max(mean - 30, np.ceil(np.log2(least)))
    assert np.log2(alphas[-1]) == max(mean + 12, np.ceil(np.log2(64.0 * bound)))


CENTRES = {  # the size of what gamma multiplies, and powers of two tried first around its inverse
    "rbf": (lambda X: 2.0 * X.var(axis=0).sum(), [-2, 0, 2, 4, 6]),
    "exponential": (lambda X: np.sqrt(2.0 * X.var(axis=0).sum()), [-1, 1, 3]),
    "matern32": (lambda X: np.sqrt(2.0 * X.var(axis=0).sum()), [-1, 1, 3]),
    "laplacian": (lambda X: X.std(axis=0).sum(), [-2, 0, 2, 4, 6]),
    "poly": (lambda X: np.mean(np.sum(X**2, axis=1)), [-4, -2, 0, 2, 4]),
    "sigmoid": (lambda X: np.mean(np.sum(X**2, axis=1)), [-4, -2, 0, 2, 4]),
}


@pytest.mark.parametrize("kernel", CENTRES)
def test_default_gammas_surround_one_over_the_size_of_what_they_multiply(kernel: str) -> None:
    X, y = data_for(KernelRidge)
    size, steps = CENTRES[kernel]
    model = KernelRidge(kernel=kernel).fit(X, y)
    gammas = list(dict.fromkeys(model.cv_results_["param_gamma"].tolist()))
    central = round(np.log2(1.0 / size(X)))
    assert np.log2(gammas[: len(steps)]).tolist() == [central + step for step in steps]


@pytest.mark.parametrize(
    ("step", "advice"),
    [(-17, "try kernel='linear'"), (-16, None), (0, None), (16, None), (17, "scale the features")],
)
def test_a_gamma_at_the_end_of_what_may_be_tried_is_told(step: int, advice: str | None) -> None:
    setup = setup_of(KernelRidge(), *data_for(KernelRidge))
    runner = TrialRunner(setup.tuner())
    runner.branches = [Branch({}, GammaLattice(3))]
    smoother = setup.tuner().problem({"gamma": 1.0}).smoother
    trial = Trial({"gamma": 2.0 ** (3 + step)}, np.ones(1), np.ones(1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        runner.warn_at_edges(trial, smoother)
    assert [advice in str(each.message) for each in told] == ([] if advice is None else [True])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_alphas_a_few_at_a_time_choose_as_all_at_once(
    estimator: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data_for(estimator)
    whole = estimator(gamma=0.5).fit(X, y)
    monkeypatch.setattr("fitonce.tuning.tuner.PATH_ELEMENTS", (10 * len(X), 1))
    parts = estimator(gamma=0.5).fit(X, y)
    assert parts.alpha_ == whole.alpha_
    np.testing.assert_allclose(held_out_of(parts), held_out_of(whole), rtol=1e-9, atol=1e-12)
    scores = [model.cv_results_["mean_test_score"] for model in (parts, whole)]
    np.testing.assert_allclose(*scores, rtol=1e-9, atol=1e-12)


def test_alphas_where_a_criterion_is_undefined_are_left_out() -> None:
    def of_what_varies(y: np.ndarray, held_out: np.ndarray) -> float:
        varies = np.std(held_out) > 0.5 * np.std(y)
        return -float(np.mean((y - held_out) ** 2)) if varies else np.nan

    X, y = data_for(KernelRidge)
    model = KernelRidge(gamma=0.5, criterion=of_what_varies).fit(X, y)
    scores = model.cv_results_["mean_test_score"]
    assert 0 < np.isinf(scores).sum() < len(scores)
    assert model.best_score_ == scores[np.isfinite(scores)].max()


def test_the_size_of_a_value_counts_the_terms_of_confounds() -> None:
    X, C, one = np.array([[1.0], [2.0]]), np.array([[30.0], [-50.0]]), np.ones((1, 1))
    model = Solution(np.zeros((2, 1)), np.zeros(1), None, confound_coef=2.0 * one)
    values, size = model.sized_values(Kernel("linear"), X, X, C)
    np.testing.assert_array_equal(values[:, 0], [60.0, -100.0])
    assert size.tolist() == [100.0]


@pytest.mark.parametrize("cv", [None, 3])
def test_maps_of_a_few_alphas_at_a_time_choose_as_all_at_once(
    cv: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = data_for(KernelRidge, 20)
    Y = np.random.default_rng(0).normal(size=(20, 120)) + X[:, :1]
    model = KernelRidge(gamma=0.5, alpha_per_target=True, cv=cv)
    whole = clone(model).fit(X, Y)
    monkeypatch.setattr("fitonce.tuning.many_targets.UNIT_ELEMENTS", 3 * 20**2)
    parts = clone(model).fit(X, Y)
    np.testing.assert_array_equal(parts.alpha_, whole.alpha_)
    np.testing.assert_allclose(parts.best_score_, whole.best_score_, rtol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("cv", [None, 3])
def test_trials_in_one_batch_lose_what_they_lose_alone(
    estimator: type, cv: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data_for(estimator)
    together = estimator(cv=cv).fit(X, y)
    monkeypatch.setattr("fitonce.tuning.trial_runner.TOGETHER_UP_TO", 0)
    alone = estimator(cv=cv).fit(X, y)
    assert together.best_params_ == alone.best_params_
    assert together.cv_results_["params"] == alone.cv_results_["params"]
    scores = [model.cv_results_["mean_test_score"] for model in (together, alone)]
    np.testing.assert_allclose(*scores, rtol=1e-9, atol=1e-12)


DEFAULTS = {  # module and name, and what a search is made of: with others, every choice moves
    "trials": {"TIE": 1e-9, "WORTH_EXTENDING": 1e-3},
    "gamma_search": {
        "ALPHA_BELOW": 30,
        "ALPHA_ABOVE": 12,
        "FARTHEST": 16,
        "PRECISION": 4e-9,
        "DIGITS": 2.3e-9,
        "CLOSE": 1e-2,
        "CLOSE_ROWS": 10.0,
        "PROMISING": 0.1,
        "NEAR": 1e-2,
    },
    "weights": {
        "SHIFTS": (-4, -2, 0, 2, 4),
        "IN_FRONT": 0.8,
        "MOST_IN_FRONT": 8,
        "DESCENTS": 2,
        "NEGLIGIBLE": 1e-2,
        "SIMPLER": 1e-4,
    },
    "refine": {
        "WITHIN": np.log(4.0),
        "HALVINGS": 20,
        "STEPS": 50,
        "CONVERGED": 1e-8,
        "APART": 2.0**-7,
    },
    "specification": {
        "SAMPLED_FROM": 400,
        "PROBED_FROM": 1000,
        "SAMPLE": 700,
        "FEW": 5,
        "TUNED_VALUES": {
            "penalty": ("function", "dual"),
            "degree": (2, 3, 4),
            "coef0": (0.0, 1.0),
        },
    },
    "criterion": {"AUTO": "auto", "BOTH": "squared_error+log_loss"},
    "trial_runner": {"HALF": 0.5},
}


@pytest.mark.parametrize("module", DEFAULTS)
def test_what_a_search_is_made_of(module: str) -> None:
    found = vars(importlib.import_module(f"fitonce.tuning.{module}"))
    assert {name: found[name] for name in DEFAULTS[module]} == DEFAULTS[module]


def test_default_alphas_of_a_kernel_of_known_size() -> None:
    """Mean eigenvalue 3/4 and largest 2: literal values, whatever the code computes them from."""
    Q = np.linalg.qr(np.c_[np.ones(8), np.random.default_rng(0).normal(size=(8, 7))])[0][:, 1:]
    K = (Q * [2.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5]) @ Q.T
    alphas = KernelRidge(kernel="precomputed").fit(K, np.arange(8.0) % 3).cv_results_["param_alpha"]
    assert np.log2(np.array(alphas, dtype=float)).tolist() == list(range(-26, 13))


@pytest.mark.pairwise
@pytest.mark.parametrize(("kernel", "power"), [("rbf", 2), ("laplacian", 1), ("poly", 2)])
@pytest.mark.parametrize("k", [-7, 3])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_scaling_the_features_by_a_power_of_two_scales_gamma_and_changes_nothing_else(
    estimator: type, kernel: str, power: int, k: int
) -> None:
    X, y = data_for(estimator)
    one, other = (estimator(kernel=kernel).fit(Z, y) for Z in (X, X * 2.0**k))
    assert other.gamma_ == one.gamma_ * 2.0 ** (-power * k)
    assert other.alpha_ == one.alpha_
    np.testing.assert_allclose(held_out_of(other), held_out_of(one), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        other.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"], rtol=1e-9
    )


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weight_two_equals_a_repeated_row_in_lattice_and_choice(
    estimator: type, penalty: str
) -> None:
    X, y = data_for(estimator, 20)
    groups, counts = np.arange(20) // 4, np.random.default_rng(3).integers(0, 4, size=20)
    rows = np.repeat(np.arange(20), counts)
    weighted = estimator(penalty=penalty, cv=LeaveOneGroupOut()).fit(
        X, y, sample_weight=counts, groups=groups
    )
    repeated = estimator(penalty=penalty, cv=LeaveOneGroupOut()).fit(
        X[rows], y[rows], groups=groups[rows]
    )
    assert weighted.cv_results_["params"] == repeated.cv_results_["params"]
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"], rtol=1e-5
    )
    assert (weighted.gamma_, weighted.alpha_) == (repeated.gamma_, repeated.alpha_)
    np.testing.assert_allclose(
        np.asarray(held_out_of(weighted))[rows], held_out_of(repeated), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize(
    ("bottom", "found"), [(-14, -14), (-9, -9), (0, 0), (3, 3), (11, 11), (30, 17), (-30, -17)]
)
def test_search_walks_beyond_the_edge_of_its_window(bottom: int, found: int) -> None:
    """A bowl in log gamma: its bottom is found wherever the limits (16 and one half-step) allow."""
    lattice = GammaLattice.around(8.0)

    def evaluate(parameters: dict[str, Any]) -> Trial:
        return Trial(
            parameters,
            np.ones(1),
            np.array([1.0 + (np.log2(parameters["gamma"]) - 3 - bottom) ** 2]),
        )

    result = search(
        lambda several, **_: [evaluate(parameters) for parameters in several], [Branch({}, lattice)]
    )
    assert np.log2(result.winner.parameters["gamma"]) - 3 == found
    assert (
        len({trial.parameters["gamma"] for trial in result.trials})
        == len(result.trials)
        <= 7 + 8 + 2
    )


@pytest.mark.parametrize(
    ("losses", "edge"),
    [
        ([1.0, 2, 3], "lower"),
        ([3.0, 2, 1], "upper"),
        ([2.0, 1, 2], None),
        ([1.0, 1.0005, 2], None),
        ([2.0, 1, 1], None),
        ([0.0, 0, 0], None),
        ([1.0, 2], None),
    ],
)
def test_a_loss_that_still_falls_at_the_end_is_noticed(
    losses: list[float], edge: str | None
) -> None:
    assert Trial({}, 2.0 ** np.arange(len(losses)), np.array(losses)).falling_edge == edge


def test_noise_free_targets_warn_that_the_window_of_alphas_ended() -> None:
    x = np.linspace(0, 3, 25)[:, None]
    with pytest.warns(NumericalWarning, match="lower end"):
        KernelRidge(gamma=0.5).fit(x, np.sin(x[:, 0]))


def test_flat_loss_ends_the_walk_after_one_step_with_the_smoothest_kernel() -> None:
    result = search(
        lambda several, **_: [Trial(p, np.ones(1), np.ones(1)) for p in several],
        [Branch({}, GammaLattice.around(1.0))],
    )
    tried = sorted(trial.parameters["gamma"] for trial in result.trials)
    assert result.winner.parameters["gamma"] == tried[0] >= 2.0**-9


def test_a_rough_function_extends_the_window_of_gammas() -> None:
    """Three copies each of eighty points on a line, with values at random.

    Only the nearest neighbours tell anything.
    """
    rng = np.random.default_rng(0)
    x = np.repeat(np.linspace(0, 1, 80), 3)[:, None] + 1e-4 * rng.normal(size=(240, 1))
    model = KernelRidge().fit(x, np.repeat(rng.normal(size=80), 3))
    centre = round(np.log2(1 / (2 * x.var())))
    assert model.gamma_ > 2.0 ** (centre + 6)
    gammas = model.cv_results_["param_gamma"].data
    assert gammas.min() < model.gamma_ < gammas.max()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("form", [np.asarray, list, tuple], ids=["array", "list", "tuple"])
def test_one_gamma_per_feature_equals_scaled_features(
    estimator: type, form: Callable[[Any], Any]
) -> None:
    X, y = data_for(estimator)
    widths = np.array([0.5, 0.0, 2.0])
    anisotropic = clone(estimator(gamma=form(widths))).fit(X, y)
    scaled = estimator(gamma=1.0).fit(X * np.sqrt(widths), y)
    assert anisotropic.alpha_ == scaled.alpha_
    method = "predict" if estimator is KernelRidge else "decision_function"
    got, expected = (
        getattr(anisotropic, method)(X[:7] + 0.1),
        getattr(scaled, method)((X[:7] + 0.1) * np.sqrt(widths)),
    )
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)
    sparse = estimator(gamma=form(widths)).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(held_out_of(sparse), held_out_of(scaled), rtol=1e-8, atol=1e-10)
    assert anisotropic.verify(3).max_deviation < 1e-8


def test_wrong_number_of_gammas_is_refused() -> None:
    X, y = data_for(KernelRidge)
    for widths in ([1.0, 2.0], [1.0], [[1.0, 1.0, 1.0]], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match="gamma"):
            KernelRidge(gamma=widths).fit(X, y)


# ---- nested --------------------------------------------------------------------------------------

NESTED: dict[str, tuple[Any, ...]] = {
    "discriminant": (KernelFisherDiscriminant(), 3),
    "least squares": (LeastSquaresSVC(), 2),
    "ridge": (KernelRidge(), 2),
    "refined discriminant": (KernelFisherDiscriminant(refine=True), 2),
    "Newton": (
        KernelFisherDiscriminant(
            refine=True, criterion="smoothed_error", gamma=0.3, penalty="dual"
        ),
        2,
    ),
    "refined least squares": (LeastSquaresSVC(refine=True, criterion="squared_error"), 3),
    "tuned penalty": (KernelFisherDiscriminant(penalty="tune"), 2),
    "sigmoid": (KernelFisherDiscriminant(calibration="sigmoid"), 2),
    "isotonic": (LeastSquaresSVC(calibration="isotonic", penalty="dual"), 3),
    "candidates": (LeastSquaresSVC(gamma=0.3, alpha=np.array([0.01, 0.1, 1.0, 10.0])), 2),
    "width by rule": (KernelRidge(gamma="scale", alpha=0.1), 1),
    "given values, sigmoid": (
        KernelFisherDiscriminant(gamma=0.3, alpha=0.5, calibration="sigmoid"),
        2,
    ),
    "given values, isotonic": (LeastSquaresSVC(gamma=0.3, alpha=0.5, calibration="isotonic"), 2),
    "inner folds": (LeastSquaresSVC(cv=3, pooled=False, criterion="auc"), 2),
    "scorer by name": (LeastSquaresSVC(criterion="balanced_accuracy", gamma=0.3), 3),
    "scorer": (KernelRidge(criterion=make_scorer(r2_score), refine=True), 1),
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_cross_validation_equals_scikit_learns_refits(name: str) -> None:
    model, classes = NESTED[name]
    X, y = data_for(type(model), 40, classes, seed=4)
    kind = KFold if isinstance(model, KernelRidge) else StratifiedKFold
    cv = kind(2, shuffle=True, random_state=0)
    got = fitonce.cross_validate(model, X, y, cv=cv, return_estimator=True)
    expected = sklearn.model_selection.cross_validate(
        model, X, y, cv=cv, return_estimator=True, return_indices=True
    )
    np.testing.assert_allclose(got["test_score"], expected["test_score"], rtol=1e-9)
    for one, other in zip(got["estimator"], expected["estimator"], strict=True):
        assert (one.alpha_, one.penalty_) == (other.alpha_, other.penalty_)
        np.testing.assert_array_equal(one.gamma_, other.gamma_)
    methods = ["predict" if isinstance(model, KernelRidge) else "predict_proba"]
    if name in ("discriminant", "least squares", "ridge"):
        np.testing.assert_allclose(
            fitonce.cross_val_score(model, X, y, cv=cv), expected["test_score"], rtol=1e-9
        )
        methods = list(dict.fromkeys(["predict", *methods]))
    for method in methods:
        values = fitonce.cross_val_predict(model, X, y, cv=cv, method=method)
        for fitted, test in zip(expected["estimator"], expected["indices"]["test"], strict=True):
            outputs = getattr(fitted, method)(X[test])
            if outputs.dtype.kind == "f":
                np.testing.assert_allclose(values[test], outputs, rtol=1e-9, atol=1e-11)
            else:
                np.testing.assert_array_equal(values[test], outputs)


# ---- a wide search never fails -------------------------------------------------------------------


def hard_problem(name: str, regression: bool) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(11)
    n = 10 if name == "ten rows" else 51 if name == "1:50" else 30
    X, labels = blobs(n, 2, seed=6)
    if name == "flat":
        X = np.column_stack([np.ones((n, 2)), 1e-9 * rng.normal(size=n)])
    elif name == "separable":
        X = X + 50.0 * labels[:, None]
    elif name == "noise":
        X, labels = rng.normal(size=(n, 4)), rng.integers(2, size=n)
    elif name == "duplicated":
        X, labels = np.repeat(X[:10], 3, axis=0), np.tile([0, 1, 1], 10)
    elif name == "wide":
        X = np.hstack([X, rng.normal(size=(n, 400))])
    elif name == "1:50":
        labels = (np.arange(n) == 17).astype(int)
    elif name == "one-member class":
        labels = np.where(np.arange(n) == 5, 2, labels)
    elif name in ("huge", "tiny"):
        X = X * (1e9 if name == "huge" else 1e-9)
    elif name == "offset":
        X = X + 1e6
    elif name == "sparse":
        X = sp.random(n, 60, density=0.1, random_state=0, format="csr") + sp.csr_array(
            labels[:, None] * np.eye(1, 60)
        )
    elif name == "integers":
        X = np.round(3 * X).astype(int)
    if not regression:
        return X, labels
    if name == "1:50":
        return X, np.where(labels == 1, 1e6, rng.normal(size=n))
    return X, labels + 0.1 * rng.normal(size=n)


HARD = (
    *("flat", "separable", "noise", "duplicated", "wide", "1:50", "one-member class"),
    *("huge", "tiny", "offset", "sparse", "integers", "ten rows"),
)
WAYS: dict[str, Callable[[type], Any]] = {
    "default": lambda estimator: estimator(),
    "tuned penalty": lambda estimator: estimator(penalty="tune", criterion="squared_error"),
    "refined": lambda estimator: estimator(refine=True, criterion="squared_error"),
    "smoothed": lambda estimator: estimator(
        refine=True, criterion="squared_error" if estimator is KernelRidge else "smoothed_error"
    ),
    "sigmoid": lambda estimator: estimator(
        **({} if estimator is KernelRidge else {"calibration": "sigmoid"}),
        criterion="squared_error",
    ),
    "isotonic": lambda estimator: estimator(
        **({} if estimator is KernelRidge else {"calibration": "isotonic"})
    ),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_wide_search_never_fails(estimator: type, way: str, name: str) -> None:
    if estimator is KernelRidge and way in ("smoothed", "sigmoid", "isotonic"):
        pytest.skip("no classes")
    X, y = hard_problem(name, estimator is KernelRidge)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NumericalWarning)
        model = WAYS[way](estimator).fit(X, y)
        outputs = (
            [model.predict(X)]
            if estimator is KernelRidge
            else [model.decision_function(X), model.predict_proba(X)]
        )
    assert all(np.all(np.isfinite(output)) for output in outputs)
    assert np.isfinite(model.best_score_)
    assert np.isfinite(model.alpha_)
    assert model.alpha_ > 0
    assert np.all(np.isfinite(model.gamma_))
    assert np.all(np.asarray(model.gamma_) > 0)


def test_no_candidate_is_warned_of():
    """The lattice ends where float64 has few digits: flat and falling spectra, all penalties."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # the best one may be at the end
        warnings.filterwarnings("error", "alpha=.* is very small", NumericalWarning)
        for number in range(200):
            n, p = int(rng.integers(10, 60)), int(rng.choice([1, 3, 30, 200]))
            X = rng.normal(size=(n, p)) * np.exp(-rng.choice([0.0, 0.1, 1.0]) * np.arange(p))
            y = X @ rng.normal(size=p) + 1e-3 * rng.normal(size=n)
            settings = {
                "fit_intercept": bool(number % 2),
                "penalty": ("function", "dual")[number % 3 > 1],
            }
            KernelRidge(kernel="linear", **settings).fit(10.0 ** rng.uniform(-2, 2) * X, y)
