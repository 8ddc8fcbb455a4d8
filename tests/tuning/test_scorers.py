"""Criteria of scikit-learn, by name or as scorer objects.

Against literal refits and scikit-learn's metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.kernel_ridge
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    explained_variance_score,
    f1_score,
    fbeta_score,
    log_loss,
    make_scorer,
    matthews_corrcoef,
    mean_absolute_error,
    mean_squared_error,
    median_absolute_error,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import (
    KFold,
    PredefinedSplit,
    cross_val_score,
)
from test_tuning import Literal, Setting, data_for, literal_score, output_of, with_temperature

import fitonce
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from problems import ESTIMATORS

GAMMA = 0.3
ALPHAS = (0.003, 0.03, 0.3, 3.0, 30.0)


def named(h: Literal) -> tuple[np.ndarray, np.ndarray]:
    """Predicted labels, and the classes."""
    classes = np.array(["fern", "moss", "reed"])[: h.scores.shape[1]]
    return classes[h.scores.argmax(axis=1)], classes


def by_label(metric: Callable[..., float], **options: Any) -> Callable[[Literal], float]:
    return lambda h: metric(h.y, named(h)[0], sample_weight=h.weights, **options)


def by_number(metric: Callable[..., float], sign: int = 1) -> Callable[[Literal], float]:
    """Weights of one are left out: older scikit-learn has another median with them than without."""

    def score(h: Literal) -> float:
        weights = None if np.all(h.weights == 1.0) else h.weights
        return sign * metric(h.y, output_of(h), sample_weight=weights)

    return score


def by_probability(metric: Callable[..., float], sign: int = 1) -> Callable[[Literal], float]:
    def score(h: Literal) -> float:
        options = {"labels": named(h)[1], "sample_weight": h.weights}
        return sign * metric(h.y, with_temperature(h), **options)

    return score


def ranked(h: Literal) -> float:
    """The area under the curve of two classes, or the mean over classes against the rest."""
    if h.scores.shape[1] == 2:
        return roc_auc_score(h.y, output_of(h), sample_weight=h.weights)
    options = {"multi_class": "ovr", "sample_weight": h.weights}
    return roc_auc_score(h.y, with_temperature(h), **options)


F2 = make_scorer(fbeta_score, beta=2.0, pos_label="moss")
LABELS: dict[Any, Callable[[Literal], float]] = {
    "accuracy": by_label(accuracy_score),
    "balanced_accuracy": by_label(balanced_accuracy_score),
    "f1_macro": by_label(f1_score, average="macro"),
    "matthews_corrcoef": by_label(matthews_corrcoef),
    "neg_log_loss": by_probability(log_loss, -1),
    make_scorer(f1_score, average="weighted", pos_label=None): by_label(
        f1_score, average="weighted"
    ),
}
TWO_LABELS = {
    "roc_auc": ranked,
    F2: by_label(fbeta_score, beta=2.0, pos_label="moss"),
    make_scorer(roc_auc_score, response_method="decision_function"): ranked,
}
THREE_LABELS = {"roc_auc_ovr": ranked}
NUMBERS: dict[Any, Callable[[Literal], float]] = {
    "r2": by_number(r2_score),
    "neg_mean_absolute_error": by_number(mean_absolute_error, -1),
    "neg_mean_squared_error": by_number(mean_squared_error, -1),
    "explained_variance": by_number(explained_variance_score),
    make_scorer(median_absolute_error, greater_is_better=False): by_number(
        median_absolute_error, -1
    ),
}
SETTINGS = (
    Setting(KernelFisherDiscriminant, 2),
    Setting(KernelFisherDiscriminant, 3, "dual", True, 3),
    Setting(LeastSquaresSVC, 2, weighted=True),
    Setting(LeastSquaresSVC, 2, "dual", folds=3),
    Setting(LeastSquaresSVC, 3, folds=3),
    Setting(KernelRidge, 1, weighted=True),
    Setting(KernelRidge, 2, "dual", folds=3),
)


def scorers_for(setting: Setting) -> dict[Any, Callable[[Literal], float]]:
    if setting.estimator is KernelRidge:
        return NUMBERS
    return LABELS | (TWO_LABELS if setting.classes == 2 else THREE_LABELS)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("pooled", [True, False], ids=["pooled", "per split"])
def test_a_scorer_chooses_what_a_plain_loop_over_refits_chooses(
    setting: Setting, pooled: bool
) -> None:
    if not pooled and setting.folds is None:
        pytest.skip("splits of one row")
    X, y, weights = setting.data
    chosen = set()
    for criterion, metric in scorers_for(setting).items():
        given = setting, metric, pooled, GAMMA
        expected = [literal_score(*given, alpha) for alpha in ALPHAS]
        model = setting.estimator(
            gamma=GAMMA,
            alpha=ALPHAS,
            penalty=setting.penalty,
            criterion=criterion,
            pooled=pooled,
            cv=setting.cv,
        ).fit(X, y, sample_weight=weights)
        scores = model.cv_results_["mean_test_score"]
        np.testing.assert_allclose(scores, expected, rtol=2e-6, atol=1e-9, err_msg=str(criterion))
        best = max(expected)
        tied = [a for a, score in zip(ALPHAS, expected, strict=True) if score >= best - 1e-9]
        assert model.alpha_ == max(tied), criterion
        assert model.best_params_ == {"alpha": model.alpha_}
        assert model.best_score_ == pytest.approx(best, rel=2e-6, abs=1e-9)
        chosen.add(model.alpha_)
    assert len(chosen) > 1 or setting.estimator is KernelRidge  # criteria do not all agree


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("scoring", ["accuracy", F2], ids=["accuracy", "F2"])
def test_splits_that_test_some_of_the_classes_are_scored_as_scikit_learn_scores_them(
    classes: int, scoring: Any
) -> None:
    """Rows sorted by label: most splits test a single class."""
    if scoring is F2 and classes == 3:
        pytest.skip("two classes only")
    X, y = data_for(LeastSquaresSVC, classes=classes)
    order = np.argsort(y)
    X, y, cv = X[order], y[order], KFold(6)
    model = LeastSquaresSVC(gamma=GAMMA, alpha=ALPHAS, criterion=scoring, pooled=False, cv=cv).fit(
        X, y
    )
    expected = [
        cross_val_score(
            LeastSquaresSVC(gamma=GAMMA, alpha=a), X, y, cv=cv, scoring=scoring, error_score="raise"
        ).mean()
        for a in ALPHAS
    ]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected, rtol=1e-12)


def test_a_class_that_is_never_tested_keeps_its_name() -> None:
    X, y = data_for(LeastSquaresSVC, classes=3)
    cv = PredefinedSplit(np.where(y == "fern", -1, np.arange(len(y)) % 3))
    model = LeastSquaresSVC(gamma=GAMMA, alpha=ALPHAS, criterion="accuracy", cv=cv).fit(X, y)
    for alpha, score in zip(ALPHAS, model.cv_results_["mean_test_score"], strict=True):
        right = [
            LeastSquaresSVC(gamma=GAMMA, alpha=alpha).fit(X[train], y[train]).predict(X[test])
            == y[test]
            for train, test in cv.split()
        ]
        assert score == pytest.approx(np.mean(np.concatenate(right)), rel=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_splits_of_one_row_have_the_accuracy_of_all_rows(estimator: type) -> None:
    X, y = data_for(estimator, classes=3)
    options = {"gamma": GAMMA, "alpha": ALPHAS, "criterion": "accuracy"}
    one, all_rows = (estimator(pooled=pooled, **options).fit(X, y) for pooled in (False, True))
    np.testing.assert_allclose(
        one.cv_results_["mean_test_score"], all_rows.cv_results_["mean_test_score"], rtol=1e-12
    )


def right_answers(y: np.ndarray, decision: np.ndarray) -> float:
    """The accuracy, which only a function that sees the labels as they are can know."""
    return float(np.mean((decision > 0) == (y == "moss")))


@pytest.mark.parametrize(
    "criterion",
    ["accuracy", right_answers, make_scorer(accuracy_score)],
    ids=["name", "function", "scorer"],
)
def test_permutations_that_tune_see_the_labels(criterion: Any) -> None:
    X, y = data_for(LeastSquaresSVC, n=40, seed=2)
    options = {"cv": KFold(3, shuffle=True, random_state=0), "n_permutations": 9}
    results = [
        fitonce.permutation_test_score(
            LeastSquaresSVC(gamma=GAMMA, alpha=ALPHAS, criterion=one),
            X,
            y,
            random_state=0,
            **options,
        )
        for one in ("error", criterion)
    ]
    assert {result.route.name for result in results} == {"per-fold"}
    assert results[0].score == results[1].score
    np.testing.assert_array_equal(results[0].permutation_scores, results[1].permutation_scores)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("criterion", ["acuracy", "Accuracy", "", None, 3, ["accuracy"]], ids=repr)
def test_a_wrong_criterion_is_refused_with_the_options(estimator: type, criterion: Any) -> None:
    own = {"squared_error"}
    if estimator is KernelRidge:
        own |= {"r2"}
    else:
        own |= {"log_loss", "brier", "error", "balanced_error", "auc", "smoothed_error"}
    with pytest.raises(ValueError, match=r"^criterion must be one of") as caught:
        estimator(criterion=criterion).fit(*data_for(estimator))
    message = str(caught.value)
    assert all(f"'{name}'" in message for name in own)
    assert all(word in message for word in ("scikit-learn", "callable", f"got {criterion!r}"))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_criterion_that_wants_an_estimator_is_refused_in_words(estimator: type) -> None:
    def scorer(model: Any, X: Any, y: Any) -> float:
        return float(model.score(X, y))

    with pytest.raises(TypeError, match=r"callable\(y, held_out\).*make_scorer"):
        estimator(criterion=scorer).fit(*data_for(estimator))
    kept = estimator(gamma=0.5, criterion=lambda y, held_out, power=2: 0.0)
    assert kept.fit(*data_for(estimator)).best_score_ == 0.0


# ---- arguments as in scikit-learn ----------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_automatic_gamma_is_one_over_the_number_of_features(estimator: type, kernel: str) -> None:
    X, y = data_for(estimator)
    options = {"kernel": kernel, "penalty": "dual", "alpha": 0.7}
    auto, none, number = (
        estimator(gamma=gamma, **options).fit(X, y) for gamma in ("auto", None, 1.0 / X.shape[1])
    )
    for model in (auto, none):
        assert model.gamma_ == number.gamma_ == 1.0 / X.shape[1]
        np.testing.assert_array_equal(model.dual_coef_, number.dual_coef_)
        assert model.best_score_ == number.best_score_


@pytest.mark.parametrize("gamma", ["auto", None, 0.4])
def test_the_first_argument_of_kernel_ridge_is_alpha(gamma: Any) -> None:
    X, y = data_for(KernelRidge)
    given = None if gamma == "auto" else gamma
    expected = sklearn.kernel_ridge.KernelRidge(0.5, kernel="rbf", gamma=given).fit(X, y)
    model = KernelRidge(0.5, kernel="rbf", gamma=gamma, fit_intercept=False).fit(X, y)
    assert model.alpha == model.alpha_ == 0.5
    np.testing.assert_allclose(model.predict(X + 0.1), expected.predict(X + 0.1), rtol=1e-9)
