"""Arrays of other namespaces: the numbers of NumPy, in the caller's namespace."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    NumericalWarning,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    held_out,
    held_out_discriminant,
)
from problems import (
    ESTIMATORS,
    PARAMETERS,
    every_classifier,
    every_estimator,
    labelled_rows,
    numbered_rows,
    rows_for,
)

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform")
NAMESPACES = ["array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]
N = 24


@pytest.fixture(params=NAMESPACES)
def xp(request):
    return (
        pytest.importorskip(request.param)
        if request.param != "torch"
        else importlib.import_module("torch")
    )


def on_host(array) -> np.ndarray:
    return np.asarray(array)


def in_namespace(array, xp) -> bool:
    return type(array) is type(xp.asarray(1.0))


def same(array, expected: np.ndarray, xp, rtol: float = 1e-10) -> None:
    """An array of the namespace with NumPy's numbers."""
    assert in_namespace(array, xp), type(array)
    assert tuple(array.shape) == expected.shape
    finite = np.abs(expected[np.isfinite(expected)])
    np.testing.assert_allclose(
        on_host(array), expected, rtol=0, atol=rtol * max(finite.max(initial=0.0), 1.0)
    )


@pytest.mark.pairwise
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("kernel", PARAMETERS)
@every_estimator
def test_every_number_is_numpys(estimator, kernel, penalty, xp):
    X, y = rows_for(estimator, N, n_targets=2)
    new = X[::4] + 0.1
    if kernel == "precomputed":
        X, new = (pairwise_kernels(rows, X, metric="rbf", gamma=0.2) for rows in (X, new))
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=N)
    setting = {"kernel": kernel, "penalty": penalty, "alpha": [0.3, 3.0], **PARAMETERS[kernel]}
    ours = estimator(**setting).fit(X, y, sample_weight=weights)
    theirs = estimator(**setting).fit(
        xp.asarray(X), xp.asarray(y), sample_weight=xp.asarray(weights)
    )
    assert theirs.alpha_ == ours.alpha_
    for name, value in vars(ours).items():
        if not name.endswith("_") or name.startswith("_") or name in ("cv_results_", "classes_"):
            continue
        if isinstance(value, np.ndarray):
            same(getattr(theirs, name), value, xp)
        elif isinstance(value, float):
            assert getattr(theirs, name) == pytest.approx(value, rel=1e-10)
    for method in METHODS:
        if hasattr(ours, method):
            same(getattr(theirs, method)(xp.asarray(new)), getattr(ours, method)(new), xp)
    np.testing.assert_allclose(
        theirs.cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"], rtol=1e-10
    )


@pytest.mark.pairwise
@pytest.mark.parametrize("cv", [3, KFold(4), ShuffleSplit(3, random_state=0)], ids=str)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@every_estimator
def test_held_out_by_cv_with_rows_of_weight_zero(estimator, kernel, cv, xp):
    X, y = rows_for(estimator, N, n_targets=2)
    X = X @ X.T if kernel == "precomputed" else X
    weights = np.where(np.arange(N) % 6 == 1, 0.0, 1.5)
    model = estimator(kernel=kernel, alpha=0.4, cv=cv)
    ours = model.fit(X, y, sample_weight=weights)
    expected = ours.held_out_prediction_ if estimator is KernelRidge else ours.held_out_decision_
    theirs = model.fit(xp.asarray(X), xp.asarray(y), sample_weight=xp.asarray(weights))
    same(
        theirs.held_out_prediction_ if estimator is KernelRidge else theirs.held_out_decision_,
        expected,
        xp,
    )


