"""Confounds against the pipeline written out: regress out on the training rows, then the estimator.

Residuals in feature space are made by the kernel trick from scikit-learn's LinearRegression of unit
targets, which gives the weights of the training rows in every prediction, least norm included.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reference
from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)

N, GAMMA, ALPHA = 36, 0.2, 0.6
SITES = np.array(["north", "south", "west"])


class Problem:
    """Rows whose features and targets follow age and site."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        age, self.site = rng.normal(50.0, 12.0, N), SITES[rng.permutation(N) % 3]
        self.table = pd.DataFrame({"age": age, "site": pd.Categorical(self.site)})
        self.numbers = np.column_stack([age, self.site[:, None] == SITES]).astype(float)
        drift = 0.05 * (age - 50.0) + (self.site == "west")
        self.X = rng.normal(size=(N, 4)) + drift[:, None]
        self.X[-2:] = self.X[:2]  # duplicates, with confounds of their own
        self.y = self.X[:, 0] + 2.0 * drift + 0.3 * rng.normal(size=N)
        self.classes = np.digitize(self.y, np.quantile(self.y, [0.25, 0.7]))
        self.weights = rng.uniform(0.4, 2.5, N)


def kernel_of(name: str, X: np.ndarray) -> np.ndarray:
    options = {"gamma": GAMMA, "degree": 2, "coef0": 1}
    return pairwise_kernels(X, metric=name, filter_params=True, **options)


def residual_kernel(K, C, train, test, weights):
    """The kernel of residuals in feature space: of the training rows, and of test rows with them.

    φ̃(x) = φ(x) - Σ_j S_j(x) φ(x_j), with S what LinearRegression makes of unit targets.
    """
    own = None if weights is None else weights[train]
    regression = LinearRegression().fit(C[train], np.eye(len(train)), sample_weight=own)
    M = np.eye(len(train)) - regression.predict(C[train])
    K_train = K[np.ix_(train, train)]
    K_test = K[np.ix_(test, train)] - regression.predict(C[test]) @ K_train
    residual = M @ K_train @ M.T
    return 0.5 * (residual + residual.T), K_test @ M.T


def estimator(kind: str, **options):
    options = {"alpha": ALPHA, **options}
    if kind == "ridge":
        return KernelRidge(**options)
    if kind == "svc":
        return LeastSquaresSVC(calibration=None, **options)
    return KernelFisherDiscriminant(calibration=None, **options)


def main_method(kind: str) -> str:
    return "predict" if kind == "ridge" else "decision_function"


def literal(kind, problem, kernel, penalty, splits, weights, methods):
    """Each split's outputs by the pipeline written out."""
    y = problem.y if kind == "ridge" else problem.classes
    K, outputs = kernel_of(kernel, problem.X), []
    for train, test in splits:
        K_train, K_test = residual_kernel(K, problem.numbers, train, test, weights)
        model = estimator(kind, kernel="precomputed", penalty=penalty)
        model.fit(K_train, y[train], sample_weight=None if weights is None else weights[train])
        outputs.append({method: getattr(model, method)(K_test) for method in methods})
    return outputs


