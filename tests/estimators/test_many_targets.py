"""Every target with its own alpha, and many targets in blocks: against literal refits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, LeaveOneOut, RepeatedKFold
from sklearn.model_selection import cross_val_predict as refitted
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce import KernelRidge
from fitonce.core import columns as columns_module
from fitonce.core.held_out_maps import held_out_map
from fitonce.core.progress import progress_callback
from fitonce.estimators import by_target
from optional import require

ALPHAS = np.logspace(-2, 4, 4)


def data(n=24, p=5, t=90, seed=0):
    """Targets of different strength, some of them noise, one constant, two equal; rows twice."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, p))
    X[3] = X[4]
    Y = 2.0 + X @ random.standard_normal((p, t)) * random.uniform(0.0, 2.0, t)
    Y += random.standard_normal((n, t))
    Y[:, 1], Y[:, 2] = 4.0, Y[:, 0]
    return X, Y


def scored(name, y, predicted, weights):
    """One score per target, written out."""
    mean = weights @ y / weights.sum()
    if name == "squared_error":
        return -(weights @ (y - predicted) ** 2) / weights.sum()
    if name == "r2":
        total = weights @ (y - mean) ** 2
        return 1.0 - (weights @ (y - predicted) ** 2) / np.where(total > 1e-20, total, 1.0)
    centred, other = y - mean, predicted - weights @ predicted / weights.sum()
    spread = (weights @ centred**2) * (weights @ other**2)
    together = weights @ (centred * other)
    return np.where(spread > 1e-20, together / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0)


def literal(model, X, Y, splits, criterion, weights, pooled=True):
    """Fit on every training set with every alpha: scores (m, t), and predictions (m, n, t)."""
    plain = KernelRidge(**{**model.get_params(), "alpha_per_target": False, "cv": None})
    tests = [test for _, test in splits]
    rows, folds = np.concatenate(tests), np.repeat(np.arange(len(tests)), [*map(len, tests)])
    kept, scores, predictions = weights[rows] > 0, [], []
    for alpha in ALPHAS:
        fold, held = plain.set_params(alpha=alpha), []
        for train, test in splits:
            parts = Y[train][:, :50], Y[train][:, 50:]  # fewer than many: the old way
            fits = (fold.fit(X[train], part, weights[train]) for part in parts)
            held.append(np.hstack([one.predict(X[test]) for one in fits]))
        predicted = np.concatenate(held)
        given = Y[rows], predicted, weights[rows]
        every = [kept] if pooled else [kept & (folds == number) for number in np.unique(folds)]
        each = [scored(criterion, *(part[own] for part in given)) for own in every]
        scores.append(np.mean(each, axis=0))
        mean = np.zeros_like(Y)
        np.add.at(mean, rows, predicted)
        predictions.append(mean / np.bincount(rows, minlength=len(Y))[:, None])
    return np.array(scores), np.array(predictions)


def check(model, scores, predictions):
    position, targets = np.searchsorted(ALPHAS, model.alpha_), np.arange(scores.shape[1])
    np.testing.assert_allclose(model.best_score_, scores.max(axis=0), atol=1e-9)
    np.testing.assert_allclose(model.best_score_, scores[position, targets], atol=1e-9)
    own, mean = predictions[position, :, targets].T, model.cv_results_["mean_test_score"]
    np.testing.assert_allclose(model.held_out_prediction_, own, atol=1e-8)
    np.testing.assert_allclose(mean, scores.mean(axis=1), rtol=1e-9, atol=1e-9)


SPLITTERS = {
    "leave-one-out": None,
    "folds": KFold(4),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "groups": GroupKFold(4),
    "runs": LeaveOneGroupOut(),
}


RBF = {"kernel": "rbf", "gamma": 0.1}


