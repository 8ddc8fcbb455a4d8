"""Kernel averaging and subsampling against literal implementations: means made by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn.model_selection
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

import fitonce
import reference
from fitonce import (
    KernelAveraging,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    Subsampling,
)
from optional import require
from problems import (
    CLASSIFIERS,
    every_classifier,
    every_penalty,
    gram,
    labelled_rows,
    row_weights,
    some_kernels,
    targets_of,
)
from reference import assert_close, held_out_of, output
from sklearn_checks import with_checks

KERNELS = some_kernels("linear", "rbf", "poly")
N, MU = 36, 0.4

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


# ---- by hand -------------------------------------------------------------------------------------


def literal(model, kernel, X, y, weights, blocks, new, intercept=True):
    """Decisions at new rows of a model trained on the means of the given blocks.

    Means of kernels, one loop at a time.
    """
    inner, w = model.estimator, np.ones(len(y)) if weights is None else weights
    members = [np.flatnonzero(blocks == number) for number in np.unique(blocks[blocks >= 0])]
    m, total = len(members), np.array([w[rows].sum() for rows in members])
    labels = np.array([y[rows[0]] for rows in members])
    mean = np.zeros((m + len(new), len(X) + len(new)))
    for j, rows in enumerate(members):
        mean[j, rows] = w[rows] / w[rows].sum()
    mean[m:, len(X) :] = np.eye(len(new))
    K = mean @ gram(kernel, np.vstack([X, new]), np.vstack([X, new])) @ mean.T
    split = np.arange(m), m + np.arange(len(new))
    every_weight = np.concatenate([total, np.ones(len(new))])
    if isinstance(inner, LeastSquaresSVC):
        Y = targets_of(LeastSquaresSVC, labels)
        function = inner.penalty == "function"
        solve = reference.ridge_function_norm if function else reference.ridge_dual_norm
        padded = np.vstack([Y, np.zeros((len(new), Y.shape[1]))])
        given = K, padded, inner.alpha, *split, every_weight, intercept
        values = reference.refit_held_out(solve, *given)
        return values[:, 0] if values.shape[1] == 1 else values
    every = np.concatenate([labels, np.zeros(len(new), dtype=int)])
    given = K, every, inner.alpha, *split, every_weight, inner.penalty
    scores = reference.kfda_brute(*given).scores
    # the covariance of single rows: scatter of averages, weighted by their rows, over the number of
    # averages less classes
    log_priors = np.log(np.bincount(labels, total) / total.sum())
    c, averages = len(log_priors), total.sum() * m / sum(map(len, members))
    scores = (scores - log_priors) * (averages - c) / (total.sum() - c) + log_priors
    return scores if c > 2 else scores[:, 1] - scores[:, 0]


def make(estimator, penalty="function", kernel="rbf", n_average=3, intercept=True, **options):
    setting = {"penalty": penalty, "alpha": MU, **KERNELS[kernel], **options}
    if estimator is LeastSquaresSVC:
        setting["fit_intercept"] = intercept
    return KernelAveraging(estimator(kernel, **setting), n_average=n_average, random_state=0)


def blocks_of(model):
    """The block of each training row, -1 for rows without weight."""
    A = model.averages_.toarray()
    return np.where(A.any(axis=0), A.argmax(axis=0), -1)


SETTINGS = [(LeastSquaresSVC, intercept) for intercept in (True, False, "penalized")]
SETTINGS.append((KernelFisherDiscriminant, True))


every_setting = pytest.mark.parametrize(("estimator", "intercept"), SETTINGS)


@pytest.mark.pairwise
@every_setting
@every_penalty
@every_kernel
@weighted_or_not
def test_the_model_of_averages(estimator, intercept, penalty, kernel, weighted):
    new = np.random.default_rng(5).normal(size=(6, 3))
    weights = row_weights(N, zeros=3) if weighted else None
    for n_classes in (2, 3):
        X, y = labelled_rows(N, n_classes, repeated=2)
        model = make(estimator, penalty, kernel, intercept=intercept).fit(X, y, weights)
        blocks = blocks_of(model)
        assert model.averages_.shape == (blocks.max() + 1, N) and blocks.max() < N // 2
        assert all(len(np.unique(y[blocks == block])) == 1 for block in range(blocks.max() + 1))
        assert np.bincount(blocks[blocks >= 0]).min() >= 3
        expected = literal(model, kernel, X, y, weights, blocks, new, intercept)
        assert_close(model.decision_function(new), expected)


@pytest.mark.pairwise
@every_classifier
@every_penalty
@weighted_or_not
def test_averages_of_one_row_are_the_rows(estimator, penalty, weighted):
    X, y = labelled_rows(N, repeated=2)
    weights = row_weights(N, zeros=3) if weighted else None
    for options in ({}, {"alpha": "tune"}, {"cv": KFold(4)}):
        model = make(estimator, penalty, n_average=1, **options).fit(X, y, weights)
        plain = clone(model.estimator).fit(X, y, weights)
        assert_close(model.decision_function(X), plain.decision_function(X), 1e-7)
        assert np.array_equal(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_gamma_is_tuned_by_held_out_averages(kernel):
    """Of seven powers of four, the one whose model of averages has the best held-out score."""
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.linalg.norm(X, axis=1) > 1.2
    model = KernelAveraging(LeastSquaresSVC(kernel), n_average=2, random_state=0).fit(X, y)
    gamma = model.kernel_.parameters["gamma"]
    scores = []
    for factor in (0.25, 1.0, 4.0):
        fixed = LeastSquaresSVC(kernel, gamma=gamma * factor)
        fixed = KernelAveraging(fixed, n_average=2, random_state=0).fit(X, y)
        scores.append(fixed.estimator_.best_score_)
        if factor == 1.0:
            assert np.array_equal(fixed.decision_function(X), model.decision_function(X))
    assert model.estimator_.best_score_ == scores[1] == max(scores)
    search = GridSearchCV(make(LeastSquaresSVC), {"estimator__gamma": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_estimator_.kernel_.parameters["gamma"] in (0.1, 1.0)


def test_discriminant_scores_are_those_of_single_rows():
    """Unbalanced Gaussian classes: log-odds of the averages' rule are near those of the rule of all
    rows, not g times them.
    """
    rng = np.random.default_rng(0)
    y = (rng.random(3000) < 0.15).astype(int)
    X = rng.normal(size=(3000, 2)) + 1.5 * y[:, None] * [1.0, 0.0]
    plain = KernelFisherDiscriminant("linear", alpha=1.0).fit(X, y)
    averaged = KernelAveraging(clone(plain), n_average=10, random_state=0).fit(X, y)
    slope = np.polyfit(plain.decision_function(X), averaged.decision_function(X), 1)[0]
    assert 0.75 < slope < 1.3
    assert averaged.score(X, y) > plain.score(X, y) - 0.01


SMALLER = {
    "averages": make(LeastSquaresSVC, alpha="tune"),
    "subsample": Subsampling(KernelFisherDiscriminant(gamma=0.3), max_samples=15, random_state=0),
}


@pytest.mark.parametrize("name", SMALLER)
def test_every_training_set_is_refitted_and_a_result_says_so(name):
    X, y = labelled_rows(N, 2, repeated=2)
    options = {"cv": StratifiedKFold(3), "params": {"sample_weight": np.linspace(0.5, 2.0, N)}}
    with pytest.warns(fitonce.RefitWarning):
        got = fitonce.cross_validate(SMALLER[name], X, y, **options)
    assert got.route.name == "refit"
    expected = sklearn.model_selection.cross_validate(SMALLER[name], X, y, **options)
    assert np.array_equal(got["test_score"], expected["test_score"])
    options = {"cv": KFold(3, shuffle=True, random_state=0), "n_permutations": 4, "random_state": 1}
    with pytest.warns(fitonce.RefitWarning):
        got = fitonce.permutation_test_score(SMALLER[name], X, y, **options, permute="resplit")
    expected = sklearn.model_selection.permutation_test_score(SMALLER[name], X, y, **options)
    assert_close(got[0], expected[0])
    assert_close(got[1], expected[1])


def test_copies():
    X, y = labelled_rows(N, repeated=2)
    model = make(KernelFisherDiscriminant).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(clone(model).fit(X, y).averages_.toarray(), model.averages_.toarray())


@pytest.mark.parametrize(
    ("wrapper", "error", "message"),
    [
        (KernelAveraging(KernelRidge()), TypeError, "within classes"),
        (KernelAveraging(LogisticRegression()), TypeError, "Discriminant or a LeastSquaresSVC"),
        (KernelAveraging(LeastSquaresSVC(), n_average=0), ValueError, "n_average"),
        (KernelAveraging(LeastSquaresSVC(), n_average=2.0), TypeError, "n_average"),
        (KernelAveraging(LeastSquaresSVC(landmarks=5)), ValueError, "landmarks=None"),
        (KernelAveraging(LeastSquaresSVC("tune")), ValueError, "one kernel"),
        (KernelAveraging(LeastSquaresSVC("poly", degree="tune")), ValueError, "degree"),
        (
            KernelAveraging(LeastSquaresSVC(), n_average=1000),
            ValueError,
            "more averages than classes",
        ),
        (Subsampling(LogisticRegression()), TypeError, "one of fitonce's"),
        (Subsampling(LeastSquaresSVC(), max_samples=1), ValueError, "train_size"),
        (Subsampling(LeastSquaresSVC(), max_samples=1.5), ValueError, "train_size"),
    ],
)
def test_bad_parameters(wrapper, error, message):
    with pytest.raises(error, match=message):
        wrapper.fit(*labelled_rows(N, repeated=2))


# ---- subsampling ---------------------------------------------------------------------------------


@pytest.mark.torch
def test_rows_on_devices_are_refused():
    X, y = labelled_rows(N, repeated=2)
    with pytest.raises(TypeError, match=r"got torch instead: convert"):
        make(LeastSquaresSVC).fit(require("torch").asarray(X), y)


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, KernelRidge])
@weighted_or_not
def test_subsampling_is_a_fit_on_fewer_rows(estimator, weighted):
    X, y = labelled_rows(N, repeated=2)
    y = X @ [1.0, -1.0, 0.5] if estimator is KernelRidge else y
    weights = row_weights(N, zeros=3) if weighted else np.ones(N)
    for inner in (estimator(), estimator(gamma=0.3, alpha=MU, penalty="dual")):
        model = Subsampling(inner, max_samples=20, random_state=0).fit(X, y, weights)
        rows = model.sample_indices_
        assert len(np.unique(rows)) == 20 and (weights[rows] > 0).all()
        plain = clone(inner).fit(X[rows], y[rows], weights[rows])
        assert_close(output(model, X), output(plain, X))
        assert_close(held_out_of(model.estimator_)[rows], held_out_of(plain))


def test_subsampling_keeps_the_shares_of_the_classes():
    X, y = labelled_rows(100)
    inner = LeastSquaresSVC(gamma=0.3, alpha=1.0)
    drawn = Subsampling(inner, max_samples=0.3, random_state=0).fit(X, y).sample_indices_
    assert np.abs(np.bincount(y[drawn]) - 0.3 * np.bincount(y)).max() < 1
    whole = Subsampling(inner, max_samples=1000).fit(X, y)
    assert_close(whole.decision_function(X), inner.fit(X, y).decision_function(X))


try:
    TUNED = {"gamma": "scale", "alpha": [0.1, 1.0]}
    FIXED = {"gamma": "scale", "alpha": 1.0}
    SEED = {"random_state": 0}
    INSTANCES = [
        KernelAveraging(KernelFisherDiscriminant(**TUNED), n_average=2, **SEED),
        KernelAveraging(LeastSquaresSVC(**TUNED, penalty="dual"), n_average=2, **SEED),
        Subsampling(KernelFisherDiscriminant(**FIXED), max_samples=0.8, **SEED),
        Subsampling(KernelRidge(**FIXED), max_samples=0.8, **SEED),
    ]

    def expected_failures(estimator) -> dict[str, str]:
        """Blocks and rows drawn at random: repeated rows are drawn otherwise than weighted ones."""
        return {
            f"check_sample_weight_equivalence_on_{kind}_data": "drawn at random"
            for kind in ("dense", "sparse")
        }

    @pytest.mark.slow
    @with_checks(INSTANCES, expected_failures)
    def test_estimator_check(estimator, check):
        check(estimator)

except RuntimeError:  # scikit-learn 1.6 with SciPy 1.14 and later
    pass
