"""Permutation tests against scikit-learn and against literal loops, score by score."""

from __future__ import annotations

import itertools
import pickle
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.model_selection
from sklearn.base import clone, is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
    get_scorer,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    check_cv,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, RefitWarning
from fitonce.inference import PermutationTest, ValidityWarning, permutation_test_score
from fitonce.inference import run as run_module
from fitonce.inference.evaluation import Evaluation
from fitonce.inference.keys import Keys
from fitonce.inference.result import Sequential
from fitonce.inference.validity import atoms_of, ignores_y, make_exchange

N = 45
MODELS = {
    "fisher": KernelFisherDiscriminant(gamma=0.2, alpha=0.3),
    "fisher, dual": KernelFisherDiscriminant(gamma=0.2, alpha=0.3, penalty="dual"),
    "fisher, linear": KernelFisherDiscriminant("linear", alpha=2.0),
    "fisher, indefinite": KernelFisherDiscriminant("sigmoid", gamma=0.3, coef0=-1.0, alpha=40.0),
    "LS-SVM": LeastSquaresSVC(gamma=0.2, alpha=0.3),
    "LS-SVM, no bias": LeastSquaresSVC(gamma=0.2, alpha=0.3, fit_intercept=False),
    "LS-SVM, dual": LeastSquaresSVC(gamma=0.2, alpha=0.3, penalty="dual"),
}
of_fisher, of_svm = (partial(permutation_test_score, MODELS[n]) for n in ("fisher", "LS-SVM"))
by_sklearn = sklearn.model_selection.permutation_test_score
SPLITTERS = {
    "KFold": KFold(4),
    "KFold, shuffled": KFold(4, shuffle=True, random_state=3),
    "integer": 3,
    "stratified, shuffled": StratifiedKFold(3, shuffle=True, random_state=1),
    "LeaveOneOut": LeaveOneOut(),
    "ShuffleSplit": ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0),
    "StratifiedShuffleSplit": StratifiedShuffleSplit(2, test_size=0.3, random_state=0),
    "RepeatedKFold": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "RepeatedStratifiedKFold": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "TimeSeriesSplit": TimeSeriesSplit(3),
    "PredefinedSplit": PredefinedSplit(np.arange(N) % 3),
}


def shifted_classes(
    n_classes: int = 3, n: int = N, seed: int = 0, effect: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Unbalanced classes in no order."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, n_classes + 1) + 1.0
    ends = np.round(n * np.cumsum(shares) / shares.sum()).astype(int)
    y = rng.permutation(np.repeat(np.arange(n_classes), np.diff(ends, prepend=0)))
    return rng.normal(size=(n, 4)) + effect * y[:, None], y


def quietly(function: Any, *arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def tied_pvalue(score: float, null: np.ndarray) -> float:
    """scikit-learn's p-value with ties counted as ties whatever the last digit of a mean."""
    return (1 + np.sum(null >= score - 1e-10 * max(1.0, abs(score)))) / (1 + len(null))


def as_sklearn(estimator: Any, y: Any, cv: Any) -> str:
    """The mode that has scikit-learn's draws: "free" is the faster one where both have."""
    checked = check_cv(cv, y, classifier=is_classifier(estimator))
    return "free" if ignores_y(checked) else "resplit"


def compare(estimator: Any, X: Any, y: Any, **options: Any) -> PermutationTest:
    """The same scores as scikit-learn's, and the same observed score by default."""
    options = {"n_permutations": 6, "random_state": 5, **options}
    options.setdefault("permute", as_sklearn(estimator, y, options.get("cv")))
    own = {name: options[name] for name in ("permute", "exact") if name in options}
    expected = quietly(
        by_sklearn, estimator, X, y, **{k: v for k, v in options.items() if k not in own}
    )
    got = quietly(permutation_test_score, estimator, X, y, **options)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-8, atol=1e-10)
    assert got[2] == pytest.approx(tied_pvalue(expected[0], expected[1]), abs=1e-15)
    return got


# ---- scikit-learn, score by score ----------------------------------------------------------------


@pytest.mark.pairwise
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("splitter", ["KFold", "stratified, shuffled"])
def test_models(name: str, n_classes: int, splitter: str) -> None:
    X, y = shifted_classes(n_classes)
    result = compare(MODELS[name], X, y, cv=SPLITTERS[splitter], scoring="accuracy")
    assert result.route.name == "one"
    assert result.mode == ("free" if splitter == "KFold" else "resplit")


@pytest.mark.parametrize(
    ("splitter", "n_classes"), [(name, 2 + i % 2) for i, name in enumerate(SPLITTERS)]
)
def test_splitters(splitter: str, n_classes: int) -> None:
    X, y = shifted_classes(n_classes)
    scoring = "accuracy" if splitter == "LeaveOneOut" else "balanced_accuracy"
    count = 2 if splitter == "LeaveOneOut" else 4
    scored = {"cv": SPLITTERS[splitter], "scoring": scoring, "n_permutations": count}
    compare(MODELS["fisher"], X, y, **scored)


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("targets", [1, 2])
def test_regression(penalty: str, targets: int) -> None:
    X, _ = shifted_classes()
    Y = X[:, :targets] + np.random.default_rng(1).normal(size=(N, targets))
    y = Y[:, 0] if targets == 1 else Y
    model = KernelRidge(gamma=0.2, alpha=0.3, penalty=penalty)
    errors = ("mean_absolute", "root_mean_squared", "mean_squared", "median_absolute")
    for number, scoring in enumerate([None, *(f"neg_{name}_error" for name in errors)]):
        cv = (KFold(4), 3, ShuffleSplit(2, random_state=0))[number % 3]
        result = compare(model, X, y, cv=cv, scoring=scoring, n_permutations=2)
        assert result.mode == "free"


@pytest.mark.parametrize("model", ["fisher", "fisher, dual", "LS-SVM"])
def test_precomputed_kernel_and_weights(model: str) -> None:
    X, y = shifted_classes()
    weights = np.random.default_rng(2).uniform(0.5, 3.0, size=N)
    K = np.exp(-0.2 * np.sum((X[:, None] - X) ** 2, axis=2))
    estimator = clone(MODELS[model]).set_params(kernel="precomputed")
    for cv in (KFold(4), StratifiedKFold(3)):
        compare(estimator, K, y, cv=cv, params={"sample_weight": weights})


def test_string_labels_priors_and_lists() -> None:
    X, y = shifted_classes()
    names = np.array(["b", "c", "a"])[y]
    model = KernelFisherDiscriminant(gamma=0.2, alpha=0.3, priors=[0.5, 0.3, 0.2])
    compare(model, X.tolist(), names.tolist(), cv=KFold(3))


@pytest.mark.parametrize("permute", ["resplit", "free"])
@pytest.mark.parametrize("cv", [GroupKFold(3), LeaveOneGroupOut(), StratifiedGroupKFold(3)])
def test_groups(cv: Any, permute: str) -> None:
    X, y = shifted_classes(2)
    groups = np.arange(N) % 5
    if permute == "free" and isinstance(cv, StratifiedGroupKFold):
        pytest.skip("refused; see test_refused")
    result = compare(MODELS["fisher"], X, y, cv=cv, groups=groups, permute=permute)
    assert result.exchange == "within"


class Weeks(GroupKFold):
    """A splitter that asks for metadata of its own, by keyword."""

    def split(self, X: Any, y: Any = None, *, weeks: Any = None, groups: Any = None) -> Any:
        return super().split(X, y, groups if weeks is None else weeks)


@pytest.mark.parametrize("permute", ["resplit", "cosets"])
def test_groups_of_a_splitter_are_passed_by_keyword(permute: str) -> None:
    X, y = shifted_classes(2)
    given: dict[str, Any] = {"groups": np.arange(N) % 5, "n_permutations": 6, "permute": permute}
    weeks, plain = (quietly(of_fisher, X, y, cv=cv, **given) for cv in (Weeks(3), GroupKFold(3)))
    assert weeks.score == plain.score
    if permute == "resplit":
        compare(MODELS["fisher"], X, y, cv=Weeks(3), **given)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", [None, "scorer", "auc"])
@pytest.mark.parametrize(
    "cv", [GroupKFold(3), Weeks(3), StratifiedKFold(3)], ids=["groups", "weeks", "rows"]
)
def test_metadata_routing(cv: Any, scoring: str | None, weighted: bool) -> None:
    X, y = shifted_classes(2)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=N)
    names = ["sample_weight"] if weighted else []
    names += ["weeks"] * isinstance(cv, Weeks) + ["groups"] * (type(cv) is GroupKFold)
    given = {"sample_weight": weights, "weeks": np.arange(N) % 5, "groups": np.arange(N) % 7}
    with sklearn.config_context(enable_metadata_routing=True):
        if isinstance(cv, Weeks):
            cv = Weeks(3).set_split_request(weeks=True, groups=False)
        weigh = make_scorer(accuracy_score).set_score_request(sample_weight=weighted)
        auc = get_scorer("roc_auc").set_score_request(sample_weight=False)
        model = clone(MODELS["fisher"]).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=weighted)
        params = {name: given[name] for name in names}
        scorer = {None: None, "scorer": weigh, "auc": auc}[scoring]
        result = compare(model, X, y, cv=cv, permute="resplit", scoring=scorer, params=params)
    assert (result.exchange, result.route.name) == ("rows", "one")