@pytest.mark.parametrize(
    ("cv", "criterion", "options", "weighted"),
    [
        ("leave-one-out", "squared_error", RBF, False),
        ("leave-one-out", "squared_error", RBF, True),
        ("leave-one-out", "r2", {"kernel": "linear", "fit_intercept": False}, True),
        ("folds", "r2", {**RBF, "penalty": "dual"}, True),
        ("folds", "correlation", {"kernel": "linear"}, False),
        ("folds", "correlation", {"kernel": "linear"}, True),
        ("repeated", "correlation", {**RBF, "fit_intercept": "penalized"}, True),
        ("groups", "squared_error", {"kernel": "poly", "gamma": 0.2, "degree": 2}, True),
        ("runs", "r2", {"kernel": "rbf", "gamma": 0.3, "pooled": False}, False),
        ("runs", "r2", {"kernel": "rbf", "gamma": 0.3, "pooled": False}, True),
    ],
)
def test_equal_to_refits(cv, criterion, options, weighted, monkeypatch):
    """By formulas and by maps, which are the same for all targets."""
    X, Y = data()
    random = np.random.default_rng(1)
    weights = random.integers(1, 4, len(X)).astype(float) if weighted else np.ones(len(X))
    if weighted:
        weights[[0, 7]] = 0.0  # do not train, are predicted
    given = weights if weighted else None
    groups = np.repeat(np.arange(6), 4) if cv in ("groups", "runs") else None
    splitter = SPLITTERS[cv]
    splits = list((splitter or LeaveOneOut()).split(X, Y, groups))
    monkeypatch.setattr(columns_module, "COLUMN_ELEMENTS", 20_000)  # several blocks
    model = KernelRidge(ALPHAS, alpha_per_target=True, criterion=criterion, cv=splitter, **options)
    refits = literal(model, X, Y, splits, criterion, weights, options.get("pooled", True))
    for maps in (False, True):
        monkeypatch.setattr(fitonce.core.smoothers.FunctionNorm, "maps_pay", lambda *_, m=maps: m)
        monkeypatch.setattr(fitonce.core.holdout.Smoother, "maps_pay", lambda *_, m=maps: m)
        model.fit(X, Y, given, groups=groups)
        check(model, *refits)
        assert model.alpha_.shape == model.best_score_.shape == model.effective_dof_.shape == (90,)
        assert model.alpha_[0] == model.alpha_[2]
        assert model.verify(n_refits=2).passed
    plain = KernelRidge(float(model.alpha_[0]), **options).fit(X, Y[:, 0], given)
    np.testing.assert_allclose(model.predict(X)[:, 0], plain.predict(X), atol=1e-9)
    np.testing.assert_allclose(model.effective_dof_[0], plain.effective_dof_, rtol=1e-9)


def test_leave_one_out_is_that_of_ridgecv():
    X, Y = data(t=130)
    Y = np.delete(Y, 1, axis=1)  # scikit-learn's choice for a constant target is a tie's
    theirs = RidgeCV(ALPHAS, alpha_per_target=True).fit(X, Y)
    ours = KernelRidge(ALPHAS, alpha_per_target=True, kernel="linear").fit(X, Y)
    np.testing.assert_array_equal(ours.alpha_, theirs.alpha_)
    np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-10)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-10)
    raw = ours.score(X, Y, multioutput="raw_values")
    np.testing.assert_allclose(raw, r2_score(Y, theirs.predict(X), multioutput="raw_values"))
    assert ours.score(X, Y) == pytest.approx(raw.mean())


