"""Models in files.

What comes back is what went in, what is not ours is refused before anything of it runs, files are
whole or absent.
"""

from __future__ import annotations

import errno
import io
import itertools
import json
import os
import pickle
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, load, save
from fitonce.core.arrays import to_numpy
from fitonce.io import saving
from fitonce.io.trust import skops_io as import_skops

skops_io = import_skops()
OUTPUTS = ("predict", "predict_proba", "decision_function", "transform")


def three_classes(n=60, seed=0):
    """Unbalanced, with a duplicated row and a class of two."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["few", "many", "some"], [2, n - 22, 20])
    X = rng.normal(size=(n, 3)) + np.searchsorted(np.unique(y), y)[:, None]
    X[5] = X[4]
    return X, y


def two_classes(n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0.4).astype(int)


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


def assert_same_outputs(model, again, X):
    compared = 0
    for name in OUTPUTS:
        if hasattr(model, name):
            assert np.array_equal(getattr(model, name)(X), getattr(again, name)(X)), name
            compared += 1
    assert compared


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


def round_trip(model, folder, **options):
    return load(save(model, folder / "model.skops", **options))


# ---- round trips ---------------------------------------------------------------------------------

MODELS = {
    "rbf": KernelFisherDiscriminant(),
    "linear": KernelFisherDiscriminant("linear", calibration="sigmoid"),
    "poly": KernelFisherDiscriminant(
        "poly", alpha=0.1, gamma="scale", n_components=1, calibration=None
    ),
    "refined": LeastSquaresSVC(refine=True),
    "ard": LeastSquaresSVC(gamma="ard", criterion="squared_error"),
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
    assert not hasattr(again, "_kept") and hasattr(model, "_kept")
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
    model = KernelRidge("precomputed").fit(K, y, sample_weight=np.r_[0.0, np.ones(len(y) - 1)])
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
                expected = to_numpy(getattr(there, name)(xp.asarray(X)))
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


def test_what_a_loaded_model_cannot_do_it_says(tmp_path):
    X, y = two_classes()
    again = round_trip(LeastSquaresSVC().fit(X, y), tmp_path)
    for method, arguments in (("at", (1.0,)), ("verify", ())):
        with pytest.raises(
            ValueError,
            match=rf"{method}\(\) needs the decomposition of the training rows, which is not "
            r"stored in files",
        ):
            getattr(again, method)(*arguments)


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
        ({1: "a"}, "with names as keys"),
        ({"f": print}, r"metadata\['f'\] must be"),
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


# ---- files that are refused ----------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    X, y = two_classes()
    return save(LeastSquaresSVC(gamma=0.5, alpha=0.1).fit(X, y), tmp_path / "model.skops")


def rewritten(path, change):
    """The same archive with its members, a dict of bytes, changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def with_schema(change):
    def rewrite(members):
        schema = json.loads(members["schema.json"])
        change(schema)
        members["schema.json"] = json.dumps(schema).encode()

    return rewrite


def parameter(schema, name):
    return schema["content"]["content"][name]


IDS = itertools.count(1)


def node(loader, module, name, content=None):
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        "__id__": next(IDS),
        "content": content,
    }


def text(value):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
        "is_json": True,
    }


def command(marker):
    return f"touch {marker}"


def arguments(marker, loader="TupleNode", kind="tuple"):
    return {**node(loader, "builtins", kind), "content": [text(command(marker))]}


