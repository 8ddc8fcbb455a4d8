"""Models in files: what comes back is what went in, and what cannot come back is refused."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_files import OUTPUTS, assert_same_outputs, round_trip, skops_io, two_classes
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, load, save
from fitonce.io import saving


def three_classes(n=60, seed=0):
    """Unbalanced, with a duplicated row and a class of two."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["few", "many", "some"], [2, n - 22, 20])
    X = rng.normal(size=(n, 3)) + np.searchsorted(np.unique(y), y)[:, None]
    X[5] = X[4]
    return X, y


def table(n=60, seed=0):
    """Numbers with gaps and texts with gaps, as a data frame."""
    X, y = two_classes(n, seed)
    rng = np.random.default_rng(seed + 1)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[rng.choice(n, 6, replace=False), "a"] = np.nan
    frame["colour"] = rng.choice(np.array(["red", "green", None], dtype=object), size=n)
    return frame, np.where(y == 1, "yes", "no")


def preprocessing():
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    texts = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="missing"),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3),
    )
    return ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include="number")),
            ("texts", texts, ["colour"]),
        ],
        remainder="passthrough",
    )


def assert_same(a, b):
    """Equal at any depth: types, dtypes, values, bit for bit."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype == object:
            for x, y in zip(a.ravel(), b.ravel(), strict=True):
                assert_same(x, y)
        else:
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    elif sp.issparse(a):
        assert (a != b).nnz == 0
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif hasattr(a, "__dict__") and not isinstance(a, type) and not callable(a):
        assert_same(a.__getstate__(), b.__getstate__())
    else:
        assert a == b or (a != a and b != b), (a, b)


# ---- round trips ---------------------------------------------------------------------------------

MODELS = {
    "rbf": KernelFisherDiscriminant(),
    "linear": KernelFisherDiscriminant("linear", calibration="sigmoid"),
    "poly": KernelFisherDiscriminant(
        "poly", alpha=0.1, gamma="scale", n_components=1, calibration=None
    ),
    "refined": LeastSquaresSVC(refine=True),
    "isotonic": LeastSquaresSVC(
        calibration="isotonic",
        cv=StratifiedKFold(2, shuffle=True, random_state=0),
        class_weight="balanced",
    ),
    "weights": LeastSquaresSVC(
        "laplacian", gamma=0.5, class_weight={"few": 3.0, "many": 0.5}, alpha=[0.1, 1.0]
    ),
    "widths": KernelFisherDiscriminant(
        gamma=np.array([0.1, 0.2, 0.3]), priors=[0.2, 0.3, 0.5], penalty="tune"
    ),
    "ridge": KernelRidge(fit_intercept="penalized", criterion="r2"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_round_trip_is_identical(name, tmp_path):
    X, y = three_classes()
    model = clone(MODELS[name])
    model.fit(X, np.column_stack([X[:, 0] ** 2, X[:, 1]]) if name == "ridge" else y)
    again = round_trip(model, tmp_path)
    assert_same_outputs(model, again, X[::-1] + 0.1)
    assert_same(model, again)
    model.at(0.5)  # the decomposition is there, and not in the file
    for method, arguments in (("at", (0.5,)), ("verify", ())):
        with pytest.raises(ValueError, match=rf"{method}\(\) needs the decomposition of the train"):
            getattr(again, method)(*arguments)
    refitted = clone(again).fit(X, model.predict(X) if name == "ridge" else y)
    assert type(refitted) is type(model)


def test_unfitted_models_and_numbers_of_numpy(tmp_path):
    model = LeastSquaresSVC(
        alpha=np.float64(0.5), class_weight={np.int64(0): 1.0, np.int64(1): 2.0}, cv=GroupKFold(3)
    )
    again = round_trip(model, tmp_path)
    assert again.alpha == 0.5 and again.class_weight == {0: 1.0, 1: 2.0} and again.cv.n_splits == 3
    assert not hasattr(again, "classes_")


def test_labels_of_every_kind(tmp_path):
    X, y = two_classes()
    for labels in (
        y > 0,
        y.astype(float),
        np.array(["no", "yes"])[y],
        np.array(["no", "yes"], dtype=object)[y],
        y.astype(np.int8),
    ):
        model = LeastSquaresSVC(
            gamma=0.5, alpha=0.1, class_weight=dict(zip(np.unique(labels), (1.5, 2.0), strict=True))
        ).fit(X, labels)
        again = round_trip(model, tmp_path)
        assert_same(model.predict(X), again.predict(X))
        assert again.class_weight == model.class_weight
        assert_same_outputs(model, clone(again).fit(X, labels), X)


def test_mappings_that_would_not_come_back_are_refused(tmp_path):
    for bad in ({None: 1.0, 1: 2.0}, {1: 1.0, "1": 2.0}):
        with pytest.raises(ValueError, match=r"a mapping with the key .* cannot be saved"):
            save(LeastSquaresSVC(class_weight=bad), tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_training_rows(kind, tmp_path):
    X, y = two_classes()
    X[X < 0] = 0.0
    model = LeastSquaresSVC(gamma=0.5).fit(kind(X), y)
    again = round_trip(model, tmp_path)
    assert_same_outputs(model, again, kind(X))
    assert type(again.X_fit_) is type(model.X_fit_)


def test_precomputed_kernel_with_rows_that_did_not_train(tmp_path):
    X, y = two_classes()
    K = X @ X.T
    model = KernelRidge(kernel="precomputed").fit(
        K, y, sample_weight=np.r_[0.0, np.ones(len(y) - 1)]
    )
    assert_same_outputs(model, round_trip(model, tmp_path), K)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "library", [pytest.param("torch", marks=pytest.mark.torch), "array_api_strict"]
)
def test_models_on_foreign_arrays_become_numpy_models(library, tmp_path):
    xp = pytest.importorskip(library)
    X, y = two_classes()
    for model in (
        KernelFisherDiscriminant(refine=True),
        LeastSquaresSVC("linear", calibration="isotonic"),
        KernelRidge(),
    ):
        there = clone(model).fit(xp.asarray(X), xp.asarray(y))
        again = round_trip(there, tmp_path)
        arrays = [value for value in vars(again).values() if hasattr(value, "shape")]
        assert arrays and all(isinstance(value, (np.ndarray, np.generic)) for value in arrays)
        for name in OUTPUTS:
            if hasattr(there, name):
                expected = np.asarray(getattr(there, name)(xp.asarray(X)))
                assert getattr(again, name)(X) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert type(there.dual_coef_) is type(xp.asarray(X))  # the model itself stays where it is


@pytest.mark.parametrize(
    "final", [KernelFisherDiscriminant(), LeastSquaresSVC(calibration="isotonic", gamma="scale")]
)
def test_pipelines_with_tables(final, tmp_path):
    X, y = table()
    model = Pipeline([("preprocessing", preprocessing()), ("model", final)]).fit(X, y)
    again = round_trip(model, tmp_path, metadata={"target": "answer"})
    new, _ = table(seed=9)
    new.loc[0, "colour"] = "never seen"
    assert_same_outputs(model, again, new)
    assert_same(model.feature_names_in_, again.feature_names_in_)
    assert_same_outputs(model, clone(again).fit(X, y), new)


def test_other_companions_of_scikit_learn(tmp_path):
    X, y = two_classes()
    chained = make_pipeline(FunctionTransformer(np.log1p), LeastSquaresSVC(gamma=0.5, alpha=0.1))
    for model in (
        CalibratedClassifierCV(LeastSquaresSVC(gamma=0.5, alpha=0.1), cv=3),
        chained,
        LogisticRegression(),
    ):
        model.fit(np.abs(X), y)
        assert_same_outputs(model, round_trip(model, tmp_path), np.abs(X))


def test_progress_bars_stay_behind(tmp_path):
    callback = pytest.importorskip("sklearn.callback")
    X, y = two_classes()
    model = LeastSquaresSVC(gamma=0.5, alpha=0.1).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert not hasattr(round_trip(model, tmp_path), "_skl_callbacks")
    assert hasattr(model, "_skl_callbacks")


@pytest.mark.parametrize("name", ["rbf", "refined", "isotonic"])
def test_pickles_for_workers(name, tmp_path):
    X, y = three_classes()
    model = clone(MODELS[name]).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    assert_same_outputs(model, joblib.load(tmp_path / "model.joblib"), X)
    assert_same_outputs(model, pickle.loads(pickle.dumps(model)), X)
    decisions = joblib.Parallel(n_jobs=2)(
        joblib.delayed(model.decision_function)(part) for part in (X[:30], X[30:])
    )
    assert np.array_equal(
        np.concatenate(decisions),
        np.concatenate([model.decision_function(X[:30]), model.decision_function(X[30:])]),
    )


# ---- header and metadata -------------------------------------------------------------------------


def test_metadata_comes_back_without_building_the_model(tmp_path, monkeypatch):
    given = {
        "columns": ["a", "ü"],
        "n": np.int64(3),
        "scores": np.arange(2.0),
        "nested": {"p": (1, None)},
        "at": Path("x/y"),
    }
    path = save(LeastSquaresSVC(), tmp_path / "m.skops", metadata=given)
    monkeypatch.setattr(saving, "skops_io", lambda: pytest.fail("the model was touched"))
    assert saving.read_metadata(path) == {
        "columns": ["a", "ü"],
        "n": 3,
        "scores": [0.0, 1.0],
        "nested": {"p": [1, None]},
        "at": "x/y",
    }
    header = saving.read_header(path)
    assert (
        header.format == saving.FORMAT and header.model == "fitonce.estimators.svc.LeastSquaresSVC"
    )
    assert {"fitonce", "scikit-learn", "numpy", "skops", "python"} <= set(header.versions)


def test_metadata_that_json_cannot_hold(tmp_path):
    refused = (
        (["a"], "metadata must be a mapping"),
        ({1: "a"}, "with strings as keys"),
        ({"f": print}, r"metadata\['f'\] must consist of"),
    )
    for bad, message in refused:
        with pytest.raises(TypeError, match=message):
            save(LeastSquaresSVC(), tmp_path / "m.skops", metadata=bad)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_an_ordinary_skops_file(tmp_path):
    X, y = two_classes()
    model = LeastSquaresSVC(gamma=0.5, alpha=0.1).fit(X, y)
    path = save(model, tmp_path / "m.skops")
    assert skops_io.get_untrusted_types(file=path) == ["fitonce.estimators.svc.LeastSquaresSVC"]
    assert_same_outputs(
        model, skops_io.load(path, trusted=["fitonce.estimators.svc.LeastSquaresSVC"]), X
    )


# ---- models that are refused ---------------------------------------------------------------------


def my_kernel(X, Y):
    return X @ Y.T


class Doubles(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.factor_ = 2.0
        return self

    def transform(self, X):
        return self.factor_ * X


def test_python_functions_are_refused(tmp_path):
    X, y = two_classes()
    model = LeastSquaresSVC(my_kernel, alpha=1.0).fit(X, y)
    for refused in (model, make_pipeline(StandardScaler(), model)):
        with pytest.raises(
            ValueError, match=r'cannot be saved with kernel=my_kernel: .*kernel="precomputed"'
        ):
            save(refused, tmp_path / "m.skops")
    with pytest.raises(
        ValueError,
        match=r"cannot be saved with criterion=<lambda>: .*set criterion to one of the named",
    ):
        save(LeastSquaresSVC(criterion=lambda *a: 0.0), tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def test_foreign_classes_are_refused_when_saving_unless_named(tmp_path):
    X, y = two_classes()
    model = make_pipeline(Doubles(), LeastSquaresSVC(gamma=0.5, alpha=0.1)).fit(X, y)
    with pytest.raises(
        ValueError,
        match=r"Pipeline cannot be saved: it contains .*Doubles, which load\(\) would refuse",
    ):
        save(model, tmp_path / "m.skops")
    path = save(model, tmp_path / "m.skops", trusted=[Doubles])
    with pytest.raises(ValueError, match=r"contains .*Doubles, which fitonce does not trust"):
        load(path)
    assert_same_outputs(model, load(path, trusted=[Doubles]), X)
    with pytest.raises(TypeError, match="trusted must be a list"):
        load(path, trusted=Doubles)


def test_searches_say_what_to_save(tmp_path):
    X, y = two_classes()
    search = GridSearchCV(
        LeastSquaresSVC(gamma=0.5), {"alpha": [0.1, 1.0]}, scoring="roc_auc", cv=3
    ).fit(X, y)
    with pytest.raises(
        ValueError, match=r"GridSearchCV cannot be saved: .*roc_auc_score.*best_estimator_"
    ):
        save(search, tmp_path / "m.skops")
    assert_same_outputs(search.best_estimator_, round_trip(search.best_estimator_, tmp_path), X)


def test_only_estimators_are_saved(tmp_path):
    for wrong in ({"a": 1}, LeastSquaresSVC, None, np.eye(2)):
        with pytest.raises(TypeError, match=r"save\(\) takes an estimator"):
            save(wrong, tmp_path / "m.skops")


def test_without_skops_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(ImportError, match=r"pip install 'fitonce\[io\]'"):
        save(LeastSquaresSVC(), tmp_path / "m.skops")
