"""Permutation tests of many targets: every score against literal refits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, LeaveOneGroupOut, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import (
    KernelRidge,
    ValidityWarning,
    permutation_test_score,
    permutation_test_targets,
)
from fitonce.core import columns as columns_module
from fitonce.inference import many_targets
from fitonce.inference.question import Question
from fitonce.inference.run import labellings_of, unpermuted

ALPHAS = np.logspace(-1, 3, 5)


def data(n=30, t=7):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4))
    Y = 5.0 + random.normal(size=(n, t))
    Y[:, :2] += X[:, :2]
    return X, Y, np.repeat(np.arange(n // 6), 6)


def scored(name, y, predicted):
    if name == "neg_mean_squared_error":
        return -np.mean((y - predicted) ** 2, axis=0)
    if name == "r2":
        return 1.0 - np.sum((y - predicted) ** 2, axis=0) / np.sum((y - y.mean(0)) ** 2, axis=0)
    return np.array([np.corrcoef(y[:, j], predicted[:, j])[0, 1] for j in range(y.shape[1])])


def literal(model, X, Y, splits, scoring, pooled, groups):
    """Cross-validation with a fit on every training set."""
    held, truth, each = [], [], []
    for train, test in splits:
        given = {} if groups is None else {"groups": groups[train]}
        held.append(model.fit(X[train], Y[train], **given).predict(X[test]))
        truth.append(Y[test])
        each.append(scored(scoring, truth[-1], held[-1]))
    return scored(scoring, np.vstack(truth), np.vstack(held)) if pooled else np.mean(each, axis=0)


@pytest.mark.parametrize(
    ("options", "exchange", "scoring", "pooled", "runs"),
    [
        ({"alpha_per_target": True, "cv": KFold(3)}, None, "r2", False, False),
        ({"alpha_per_target": True}, "shift", "correlation", True, True),
        ({"alpha_per_target": True, "penalty": "dual"}, "whole", "r2", True, True),
        ({}, None, "correlation", False, True),
        ({"alpha": 3.0, "fit_intercept": False}, "sign", "neg_mean_squared_error", False, False),
    ],
)
@pytest.mark.parametrize("permute", ["cosets", "free"])
@pytest.mark.parametrize("small", [False, True], ids=["", "blocks"])
def test_equal_to_refits(options, exchange, scoring, pooled, runs, permute, small, monkeypatch):
    X, Y, groups = data()
    if small:  # several blocks of targets, matrices made again for each block of permutations
        monkeypatch.setattr(columns_module, "COLUMN_ELEMENTS", 3000)
        monkeypatch.setattr(columns_module, "LEAST", 3)
        monkeypatch.setattr(many_targets, "MAX_BYTES", 1)
    groups = groups if runs else None
    cv = LeaveOneGroupOut() if runs else KFold(4)
    model = KernelRidge(**{"alpha": ALPHAS, "kernel": "rbf", "gamma": 0.1, **options})
    asked = {"groups": groups, "cv": cv, "permute": permute, "exchange": exchange}
    options = {"n_permutations": 3, "scoring": scoring, "pooled": pooled, "exact": False}
    test = permutation_test_targets(model, X, Y, **asked, **options)
    question = Question.of(model, X, Y, **asked)
    labellings = labellings_of(question, 3, False, np.random.RandomState(0))
    for found, labelling in zip(
        [test.score, *test.null], [unpermuted(question), *labellings], strict=True
    ):
        moved = question.permuted(labelling.rearrangement)
        splits = labelling.placement.splits
        expected = literal(model, X, moved, splits, scoring, pooled, groups)
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert test.mode == permute


def test_designed_targets_keep_the_level():
    """Every fold has the same targets in another order: free permutations find the design."""
    found, model = {None: 0, "free": 0}, KernelRidge(300.0, kernel="linear")
    for seed in range(25):
        random = np.random.default_rng(seed)
        X, design = random.normal(size=(24, 3)), random.normal(size=(4, 5))
        Y = np.concatenate([random.permutation(design) for _ in range(6)])
        asked = {"cv": KFold(6), "n_permutations": 19, "random_state": seed, "pooled": True}
        for permute in found:
            test = permutation_test_targets(model, X, Y, permute=permute, **asked)
            found[permute] += test.pvalue_max.min() <= 0.05
    assert found[None] <= 4 < 12 < found["free"], found


def test_pipelines_and_precomputed_kernels():
    X, Y, _ = data()
    splits = list(KFold(4).split(X))
    model = KernelRidge(ALPHAS, alpha_per_target=True, kernel="linear")
    scaled = make_pipeline(StandardScaler(), model)
    test = permutation_test_targets(scaled, 9.0 * X, Y, cv=KFold(4), n_permutations=1)
    expected = literal(scaled, 9.0 * X, Y, splits, "r2", False, None)
    np.testing.assert_allclose(test.score, expected, atol=1e-9)
    plain = permutation_test_targets(model, X, Y, cv=KFold(4), n_permutations=2)
    given = model.set_params(kernel="precomputed")
    kernel = permutation_test_targets(given, X @ X.T, Y, cv=KFold(4), n_permutations=2)
    np.testing.assert_allclose(kernel.null, plain.null, atol=1e-9)


def test_corrections_checkpoint_and_complete_lists(tmp_path, monkeypatch):
    X, Y, _ = data()
    model = KernelRidge(ALPHAS, alpha_per_target=True, kernel="linear")
    asked = {"cv": KFold(5), "permute": "free", "n_permutations": 99, "adjacency": np.eye(7, k=1)}
    mapped = np.memmap(tmp_path / "Y", np.float64, "w+", shape=Y.shape)
    mapped[:] = Y
    whole = permutation_test_targets(model, X, mapped, **asked)
    np.testing.assert_array_equal(
        whole.pvalue, (1 + (whole.null >= whole.score - 1e-12).sum(axis=0)) / 100
    )
    largest = whole.null.max(axis=1)
    np.testing.assert_array_equal(
        whole.pvalue_max, (1 + (largest[:, None] >= whole.score).sum(axis=0)) / 100
    )
    assert whole.clusters[0].positions.tolist() == [0, 1]
    assert whole.pvalue_cluster.tolist()[2:] == [1.0] * 5
    # interrupted after two blocks, then resumed
    scores, calls = many_targets.ManyTargets.scores, []

    def interrupted(self, orders):
        calls.append(len(orders))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return scores(self, orders)

    monkeypatch.setattr(many_targets.ManyTargets, "scores", interrupted)
    with pytest.raises(KeyboardInterrupt):
        permutation_test_targets(model, X, Y, checkpoint=tmp_path / "c", **asked)
    monkeypatch.undo()
    resumed = permutation_test_targets(model, X, Y, checkpoint=tmp_path / "c", **asked)
    np.testing.assert_allclose(resumed.null, whole.null, atol=1e-12)
    with pytest.raises(ValueError, match="belongs to another test"):
        permutation_test_targets(model, X, Y + 1, checkpoint=tmp_path / "c", **asked)
    turned = permutation_test_targets(model, X, Y, cv=KFold(5), exchange="shift", permute="free")
    assert turned.exact and turned.n_permutations_done == 29


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (KernelRidge(), {}, "needs a kernel that no target has a say in"),
        (LinearRegression(), {}, "must be a KernelRidge"),
        (KernelRidge(gamma=1.0), {"scoring": "max_error"}, "scoring must be one of"),
        (KernelRidge(gamma=1.0), {"cv": LeaveOneOut()}, "pooled=True"),
        (KernelRidge(gamma=1.0), {"cv": StratifiedKFold(3)}, "depend on y"),
        (KernelRidge(gamma=1.0), {"exchange": "whole"}, "needs groups"),
    ],
)
def test_refusals(model, options, message):
    X, Y, _ = data()
    with pytest.raises((ValueError, TypeError), match=message):
        permutation_test_targets(model, X, Y, n_permutations=2, **options)
    with pytest.raises(ValueError, match="shape"):
        permutation_test_targets(KernelRidge(gamma=1.0), X, Y[:, 0])


def test_free_permutations_of_designed_targets_are_warned_of():
    """Targets that alternate have the same mean in every fold; permuted ones do not, and the test
    rejects too often.
    """
    rng = np.random.default_rng(0)
    X, model = rng.normal(size=(40, 4)), KernelRidge(1.0, kernel="linear")
    alternating = np.tile([1.0, -1.0], 20)[:, None] + 0.3 * rng.normal(size=(40, 6))
    options = {"cv": KFold(5), "n_permutations": 19, "permute": "free"}
    with pytest.warns(ValidityWarning, match="more evenly than by chance"):
        permutation_test_targets(model, X, alternating, **options)
    with pytest.warns(ValidityWarning, match="more evenly than by chance"):
        permutation_test_score(model, X, alternating[:, 0], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        permutation_test_targets(model, X, rng.permutation(alternating), **options)
        permutation_test_targets(model, X, alternating, **{**options, "permute": None})