SPLITTERS = {
    "leave one out": LeaveOneOut(),
    "folds": StratifiedKFold(4),
    "shuffled": ShuffleSplit(3, test_size=0.3, random_state=0),
    "series": TimeSeriesSplit(3),
    "sites": LeaveOneGroupOut(),  # the confounds lose rank: least norm
}


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("kind", ["ridge", "svc", "fisher"])
def test_removed_confounds_equal_the_pipeline_written_out(kind, kernel, penalty, weighted):
    problem = Problem()
    y = problem.y if kind == "ridge" else problem.classes
    weights = problem.weights if weighted else None
    given = {} if kernel == "linear" else {"gamma": GAMMA, "degree": 2}
    inner = KFold(2) if penalty == "dual" else None  # its own held-out values: not looked at here
    model = estimator(kind, kernel=kernel, penalty=penalty, cv=inner, **given)
    params = {"confounds": problem.table}
    params |= {"sample_weight": weights} if weighted else {}
    for name, cv in SPLITTERS.items():
        if name == "leave one out" and penalty == "dual":
            continue  # below, by its held-out values
        groups = problem.site if name == "sites" else None
        splits = list(cv.split(problem.X, problem.classes, groups))
        methods = [main_method(kind)] + ["transform"] * (kind == "fisher")
        expected = literal(kind, problem, kernel, penalty, splits, weights, methods)
        for method in methods:
            folds = cross_val_predict(
                model,
                problem.X,
                y,
                cv=splits if name != "series" else cv,
                params=params,
                method=method,
                by_fold=True,
            )
            for (test, output), (_, rows), outputs in zip(folds, splits, expected, strict=True):
                np.testing.assert_array_equal(test, rows)
                values = outputs[method]
                if method == "transform":  # the sign of an axis is its own
                    output, values = np.abs(output), np.abs(values)
                np.testing.assert_allclose(output, values, atol=2e-9 * np.abs(values).max())


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("weighted", [False, True])
def test_included_confounds_are_predictors_without_a_penalty(penalty, weighted):
    problem = Problem(1)
    C = problem.numbers[:, :3]  # of the three sites two, so that there is one solution
    fit = reference.ridge_function_norm if penalty == "function" else reference.ridge_dual_norm
    weights = problem.weights if weighted else None
    params = {"confounds": C} | ({"sample_weight": weights} if weighted else {})
    model = KernelRidge(ALPHA, gamma=GAMMA, penalty=penalty, confounding="include")
    K, Y = kernel_of("rbf", problem.X), problem.y[:, None]
    for cv in (LeaveOneOut(), KFold(5)):
        held_out = cross_val_predict(model, problem.X, problem.y, cv=cv, params=params)
        for train, test in cv.split(problem.X):
            refit = (fit, K, Y, ALPHA, train, test, weights)
            expected = reference.refit_held_out(*refit, unpenalised=C)[:, 0]
            np.testing.assert_allclose(held_out[test], expected, rtol=1e-8)
    whole = model.fit(problem.X, problem.y, **params)
    everything = fit(K, Y, ALPHA, weights, unpenalised=C)
    np.testing.assert_allclose(whole.confound_coef_, everything.beta[1:, 0], rtol=1e-7)
    assert np.isclose(whole.score(problem.X, problem.y, confounds=C), 1.0, atol=0.5)


@pytest.mark.parametrize("kind", ["ridge", "fisher"])
def test_the_linear_kernel_is_that_of_residual_columns(kind):
    problem = Problem(2)
    y = problem.y if kind == "ridge" else problem.classes
    plain, method = estimator(kind, kernel="linear"), main_method(kind)
    regression = LinearRegression().fit(problem.numbers, problem.X)
    residual = problem.X - regression.predict(problem.numbers)
    expected = getattr(plain.fit(residual, y), method)(residual)
    model = estimator(kind, kernel="linear").fit(problem.X, y, confounds=problem.table)
    got = getattr(model, method)(problem.X, confounds=problem.table)
    np.testing.assert_allclose(got, expected, rtol=1e-8)


@pytest.mark.parametrize("penalty", ["function", "dual"])
def test_held_out_values_of_a_fit_are_those_of_leave_one_out_and_of_cv(penalty):
    problem = Problem(3)
    problem.table["site"] = problem.table["site"].cat.add_categories("alone")
    problem.table.loc[5, "site"] = "alone"  # the only one of its level: least norm when it leaves
    params = {"confounds": problem.table}
    for kind, cv in (("ridge", None), ("fisher", None), ("svc", KFold(3)), ("fisher", KFold(3))):
        y = problem.y if kind == "ridge" else problem.classes
        model = estimator(kind, gamma=GAMMA, penalty=penalty, cv=cv).fit(problem.X, y, **params)
        output = model.held_out_prediction_ if kind == "ridge" else model.held_out_decision_
        fixed = estimator(kind, gamma=GAMMA, penalty=penalty, cv=KFold(2))
        splits = list((LeaveOneOut() if cv is None else cv).split(problem.X))
        splits = splits[5:] if kind == "ridge" else splits[::5]
        for train, test in splits:
            fixed.fit(problem.X[train], y[train], confounds=problem.table.iloc[train])
            rows = problem.X[test], problem.table.iloc[test]
            expected = getattr(fixed, main_method(kind))(rows[0], confounds=rows[1])
            np.testing.assert_allclose(output[test], expected, atol=1e-8 * np.abs(output).max())
        assert model.verify(n_refits=2).passed


