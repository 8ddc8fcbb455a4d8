"""ONNX graphs of pipelines against the pipelines, in onnxruntime."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from graphs import assert_agrees, data, relative, run, svc
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from fitonce import ClippedScaler, KernelFisherDiscriminant, LeastSquaresSVC, to_onnx
from fitonce.io.onnx import measured_error

STEPS = {
    "standard": [StandardScaler()],
    "clipped": [ClippedScaler(limit=1.5)],
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
    model = make_pipeline(*map(clone_step, STEPS[name]), svc()).fit(X, y)
    for rows in (None, X):
        assert_agrees(to_onnx(model, rows), model, new, 1e-6)
    assert_agrees(to_onnx(model, X, dtype="float64"), model, new, 1e-10, np.float64)


def clone_step(step):
    return step if step is None or isinstance(step, str) else clone(step)


@pytest.mark.parametrize("options", [{}, {"add_indicator": True, "strategy": "median"}])
def test_gaps_in_numbers(options):
    X, y = data()
    rng = np.random.default_rng(0)
    gaps = rng.random(X.shape) < 0.2
    gaps[:, 3] = False
    X[gaps] = np.nan
    model = make_pipeline(SimpleImputer(**options), StandardScaler(), svc()).fit(X, y)
    assert_agrees(to_onnx(model, X), model, X, 1e-6)


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize("keep", [True, False])
def test_a_column_without_values(keep):
    X, y = data()
    X[:, 1] = np.nan
    model = make_pipeline(SimpleImputer(keep_empty_features=keep), svc()).fit(X, y)
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
    frame["grade"] = rng.choice([1, 2, 5], size=n)
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
    model = make_pipeline(columns, svc()).fit(mixed, y)
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
    X[:, 0], X[:, 2] = np.nan, rng.choice([1.0, 7.0], size=len(y))
    columns = ColumnTransformer(
        [("grade", OneHotEncoder(handle_unknown="ignore"), [1]), ("gap", "passthrough", [2, 3])]
    )
    model = make_pipeline(SimpleImputer(add_indicator=True), columns, svc())
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


def test_numbers_that_are_categories_and_numbers():
    """Compared and computed with in one pipeline, gaps as a category of their own."""
    X, y = data()
    rng = np.random.default_rng(0)
    X[:, 1] = rng.choice([0.5, 7.0, 3.0], size=len(y))
    X[:, 2] = rng.choice([0.5, 7.0, np.nan], size=len(y))
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer(
        [("both", encoder, [1, 2]), ("number", "passthrough", [1]), ("other", "passthrough", [0])]
    )
    model = make_pipeline(columns, svc()).fit(X, y)
    rounded = X.copy()
    rounded[:, 0] = X[:, 0].astype(np.float32)
    found = run(to_onnx(model, X), X)["probabilities"]
    assert relative(found, model.predict_proba(rounded)) <= 1e-6


def test_a_data_frame_for_a_model_that_knows_no_names():
    X, y = data()
    model = make_pipeline(StandardScaler(), svc()).fit(X, y)
    for columns in (range(4), list("abcd")):
        assert_agrees(to_onnx(model, pd.DataFrame(X, columns=columns)), model, X, 1e-6)


def categories(column, labels, *steps):
    """A pipeline that knows one column, of categories."""
    encode = make_pipeline(*steps, OneHotEncoder(handle_unknown="ignore"))
    frame = pd.DataFrame({"code": pd.Series(column, dtype=column.dtype)})
    table = ColumnTransformer([("code", encode, ["code"])])
    return make_pipeline(table, LeastSquaresSVC("linear", alpha=1.0)).fit(frame, labels), frame


@pytest.mark.parametrize(
    ("codes", "options"),
    [
        ([16777216, 16777217, 16777218], {}),
        ([16777217, 5, 6], {}),  # 16777216 would be taken for it
        ([0.1, 0.25, 0.5], {}),
        ([2**53 + 1, 5, 6], {"dtype": "float64"}),
        ([16777216, 16777217, 5], {"dtype": "float64", "arithmetic": "float32"}),
    ],
)
def test_number_categories_that_rounding_changes_are_refused(codes, options):
    labels = np.arange(60) % 3
    model, _ = categories(np.array(codes)[labels], labels)
    with pytest.raises(ValueError, match="are changed by rounding to float"):
        to_onnx(model, **options)


def test_number_categories_that_a_larger_type_tells_apart():
    codes, labels = np.array([16777216, 16777217, 16777218]), np.arange(60) % 3
    model, frame = categories(codes[labels], labels)
    graph = to_onnx(model, dtype="float64")
    feeds = {"X": frame.to_numpy(dtype=np.float64)}
    assert np.array_equal(run(graph, feeds)["label"], model.predict(frame))


def test_imputers_of_a_rare_form_are_refused():
    X, y = data()
    X[::9, 0] = -1.0
    model = make_pipeline(SimpleImputer(missing_values=-1.0), svc())
    with pytest.raises(ValueError, match="replace these numbers by NaN before fitting"):
        to_onnx(model.fit(X, y))
    texts = np.array(["?", "a", "b"], dtype=object)[y]
    for options in (
        {"missing_values": "?", "strategy": "most_frequent"},
        {"strategy": "most_frequent", "add_indicator": True},
        {"strategy": "constant", "fill_value": ""},
    ):
        model, _ = categories(texts, y, SimpleImputer(**options))
        with pytest.raises(ValueError, match="for strings can be exported to ONNX only"):
            to_onnx(model)


@pytest.mark.parametrize(
    ("texts", "steps"),
    [
        (["", None, "b"], []),
        ([None, np.nan, "b"], []),
        (["", "a", "b"], [SimpleImputer(missing_values=None, strategy="constant", fill_value="a")]),
    ],
)
def test_empty_texts_beside_missing_ones_are_refused(texts, steps):
    labels = np.arange(60) % 3
    model, _ = categories(np.array(texts, dtype=object)[labels], labels, *steps)
    with pytest.raises(ValueError, match="both empty and missing"):
        to_onnx(model)


@pytest.mark.parametrize("texts", [["", "a", "b"], [None, "a", "b"]])
def test_empty_or_missing_texts_alone_are_a_category(texts):
    labels = np.arange(60) % 3
    model, frame = categories(np.array(texts, dtype=object)[labels], labels)
    feeds = {"code": frame.fillna("").to_numpy(dtype=object)}
    assert np.array_equal(run(to_onnx(model), feeds)["label"], model.predict(frame))


def test_columns_by_a_slice_of_names_are_refused():
    X, y = data()
    columns = ColumnTransformer([("a", StandardScaler(), slice("a", "b"))])
    model = make_pipeline(columns, svc())
    with pytest.raises(ValueError, match="list the names of the columns"):
        to_onnx(model.fit(pd.DataFrame(X, columns=list("abcd")), y))