def test_one_alpha_for_many_targets_is_what_few_get(monkeypatch):
    X, Y = data()
    for criterion, gamma in (("squared_error", "tune"), ("r2", 0.1), ("correlation", 0.1)):
        model = KernelRidge(criterion=criterion, gamma=gamma, cv=KFold(4))
        blocks = model.fit(X, Y)
        monkeypatch.setattr(by_target, "MANY", 10**6)
        whole = KernelRidge(**model.get_params()).fit(X, Y)
        monkeypatch.undo()
        assert (blocks.alpha_, blocks.gamma_) == (whole.alpha_, whole.gamma_)
        for name in ("held_out_prediction_", "dual_coef_", "intercept_", "leverage_"):
            np.testing.assert_allclose(getattr(blocks, name), getattr(whole, name), atol=1e-9)
        assert blocks.best_score_ == pytest.approx(whole.best_score_, rel=1e-9)
        ours, theirs = (one.cv_results_["mean_test_score"] for one in (blocks, whole))
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    assert blocks.verify(2).passed
    np.testing.assert_allclose(blocks.influence(), whole.influence(), atol=1e-9)
    ours, theirs = (one.at(3.0).held_out_prediction_ for one in (blocks, whole))
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_the_kernel_of_the_best_mean_is_chosen():
    X, Y = data()
    model = KernelRidge(ALPHAS, alpha_per_target=True, kernel="poly", coef0=1.0, gamma=0.3)
    tuned = clone(model).set_params(degree="tune").fit(X, Y)
    means = [model.set_params(degree=d).fit(X, Y).best_score_.mean() for d in (2, 3, 4)]
    assert tuned.degree_ == 2 + np.argmax(means)
    assert tuned.best_score_.mean() == pytest.approx(max(means))


def test_files_blocks_and_single_precision(tmp_path, monkeypatch):
    X, Y = data(t=300)
    mapped = np.memmap(tmp_path / "targets", np.float32, "w+", shape=Y.shape)
    mapped[:] = Y
    monkeypatch.setattr(columns_module, "COLUMN_ELEMENTS", 18_000)
    heard = []
    asked = {"alpha_per_target": True, "kernel": "rbf", "gamma": 0.1, "cv": KFold(4)}
    with progress_callback(lambda done, total, what: heard.append((done, total, what))):
        model = KernelRidge(ALPHAS, **asked).fit(X, mapped)
    assert (300, 300, "targets") in heard and len(heard) >= 4
    exact = KernelRidge(ALPHAS, **asked).fit(X, np.asarray(mapped, dtype=np.float64))
    assert model.held_out_prediction_.dtype == model.dual_coef_.dtype == np.float32
    assert exact.held_out_prediction_.dtype == np.float64
    same = model.alpha_ == exact.alpha_
    assert same.mean() > 0.98
    np.testing.assert_allclose(model.best_score_, exact.best_score_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        model.held_out_prediction_[:, same], exact.held_out_prediction_[:, same], atol=1e-5
    )
    assert model.verify(2).passed
    mapped[0, 0] += 1.0
    for ask in (lambda: model.at(1.0), lambda: model.verify(2)):
        with pytest.raises(ValueError, match="targets have changed since the fit"):
            ask()


def test_what_is_kept(monkeypatch, tmp_path):
    X, Y = data()
    model = KernelRidge(ALPHAS, alpha_per_target=True, kernel="linear", store_dual_coef=False)
    model.fit(X, Y)
    assert not hasattr(model, "dual_coef_") and model.held_out_prediction_.shape == Y.shape
    with pytest.raises(ValueError, match="store_dual_coef=True"):
        model.predict(X)
    assert model.at(1.0).held_out_prediction_.shape == Y.shape
    monkeypatch.setattr(by_target, "STORED", 10)
    lean = KernelRidge(ALPHAS, alpha_per_target=True, kernel="linear").fit(X, Y)
    assert not hasattr(lean, "dual_coef_") and not hasattr(lean, "held_out_prediction_")
    assert lean.alpha_.shape == (90,)
    with pytest.raises(ValueError, match="store_held_out=True"):
        lean.verify()
    model.set_params(store_dual_coef=True).fit(X, Y)
    fitonce.save(model, tmp_path / "model.skops")
    again = fitonce.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.alpha_, model.alpha_)


def test_nested(monkeypatch):
    X, Y = data()
    model = KernelRidge(ALPHAS, alpha_per_target=True, kernel="rbf", gamma=0.1, cv=KFold(3))
    for estimator in (model, make_pipeline(StandardScaler(), model)):
        monkeypatch.setattr(by_target, "STORED", 10)  # each fold needs its coefficients
        ours = fitonce.cross_val_predict(estimator, X, Y, cv=KFold(4))
        monkeypatch.undo()
        np.testing.assert_allclose(ours, refitted(estimator, X, Y, cv=KFold(4)), atol=1e-9)
    result = fitonce.cross_validate(model, X, Y, cv=KFold(4), scoring="r2")
    assert result.route.name == "per-fold"