@pytest.mark.parametrize("meaning", ["remove", "include"])
def test_tuning_chooses_what_a_loop_of_refits_chooses(meaning):
    problem = Problem(4)
    alphas, cv = np.array([0.01, 0.3, 10.0]), KFold(4, shuffle=True, random_state=0)
    model = KernelRidge(alphas, gamma=GAMMA, cv=cv, confounding=meaning)
    model.fit(problem.X, problem.y, confounds=problem.table)
    losses = []
    for alpha in alphas:
        fixed = KernelRidge(alpha, gamma=GAMMA, confounding=meaning)
        held_out = np.empty(N)
        for train, test in cv.split(problem.X):
            fixed.fit(problem.X[train], problem.y[train], confounds=problem.table.iloc[train])
            held_out[test] = fixed.predict(problem.X[test], confounds=problem.table.iloc[test])
        losses.append(np.mean((held_out - problem.y) ** 2))
    np.testing.assert_allclose(-model.cv_results_["mean_test_score"], losses, rtol=1e-8)
    assert model.alpha_ == alphas[int(np.argmin(losses))]


def test_nested_tuning_pipelines_and_scores():
    problem = Problem(5)
    params, y = {"confounds": problem.table}, problem.classes
    cv = StratifiedKFold(3)
    tuned = KernelFisherDiscriminant(alpha=[0.1, 1.0], gamma=GAMMA)
    pipeline = make_pipeline(StandardScaler(), tuned)
    nested = cross_val_predict(pipeline, problem.X, y, cv=cv, params=params, method="predict_proba")
    for train, test in cv.split(problem.X, y):
        scaler = StandardScaler().fit(problem.X[train])
        tuned.fit(scaler.transform(problem.X[train]), y[train], confounds=problem.table.iloc[train])
        rows = scaler.transform(problem.X[test]), problem.table.iloc[test]
        np.testing.assert_allclose(
            nested[test], tuned.predict_proba(rows[0], confounds=rows[1]), rtol=1e-7
        )
    stepwise = {"kernelfisherdiscriminant__confounds": problem.table}
    again = cross_val_predict(pipeline, problem.X, y, cv=cv, params=stepwise)
    np.testing.assert_array_equal(again, nested.argmax(axis=1))
    fixed = KernelFisherDiscriminant(alpha=1.0, gamma=GAMMA)
    scores = cross_val_score(fixed, problem.X, y, cv=cv, params=params)
    results = cross_validate(fixed, problem.X, y, cv=cv, params=params, scoring="neg_log_loss")
    assert results.route.name == "one" and np.isfinite(results["test_score"]).all()
    predicted = cross_val_predict(fixed, problem.X, y, cv=cv, params=params)
    expected = [np.mean(predicted[test] == y[test]) for _, test in cv.split(problem.X, y)]
    np.testing.assert_allclose(scores, expected)


def test_numbers_and_categories_are_coded_alike_however_they_come():
    problem = Problem(6)
    as_objects = np.column_stack([problem.table["age"], problem.site]).astype(object)
    as_objects[:, 0] = problem.table["age"]
    model = KernelRidge(ALPHA, gamma=GAMMA)
    forms = (problem.table, problem.numbers, as_objects, as_objects.tolist())
    first, *others = (
        model.fit(problem.X, problem.y, confounds=form).predict(problem.X, confounds=form)
        for form in forms[:3]
    )
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-9)
    only = model.fit(problem.X, problem.y, confounds=problem.site)
    assert only.confounds_.levels == (tuple(SITES),)
    elsewhere = only.predict(problem.X[:3], confounds=np.array(["nowhere"] * 3))
    assert np.isfinite(elsewhere).all()