def test_metadata_routing_refuses_what_scikit_learn_refuses() -> None:
    X, y = shifted_classes(2)
    weights, groups = np.ones(N), np.arange(N) % 5
    with sklearn.config_context(enable_metadata_routing=True):
        for options in (
            {"groups": groups},
            {"params": {"sample_weight": weights}},
            {"params": {"sample_weight": weights}, "scoring": "accuracy"},
            {"params": {"weeks": groups}},
        ):
            errors = []
            for function in (by_sklearn, permutation_test_score):
                with pytest.raises((ValueError, TypeError)) as error:
                    function(MODELS["fisher"], X, y, **options)
                errors.append(error)
            assert errors[0].type is errors[1].type
            said = [str(error.value).replace("'", "")[:20] for error in errors]
            assert said[0] == said[1]
        whole = of_fisher(
            X, y, cv=GroupKFold(3), params={"groups": groups}, exchange="within", n_permutations=3
        )
    plain = of_fisher(X, y, cv=GroupKFold(3), groups=groups, n_permutations=3)
    np.testing.assert_array_equal(whole.permutation_scores, plain.permutation_scores)


def test_shared_generator() -> None:
    """A RandomState in the splitter is consumed as scikit-learn consumes it."""
    X, y = shifted_classes()
    results = []
    for function in (by_sklearn, partial(permutation_test_score, permute="resplit")):
        cv = KFold(3, shuffle=True, random_state=np.random.RandomState(0))
        results.append(quietly(function, MODELS["fisher"], X, y, cv=cv, n_permutations=5))
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-12)
    assert results[1].mode == "resplit"


@pytest.mark.parametrize("tested", [[0, 0], [0, 0, 1]])
def test_rows_tested_twice(tested: list[int]) -> None:
    X, y = shifted_classes()
    compare(MODELS["fisher"], X, y, cv=[(np.arange(2, N), np.array(tested))], permute="free")


def test_missing_classes_are_fitted() -> None:
    """Two rows of a class: under many permutations a training set lacks it."""
    X, y = shifted_classes()
    y = np.where(np.arange(N) < 2, 7, y)
    result = compare(MODELS["fisher"], X, y, cv=KFold(2), n_permutations=12)
    assert 0 < result.route.fitted_folds < 12


# ---- scores --------------------------------------------------------------------------------------

