"""What is refused, in words a user can act on; and what must simply work."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multioutput import MultiOutputClassifier

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    NumericalWarning,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from fitonce.estimators.parameters import PARAMETERS
from problems import CLASSIFIERS, ESTIMATORS, every_classifier, every_estimator
from reference import output

N = 30

rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
LABELS = np.digitize(X[:, 0] + 0.4 * rng.normal(size=N), [-0.4, 0.6])
NUMBERS = X[:, 0] + 0.3 * rng.normal(size=N)
K = X @ X.T
X.flags.writeable = LABELS.flags.writeable = NUMBERS.flags.writeable = K.flags.writeable = False


def targets(estimator) -> np.ndarray:
    return NUMBERS if estimator is KernelRidge else LABELS


def replaced(array: np.ndarray, value) -> np.ndarray:
    """A copy with one entry replaced."""
    array = np.array(array, dtype=float)
    array[3, ...] = value
    return array


def refused(error, match: str, call, *args, **kwargs) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(error, match=match):
            call(*args, **kwargs)


def refused_fit(estimator, match: str, rows=X, y=None, error=ValueError, **given) -> None:
    """`given`: parameters of the estimator, and of `fit`."""
    y = targets(estimator) if y is None else y
    of_fit = {name: given.pop(name) for name in ("sample_weight", "groups") if name in given}
    model = estimator(**given)
    refused(error, match, model.fit, rows, y, **of_fit)


def with_match(cases: dict[str, object]):
    """Parametrize by what is said, and what is given."""
    ids = [match[:40] for match in cases]
    return pytest.mark.parametrize(("match", "given"), cases.items(), ids=ids)


# ---- data ----------------------------------------------------------------------------------------


@with_match(
    {
        "Input X contains NaN": replaced(X, np.nan),
        "Input X contains infinity": replaced(X, np.inf),
        "Expected 2D array, got 1D array": X[:, 0],
        r"0 feature\(s\).*minimum of 1": X[:, :0],
        r"inconsistent numbers of samples: \[29, 30\]": X[:-1],
        "Complex data not supported": X * 1j,
    }
)
@every_estimator
def test_bad_rows(estimator, match, given):
    refused_fit(estimator, match, given)


@pytest.mark.parametrize("n", [0, 1])
@every_estimator
def test_too_few_rows(estimator, n):
    match = rf"{n} sample\(s\).*minimum of 2 is required"
    refused_fit(estimator, match, X[:n], targets(estimator)[:n])


@every_estimator
def test_bad_targets(estimator):
    y = targets(estimator)
    refused_fit(estimator, "Input y contains NaN", y=replaced(y, np.nan))
    refused_fit(estimator, "Input y contains infinity", y=replaced(y, np.inf))
    refused(ValueError, "the target y is None", estimator().fit, X, None)
    refused_fit(estimator, "dim|shape", y=np.ones((N, 2, 2)))


@every_classifier
def test_bad_labels(estimator):
    one = "at least 2 classes"
    refused_fit(
        estimator, f"{one}, but the data contains only one class: .*Check the labels", y=np.zeros(N)
    )
    refused_fit(estimator, f"{one}.*or the sample weights", sample_weight=LABELS == 0)
    refused_fit(estimator, "Unknown label type: continuous", y=NUMBERS)
    several = r"y should be a 1d array, got an array of shape \(30, 2\)"
    refused_fit(estimator, several, y=np.ones((N, 2)))
    mixed = np.array(["a", 1] * 15, dtype=object)
    refused_fit(estimator, "label", y=mixed, error=(TypeError, ValueError))


def test_targets_that_are_not_numbers():
    refused_fit(KernelRidge, "could not convert string to float", y=["a"] * N)


@every_estimator
def test_bad_rows_in_predict(estimator):
    model = estimator(alpha=1.0).fit(X, targets(estimator))
    probable = "decision_function", "predict_proba", "predict_log_proba"
    for method in ("predict", *probable, "transform"):
        if hasattr(model, method):
            call = getattr(model, method)
            refused(ValueError, "contains NaN", call, replaced(X, np.nan))
            refused(ValueError, "X has 2 features, but .* is expecting 3 features", call, X[:, :2])
            refused(ValueError, r"0 sample\(s\)", call, X[:0])
            refused(NotFittedError, "not fitted yet", getattr(estimator(), method), X)
    refused(NotFittedError, "not fitted yet", estimator().at, 1.0)
    refused(NotFittedError, "not fitted yet", estimator().verify)


# ---- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "alpha",
    [0, -1.0, np.nan, np.inf, -np.inf, [1.0, -1.0], np.array([1.0, np.nan]), [0.0]],
    ids=str,
)
@every_estimator
def test_alpha_that_is_not_positive_and_finite(estimator, alpha):
    match = (
        "alpha must be positive and finite, got .* instead: it is added to the eigenvalues.*Use a "
        "small positive number"
    )
    refused_fit(estimator, match, alpha=alpha)
    if np.ndim(alpha) == 0:
        refused(ValueError, match, estimator(alpha=1.0).fit(X, targets(estimator)).at, alpha)


@every_estimator
def test_alpha_that_is_no_number(estimator):
    accepted = 'alpha must be "tune", a positive number or an array of candidates, got '
    for alpha, error, match in (
        ("auto", ValueError, f"{accepted}'auto' instead"),
        (None, TypeError, f"{accepted}None"),
        ([1.0, "a"], TypeError, accepted),
        ({}, TypeError, accepted),
        ([], ValueError, r"one-dimensional array of candidates, got an array of shape \(0,\)"),
        ([[1.0, 2.0]], ValueError, r"shape \(1, 2\) instead.*not one per target"),
    ):
        refused_fit(estimator, match, error=error, alpha=alpha)
    model = estimator(alpha=1.0).fit(X, targets(estimator))
    for alpha in ("tune", [1.0, 2.0]):
        refused(ValueError, "alpha must be a single positive number here", model.at, alpha)


@with_match(
    {
        'gamma must be a positive finite number, "tune", "scale".* got -1.0': {"gamma": -1.0},
        "gamma must be .* got 0 instead": {"gamma": 0},
        "gamma must be .* got nan": {"gamma": np.nan},
        r"gamma must be .* got \[1.0\]": {"kernel": "laplacian", "gamma": [1.0]},
        "gamma must be a finite number": {"kernel": "poly", "gamma": np.inf},
        "degree must be a finite number.* got 'three'": {"kernel": "poly", "degree": "three"},
        "degree must be a finite number.* got None": {"kernel": "poly", "degree": None},
        "coef0 must be a finite number.* got nan": {"kernel": "sigmoid", "coef0": np.nan},
        "kernel must be one of 'linear', 'rbf', .* a callable .* list of names, got 'gaussian'": {
            "kernel": "gaussian"
        },
        "kernel must be one of .* got None": {"kernel": None},
        "kernel must be one of .* got 'gaussian'": {"kernel": ["gaussian"]},
        "kernel must": {"kernel": []},
        "penalty must be one of 'function', 'dual'.* got 'l2' instead": {"penalty": "l2"},
        "penalty must be one of": {"penalty": None},
        r"kernel_params must be one of None, a dict, got \[1\]": {"kernel_params": [1]},
        "n_splits=2 or more, got n_splits=1": {"cv": 1},
        "Cannot have number of splits n_splits=40 greater than": {"cv": 40},
        "Expected `?cv`? as an integer": {"cv": "five"},
        "cv|split": {"cv": []},
    }
)
@every_estimator
def test_bad_parameters(estimator, match, given):
    refused_fit(estimator, match, error=(ValueError, TypeError), **given)


@pytest.mark.parametrize("estimator", [LeastSquaresSVC, KernelRidge])
def test_bad_intercept(estimator):
    match = "fit_intercept must be one of True, False, 'penalized', 'coefficient', got 'free'"
    refused_fit(estimator, match, fit_intercept="free")


@pytest.mark.parametrize("calibration", ["platt", 1, True])
@every_classifier
def test_bad_calibration(estimator, calibration):
    match = "calibration must be one of 'temperature', .* got"
    refused_fit(estimator, match, calibration=calibration)


def test_bad_class_weight():
    listed = "class_weight must be one of 'balanced', None, a dict, got "
    for given, match in (
        ("even", f"{listed}'even'"),
        ([1, 2, 3], rf"{listed}\[1, 2, 3\]"),
        ({0: -1.0}, "class_weight must be positive and finite"),
        ({0: 0.0}, "class_weight must be positive and finite"),
        ({0: np.nan}, "class_weight must be positive and finite"),
        ({0: "heavy"}, "class_weight must be"),
        ({7: 1.0}, r"class_weight contains \[7\].*\[0, 1, 2\]"),
    ):
        refused_fit(LeastSquaresSVC, match, class_weight=given)


def test_bad_priors():
    for given, match in (
        ([0.5, 0.5], r"priors must have one entry per class \(3\), got shape \(2,\)"),
        ([0.5, -0.5, 1.0], "priors must be positive and finite"),
        ([0.0, 0.5, 0.5], "priors must be positive and finite"),
        ([np.nan, 0.5, 0.5], "priors must be positive and finite"),
        ("equal", "priors must"),
    ):
        refused_fit(KernelFisherDiscriminant, match, priors=given)


@pytest.mark.parametrize("n_components", [0, 3, -1, 1.0, "all"], ids=repr)
def test_bad_n_components(n_components):
    match = (
        "n_components must be an integer from 1 to n_classes - 1 = 2, got .* instead: 3 class "
        "centroids span 2 axes"
    )
    refused_fit(KernelFisherDiscriminant, match, n_components=n_components)


# ---- weights, groups and splits ------------------------------------------------------------------


@with_match(
    {
        "must be finite and not negative, got -0.5 instead.*Use 0 to leave out a row": replaced(
            np.ones(N), -0.5
        ),
        "sample_weight must be finite and not negative, got nan": replaced(np.ones(N), np.nan),
        "sample_weight must be finite and not negative, got inf": replaced(np.ones(N), np.inf),
        r"sample_weight.shape == \(29,\), expected \(30,\): one weight per row": np.ones(N - 1),
        "Sample weights must be 1D array or scalar, got 2D": np.ones((N, 2)),
        "sample_weight is zero for every row: there is nothing to fit": np.zeros(N),
        "needs at least two rows with positive sample_weight, got 1": np.arange(N) == 3,
        "sample_weight must be numeric": np.full(N, "heavy"),
    }
)
@every_estimator
def test_bad_weights(estimator, match, given):
    refused_fit(estimator, match, sample_weight=given)


def test_the_discriminant_needs_degrees_of_freedom():
    match = (
        "the sum of the sample weights must be greater than the number of classes, got 1.5 and 3: "
        ".*rescale them to a mean of one"
    )
    refused_fit(KernelFisherDiscriminant, match, sample_weight=np.full(N, 0.05))
    match = "the number of samples must be greater than the number of classes, got 3 and 3"
    refused_fit(KernelFisherDiscriminant, match, X[:3], [0, 1, 2])


@every_estimator
def test_bad_groups(estimator):
    few = r"groups must have one entry per row \(30\), got 29"
    refused_fit(estimator, few, groups=np.arange(29))
    refused_fit(estimator, "fewer than 2 unique groups", groups=np.zeros(N))


SEEN = (
    r"split 0 has \d+ test row\(s\) inside its own training set .*predictions for rows that the "
    "model was trained on are not held out.*Remove them"
)


@pytest.mark.parametrize(
    "split",
    [
        (np.arange(20), np.arange(18, N)),
        (np.arange(N), np.arange(N)),
        (np.arange(20), np.array([-N])),  # row 0 by another name
        (np.arange(N) < 20, np.arange(N) >= 19),
    ],
    ids=["overlap", "all", "negative", "masks"],
)
@every_estimator
def test_test_rows_inside_their_training_set(estimator, split):
    refused_fit(estimator, SEEN, alpha=1.0, cv=[split])
    given = estimator(alpha=1.0, gamma=0.3), X, targets(estimator)
    for function in (cross_val_predict, cross_val_score, cross_validate):
        refused(ValueError, SEEN, function, *given, cv=[split])


# ---- kernels -------------------------------------------------------------------------------------


@every_estimator
def test_bad_precomputed_kernels(estimator):
    y = targets(estimator)
    for rows, match in (
        (
            X @ np.triu(np.ones((3, 3))) @ X.T,
            "kernel matrix must be symmetric, but K and its transpose differ by up to .*average K "
            "and K.T if the difference is noise",
        ),
        (X, r"must be a square kernel matrix of the training rows, got shape \(30, 3\)"),
        (replaced(K, np.nan), "NaN"),
        (sp.csr_array(K), "dense"),
    ):
        error = TypeError if match == "dense" else ValueError
        refused_fit(estimator, match, rows, error=error, kernel="precomputed", alpha=1.0)
    predict = estimator(kernel="precomputed", alpha=1.0).fit(K, y).predict
    refused(ValueError, "X has 3 features, but .* is expecting 30 features", predict, X)


@every_estimator
def test_bad_callable_kernels(estimator):
    shape = (
        r"callable kernel must return a matrix of shape \(30, 30\) .*got .*once on whole "
        r"matrices, kernel\(X, Y\), not on pairs of rows"
    )
    for kernel, match in (
        (lambda A, B: 1.0, shape),
        (lambda A, B: A, shape),
        (lambda A, B: np.ones(len(A)), shape),
        (lambda A, B: A @ B.T * np.nan, "NaN or infinite"),
        (lambda A, B: A @ np.triu(np.ones((3, 3))) @ B.T, "symmetric"),
    ):
        refused_fit(estimator, match, kernel=kernel)
    transposed = estimator(kernel=lambda A, B: B @ A.T, alpha=1.0).fit(X, targets(estimator))
    refused(ValueError, r"shape \(5, 30\) .*got \(30, 5\)", transposed.predict, X[:5])


@every_estimator
def test_indefinite_kernels_need_a_large_alpha(estimator):
    y = targets(estimator)
    setting = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}
    S = np.tanh(K - 1.0)
    centre = np.eye(N) - 1 / N
    lowest = np.linalg.eigvalsh(centre @ S @ centre)[0]
    assert lowest < -0.1
    match = (
        rf"alpha must be greater than {-lowest:.6g} for.*indefinite .*smallest eigenvalue is "
        rf'{lowest:.4g}.*penalty="dual"'
    )
    refused(ValueError, match, estimator(alpha=-lowest * 0.999, **setting).fit, X, y)
    refused(ValueError, 'penalty="dual"', estimator(alpha=[1e-3, 100.0], **setting).fit, X, y)
    refused(ValueError, 'penalty="dual"', estimator(kernel="precomputed", alpha=1e-3).fit, S, y)
    model = estimator(alpha=-lowest * 1.5, **setting).fit(X, y)
    refused(ValueError, 'penalty="dual"', model.at, -lowest * 0.9)
    assert model.verify().passed
    assert estimator(alpha=1e-3, penalty="dual", **setting).fit(X, y).verify().passed
    assert estimator(**setting).fit(X, y).alpha_ > -lowest


@pytest.mark.parametrize("penalty", ["function", "dual"])
@every_estimator
def test_overflow_is_told_as_such(estimator, penalty):
    match = "overflow.*Scale the features"
    refused_fit(estimator, match, kernel="poly", degree=60, gamma=1e9, penalty=penalty)
    refused_fit(estimator, match, X * 1e200, kernel="linear", penalty=penalty)
    model = estimator(kernel="poly", degree=6, alpha=1.0, gamma=1.0, penalty="dual")
    refused(ValueError, "overflow", model.fit(X / 10, targets(estimator)).predict, X * 1e80)


def test_the_dual_norm_of_enormous_rows_is_refused():
    """K fits float64, its square does not."""
    match = "overflow.*Scale the features"
    refused_fit(KernelRidge, match, X * 1e100, kernel="linear", penalty="dual")


# ---- what must simply work -----------------------------------------------------------------------


@every_classifier
@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "maybe", "yes"]),
        np.array(["no", "maybe", "yes"], dtype=object),
        np.array([2.0, 5.0, -1.0]),
        np.array([10, 2, 30]),
    ],
    ids=["text", "objects", "floats", "integers"],
)
def test_labels_of_any_kind(estimator, names):
    y = names[LABELS]
    model = estimator().fit(X, y)
    assert set(model.predict(X)) <= set(names) and np.mean(model.predict(X) == y) > 0.6
    assert estimator().fit(X.tolist(), y.tolist()).score(X.tolist(), y.tolist()) == model.score(
        X, y
    )
    assert set(estimator().fit(X, LABELS == 1).predict(X)) <= {True, False}


@every_estimator
def test_integer_rows(estimator):
    whole = np.round(3 * X).astype(int)
    as_integers, as_floats = (
        estimator(alpha=1.0).fit(rows, targets(estimator)) for rows in (whole, whole.astype(float))
    )
    np.testing.assert_array_equal(
        output(as_integers, whole), output(as_floats, whole.astype(float))
    )


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("order", ["C", "F"])
@every_estimator
def test_read_only_arrays_of_any_layout(estimator, order, kernel):
    rows = np.array(K if kernel == "precomputed" else X, order=order)
    expected = output(
        estimator(kernel=kernel, alpha=1.0).fit(rows.copy(), targets(estimator)), rows
    )
    rows.flags.writeable = False
    model = estimator(kernel=kernel, alpha=1.0).fit(
        rows, targets(estimator), sample_weight=np.broadcast_to(1.0, N)
    )
    np.testing.assert_allclose(output(model, rows), expected, rtol=1e-12)
    np.testing.assert_allclose(output(model, np.repeat(rows, 2, axis=0)[::2]), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "cosine", "sigmoid"])
@every_estimator
def test_constant_columns(estimator, kernel):
    """A zero column changes nothing, nor does a constant one to kernels of differences."""
    y = targets(estimator)
    setting = {"kernel": kernel, "gamma": 0.1, "penalty": "dual", "alpha": 1.0}
    plain = estimator(**setting).fit(X, y)
    padded = np.hstack([X, np.zeros((N, 1))])
    np.testing.assert_allclose(
        output(estimator(**setting).fit(padded, y), padded), output(plain, X), rtol=1e-8
    )
    if kernel in ("linear", "rbf", "laplacian"):
        padded[:, -1] = 4.0
        np.testing.assert_allclose(
            output(estimator(**setting).fit(padded, y), padded), output(plain, X), rtol=1e-8
        )
    assert np.isfinite(output(estimator(kernel=kernel).fit(padded, y), padded)).all()


@pytest.mark.pairwise
@pytest.mark.parametrize("value", [0.1, 3.0, -1e6])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "cosine"])
@pytest.mark.parametrize("n", [11, 24])  # how rounding falls depends on n
@every_estimator
def test_constant_rows_predict_a_constant_and_warn(estimator, n, kernel, value):
    y = targets(estimator)[:n]
    rows = np.full((n, 3), value)
    with pytest.warns(
        NumericalWarning,
        match="all training rows look the same to the kernel, so the model predicts a constant. "
        "Check",
    ):
        model = estimator(kernel=kernel).fit(rows, y)
    if estimator is KernelRidge:
        np.testing.assert_allclose(model.predict(rows), y.mean(), atol=1e-8)
    else:
        np.testing.assert_allclose(np.bincount(y)[model.predict(rows)], np.bincount(y).max())
        assert np.isfinite(model.predict_proba(rows)).all()


@pytest.mark.parametrize("penalty", ["function", "dual"])
@every_estimator
def test_a_tiny_alpha_warns_with_a_bound(estimator, penalty):
    with pytest.warns(
        NumericalWarning,
        match=r"alpha=1e-14 is very small .*relative error of .*Use an alpha of at least \d",
    ):
        model = estimator(alpha=1e-14, penalty=penalty).fit(X, targets(estimator))
    assert np.isfinite(output(model, X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator(alpha=1e-4, penalty=penalty).fit(X, targets(estimator))
        estimator(gamma=0.3, penalty=penalty).fit(X, targets(estimator))


def test_the_warning_points_at_the_caller():
    with pytest.warns(NumericalWarning) as caught:
        KernelRidge(alpha=1e-14).fit(X, NUMBERS)
    assert caught[0].filename == __file__


@pytest.mark.pairwise
@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@every_estimator
def test_huge_and_tiny_scales(estimator, kernel, scale):
    y = targets(estimator)
    plain, scaled = estimator(kernel=kernel).fit(X, y), estimator(kernel=kernel).fit(X * scale, y)
    assert scaled.score(X * scale, y) == pytest.approx(plain.score(X, y), abs=0.04)


@pytest.mark.parametrize("cv", [5, StratifiedKFold(3), KFold(4), None])
@every_classifier
def test_a_class_with_one_member(estimator, cv):
    y = np.where(np.arange(N) == 7, 9, LABELS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        model = estimator(cv=cv).fit(X, y)
    assert model.classes_[-1] == 9
    assert np.isfinite(model.predict_proba(X)).all() and model.score(X, y) > 0.6
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "The least populated class|Number of classes in training fold"
        )
        assert cross_val_predict(estimator(alpha=0.1, gamma=0.3), X, y, cv=5).shape == (N,)


@every_estimator
def test_duplicated_rows_one_feature_and_few_rows(estimator):
    y = targets(estimator)
    twice = np.concatenate([X, X])
    assert estimator(alpha=1e-3).fit(twice, np.concatenate([y, y])).verify().passed
    for kernel in ("linear", "rbf"):
        assert estimator(kernel=kernel, alpha=0.1).fit(X[:, :1], y).verify().passed
        assert np.isfinite(output(estimator(kernel=kernel).fit(X[:4], [0, 1, 0, 1]), X)).all()


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_parameter_has_a_row_in_the_table(name):
    assert any(name in estimator().get_params() for estimator in ESTIMATORS)


@every_estimator
def test_a_fit_leaves_nothing_of_an_earlier_one(estimator):
    """Landmarks, a bias, names, refinement and an isotonic calibration, and then none of them."""
    y = targets(estimator)
    model = estimator(landmarks=8, random_state=0, refine=True)
    if estimator is not KernelRidge:
        model.set_params(calibration="isotonic")
    model.fit(pd.DataFrame(X, columns=list("abc")), y)
    model.set_params(**estimator(kernel="linear", alpha=1.0).get_params()).fit(X, y)
    fresh = estimator(kernel="linear", alpha=1.0).fit(X, y)
    assert set(vars(model)) == set(vars(fresh))
    np.testing.assert_array_equal(output(model, X), output(fresh, X))
    assert model.verify().passed


@every_estimator
def test_a_model_at_another_alpha_shares_no_rows(estimator):
    model = estimator(alpha=1.0, gamma=0.3).fit(X, targets(estimator))
    before, other = output(model, X), model.at(0.1)
    other.X_fit_[:] = 0.0
    np.testing.assert_array_equal(output(model, X), before)
    other, before = model.at(0.1), output(model.at(0.1), X)
    model.X_fit_[:] = 0.0
    np.testing.assert_array_equal(output(other, X), before)


@pytest.mark.parametrize(
    ("name", "match"), [("C", "pass alpha, as 1/C"), ("scoring", "pass criterion")]
)
@every_estimator
def test_words_of_other_software(estimator, name, match):
    refused(
        TypeError, f"{estimator.__name__} has no parameter {name}: {match}", estimator, **{name: 1}
    )
    refused(TypeError, "unexpected keyword argument 'alhpa'", estimator, alhpa=1)


def test_probability_of_other_software():
    refused(TypeError, "pass nothing for it: .* predict_proba", LeastSquaresSVC, probability=True)


def test_priors_that_do_not_sum_to_one_are_scaled_as_in_scikit_learn():
    with pytest.warns(UserWarning, match="do not sum to 1, but to 1.2: they are divided"):
        model = KernelFisherDiscriminant(priors=[0.5, 0.6, 0.1], gamma=0.3, alpha=1.0).fit(
            X, LABELS
        )
    np.testing.assert_allclose(model.priors_, np.array([0.5, 0.6, 0.1]) / 1.2)


def test_several_labels_for_each_row():
    y = np.stack([LABELS, LABELS], axis=1)
    for estimator in CLASSIFIERS:
        refused(ValueError, r"shape \(30, 2\).*MultiOutputClassifier", estimator().fit, X, y)
    model = MultiOutputClassifier(LeastSquaresSVC(gamma=0.3, alpha=1.0)).fit(X, y)
    assert model.predict(X).shape == (30, 2)


@pytest.mark.parametrize("n_components", [None, 2])
def test_transform_has_no_axes_without_a_difference(n_components):
    """Three classes on one line differ in one dimension, as in scikit-learn."""
    model = KernelFisherDiscriminant("linear", alpha=1e-6, n_components=n_components)
    ours = model.fit(X[:, :1], LABELS).transform(X[:, :1])
    theirs = LinearDiscriminantAnalysis().fit(X[:, :1], LABELS).transform(X[:, :1])
    assert ours.shape == theirs.shape == (N, 1)
    assert np.ptp(np.abs(ours / theirs)) < 1e-4
    assert len(model.get_feature_names_out()) == 1
    held_out = cross_val_predict(model, X[:, :1], LABELS, cv=3, method="transform")
    assert held_out.shape == (N, 1)


@every_estimator
@pytest.mark.parametrize("shared", [True, "drop"])
def test_greedy_landmarks_have_seen_the_labels(estimator, shared):
    y = targets(estimator)
    model = estimator(gamma=0.3, alpha=1.0, landmarks=4, landmark_method="greedy", random_state=0)
    with pytest.warns(UserWarning, match="greedy.*look a little too good"):
        model.fit(X, y)
    with pytest.warns(UserWarning, match="greedy.*look a little too good"):
        cross_val_predict(model.set_params(shared_landmarks=shared), X, y, cv=3)