@pytest.mark.parametrize("meaning", ["remove", "include"])
@pytest.mark.parametrize("penalty", ["function", "dual"])
def test_units_of_confounds_do_not_matter(meaning, penalty):
    """Seconds since 1970 beside a column of 1e-6: the small one is removed as well."""
    problem = Problem(3)
    rng = np.random.default_rng(5)
    plain = np.column_stack([rng.normal(size=(N, 2)), problem.numbers])
    plain[:, 1] += plain[:, 0]
    scaled = plain * np.r_[1e6, 1e-6, np.ones(plain.shape[1] - 2)]
    scaled[:, 0] += 1.7e9
    scaled = np.column_stack([scaled, np.full(N, 1.7e9 + 0.1)])  # constant but for rounding
    X = problem.X + plain[:, :1] - 2.0 * plain[:, 1:2]
    model = KernelRidge(gamma=GAMMA, alpha=ALPHA, confounding=meaning, penalty=penalty)
    expected = clone(model).fit(X, problem.y, confounds=plain)
    model.fit(X, problem.y, confounds=scaled)
    np.testing.assert_allclose(model.held_out_prediction_, expected.held_out_prediction_, atol=1e-8)
    found = model.predict(X, confounds=scaled)
    np.testing.assert_allclose(found, expected.predict(X, confounds=plain), atol=1e-8)
    if meaning == "remove" and penalty == "function":
        residual = X - LinearRegression().fit(plain, X).predict(plain)
        linear = KernelRidge(kernel="linear", alpha=ALPHA).fit(X, problem.y, confounds=scaled)
        ridge = Ridge(alpha=ALPHA).fit(residual, problem.y)
        predicted = linear.predict(X, confounds=scaled)
        np.testing.assert_allclose(predicted, ridge.predict(residual), atol=1e-8)


def test_dates_are_days_since_1970():
    problem = Problem()
    days = np.arange(N) * 3.25 + 19_000
    when = (86_400e6 * days).astype("int64").astype("datetime64[us]")
    zoned = pd.to_datetime(when).tz_localize("UTC").tz_convert("Europe/Berlin")
    model = KernelRidge(gamma=GAMMA, alpha=ALPHA)
    expected = clone(model).fit(problem.X, problem.y, confounds=days).held_out_prediction_
    for given in (
        when,
        when.astype("datetime64[s]"),
        when - when[0],
        when.tolist(),
        pd.Series(when),
        pd.DataFrame({"when": zoned}),
        pd.DataFrame({"when": when.astype(object)}),
    ):
        found = model.fit(problem.X, problem.y, confounds=given)
        np.testing.assert_allclose(found.held_out_prediction_, expected, atol=1e-8)
    missing = when.copy()
    missing[3] = np.datetime64("NaT")
    with pytest.raises(ValueError, match=r"NaN or infinity \(row 3\)"):
        model.fit(problem.X, problem.y, confounds=missing)
    text = pd.Series(np.datetime_as_string(when, "D"), name="visit")
    for given in (text, text.to_list(), text.to_frame()):
        with pytest.raises(ValueError, match=r"dates as text.*pandas\.to_datetime"):
            model.fit(problem.X, problem.y, confounds=given)
    with pytest.warns(UserWarning, match="36 levels in 36 rows"):
        model.fit(problem.X, problem.y, confounds=text.astype("category"))
    with pytest.warns(UserWarning, match="'confound' is a category with 36 levels"):
        model.fit(problem.X, problem.y, confounds=[f"person {i}" for i in range(N)])


