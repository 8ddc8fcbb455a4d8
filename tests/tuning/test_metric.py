"""The learned metric: gradients, forms, what the folds say and what is held out, against literal
refits.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

import fitonce
from fitonce import KernelAveraging, KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, load
from fitonce.kernels import Kernel, MetricKernels, projection_of
from fitonce.plotting import MetricDisplay
from fitonce.tuning.metric import Form, metric_of, outer_products

ESTIMATORS = (KernelFisherDiscriminant, LeastSquaresSVC, KernelRidge)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def rows(estimator, n=90, p=6, seed=0):
    """Two features decide, as a product; unbalanced classes, a repeated row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[3] = X[2]
    f = X[:, 0] * X[:, 1]
    if estimator is KernelRidge:
        return X, np.tanh(4.0 * f) + 0.05 * rng.normal(size=n)
    return X, np.where(f + 0.05 * rng.normal(size=n) > 0.1, "b", "a")


def outputs(model, X):
    return model.predict(X) if isinstance(model, KernelRidge) else model.decision_function(X)


def held_out(model):
    named = "prediction" if isinstance(model, KernelRidge) else "decision"
    return getattr(model, f"held_out_{named}_")


@pytest.mark.parametrize("kernel", MetricKernels)
@pytest.mark.parametrize("shape", ["plain", "diagonal", "full"])
def test_outer_products_are_those_of_finite_differences(kernel, shape):
    rng = np.random.default_rng(1)
    X, alpha, weights = rng.normal(size=(12, 4)), rng.normal(size=(12, 2)), rng.random(12) + 0.5
    M = {"plain": None, "diagonal": np.array([0.1, 2.0, 1.0, 0.5]), "full": np.cov(X.T)}[shape]
    k = Kernel(kernel, {"gamma": 0.3}, projection=projection_of(M, X))
    expected = np.zeros((4, 4))
    for x, w in zip(X, weights / weights.mean(), strict=True):
        # away from the tip of the exponential kernel, where it has no gradient
        others = np.any(x != X, axis=1)
        steps = 1e-6 * np.eye(4)
        slope = (k(x + steps, X[others]) - k(x - steps, X[others])) @ alpha[others] / 2e-6
        expected += w * slope @ slope.T
    G = outer_products(k, X, X, alpha, weights)
    np.testing.assert_allclose(G, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", MetricKernels)
def test_a_kernel_with_a_metric_is_the_kernel_of_mapped_rows(kernel):
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(20, 3)), rng.normal(size=(5, 3))
    M = np.cov(rng.normal(size=(9, 3)).T)
    plain, L = Kernel(kernel, {"gamma": 0.4}), np.linalg.cholesky(M)
    mapped = Kernel(kernel, {"gamma": 0.4}, projection=projection_of(M, X))
    np.testing.assert_allclose(mapped(new, X), plain(new @ L, X @ L), rtol=1e-10)
    np.testing.assert_allclose(mapped(sp.csr_matrix(new), sp.csr_matrix(X)), mapped(new, X))
    diagonal = Kernel(kernel, {"gamma": 0.4}, projection=projection_of(np.diag(M), X))
    scaled = X * np.sqrt(np.diag(M))
    np.testing.assert_allclose(diagonal(X, X), plain(scaled, scaled), rtol=1e-10)


def test_forms_of_a_metric():
    G = np.diag([3.0, 1.0, 0.0])
    np.testing.assert_allclose(metric_of(G, Form(True, 1.0, 1)), [2.251, 0.751, 0.001])
    np.testing.assert_allclose(
        metric_of(G, Form(False, 0.5, 1)), np.diag(np.sqrt([2.251, 0.751, 0.001])), atol=1e-12
    )
    np.testing.assert_allclose(metric_of(0 * G, Form(False, 1.0, 1)), 1.001 * np.eye(3))


