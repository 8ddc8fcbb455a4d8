"""Rows that are not in memory: files, blocks, memory maps, Dask.

Streamed = in memory = Dask, and faults are told with their place.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import sklearn.model_selection as sk
from sklearn.base import clone

import fitonce
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from fitonce.core.banded import Banded
from fitonce.core.inverse import Inverse
from fitonce.core.memory import Memory, NotEnoughMemoryError
from fitonce.estimators.fitted import record_of
from fitonce.rows import BlockRows, open_rows
from fitonce.rows.blocks import rechunked
from fitonce.tuning import decompose
from optional import require
from reference import held_out_of, output

N, P, M = 400, 3, 25
TOLERANCE = 1e-10


def rows_and_targets(seed: int = 0, n: int = N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P))
    labels = np.where(
        X[:, 0] + 0.5 * rng.normal(size=n) > 0.8, "c", np.where(X[:, 1] > 0, "b", "a")
    )  # unbalanced
    X[7] = X[8]
    return X, labels, X @ [1.0, -2.0, 0.5] + np.sin(3 * X[:, 0]), rng.uniform(0.2, 2.0, n)


X, LABELS, NUMBERS, WEIGHTS = rows_and_targets()
TWO = np.where(LABELS == "a", -1, 1)

ESTIMATORS = [
    (KernelFisherDiscriminant(gamma=0.4, alpha=[0.3, 3.0, 30.0]), LABELS),
    (KernelFisherDiscriminant(gamma=0.4, alpha=[0.3, 3.0], penalty="dual", cv=4), TWO),
    (LeastSquaresSVC(landmark_method="kmeans"), TWO),
    (
        LeastSquaresSVC(
            "poly", degree=2, gamma="scale", alpha=1.0, fit_intercept="penalized", cv=3
        ),
        LABELS,
    ),
    (KernelRidge(gamma=0.4, landmark_method="cholesky"), NUMBERS),
    (
        KernelRidge(kernel="linear", alpha=[0.1, 1.0], fit_intercept=False),
        np.column_stack([NUMBERS, X[:, 0] ** 2]),
    ),
]
IDS = [f"{type(estimator).__name__}-{number}" for number, (estimator, _) in enumerate(ESTIMATORS)]


def fitted(estimator, rows, y, sample_weight=None, **settings):
    return (
        clone(estimator)
        .set_params(landmarks=M, random_state=0, **settings)
        .fit(rows, y, sample_weight=sample_weight)
    )


def cut(array, sizes):
    return np.split(array, np.cumsum(sizes)[:-1])


UNEQUAL = [100, 1, 0, 150, 37, 112]


def agree(model, other, rows=X):
    scale = np.max(np.abs(output(other, rows)))
    assert np.max(np.abs(output(model, rows) - output(other, rows))) <= TOLERANCE * scale
    assert np.max(np.abs(held_out_of(model) - held_out_of(other))) <= TOLERANCE * np.max(
        np.abs(held_out_of(other))
    )
    assert model.alpha_ == other.alpha_
    np.testing.assert_allclose(model.leverage_, other.leverage_, atol=1e-10)


# ---- streamed = in memory ------------------------------------------------------------------------


@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS, ids=IDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_equal_memory(estimator, y, weighted):
    weights = WEIGHTS if weighted else None
    reference = fitted(estimator, X, y, weights)
    rows = open_rows(cut(X, UNEQUAL))
    model = fitted(estimator, rows, y, weights)
    agree(model, reference)
    np.testing.assert_allclose(output(model, rows), output(reference, X), atol=1e-10)


@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS[:3], ids=IDS[:3])
def test_memory_map_equals_memory(tmp_path, estimator, y):
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    model = fitted(estimator, mapped, y)
    agree(model, fitted(estimator, X, y))
    assert np.shares_memory(record_of(model, "this test").training.X, mapped)  # no copy


def table(tmp_path, kind):
    pandas = require("pandas")
    frame = pandas.DataFrame(X, columns=["u", "v", "w"]).assign(label=LABELS, weight=WEIGHTS)
    path = tmp_path / f"table.{kind}"
    if kind in ("csv", "tsv"):
        frame.to_csv(path, index=False, sep="," if kind == "csv" else "\t")
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "feather"])
def test_files_equal_memory(tmp_path, kind):
    require("pyarrow")
    estimator = ESTIMATORS[0][0]
    rows = open_rows(table(tmp_path, kind), target="label", weight="weight", batch_rows=77)
    assert rows.names == ["u", "v", "w"]
    np.testing.assert_array_equal(rows.y, LABELS)
    model = clone(estimator).set_params(landmarks=M, random_state=0).fit(rows)
    agree(model, fitted(estimator, X, LABELS, WEIGHTS), rows)
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    np.testing.assert_array_equal(
        model.predict(rows), fitted(estimator, X, LABELS, WEIGHTS).predict(X)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(open_rows(table(tmp_path, kind), columns=["v", "u", "w"]))


def test_whole_numbers_first_in_a_csv(tmp_path):
    """The first block of a CSV has whole numbers only, a later one does not."""
    require("pyarrow")
    from fitonce.rows import files as sources

    path = tmp_path / "t.csv"
    lines = (
        ["a,b,y"]
        + [f"{i},{i % 7},{i % 2}" for i in range(3000)]
        + [f"{i}.5,{i % 7}.25,{i % 2}" for i in range(3000)]
    )
    path.write_text("\n".join(lines) + "\n")
    before, sources.CSV_BLOCK_BYTES = sources.CSV_BLOCK_BYTES, 4096
    try:
        rows = open_rows(path, target="y")
        values = rows.take(np.array([5999, 10]))
    finally:
        sources.CSV_BLOCK_BYTES = before
    np.testing.assert_array_equal(values, [[2999.5, (2999 % 7) + 0.25], [10.0, 3.0]])


def test_an_iterator_that_can_be_read_once():
    blocks = (
        (part, label) for part, label in zip(cut(X, UNEQUAL), cut(LABELS, UNEQUAL), strict=True)
    )
    rows = open_rows(blocks)
    np.testing.assert_array_equal(rows.y, LABELS)
    agree(fitted(ESTIMATORS[0][0], rows, rows.y), fitted(ESTIMATORS[0][0], X, LABELS))


@pytest.mark.parametrize("cv", [sk.StratifiedKFold(4), sk.ShuffleSplit(3, random_state=0)])
@pytest.mark.parametrize("shared", [False, True, "drop"])
def test_cross_validation_of_blocks(cv, shared):
    rows = open_rows(cut(X, UNEQUAL))
    estimator = KernelFisherDiscriminant(
        gamma=0.4, alpha=1.0, landmarks=M, random_state=0, shared_landmarks=shared
    )
    streamed = fitonce.cross_val_score(estimator, rows, LABELS, cv=cv)
    np.testing.assert_allclose(
        streamed, fitonce.cross_val_score(estimator, X, LABELS, cv=cv), atol=1e-12
    )
    if shared is False:
        np.testing.assert_allclose(
            streamed, sk.cross_val_score(estimator, X, LABELS, cv=cv), atol=1e-12
        )


@pytest.mark.parametrize("landmarks", [M, X[:M]], ids=["chosen", "given"])
@pytest.mark.parametrize("source", ["blocks", "iterator"])
@pytest.mark.parametrize(
    "cv", [sk.KFold(4), sk.KFold(4, shuffle=True, random_state=0)], ids=["in order", "shuffled"]
)
def test_weights_that_came_with_the_rows_go_into_every_fold(landmarks, source, cv):
    blocks = list(zip(*(cut(array, UNEQUAL) for array in (X, NUMBERS, WEIGHTS)), strict=True))
    rows = open_rows(blocks if source == "blocks" else iter(blocks))
    estimator = KernelRidge(gamma=0.4, alpha=1.0, landmarks=landmarks, random_state=0)
    streamed = fitonce.cross_val_predict(estimator, rows, cv=cv)
    weighted = sk.cross_val_predict(estimator, X, NUMBERS, cv=cv, params={"sample_weight": WEIGHTS})
    np.testing.assert_allclose(streamed, weighted, atol=1e-9)


def test_verify_and_at_read_the_blocks_again():
    model = fitted(
        KernelFisherDiscriminant(gamma=0.4, alpha=1.0), open_rows(cut(X, UNEQUAL)), LABELS
    )
    other = model.at(5.0)
    agree(other, fitted(KernelFisherDiscriminant(gamma=0.4, alpha=5.0), X, LABELS))
    in_memory = fitted(KernelFisherDiscriminant(gamma=0.4, alpha=1.0), X, LABELS)
    for fit, reference in (
        (model, in_memory),
        (fitted(in_memory, open_rows(X), LABELS, cv=3), None),
    ):
        verified = fit.verify(3)
        assert verified.passed and verified.n_refits == 3
        assert reference is None or verified.max_deviation == pytest.approx(
            reference.verify(3).max_deviation, abs=1e-10
        )


# ---- faults --------------------------------------------------------------------------------------


BAD = X.copy()
BAD[373, 1] = np.nan
SPOILT = {  # what is opened and read: the message
    r"block 37 of the blocks \(from row 370\) contains NaN or infinity, first in its row 3 .* "
    "column 1": lambda: open_rows(np.split(BAD, 40)).take(np.arange(N)),
    r"block 1 of the blocks .* has 2 features, but earlier blocks have 3": lambda: open_rows(
        [X[:10], X[10:20, :2]]
    ),
    r"block 1 .* is not numeric": lambda: open_rows([[[1.0, 2.0]], [["a", "b"]]]),
    r"the source.* has no rows|the blocks has no rows": lambda: open_rows([X[:0]]),
    "the iterator has no rows": lambda: open_rows(iter([])),
    r"must be two-dimensional .* and not empty": lambda: open_rows(X[:0]),
    r"rows by features.*shape \(400,\)": lambda: open_rows(X[:, 0]),
    r"rows by features.*shape \(1, 400, 3\)": lambda: open_rows(X[None]),
    r"block 0 of the blocks .* is a sparse matrix": lambda: open_rows(
        lambda: [scipy.sparse.csr_array(X)]
    ),
    "block 1 has 200 rows but 199 targets": lambda: open_rows(
        [(X[:200], LABELS[:200]), (X[200:], LABELS[200:399])]
    ),
    "the blocks have 400 rows but 200 targets": lambda: open_rows(
        iter([(X[:200],), (X[200:], LABELS[200:])])
    ),
    r"inconsistent numbers of samples: \[400, 399\]": lambda: fitted(
        ESTIMATORS[0][0], open_rows([X]), LABELS[:-1]
    ),
    "needs landmarks for rows in files": lambda: KernelFisherDiscriminant().fit(
        open_rows([X]), LABELS
    ),
    "1 rows have zero weight: leave them out of the source": lambda: fitted(
        ESTIMATORS[0][0], open_rows([X]), LABELS, np.r_[0.0, WEIGHTS[1:]]
    ),
    "needs the rows in memory": lambda: fitonce.permutation_test_score(
        fitted(ESTIMATORS[0][0], X, LABELS), open_rows([X]), LABELS
    ),
}


@pytest.mark.parametrize("message", SPOILT)
def test_rows_that_are_none_are_told(message):
    with pytest.raises((ValueError, TypeError), match=message):
        SPOILT[message]()


FILES = {  # a file, what is read of it, and the message
    "multiple columns named a.* several columns of one name": (
        "a,a,y\n1,2,0\n3,4,1\n",
        {"target": "y"},
    ),
    "1 missing values in 'label'": ("a,label\n1,yes\n2,\n3,no\n", {"target": "label"}),
    "columns contains 'weight', which is the target or the weight": (
        "u,weight\n1,2\n",
        {"target": "weight", "columns": ["u", "weight"]},
    ),
    "has no column 'species'; it has 'u', 'v'": ("u,v\n1,2\n", {"target": "species"}),
    "column 'label' is string, not numbers|cannot be read": ("u,label\n1,a\n", {}),
}


@pytest.mark.parametrize("message", FILES)
def test_columns_that_cannot_be_read_are_told(tmp_path, message):
    require("pyarrow")
    text, options = FILES[message]
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        open_rows(tmp_path / "t.csv", **options).take(np.arange(1))


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        open_rows(tmp_path / "nothing.csv")
    pyarrow, twice = require("pyarrow"), tmp_path / "t.arrow"
    values = pyarrow.record_batch([pyarrow.array([1.0])] * 2, names=["a", "a"])
    with pyarrow.ipc.new_file(twice, values.schema) as writer:
        writer.write_batch(values)
    with pytest.raises(ValueError, match="several columns of one name"):
        open_rows(twice)
    (tmp_path / "t.xlsx").write_text("?")
    with pytest.raises(ValueError, match=r"not a \.parquet"):
        open_rows(tmp_path / "t.xlsx")


@pytest.mark.parametrize("cv", [None, 5])
def test_two_passes_for_each_kernel_tried(cv):
    passes = 0

    def blocks():
        nonlocal passes
        passes += 1
        yield from cut(X, UNEQUAL)

    rows, counted = open_rows(blocks), {}
    for gamma in (0.4, "tune"):
        passes = 0
        model = LeastSquaresSVC(gamma=gamma, landmarks=X[:M], cv=cv).fit(rows, TWO)
        counted[gamma] = passes
    tried = len(np.unique(model.cv_results_["param_gamma"].data))
    assert counted["tune"] <= 2 * tried + counted[0.4]  # and the best one again, for the model


def test_a_source_that_changes_between_passes():
    passes = iter([cut(X, UNEQUAL), cut(X, UNEQUAL), cut(X, UNEQUAL), [X[:300]]] + [[X[:300]]] * 9)
    rows = BlockRows(lambda: next(passes), N)
    with pytest.raises(ValueError, match="a different number of rows than before"):
        fitted(ESTIMATORS[0][0], rows, LABELS)


def test_a_source_that_grows_between_passes():
    passes = iter([[X[:100]], [X[:100]], [X[:100], X[100:]]])
    rows = BlockRows(
        lambda: next(passes), 100, step=50
    )  # full blocks only: the last row expected ends one
    assert len(rows.take(np.arange(100))) == 100
    with pytest.raises(ValueError, match="a different number of rows than before"):
        rows.take(np.arange(100))


def test_a_file_cut_short(tmp_path):
    require("pyarrow")
    path = table(tmp_path, "parquet")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match="cannot be read"):
        open_rows(path, target="label", weight="weight")
    path = table(tmp_path, "csv")
    text = path.read_text()
    path.write_text(text[: len(text) * 2 // 3].rsplit(",", 1)[0])
    with pytest.raises(ValueError, match="cannot be read"):
        fitted(ESTIMATORS[0][0], open_rows(path, target="label", weight="weight"), None)


def test_a_missing_value_in_a_file(tmp_path):
    require("pyarrow")
    pandas = require("pandas")
    frame = pandas.DataFrame(X, columns=["u", "v", "w"]).assign(label=TWO)
    frame.loc[33, "v"] = np.nan
    frame.to_parquet(tmp_path / "t.parquet")
    rows = open_rows(tmp_path / "t.parquet", target="label", batch_rows=10)
    with pytest.raises(
        ValueError, match=r"block 3 of .* first in its row 3 \(counted from 0\), column 1"
    ):
        fitted(ESTIMATORS[0][0], rows, None)


# ---- memory --------------------------------------------------------------------------------------


def test_blocks_do_not_depend_on_how_the_source_is_cut():
    expected = [block.tolist() for block in rechunked([X], 64)]
    for sizes in (UNEQUAL, [N], [1] * N, [64, 64, 272], [399, 1]):
        assert [block.tolist() for block in rechunked(cut(X, sizes), 64)] == expected
    assert [len(block) for block in rechunked(cut(X, [128, 272]), 100)] == [100] * 4  # none empty


def test_no_block_is_larger_than_the_budget(monkeypatch):
    """Features are computed for at most so many entries at a time, whatever the source's own
    blocks.
    """
    from fitonce.core import rows
    from fitonce.landmarks.features import LandmarkMap

    seen = []
    original = LandmarkMap.__call__
    monkeypatch.setattr(
        LandmarkMap,
        "__call__",
        lambda self, block: seen.append(block.shape[0]) or original(self, block),
    )
    monkeypatch.setattr(rows, "HOST_ELEMENTS", 100 * M)
    monkeypatch.setattr(rows, "LEAST_ROWS", 1)
    fitted(ESTIMATORS[0][0], open_rows([X]), LABELS)
    assert max(seen) <= 100


def test_an_exact_fit_that_cannot_fit_is_refused(monkeypatch):
    rng = np.random.default_rng(0)
    big = np.lib.stride_tricks.as_strided(
        rng.normal(size=(1, 2)), shape=(300_000, 2), strides=(0, 8)
    )
    with pytest.raises(
        NotEnoughMemoryError, match=r"300,000 rows: one .* takes 670\.6 GiB.*Use landmarks="
    ):
        KernelRidge(gamma=1.0, alpha=1.0).fit(big, np.arange(300_000.0))


def test_it_is_refused_before_the_kernel_is_computed(monkeypatch):
    def kernel(left, right):
        raise AssertionError("the kernel was computed")

    rows = np.zeros((6000, 2))
    monkeypatch.setattr(
        decompose, "memory_of", lambda like: Memory("on this machine", 2**20, 2**30)
    )
    with pytest.raises(NotEnoughMemoryError, match="6,000 rows"):
        KernelRidge(kernel=kernel, alpha=1.0).fit(rows, np.arange(6000.0))


def test_verbose_says_what_it_takes(capsys):
    KernelFisherDiscriminant(alpha=1.0, verbose=1).fit(X, LABELS)
    error = capsys.readouterr().err
    assert "400 rows, 3 features, 10 kernels, most of them on 200 rows, exact: about" in error
    assert "1 of about 10: gamma=" in error
    fitted(KernelRidge(gamma=1.0), X, NUMBERS, verbose=1)
    assert "one kernel, 25 landmarks\n" in capsys.readouterr().err
    KernelFisherDiscriminant(gamma=1.0, alpha=1.0).fit(X, LABELS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_kernels_tried_side_by_side(backend):
    joblib = require("joblib")
    alone = KernelFisherDiscriminant(penalty="tune").fit(X[:80], LABELS[:80])
    with joblib.parallel_config(backend, n_jobs=2):
        together = KernelFisherDiscriminant(penalty="tune").fit(X[:80], LABELS[:80])
    assert together.cv_results_["params"] == alone.cv_results_["params"]
    np.testing.assert_allclose(together.held_out_decision_, alone.held_out_decision_, atol=1e-12)


# ---- a GPU's decomposition, on whatever there is -------------------------------------------------


@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    "settings",
    [{"gamma": 0.5, "alpha": 0.2}, {"cv": 4, "gamma": 0.5}, {}, {"gamma": 0.5, "refine": True}],
    ids=str,
)
@pytest.mark.parametrize("weights", [None, WEIGHTS[:90]], ids=["plain", "weighted"])
def test_estimators_on_the_band_form(monkeypatch, settings, weights, library):
    """What CUDA tensors of many rows go through, tried on the host.

    The same choices and numbers as from eigenvectors.
    """
    rows, y = X[:90], LABELS[:90]
    own = require(library).asarray(rows)
    reference = KernelFisherDiscriminant(**settings).fit(rows, y, sample_weight=weights)
    monkeypatch.setattr(decompose, "on_gpu", lambda K: True)
    monkeypatch.setattr(decompose, "BAND_FROM", 10)
    model = KernelFisherDiscriminant(**settings).fit(own, y, sample_weight=weights)
    resolvent = record_of(model, "this test").problem.smoother.resolvent
    assert isinstance(resolvent.whole, Banded)
    assert isinstance(resolvent, Inverse) == (settings == {"gamma": 0.5, "alpha": 0.2})
    np.testing.assert_allclose(model.alpha_, reference.alpha_, rtol=1e-6)
    np.testing.assert_allclose(
        np.asarray(model.held_out_decision_), reference.held_out_decision_, atol=1e-8
    )
    decision = np.asarray(model.at(1.0).decision_function(own))
    np.testing.assert_allclose(decision, reference.at(1.0).decision_function(rows), atol=1e-8)