def test_rows_of_weight_zero_do_not_train_and_are_predicted():
    problem = Problem(7)
    weights = np.where(np.arange(N) % 6 == 0, 0.0, 1.0)
    kept = weights > 0
    model = KernelRidge(ALPHA, gamma=GAMMA)
    model.fit(problem.X, problem.y, sample_weight=weights, confounds=problem.table)
    alone = KernelRidge(ALPHA, gamma=GAMMA)
    alone.fit(problem.X[kept], problem.y[kept], confounds=problem.table[kept])
    expected = alone.predict(problem.X[~kept], confounds=problem.table[~kept])
    np.testing.assert_allclose(model.held_out_prediction_[~kept], expected, rtol=1e-8)
    np.testing.assert_allclose(
        model.held_out_prediction_[kept], alone.held_out_prediction_, rtol=1e-8
    )


@pytest.mark.parametrize(
    ("options", "confounds", "message"),
    [
        ({"fit_intercept": False}, "table", "fit_intercept=True"),
        ({"refine": True}, "table", "derivatives"),
        ({"criterion": "gcv"}, "table", "fit of all rows"),
        ({"confounding": "erase"}, "table", "confounding must be one of"),
        ({"confounding": "columns"}, "table", "confounding must be one of"),
        ({}, np.full(N, np.nan), "NaN"),
        ({}, np.array([None, *["a"] * (N - 1)], dtype=object), "missing in row 0"),
        ({}, np.zeros((N - 1, 2)), "one row for each row"),
    ],
)
def test_what_does_not_go_with_confounds_says_so(options, confounds, message):
    problem = Problem(8)
    confounds = problem.table if isinstance(confounds, str) else confounds
    with pytest.raises(ValueError, match=message):
        KernelRidge(**options).fit(problem.X, problem.y, confounds=confounds)


def test_predictions_without_their_confounds_say_so():
    problem = Problem(9)
    plain = KernelRidge(1.0, gamma=GAMMA).fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="fitted without"):
        plain.predict(problem.X, confounds=problem.table)
    model = KernelFisherDiscriminant(alpha=1.0, gamma=GAMMA)
    model.fit(problem.X, problem.classes, confounds=problem.table)
    for method in ("predict", "decision_function", "predict_proba", "transform"):
        with pytest.raises(ValueError, match="needs the confounds of these rows"):
            getattr(model, method)(problem.X)
    with pytest.raises(ValueError, match="2 columns of the fit"):
        model.predict(problem.X, confounds=problem.site)
    with pytest.raises(ValueError, match="in the same order"):
        model.predict(problem.X, confounds=problem.table[["site", "age"]])
    with pytest.raises(ValueError, match="needs the confounds of these rows"):
        model.predict_set(problem.X)
    with pytest.raises(TypeError, match="an estimator of fitonce"):
        cross_val_predict(
            LinearRegression(), problem.X, problem.y, params={"confounds": problem.table}
        )


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("kind", ["ridge", "fisher"])
def test_landmarks_are_a_linear_model_of_residual_features(kind, penalty):
    """Features of landmarks less what confounds explain of them on the training rows."""
    problem = Problem(10)
    y = problem.y if kind == "ridge" else problem.classes
    points, method = problem.X[:9], main_method(kind)
    options = {"gamma": GAMMA, "penalty": penalty, "landmarks": points}
    model = estimator(kind, **options)
    Z = pairwise_kernels(problem.X, points, metric="rbf", gamma=GAMMA)
    if penalty == "function":
        values, vectors = np.linalg.eigh(pairwise_kernels(points, metric="rbf", gamma=GAMMA))
        Z = Z @ vectors / np.sqrt(values)
    for cv in (KFold(4), LeaveOneOut(), LeaveOneGroupOut()):
        splits = list(cv.split(problem.X, y, problem.site if "Group" in str(cv) else None))
        given = {"params": {"confounds": problem.table}, "method": method, "by_fold": True}
        folds = cross_val_predict(model, problem.X, y, cv=splits, **given)
        for (train, test), (_, output) in list(zip(splits, folds, strict=True))[:6]:
            regression = LinearRegression().fit(problem.numbers[train], Z[train])
            residual = Z - regression.predict(problem.numbers)
            plain = estimator(kind, kernel="linear").fit(residual[train], y[train])
            expected = getattr(plain, method)(residual[test])
            np.testing.assert_allclose(output, expected, atol=1e-7 * np.abs(output).max())
    chosen = estimator(kind, **{**options, "landmarks": 9, "random_state": 0, "alpha": [0.1, 1.0]})
    tuned = chosen.fit(problem.X, y, confounds=problem.table)
    assert tuned.verify(n_refits=2).passed