@pytest.mark.slow
@every_estimator
@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_a_metric_finds_the_features_that_matter(estimator, metric, tmp_path):
    X, y = rows(estimator)
    new, y_new = rows(estimator, 400, seed=5)
    model, plain = (
        estimator(metric=m, criterion="squared_error").fit(X, y) for m in (metric, None)
    )
    weights = model.metric_ if metric == "diagonal" else np.diag(model.metric_)
    assert weights.shape == (6,) and min(weights[:2]) > 2 * max(weights[2:])
    score = fitonce.estimators.fitted.held_out_output(model)
    assert score.shape == fitonce.estimators.fitted.held_out_output(plain).shape
    assert model.score(new, y_new) > plain.score(new, y_new)
    assert model.verify(3).passed
    again = load(fitonce.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(outputs(again, new), outputs(model, new))
    fixed = {"metric": model.metric_, "gamma": model.gamma_, "alpha": model.alpha_}
    given = estimator(**fixed).fit(X, y)
    np.testing.assert_allclose(
        outputs(given, new) - outputs(given, new[:1]),
        outputs(model, new) - outputs(model, new[:1]),
        atol=1e-8,
    )
    fixed = estimator(**fixed, **({} if estimator is KernelRidge else {"calibration": None}))
    assert fitonce.cross_validate(fixed, X, y, cv=3).route.name == "one"


@pytest.mark.slow
@every_estimator
def test_held_out_outputs_are_of_metrics_that_have_not_seen_the_row(estimator):
    """The folds written out: a fit of the training rows in the same form, learned there."""
    X, y = rows(estimator, 70)
    cv = KFold if estimator is KernelRidge else StratifiedKFold
    model = estimator(metric="diagonal").fit(X, y)
    kept = model.metric_search_["kept"]
    assert kept != "none"
    power, rounds = float(kept.split("power ")[1].split(",")[0]), int(kept.split(", ")[2][0])
    expected = np.empty(len(X))
    for train, test in cv(5, shuffle=True, random_state=0).split(X, y):
        weights = literal(estimator, X[train], y[train], power, rounds)
        fixed = {
            "metric": weights,
            "gamma": model.gamma_,
            "alpha": model.alpha_,
            **plain(estimator),
        }
        expected[test] = outputs(estimator(**fixed).fit(X[train], y[train]), X[test])
    shift = getattr(model, "_shift", 0.0)
    np.testing.assert_allclose(held_out(model) - shift, expected, rtol=1e-5, atol=1e-7)


def plain(estimator):
    return {} if estimator is KernelRidge else {"calibration": None}


def literal(estimator, X, y, power, rounds):
    """Rounds written out, with the search of gamma that the library makes."""
    model = estimator(**plain(estimator)).fit(X, y)
    weights = np.ones(X.shape[1])
    for _ in range(rounds):
        Z = X * np.sqrt(weights)
        centre = 1.0 / (2.0 * Z.var(axis=0).sum())
        gamma, dual = model.gamma_, model.dual_coef_.reshape(len(X), -1)
        K = np.exp(-gamma * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
        slopes = -2 * gamma * np.einsum("ij,ijf,jt->ift", K, Z[:, None] - Z[None], dual)
        G = np.sum((slopes * np.sqrt(weights)[:, None]) ** 2, axis=(0, 2))
        weights = (G * len(G) / G.sum() + 1e-3) ** power
        Z = X * np.sqrt(weights)
        moved = 1.0 / (2.0 * Z.var(axis=0).sum()) / centre
        model = nearby(estimator, Z, y, round(np.log2(gamma * moved)))
    return weights


def nearby(estimator, Z, y, centre):
    from fitonce.tuning.lattice import GammaLattice
    from fitonce.tuning.search import Trial, coarse_gammas, finer_gammas

    fits = {}

    def evaluate(several):
        trials = []
        for parameters in several:
            gamma = parameters["gamma"]
            fit = fits[gamma] = estimator(gamma=gamma, **plain(estimator)).fit(Z, y)
            loss = np.array([fit.cv_results_["mean_test_score"].max()])
            trials.append(Trial(parameters, np.array([fit.alpha_]), -loss))
        return trials

    lattice = GammaLattice(centre, 2)
    first = coarse_gammas(evaluate, {}, lattice)
    trials = finer_gammas(evaluate, {}, lattice, first)
    return fits[min(trials, key=lambda t: (t.loss, t.parameters["gamma"])).parameters["gamma"]]


@pytest.mark.slow
@every_estimator
def test_cross_validation_learns_on_each_training_set(estimator):
    X, y = rows(estimator, 45, 3)
    method = "predict" if estimator is KernelRidge else "decision_function"
    model = estimator(metric="diagonal")
    ours, theirs = (
        function(model, X, y, cv=2, method=method)
        for function in (fitonce.cross_val_predict, sklearn.model_selection.cross_val_predict)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
    fixed = estimator(metric="diagonal", alpha=0.1, gamma=0.5)
    assert "metric is learned" in str(fitonce.cross_validate(fixed, X, y, cv=2).route)


def test_permutation_tests_learn_the_metric_again():
    X, y = rows(LeastSquaresSVC, 30, 2)
    model = LeastSquaresSVC(metric="diagonal", gamma=0.5, alpha=0.1)
    options = {"cv": 2, "n_permutations": 3, "random_state": 0}
    ours = fitonce.permutation_test_score(model, X, y, permute="resplit", **options)
    theirs = sklearn.model_selection.permutation_test_score(model, X, y, **options)
    np.testing.assert_allclose(ours[1], theirs[1])


def test_noise_keeps_the_plain_kernel():
    kept = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 60)), rng.integers(0, 2, 60)
        model = KernelFisherDiscriminant(metric="diagonal").fit(X, y)
        plain = KernelFisherDiscriminant().fit(X, y)
        kept += model.metric_ is not None
        if model.metric_ is None:
            np.testing.assert_array_equal(model.held_out_decision_, plain.held_out_decision_)
            assert model.at(1.0).alpha_ == 1.0
    assert kept == 0


@pytest.mark.slow
def test_a_chosen_kernel_groups_weights_and_one_row_of_a_class():
    X, y = rows(LeastSquaresSVC, 60)
    chosen = LeastSquaresSVC(kernel=["linear", "rbf", "exponential"], metric="diagonal").fit(X, y)
    assert chosen.metric_ is not None and chosen.kernel_ in MetricKernels
    weights = np.ones(60)
    weights[:4] = 0.0
    weighted = LeastSquaresSVC(metric="diagonal").fit(X, y, sample_weight=weights)
    alone = LeastSquaresSVC(metric="diagonal").fit(X[4:], y[4:])
    np.testing.assert_allclose(weighted.decision_function(X), alone.decision_function(X), rtol=1e-6)
    assert np.all(np.isfinite(weighted.held_out_decision_))
    grouped = KernelFisherDiscriminant(metric="diagonal").fit(X, y, groups=np.arange(60) // 6)
    assert grouped.metric_search_["losses"]
    y[0] = "c"
    assert LeastSquaresSVC(metric="learn").fit(X, y).metric_ is None


def test_landmarks_and_sparse_rows_with_a_given_metric():
    X, y = rows(KernelRidge)
    M = np.array([4.0, 4.0, 0.01, 0.01, 0.01, 0.01])
    dense = KernelRidge(metric=M, landmarks=20, random_state=0).fit(X, y)
    assert dense.verify(2).passed
    sparse = KernelRidge(metric=np.diag(M)).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(
        sparse.predict(X), KernelRidge(metric=M).fit(X, y).predict(X), rtol=1e-6
    )


@pytest.mark.slow
@every_estimator
def test_landmarks_at_all_rows_learn_the_metric_of_the_exact_model(estimator):
    """The span of the kernels at all rows holds every fold's model: the same rounds, by sums over
    features instead of a kernel matrix.
    """
    X, y = rows(estimator, 60, 3)
    settings = {"metric": "diagonal", "kernel": "exponential", "alpha": 2.0 ** np.arange(-12, 3)}
    exact = estimator(**settings).fit(X, y)
    model = estimator(**settings, landmarks=X).fit(X, y)
    assert model.metric_search_["kept"] == exact.metric_search_["kept"] != "none"
    np.testing.assert_allclose(model.metric_, exact.metric_, rtol=1e-5)
    np.testing.assert_allclose(held_out(model), held_out(exact), rtol=1e-4, atol=1e-5)
    assert model.best_score_ == pytest.approx(exact.best_score_, rel=1e-5)


@every_estimator
@pytest.mark.parametrize("shared", [False, "drop"])
def test_landmarks_held_out_by_metrics_that_have_not_seen_the_row(estimator, shared):
    """The folds written out with the landmarks of all rows, or those among the training rows."""
    X, y = rows(estimator, 80, 4)
    weights = np.where(np.arange(80) % 3, 1.0, 2.0)
    cv = KFold if estimator is KernelRidge else StratifiedKFold
    fixed = {"gamma": 0.25, "alpha": 0.05}
    settings = {"landmarks": 50, "shared_landmarks": shared, "random_state": 0}
    model = estimator(metric="diagonal", **settings, **fixed).fit(X, y, sample_weight=weights)
    kept = model.metric_search_["kept"]
    assert kept != "none" and model.landmarks_.shape == (50, 4)
    power, rounds = float(kept.split("power ")[1].split(",")[0]), int(kept.split(", ")[2][0])
    expected = np.empty(len(X))
    for train, test in cv(5, shuffle=True, random_state=0).split(X, y):
        inside = np.isin(model.landmark_indices_, train) | (shared is False)
        part = X[train], y[train], weights[train]
        given = {**fixed, "landmarks": model.landmarks_[inside]}
        refit = on_landmarks(estimator, given, *part, power, rounds)
        expected[test] = outputs(refit, X[test])
    shift = getattr(model, "_shift", 0.0)
    np.testing.assert_allclose(held_out(model) - shift, expected, rtol=1e-6, atol=1e-8)
    assert model.verify(3).passed


def on_landmarks(estimator, settings, X, y, w, power, rounds):
    """The model of one training set after its rounds, written out."""
    gamma, points, metric = settings["gamma"], settings["landmarks"], np.ones(X.shape[1])
    for _ in range(rounds):
        model = estimator(metric=metric, **settings, **plain(estimator))
        dual = model.fit(X, y, sample_weight=w).dual_coef_.reshape(len(points), -1)
        difference = X[:, None] - points[None]
        K = np.exp(-gamma * np.sum(metric * difference**2, axis=2))
        slopes = -2 * gamma * metric[:, None] * np.einsum("ij,ijf,jt->ift", K, difference, dual)
        G = np.einsum("i,ift->f", w, slopes**2)
        metric = (G * len(G) / G.sum() + 1e-3) ** power
    model = estimator(metric=metric, **settings, **plain(estimator))
    return model.fit(X, y, sample_weight=w)


@pytest.mark.slow
@every_estimator
def test_cross_validation_with_landmarks_and_a_metric(estimator):
    X, y = rows(estimator, 60, 3)
    method = "predict" if estimator is KernelRidge else "decision_function"
    model = estimator(metric="diagonal", landmarks=20, random_state=0, gamma=0.5)
    ours, theirs = (
        function(model, X, y, cv=2, method=method)
        for function in (fitonce.cross_val_predict, sklearn.model_selection.cross_val_predict)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "euclid"}, "must be None"),
        ({"gamma": "ard"}, 'metric="diagonal"'),
        ({"metric": "learn", "kernel": "laplacian"}, "Euclidean"),
        ({"metric": np.ones(6), "kernel": ["rbf", "linear"]}, "Euclidean"),
        ({"metric": "learn", "refine": True}, "refine"),
        ({"metric": np.diag([1.0, 1, 1, 1, 1, -1])}, "negative"),
        ({"metric": np.ones((6, 5))}, "shape"),
        ({"metric": np.ones(5)}, "6 features"),
    ],
)
def test_refusals(settings, message):
    X, y = rows(KernelRidge)
    with pytest.raises(ValueError, match=message):
        KernelRidge(**settings).fit(X, y)


