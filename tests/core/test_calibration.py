"""Probabilities from held-out decisions.

Against direct minimisation, scikit-learn's isotonic regression and known posteriors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant, LeastSquaresSVC
from fitonce.core.calibration import (
    calibrate,
    class_scores,
    inverse_temperatures,
    probabilities,
)
from fitonce.datasets import make_torus, make_waveform, torus_bayes, waveform_bayes
from fitonce.estimators.probability import even_odds, isotonic_steps
from problems import CLASSIFIERS

CALIBRATIONS = ("temperature", "sigmoid", "isotonic", None)


def overlapping(n: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % (classes + 2) % classes)  # the first two classes are larger
    return rng.normal(size=(n, 3)) + 1.2 * np.eye(3)[y], np.array(["reed", "fern", "moss"])[y]


def columns(decision: np.ndarray) -> np.ndarray:
    return np.column_stack([np.zeros(len(decision)), decision]) if decision.ndim == 1 else decision


def raw(model: Any, X: np.ndarray, y: np.ndarray, **fit: Any) -> Any:
    """The same model with the same values and no calibration."""
    fixed = {"alpha": model.alpha_, "gamma": model.gamma_, "calibration": None}
    return type(model)(**{**model.get_params(), **fixed}).fit(X, y, **fit)


def soft_targets(labels: np.ndarray, weights: np.ndarray, c: int) -> np.ndarray:
    n = weights.sum()
    own = np.eye(c)[labels]
    return (own * (n + 1.0) + (1.0 - own) / (c - 1.0)) / (n + 2.0)


def floored(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A share of 1/(2(n + 1)) of the probability is given to all classes alike."""
    share = 0.5 / (weights.sum() + 1.0)
    return (1.0 - share) * p + share / p.shape[1]


def cross_entropy(
    scores: np.ndarray,
    labels: np.ndarray,
    beta: float,
    weights: np.ndarray | None = None,
    with_floor: bool = True,
) -> float:
    """With soft targets, of probabilities that are mixed with a floor. Classes without a score take
    no part.
    """
    logits = beta * columns(scores)
    weights = np.ones(len(labels)) if weights is None else weights
    there = np.isfinite(logits)
    targets = np.where(there, soft_targets(labels, weights, logits.shape[1]), 0.0)
    targets /= targets.sum(axis=1, keepdims=True)
    log_p = scipy.special.log_softmax(logits, axis=1)
    log_p = np.log(floored(np.exp(log_p), weights)) if with_floor else log_p
    terms = np.where(there, targets * np.where(targets > 0, log_p, 0.0), 0.0)
    return float(np.average(-terms.sum(axis=1), weights=weights))


def minimised(
    decision: np.ndarray, labels: np.ndarray, weights: np.ndarray, offsets: bool
) -> tuple[float, np.ndarray]:
    """β and class offsets of the least cross-entropy, by a general optimiser.

    That of the probabilities as they are predicted, floor included, and with a standard normal
    prior on the offsets about their mean.
    """
    scores = columns(decision)
    c = scores.shape[1]
    scale = scores.std()
    targets = soft_targets(labels, weights, c)

    def logits(theta: np.ndarray) -> np.ndarray:
        return theta[0] / scale * scores + np.append(0.0, theta[1:] if offsets else np.zeros(c - 1))

    def loss(theta: np.ndarray) -> float:
        p = scipy.special.softmax(logits(theta), axis=1)
        fit = -weights @ np.sum(targets * np.log(floored(p, weights)), axis=1)
        shifts = np.append(0.0, theta[1:])
        return float(fit + 0.5 * np.sum((shifts - shifts.mean()) ** 2)) / weights.sum()

    start = np.append(1.0, np.zeros(c - 1 if offsets else 0))
    theta = scipy.optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-9}).x
    return theta[0] / scale, np.append(0.0, theta[1:] if offsets else np.zeros(c - 1))