# ---- what the models without each row say of all rows --------------------------------------------


def left_out(kind, options, problem, sets):
    """The fitted model, and one refitted without each set of rows."""
    y, C = problem.y if kind == "ridge" else problem.classes, problem.table
    model = estimator(kind, **options).fit(problem.X, y, confounds=C)
    kept = (np.setdiff1d(np.arange(N), rows) for rows in sets)
    refits = [clone(model).fit(problem.X[k], y[k], confounds=C.iloc[k]) for k in kept]
    return model, refits


MODELS_OF_ROWS = [
    {"gamma": GAMMA},
    {"gamma": GAMMA, "confounding": "include"},
    {"kernel": "linear"},
    {"gamma": GAMMA, "landmarks": Problem(10).X[:9]},
    {"gamma": GAMMA, "confounding": "include", "penalty": "dual"},
]


@pytest.mark.parametrize("options", MODELS_OF_ROWS)
@pytest.mark.parametrize("kind", ["ridge", "svc", "fisher"])
def test_influence_and_sets_with_confounds_equal_refits(kind, options):
    problem = Problem(11)
    rows = np.arange(N)
    model, refits = left_out(kind, options, problem, rows)
    method, given = main_method(kind), {"confounds": problem.table}
    everywhere = np.stack([getattr(refit, method)(problem.X, **given) for refit in refits])
    change = everywhere - getattr(model, method)(problem.X, **given)
    scale = np.abs(everywhere).max()
    np.testing.assert_allclose(model.influence(), change, atol=1e-7 * scale)
    new = problem.X[:8] + 0.3, problem.table.iloc[4:12]
    at_new = np.stack([getattr(refit, method)(new[0], confounds=new[1]) for refit in refits], 1)
    if kind == "ridge":
        residual = np.abs(problem.y - everywhere[rows, rows])
        k = int(np.ceil(0.8 * (N + 1)))
        upper = np.sort(at_new + residual, axis=1)[:, k - 1]
        lower = np.sort(at_new - residual, axis=1)[:, N - k]
        band = model.predict_interval(new[0], 0.8, confounds=new[1])
        np.testing.assert_allclose(band, np.column_stack([lower, upper]), atol=1e-7 * scale)
    elif kind == "fisher":
        own = oddity(everywhere[rows, rows])[rows, problem.classes]
        below = own[None, :, None] < oddity(at_new) - 1e-9
        members = below.mean(axis=1) * N / (N + 1) < 0.8 - 1e-9
        got = model.predict_set(new[0], 0.8, confounds=new[1])
        np.testing.assert_array_equal(got, members)


def oddity(scores: np.ndarray) -> np.ndarray:
    """The best score of another class minus that of each class."""
    best = np.stack([np.delete(scores, c, axis=-1).max(axis=-1) for c in range(3)], axis=-1)
    return best - scores


@pytest.mark.parametrize("confounding", ["remove", "include"])
def test_intervals_from_folds_with_confounds_equal_refits(confounding):
    problem, cv = Problem(12), KFold(4, shuffle=True, random_state=0)
    sets = [test for _, test in cv.split(problem.X)]
    options = {"gamma": GAMMA, "confounding": confounding}
    model, refits = left_out("ridge", options, problem, sets)
    new = problem.X[:8] + 0.3, problem.table.iloc[4:12]
    at_new, own = np.empty((8, N)), np.empty(N)
    for rows, refit in zip(sets, refits, strict=True):
        at_new[:, rows] = refit.predict(new[0], confounds=new[1])[:, None]
        own[rows] = refit.predict(problem.X[rows], confounds=problem.table.iloc[rows])
    k, residual = int(np.ceil(0.8 * (N + 1))), np.abs(problem.y - own)
    upper = np.sort(at_new + residual, axis=1)[:, k - 1]
    lower = np.sort(at_new - residual, axis=1)[:, N - k]
    band = model.predict_interval(new[0], 0.8, "cv+", cv=cv, confounds=new[1])
    np.testing.assert_allclose(band, np.column_stack([lower, upper]), atol=1e-7)