AVERAGED = ["f1_macro", "f1_micro", "f1_weighted", "precision_macro", "recall_weighted"]
LABEL_SCORES = ["accuracy", "balanced_accuracy", "matthews_corrcoef", "neg_log_loss", *AVERAGED]
OF_TWO = ["f1", "precision", "recall", "roc_auc", "average_precision"]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("permute", ["resplit", "within-folds"])
def test_scores_from_one_pass(n_classes: int, permute: str) -> None:
    X, y = shifted_classes(n_classes)
    model = KernelFisherDiscriminant(gamma=0.2, alpha=0.3, calibration=None)
    names = [*LABEL_SCORES, *(OF_TWO if n_classes == 2 else ["roc_auc_ovr"])]
    options: dict[str, Any] = {"cv": 3, "n_permutations": 2}
    together = quietly(
        permutation_test_score, model, X, y, scoring=names, permute=permute, **options
    )
    if permute == "within-folds":
        scorers, cv = [get_scorer(name) for name in names], StratifiedKFold(3)
        draw = partial(within, blocks=fold_of(y, cv, X))
        every = literal(model, X, y, cv, draw, 2, lambda *given: [s(*given) for s in scorers])
    for number, name in enumerate(names):
        if permute == "resplit":
            expected = quietly(by_sklearn, model, X, y, scoring=name, **options)
        else:
            expected = every[0][number], [null[number] for null in every[1]]
        np.testing.assert_allclose(together.scores[name], expected[0], rtol=1e-8, err_msg=name)
        np.testing.assert_allclose(
            together.null[name], expected[1], rtol=1e-8, atol=1e-10, err_msg=name
        )
        assert together.pvalues[name] == tied_pvalue(expected[0], np.asarray(expected[1]))


def test_calibrated_probabilities_are_fitted() -> None:
    X, y = shifted_classes(2)
    result = compare(MODELS["fisher"], X, y, cv=3, scoring="neg_log_loss", n_permutations=3)
    assert result.route.fitted_folds == 3


def test_scorers_of_the_user() -> None:
    X, y = shifted_classes(2)

    def looks_inside(estimator: Any, X: Any, y: Any) -> float:
        return float(estimator.alpha_ + estimator.score(X, y))

    for scoring in (make_scorer(f1_score, pos_label=0), get_scorer("roc_auc"), looks_inside):
        compare(MODELS["fisher"], X, y, cv=3, scoring=scoring, n_permutations=3)


def test_auc_with_tied_decisions() -> None:
    """Repeated rows tie, and ties count half, whatever rounding makes of them (in a refit, too, it
    tells them apart).
    """
    X, y = shifted_classes(2)
    X = np.round(X[:, :1])

    def tied_auc(y_true: np.ndarray, decision: np.ndarray) -> float:
        return float(roc_auc_score(y_true, np.round(decision, 9)))

    options: dict[str, Any] = {"cv": KFold(3), "n_permutations": 6}
    scorer = make_scorer(tied_auc, response_method="decision_function")
    expected = by_sklearn(MODELS["LS-SVM"], X, y, scoring=scorer, **options)
    got = of_svm(X, y, scoring="roc_auc", permute="free", **options)
    np.testing.assert_allclose(got[1], expected[1], atol=1e-12)


def test_confusion_matrix_and_correlation() -> None:
    X, y = shifted_classes()
    cv = KFold(3)
    options: dict[str, Any] = {"cv": cv, "n_permutations": 4, "permute": "free"}
    result = quietly(of_fisher, X, y, scoring=["accuracy", "confusion_matrix"], **options)
    rng = np.random.RandomState(0)
    for number in range(4):
        permuted = y[rng.permutation(N)]
        predicted = sklearn.model_selection.cross_val_predict(MODELS["fisher"], X, permuted, cv=cv)
        np.testing.assert_array_equal(
            result.null["confusion_matrix"][number], confusion_matrix(permuted, predicted)
        )
    assert result.pvalues["confusion_matrix"].shape == (3, 3)
    with pytest.raises(ValueError, match="first score must be a number"):
        of_fisher(X, y, scoring="confusion_matrix")
    target = X[:, 0] + np.random.default_rng(0).normal(size=N)
    ridge = KernelRidge(gamma=0.2, alpha=0.3)
    result = permutation_test_score(
        ridge, X, target, cv=cv, scoring="correlation", n_permutations=4
    )
    folds = [
        (test, clone(ridge).fit(X[train], target[train]).predict(X[test]))
        for train, test in cv.split(X)
    ]
    assert result.score == pytest.approx(
        np.mean([np.corrcoef(target[test], p)[0, 1] for test, p in folds])
    )


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "matthews_corrcoef", "f1_macro"])
def test_pooled(scoring: str) -> None:
    X, y = shifted_classes(2)
    cv = KFold(4, shuffle=True, random_state=0)
    result = of_fisher(X, y, cv=cv, scoring=scoring, pooled=True, n_permutations=3, permute="free")
    rng = np.random.RandomState(0)
    for number in range(-1, 3):
        permuted = y if number < 0 else y[rng.permutation(N)]
        method = "decision_function" if scoring == "roc_auc" else "predict"
        outputs = sklearn.model_selection.cross_val_predict(
            MODELS["fisher"], X, permuted, cv=cv, method=method
        )
        metric = roc_auc_score if scoring == "roc_auc" else get_scorer(scoring)._score_func
        expected = metric(
            permuted, outputs, **({"average": "macro"} if scoring == "f1_macro" else {})
        )
        assert (result.score if number < 0 else result.permutation_scores[number]) == pytest.approx(
            expected, abs=1e-12
        )
    options: dict[str, Any] = {"cv": cv, "scoring": scoring, "pooled": True, "n_permutations": 2}
    literal_way = quietly(permutation_test_score, LinearDiscriminantAnalysis(), X, y, **options)
    assert np.all(np.isfinite(literal_way.permutation_scores))


# ---- within folds, and the exchanges, against literal loops --------------------------------------


def literal(
    model: Any, X: Any, y: Any, cv: Any, draw: Any, n: int, scoring: Any, groups: Any = None
) -> tuple[Any, list[Any]]:
    """Folds made once from the observed y; labels as drawn; everything refitted.

    A scorer may give several scores.
    """
    splits = list(cv.split(X, y, groups))
    rng = np.random.RandomState(0)
    scorer = get_scorer(scoring)

    def score(permuted: np.ndarray) -> Any:
        return np.mean(
            [
                scorer(clone(model).fit(X[tr], permuted[tr]), X[te], permuted[te])
                for tr, te in splits
            ],
            axis=0,
        )

    return quietly(score, y), [quietly(score, y[draw(rng)]) for _ in range(n)]


