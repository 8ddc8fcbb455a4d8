"""Prediction intervals against literal refits: rows deleted or joined, the model fitted again."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, LeaveOneGroupOut, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import ClippedScaler, KernelRidge
from problems import numbered_rows, row_weights
from reference import assert_close

FIXED = {"alpha": 0.3, "gamma": 0.4}
SETTINGS = {
    "rbf": {},
    "no bias": {"fit_intercept": False},
    "penalised bias": {"fit_intercept": "penalized"},
    "linear": {"kernel": "linear"},
    "linear, no bias": {"kernel": "linear", "fit_intercept": False},
    "linear, dual": {"kernel": "linear", "penalty": "dual"},
    "poly": {"kernel": "poly", "degree": 2},
    "tiny alpha": {"alpha": 1e-6},
    "huge alpha": {"alpha": 1e6},
    "dual": {"penalty": "dual"},
    "dual, no bias": {"penalty": "dual", "fit_intercept": False},
    "dual, coefficient": {"penalty": "dual", "fit_intercept": "coefficient"},
    "landmarks": {"landmarks": "given"},
    "landmarks, dual": {"landmarks": "given", "penalty": "dual"},
}


def ridge(setting: str, X: np.ndarray) -> KernelRidge:
    settings = {**FIXED, **SETTINGS[setting]}
    if "landmarks" in settings:
        settings["landmarks"] = X[:9]
    return KernelRidge(**settings)


def problem(n_targets: int = 1, repeated: int = 3) -> tuple[np.ndarray, ...]:
    """Training rows, some of them repeated, and new ones, one of which is a training row."""
    X, y = numbered_rows(22, n_targets, repeated=repeated)
    X_new = numbered_rows(6, seed=5)[0]
    X_new[0] = X[3]
    return X, y, X_new


def models_without(model, X, y, weights, sets):
    for rows in sets:
        kept = np.setdiff1d(np.arange(len(X)), rows)
        w = None if weights is None else weights[kept]
        yield clone(model).fit(X[kept], y[kept], w)


def order_statistics(centre, radius, mass, confidence):
    """By their definition: the least value with so much mass at or below it, for (m, n) each."""
    ends = []
    for sign in (-1, 1):
        values = centre + sign * radius
        end = np.full(len(values), sign * np.inf)
        for row, candidates in enumerate(values):
            usable = [
                v
                for v in candidates
                if mass[sign * candidates <= sign * v].sum() >= confidence - 1e-9
            ]
            end[row] = sign * min((sign * v for v in usable), default=np.inf)
        ends.append(end)
    return np.column_stack(ends)


def centres_and_radii(model, X, y, X_new, sets, weights=None):
    """What models without each set say of new rows (m, n), and how far they are off their own."""
    centre, radius = np.empty((len(X_new), len(X))), np.empty(len(X))
    for rows, other in zip(sets, models_without(model, X, y, weights, sets), strict=True):
        centre[:, rows] = other.predict(X_new)[:, None]
        radius[rows] = np.abs(y[rows] - other.predict(X[rows]))
    return centre, radius


def of_extremes(centre, radius, mass, confidence):
    q = order_statistics(np.zeros((1, len(radius))), radius, mass, confidence)[0, 1]
    return np.column_stack([centre.min(axis=1) - q, centre.max(axis=1) + q])


def alike(n: int) -> np.ndarray:
    return np.full(n, 1.0 / (n + 1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("setting", SETTINGS)
def test_intervals_equal_refits(setting, weighted):
    X, y, X_new = problem()
    weights = row_weights(len(X)) if weighted else None
    model, mass = ridge(setting, X), alike(len(X))
    cv = KFold(5, shuffle=True, random_state=1)
    alone = centres_and_radii(model, X, y, X_new, [[i] for i in range(len(X))], weights)
    folds = centres_and_radii(model, X, y, X_new, [test for _, test in cv.split(X)], weights)
    expected = {
        "jackknife+": order_statistics(*alone, mass, 0.8),
        "jackknife-minmax": of_extremes(*alone, mass, 0.8),
        "cv+": order_statistics(*folds, mass, 0.8),
    }
    model.fit(X, y, weights)
    for method, interval in expected.items():
        got = model.predict_interval(X_new, 0.8, method, cv=cv if method == "cv+" else None)
        assert_close(got, interval, 1e-7 if setting == "tiny alpha" else 1e-8)


@pytest.mark.parametrize("setting", ["rbf", "no bias", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["jackknife+", "jackknife-minmax"])
def test_scaled_intervals_equal_refits(method, weighted, setting):
    """Errors in units of the deviation that the process without the row has there."""
    X, y, X_new = problem()
    weights = row_weights(len(X)) if weighted else np.ones(len(X))
    model, n = ridge(setting, X), len(X)
    alone = [[i] for i in range(n)]
    centre, radius = centres_and_radii(model, X, y, X_new, alone, weights)
    own, new = np.empty(n), np.empty((len(X_new), n))
    for i, other in enumerate(models_without(model, X, y, weights, alone)):
        kept = {"return_std": True, "noise": True}
        own[i] = other.predict(X[[i]], **kept)[1].item()
        new[:, i] = other.predict(X_new, **kept)[1]
    if method == "jackknife+":
        expected = order_statistics(centre, radius / own * new, alike(n), 0.8)
    else:
        zero = np.zeros((1, n))
        q = order_statistics(zero, radius / own, alike(n), 0.8)[0, 1]
        ends = (centre - q * new).min(axis=1), (centre + q * new).max(axis=1)
        expected = np.column_stack(ends)
    got = model.fit(X, y, weights).predict_interval(X_new, 0.8, method, scaled=True)
    assert_close(got, expected, 1e-8)


@pytest.mark.parametrize("scaler", [StandardScaler, ClippedScaler])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_deviations_and_scaled_intervals_grow_far_from_the_training_rows(kernel, scaler):
    """Not with clipped columns and the linear kernel: the farthest row is one at their edge."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=80)
    model = make_pipeline(scaler(), KernelRidge(0.1, gamma=0.5, kernel=kernel)).fit(X, y)
    rows = model[0].transform([[0.0, 0.0], [100.0, 0.0]])
    near, far = model[-1].predict(rows, return_std=True, noise=True)[1]
    width, scaled = (
        np.diff(model[-1].predict_interval(rows, scaled=way))[:, 0] for way in (False, True)
    )
    if (kernel, scaler) == ("linear", ClippedScaler):
        assert far < 1.1 * near and scaled[1] < 1.2 * scaled[0]
        return
    assert far > 2.0 * near and scaled[1] > 2.0 * scaled[0]
    assert kernel == "linear" or width[1] < 1.5 * width[0]  # as the documentation says


