"""Scores that rank or threshold are those of the refit where its decisions are equal."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold

import fitonce
from fitonce import KernelFisherDiscriminant, LeastSquaresSVC, permutation_test_score

N = 72
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
RANKED = ("roc_auc", "average_precision", "accuracy", "balanced_accuracy")


def noise(seed: int, n_classes: int = 2) -> tuple[np.random.Generator, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng, rng.permutation(np.arange(N) % n_classes)


def rows(kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "binary":
        return rng.integers(0, 2, (N, 1)).astype(float)
    if kind == "repeated":
        return rng.normal(size=(N // 6, 2))[rng.integers(0, N // 6, N)]
    if kind == "zero":
        return rng.normal(size=(N, 3)) * (rng.random((N, 1)) < 0.3)
    return rng.normal(size=(N, 20))  # far apart


MODELS = {
    "linear": dict(kernel="linear"),
    "narrow": dict(kernel="rbf", gamma=30.0),
    "laplacian": dict(kernel="laplacian", gamma=0.5),
    "cosine": dict(kernel="cosine"),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("kernel", MODELS)
@pytest.mark.parametrize("kind", ["binary", "repeated", "zero", "apart"])
def test_ranks_are_those_of_the_refit(kind, kernel, penalty):
    rng, y = noise(1)
    X = rows(kind, rng)
    for model in (
        LeastSquaresSVC(**MODELS[kernel], alpha=0.5, penalty=penalty),
        LeastSquaresSVC(**MODELS[kernel], alpha=0.5, penalty=penalty, fit_intercept=False),
        KernelFisherDiscriminant(**MODELS[kernel], alpha=0.5, penalty=penalty),
    ):
        ours = fitonce.cross_validate(model, X, y, cv=FOLDS, scoring=RANKED)
        theirs = sklearn.model_selection.cross_validate(model, X, y, cv=FOLDS, scoring=RANKED)
        for name in RANKED:
            np.testing.assert_allclose(ours[f"test_{name}"], theirs[f"test_{name}"], atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("landmarks", [None, 8])
def test_ranks_of_three_classes_weights_and_landmarks(weighted, landmarks):
    rng, y = noise(2, n_classes=3)
    X = rows("repeated", rng)
    points = None if landmarks is None else X[:landmarks]
    params = {"sample_weight": rng.uniform(0.5, 2.0, N)} if weighted else None
    for model in (
        LeastSquaresSVC("rbf", gamma=0.3, alpha=0.1, landmarks=points),
        KernelFisherDiscriminant("rbf", gamma=0.3, alpha=0.1, landmarks=points),
    ):
        scoring = {"accuracy": "accuracy", "auc": one_against_rest()}
        arguments = dict(cv=FOLDS, scoring=scoring, params=params)
        ours = fitonce.cross_validate(model, X, y, **arguments)
        theirs = sklearn.model_selection.cross_validate(model, X, y, **arguments)
        for name in ("test_accuracy", "test_auc"):
            np.testing.assert_allclose(ours[name], theirs[name], atol=1e-12)


def one_against_rest():
    def score(truth, decision):
        return np.mean([roc_auc_score(truth == j, decision[:, j]) for j in range(3)])

    return make_scorer(score, response_method="decision_function")


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "accuracy"])
@pytest.mark.parametrize("kind", ["binary", "apart"])
def test_permutations_rank_as_the_refit(kind, scoring):
    rng, y = noise(3)
    X = rows(kind, rng)
    kernel = MODELS["linear" if kind == "binary" else "narrow"]
    model = LeastSquaresSVC(**kernel, alpha=1.0)
    arguments = dict(cv=KFold(4), scoring=scoring, n_permutations=12, random_state=0)
    ours = permutation_test_score(model, X, y, permute="resplit", **arguments)
    theirs = sklearn.model_selection.permutation_test_score(model, X, y, **arguments)
    assert ours[0] == pytest.approx(theirs[0], abs=1e-12)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-12)


@pytest.mark.parametrize("criterion", ["auc", "error", "roc_auc"])
def test_criteria_count_ties_as_ties(criterion):
    """A kernel that sees nothing: every row's held-out decision depends on its class alone."""
    rng, y = noise(4)
    X = rows("apart", rng)
    model = LeastSquaresSVC("rbf", gamma=30.0, alpha=1.0, criterion=criterion, cv=FOLDS).fit(X, y)
    expected = fitonce.cross_val_predict(model, X, y, cv=FOLDS, method="decision_function")
    assert len(np.unique(expected)) <= 3  # one for each fold
    assert model.best_score_ == pytest.approx(
        -0.5 if criterion == "error" else roc_auc_score(y, expected), abs=0.1
    )


def test_leave_one_out_decisions_of_equal_rows_are_equal():
    rng, y = noise(5)
    X = rows("binary", rng)
    decision = fitonce.cross_val_predict(
        LeastSquaresSVC("linear", alpha=1.0), X, y, cv=LeaveOneOut(), method="decision_function"
    )
    assert len(np.unique(decision)) == len(np.unique(np.column_stack([X, y]), axis=0)) == 4


@pytest.mark.parametrize("n", [3, 17, 50, 103])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
def test_equal_rows_have_equal_decisions(kernel, n):
    rng, y = noise(6)
    X, gamma = rng.normal(size=(N, 5)), {} if kernel == "linear" else {"gamma": 0.3}
    model = LeastSquaresSVC(kernel, alpha=1.0, **gamma).fit(X, y)
    same = np.repeat(rng.normal(size=(1, 5)), n, axis=0)
    assert len(np.unique(model.decision_function(same))) == 1


def test_sparse_rows_of_a_linear_model_have_decisions():
    rng, y = noise(7)
    X = rng.normal(size=(N, 5)) * (rng.random((N, 5)) < 0.5)
    model = LeastSquaresSVC("linear", alpha=1.0).fit(sp.csr_matrix(X), y)
    dense = model.decision_function(X)
    np.testing.assert_allclose(model.decision_function(sp.csr_matrix(X)), dense, atol=1e-12)