ATTACKS = {
    "function": (lambda marker: node("FunctionNode", "posix", "system"), "posix.system"),
    "object": (lambda marker: node("ObjectNode", "subprocess", "Popen", None), "subprocess.Popen"),
    "constructor": (
        lambda marker: node("ConstructorFromReduceNode", "os", "system", arguments(marker)),
        "os.system",
    ),
    "list": (
        lambda marker: node("ListNode", "subprocess", "Popen", [text(command(marker))]),
        "subprocess.Popen",
    ),
    "type": (lambda marker: node("TypeNode", "os", "system"), "os.system"),
    "module": (lambda marker: node("TypeNode", "planted", "anything"), "planted.anything"),
    "partial": (
        lambda marker: node(
            "PartialNode",
            "functools",
            "partial",
            {
                "func": node("FunctionNode", "os", "system"),
                "args": arguments(marker),
                "kwds": text(None),
                "namespace": text(None),
            },
        ),
        "functools.partial",
    ),
    "method": (
        lambda marker: node("MethodNode", "builtins", "str", {"func": "format", "obj": text("x")}),
        "builtins.str.format",
    ),
    "operator": (
        lambda marker: {
            **node("OperatorFuncNode", "operator", "methodcaller"),
            "attrs": arguments(marker),
        },
        "operator.methodcaller",
    ),
    "disguised method": (
        lambda marker: node(
            "MethodNode",
            "sklearn.linear_model._logistic",
            "LogisticRegression",
            {"func": "system", "obj": node("TypeNode", "os", "os")},
        ),
        "is damaged: .*got os.os",
    ),
    "unknown": (lambda marker: node("NoSuchNode", "os", "system", arguments(marker)), "is damaged"),
    "reduce": (
        lambda marker: {
            **node("TreeNode", "os", "system", text({})),
            "__reduce__": {"args": arguments(marker)},
        },
        "os.system",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_malicious_file_runs_nothing(name, saved, tmp_path, monkeypatch):
    """Each attack as a parameter of an otherwise good model.

    Importing, calling and starting programs would all leave a mark.
    """
    marker = tmp_path / "ran"
    (tmp_path / "planted.py").write_text(
        f"open({str(marker)!r}, 'w').close()\nanything = None\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    attack, named = ATTACKS[name]

    def plant(schema):
        schema["content"]["content"]["kernel_params"] = attack(marker)

    rewritten(saved, with_schema(plant))
    with pytest.raises(ValueError, match=named) as refusal:
        load(saved)
    assert "damaged" in named or "which fitonce does not trust" in str(refusal.value)
    assert not marker.exists() and "planted" not in sys.modules


def test_attacks_that_mark_do_mark_when_trusted(saved, tmp_path):
    """The marker of the test above can be written.

    The same file leaves it where the caller trusts everything.
    """
    marker = tmp_path / "ran"
    rewritten(
        saved,
        with_schema(
            lambda schema: schema["content"]["content"].update(
                kernel_params=ATTACKS["constructor"][0](marker)
            )
        ),
    )
    load(saved, trusted=["os.system"])
    assert marker.exists()


def test_an_attack_as_the_key_type_of_a_mapping(saved, tmp_path):
    marker = tmp_path / "ran"

    def plant(schema):
        kinds = {
            **node("ListNode", "builtins", "list"),
            "content": [node("TypeNode", "os", "system")],
        }
        mapping = node("DictNode", "builtins", "dict", {command(marker): text(1)})
        schema["content"]["content"]["kernel_params"] = {**mapping, "key_types": kinds}

    rewritten(saved, with_schema(plant))
    with pytest.raises(ValueError, match=r"contains os\.system, which fitonce does not trust"):
        load(saved)
    assert not marker.exists()


class Marks:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_in_disguise_is_not_read(protocol, tmp_path):
    path, marker = tmp_path / "model.skops", tmp_path / "ran"
    path.write_bytes(pickle.dumps(Marks(marker), protocol=protocol))
    with pytest.raises(
        ValueError, match="is a pickle, not a model file" if protocol > 1 else "is not a model file"
    ):
        load(path)
    assert not marker.exists()
    pickle.loads(path.read_bytes()).close()
    assert marker.exists()


def test_a_pickle_inside_an_array_is_not_read(saved, tmp_path):
    marker = tmp_path / "ran"
    buffer = io.BytesIO()
    np.save(buffer, np.array([Marks(marker)], dtype=object), allow_pickle=True)

    def plant(members):
        for name in members:
            if name.endswith(".npy"):
                members[name] = buffer.getvalue()

    rewritten(saved, plant)
    with pytest.raises(ValueError, match="is damaged"):
        load(saved)
    assert not marker.exists()


def test_what_is_not_an_estimator_is_not_returned(tmp_path):
    path = tmp_path / "m.skops"
    skops_io.dump({"a": 1}, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(
            "fitonce.json", json.dumps({"format": 1, "model": "x", "versions": {}, "metadata": {}})
        )
    with pytest.raises(ValueError, match="contains an object of type dict, not an estimator"):
        load(path)


def with_header(**changes):
    def rewrite(members):
        members["fitonce.json"] = json.dumps(
            {**json.loads(members["fitonce.json"]), **changes}
        ).encode()

    return rewrite


def test_newer_and_unknown_formats_say_so(saved):
    rewritten(saved, with_header(format=saving.FORMAT + 1, versions={"fitonce": "9.0"}))
    for read in (load, saving.read_metadata):
        with pytest.raises(
            ValueError,
            match=r"was written by fitonce 9\.0 in file format 2, and this is fitonce .*update "
            r"fitonce",
        ):
            read(saved)
    for unknown in (0, -1, "1", None, 1.5, [1]):
        rewritten(saved, with_header(format=unknown))
        with pytest.raises(ValueError, match="does not name a known format"):
            load(saved)
    rewritten(saved, lambda members: members.update({"fitonce.json": b"[]"}))
    with pytest.raises(ValueError, match="does not name a known format"):
        load(saved)


def test_classes_of_another_version_are_told_from_foreign_ones(saved):
    rewritten(saved, with_header(versions={"fitonce": "9.0"}))
    later = node("ObjectNode", "fitonce.estimators.svc", "LaterClass", text({}))
    rewritten(
        saved, with_schema(lambda schema: schema["content"]["content"].update(kernel_params=later))
    )
    with pytest.raises(
        ValueError,
        match=r"contains fitonce\.estimators\.svc\.LaterClass, .* written by fitonce 9\.0, this is",
    ):
        load(saved)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.95, 0.999])
def test_truncated_files(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"is incomplete or damaged: .*Copy it again"):
        load(saved)


def test_flipped_bytes_never_pass_as_another_model(saved):
    """Every tenth byte or so, flipped.

    An error of one sentence, or (in the zip's own bookkeeping) the model as it was.
    """
    X, _ = two_classes()
    expected = load(saved).decision_function(X)
    content = saved.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for position in rng.integers(len(content), size=150):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        saved.write_bytes(bytes(damaged))
        try:
            assert np.array_equal(load(saved).decision_function(X), expected)
        except (ValueError, OSError) as error:
            refused += 1
            assert str(saved) in str(error)
    assert refused > 100


def test_other_files(tmp_path):
    path = tmp_path / "x.skops"
    for content, message in (
        (b"", "is empty"),
        (b"a,b\n1,2\n", "is not a model file"),
        (b"PK\x03\x04rubbish", "is incomplete or damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(
        ValueError, match=r"is an archive, but not a model file .* no fitonce\.json"
    ):
        load(path)
    skops_io.dump(LogisticRegression(), path)
    with pytest.raises(ValueError, match=r"no fitonce\.json"):
        load(path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent\.skops"):
        load(tmp_path / "absent.skops")
    with pytest.raises(IsADirectoryError, match="is a folder, not a model file"):
        load(tmp_path)


def test_a_schema_that_is_nonsense(saved):
    for nonsense in (b"", b"{", b"[]", b"{}", b'{"protocol": 2}', b"[" * 100_000):
        rewritten(
            saved, lambda members, nonsense=nonsense: members.update({"schema.json": nonsense})
        )
        with pytest.raises(ValueError, match="damaged"):
            load(saved)
    rewritten(saved, lambda members: members.pop("schema.json"))
    with pytest.raises(ValueError, match=r"is damaged: .*no item named .schema\.json"):
        load(saved)


def test_a_file_that_would_fill_the_memory(saved, monkeypatch):
    monkeypatch.setattr(saving, "MOST_UNFOLDED", 1 << 20)
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(1 << 27))
    with pytest.raises(ValueError, match=r"claims to unfold to 1\.3e\+08 bytes"):
        load(saved)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything"
)
def test_no_permission_to_read(saved):
    saved.chmod(0)
    with pytest.raises(PermissionError, match="cannot be read: permission denied"):
        load(saved)


def test_permission_is_told_whoever_runs_this(saved, monkeypatch):
    def denied(self):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(PermissionError, match=r"model\.skops cannot be read: permission denied\.$"):
        load(saved)


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
        match=r"cannot be saved with criterion=<lambda>: .*set criterion to one of the names",
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


# ---- files that are whole or absent --------------------------------------------------------------


def test_a_failure_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OSError, match=r"model\.skops cannot be written: the disk is full\. Nothing was changed\.$"
    ) as failure:
        save(LeastSquaresSVC(), saved)
    assert failure.value.errno == errno.ENOSPC
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["model.skops"]


def test_a_limit_of_the_system_leaves_the_old_file(saved):
    """A real failure half-way through the write, by a limit on the size of files."""
    before = saved.read_bytes()
    code = (
        "import sys, resource, fitonce\n"
        "model = fitonce.load(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try:\n    fitonce.save(model, sys.argv[1])\n"
        "except OSError as error:\n    print(error)\n"
    )
    assert len(before) > 2000 and resource.RLIM_INFINITY
    result = subprocess.run(
        [sys.executable, "-c", code, str(saved)], capture_output=True, text=True, check=True
    )
    assert "cannot be written" in result.stdout and "Nothing was changed" in result.stdout
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["model.skops"]


def test_an_interruption_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(LeastSquaresSVC(), saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["model.skops"]


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file"):
        save(LeastSquaresSVC(), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"cannot be written: there is no folder .*absent"):
        save(LeastSquaresSVC(), tmp_path / "absent" / "m.skops")

    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", denied)
    with pytest.raises(PermissionError, match="cannot be written: permission denied in"):
        save(LeastSquaresSVC(), tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "m.skops", tmp_path / "link.skops"
    umask = os.umask(0o027)
    try:
        save(LeastSquaresSVC(), path)
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    link.symlink_to(path)
    save(LeastSquaresSVC(alpha=3.0), link)
    assert link.is_symlink() and load(path).alpha == 3.0 and path.stat().st_mode & 0o777 == 0o600


def test_without_skops_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(ImportError, match=r"pip install 'fitonce\[io\]'"):
        save(LeastSquaresSVC(), tmp_path / "m.skops")