@pytest.mark.pairwise
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize(
    "fixed", [{}, {"gamma": 40.0, "alpha": 1e-3}], ids=["tuned", "over-fitted"]
)
def test_probabilities_decisions_and_labels_agree(
    estimator: type, classes: int, calibration: str | None, fixed: dict[str, float]
) -> None:
    X, y = overlapping(60, classes)
    model = estimator(calibration=calibration, **fixed).fit(X, y)
    fresh = np.vstack([X, 2 * overlapping(200, classes, seed=1)[0]])
    decision = model.decision_function(fresh)
    best = (decision > 0).astype(int) if classes == 2 else decision.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(fresh), model.classes_[best])
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    if calibration is None and estimator is LeastSquaresSVC:
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "predict_log_proba")
        return
    p = model.predict_proba(fresh)
    assert p.shape == (len(fresh), classes)
    assert np.all((p >= 0) & (p <= 1))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(p.argmax(axis=1), best)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.predict_log_proba(fresh), np.log(p), rtol=1e-12)


def test_the_discriminant_without_calibration_gives_the_posterior_of_lda() -> None:
    X, y = overlapping(60, 3)
    model = KernelFisherDiscriminant(calibration=None).fit(X, y)
    assert model.temperature_ == 1.0
    np.testing.assert_allclose(
        model.predict_proba(X),
        scipy.special.softmax(model.decision_function(X), axis=1),
        rtol=1e-12,
    )