def test_scaled_intervals_cover_what_they_promise():
    rng, hits = np.random.default_rng(0), []
    for _ in range(20):
        X = rng.uniform(-3, 3, size=(240, 1))
        y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=240)
        model = KernelRidge(0.1, gamma=0.5).fit(X[:40], y[:40])
        band = model.predict_interval(X[40:], 0.9, scaled=True)
        hits.append(np.mean((band[:, 0] <= y[40:]) & (y[40:] <= band[:, 1])))
    assert 0.87 < np.mean(hits) < 0.94


@pytest.mark.parametrize(
    ("settings", "groups", "method"),
    [
        ({"penalty": "dual"}, None, "jackknife+"),
        ({"landmarks": 5}, None, "jackknife+"),
        ({}, np.arange(22) // 2, "jackknife+"),
        ({}, None, "cv+"),
        ({}, None, "full"),
    ],
)
def test_intervals_that_cannot_be_scaled_are_refused(settings, groups, method):
    X, y, X_new = problem()
    model = KernelRidge(**FIXED, **settings).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="scaled=True needs"):
        model.predict_interval(X_new, method=method, scaled=True)


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("method", ["jackknife+", "jackknife-minmax"])
def test_groups_leave_together_and_count_alike(method, penalty):
    X, y, X_new = problem()
    groups = np.random.default_rng(0).integers(9, size=len(X))
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    mass = 1.0 / ((len(sizes) + 1) * sizes[group])
    sets = [test for _, test in LeaveOneGroupOut().split(X, y, groups)]
    model = KernelRidge(**FIXED, penalty=penalty)
    interval = of_extremes if method == "jackknife-minmax" else order_statistics
    expected = interval(*centres_and_radii(model, X, y, X_new, sets), mass, 0.8)
    model.fit(X, y, groups=groups)
    assert_close(model.predict_interval(X_new, 0.8, method), expected, 1e-8)