def test_what_leaves_rows_out_refuses_a_learned_metric():
    X, y = rows(KernelRidge)
    model = KernelRidge(metric="diagonal").fit(X, y)
    for ask in (
        lambda: model.at(1.0),
        lambda: model.predict_interval(X),
        lambda: model.influence(),
    ):
        with pytest.raises(ValueError, match="depends on their labels"):
            ask()
    with pytest.raises(ValueError, match="averages"):
        KernelAveraging(LeastSquaresSVC(metric="learn"), n_average=2).fit(X, y > 0)


def test_shares_of_features_are_drawn_and_exported():
    X, y = rows(KernelRidge)
    model = KernelRidge(metric="full").fit(X, y)
    shown = MetricDisplay.from_estimator(model, n_features=4)
    assert shown.shares.sum() == pytest.approx(1.0) and set(shown.shares.argsort()[-2:]) == {0, 1}
    assert len(shown.bars_) == 4
    with pytest.raises(ValueError, match="without"):
        MetricDisplay.from_estimator(KernelRidge(gamma=1.0, alpha=1.0).fit(X, y))
    ort = pytest.importorskip("onnxruntime")
    graph = fitonce.to_onnx(model, dtype="float64")
    session = ort.InferenceSession(graph.SerializeToString())
    (name,) = (entry.name for entry in session.get_inputs())
    np.testing.assert_allclose(
        np.ravel(session.run(None, {name: X})[0]), model.predict(X), rtol=1e-6, atol=1e-8
    )


@pytest.mark.torch
@pytest.mark.parametrize("settings", [{}, {"landmarks": 50, "random_state": 0, "gamma": 0.25}])
def test_arrays_of_torch_learn_the_same_metric(settings):
    torch = pytest.importorskip("torch")
    X, y = rows(LeastSquaresSVC, 80, 4)
    model = LeastSquaresSVC(metric="diagonal", **settings)
    ours, theirs = clone(model).fit(X, y), clone(model).fit(torch.asarray(X), y)
    assert ours.metric_search_["kept"] == theirs.metric_search_["kept"] != "none"
    assert isinstance(theirs.metric_, torch.Tensor)
    np.testing.assert_allclose(np.asarray(theirs.metric_), ours.metric_, rtol=1e-6)
    said = theirs.decision_function(torch.asarray(X))
    np.testing.assert_allclose(np.asarray(said), ours.decision_function(X), rtol=1e-5, atol=1e-7)