def fold_of(y: np.ndarray, cv: Any, X: np.ndarray, groups: Any = None) -> np.ndarray:
    fold = np.empty(len(y), dtype=int)
    for number, (_, test) in enumerate(cv.split(X, y, groups)):
        fold[test] = number
    return fold


def within(rng: np.random.RandomState, blocks: np.ndarray) -> np.ndarray:
    indices = np.arange(len(blocks))
    for block in _in_order_of_patterns(blocks):
        indices[blocks == block] = rng.permutation(indices[blocks == block])
    return indices


def _in_order_of_patterns(fold: np.ndarray) -> list[int]:
    """Test folds of a partition, in the order of their rows' (train, test) patterns.

    Later folds sort first.
    """
    return sorted(np.unique(fold), reverse=True)


@pytest.mark.parametrize("name", ["fisher", "fisher, dual", "LS-SVM"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_within_folds(name: str, n_classes: int) -> None:
    X, y = shifted_classes(n_classes)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    model, draw = MODELS[name], partial(within, blocks=fold_of(y, cv, X))
    result = permutation_test_score(model, X, y, cv=cv, permute="within-folds", n_permutations=5)
    expected = literal(model, X, y, cv, draw, 5, "accuracy")
    np.testing.assert_allclose(result.score, expected[0], atol=1e-12)
    np.testing.assert_allclose(result.permutation_scores, expected[1], atol=1e-12)
    assert result.mode == "within-folds"


def test_within_folds_keeps_class_counts() -> None:
    """Overlapping test sets too: labels move only among rows that all splits treat alike."""
    X, y = shifted_classes(2, n=60)
    cv = ShuffleSplit(2, test_size=0.5, random_state=0)
    splits = list(cv.split(X))
    exchange = make_exchange(None, y, None, atoms_of(splits, 60), True, 2)
    rng = np.random.RandomState(0)
    for _ in range(5):
        permuted = y[exchange.draw(rng).indices]
        assert not np.array_equal(permuted, y)
        for train, test in splits:
            assert permuted[test].sum() == y[test].sum() and permuted[train].sum() == y[train].sum()
    with pytest.raises(ValueError, match="nothing to permute"):
        of_fisher(X, y, cv=LeaveOneOut(), permute="within-folds")


def test_exchange_within_and_rows() -> None:
    X, y = shifted_classes(2)
    groups = np.arange(N) // 9
    within_groups = of_fisher(X, y, cv=KFold(3), groups=groups, n_permutations=4)
    rows = of_fisher(X, y, cv=KFold(3), groups=groups, exchange="rows", n_permutations=4)
    plain = of_fisher(X, y, cv=KFold(3), n_permutations=4)
    np.testing.assert_array_equal(rows.permutation_scores, plain.permutation_scores)
    assert not np.array_equal(within_groups.permutation_scores, plain.permutation_scores)
    assert (within_groups.exchange, rows.exchange, plain.exchange) == ("within", "rows", "rows")


def draws(
    kind: str, y: np.ndarray, groups: Any, classifier: bool = True, n: int = 300
) -> np.ndarray:
    labels = np.unique(y, return_inverse=True)[1]
    exchange = make_exchange(kind, labels, groups, None, classifier, len(np.unique(y)))
    rng = np.random.RandomState(0)
    made = [exchange.draw(rng) for _ in range(n)]
    return np.array([y[r.indices] * (1 if r.signs is None else r.signs) for r in made])


def test_whole_groups_of_one_label() -> None:
    """Subjects keep their rows together; those of equal size trade their labels."""
    groups = np.repeat(np.arange(6), [2, 3, 4, 2, 3, 4])
    y = np.array([0, 0, 0, 1, 1, 1])[groups]
    permuted = draws("whole", y, groups)
    of_group = np.array([[row[groups == g] for g in range(6)] for row in permuted], dtype=object)
    assert all(len(set(labels)) == 1 for row in of_group for labels in row)
    firsts = np.array([[labels[0] for labels in row] for row in of_group])
    assert np.all(firsts[:, :3] + firsts[:, 3:] == 1)
    assert len(np.unique(firsts, axis=0)) == 2**3
    with pytest.warns(ValidityWarning, match="2 of 6 groups have a size that no other group has"):
        draws("whole", y, np.repeat(np.arange(6), [1, 1, 3, 3, 4, 6]))


def test_whole_groups_trade_sequences() -> None:
    groups = np.repeat([3, 1, 2], 4)
    y = np.array([0, 0, 1, 2, 1, 1, 0, 2, 2, 2, 2, 0])
    blocks = {tuple(y[groups == g]) for g in (1, 2, 3)}
    permuted = draws("whole", y, groups)
    assert all({tuple(row[groups == g]) for g in (1, 2, 3)} == blocks for row in permuted)
    assert len(np.unique(permuted, axis=0)) == 6
    with pytest.raises(ValueError, match="groups of equal size"):
        draws("whole", y, np.repeat([0, 1, 2], [3, 4, 5]))
    with pytest.raises(ValueError, match="needs groups"):
        draws("whole", y, None)


def test_sign_flips() -> None:
    groups = np.repeat(np.arange(4), 2)
    y = np.tile([0, 1], 4)
    permuted = draws("sign", y, groups)
    assert np.all(permuted[:, 0::2] + permuted[:, 1::2] == 1)
    assert len(np.unique(permuted, axis=0)) == 16
    numbers = np.array([1.0, -2.0, 3.0])
    flipped = draws("sign", numbers, None, classifier=False)
    assert np.all(np.abs(flipped) == np.abs(numbers)) and len(np.unique(flipped, axis=0)) == 8
    for labels, message in (
        (np.arange(8) % 3, "two classes"),
        (np.array([0, 0, 0, 1, 0, 1, 0, 1]), "same number of rows"),
    ):
        with pytest.raises(ValueError, match=message):
            draws("sign", labels, groups)


def test_shifts() -> None:
    y = np.array([0, 0, 1, 1, 2])
    permuted = {tuple(row) for row in draws("shift", y, None)}
    assert permuted == {tuple(np.roll(y, shift)) for shift in range(5)}
    two = {tuple(row) for row in draws("shift", np.array([0, 1, 1, 0, 0, 1]), np.repeat([0, 1], 3))}
    assert two == {
        a + b for a in {(0, 1, 1), (1, 0, 1), (1, 1, 0)} for b in {(0, 0, 1), (1, 0, 0), (0, 1, 0)}
    }


@pytest.mark.parametrize("exchange", ["whole", "sign", "shift", "within"])
def test_exchanges_end_to_end(exchange: str) -> None:
    """Every exchange against a literal loop over the same rearrangements."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(10), 4)
    y = np.tile([0, 1, 1, 0, 1, 1, 0, 0], 5)
    X = rng.normal(size=(40, 3)) + 0.7 * y[:, None]
    cv = GroupKFold(5)
    how = {"exchange": exchange, "permute": "free", "n_permutations": 5, "exact": False}
    result = quietly(of_fisher, X, y, cv=cv, groups=groups, **how)
    made = make_exchange(exchange, y, groups, None, True, 2)
    expected = literal(
        MODELS["fisher"], X, y, cv, lambda rng: made.draw(rng).indices, 5, "accuracy", groups
    )
    np.testing.assert_allclose(result.permutation_scores, expected[1], atol=1e-12)


def test_sign_flips_of_numbers_end_to_end() -> None:
    X, _ = shifted_classes()
    y = X[:, 0]
    model, cv = KernelRidge(gamma=0.1, alpha=1.0), KFold(3)
    result = permutation_test_score(model, X, y, cv=cv, exchange="sign", n_permutations=3)
    rng = np.random.RandomState(0)
    keys = Keys(int(rng.randint(2**31)) << 32 | int(rng.randint(2**31)))
    for number in range(3):
        own = np.random.RandomState(int(keys.at(np.array([number]))[0]) % 2**32)
        flipped = y * np.where(own.randint(2, size=N) == 1, -1.0, 1.0)
        expected = sklearn.model_selection.cross_val_score(model, X, flipped, cv=cv).mean()
        assert result.permutation_scores[number] == pytest.approx(expected, rel=1e-8)


def test_units_must_lie_in_a_fold() -> None:
    X, y = shifted_classes(2, n=40)
    how = {"permute": "within-folds", "exchange": "whole"}
    with pytest.raises(ValueError, match="every group inside one test fold"):
        of_fisher(X, y, cv=StratifiedKFold(4), groups=np.arange(40) % 7, **how)


# ---- what is refused, and what is warned of ------------------------------------------------------


@pytest.mark.parametrize(
    "cv",
    [
        3,
        StratifiedKFold(3),
        RepeatedStratifiedKFold(),
        StratifiedShuffleSplit(3),
        StratifiedGroupKFold(3),
    ],
)
def test_refused(cv: Any) -> None:
    X, y = shifted_classes(2)
    with pytest.raises(ValueError, match="is not valid here") as caught:
        of_fisher(X, y, cv=cv, groups=np.arange(N) // 2, permute="free")
    assert "within-folds" in str(caught.value) and "resplit" in str(caught.value)


def test_lists_of_splits() -> None:
    """A list does not say how it was made; its balance may."""
    X, y = shifted_classes(3, n=180)
    stratified = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    plain = list(KFold(5, shuffle=True, random_state=0).split(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cv in (plain, stratified):
            moved = of_svm(X, y, cv=cv, n_permutations=2)
            assert moved.mode == "cosets"
        assert of_svm(X, y, cv=plain, permute="free", n_permutations=2).mode == "free"
        assert (
            of_svm(X, y, cv=stratified, permute="within-folds", n_permutations=2).mode
            == "within-folds"
        )
    with pytest.raises(ValueError, match="is not valid here"):
        of_svm(X, y, cv=stratified, permute="free")
    with pytest.raises(ValueError, match="cannot be recomputed"):
        of_svm(X, y, cv=plain, permute="resplit")


def test_designed_order_is_warned_of() -> None:
    X, _ = shifted_classes(2, n=120)
    y = np.arange(120) % 2
    with pytest.warns(ValidityWarning, match="although the splitter ignores y"):
        of_svm(X, y, cv=KFold(5), n_permutations=2, permute="free")


def test_nothing_to_permute() -> None:
    X, _ = shifted_classes(2)
    groups = np.arange(N) // 5
    with pytest.warns(ValidityWarning, match="no permutation changes the labels"):
        result = of_svm(X, groups % 2, cv=GroupKFold(3), groups=groups)
    assert result.pvalue == 1.0


def test_hardly_anything_to_permute() -> None:
    few = np.repeat([0, 1], 10)
    few[0] = 1  # one label of one group of five
    with pytest.warns(ValidityWarning, match="only 5 different orders"):
        of_fisher(np.arange(20.0)[:, None], few, groups=np.arange(20) // 5, cv=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"permute": "sometimes"}, "permute must be"),
        ({"exchange": "some"}, "exchange must be"),
        ({"n_permutations": 0}, "n_permutations must be"),
        ({"stop_after": 0}, "stop_after must be"),
        ({"exact": "no"}, "exact must be"),
        ({"groups": [1, 2]}, "groups must have one entry per row"),
        ({"exact": True}, "more than 10 million"),
        ({"scoring": []}, "at least one"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    X, y = shifted_classes(2)
    with pytest.raises(ValueError, match=message):
        of_svm(X, y, **options)


# ---- p-values ------------------------------------------------------------------------------------


def test_result() -> None:
    X, y = shifted_classes(2)
    result = of_svm(X, y, cv=KFold(3), n_permutations=9)
    assert isinstance(result, tuple) and len(result) == 3
    score, null, pvalue = result
    assert (score, pvalue) == (result.score, result.pvalue) and null is result.permutation_scores
    assert null.shape == (9,) and result.n_permutations_done == 9 and not result.exact
    assert result.pvalue_interval[0] <= pvalue <= result.pvalue_interval[1]
    assert "one (fixed parameters)" in repr(result)
    again = pickle.loads(pickle.dumps(result))
    assert again.route == result.route and again.null.keys() == result.null.keys()


def test_intervals() -> None:
    """Clopper and Pearson by their definition, and the one of inverse sampling."""
    from scipy.stats import binom

    null = np.r_[np.zeros(93), np.ones(7)]
    lower, upper = Sequential(100).interval(null, 1.0)
    assert binom.sf(6, 100, lower) == pytest.approx(0.025) and binom.cdf(
        7, 100, upper
    ) == pytest.approx(0.025)
    lower, upper = Sequential(100, stopped=True, stop_after=7).interval(null, 1.0)
    assert binom.sf(6, 100, lower) == pytest.approx(0.025) and binom.cdf(
        6, 99, upper
    ) == pytest.approx(0.025)
    assert Sequential(5).interval(np.zeros(5), 1.0)[0] == 0.0
    assert Sequential(5).interval(np.ones(5), 1.0)[1] == 1.0


@pytest.mark.parametrize("permute", ["free", "within-folds"])
def test_every_labelling(permute: str) -> None:
    """All distinct labellings once, the observed one counted."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 2)), np.array([0, 1, 1, 0, 0, 1])
    cv = KFold(2) if permute == "within-folds" else LeaveOneOut()
    model = LeastSquaresSVC("linear", alpha=1.0)
    what: dict[str, Any] = {"n_permutations": 100, "scoring": "roc_auc", "pooled": True}
    result = quietly(permutation_test_score, model, X, y, cv=cv, permute=permute, **what)
    fold = fold_of(y, cv, X)
    labellings = {p for p in itertools.product([0, 1], repeat=6) if sum(p) == 3}
    if permute == "within-folds":
        labellings = {
            p
            for p in labellings
            if all(np.array(p)[fold == f].sum() == y[fold == f].sum() for f in (0, 1))
        }
    null = []
    for labelling in labellings:
        permuted = np.array(labelling)
        decision = sklearn.model_selection.cross_val_predict(
            model, X, permuted, cv=cv, method="decision_function"
        )
        null.append(roc_auc_score(permuted, decision))
    assert result.exact and result.n_permutations_done == len(labellings) - 1
    observed = next(
        score for labelling, score in zip(labellings, null, strict=True) if labelling == tuple(y)
    )
    assert result.score == pytest.approx(observed)
    assert result.pvalue == pytest.approx(np.mean(np.array(null) >= observed - 1e-9))
    np.testing.assert_allclose(
        np.sort(np.r_[result.permutation_scores, result.score]), np.sort(null), atol=1e-9
    )
    assert result.pvalue_interval == (result.pvalue, result.pvalue)


@pytest.mark.parametrize("exchange", ["sign", "shift", "whole"])
def test_every_rearrangement(exchange: str) -> None:
    groups = np.repeat(np.arange(5), 2)
    y = np.tile([0, 1], 5) if exchange != "whole" else (groups < 2).astype(int)
    made = make_exchange(exchange, y, None if exchange == "shift" else groups, None, True, 2)
    listed = [tuple(r.indices) for r in made.others()]
    assert len(listed) == made.count - 1 == {"sign": 31, "shift": 9, "whole": 9}[exchange]
    labels = [tuple(y[list(indices)]) for indices in listed]
    if exchange != "shift":
        assert len(set(labels)) == len(labels) and tuple(y) not in labels


def test_undefined_scores_are_no_evidence() -> None:
    """A fold of one class has no AUC.

    Scikit-learn would give an observed NaN the smallest p-value there is.
    """
    X, _ = shifted_classes(2)
    y = np.isin(np.arange(N), [20, 21, 22, 23, 40, 41, 42, 43]).astype(
        int
    )  # none in the first fold
    result = quietly(of_svm, X, y, cv=KFold(3), scoring="roc_auc", n_permutations=9, permute="free")
    assert np.isnan(result.score) and result.pvalue == 1.0
    expected = quietly(
        by_sklearn, MODELS["LS-SVM"], X, y, cv=KFold(3), scoring="roc_auc", n_permutations=9
    )
    np.testing.assert_allclose(result.permutation_scores, expected[1])
    assert expected[2] == 0.1


@pytest.mark.parametrize("permute", ["free", "cosets"])
def test_early_stopping(permute: str) -> None:
    """Each score by its own draws up to the fifth that reaches it; the run goes on to the last."""
    X, _ = shifted_classes(2)
    y = np.random.default_rng(8).permutation(np.arange(N) % 2)
    run = partial(of_svm, X, y, cv=KFold(3), permute=permute)
    everything = run(n_permutations=400, stop_after=400)
    hits = np.flatnonzero(everything.permutation_scores >= everything.score - 1e-10)
    assert not everything.stopped and everything.pvalue == (1 + len(hits)) / 401
    stopped = run(n_permutations=400, stop_after=5)
    assert stopped.stopped and stopped.n_permutations_done == hits[4] + 1
    assert stopped.pvalue == 5 / (hits[4] + 1)
    np.testing.assert_array_equal(
        stopped.permutation_scores, everything.permutation_scores[: hits[4] + 1]
    )
    if permute == "free":
        unstopped = run(n_permutations=int(hits[4]), stop_after=5)
        assert not unstopped.stopped and unstopped.pvalue == 5 / (1 + hits[4])


def test_early_stopping_of_several_scores() -> None:
    """A p-value is never 0, whichever score stops first; entries of a matrix get a bound."""
    X, y = shifted_classes(2, effect=0.0, seed=4)
    names = ["accuracy", "roc_auc", "confusion_matrix"]
    cv = KFold(3, shuffle=True, random_state=0)
    options: dict[str, Any] = {"cv": cv, "n_permutations": 300, "max_bytes": 12_000}
    for order in (names, [names[1], names[0], names[2]]):
        result = of_svm(X, y, scoring=order, stop_after=4, **options)
        done = result.n_permutations_done
        assert result.stopped and done < 300
        lasts = []
        for name in names[:2]:
            hits = np.flatnonzero(result.null[name] >= result.scores[name] - 1e-10)
            assert result.pvalues[name] == 4 / (hits[3] + 1)
            lasts.append(hits[3] + 1)
        assert done == max(lasts)
        matrix = result.null["confusion_matrix"] >= result.scores["confusion_matrix"]
        few = matrix.sum(axis=0) < 4
        np.testing.assert_allclose(result.pvalues["confusion_matrix"][few], 4 / (done + 1))
        assert np.all(result.pvalues["confusion_matrix"] > 0)
    with pytest.raises(ValueError, match="cannot be combined with exact=True"):
        of_svm(X, y, stop_after=4, exact=True, **options)


def test_a_second_score_cannot_become_zero() -> None:
    """Stopped at a draw of the first score at which no draw had reached the second."""
    never = Sequential(20, stopped=True, stop_after=10).pvalue(np.zeros(20), 1.0)
    assert never == 10 / 21
    assert Sequential(20, stop_after=10).pvalue(np.zeros(20), 1.0) == 1 / 21


# ---- other routes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv", [KFold(3), TimeSeriesSplit(2), RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)]
)
@pytest.mark.parametrize("name", ["fisher", "fisher, dual", "LS-SVM", "fisher, indefinite"])
def test_pipelines_share_decompositions(name: str, cv: Any) -> None:
    X, y = shifted_classes()
    result = compare(make_pipeline(StandardScaler(), MODELS[name]), X, y, cv=cv)
    assert result.route.name == "per-fold" and result.route.fitted_folds == 0


@pytest.mark.parametrize("calibration", [None, "temperature"])
def test_probabilities_of_pipelines(calibration: str | None) -> None:
    """A scorer of probabilities asks the last step whether they are calibrated."""
    X, y = shifted_classes(n=60)
    model = clone(MODELS["fisher"]).set_params(calibration=calibration)
    cv = KFold(3, shuffle=True, random_state=0)
    scored: dict[str, Any] = {"cv": cv, "scoring": "roc_auc_ovr", "n_permutations": 3}
    compare(make_pipeline(StandardScaler(), model), X, y, **scored)
    scored["scoring"] = ["neg_log_loss", "roc_auc_ovr"]
    for permute in ("within-folds", "cosets"):
        pipeline = make_pipeline(StandardScaler(), model)
        result = quietly(permutation_test_score, pipeline, X, y, permute=permute, **scored)
        assert all(np.all(np.isfinite(null)) for null in result.null.values())


@pytest.mark.parametrize("penalty", ["function", "dual"])
def test_pipelines_of_regression_and_weights(penalty: str) -> None:
    X, _ = shifted_classes()
    y = X[:, 0] + np.random.default_rng(1).normal(size=N)
    weights = np.random.default_rng(2).uniform(0.5, 3.0, size=N)
    scaled = make_pipeline(StandardScaler(), KernelRidge(gamma=0.2, alpha=0.3, penalty=penalty))
    by_rows = KernelRidge(gamma="scale", alpha=0.3, penalty=penalty)
    for model, params in ((scaled, None), (by_rows, {"sample_weight": weights})):
        result = compare(model, X, y, cv=KFold(3), params=params)
        assert result.route.name == "per-fold" and result.route.fitted_folds == 0


def test_supervised_steps_are_refitted() -> None:
    X, y = shifted_classes()
    estimator = make_pipeline(SelectKBest(f_classif, k=2), MODELS["fisher"])
    result = compare(estimator, X, y, cv=KFold(3))
    assert result.route.name == "refit"
    with pytest.warns(RefitWarning, match="steps that do not use y"):
        permutation_test_score(estimator, X, y, cv=KFold(3), n_permutations=2)


def test_foreign_estimators() -> None:
    X, y = shifted_classes()
    with pytest.warns(RefitWarning, match="no closed form for LinearDiscriminantAnalysis"):
        permutation_test_score(LinearDiscriminantAnalysis(), X, y, cv=3, n_permutations=2)
    compare(LinearDiscriminantAnalysis(), X, y, cv=3, n_permutations=3)
    compare(LinearDiscriminantAnalysis(), X, y, cv=3, n_permutations=3, n_jobs=2)


@pytest.mark.parametrize("class_weight", [{0: 2.0, 1: 0.5}, "balanced"])
def test_class_weights_see_labels(class_weight: Any) -> None:
    X, y = shifted_classes(2)
    model = LeastSquaresSVC(gamma=0.2, alpha=0.3, class_weight=class_weight)
    compare(model, X, y, cv=KFold(3), n_permutations=3)


@pytest.mark.parametrize("alpha", [[0.01, 0.1, 1.0, 10.0], "tune"])
@pytest.mark.parametrize(
    "model",
    [
        KernelFisherDiscriminant(gamma=0.2),
        KernelFisherDiscriminant(gamma=0.2, penalty="dual"),
        LeastSquaresSVC(gamma=0.2),
        KernelRidge(gamma=0.2),
    ],
)
def test_alpha_is_chosen_again_inside(model: Any, alpha: Any) -> None:
    """In every permutation and fold, with one decomposition per training set."""
    X, y = shifted_classes()
    y = y if not isinstance(model, KernelRidge) else X[:, 0] + y
    result = compare(clone(model).set_params(alpha=alpha), X, y, cv=KFold(3), n_permutations=4)
    if alpha != "tune":
        assert result.route.name == "per-fold" and result.route.fitted_folds == 0


@pytest.mark.parametrize("criterion", ["squared_error", "brier"])
@pytest.mark.parametrize(
    "parameters",
    [{"gamma": "tune", "alpha": "tune"}, {"gamma": 0.2, "alpha": [0.1, 10.0], "penalty": "tune"}],
)
def test_everything_is_chosen_again_inside(parameters: dict[str, Any], criterion: str) -> None:
    """Kernel parameters and the penalty, by the estimator's own search."""
    X, y = shifted_classes(2, n=30)
    model = LeastSquaresSVC(criterion=criterion, **parameters)
    result = compare(model, X, y, cv=KFold(2), n_permutations=2, scoring="roc_auc")
    assert result.route.name == "per-fold" and result.route.fitted_folds == 0


def test_precomputed_kernels_are_tuned_from_copies() -> None:
    X, y = shifted_classes(3)
    model = KernelFisherDiscriminant(
        "precomputed", alpha=[0.1, 1.0, 10.0], criterion="squared_error"
    )
    result = compare(model, X @ X.T, y, cv=KFold(3), n_permutations=3)
    assert result.route.name == "per-fold" and result.route.fitted_folds == 0


def test_tuned_in_resplit_and_within_folds() -> None:
    X, y = shifted_classes()
    model = KernelFisherDiscriminant(gamma=0.2, alpha=[0.1, 1.0, 10.0])
    with pytest.warns(RefitWarning, match='permute="cosets"'):
        permutation_test_score(model, X, y, cv=3, n_permutations=2, permute="resplit")
    compare(model, X, y, cv=3, n_permutations=3)
    result = permutation_test_score(model, X, y, cv=3, n_permutations=3, permute="within-folds")
    cv = StratifiedKFold(3)
    draw = partial(within, blocks=fold_of(y, cv, X))
    expected = literal(model, X, y, cv, draw, 3, "accuracy")
    np.testing.assert_allclose(result.permutation_scores, expected[1], atol=1e-12)


def test_a_search_of_another_kind_is_fitted() -> None:
    """Candidates judged by folds of the estimator's own are not repeated in closed form."""
    X, y = shifted_classes()
    model = LeastSquaresSVC(gamma=0.2, alpha=[0.1, 1.0, 10.0], cv=3)
    result = compare(model, X, y, cv=KFold(3), n_permutations=3)
    assert result.route.name == "refit"


def test_long_runs_are_announced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = shifted_classes()
    monkeypatch.setattr(run_module, "LONG", 0.0)
    quietly(permutation_test_score, LinearDiscriminantAnalysis(), X, y, cv=3, n_permutations=3)
    assert "for 3 permutations" in capsys.readouterr().err
    tuned = KernelFisherDiscriminant(gamma=0.2, alpha=[0.1, 1.0])
    result = permutation_test_score(tuned, X, y, cv=KFold(3), n_permutations=3, permute="free")
    assert "for 3 permutations (per-fold" in capsys.readouterr().err
    assert result.route.fitted_folds == 0
    of_fisher(X, y, cv=3, n_permutations=3)
    assert capsys.readouterr().err == ""


# ---- blocks, memory, files -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv", [KFold(4), StratifiedKFold(4), LeaveOneOut(), ShuffleSplit(3, random_state=0)]
)
def test_blocks_do_not_matter(cv: Any) -> None:
    X, y = shifted_classes()
    one = of_fisher(X, y, cv=cv, n_permutations=20)
    small = of_fisher(X, y, cv=cv, n_permutations=20, max_bytes=30_000)
    np.testing.assert_allclose(small.permutation_scores, one.permutation_scores, atol=1e-12)