def test_landmarks_that_leave_with_their_rows_are_refused():
    X, y, X_new = problem(repeated=0)
    model = KernelRidge(**FIXED, landmarks=8, shared_landmarks="drop", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="a landmark leaves with its row"):
        model.predict_interval(X_new, 0.8)


def test_groups_of_one_row_are_rows():
    X, y, X_new = problem(repeated=0)
    plain = KernelRidge(**FIXED).fit(X, y)
    grouped = KernelRidge(**FIXED).fit(X, y, groups=np.arange(len(X)))
    for method in ("jackknife+", "jackknife-minmax"):
        assert_close(
            grouped.predict_interval(X_new, 0.8, method), plain.predict_interval(X_new, 0.8, method)
        )


def test_cv_plus_keeps_groups_together():
    X, y, X_new = problem()
    groups = np.arange(len(X)) // 2
    model = KernelRidge(**FIXED).fit(X, y, groups=groups)
    whole = [np.flatnonzero(np.isin(groups, part)) for part in np.array_split(np.unique(groups), 4)]
    splits = [(np.setdiff1d(np.arange(len(X)), rows), rows) for rows in whole]
    mass = np.full(len(X), 1.0 / ((len(np.unique(groups)) + 1) * 2))
    alone = centres_and_radii(KernelRidge(**FIXED), X, y, X_new, whole)
    expected = order_statistics(*alone, mass, 0.8)
    assert_close(model.predict_interval(X_new, 0.8, "cv+", cv=splits), expected, 1e-8)


@pytest.mark.parametrize("method", ["jackknife+", "cv+", "jackknife-minmax", "full"])
def test_several_targets_are_each_their_own(method):
    X, Y, X_new = problem(n_targets=2)
    both = KernelRidge(**FIXED).fit(X, Y).predict_interval(X_new, 0.8, method)
    assert both.shape == (len(X_new), 2, 2)
    for t in range(2):
        one = KernelRidge(**FIXED).fit(X, Y[:, t]).predict_interval(X_new, 0.8, method)
        assert_close(both[:, :, t], one)


def test_precomputed_kernels_and_rows_of_weight_zero():
    X, y, X_new = problem()
    K = np.exp(-0.4 * ((X[:, None] - X) ** 2).sum(axis=2))
    K_new = np.exp(-0.4 * ((X_new[:, None] - X) ** 2).sum(axis=2))
    weights = row_weights(len(X), zeros=5)
    used = np.flatnonzero(weights > 0)
    expected = (
        KernelRidge(**FIXED).fit(X[used], y[used], weights[used]).predict_interval(X_new, 0.8)
    )
    model = KernelRidge(0.3, kernel="precomputed").fit(K, y, weights)
    assert_close(model.predict_interval(K_new, 0.8), expected)
    with pytest.raises(ValueError, match="precomputed kernel has no k"):
        model.predict_interval(K_new, 0.8, "full")


# ---- full conformal ------------------------------------------------------------------------------


def deleted_residuals(model, X, y, weights, x, z):
    """Of all n + 1 rows, each by a literal refit without it; the new row comes last."""
    X1, y1 = np.vstack([X, x]), np.append(y, z)
    w1 = None if weights is None else np.append(weights, 1.0)
    sets = [np.array([i]) for i in range(len(X1))]
    others = models_without(model, X1, y1, w1, sets)
    return np.array([y1[i] - m.predict(X1[i : i + 1])[0] for i, m in enumerate(others)])


