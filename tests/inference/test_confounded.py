"""Permutations with confounds: what moves, and scores equal to those of literal fits."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, LeaveOneGroupOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    RefitWarning,
    ValidityWarning,
    cross_val_score,
    positions,
)
from fitonce.inference import permutation_test_score
from fitonce.inference.confounded import ConditionalExchange
from fitonce.inference.evaluation import Evaluation
from fitonce.inference.question import Question

N = 36
rng = np.random.default_rng(0)
SITE = np.array(["a", "b", "c"])[rng.permutation(N) % 3]
AGE = rng.normal(50, 10, N)
X = rng.normal(size=(N, 3)) + 0.1 * (AGE - 50)[:, None] + (SITE == "a")[:, None]
Y = X[:, 0] + 0.1 * AGE + rng.normal(size=N)
CLASSES = np.digitize(Y, np.quantile(Y, [0.35, 0.7]))
TABLE = pd.DataFrame({"age": AGE, "site": SITE})
MODELS = {
    "fisher": KernelFisherDiscriminant(gamma=0.2, alpha=0.5),
    "svc, include": LeastSquaresSVC(gamma=0.2, alpha=0.5, confounding="include"),
    "dual": KernelFisherDiscriminant(gamma=0.2, alpha=0.5, penalty="dual", cv=KFold(2)),
    "landmarks": LeastSquaresSVC(gamma=0.2, alpha=0.5, landmarks=X[:8]),
    "tuned": make_pipeline(StandardScaler(), LeastSquaresSVC(gamma=0.2, alpha=[0.1, 5.0])),
    "ridge": KernelRidge(0.5, gamma=0.2),
}


@pytest.mark.parametrize(
    ("name", "confounds"),
    [("fisher", "site"), ("ridge", "site"), *((name, "both") for name in MODELS)],
)
@pytest.mark.filterwarnings("ignore::fitonce.inference.exchange.ValidityWarning")
def test_null_scores_equal_those_of_literal_fits(name, confounds, monkeypatch):
    y = Y if name == "ridge" else CLASSES
    given = {"params": {"confounds": SITE if confounds == "site" else TABLE}}
    options = {"cv": 3, "n_permutations": 6, "random_state": 1, "exact": False, **given}
    test = permutation_test_score(MODELS[name], X, y, **options)
    np.testing.assert_allclose(
        test.score, cross_val_score(MODELS[name], X, y, cv=3, **given).mean(), rtol=1e-9
    )
    if name != "dual":
        assert test.route.name == "per-fold"
    monkeypatch.setattr(Evaluation, "_per_fold", lambda *args: None)
    with pytest.warns(RefitWarning):
        literal = permutation_test_score(MODELS[name], X, y, **options)
    np.testing.assert_allclose(
        test.permutation_scores, literal.permutation_scores, rtol=1e-8, atol=1e-10
    )


def test_a_site_left_out_with_sites_removed():
    test = permutation_test_score(
        MODELS["fisher"],
        X,
        CLASSES,
        groups=SITE,
        cv=LeaveOneGroupOut(),
        n_permutations=9,
        params={"confounds": SITE},
    )
    assert 0 < test.pvalue <= 1 and np.isfinite(test.permutation_scores).all()


def test_labels_move_within_levels_and_residuals_around_the_fit():
    question = Question.of(MODELS["fisher"], X, CLASSES, None, 3, None, None, SITE)
    for _ in range(5):
        moved = CLASSES[question.exchange.draw(np.random.RandomState(_)).indices]
        for level in "abc":
            np.testing.assert_array_equal(
                np.bincount(moved[level == SITE]), np.bincount(CLASSES[level == SITE])
            )
    with pytest.warns(ValidityWarning, match="approximate"):
        question = Question.of(MODELS["ridge"], X, Y, None, 3, None, None, TABLE)
    C = np.column_stack([AGE, *(level == SITE for level in "abc")])
    fitted = LinearRegression().fit(C, Y).predict(C)
    drawn = question.exchange.draw(np.random.RandomState(0))
    np.testing.assert_allclose(
        question.permuted(drawn), fitted + (Y - fitted)[drawn.indices], rtol=1e-9
    )


def test_the_chain_draws_labellings_by_their_probability():
    """Of four rows, all labellings with their probabilities, against 4,000 draws."""
    labels = np.array([0, 0, 1, 2])
    q = np.random.default_rng(3).dirichlet(np.ones(3), size=4)
    exchange = ConditionalExchange(labels, [np.arange(4)], np.log(q))
    exact: dict[tuple[int, ...], float] = {}
    for order in permutations(range(4)):
        drawn = tuple(labels[list(order)].tolist())
        exact[drawn] = float(np.prod(q[np.arange(4), list(drawn)]))
    total = sum(exact.values())
    random, draws = np.random.RandomState(0), 4000
    counts = dict.fromkeys(exact, 0)
    for _ in range(draws):
        counts[tuple(labels[exchange.draw(random).indices].tolist())] += 1
    expected = np.array([exact[key] / total for key in exact])
    found = np.array([counts[key] / draws for key in exact])
    assert np.all(np.abs(found - expected) < 4.5 * np.sqrt(expected * (1 - expected) / draws))


@pytest.mark.filterwarnings("ignore::fitonce.inference.exchange.ValidityWarning")
def test_what_tears_labels_and_confounds_apart_is_refused():
    with pytest.raises(ValueError, match="does not keep the association"):
        Question.of(MODELS["fisher"], X, CLASSES, None, 3, None, "shift", SITE)
    with pytest.raises(ValueError, match="cosets"):
        Question.of(MODELS["fisher"], X, CLASSES, None, 3, "cosets", None, TABLE)
    conditional = Question.of(
        MODELS["fisher"], X, CLASSES, None, StratifiedKFold(3), None, None, AGE
    )
    assert conditional.mode == "within-folds"
    with pytest.raises(ValueError, match="unequal probabilities"):
        next(conditional.exchange.others())


def nonlinear(case, n=100, seed=0):
    """y and features that follow confounds in the same way, and nothing else; codes as numbers."""
    random = np.random.default_rng(seed)
    Z = random.normal(size=(n, 2))
    codes = random.integers(5, size=n)
    effect = {
        "square": Z[:, 0] ** 2,
        "interaction": Z[:, 0] * Z[:, 1],
        "cubic": Z[:, 0] ** 3 - 3.0 * Z[:, 0],
        "wave": np.sin(3.0 * Z[:, 0]),
        "codes": np.array([0.0, 1.5, -1.0, 1.0, -0.5])[codes],
        "straight": Z @ [1.0, -1.0],
    }[case]
    given = codes.astype(float) if case == "codes" else Z
    return given, effect + random.normal(size=n), effect[:, None] + random.normal(size=(n, 3))


def warned_of(words, *given):
    with pytest.warns(ValidityWarning, match="approximate") as caught:
        Question.of(*given)
    return any(words in str(warning.message) for warning in caught)


@pytest.mark.parametrize("case", ["square", "interaction", "cubic", "wave", "codes", "straight"])
@pytest.mark.parametrize("classes", [False, True])
def test_confounds_that_act_nonlinearly_are_warned_of(case, classes):
    rates = []
    for seed in range(4):
        Z, y, features = nonlinear(case, 160 if classes else 100, seed)
        model, target = (MODELS["fisher"], y > 0) if classes else (MODELS["ridge"], y)
        rates.append(warned_of("nonlinearly", model, features, target, None, 3, None, None, Z))
    assert sum(rates) <= 1 if case == "straight" else sum(rates) >= 3


def test_a_curve_whose_columns_are_given_is_not_warned_of():
    Z, y, features = nonlinear("square")
    squares = np.column_stack([Z, Z**2])
    assert not warned_of("nonlinearly", MODELS["ridge"], features, y, None, 3, None, None, squares)


def test_codes_that_are_numbers_are_asked_about():
    Z, y, features = nonlinear("codes")
    given = MODELS["ridge"], features, y, None, 3, None, None
    table = pd.DataFrame({"clinic": Z, "age": np.random.default_rng(1).normal(size=len(Z))})
    assert warned_of("'clinic' looks like codes: it has 5 whole numbers", *given, table)
    alone = np.where(np.arange(len(Z)) == 0, 9.0, Z)  # a number on one row is no category
    two = (Z == 1).astype(float)
    for numbers in (Z + 0.5, np.arange(len(Z)) // 2, two, alone, table["age"]):
        other = pd.DataFrame({"age": table["age"], "other": numbers})
        assert not warned_of("looks like codes", *given, other)
    table["clinic"] = table["clinic"].astype(str)
    assert not warned_of("looks like codes", *given, table)


def test_positions_remove_confounds_at_every_place():
    places = np.stack([X, X[:, ::-1] + rng.normal(size=X.shape)], axis=2)
    model = KernelFisherDiscriminant("linear", alpha=1.0)
    given = {"cv": 3, "params": {"confounds": SITE}}
    scores = positions.cross_val_score(model, places, CLASSES, **given)
    for place in range(2):
        alone = cross_val_score(model, places[:, :, place], CLASSES, **given)
        np.testing.assert_allclose(scores[place], alone)
    few = {"n_permutations": 5, "exact": False}
    test = positions.permutation_test(model, places, CLASSES, **few, **given)
    np.testing.assert_allclose(test.score, scores.mean(axis=1))
    first = permutation_test_score(model, places[:, :, 0], CLASSES, **few, **given)
    np.testing.assert_allclose(test.null[:, 0], first.permutation_scores)
    assert test.exchange == "within levels of the confounds"
    with pytest.raises(ValueError, match="generalize does not support confounds"):
        positions.generalize(model, places, CLASSES, **given)
