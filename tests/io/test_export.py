"""ONNX graphs against the models they were made from, in onnxruntime; refusals; files."""

from __future__ import annotations

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    NumericalWarning,
    to_onnx,
)
from fitonce.io.onnx import graph as graphs
from fitonce.io.onnx import measured_error

KERNELS = {
    "rbf": {"gamma": 0.2, "alpha": 0.1},
    "linear": {"alpha": 0.1},
    "poly": {"gamma": 0.1, "degree": 3, "coef0": 1.0, "alpha": 1.0},
    "laplacian": {"gamma": 0.2, "alpha": 0.1},
    "cosine": {"alpha": 0.1},
    "sigmoid": {"gamma": 0.02, "coef0": 0.1, "alpha": 1.0, "penalty": "dual"},
}
CLASSIFIERS = {
    "fisher": KernelFisherDiscriminant(),
    "fisher priors": KernelFisherDiscriminant(calibration="sigmoid", penalty="dual"),
    "fisher uncalibrated": KernelFisherDiscriminant(calibration=None),
    "fisher isotonic": KernelFisherDiscriminant(calibration="isotonic"),
    "svc": LeastSquaresSVC(),
    "svc sigmoid": LeastSquaresSVC(calibration="sigmoid", class_weight="balanced"),
    "svc isotonic": LeastSquaresSVC(calibration="isotonic"),
    "svc no intercept": LeastSquaresSVC(fit_intercept=False),
    "svc uncalibrated": LeastSquaresSVC(calibration=None),
}