@pytest.mark.parametrize(
    ("setting", "weighted"),
    [
        ("rbf", False),
        ("rbf", True),
        ("no bias", True),
        ("penalised bias", True),
        ("linear", True),
        ("tiny alpha", False),
        ("landmarks", True),
    ],
)
def test_full_conformal_sets_equal_refits(setting, weighted):
    """At the ends of the set a residual ties with the new row's; in between they are counted."""
    X, y, X_new = (part[:11] for part in problem(repeated=0))
    weights = row_weights(len(X)) if weighted else None
    model = ridge(setting, X)
    fitted = clone(model).fit(X, y, weights)
    sets = fitted.predict_interval(X_new[:2], 0.7, "full", union=True)
    for x, parts in zip(X_new[:2], sets, strict=True):
        ends = parts.ravel()
        assert np.all(np.diff(ends) > 0) and np.all(np.isfinite(ends))
        for end in ends:
            e = deleted_residuals(model, X, y, weights, x, end)
            assert np.abs(np.abs(e[:-1]) - np.abs(e[-1])).min() < 1e-6 * np.abs(e[-1])
        middle = 0.5 * (ends[1:] + ends[:-1])
        for z in (ends[0] - 0.1, *middle, ends[-1] + 0.1):
            e = np.abs(deleted_residuals(model, X, y, weights, x, z))
            member = np.sum(e >= e[-1]) > 0.3 * (len(X) + 1)
            assert member == np.any((parts[:, 0] <= z) & (z <= parts[:, 1]))


def test_the_hull_goes_around_all_parts():
    """Lines steeper than one leave gaps: lonely rows of a nearly interpolating model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 1))
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    model = KernelRidge(1e-3, gamma=0.3, fit_intercept=False).fit(X, y)
    X_new = np.linspace(-2, 2, 60)[:, None]
    sets = model.predict_interval(X_new, 0.6, "full", union=True)
    assert max(map(len, sets)) > 1
    hull = model.predict_interval(X_new, 0.6, "full")
    assert_close(hull, np.array([[part[0, 0], part[-1, 1]] for part in sets]))


# ---- what is asked -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["jackknife+", "cv+", "jackknife-minmax", "full"])
def test_infinite_where_there_are_too_few_rows(method):
    X, y, X_new = problem(repeated=0)
    model = KernelRidge(**FIXED).fit(X[:9], y[:9])
    assert np.all(np.isfinite(model.predict_interval(X_new, 0.9, method)))  # the largest of nine
    assert np.all(np.isinf(model.predict_interval(X_new, 0.91, method)))


def test_what_cannot_be_asked_for():
    X, y, X_new = problem()
    model = KernelRidge(**FIXED).fit(X, y)
    for confidence in (0, 1, 90, True, "high"):
        with pytest.raises(ValueError, match="confidence must be a number between 0 and 1"):
            model.predict_interval(X_new, confidence)
    with pytest.raises(ValueError, match="method must be one of"):
        model.predict_interval(X_new, method="bootstrap")
    with pytest.raises(ValueError, match='cv is for method="cv'):
        model.predict_interval(X_new, cv=5)
    with pytest.raises(ValueError, match='union is only for method="full"'):
        model.predict_interval(X_new, union=True)
    with pytest.raises(ValueError, match="every row exactly once"):
        model.predict_interval(X_new, method="cv+", cv=ShuffleSplit(3, random_state=0))
    with pytest.raises(ValueError, match='needs penalty="function"'):
        KernelRidge(**FIXED, penalty="dual").fit(X, y).predict_interval(X_new, method="full")
    grouped = KernelRidge(**FIXED).fit(X, y, groups=np.arange(len(X)) // 2)
    with pytest.raises(ValueError, match="compares single rows"):
        grouped.predict_interval(X_new, method="full")


def test_arrays_of_another_namespace():
    xp = pytest.importorskip("array_api_strict")
    X, y, X_new = problem()
    plain = KernelRidge(**FIXED).fit(X, y)
    foreign = KernelRidge(**FIXED).fit(xp.asarray(X), xp.asarray(y))
    for method in ("jackknife+", "cv+", "jackknife-minmax", "full"):
        got = foreign.predict_interval(xp.asarray(X_new), 0.8, method)
        assert got.__array_namespace__() is xp
        assert_close(np.asarray(got), plain.predict_interval(X_new, 0.8, method))
