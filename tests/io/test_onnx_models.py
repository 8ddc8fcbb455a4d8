"""ONNX graphs against the models they were made from, in onnxruntime; refusals; files."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
import scipy.sparse as sp
from graphs import KERNELS, assert_agrees, data, relative, run, svc
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
)

from fitonce import (
    KernelCommitteeClassifier,
    KernelCommitteeRegressor,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    NumericalWarning,
    to_onnx,
)
from fitonce.io.onnx import graph as graphs
from fitonce.io.onnx import measured_error
from fitonce.preparation import NormalScores, RelevanceScaler

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


# ---- agreement -----------------------------------------------------------------------------------


# the kernel's part of a graph ends in decision values, where the classifier's begins: three of the
# others for each
PAIRS = [
    (name, kernel, 2 + (i // 3 + j) % 2)
    for i, name in enumerate(CLASSIFIERS)
    for j, kernel in enumerate(KERNELS)
    if i % 3 == j % 3
]


@pytest.mark.parametrize(("name", "kernel", "n_classes"), PAIRS)
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
        model = KernelRidge(kernel=kernel, **KERNELS[kernel]).fit(X, targets)
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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_committees_agree(n_classes):
    X, y = data(n_classes=n_classes)
    new, _ = data(seed=1)
    members = [
        KernelFisherDiscriminant(**KERNELS["rbf"]),
        KernelFisherDiscriminant("linear", calibration="sigmoid", **KERNELS["linear"]),
        LeastSquaresSVC("laplacian", calibration="isotonic", **KERNELS["laplacian"]),
    ]
    model = KernelCommitteeClassifier(members).fit(X, np.array(["a", "b", "c"])[y])
    assert len(model.members_) > 1
    graph = to_onnx(make_pipeline(StandardScaler().fit(np.eye(4)), model), new)
    assert measured_error(graph) < 1e-6
    assert_agrees(to_onnx(model, new, dtype="float64"), model, new, 1e-9, np.float64)
    bad = run(to_onnx(model), np.full((1, 4), np.nan))
    assert np.isnan(bad["probabilities"]).all() and bad["label"] == [""]


@pytest.mark.parametrize("committee", [KernelCommitteeClassifier, KernelCommitteeRegressor])
def test_members_after_preparations_agree(committee):
    X, y = data(n_classes=3)
    X[:, 3] = X[:, 3] > 0
    new, _ = data(seed=1)
    labels = committee is KernelCommitteeClassifier
    model = KernelFisherDiscriminant(gamma=0.3, alpha=0.1) if labels else KernelRidge(gamma=0.3)
    members = [make_pipeline(step, model) for step in (NormalScores(), RelevanceScaler())]
    fitted = committee(members).fit(X, y)
    assert len(fitted.members_) == 2
    with pytest.raises(ValueError, match="pass X"):
        to_onnx(fitted)
    assert_agrees(to_onnx(fitted, new, dtype="float64"), fitted, new, 1e-9, np.float64)
    ranked = committee(members[:1]).fit(X, y)
    bad = run(to_onnx(ranked, new), np.array([[np.inf, 0.0, 0.0, 0.0], [np.nan, 0.0, 0.0, 0.0]]))
    assert np.isnan(bad["probabilities" if labels else "prediction"]).all()
    assert measured_error(to_onnx(committee().fit(X, y))) < 1e-6


@pytest.mark.parametrize("n_targets", [0, 2])
def test_committees_of_numbers_agree(n_targets):
    X, _ = data()
    noise = np.random.default_rng(0).normal(size=(len(X), 2))
    y = np.sin(X[:, :2]) + X[:, 2:] + 0.5 * noise
    y = y[:, 0] if n_targets == 0 else y
    members = [KernelRidge(kernel=k, **KERNELS[k]) for k in ("rbf", "linear", "exponential")]
    model = KernelCommitteeRegressor(members).fit(X, y)
    assert len(model.members_) > 1
    assert_agrees(to_onnx(model, dtype="float64"), model, X + 0.1, 1e-9, np.float64)


def test_widths_per_feature_and_one_feature():
    X, y = data()
    model = LeastSquaresSVC(gamma=[0.1, 0.0, 0.5, 1.0], alpha=0.1).fit(X, y)
    assert_agrees(to_onnx(model, dtype="float64"), model, X, 1e-10, np.float64)
    for kernel in KERNELS:
        model = KernelRidge(kernel=kernel, **KERNELS[kernel]).fit(X[:, :1], y)
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
    model = svc().fit(sp.csr_matrix(X), y)
    for rows in (None, sp.csr_matrix(X), X):
        assert_agrees(to_onnx(model, rows), model, X, 1e-6)


@pytest.mark.parametrize(
    "library", [pytest.param("torch", marks=pytest.mark.torch), "array_api_strict"]
)
def test_models_on_foreign_arrays(library):
    xp = pytest.importorskip(library)
    X, y = data()
    model = svc().fit(X, y)
    there = svc().fit(xp.asarray(X), xp.asarray(y))
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
        model = svc().fit(X, labels)
        assert np.array_equal(
            run(to_onnx(model), X)["label"], model.predict(X.astype(np.float32).astype(float))
        )


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_that_a_model_refuses_have_no_label(kernel):
    """NaN and infinities, which a maximum, a clipped value or exp(-inf) would hide."""
    X, y = data(n_classes=3)
    bad = X[:6].copy()
    bad[1, 2], bad[2, 0], bad[4, 3] = np.nan, np.inf, -np.inf
    refused = np.array([False, True, True, False, True, False])
    settings = {"kernel": kernel, **KERNELS[kernel]}
    none = np.iinfo(np.int64).min
    for model, labels in (
        (LeastSquaresSVC(**settings), np.minimum(y, 1)),
        (LeastSquaresSVC(calibration="isotonic", **settings), y),
        (KernelRidge(**settings), y),
        (make_pipeline(MinMaxScaler(clip=True), LeastSquaresSVC(**settings)), y),
    ):
        outputs = run(to_onnx(model.fit(X, labels)), bad)
        if "label" in outputs:
            assert np.array_equal(outputs.pop("label") == none, refused)
        for values in outputs.values():
            assert np.array_equal(np.isnan(values).reshape(6, -1).all(axis=1), refused)
            assert np.array_equal(np.isnan(values).reshape(6, -1).any(axis=1), refused)


def test_the_label_of_a_refused_row_is_none_of_the_classes():
    X, y = data()
    bad = np.full_like(X[:1], np.nan)
    for labels, none in (
        (np.array(["no", "yes"])[y], ""),
        (y * 2.0, np.nan),
        (y.astype(np.uint8), np.iinfo(np.int64).min),
    ):
        model = svc().fit(X, labels)
        np.testing.assert_array_equal(run(to_onnx(model), bad)["label"], [none])
    for labels in (y > 0, np.array(["", "yes"])[y]):
        graph = to_onnx(svc().fit(X, labels))
        with pytest.raises(Exception, match="out of data bounds"):
            run(graph, bad)
    huge = np.array([0, 2**63 + 5], dtype=np.uint64)[y]
    with pytest.raises(ValueError, match="below 2⁶³"):
        to_onnx(svc().fit(X, huge))


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
    for kernel in ("rbf", "linear", "poly"):
        settings = {name: value for name, value in KERNELS[kernel].items() if name != "penalty"}
        model = KernelFisherDiscriminant(kernel, landmarks=12, random_state=0, **settings).fit(X, y)
        assert_agrees(to_onnx(model), model, X, 1e-6)


# ---- the measured error --------------------------------------------------------------------------


def test_the_error_is_the_one_that_a_user_measures(tmp_path):
    X, y = data()
    model = KernelRidge(gamma=0.2, alpha=0.02).fit(X, y)
    with pytest.warns(
        NumericalWarning, match=r"differ from those of the model by up to .*e-0[3-6] of their size"
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
        match=r"in float32, the outputs of the graph differ .* large terms of k.* "
        r"cancel.*arithmetic=\"float64\"",
    ):
        to_onnx(model, arithmetic="float32")
    assert measured_error(to_onnx(model)) < 1e-6
    mild = LeastSquaresSVC("linear", alpha=1.0).fit(X, y)
    assert_agrees(to_onnx(mild, arithmetic="float32"), mild, X, 1e-6)


def test_overflow_is_refused():
    X, y = data()
    model = KernelRidge(kernel="linear", alpha=1.0).fit(X, 1e60 * y)
    with pytest.raises(ValueError, match="values overflow"), np.errstate(all="ignore"):
        to_onnx(model)
    assert_agrees(to_onnx(model, dtype="float64"), model, X, 1e-10, np.float64)


def test_a_wrong_label_is_an_error(monkeypatch):
    """Were the labels of the graph wrong, with all decisions right, the measured error would say
    so.
    """
    X, y = data()
    model = svc().fit(X, y)
    monkeypatch.setattr(model, "predict", lambda X: 1 - LeastSquaresSVC.predict(model, X))
    monkeypatch.setattr("fitonce.io.onnx.model.portable", lambda model: model)
    with pytest.raises(ValueError, match="outputs of the graph differ"):
        to_onnx(model)


# ---- refusals and files --------------------------------------------------------------------------


def test_what_cannot_be_exported():
    X, y = data()
    ours = svc()
    for step in (QuantileTransformer(n_quantiles=5), FunctionTransformer(np.abs)):
        with pytest.raises(
            ValueError, match=rf"{type(step).__name__} .*cannot be exported to ONNX"
        ):
            to_onnx(make_pipeline(step, ours).fit(X, y))
    with pytest.raises(ValueError, match="is a Python function and cannot be exported to ONNX"):
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
    with pytest.raises(ValueError, match=r"OrdinalEncoder cannot be exported to ONNX"):
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
        match=r"GiB of training rows and coefficients, but an ONNX file is limited to 2 GiB",
    ):
        to_onnx(svc().fit(X, y))


def test_files(tmp_path):
    X, y = data()
    model = svc().fit(X, y)
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
    model = svc().fit(X, y)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"pip install 'fitonce\[onnx\]'"):
        to_onnx(model)
