"""Kernel averaging and subsampling against literal implementations.

Means made by hand, blocks left out by refitting.
"""

from __future__ import annotations

import importlib
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
import reference
from fitonce import (
    KernelAveraging,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    Subsampling,
)
from fitonce.estimators.averaging import draw_blocks
from fitonce.estimators.reduced import shares
from fitonce.rows import open_rows
from reference import assert_close
from sklearn_checks import with_checks

CLASSIFIERS = (KernelFisherDiscriminant, LeastSquaresSVC)
PENALTIES = ("function", "dual")
KERNELS = {"linear": {}, "rbf": {"gamma": 0.3}, "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0}}
N, MU = 36, 0.4
GROUPS = np.arange(N) % 5

every_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


def repeated_rows(n_classes: int = 3, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) + 0.7
    labels = rng.permutation(
        np.repeat(
            np.arange(n_classes),
            np.diff(np.round(np.linspace(0, 1, n_classes + 1) ** 1.3 * n).astype(int)),
        )
    )
    X[:, 0] += 1.5 * labels
    X[-2:], labels[-2:] = X[:2], labels[:2]
    return X, labels


def weights_with_zeros(n: int = N) -> np.ndarray:
    weights = np.random.default_rng(1).uniform(0.3, 3.0, size=n)
    weights[[3, 10, 11]] = 0.0
    return weights


# ---- by hand -------------------------------------------------------------------------------------


def gram(kernel: str, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return pairwise_kernels(A, B, metric=kernel, **KERNELS[kernel])


def literal(model, kernel, X, y, weights, blocks, new, intercept=True):
    """Decisions at new rows of a model trained on the means of the given blocks.

    Means of kernels, one loop at a time.
    """
    inner = model.estimator
    w = np.ones(len(y)) if weights is None else weights
    numbers = np.unique(blocks[blocks >= 0])
    members = [np.flatnonzero(blocks == number) for number in numbers]
    total = np.array([w[rows].sum() for rows in members])
    labels = np.array([y[rows[0]] for rows in members])
    K = gram(kernel, np.vstack([X, new]), np.vstack([X, new]))
    mean = np.zeros((len(members) + len(new), len(K)))
    for j, rows in enumerate(members):
        mean[j, rows] = w[rows] / w[rows].sum()
    for i in range(len(new)):
        mean[len(members) + i, len(X) + i] = 1.0
    K = mean @ K @ mean.T
    train, test = np.arange(len(members)), len(members) + np.arange(len(new))
    if isinstance(inner, LeastSquaresSVC):
        Y = np.where(labels[:, None] == np.unique(y), 1.0, -1.0)
        Y = Y[:, 1:] if Y.shape[1] == 2 else Y
        solve = (
            reference.ridge_function_norm
            if inner.penalty == "function"
            else reference.ridge_dual_norm
        )
        padded = np.vstack([Y, np.zeros((len(new), Y.shape[1]))])
        weights = np.concatenate([total, np.ones(len(new))])
        values = reference.refit_held_out(
            solve, K, padded, inner.alpha, train, test, weights, intercept
        )
        return values[:, 0] if values.shape[1] == 1 else values
    every = np.concatenate([labels, np.zeros(len(new), dtype=int)])
    scores = reference.kfda_brute(
        K,
        every,
        inner.alpha,
        train,
        test,
        np.concatenate([total, np.ones(len(new))]),
        inner.penalty,
    ).scores
    # the covariance of single rows: scatter of averages, weighted by their rows, over the number of
    # averages less classes
    log_priors = np.log(
        np.array([total[labels == label].sum() for label in np.unique(labels)]) / total.sum()
    )
    c = len(np.unique(labels))
    averages = total.sum() * len(members) / sum(map(len, members))
    scores = (scores - log_priors) * (averages - c) / (total.sum() - c) + log_priors
    return scores if c > 2 else scores[:, 1] - scores[:, 0]


def make(estimator, penalty="function", kernel="rbf", n_average=3, intercept=True, **options):
    inner = {"fit_intercept": intercept} if estimator is LeastSquaresSVC else {}
    wrapper = {name: options.pop(name) for name in ("by", "random_state") if name in options}
    inner = estimator(
        kernel, penalty=penalty, **{"alpha": MU, **KERNELS[kernel], **inner, **options}
    )
    return KernelAveraging(inner, n_average=n_average, **{"random_state": 0, **wrapper})


def settings():
    for estimator in CLASSIFIERS:
        for intercept in (True, False, "penalized") if estimator is LeastSquaresSVC else (True,):
            yield estimator, intercept


every_setting = pytest.mark.parametrize(("estimator", "intercept"), list(settings()))


@pytest.mark.pairwise
@every_setting
@every_penalty
@every_kernel
@weighted_or_not
def test_the_model_of_averages(estimator, intercept, penalty, kernel, weighted):
    new = np.random.default_rng(5).normal(size=(6, 3))
    for n_classes in (2, 3):
        X, y = repeated_rows(n_classes)
        weights = weights_with_zeros() if weighted else None
        model = make(estimator, penalty, kernel, intercept=intercept).fit(
            X, y, sample_weight=weights
        )
        assert model.n_averages_ < N // 2
        assert_close(
            model.decision_function(new),
            literal(model, kernel, X, y, weights, model.blocks_, new, intercept),
        )


@pytest.mark.pairwise
@every_setting
@every_penalty
@every_kernel
@weighted_or_not
def test_single_rows_are_held_out_by_the_model_without_their_block(
    estimator, intercept, penalty, kernel, weighted
):
    X, y = repeated_rows()
    weights = weights_with_zeros() if weighted else None
    model = make(estimator, penalty, kernel, intercept=intercept).fit(X, y, sample_weight=weights)
    expected = []
    for row in range(N):
        blocks = model.blocks_.copy()
        if blocks[row] >= 0:  # rows of weight zero are in no block
            blocks[blocks == blocks[row]] = -1
        expected.append(literal(model, kernel, X, y, weights, blocks, X[[row]], intercept)[0])
    assert_close(model.held_out_decision_, expected)


@pytest.mark.pairwise
@every_classifier
@every_penalty
@weighted_or_not
@pytest.mark.parametrize("how", ["k-fold", "groups", "by group"])
def test_splits_leave_whole_blocks_out(estimator, penalty, weighted, how):
    X, y = repeated_rows()
    weights = weights_with_zeros() if weighted else None
    options = {
        "k-fold": {"cv": KFold(3, shuffle=True, random_state=0)},
        "groups": {},
        "by group": {"by": "group", "cv": GroupKFold(3)},
    }[how]
    groups = None if how == "k-fold" else GROUPS
    model = make(estimator, penalty, n_average=2, **options).fit(
        X, y, sample_weight=weights, groups=groups
    )
    if how == "groups":
        tests = [np.flatnonzero(group == GROUPS) for group in range(5)]
    else:
        tests = [test for _, test in options["cv"].split(X, y, groups)]
    for number in range(model.n_averages_):
        rows = np.flatnonzero(model.blocks_ == number)
        assert len(np.unique(y[rows])) == 1
        assert sum(np.isin(rows, test).any() for test in tests) == 1
        if how != "k-fold":
            assert how == "groups" or len(np.unique(GROUPS[rows])) == 1
    expected = 0.0 * model.held_out_decision_
    for test in tests:
        blocks = np.where(np.isin(np.arange(N), test), -1, model.blocks_)
        expected[test] = literal(model, "rbf", X, y, weights, blocks, X[test])
    assert_close(model.held_out_decision_, expected)


@every_penalty
@pytest.mark.parametrize("cv", [None, KFold(3, shuffle=True, random_state=0)])
def test_tuning_tests_single_rows(penalty, cv):
    X, y = repeated_rows(2)
    alphas = np.array([1e-2, 0.4, 30.0])
    model = make(LeastSquaresSVC, penalty, alpha=alphas, cv=cv, criterion="squared_error").fit(X, y)
    losses = []
    for mu in alphas:
        fixed = make(LeastSquaresSVC, penalty, alpha=mu)
        tests = (
            [np.flatnonzero(model.blocks_ == j) for j in range(model.n_averages_)]
            if cv is None
            else [t for _, t in cv.split(X)]
        )
        error = 0.0
        for test in tests:
            blocks = np.where(np.isin(np.arange(N), test), -1, model.blocks_)
            error += np.sum(
                (2.0 * y[test] - 1.0 - literal(fixed, "rbf", X, y, None, blocks, X[test])) ** 2
            )
        losses.append(error / N)
    assert_close(-model.estimator_.cv_results_["mean_test_score"], losses)
    assert model.estimator_.alpha_ == alphas[np.argmin(losses)]


@pytest.mark.pairwise
@every_classifier
@every_penalty
@weighted_or_not
def test_averages_of_one_row_are_the_rows(estimator, penalty, weighted):
    X, y = repeated_rows()
    weights = weights_with_zeros() if weighted else None
    for options in ({}, {"alpha": "tune", "gamma": "tune"}, {"cv": KFold(4)}):
        model = make(estimator, penalty, n_average=1, **options).fit(X, y, sample_weight=weights)
        plain = clone(model.estimator).fit(X, y, sample_weight=weights)
        assert model.estimator_.alpha_ == plain.alpha_ and model.estimator_.gamma_ == plain.gamma_
        assert_close(model.decision_function(X), plain.decision_function(X), 1e-7)
        assert_close(model.held_out_decision_, plain.held_out_decision_, 1e-7)
        assert_close(model.predict_proba(X), plain.predict_proba(X), 1e-6)


@every_classifier
@every_penalty
def test_precomputed_and_sparse(estimator, penalty):
    X, y = repeated_rows()
    weights = weights_with_zeros()
    K = gram("rbf", X, X)
    by_name = make(estimator, penalty).fit(X, y, sample_weight=weights)
    given = KernelAveraging(
        estimator(kernel="precomputed", alpha=MU, penalty=penalty), n_average=3, random_state=0
    )
    kept = K.copy()
    given.fit(K, y, sample_weight=weights)
    assert np.array_equal(K, kept)
    assert_close(given.decision_function(K), by_name.decision_function(X))
    assert_close(given.held_out_decision_, by_name.held_out_decision_)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    for kernel in ("linear", "rbf"):
        dense = make(estimator, penalty, kernel).fit(X, y, sample_weight=weights)
        sparse = make(estimator, penalty, kernel).fit(sp.csr_matrix(X), y, sample_weight=weights)
        assert_close(sparse.decision_function(sp.csr_matrix(X)), dense.decision_function(X))
        assert_close(sparse.held_out_decision_, dense.held_out_decision_)


@pytest.mark.parametrize(
    "namespace", ["array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]
)
@every_classifier
@every_penalty
def test_other_namespaces(estimator, penalty, namespace):
    xp = (
        pytest.importorskip(namespace) if namespace != "torch" else importlib.import_module("torch")
    )
    X, y = repeated_rows()
    for kernel in ("linear", "rbf"):
        for cv in (None, KFold(3)):
            options = {"alpha": [0.1, 1.0], "cv": cv}
            expected = make(estimator, penalty, kernel, **options).fit(X, y)
            got = make(estimator, penalty, kernel, **options).fit(xp.asarray(X), xp.asarray(y))
            assert type(got.decision_function(xp.asarray(X))) is type(xp.asarray(X))
            assert_close(
                np.asarray(got.decision_function(xp.asarray(X))), expected.decision_function(X)
            )
            assert_close(np.asarray(got.held_out_decision_), expected.held_out_decision_)


def test_discriminant_scores_are_those_of_single_rows():
    """Unbalanced Gaussian classes.

    Log-odds of the averages' rule are near those of the rule of all rows, not g times them.
    """
    rng = np.random.default_rng(0)
    y = (rng.random(3000) < 0.15).astype(int)
    X = rng.normal(size=(3000, 2)) + 1.5 * y[:, None] * [1.0, 0.0]
    plain = KernelFisherDiscriminant("linear", alpha=1.0).fit(X, y)
    averaged = KernelAveraging(
        KernelFisherDiscriminant("linear", alpha=1.0), n_average=10, random_state=0
    ).fit(X, y)
    slope = np.polyfit(plain.decision_function(X), averaged.decision_function(X), 1)[0]
    assert 0.75 < slope < 1.3
    assert 0.8 < averaged.estimator_.temperature_ < 1.25
    assert averaged.score(X, y) > plain.score(X, y) - 0.01


def test_linear_means_are_means_of_rows():
    """For the linear kernel the same as fitting the mean rows themselves, weighted by their numbers
    of rows.
    """
    X, y = repeated_rows()
    model = make(LeastSquaresSVC, kernel="linear", n_average=3).fit(X, y)
    rows = [np.flatnonzero(model.blocks_ == number) for number in range(model.n_averages_)]
    means, labels = (
        np.array([X[block].mean(axis=0) for block in rows]),
        np.array([y[block[0]] for block in rows]),
    )
    plain = LeastSquaresSVC("linear", alpha=MU).fit(
        means, labels, sample_weight=[len(block) for block in rows]
    )
    assert_close(model.decision_function(X), plain.decision_function(X))
    assert_close(model.estimator_.coef_, plain.coef_)
    assert model.estimator_.dual_coef_.shape == (N, 3)
    assert_close(
        X @ X.T @ model.estimator_.dual_coef_ + model.estimator_.intercept_,
        model.decision_function(X),
    )


def test_blocks():
    strata = np.repeat([0, 1, 2, 3], [11, 3, 1, 8])
    block = draw_blocks(strata, 4, np.random.RandomState(0))
    sizes = {
        stratum: sorted(np.bincount(block)[np.unique(block[strata == stratum])])
        for stratum in range(4)
    }
    assert sizes == {0: [5, 6], 1: [3], 2: [1], 3: [4, 4]}
    assert np.array_equal(np.unique(block), np.arange(6))
    assert np.array_equal(block, draw_blocks(strata, 4, np.random.RandomState(0)))
    assert not np.array_equal(block, draw_blocks(strata, 4, np.random.RandomState(1)))


def test_every_training_set_averages_its_own_rows():
    X, y = repeated_rows(2)
    cv = StratifiedKFold(3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
    for model in (
        make(LeastSquaresSVC, alpha="tune"),
        Subsampling(KernelFisherDiscriminant(gamma=0.3), max_samples=15, random_state=0),
    ):
        for estimator in (model, make_pipeline(StandardScaler(), model)):
            params = {"sample_weight": weights} if estimator is model else None
            with warnings.catch_warnings():
                warnings.simplefilter("error", fitonce.RefitWarning)
                got = fitonce.cross_val_predict(
                    estimator, X, y, cv=cv, method="decision_function", params=params
                )
                results = fitonce.cross_validate(estimator, X, y, cv=cv, params=params)
            expected = sklearn.model_selection.cross_val_predict(
                estimator, X, y, cv=cv, method="decision_function", params=params
            )
            assert np.array_equal(got, expected)
            assert results.route.name == "per-fold"
    for train, test in cv.split(X, y):
        model = make(LeastSquaresSVC).fit(X[train], y[train])
        expected = literal(model, "rbf", X[train], y[train], None, model.blocks_, X[test])
        assert_close(
            fitonce.cross_val_predict(
                make(LeastSquaresSVC), X, y, cv=cv, method="decision_function"
            )[test],
            expected,
        )


@pytest.mark.filterwarnings("ignore::fitonce.RefitWarning")
def test_permutations_refit():
    X, y = repeated_rows(2)
    options = {"cv": KFold(3, shuffle=True, random_state=0), "n_permutations": 4, "random_state": 1}
    got = fitonce.permutation_test_score(make(LeastSquaresSVC), X, y, **options, permute="resplit")
    expected = sklearn.model_selection.permutation_test_score(
        make(LeastSquaresSVC), X, y, **options
    )
    assert_close(got[0], expected[0])
    assert_close(got[1], expected[1])


def test_transform_and_copies():
    X, y = repeated_rows()
    model = make(KernelFisherDiscriminant).fit(X, y)
    assert model.transform(X).shape == (N, 2) and not hasattr(make(LeastSquaresSVC), "transform")
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(clone(model).fit(X, y).blocks_, model.blocks_)
    assert not hasattr(make(LeastSquaresSVC, calibration=None), "predict_proba")


@pytest.mark.parametrize(
    ("wrapper", "error", "message"),
    [
        (KernelAveraging(KernelRidge()), TypeError, "within classes"),
        (
            KernelAveraging(LogisticRegression()),
            TypeError,
            "KernelFisherDiscriminant or a LeastSquaresSVC",
        ),
        (KernelAveraging(LeastSquaresSVC(), n_average=0), ValueError, "positive integer"),
        (KernelAveraging(LeastSquaresSVC(), n_average=2.0), ValueError, "positive integer"),
        (KernelAveraging(LeastSquaresSVC(), by="row"), ValueError, "by"),
        (KernelAveraging(LeastSquaresSVC(), by="group"), ValueError, "needs groups"),
        (
            KernelAveraging(LeastSquaresSVC(landmarks=5)),
            ValueError,
            "both replace the training rows",
        ),
        (KernelAveraging(LeastSquaresSVC(refine=True)), ValueError, "refine=False"),
        (
            KernelAveraging(LeastSquaresSVC(), n_average=1000),
            ValueError,
            "more averages than classes",
        ),
        (
            KernelAveraging(LeastSquaresSVC(cv=LeaveOneOut())),
            ValueError,
            "no two rows can be averaged",
        ),
        (Subsampling(LogisticRegression()), TypeError, "one of fitonce's"),
        (Subsampling(LeastSquaresSVC(), max_samples=1), ValueError, "at least 2"),
        (Subsampling(LeastSquaresSVC(), max_samples=1.5), ValueError, "share"),
        (Subsampling(LeastSquaresSVC(), max_samples=True), ValueError, "max_samples"),
    ],
)
def test_bad_parameters(wrapper, error, message):
    with pytest.raises(error, match=message):
        wrapper.fit(*repeated_rows())


# ---- subsampling ---------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, KernelRidge])
@weighted_or_not
def test_subsampling_is_a_fit_on_fewer_rows(estimator, weighted):
    X, y = repeated_rows()
    y = X @ [1.0, -1.0, 0.5] if estimator is KernelRidge else y
    weights = weights_with_zeros() if weighted else None
    for inner in (estimator(), estimator(gamma=0.3, alpha=MU, penalty="dual")):
        model = Subsampling(inner, max_samples=20, random_state=0).fit(X, y, sample_weight=weights)
        rows = model.sample_indices_
        assert len(np.unique(rows)) == 20 and (weights is None or (weights[rows] > 0).all())
        plain = clone(inner).fit(
            X[rows], y[rows], sample_weight=None if weights is None else weights[rows]
        )
        how = "predict" if estimator is KernelRidge else "decision_function"
        assert_close(getattr(model, how)(X), getattr(plain, how)(X))
        name = "held_out_prediction_" if estimator is KernelRidge else "held_out_decision_"
        assert_close(getattr(model.estimator_, name)[rows], getattr(plain, name))


def test_subsampling_needs_rows_in_memory():
    X, y = repeated_rows()
    with pytest.raises(ValueError, match="Subsampling needs the rows in memory"):
        Subsampling(LeastSquaresSVC(landmarks=5), max_samples=20).fit(open_rows([X]), y)


def test_averages_are_not_verified():
    X, y = repeated_rows()
    model = KernelAveraging(
        LeastSquaresSVC(gamma=0.3, alpha=1.0, cv=3), n_average=3, random_state=0
    ).fit(X, y)
    with pytest.raises(ValueError, match="would average other blocks"):
        model.estimator_.verify()


def test_subsampling_keeps_the_shares_of_the_classes():
    X, y = repeated_rows(3, n=100)
    model = Subsampling(LeastSquaresSVC(gamma=0.3, alpha=1.0), max_samples=0.3, random_state=0).fit(
        X, y
    )
    assert np.abs(np.bincount(y[model.sample_indices_]) - 0.3 * np.bincount(y)).max() < 1
    assert shares(np.array([97, 2, 1]), 10).tolist() == [8, 1, 1]
    assert shares(np.array([1, 1, 1]), 2).tolist() == [1, 1, 1]
    assert shares(np.array([5, 5]), 10).tolist() == [5, 5]
    whole = Subsampling(LeastSquaresSVC(gamma=0.3, alpha=1.0), max_samples=1000).fit(X, y)
    assert_close(
        whole.decision_function(X),
        LeastSquaresSVC(gamma=0.3, alpha=1.0).fit(X, y).decision_function(X),
    )


try:
    INSTANCES = [
        KernelAveraging(
            KernelFisherDiscriminant(gamma="scale", alpha=[0.1, 1.0]), n_average=2, random_state=0
        ),
        KernelAveraging(
            LeastSquaresSVC(gamma="scale", alpha=[0.1, 1.0], penalty="dual"),
            n_average=2,
            random_state=0,
        ),
        Subsampling(
            KernelFisherDiscriminant(gamma="scale", alpha=1.0), max_samples=0.8, random_state=0
        ),
        Subsampling(KernelRidge(gamma="scale", alpha=1.0), max_samples=0.8, random_state=0),
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