def test_memory_is_bounded() -> None:
    """Ten times the permutations, the same peak.

    And within twice the budget beside the problem's own matrices.
    """
    import tracemalloc

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    peaks = []
    budget = 8 << 20
    for n_permutations in (200, 2000):
        tracemalloc.start()
        of_fisher(X, y, cv=KFold(5), n_permutations=n_permutations, max_bytes=budget)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + (1 << 20)
    assert peaks[1] < 2 * budget + 6 * 8 * 300**2


@pytest.mark.parametrize("cv", [KFold(4), StratifiedKFold(4)])
def test_resumed_from_a_checkpoint(
    cv: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = shifted_classes()
    path = tmp_path / "run.npz"
    options: dict[str, Any] = {
        "cv": cv,
        "n_permutations": 40,
        "scoring": ["accuracy", "f1_macro", "confusion_matrix"],
        "max_bytes": 60_000,
    }
    whole = of_fisher(X, y, **options)
    evaluate, calls = Evaluation.scores, []

    def interrupted(self: Any, labellings: Any) -> Any:
        calls.append(len(labellings))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return evaluate(self, labellings)

    monkeypatch.setattr(Evaluation, "scores", interrupted)
    with pytest.raises(KeyboardInterrupt):
        of_fisher(X, y, checkpoint=path, **options)
    monkeypatch.undo()
    done = sum(calls[1:3])
    with np.load(path, allow_pickle=False) as archive:
        assert len(archive["result_0"]) == done
    evaluated = []

    def counted(self: Any, labellings: Any) -> Any:
        evaluated.append(len(labellings))
        return evaluate(self, labellings)

    monkeypatch.setattr(Evaluation, "scores", counted)
    resumed = of_fisher(X, y, checkpoint=path, **options)
    assert sum(evaluated[1:]) == 40 - done
    for name in options["scoring"]:
        np.testing.assert_array_equal(resumed.null[name], whole.null[name])
    assert resumed.pvalues["accuracy"] == whole.pvalues["accuracy"]
    assert not list(tmp_path.glob("*.tmp"))
    with pytest.raises(ValueError, match="belongs to another test"):
        of_fisher(X + 1e-9, y, checkpoint=path, **options)


def test_checkpoints_need_seeds(tmp_path: Path) -> None:
    X, y = shifted_classes()
    with pytest.raises(ValueError, match="integer random_state"):
        of_fisher(X, y, random_state=None, checkpoint=tmp_path / "a")
    with pytest.raises(ValueError, match="reproducible folds"):
        of_fisher(X, y, cv=KFold(3, shuffle=True), checkpoint=tmp_path / "a")


# ---- other arrays --------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("name", ["fisher", "fisher, dual", "LS-SVM"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cv", [KFold(4), StratifiedKFold(3), LeaveOneOut()])
def test_torch(name: str, n_classes: int, cv: Any) -> None:
    import torch

    X, y = shifted_classes(n_classes)
    scoring = ["accuracy", "f1_macro"]
    test = partial(permutation_test_score, MODELS[name], cv=cv, n_permutations=5, scoring=scoring)
    expected, got = quietly(test, X, y), quietly(test, torch.asarray(X), torch.asarray(y))
    for metric in scoring:
        np.testing.assert_allclose(got.null[metric], expected.null[metric], atol=1e-12)
    assert got.route.name == "one"