def test_what_the_models_without_rows_cannot_say_is_refused():
    problem = Problem(13)
    lonely = np.where(np.arange(N) == 5, "alone", problem.site)
    dual = {"gamma": GAMMA, "penalty": "dual", "cv": KFold(2)}
    for options, confounds in (({"gamma": GAMMA}, lonely), (dual, problem.table)):
        model = estimator("ridge", **options).fit(problem.X, problem.y, confounds=confounds)
        with pytest.raises(ValueError, match="no closed form"):
            model.influence()
        with pytest.raises(ValueError, match="no closed form"):
            model.predict_interval(problem.X, confounds=confounds)
    model = estimator("ridge", gamma=GAMMA).fit(problem.X, problem.y, confounds=problem.table)
    with pytest.raises(ValueError, match="would join three"):
        model.predict_interval(problem.X, method="full", confounds=problem.table)


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("confounding", ["remove", "include"])
def test_an_alpha_for_every_target_with_confounds_is_that_of_each_alone(confounding, penalty):
    problem, alphas = Problem(14), np.array([0.01, 0.3, 10.0])
    noise = np.random.default_rng(0).normal(size=(N, 3))
    Y = problem.y[:, None] * [1.0, 0.3, 0.0] + noise
    options = {"gamma": GAMMA, "confounding": confounding, "penalty": penalty}
    options |= {"cv": KFold(4, shuffle=True, random_state=0)}
    given = {"sample_weight": problem.weights, "confounds": problem.table}
    many = KernelRidge(alphas, alpha_per_target=True, **options).fit(problem.X, Y, **given)
    predicted = many.predict(problem.X, confounds=problem.table)
    for j in range(3):
        own = KernelRidge(alphas, **options).fit(problem.X, Y[:, j], **given)
        assert own.alpha_ == many.alpha_[j]
        expected = own.predict(problem.X, confounds=problem.table)
        np.testing.assert_allclose(predicted[:, j], expected, atol=1e-8)
        held_out = many.held_out_prediction_[:, j]
        np.testing.assert_allclose(held_out, own.held_out_prediction_, atol=1e-8)
        np.testing.assert_allclose(many.confound_coef_[:, j], own.confound_coef_, atol=1e-8)


def test_many_targets_with_confounds_are_those_of_a_few():
    problem = Problem(15)
    Y = np.random.default_rng(1).normal(size=(N, 70)) + problem.y[:, None]
    options = {"alpha": [0.1, 1.0], "gamma": GAMMA}
    given = {"confounds": problem.table}
    many = KernelRidge(**options).fit(problem.X, Y, **given)
    few = KernelRidge(many.alpha_, gamma=GAMMA).fit(problem.X, Y[:, :5], **given)
    np.testing.assert_allclose(
        many.held_out_prediction_[:, :5], few.held_out_prediction_, atol=1e-9
    )
    np.testing.assert_allclose(
        many.predict(problem.X, **given)[:, :5], few.predict(problem.X, **given), atol=1e-9
    )


def test_landmarks_with_confounds_and_rows_of_weight_zero():
    problem = Problem(16)
    weights = np.where(np.arange(N) % 6 == 0, 0.0, 1.0)
    kept = weights > 0
    model = KernelRidge(ALPHA, gamma=GAMMA, landmarks=problem.X[:9])
    model.fit(problem.X, problem.y, sample_weight=weights, confounds=problem.table)
    alone = clone(model).fit(problem.X[kept], problem.y[kept], confounds=problem.table[kept])
    expected = alone.predict(problem.X[~kept], confounds=problem.table[~kept])
    np.testing.assert_allclose(model.held_out_prediction_[~kept], expected, rtol=1e-8)