def test_a_function_or_scorer_is_called_for_each_target():
    X, Y = data(t=5)
    asked = {"kernel": "rbf", "gamma": 0.1, "cv": KFold(4)}
    for criterion in ("neg_mean_absolute_error", lambda y, p: -np.max(np.abs(y - p))):
        model = KernelRidge(ALPHAS, alpha_per_target=True, criterion=criterion, **asked).fit(X, Y)
        for target in (0, 2, 3, 4):  # all but the constant one, a tie to rounding
            one = KernelRidge(ALPHAS, criterion=criterion, **asked).fit(X, Y[:, target])
            assert model.alpha_[target] == one.alpha_
            assert model.best_score_[target] == pytest.approx(one.best_score_)


@pytest.mark.torch
def test_torch_gives_the_same():
    torch = require("torch")
    X, Y = data(t=100)
    asked = {"alpha_per_target": True, "kernel": "rbf", "gamma": 0.1, "cv": KFold(4)}
    ours = KernelRidge(ALPHAS, **asked).fit(X, Y)
    for y in (Y, torch.asarray(Y)):
        model = KernelRidge(ALPHAS, **asked).fit(torch.asarray(X), y)
        np.testing.assert_array_equal(model.alpha_, ours.alpha_)
        held = model.held_out_prediction_
        assert isinstance(held, torch.Tensor)
        np.testing.assert_allclose(held.numpy(), ours.held_out_prediction_, atol=1e-9)
    single = KernelRidge(ALPHAS, store_dual_coef=True, **asked)
    single.fit(torch.asarray(X), torch.asarray(Y).float())
    same = single.alpha_ == ours.alpha_
    assert single.dual_coef_.dtype == torch.float32 and same.mean() > 0.95
    np.testing.assert_allclose(
        single.held_out_prediction_[:, same], ours.held_out_prediction_[:, same], atol=1e-4
    )
    difference = single.predict(torch.asarray(X)).numpy() - ours.predict(X)
    assert np.abs(difference[:, same]).max() < 1e-4


def test_a_basis_of_alphas_makes_all_of_them():
    random = np.random.default_rng(0)
    eigenvalues = random.uniform(1.0, 9.0, 50)
    left, right = random.standard_normal((12, 50)), random.standard_normal((50, 40))
    mus = np.logspace(-3, 5, 30)
    matrices = np.stack([(left / (eigenvalues + mu)) @ right for mu in mus])
    made = held_out_map(np.arange(40), np.arange(12), matrices)
    assert made.basis.shape[0] < 20
    Y = random.standard_normal((40, 6))
    size = np.abs(matrices @ Y).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(made(Y) / size, (matrices @ Y) / size, atol=1e-11)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"refine": True}, "chooses among candidates"),
        ({"criterion": "gcv"}, "needs a criterion of held-out values"),
        ({"landmarks": 5}, "needs landmarks=None"),
        ({"alpha_per_target": "yes"}, "alpha_per_target must be one of"),
    ],
)
def test_refusals(options, message):
    X, Y = data(t=4)
    with pytest.raises(ValueError, match=message):
        KernelRidge(**{"alpha_per_target": True, **options}).fit(X, Y)


def test_refusals_of_a_fitted_model():
    X, Y = data(t=70)
    model = KernelRidge(ALPHAS, alpha_per_target=True, gamma=0.1).fit(X, Y)
    for ask in (
        model.influence,
        model.gaussian_process,
        lambda: model.predict(X, return_std=True),
        lambda: model.predict_interval(X),
        lambda: fitonce.plotting.RegularizationPathDisplay.from_estimator(model),
    ):
        with pytest.raises(ValueError, match="alpha_per_target"):
            ask()
    bad = Y.copy()
    bad[2, 5] = np.nan
    with pytest.raises(ValueError, match="contains NaN, first in target number 5"):
        KernelRidge(ALPHAS, gamma=0.1).fit(X, bad)