@every_estimator
def test_tuned_parameters(estimator, xp):
    X, y = rows_for(estimator, N, n_targets=2)
    ours, theirs = estimator().fit(X, y), estimator().fit(xp.asarray(X), xp.asarray(y))
    assert theirs.alpha_ == ours.alpha_ and theirs.gamma_ == pytest.approx(ours.gamma_, rel=1e-14)
    same(theirs.predict(xp.asarray(X)), ours.predict(X), xp, 1e-8)
    assert theirs.verify().passed
    other = theirs.at(0.5)
    assert in_namespace(other.dual_coef_, xp) and other.verify().passed
    assert theirs.score(xp.asarray(X), xp.asarray(y)) == pytest.approx(ours.score(X, y))


@pytest.mark.parametrize("n_classes", [2, 3])
@every_classifier
def test_labels_come_back_as_they_went_in(estimator, n_classes, xp):
    X, y = rows_for(estimator, N, n_classes, n_targets=2)
    expected = estimator(alpha=0.4).fit(X, y).predict(X)
    for dtype in ("int64", "int32", "float64"):
        labels = xp.asarray(y, dtype=getattr(xp, dtype))
        predicted = estimator(alpha=0.4).fit(xp.asarray(X), labels).predict(xp.asarray(X))
        assert predicted.dtype == labels.dtype
        same(predicted, expected, xp)
    named = estimator(alpha=0.4).fit(
        xp.asarray(X), np.array(["a", "b", "c"])[y]
    )  # no namespace but NumPy holds text
    np.testing.assert_array_equal(named.predict(xp.asarray(X)), np.array(["a", "b", "c"])[expected])


@every_estimator
def test_float32_is_as_good_as_float64(estimator, xp):
    X, y = rows_for(estimator, N, n_targets=2)
    single = X.astype(np.float32)
    setting = {"alpha": 1e-5, "gamma": 0.3}
    ours = estimator(**setting).fit(single.astype(np.float64), y)
    theirs = estimator(**setting).fit(xp.asarray(single), xp.asarray(y))
    same(theirs.dual_coef_, ours.dual_coef_, xp, 1e-8)
    if estimator is KernelFisherDiscriminant:
        projected = theirs.transform(xp.asarray(single))
        assert projected.dtype == xp.float32
        same(projected, ours.transform(single.astype(np.float64)), xp, 1e-5)


@every_estimator
def test_editing_the_input_after_fit_changes_nothing(estimator, xp):
    X, y = rows_for(estimator, N, n_targets=2)
    rows = xp.asarray(X.copy())
    model = estimator(alpha=0.4).fit(rows, xp.asarray(y))
    before = on_host(model.predict(xp.asarray(X))).copy()
    rows[:, 0] = 77.0
    np.testing.assert_array_equal(on_host(model.predict(xp.asarray(X))), before)


@every_estimator
def test_namespaces_do_not_mix(estimator, xp):
    X, y = rows_for(estimator, N, n_targets=2)
    theirs = estimator(alpha=0.4).fit(xp.asarray(X), y)  # labels may stay on the host
    ours = estimator(alpha=0.4).fit(X, y)
    name = xp.__name__.split(".")[-1]
    for method in METHODS:
        if hasattr(ours, method):
            match = (
                rf"{estimator.__name__}\.{method}\(\) must use the same namespace .*got numpy "
                rf"after {name} on .*: convert one"
            )
            with pytest.raises(ValueError, match=match):
                getattr(theirs, method)(X)
            with pytest.raises(ValueError, match=rf"got {name} on .* after numpy"):
                getattr(ours, method)(xp.asarray(X))


