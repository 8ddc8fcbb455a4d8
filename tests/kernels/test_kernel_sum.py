"""Several kernels with weights, against matrices made by hand and against literal refits."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.model_selection import cross_val_predict as refitted_predict
from sklearn.model_selection import permutation_test_score as literal_test

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    KernelSum,
    LeastSquaresSVC,
    RefitWarning,
    assess,
    cross_val_predict,
    cross_validate,
    load,
    permutation_test_score,
    save,
    to_onnx,
)
from fitonce.kernels import Kernel
from fitonce.kernels.distances import DistancesTo
from reference import assert_close

THREE = [("a", "rbf", slice(0, 3)), ("b", "linear", [3, 4]), ("c", "laplacian", [5])]
FIXED = {"weights": [1.5, 0.25, 0.5], "gamma": {"a": 0.2, "c": 0.7}}


def rows(n: int = 36, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    X[1] = X[0]
    y = np.sin(X[:, 0]) + X[:, 3] + 0.3 * rng.standard_normal(n)
    labels = np.array(["no", "yes", "perhaps"])[
        np.digitize(y, np.quantile(y, [0.5, 0.85]))
    ]  # unbalanced
    return X, y, labels


def by_hand(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    a, b, c = FIXED["weights"]
    return np.asarray(
        a * rbf_kernel(X[:, :3], Z[:, :3], gamma=0.2)
        + b * linear_kernel(X[:, 3:5], Z[:, 3:5])
        + c * laplacian_kernel(X[:, 5:], Z[:, 5:], gamma=0.7)
    )


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("model", [KernelRidge, LeastSquaresSVC, KernelFisherDiscriminant])
def test_a_sum_is_its_matrix(model: type, penalty: str) -> None:
    X, y, labels = rows()
    target = y if model is KernelRidge else labels
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    one = model(kernel=KernelSum(THREE, **FIXED), alpha=0.3, penalty=penalty)
    other = model(kernel="precomputed", alpha=0.3, penalty=penalty)
    one.fit(X[:30], target[:30], weights[:30])
    other.fit(by_hand(X[:30], X[:30]), target[:30], weights[:30])
    method = "predict" if model is KernelRidge else "decision_function"
    expected = getattr(other, method)(by_hand(X[30:], X[:30]))
    np.testing.assert_allclose(getattr(one, method)(X[30:]), expected, rtol=1e-9, atol=1e-10)
    assert one.verify(n_refits=4).passed
    np.testing.assert_allclose(
        cross_val_predict(one, X, target, cv=4, method=method),
        refitted_predict(one, X, target, cv=4, method=method),
        rtol=1e-8,
        atol=1e-9,
    )


def test_the_scale_of_all_weights_is_that_of_alpha() -> None:
    X, y, _ = rows()
    once = KernelRidge(0.3, kernel=KernelSum(THREE, **FIXED)).fit(X, y)
    twice = KernelSum(THREE, [6.0, 1.0, 2.0], gamma=FIXED["gamma"])
    again = KernelRidge(1.2, kernel=twice).fit(X, y)
    np.testing.assert_allclose(again.held_out_prediction_, once.held_out_prediction_, rtol=1e-9)


def test_columns_by_slice_number_mask_and_name() -> None:
    pandas = pytest.importorskip("pandas")
    X, y, _ = rows()
    frame = pandas.DataFrame(X, columns=list("pqrstu"))
    mask = np.array([False, False, False, True, True, False])
    ways = [
        slice(3, 5),
        slice(-3, -1),
        slice(4, 2, -1),
        [3, 4],
        [-3, 4],
        mask,
        mask.tolist(),
        ["s", "t"],
    ]
    expected = None
    for way in ways:
        kernel = KernelSum([("a", "rbf", "p"), ("b", "linear", way)], [1, 2], gamma=0.3)
        model = KernelRidge(0.1, kernel=kernel).fit(frame, y)
        expected = model.predict(frame) if expected is None else expected
        np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-12)
    backwards = KernelSum([("all", "linear", slice(None, None, -1))], [1])
    model = KernelRidge(0.1, kernel=backwards).fit(X, y)
    np.testing.assert_allclose(
        model.predict(X), KernelRidge(0.1, kernel="linear").fit(X, y).predict(X)
    )
    names = [("a", "rbf", "p"), ("b", "linear", ["s", "t"])]
    nested = cross_val_predict(KernelRidge(kernel=KernelSum(names)), frame, y, cv=3)
    again = refitted_predict(KernelRidge(kernel=KernelSum(names)), frame, y, cv=3)
    np.testing.assert_allclose(nested, again, rtol=1e-8)


def test_precomputed_matrices_by_row_number() -> None:
    X, y, _ = rows()
    R, L = rbf_kernel(X[:, :3], gamma=0.2), linear_kernel(X[:, 3:5])
    parts = [("a", R, 0), ("b", L, 0)]
    number = np.arange(len(y))[:, None]
    fixed = KernelRidge(0.3, kernel=KernelSum(parts, [1.5, 0.25]))
    direct = KernelRidge(0.3, kernel=KernelSum(THREE[:2], [1.5, 0.25], gamma=0.2))
    np.testing.assert_allclose(
        cross_val_predict(fixed, number, y, cv=5), cross_val_predict(direct, X, y, cv=5), rtol=1e-9
    )
    order = np.random.default_rng(0).permutation(len(y))
    tuned = KernelRidge(kernel=KernelSum(parts))
    nested = cross_val_predict(tuned, number[order], y[order], cv=KFold(3))
    again = refitted_predict(tuned, number[order], y[order], cv=KFold(3))
    np.testing.assert_allclose(nested, again, rtol=1e-7)
    assert clone(tuned).kernel.kernels[0][1] is R  # shared, not copied
    with pytest.raises(ValueError, match="row indices of its matrix"):
        tuned.fit(number + 0.5, y)
    with pytest.raises(ValueError, match="symmetric"):
        KernelRidge(kernel=KernelSum([("a", R + np.tri(len(y)), 0)])).fit(number, y)
    with pytest.raises(ValueError, match="one column"):
        KernelRidge(kernel=KernelSum([("a", R, [0, 1])])).fit(X, y)


# ---- weights that are tuned ----------------------------------------------------------------------


@pytest.mark.parametrize("model", [KernelRidge, LeastSquaresSVC, KernelFisherDiscriminant])
def test_nested_tuning_equals_refitting(model: type) -> None:
    X, y, labels = rows()
    target = y if model is KernelRidge else labels
    method = "predict" if model is KernelRidge else "decision_function"
    cv = KFold(2) if model is KernelRidge else StratifiedKFold(2)
    tuned = model(kernel=KernelSum(THREE), alpha="tune" if model is LeastSquaresSVC else 0.3)
    result = cross_validate(tuned, X, target, cv=cv)
    assert result.route.name == "per-fold"
    np.testing.assert_allclose(
        cross_val_predict(tuned, X, target, cv=cv, method=method),
        refitted_predict(tuned, X, target, cv=cv, method=method),
        rtol=1e-7,
        atol=1e-9,
    )


CASES = ["loo", "groups", "weights", "given alpha", "targets", "widths", "confounds"]


@pytest.mark.parametrize("case", CASES)
def test_tuning_is_better_than_any_start_and_is_what_it_says(case: str) -> None:
    X, y, _ = rows(60)
    settings, fit, weights = {}, {}, "tune"
    if case == "groups":
        fit = {"groups": np.arange(60) // 5}
    if case == "weights":
        fit = {"sample_weight": np.random.default_rng(0).integers(1, 4, 60)}
    if case == "confounds":
        fit = {"confounds": X[:, 3:4] + np.random.default_rng(0).standard_normal((60, 1))}
    if case == "given alpha":
        settings = {"alpha": 0.2}
    if case == "targets":  # more than rows
        y = y[:, None] + np.random.default_rng(0).standard_normal((60, 70))
    if case == "widths":
        weights = [1.0, 0.1, 0.0]
    model = KernelRidge(kernel=KernelSum(THREE, weights), **settings).fit(X, y, **fit)
    decided = model.kernel_
    again = KernelRidge(kernel=decided, alpha=model.alpha_).fit(X, y, **fit)
    assert_close(again.held_out_prediction_, model.held_out_prediction_, 1e-10)
    alphas = [model.alpha_, 1e4 * model.alpha_]  # by eigenvectors, as the search
    alone = KernelRidge(kernel=decided, alpha=alphas).fit(X, y, **fit)
    np.testing.assert_allclose(alone.held_out_prediction_, model.held_out_prediction_, rtol=1e-9)
    np.testing.assert_allclose(again.best_score_, model.best_score_, rtol=1e-9)
    assert clone(model).set_params(**model.best_params_).fit(X, y, **fit).alpha_ == model.alpha_
    equal = dict.fromkeys("abc", 1.0) if case != "widths" else weights
    plain = KernelSum(THREE, equal, gamma={"a": 0.2, "c": 0.7})
    assert model.best_score_ > KernelRidge(kernel=plain, **settings).fit(X, y, **fit).best_score_
    # no neighbour is better: the bottom of a valley, but for the lattice of alpha
    for name in ("a", "b") if case != "widths" else ():
        for factor in (0.6, 1.6):
            beside = clone(decided).set_params(
                weights=decided.weights | {name: factor * decided.weights[name]}
            )
            other = KernelRidge(kernel=beside, **settings).fit(X, y, **fit)
            assert other.best_score_ < model.best_score_ + 1e-3 * abs(model.best_score_)


def test_weights_are_recovered_and_noise_is_left_out() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 90))
    B = rng.standard_normal((60, 30)) * np.repeat([1.0, 0.5], 30)[:, None]
    Y = X[:, :60] @ B + 3.0 * rng.standard_normal((150, 30))
    parts = [(name, "linear", slice(30 * b, 30 * b + 30)) for b, name in enumerate("abc")]
    model = KernelRidge(kernel=KernelSum(parts)).fit(X[:100], Y[:100])
    weights = model.kernel_.weights
    assert 0.15 < weights["b"] / weights["a"] < 0.35  # the ratio of variances is a quarter
    assert weights["c"] < 0.02 * weights["a"]
    plain = KernelRidge(kernel="linear").fit(X[:100], Y[:100])
    assert r2_score(Y[100:], model.predict(X[100:])) > r2_score(Y[100:], plain.predict(X[100:]))


def test_a_kernel_that_is_worth_nothing_gets_no_weight() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20))
    Y = X[:, :10] @ rng.standard_normal((10, 4)) + 2.0 * rng.standard_normal((80, 4))
    parts = [("a", "linear", slice(0, 10)), ("narrow", "rbf", slice(10, 20))]
    kernel = KernelSum(parts, gamma=50.0)  # all rows are far apart: a ridge, like alpha
    weights = KernelRidge(kernel=kernel).fit(X, Y).kernel_.weights
    assert weights["a"] > 0 and weights["narrow"] == 0


def test_permutations_with_tuning_inside() -> None:
    X, y, _ = rows(24)
    model = KernelRidge(kernel=KernelSum(THREE[:2], gamma=0.2))
    cv = KFold(3)
    with pytest.warns(RefitWarning):
        ours = permutation_test_score(
            model, X, y, cv=cv, n_permutations=4, random_state=0, permute="resplit"
        )
    score, null, _ = literal_test(model, X, y, cv=cv, n_permutations=4, random_state=0)
    np.testing.assert_allclose(ours.score, score, rtol=1e-7)
    np.testing.assert_allclose(np.sort(ours.permutation_scores), np.sort(null), rtol=1e-6)
    fixed = KernelRidge(0.3, kernel=KernelSum(THREE, **FIXED))
    test = permutation_test_score(fixed, X, y, cv=cv, n_permutations=20, random_state=0)
    assert test.route.name == "one"


# ---- a parameter like any other ------------------------------------------------------------------


def test_parameters_clone_equality_and_text() -> None:
    kernel = KernelSum(THREE, **FIXED)
    assert clone(kernel) == kernel and clone(kernel) is not kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert KernelSum(THREE) != kernel and kernel != "rbf"
    assert KernelSum([("a", np.eye(2), 0)]) == KernelSum([("a", np.eye(2), 0)])
    assert KernelSum([("a", np.eye(2), 0)]) != KernelSum([("a", np.ones((2, 2)), 0)])
    model = KernelRidge(kernel=kernel).set_params(kernel__weights="tune")
    assert kernel.weights == "tune" and "KernelSum" in repr(model)
    assert KernelSum(THREE, **FIXED).without("b").weights == {"a": 1.5, "c": 0.5}


def test_saved_and_loaded(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("skops")
    X, y, labels = rows()
    table = np.column_stack([X, np.arange(len(y))])
    parts = [*THREE, ("d", linear_kernel(X), 6)]
    for model in (KernelRidge(), KernelFisherDiscriminant(alpha=0.3)):
        model.set_params(kernel=KernelSum(parts))
        model.fit(table, y if isinstance(model, KernelRidge) else labels)
        again = load(save(model, tmp_path / "model.skops"))
        np.testing.assert_array_equal(again.predict(table), model.predict(table))
        assert again.kernel_ == model.kernel_ and again.kernel == model.kernel
    function = KernelSum([("a", linear_kernel, [0])])
    with pytest.raises(ValueError, match="cannot be saved"):
        save(KernelRidge(kernel=function).fit(X, y), tmp_path / "model.skops")


def test_landmarks_and_sparse_rows_and_functions() -> None:
    import scipy.sparse as sp

    X, y, _ = rows()
    kernel = KernelSum(THREE, **FIXED)
    points = KernelRidge(0.3, kernel=kernel, landmarks=X[:10]).fit(X, y)
    assert points.verify(n_refits=3).passed
    with pytest.raises(ValueError, match="whole kernel matrix"):
        KernelRidge(kernel=KernelSum(THREE), landmarks=10).fit(X, y)
    with pytest.raises(ValueError, match="function norm"):
        KernelRidge(kernel=KernelSum(THREE), penalty="dual").fit(X, y)
    dense = KernelRidge(0.3, kernel=kernel).fit(X, y)
    sparse = KernelRidge(0.3, kernel=kernel).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X)), dense.predict(X), rtol=1e-9)
    called = KernelSum([("a", lambda A, B: rbf_kernel(A, B, 0.2), slice(0, 3)), *THREE[1:]])
    called.set_params(weights=FIXED["weights"], gamma=0.7)  # which the function has not
    by_function = KernelRidge(0.3, kernel=called).fit(X, y)
    np.testing.assert_allclose(by_function.predict(X), dense.predict(X), rtol=1e-9)


def test_equal_parts() -> None:
    X, y, _ = rows()
    equal = KernelSum(THREE, "equal", gamma=FIXED["gamma"])
    model = KernelRidge(0.3, kernel=equal)
    weights = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    fitted = clone(model).fit(X, y, weights)
    repeated = np.repeat(X, weights.astype(int), axis=0)  # weight two is a repeated row
    for name, weight in fitted.kernel_.weights.items():
        silent = {other: float(other == name) for other in "abc"}
        kernel = KernelSum(THREE, silent, gamma=FIXED["gamma"]).kernel(6)
        K = kernel(repeated, repeated)
        assert abs(weight * (np.diag(K).mean() - K.mean()) - 1 / 3) < 1e-9
    nested = cross_validate(model, X, y, cv=3)
    assert nested.route.name == "per-fold"
    np.testing.assert_allclose(
        cross_val_predict(model, X, y, cv=3), refitted_predict(model, X, y, cv=3), rtol=1e-9
    )
    test = permutation_test_score(model, X, y, cv=3, n_permutations=9, random_state=0)
    assert test.route.name == "per-fold"
    assert KernelSum(THREE, gamma={"a": 0.1}).untuned() == KernelSum(
        THREE, "equal", gamma={"a": 0.1, "c": "scale"}
    )
    with pytest.raises(ValueError, match="whole kernel matrix"):
        clone(model).set_params(landmarks=5).fit(X, y)
    tuned = KernelRidge(kernel=KernelSum(THREE[:2]))
    assessed = assess(tuned, X, y, cv=3, repeats=1, permutations=9)
    assert 0 < assessed.permutation.pvalue < 0.2


def test_a_kernel_without_say_changes_nothing() -> None:
    X, y, _ = rows()
    two = KernelRidge(0.3, kernel=KernelSum(THREE, **FIXED).without("c")).fit(X, y)
    silent = KernelSum(THREE, [1.5, 0.25, 0.0], gamma=FIXED["gamma"])
    three = KernelRidge(0.3, kernel=silent).fit(X, y)
    np.testing.assert_array_equal(two.held_out_prediction_, three.held_out_prediction_)


def test_onnx() -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y, _ = rows()
    parts = [*THREE, ("d", "poly", [0, 5])]
    kernel = KernelSum(parts, [1.5, 0.25, 0.0, 0.1], gamma=0.3, degree=2)
    model = KernelRidge(0.3, kernel=kernel).fit(X, y)
    graph = to_onnx(model).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    single = X.astype(np.float32)
    (found,) = session.run(["prediction"], {session.get_inputs()[0].name: single})
    expected = model.predict(single.astype(np.float64))
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-5, atol=1e-6)
    matrix = KernelSum([("a", linear_kernel(X), 0)], [1.0])
    with pytest.raises(ValueError, match="cannot be exported to ONNX"):
        to_onnx(KernelRidge(0.3, kernel=matrix).fit(np.arange(len(y))[:, None], y))


WRONG = {
    "a list": ([], {}, "list of"),
    "triples": ([("a", "rbf")], {}, "triple"),
    "names": ([("a", "rbf", [0]), ("a", "rbf", [1])], {}, "unique names"),
    "kernel": ([("a", "gauss", [0])], {}, "must be one of"),
    "precomputed": ([("a", "precomputed", [0])], {}, "as a matrix"),
    "columns": ([("a", "rbf", [7])], {}, "indices below 6"),
    "none": ([("a", "rbf", slice(6, 6))], {}, "no columns"),
    "mask": ([("a", "rbf", [True, False])], {}, "one entry for each"),
    "no names": ([("a", "rbf", ["x"])], {}, "X has no column names"),
    "negative": (THREE, {"weights": [1, 1, -1]}, "would not be a kernel"),
    "zero": (THREE, {"weights": [0, 0, 0]}, "not all zero"),
    "few": (THREE, {"weights": {"a": 1.0}}, "one number for each"),
    "unknown": (THREE, {"weights": {"a": 1, "b": 1, "z": 1}}, "not one of the kernels"),
    "word": (THREE, {"weights": "even"}, "one number for each kernel"),
    "gamma": (THREE, {"gamma": -1.0}, "positive"),
    "poly": ([("a", "poly", [0])], {}, "cannot be tuned in a sum"),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str) -> None:
    X, y, _ = rows()
    kernels, options, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        KernelRidge(kernel=KernelSum(kernels, **options)).fit(X, y)


def test_groups_in_tuning_are_left_out_whole() -> None:
    X, y, _ = rows(40)
    groups = np.arange(40) // 4
    model = KernelRidge(kernel=KernelSum(THREE), cv=GroupKFold(4)).fit(X, y, groups=groups)
    fixed = KernelRidge(model.alpha_, kernel=model.kernel_)
    again = refitted_predict(fixed, X, y, cv=GroupKFold(4), groups=groups)
    np.testing.assert_allclose(model.held_out_prediction_, again, rtol=1e-8)


def test_distances_that_are_no_numbers_stay_so() -> None:
    """Infinite features have no distance, rather than none from each other."""
    for points in (np.array([[np.inf], [1.0]]), np.array([[np.nan], [1.0]])):
        with np.errstate(invalid="ignore"):
            assert np.isnan(DistancesTo("squared", points)(points[:1])).any()


@pytest.mark.parametrize("gamma", [0.4, np.array([0.05, 0.4, 30.0])], ids=["one", "by feature"])
def test_rows_far_from_the_origin_keep_their_digits(gamma) -> None:
    far = np.random.default_rng(0).normal(size=(20, 3)) + 1e6
    kernel, near = Kernel("rbf", {"gamma": gamma}), far - 1e6  # exact
    # sixteen digits of 1e6 √γ are left of a column
    np.testing.assert_allclose(kernel(far, far[:7]), kernel(near, near[:7]), atol=1e-7)