def data(n=70, n_classes=2, seed=0):
    """Unbalanced classes away from the origin, with duplicated rows and a row of zeros."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 2.0
    noisy = X[:, 0] + 0.5 * rng.normal(size=n)
    y = np.digitize(noisy, [2.6] if n_classes == 2 else [1.6, 2.9])
    X[7], X[11] = X[6], 0.0
    return X, y


def run(graph, X, dtype=np.float32):
    """Outputs by name; X an array, or the feeds."""
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feeds = X if isinstance(X, dict) else {"X": np.asarray(X, dtype=dtype)}
    return dict(
        zip(
            [output.name for output in session.get_outputs()], session.run(None, feeds), strict=True
        )
    )


def relative(found, expected):
    expected = np.asarray(expected, dtype=np.float64)
    assert found.shape == expected.shape
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


def assert_agrees(graph, model, X, tolerance, dtype=np.float32, feeds=None):
    """Every output on rows as the graph sees them, labels included."""
    outputs = run(graph, X if feeds is None else feeds, dtype)
    seen = np.asarray(X, dtype=dtype).astype(np.float64) if feeds is None else X
    if "prediction" in outputs:
        assert set(outputs) == {"prediction"}
        assert relative(outputs["prediction"], model.predict(seen)) <= tolerance
        return
    assert relative(outputs["decision"], model.decision_function(seen)) <= tolerance
    assert ("probabilities" in outputs) == hasattr(model, "predict_proba")
    if "probabilities" in outputs:
        assert relative(outputs["probabilities"], model.predict_proba(seen)) <= tolerance
    assert np.array_equal(outputs["label"], model.predict(seen))


# ---- agreement -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_agree(name, kernel, n_classes):
    X, y = data(n_classes=n_classes)
    new, _ = data(seed=1)
    model = (
        clone(CLASSIFIERS[name])
        .set_params(**{"kernel": kernel, **KERNELS[kernel], "penalty": "dual"})
        .fit(X, y)
    )
    in_single = to_onnx(model)
    assert_agrees(in_single, model, np.vstack([X, new]), 1e-6)
    assert measured_error(in_single) <= 1e-6
    in_double = to_onnx(model, new, dtype="float64")
    assert_agrees(in_double, model, np.vstack([X, new]), 1e-10, np.float64)
    onnx.checker.check_model(in_double, full_check=True)


@pytest.mark.parametrize("kernel", KERNELS)
def test_regressions_agree(kernel):
    X, _ = data()
    new, _ = data(seed=1)
    for targets in (
        X[:, 0] * 3,
        np.column_stack([np.sin(X[:, 0]), 1e3 * X[:, 1], np.full(len(X), 7.0)]),
    ):
        model = KernelRidge(kernel, **KERNELS[kernel]).fit(X, targets)
        assert_agrees(to_onnx(model), model, new, 1e-6)
        assert_agrees(to_onnx(model, dtype="float64"), model, new, 1e-10, np.float64)


@pytest.mark.filterwarnings("ignore::fitonce.NumericalWarning")
def test_tuned_models_with_tiny_alphas_agree():
    """What tuning chooses, down to alphas where float32 arithmetic has no digit left."""
    X, y = data()
    for model in (
        KernelFisherDiscriminant(),
        LeastSquaresSVC(refine=True),
        KernelRidge(),
        KernelFisherDiscriminant(alpha=1e-7, gamma=0.01),
    ):
        model.fit(X, y)
        assert_agrees(to_onnx(model), model, X, 1e-6)


def test_widths_per_feature_and_one_feature():
    X, y = data()
    model = LeastSquaresSVC(gamma=[0.1, 0.0, 0.5, 1.0], alpha=0.1).fit(X, y)
    assert_agrees(to_onnx(model, dtype="float64"), model, X, 1e-10, np.float64)
    for kernel in KERNELS:
        model = KernelRidge(kernel, **KERNELS[kernel]).fit(X[:, :1], y)
        assert_agrees(to_onnx(model), model, X[:, :1], 1e-6)


def test_precomputed_kernel_with_rows_that_did_not_train():
    X, y = data()
    K = X @ X.T
    model = LeastSquaresSVC("precomputed", alpha=0.1).fit(
        K, y, sample_weight=np.r_[0.0, 0.0, np.ones(len(y) - 2)]
    )
    with pytest.raises(ValueError, match=r"pass X, some rows of the kernel"):
        to_onnx(model)
    assert_agrees(to_onnx(model, K, dtype="float64"), model, K, 1e-10, np.float64)


def test_sparse_training_rows():
    X, y = data()
    X[X < 2] = 0.0
    model = LeastSquaresSVC(gamma=0.2, alpha=0.1).fit(sp.csr_matrix(X), y)
    for rows in (None, sp.csr_matrix(X), X):
        assert_agrees(to_onnx(model, rows), model, X, 1e-6)


@pytest.mark.parametrize(
    "library", [pytest.param("torch", marks=pytest.mark.torch), "array_api_strict"]
)
def test_models_on_foreign_arrays(library):
    xp = pytest.importorskip(library)
    X, y = data()
    model = LeastSquaresSVC(gamma=0.2, alpha=0.1).fit(X, y)
    there = LeastSquaresSVC(gamma=0.2, alpha=0.1).fit(xp.asarray(X), xp.asarray(y))
    assert_agrees(to_onnx(there), model, X, 1e-6)


def test_labels_of_every_kind():
    X, y = data()
    kinds = {
        "b": y > 0,
        "i": y * 7 - 3,
        "f": y * 2.0,
        "U": np.array(["nein", "ähm"])[y],
        "O": np.array(["no", "yes"], dtype=object)[y],
    }
    for labels in kinds.values():
        model = LeastSquaresSVC(gamma=0.2, alpha=0.1).fit(X, labels)
        assert np.array_equal(
            run(to_onnx(model), X)["label"], model.predict(X.astype(np.float32).astype(float))
        )


def test_labels_are_not_rounded():
    X, y = data()
    labels = np.array([0.0, 2.0**25 + 1.0])[y]
    model = LeastSquaresSVC("linear", alpha=1.0).fit(X, labels)
    found = run(to_onnx(model, arithmetic="float32"), X)["label"]
    assert found.dtype == np.float64 and set(found) == set(labels)


def test_one_row_and_many():
    X, y = data(n_classes=3)
    model = KernelFisherDiscriminant("laplacian", gamma=0.2, alpha=0.1).fit(X, y)
    graph = to_onnx(model)
    for rows in (X[:1], np.tile(X, (30, 1))):
        assert_agrees(graph, model, rows, 1e-6)


def test_landmarks():
    X, y = data(n_classes=3)
    if "landmarks" not in KernelFisherDiscriminant().get_params():
        pytest.skip("this version has no landmarks")
    for kernel in ("rbf", "linear", "poly"):
        settings = {name: value for name, value in KERNELS[kernel].items() if name != "penalty"}
        model = KernelFisherDiscriminant(kernel, landmarks=12, random_state=0, **settings).fit(X, y)
        assert_agrees(to_onnx(model), model, X, 1e-6)


# ---- pipelines -----------------------------------------------------------------------------------

STEPS = {
    "standard": [StandardScaler()],
    "without": [StandardScaler(with_mean=False), StandardScaler(with_std=False)],
    "min max": [MinMaxScaler((-1, 2), clip=True)],
    "max abs": [MaxAbsScaler()],
    "robust": [RobustScaler(), "passthrough", RobustScaler(with_centering=False)],
    "pca": [StandardScaler(), PCA(3, whiten=True)],
    "pca plain": [PCA(2)],
    "selection": [VarianceThreshold(), SelectKBest(k=2), FunctionTransformer()],
    "nested": [make_pipeline("passthrough", StandardScaler(), make_pipeline(MinMaxScaler(), None))],
    "columns": [
        ColumnTransformer(
            [("a", StandardScaler(), [2, 0]), ("b", "passthrough", slice(3, 4)), ("c", "drop", [1])]
        )
    ],
    "remainder": [
        ColumnTransformer(
            [("a", MinMaxScaler(), [False, True, False, False])], remainder="passthrough"
        )
    ],
    "negative": [ColumnTransformer([("a", MinMaxScaler(), [-1])], remainder=StandardScaler())],
}


@pytest.mark.parametrize("name", STEPS)
def test_pipelines_of_numbers_agree(name):
    X, y = data()
    new, _ = data(seed=1)
    model = make_pipeline(*map(clone_step, STEPS[name]), LeastSquaresSVC(gamma=0.2, alpha=0.1)).fit(
        X, y
    )
    for rows in (None, X):
        assert_agrees(to_onnx(model, rows), model, new, 1e-6)
    assert_agrees(to_onnx(model, X, dtype="float64"), model, new, 1e-10, np.float64)


def clone_step(step):
    return step if step is None or isinstance(step, str) else clone(step)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"add_indicator": True, "strategy": "median"},
        {"missing_values": 0.0, "add_indicator": True},
    ],
)
def test_gaps_in_numbers(options):
    X, y = data()
    rng = np.random.default_rng(0)
    gaps = rng.random(X.shape) < 0.2
    gaps[:, 3] = False
    X[gaps] = options.get("missing_values", np.nan)
    model = make_pipeline(
        SimpleImputer(**options), StandardScaler(), LeastSquaresSVC(gamma=0.2, alpha=0.1)
    ).fit(X, y)
    assert_agrees(to_onnx(model, X), model, X, 1e-6)


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize("keep", [True, False])
def test_a_column_without_values(keep):
    X, y = data()
    X[:, 1] = np.nan
    model = make_pipeline(
        SimpleImputer(keep_empty_features=keep), LeastSquaresSVC(gamma=0.2, alpha=0.1)
    ).fit(X, y)
    assert_agrees(to_onnx(model, X), model, X, 1e-6)


def table(n=90, seed=0):
    X, y = data(n, seed=seed)
    rng = np.random.default_rng(seed + 5)
    frame = pd.DataFrame(X[:, :2], columns=["size", "label"])  # a column with the name of an output
    frame.loc[rng.choice(n, 8, replace=False), "size"] = np.nan
    frame["colour"] = rng.choice(
        np.array(["red", "green", "blue", "grün", "rare", None], dtype=object),
        size=n,
        p=[0.4, 0.2, 0.2, 0.1, 0.02, 0.08],
    )
    frame["grade"] = rng.choice([0.1, 0.2, 5.0], size=n)
    frame["unused"] = "text"
    return frame, np.array(["no", "yes"])[y]


ENCODERS = {
    "infrequent": OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=4),
    "ignore": OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    "ignore infrequent": OneHotEncoder(handle_unknown="ignore", max_categories=3),
    "drop": OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False),
    "drop binary": OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
    "drop infrequent": OneHotEncoder(
        drop="first", handle_unknown="infrequent_if_exist", min_frequency=9
    ),
    "all infrequent": OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=80),
}


def table_model(encoder, imputer=None):
    texts = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none") if imputer is None else imputer,
        clone(encoder),
    )
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    parts = [
        ("numbers", numbers, ["size", "label"]),
        ("texts", texts, ["colour"]),
        ("grade", clone(encoder), ["grade"]),
    ]
    return Pipeline(
        [
            ("columns", ColumnTransformer(parts)),
            ("model", KernelFisherDiscriminant(gamma=0.2, alpha=0.1)),
        ]
    )


def feeds_of(frame, dtype=np.float32):
    feeds = {}
    for name in frame.columns.drop("unused"):
        values = frame[name].to_numpy()
        if name == "colour":
            feeds[name] = np.array(
                [value if isinstance(value, str) else "" for value in values], dtype=object
            )[:, None]
        else:
            feeds["column label" if name == "label" else name] = values.astype(dtype)[:, None]
    return feeds


def seen(frame, dtype=np.float32):
    return frame.assign(
        **{name: frame[name].astype(dtype).astype(float) for name in ("size", "label")}
    )


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("name", ENCODERS)
def test_pipelines_of_tables_agree(name):
    X, y = table()
    model = table_model(ENCODERS[name]).fit(X, y)
    new, _ = table(seed=3)
    new.loc[[0, 5], "colour"] = "never seen"
    feeds = feeds_of(new)
    graph = to_onnx(model, X)
    assert set(feeds) == {entry.name for entry in graph.graph.input}
    assert_agrees(graph, model, seen(new), 1e-6, feeds=feeds)
    assert json.loads(
        {entry.key: entry.value for entry in graph.metadata_props}["fitonce.columns"]
    ) == [name for name in X.columns if name != "unused"]
    assert_agrees(
        to_onnx(model), model, seen(new), 1e-6, feeds=feeds
    )  # without rows: only the last step is measured
    assert_agrees(
        to_onnx(model, X, dtype="float64"), model, new, 1e-10, feeds=feeds_of(new, np.float64)
    )


def test_missing_texts_as_a_category_of_their_own():
    X, y = table()
    for imputer in ("passthrough", SimpleImputer(strategy="most_frequent")):
        model = table_model(ENCODERS["ignore"], imputer)
        X["colour"] = (
            X["colour"]
            .astype(object)
            .where(X["colour"].notna(), None if imputer == "passthrough" else np.nan)
        )
        model.fit(X, y)
        assert_agrees(to_onnx(model, X), model, seen(X), 1e-6, feeds=feeds_of(X))


def test_polars_tables():
    polars = pytest.importorskip("polars")
    X, y = table()
    frame = polars.DataFrame(
        {name: [None if value != value else value for value in X[name]] for name in X.columns}
    )
    if not hasattr(make_pipeline(StandardScaler()).fit(frame.select("label")), "feature_names_in_"):
        pytest.skip("this scikit-learn does not know polars")
    model = table_model(ENCODERS["ignore"], "passthrough").fit(frame, y)
    assert measured_error(to_onnx(model, frame)) <= 1e-6


def test_a_matrix_of_texts():
    _, y = data()
    rng = np.random.default_rng(0)
    texts = rng.choice(np.array(["a", "b", "c"], dtype=object), size=(len(y), 2))
    for encoder in (OneHotEncoder(), OneHotEncoder(drop=["b", "c"])):
        model = make_pipeline(encoder, LeastSquaresSVC("linear", alpha=1.0)).fit(texts, y)
        graph = to_onnx(model, texts)
        assert_agrees(graph, model, texts, 1e-6, feeds={"x0": texts[:, :1], "x1": texts[:, 1:]})


def test_a_matrix_of_texts_and_numbers_of_which_some_are_unused():
    X, y = data()
    rng = np.random.default_rng(0)
    mixed = np.empty((len(y), 4), dtype=object)
    mixed[:, 0], mixed[:, 2] = rng.choice(np.array(["a", "b"], dtype=object), size=len(y)), X[:, 1]
    mixed[:, 1], mixed[:, 3] = X[:, 0], rng.choice(np.array(["c", "d"], dtype=object), size=len(y))
    columns = ColumnTransformer(
        [("number", StandardScaler(), [2]), ("texts", OneHotEncoder(), slice(3, None))]
    )
    model = make_pipeline(columns, LeastSquaresSVC(gamma=0.2, alpha=0.1)).fit(mixed, y)
    graph = to_onnx(model, mixed)
    feeds = {"x2": mixed[:, 2:3].astype(np.float32), "x3": mixed[:, 3:]}
    seen = mixed.copy()
    seen[:, 2] = feeds["x2"][:, 0].astype(float)
    assert_agrees(graph, model, seen, 1e-6, feeds=feeds)


@pytest.mark.parametrize("named", [True, False])
def test_gaps_filled_before_columns_are_chosen(named):
    """An imputer that drops a column and adds indicators, before an encoder of what is left."""
    X, y = data()
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 0], X[:, 2] = np.nan, rng.choice([0.1, 0.7], size=len(y))
    columns = ColumnTransformer(
        [("grade", OneHotEncoder(handle_unknown="ignore"), [1]), ("gap", "passthrough", [2, 3])]
    )
    model = make_pipeline(
        SimpleImputer(add_indicator=True), columns, LeastSquaresSVC(gamma=0.2, alpha=0.1)
    )
    rows = pd.DataFrame(X, columns=list("abcd")) if named else X
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        model.fit(rows, y)
        graph = to_onnx(model, rows)
        assert measured_error(graph) <= 1e-6
        single = X.astype(np.float32).astype(float)
        single[:, 2] = X[:, 2]
        expected = model.predict_proba(
            pd.DataFrame(single, columns=list("abcd")) if named else single
        )
    assert relative(run(graph, X)["probabilities"], expected) <= 1e-6


def test_a_data_frame_for_a_model_that_knows_no_names():
    X, y = data()
    model = make_pipeline(StandardScaler(), LeastSquaresSVC(gamma=0.2, alpha=0.1)).fit(X, y)
    for columns in (range(4), list("abcd")):
        assert_agrees(to_onnx(model, pd.DataFrame(X, columns=columns)), model, X, 1e-6)


# ---- the measured error --------------------------------------------------------------------------


def test_the_error_is_the_one_that_a_user_measures(tmp_path):
    X, y = data()
    model = KernelRidge(gamma=0.2, alpha=0.02).fit(X, y)
    with pytest.warns(
        NumericalWarning, match=r"differ from the model's by up to .*e-0[3-6] of their size"
    ):
        graph = to_onnx(model, X, arithmetic="float32", tolerance=1e-2, path=tmp_path / "m.onnx")
    found = run(graph, X)["prediction"]
    assert measured_error(graph) == pytest.approx(
        relative(found, model.predict(X.astype(np.float32).astype(float))), rel=0.01
    )
    assert (
        measured_error(tmp_path / "m.onnx")
        == measured_error(str(tmp_path / "m.onnx"))
        == measured_error(graph)
        > 1e-6
    )


def test_cancellation_is_refused():
    X, y = data()
    model = LeastSquaresSVC(gamma=0.01, alpha=1e-5).fit(X, y)
    with pytest.raises(
        ValueError,
        match=r"in float32 the graph's outputs differ .* large terms of k.* "
        r"cancel.*arithmetic=\"float64\"",
    ):
        to_onnx(model, arithmetic="float32")
    assert measured_error(to_onnx(model)) < 1e-6
    mild = LeastSquaresSVC("linear", alpha=1.0).fit(X, y)
    assert_agrees(to_onnx(mild, arithmetic="float32"), mild, X, 1e-6)


def test_overflow_is_refused():
    X, y = data()
    model = KernelRidge("linear", alpha=1.0).fit(X, 1e60 * y)
    with pytest.raises(ValueError, match="values overflow"), np.errstate(all="ignore"):
        to_onnx(model)
    assert_agrees(to_onnx(model, dtype="float64"), model, X, 1e-10, np.float64)


def test_a_wrong_label_is_an_error(monkeypatch):
    """Were the labels of the graph wrong, with all decisions right, the measured error would say
    so.
    """
    X, y = data()
    model = LeastSquaresSVC(gamma=0.2, alpha=0.1).fit(X, y)
    monkeypatch.setattr(model, "predict", lambda X: 1 - LeastSquaresSVC.predict(model, X))
    monkeypatch.setattr("fitonce.io.onnx.convert.portable", lambda model: model)
    with pytest.raises(ValueError, match="outputs differ from the model's"):
        to_onnx(model)


# ---- refusals and files --------------------------------------------------------------------------


def test_what_cannot_be_exported():
    X, y = data()
    ours = LeastSquaresSVC(gamma=0.2, alpha=0.1)
    for step in (QuantileTransformer(n_quantiles=5), FunctionTransformer(np.abs)):
        with pytest.raises(ValueError, match=rf"{type(step).__name__} .*has no form in ONNX here"):
            to_onnx(make_pipeline(step, ours).fit(X, y))
    with pytest.raises(ValueError, match="is a Python function and has no form in ONNX"):
        to_onnx(LeastSquaresSVC(lambda A, B: A @ B.T, alpha=1.0).fit(X, y))
    for other in (
        LogisticRegression().fit(X, y),
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
    ):
        with pytest.raises(
            TypeError, match="exports KernelFisherDiscriminant, LeastSquaresSVC, KernelRidge"
        ):
            to_onnx(other)
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(LeastSquaresSVC())
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(make_pipeline(StandardScaler(), LeastSquaresSVC()))
    texts = np.array([["a"], ["b"]] * 35, dtype=object)
    with pytest.raises(ValueError, match=r"OrdinalEncoder has no form in ONNX"):
        to_onnx(make_pipeline(OrdinalEncoder(), ours).fit(texts, y))
    model = clone(ours).fit(X, y)
    for wrong, message in (
        ({"dtype": "float16"}, "dtype must be"),
        ({"arithmetic": np.float32}, "arithmetic must be"),
        ({"tolerance": 0}, "tolerance must"),
    ):
        with pytest.raises(ValueError, match=message):
            to_onnx(model, **wrong)


def test_a_graph_that_no_file_holds(monkeypatch):
    X, y = data()
    monkeypatch.setattr(graphs, "MOST_BYTES", 1000)
    with pytest.raises(
        ValueError,
        match=r"GiB of training rows and coefficients, and an ONNX file holds 2: fit with fewer "
        r"landmarks",
    ):
        to_onnx(LeastSquaresSVC(gamma=0.2, alpha=0.1).fit(X, y))


def test_files(tmp_path):
    X, y = data()
    model = LeastSquaresSVC(gamma=0.2, alpha=0.1).fit(X, y)
    path = tmp_path / "model.onnx"
    graph = to_onnx(model, path=path)
    assert path.read_bytes() == graph.SerializeToString()
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        to_onnx(model, path=tmp_path / "absent" / "model.onnx")
    stripped = onnx.load(path)
    del stripped.metadata_props[:]
    with pytest.raises(ValueError, match="was not made by fitonce"):
        measured_error(stripped)


def test_without_the_packages_the_extra_is_named(monkeypatch):
    X, y = data()
    model = LeastSquaresSVC(gamma=0.2, alpha=0.1).fit(X, y)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"pip install 'fitonce\[onnx\]'"):
        to_onnx(model)