@every_estimator
def test_refusals(estimator, xp):
    X, y = rows_for(estimator, N, n_targets=2)
    bad, labels = X.copy(), xp.asarray(y)
    bad[2, 1] = np.nan
    model, given = estimator(alpha=0.4).fit(xp.asarray(X), labels), {"kernel": "precomputed"}
    steep = {"kernel": "poly", "gamma": 1e9, "degree": 60}
    indefinite = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0, "alpha": 1e-3}
    for match, rows, targets, settings in (
        ("NaN or infinity.*impute", bad, labels, {}),
        ("NaN or infinity", np.where(np.isnan(bad), np.inf, bad), labels, {}),
        (r"Expected 2D array, got 1D array instead:\narray=\[(?!0\. 0\.)", X[:, 0], labels, {}),
        (r"1 sample\(s\).*minimum of 2 is required", X[:1, :], xp.asarray(y[:1]), {}),
        (r"0 feature\(s\).*minimum of 1 is required", X[:, :0], labels, {}),
        ("inconsistent numbers of samples", X, xp.asarray(y[:-1]), {}),
        ("y is None", X, None, {}),
        ("Complex data not supported", X * 1j, labels, {}),
        ("square kernel matrix", X, labels, given),
        ("must be symmetric", np.triu(X @ X.T), labels, given),
        ("overflow", X, labels, steep),
        ('penalty="dual"', X, labels, indefinite),
    ):
        with pytest.raises(ValueError, match=match):
            estimator(**settings).fit(xp.asarray(rows), targets)
    with pytest.raises(ValueError, match="not negative"):
        estimator().fit(xp.asarray(X), labels, sample_weight=xp.asarray(-np.ones(N)))
    for match, rows in (
        ("NaN or infinity", bad),
        ("X has 2 features, but .* is expecting 3", X[:, :2]),
        (r"0 feature\(s\)", X[:, :0]),
    ):
        with pytest.raises(ValueError, match=match):
            model.predict(xp.asarray(rows))
    assert model.predict(xp.asarray(X[:1, :])).shape[0] == 1


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_constant_rows_warn_and_predict_the_mean(kernel, xp):
    _, y = numbered_rows(N, 2)
    rows = xp.asarray(np.full((N, 3), 2.0))
    with pytest.warns(NumericalWarning, match="look the same"):
        model = KernelRidge(kernel=kernel).fit(rows, xp.asarray(y))
    same(model.predict(rows), np.tile(y.mean(axis=0), (N, 1)), xp, 1e-8)


@pytest.mark.parametrize(
    ("kernel", "penalty"), [("rbf", "function"), ("linear", "function"), ("precomputed", "dual")]
)
@every_estimator
def test_cross_validation_functions(estimator, kernel, penalty, xp):
    X, y = rows_for(estimator, N, n_targets=2)
    X = X @ X.T if kernel == "precomputed" else X
    model = estimator(kernel=kernel, alpha=0.4, gamma=0.3, penalty=penalty)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=N)
    methods = (
        ["predict"]
        if estimator is KernelRidge
        else ["predict", "decision_function", "predict_proba"]
    )
    for cv, method in [(KFold(4), method) for method in methods] + [
        (LeaveOneOut(), methods[min(1, len(methods) - 1)])
    ]:
        expected = cross_val_predict(
            model, X, y, cv=cv, method=method, params={"sample_weight": weights}
        )
        got = cross_val_predict(
            model,
            xp.asarray(X),
            xp.asarray(y),
            cv=cv,
            method=method,
            params={"sample_weight": xp.asarray(weights)},
        )
        same(got, expected, xp)
    np.testing.assert_allclose(
        cross_val_score(model, xp.asarray(X), xp.asarray(y), cv=4),
        cross_val_score(model, X, y, cv=4),
        rtol=1e-10,
    )
    ours, theirs = (
        cross_validate(
            model, rows, labels, cv=KFold(4), return_train_score=True, return_estimator=True
        )
        for rows, labels in ((X, y), (xp.asarray(X), xp.asarray(y)))
    )
    assert theirs.route.name == "one"
    for key in ("test_score", "train_score"):
        np.testing.assert_allclose(theirs[key], ours[key], rtol=1e-10)
    assert all(in_namespace(fold.dual_coef_, xp) for fold in theirs["estimator"])