@pytest.mark.pairwise
@pytest.mark.parametrize("cv", [None, StratifiedKFold(4)], ids=["leave-one-out", "folds"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("calibration", ["temperature", "sigmoid"])
def test_temperature_and_sigmoid_minimise_the_cross_entropy_of_held_out_decisions(
    estimator: type, classes: int, weighted: bool, cv: Any, calibration: str
) -> None:
    X, y = overlapping(50, classes)
    weights = np.random.default_rng(2).uniform(0.3, 3.0, size=50) if weighted else None
    model = estimator(calibration=calibration, cv=cv, gamma=0.3, alpha=0.5).fit(
        X, y, sample_weight=weights
    )
    plain = raw(model, X, y, sample_weight=weights)
    labels = np.searchsorted(model.classes_, y)
    w = np.ones(50) if weights is None else weights
    beta, offsets = minimised(plain.held_out_decision_, labels, w, calibration == "sigmoid")
    assert 1 / model.temperature_ == pytest.approx(beta, rel=1e-4)
    fresh = overlapping(30, classes, seed=3)[0]
    moved = model.decision_function(fresh) - plain.decision_function(fresh)
    np.testing.assert_allclose(  # held-out decisions carry the threshold of the others
        model.held_out_decision_, plain.held_out_decision_ + moved[0], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        moved,
        np.broadcast_to((offsets[1] if classes == 2 else offsets) / beta, moved.shape),
        rtol=1e-3,
        atol=1e-5,
    )
    expected = scipy.special.softmax(
        beta * columns(plain.decision_function(fresh)) + offsets, axis=1
    )
    np.testing.assert_allclose(
        model.predict_proba(fresh), floored(expected, w), rtol=1e-3, atol=1e-5
    )
    assert model.floor_ == pytest.approx(0.5 / (w.sum() + 1.0) / classes, rel=1e-12)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_isotonic_is_scikit_learns_on_held_out_decisions(estimator: type) -> None:
    X, y = overlapping(70, 2)
    model = estimator(calibration="isotonic", gamma=0.3, alpha=0.5).fit(X, y)
    plain = raw(model, X, y)
    steps = IsotonicRegression(out_of_bounds="clip").fit(
        plain.held_out_decision_, y == model.classes_[1]
    )
    fresh = overlapping(50, 2, seed=3)[0]
    least = 0.5 / 71
    knots = np.clip(steps.y_thresholds_, least, 1 - least)  # half a row's worth off certainty
    expected = np.interp(plain.decision_function(fresh), steps.X_thresholds_, knots)
    np.testing.assert_allclose(model.predict_proba(fresh)[:, 1], expected, rtol=1e-6)
    moved = model.decision_function(fresh) - plain.decision_function(fresh)
    np.testing.assert_allclose(moved, moved[0], rtol=1e-9)
    np.testing.assert_allclose(
        model.held_out_decision_, plain.held_out_decision_ + moved[0], rtol=1e-9, atol=1e-9
    )
    order = np.argsort(model.decision_function(fresh))
    assert np.all(np.diff(model.predict_proba(fresh)[order, 1]) >= 0)


@pytest.mark.parametrize("seed", range(5))
def test_even_odds_separate_probabilities_above_one_half(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=40)
    steps = isotonic_steps(
        scores,
        rng.normal(size=40) < scores + 3 * (seed == 3) - 3 * (seed == 4),
        rng.uniform(0.5, 2, size=40),
    )
    probed = np.linspace(-5, 5, 4001)
    np.testing.assert_array_equal(probed > even_odds(steps), np.interp(probed, *steps) > 0.5)


@pytest.mark.pairwise
@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_weight_two_equals_a_repeated_row(estimator: type, classes: int, calibration: str) -> None:
    X, y = overlapping(40, classes)
    counts = np.random.default_rng(3).integers(1, 4, size=40)
    rows = np.repeat(np.arange(40), counts)
    model = estimator(calibration=calibration, gamma=0.3, alpha=0.5, cv=LeaveOneGroupOut())
    p = model.fit(X, y, sample_weight=counts, groups=np.arange(40)).predict_proba(X)
    np.testing.assert_allclose(
        p, model.fit(X[rows], y[rows], groups=rows).predict_proba(X), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic"])
def test_rows_of_weight_zero_do_not_calibrate(calibration: str) -> None:
    X, y = overlapping(40, 2)
    wrong = np.where(y == "reed", "fern", "reed")
    model = KernelFisherDiscriminant(calibration=calibration, gamma=0.3, alpha=0.5)
    expected = model.fit(X, y).predict_proba(X)
    both = model.fit(
        np.vstack([X, X]), np.append(y, wrong), sample_weight=np.repeat([1.0, 0.0], 40)
    ).predict_proba(X)
    np.testing.assert_allclose(both, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("generator", ["torus", "waveform"])
def test_probabilities_on_fresh_rows_come_near_the_true_posterior(
    estimator: type, generator: str
) -> None:
    make, bayes = {"torus": (make_torus, torus_bayes), "waveform": (make_waveform, waveform_bayes)}[
        generator
    ]
    X, y = make(200, random_state=0)
    fresh, truth = make(3000, random_state=1)
    best = log_loss(truth, scipy.special.expit(bayes(fresh)))
    prior = log_loss(truth, np.full(len(truth), np.mean(y > 0)))
    for calibration in ("temperature", "sigmoid", "isotonic"):
        loss = log_loss(truth, estimator(calibration=calibration).fit(X, y).predict_proba(fresh))
        assert loss < best + 0.3 * (prior - best), calibration


@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic"])
def test_calibration_repairs_an_over_fitted_posterior(calibration: str) -> None:
    """At tiny alpha the training projections collapse, and the LDA posterior is all but certain."""
    X, y = make_waveform(150, random_state=0)
    fresh, truth = make_waveform(2000, random_state=1)
    fixed = {"gamma": 0.05, "alpha": 1e-3}
    uncalibrated = log_loss(
        truth, KernelFisherDiscriminant(calibration=None, **fixed).fit(X, y).predict_proba(fresh)
    )
    loss = log_loss(
        truth,
        KernelFisherDiscriminant(calibration=calibration, **fixed).fit(X, y).predict_proba(fresh),
    )
    assert loss < min(0.6, 0.5 * uncalibrated)


@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic"])
@pytest.mark.parametrize("n_positive", [30, 20, 6])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_a_kernel_that_learns_by_heart_gives_no_confidence(
    estimator: type, n_positive: int, calibration: str
) -> None:
    """Labels at random, K near the identity: training rows are all fitted, held-out decisions know
    the class sizes and nothing else.

    Leaving a row out lowers the share of its own class, so these decisions are worse than useless;
    the class sizes must remain.
    """
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 8)), rng.permutation(np.arange(60) < n_positive).astype(int)
    model = estimator(gamma=30.0, alpha=1e-2, calibration=calibration).fit(X, y)
    p = model.predict_proba(rng.normal(size=(500, 8)))[:, 1]
    share = n_positive / 60
    slack = (
        0.5 if estimator is LeastSquaresSVC and calibration == "temperature" else 0.12
    )  # one parameter cannot reach every share
    assert np.all(np.abs(p - share) < slack)
    assert (
        log_loss(
            rng.permutation(np.arange(500) < 500 * share),
            np.clip(p, 1e-12, 1),
            labels=[False, True],
        )
        < 0.75
    )


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_perfect_separation_keeps_probabilities_finite_and_off_certainty(
    estimator: type, calibration: str
) -> None:
    X, y = overlapping(40, 2)
    X = X + 30.0 * (y == "reed")[:, None]
    p = estimator(calibration=calibration).fit(X, y).predict_proba(X)
    assert np.all(np.isfinite(p))
    own = p[np.arange(40), np.searchsorted(np.unique(y), y)]
    assert np.all((own > 0.9) & (own < 1.0))


@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic"])
def test_another_alpha_is_calibrated_again(calibration: str) -> None:
    X, y = overlapping(50, 3)
    model = LeastSquaresSVC(calibration=calibration, gamma=0.3, alpha=0.5)
    p = model.fit(X, y).at(4.0).predict_proba(X)
    np.testing.assert_allclose(
        p, model.set_params(alpha=4.0).fit(X, y).predict_proba(X), rtol=1e-7, atol=1e-9
    )


def small_training_set(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> list[np.ndarray]:
    """Standardised rows and labels to train and to test."""
    X, X_test, y, y_test = train_test_split(X, y, train_size=n, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return [scaler.transform(X), y, scaler.transform(X_test), y_test]


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_nearly_separable_classes_of_few_rows_are_told_apart_without_false_certainty(
    estimator: type,
) -> None:
    """Decisions of iris grow to 1e5; a bound on the temperature must grow with them."""
    losses = []
    for seed in range(4):
        X, y, fresh, truth = small_training_set(*load_iris(return_X_y=True), 75, seed)
        losses.append(log_loss(truth, estimator().fit(X, y).predict_proba(fresh)))
    assert np.mean(losses) < 0.25
    assert np.max(losses) < 0.5


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_the_top_probability_of_ten_classes_is_as_high_as_the_accuracy(estimator: type) -> None:
    X, y = load_digits(return_X_y=True)
    X, fresh, y, truth = train_test_split(X, y, train_size=150, stratify=y, random_state=0)
    p = estimator().fit(X, y).predict_proba(fresh)
    accuracy = np.mean(p.argmax(axis=1) == truth)
    assert accuracy > 0.9
    assert np.mean(p.max(axis=1)) == pytest.approx(accuracy, abs=0.08)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_a_rare_class_of_few_rows_is_predicted_no_worse_than_by_its_share(estimator: type) -> None:
    law = {"n_features": 12, "n_informative": 4, "weights": [0.88], "class_sep": 1.2}
    losses, shares = [], []
    for seed in range(4):
        X, y = make_classification(1060, random_state=seed, **law)
        X, y, fresh, truth = small_training_set(X, y, 60, seed)
        losses.append(log_loss(truth, estimator().fit(X, y).predict_proba(fresh)))
        shares.append(log_loss(truth, np.full(len(truth), np.mean(y))))
    assert np.mean(losses) < np.mean(shares)


@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_no_probability_is_below_what_the_number_of_rows_allows(
    estimator: type, classes: int, calibration: str
) -> None:
    """A linear kernel's decisions grow with the distance from the training rows."""
    X, y = overlapping(60, classes)
    X = X + 10.0 * (y == "reed")[:, None]
    weights = np.repeat([1.0, 2.0], 30)
    model = estimator("linear", calibration=calibration).fit(X, y, sample_weight=weights)
    p = model.predict_proba(np.vstack([1e6 * X, -1e6 * X]))
    floor = 0.5 / (91.0 * classes)
    assert model.floor_ == pytest.approx(floor, rel=1e-12)
    assert p.min() >= floor * (1.0 - 1e-9)
    if calibration != "isotonic":
        assert p.min() == pytest.approx(floor, rel=1e-6)  # it is reached


def one_far_off(score: float) -> tuple[np.ndarray, np.ndarray]:
    """Decisions that separate 60 rows well, but for one with a huge score on the wrong side."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    decision = np.where(labels == 1, 1.0, -1.0) * rng.uniform(15.0, 40.0, size=60)
    decision[0] = score
    return decision, labels


@pytest.mark.parametrize("offsets", [False, True])
def test_one_row_far_on_the_wrong_side_does_not_make_all_probabilities_vague(offsets):
    decision, labels = one_far_off(1700.0)
    found = calibrate(decision, labels, np.ones(60), offsets=offsets)
    u = np.column_stack([np.zeros(60), found.beta * decision]) + found.beta * found.shift
    p = scipy.special.softmax(u, axis=1)[np.arange(60), labels]
    assert np.median(p) > 0.95
    if not offsets:  # the better of both minima, by a search along the line
        betas = np.geomspace(1e-6, 10.0, 4000)
        wrong = [cross_entropy(decision, labels, beta) for beta in betas]
        assert cross_entropy(decision, labels, found.beta) <= min(wrong) + 1e-9


def test_a_second_minimum_that_is_hardly_better_is_not_taken():
    """One row of 60 far on the wrong side, a few at the threshold: infinitely sharp probabilities
    are better than vague ones by less than log 60.
    """
    labels = np.arange(60) % 2
    margins = np.append([-8.5, 0.002, 0.004, 0.003], np.linspace(2.0, 15.0, 56))
    decision = np.where(labels == 1, margins, -margins)
    betas = np.geomspace(1e-3, 1e5, 8000)
    losses = np.array([cross_entropy(decision, labels, beta) for beta in betas])
    near, *_, far = np.flatnonzero((losses[1:-1] < losses[:-2]) & (losses[1:-1] < losses[2:])) + 1
    assert 0.1 < 60 * (losses[near] - losses[far]) < np.log(60)
    found = calibrate(decision, labels, np.ones(60), offsets=False)
    assert found.beta == pytest.approx(betas[near], rel=0.01)


@pytest.mark.parametrize("n", [20, 200])
def test_probabilities_that_doubt_already_are_doubted_by_a_quarter_of_a_row(n: int) -> None:
    """All rows right with .95: where classes are separable, the temperature makes them sharper."""
    labels = np.arange(n) % 2
    log_p = np.log(np.where(labels[:, None] == np.arange(2), 0.95, 0.05))
    found = calibrate(log_p, labels, np.ones(n), offsets=False, floored=True)
    doubt = 0.25 / (n + 2)
    np.testing.assert_allclose(found.beta, np.log((1 - doubt) / doubt) / np.log(19.0), rtol=1e-9)


# ---- temperatures of class scores ----------------------------------------------------------------


def inverse_temperature(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
) -> float:
    return calibrate(
        scores, labels, np.ones(len(labels)) if weights is None else weights, offsets=False
    ).beta


def noisy_scores(columns: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    labels = rng.integers(max(columns, 2), size=n)
    if columns == 1:
        return 3.0 * (2.0 * labels - 1.0) + 6.0 * rng.normal(size=n), labels
    return 4.0 * np.eye(columns)[labels] + 3.0 * rng.normal(size=(n, columns)), labels


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_inverse_temperature_minimises_the_cross_entropy(columns, weighted):
    scores, labels = noisy_scores(columns)
    weights = np.random.default_rng(8).uniform(0.1, 4.0, size=len(labels)) if weighted else None
    best, plain = (
        scipy.optimize.minimize_scalar(
            lambda t, own=own: cross_entropy(scores, labels, np.exp(t), weights, own),
            bounds=(-8, 8),
            method="bounded",
            options={"xatol": 1e-10},
        )
        for own in (True, False)
    )
    beta = inverse_temperature(scores, labels, weights)
    batched = inverse_temperatures(
        class_scores(scores)[None], labels, np.ones(len(labels)) if weights is None else weights
    )
    assert np.log(batched) == pytest.approx([plain.x], abs=1e-6)
    assert np.log(beta) == pytest.approx(best.x, abs=1e-6)
    assert cross_entropy(scores, labels, beta, weights) <= best.fun + 1e-15


def test_inverse_temperature_is_finite_for_separable_scores_and_flat_for_useless_ones():
    labels = np.array([0, 1, 1, 0])
    separable = np.array([-2.0, 1.0, 3.0, -0.5])
    assert 0.1 < inverse_temperature(separable, labels, None) < 10.0  # soft targets hold it
    useless = probabilities(-separable, inverse_temperature(-separable, labels, None))
    np.testing.assert_allclose(useless, 0.5, atol=1e-4)
    assert inverse_temperature(np.zeros(4), labels, None) > 0.0


@pytest.mark.pairwise
@pytest.mark.parametrize("unit", [1e-12, 1e6, 1e12])
@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("kind", ["overlapping", "separable", "useless"])
@pytest.mark.parametrize("offsets", [False, True])
def test_the_unit_of_the_decisions_does_not_matter(kind, columns, unit, offsets):
    """Discriminant decisions grow without bound as alpha falls."""
    scores, labels = noisy_scores(columns)
    if kind != "overlapping":
        clear = 2.0 * labels - 1.0 if columns == 1 else np.eye(columns)[labels]
        scores = (9.0 if kind == "separable" else -9.0) * clear + 0.1 * scores

    def calibrated(scores):
        found = calibrate(scores, labels, np.ones(len(labels)), offsets=offsets)
        logits = found.beta * class_scores(scores) + found.beta * found.shift
        return scipy.special.softmax(logits, axis=1)

    np.testing.assert_allclose(calibrated(unit * scores), calibrated(scores), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("outlier", [1.0, 1e4, 1e8])
def test_the_bracket_of_the_temperature_always_holds_the_best_one(outlier):
    """Whatever the scores, the loss rises on both sides of what is found."""
    scores, labels = noisy_scores(3)
    scores[0] *= outlier
    labels[0] = np.argmax(scores[0])
    beta = inverse_temperature(scores, labels, None)
    around = [cross_entropy(scores, labels, factor * beta) for factor in (0.9, 1.0, 1.1)]
    assert around[1] < min(around[0], around[2])


def test_weights_of_the_temperature_are_repetitions():
    scores, labels = noisy_scores(3, n=40)
    weights = np.random.default_rng(9).integers(1, 4, size=40)
    repeated = np.repeat(np.arange(40), weights)
    expected = inverse_temperature(scores[repeated], labels[repeated], None)
    assert inverse_temperature(scores, labels, weights.astype(float)) == pytest.approx(
        expected, rel=1e-10
    )


def test_rows_without_a_score_of_their_class_are_left_out_of_the_temperature():
    scores, labels = noisy_scores(3)
    spoilt = np.vstack([scores, [[-np.inf, 0.0, 1.0], [np.nan, 1.0, 2.0]]])
    expected = inverse_temperature(scores, labels, None)
    assert inverse_temperature(spoilt, np.append(labels, [0, 1]), np.ones(62)) == pytest.approx(
        expected, rel=1e-12
    )
    assert inverse_temperature(np.full((2, 2), np.nan), np.array([0, 1]), None) == 1.0
    absent = scores.copy()
    absent[
        np.flatnonzero(labels != 2)[:9], 2
    ] = -np.inf  # a class absent from the training rows has probability 0
    beta = inverse_temperature(absent, labels, None)
    assert cross_entropy(absent, labels, beta) <= min(
        cross_entropy(absent, labels, factor * beta) for factor in (0.99, 1.01)
    )


def test_probabilities_are_a_softmax_of_the_class_scores():
    scores, _ = noisy_scores(1)
    np.testing.assert_allclose(
        probabilities(scores, 0.7)[:, 1], scipy.special.expit(0.7 * scores), rtol=1e-12
    )
    scores, _ = noisy_scores(3)
    scores[0, 1] = -np.inf
    P = probabilities(scores, 0.5)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert P[0, 1] == 0.0
    np.testing.assert_array_equal(P.argmax(axis=1), scores.argmax(axis=1))


def test_temperatures_of_many_candidates_are_those_of_each_alone():
    """Good, useless, misleading and separable scores side by side, one class without a score."""
    rng = np.random.default_rng(3)
    labels = rng.integers(3, size=40)
    own = np.eye(3)[labels]
    candidates = np.stack(
        [
            2.0 * own + rng.normal(size=(40, 3)),
            rng.normal(size=(40, 3)),
            -own,
            1e6 * own,
            np.where(labels[:, None] == 2, 1.0, [1.0, 1.0, -np.inf]) * (own + 0.1),
        ]
    )
    weights = rng.exponential(size=40)
    together = inverse_temperatures(candidates, labels, weights)
    alone = [inverse_temperatures(one[None], labels, weights)[0] for one in candidates]
    np.testing.assert_allclose(together, alone, rtol=1e-11)
    for scores, beta in zip(candidates[:2], together[:2], strict=True):
        loss = [
            cross_entropy(scores, labels, b * beta, weights, with_floor=False)
            for b in (0.99, 1, 1.01)
        ]
        assert loss[1] < min(loss[0], loss[2])