@every_estimator
def test_cross_validation_of_a_tuned_estimator(estimator, xp):
    X, y = rows_for(estimator, N, n_targets=2)
    expected = cross_val_predict(estimator(), X, y, cv=3)
    same(cross_val_predict(estimator(), xp.asarray(X), xp.asarray(y), cv=3), expected, xp, 1e-7)
    if estimator is KernelFisherDiscriminant:
        model = estimator(alpha=0.4, gamma=0.3)
        expected = cross_val_predict(model, X, y, cv=3, method="transform")
        same(
            cross_val_predict(model, xp.asarray(X), xp.asarray(y), cv=3, method="transform"),
            expected,
            xp,
        )


def test_held_out_of_a_hat_matrix(xp):
    X = labelled_rows(N)[0]
    H = X @ np.linalg.pinv(X)
    for got, expected in zip(
        held_out(xp.asarray(H), xp.asarray(X), [[0], [3, 5]]),
        held_out(H, X, [[0], [3, 5]]),
        strict=True,
    ):
        same(got, expected, xp)


def test_discriminant_of_a_hat_matrix(xp):
    """Without a free bias, so that an axis is left out."""
    X, y = labelled_rows(N)
    H = X @ np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T)
    H = 0.5 * (H + H.T)
    (ours,), (theirs,) = (held_out_discriminant(A, y, [[0, 3, 5]]) for A in (xp.asarray(H), H))
    for name in ("projections", "axes", "centroids", "eigenvalues", "decision"):
        same(getattr(ours, name), getattr(theirs, name), xp)
    np.testing.assert_array_equal(ours.predicted, theirs.predicted)


@pytest.mark.skipif(
    int(np.__version__.split(".")[0]) < 2,
    reason="array-api-strict moves arrays between devices with NumPy 2 only",
)
def test_a_second_device_is_respected():
    """array-api-strict's devices stand for GPUs.

    What is computed stays on the device of X, and devices do not mix.
    """
    xp = pytest.importorskip("array_api_strict")
    device = xp.Device("device1")
    X, y = labelled_rows(N)
    for estimator in ESTIMATORS[:2]:
        ours = estimator(alpha=0.4).fit(X, y)
        theirs = estimator(alpha=0.4).fit(
            xp.asarray(X, device=device), xp.asarray(y, device=device)
        )
        decision = theirs.decision_function(xp.asarray(X, device=device))
        assert (
            decision.device
            == theirs.dual_coef_.device
            == theirs.held_out_decision_.device
            == device
        )
        np.testing.assert_allclose(
            on_host(decision.to_device(xp.Device("CPU_DEVICE"))),
            ours.decision_function(X),
            rtol=1e-9,
            atol=1e-9,
        )
        with pytest.raises(ValueError, match="same namespace and the same device"):
            theirs.predict(xp.asarray(X))


@pytest.mark.torch
def test_torch_tensors_that_need_gradients():
    import torch

    X, y = labelled_rows(N)
    model = LeastSquaresSVC(alpha=0.4).fit(torch.asarray(X).requires_grad_(), torch.asarray(y))
    expected = LeastSquaresSVC(alpha=0.4).fit(X, y).decision_function(X)
    np.testing.assert_allclose(
        model.decision_function(torch.asarray(X)).detach().numpy(), expected, atol=1e-10
    )


@pytest.mark.torch
def test_names_of_an_earlier_table_are_forgotten():
    import torch

    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = KernelRidge(gamma=0.3, alpha=1.0).fit(
        pandas.DataFrame(X, columns=["u", "v", "w"]), X[:, 0]
    )
    model.fit(torch.asarray(X), X[:, 0])
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.torch
def test_landmarks_of_another_namespace_than_the_rows():
    import torch

    X = np.random.default_rng(0).normal(size=(20, 3))
    model = KernelRidge(
        gamma=0.3, alpha=1.0, landmarks=torch.asarray(X[:5], requires_grad=True)
    ).fit(X, X[:, 0])
    reference = KernelRidge(gamma=0.3, alpha=1.0, landmarks=X[:5]).fit(X, X[:, 0])
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))
