"""Dask collections.

The same numbers as in memory, on threads and on a cluster, with a worker killed on the way.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
import sklearn.model_selection as sk
from sklearn.base import clone
from test_rows import LABELS, NUMBERS, TWO, WEIGHTS, N, X, agree

import fitonce
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from fitonce.core.thin import Thin
from optional import require

da = require("dask.array")
SETTINGS = {"landmarks": 25, "random_state": 0}
CASES = [
    (KernelFisherDiscriminant(gamma=0.4, alpha=[0.3, 3.0], **SETTINGS), LABELS),
    (LeastSquaresSVC(cv=4, landmark_method="kmeans", **SETTINGS), TWO),
    (KernelRidge(kernel="poly", degree=2, gamma="scale", **SETTINGS), NUMBERS),
]


@pytest.mark.parametrize(
    "chunks", [(97, 2), (N, 3), ((150, 0, 1, 249), 3)], ids=["uneven", "one", "empty"]
)
@pytest.mark.parametrize(("estimator", "y"), CASES, ids=lambda value: type(value).__name__)
def test_arrays_equal_memory(estimator, y, chunks):
    rows = da.from_array(X, chunks=chunks)
    model = clone(estimator).fit(
        rows, da.from_array(y, chunks=50), sample_weight=da.from_array(WEIGHTS, chunks=77)
    )
    reference = clone(estimator).fit(X, y, sample_weight=WEIGHTS)
    agree(model, reference)
    lazily = model.predict(rows)
    assert isinstance(lazily, da.Array)
    if isinstance(model, KernelRidge):
        np.testing.assert_allclose(lazily.compute(), model.predict(X), rtol=1e-12)
    else:
        np.testing.assert_array_equal(lazily.compute(), model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(rows).compute(), model.predict_proba(X))
    if hasattr(model, "transform"):
        np.testing.assert_allclose(model.transform(rows).compute(), model.transform(X))


def test_data_frames_equal_memory():
    pandas, frames = require("pandas"), require("dask.dataframe")
    frame = pandas.DataFrame(X, columns=["u", "v", "w"]).assign(label=LABELS)
    parts = frames.from_pandas(frame, npartitions=5)
    estimator, y = CASES[0]
    model = clone(estimator).fit(parts[["u", "v", "w"]], parts["label"])
    agree(model, clone(estimator).fit(frame[["u", "v", "w"]], y), frame[["u", "v", "w"]])
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    np.testing.assert_array_equal(
        model.predict(parts[["u", "v", "w"]]).compute(), model.predict(frame[["u", "v", "w"]])
    )


def test_numbered_columns_are_no_names():
    pandas, frames = require("pandas"), require("dask.dataframe")
    parts = frames.from_pandas(pandas.DataFrame(X), npartitions=3)
    model = clone(CASES[0][0]).fit(parts, LABELS)
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(parts).compute(), model.predict(X))


def test_projections_of_data_frames():
    pandas, frames = require("pandas"), require("dask.dataframe")
    parts = frames.from_pandas(pandas.DataFrame(X, columns=["u", "v", "w"]), npartitions=3)
    estimator = KernelFisherDiscriminant(gamma=0.4, alpha=1.0, landmarks=X[:25])
    options = {"cv": sk.KFold(4, shuffle=True, random_state=0), "method": "transform"}
    projected = fitonce.cross_val_predict(estimator, parts, LABELS, **options)
    np.testing.assert_allclose(
        projected, fitonce.cross_val_predict(estimator, X, LABELS, **options), atol=1e-9
    )


def test_arrays_of_unknown_length():
    rows = da.from_array(X, chunks=(100, 3))
    unknown = rows[da.from_array(np.ones(N, dtype=bool), chunks=100)]
    assert np.isnan(unknown.shape[0])
    estimator, y = CASES[0]
    agree(clone(estimator).fit(unknown, y), clone(estimator).fit(X, y))


@pytest.mark.parametrize("shared", [False, True])
def test_cross_validation(shared):
    estimator = KernelFisherDiscriminant(gamma=0.4, alpha=1.0, shared_landmarks=shared, **SETTINGS)
    rows, cv = da.from_array(X, chunks=(97, 3)), sk.StratifiedKFold(4)
    scores = fitonce.cross_val_score(estimator, rows, da.from_array(LABELS, chunks=97), cv=cv)
    np.testing.assert_allclose(scores, fitonce.cross_val_score(estimator, X, LABELS, cv=cv))
    decision = fitonce.cross_val_predict(estimator, rows, LABELS, cv=cv, method="decision_function")
    assert isinstance(decision, np.ndarray)
    np.testing.assert_allclose(
        decision,
        fitonce.cross_val_predict(estimator, X, LABELS, cv=cv, method="decision_function"),
        atol=1e-9,
    )


def test_a_nan_is_told_with_its_partition():
    bad = X.copy()
    bad[203, 2] = np.inf
    with pytest.raises(
        ValueError,
        match=r"partition 2 \(from row 200\) contains NaN or infinity, first in its row 3 .* "
        r"column 2",
    ):
        clone(CASES[0][0]).fit(da.from_array(bad, chunks=(100, 3)), LABELS)


def test_no_landmarks_no_rows():
    with pytest.raises(ValueError, match="needs landmarks"):
        KernelRidge().fit(da.from_array(X, chunks=100), NUMBERS)
    with pytest.raises(ValueError, match="no rows"):
        clone(CASES[0][0]).fit(da.from_array(X[:0], chunks=100), LABELS[:0])
    with pytest.raises(ValueError, match="needs the rows in memory"):
        fitonce.permutation_test_score(CASES[0][0], da.from_array(X, chunks=100), LABELS)


def _slow(block: np.ndarray) -> np.ndarray:
    time.sleep(0.15)
    return block


@pytest.mark.slow
def test_a_worker_killed_on_the_way_changes_nothing():
    """On a LocalCluster: bit-identical with and without the loss of a worker.

    Kernels of a grid through joblib's backend.
    """
    distributed, joblib = require("distributed"), require("joblib")
    estimator, y = CASES[0]
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = da.from_array(X, chunks=(40, 3)).map_blocks(_slow)
        undisturbed = clone(estimator).fit(rows, y)
        agree(undisturbed, clone(estimator).fit(X, y))
        pids = client.run(os.getpid)
        killer = threading.Timer(0.5, os.kill, (next(iter(pids.values())), signal.SIGKILL))
        killer.start()
        disturbed = clone(estimator).fit(rows, y)
        killer.join()
        assert set(client.run(os.getpid).values()) != set(pids.values()), (
            "the worker was not killed in time to matter"
        )
        np.testing.assert_array_equal(disturbed.held_out_decision_, undisturbed.held_out_decision_)
        np.testing.assert_array_equal(disturbed.dual_coef_, undisturbed.dual_coef_)
        with joblib.parallel_config("dask"):
            grid = KernelFisherDiscriminant(alpha=[0.1, 1.0]).fit(X[:60], LABELS[:60])
        alone = KernelFisherDiscriminant(alpha=[0.1, 1.0]).fit(X[:60], LABELS[:60])
        assert grid.gamma_ == alone.gamma_
        np.testing.assert_allclose(grid.held_out_decision_, alone.held_out_decision_, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize(("estimator", "y"), CASES, ids=lambda value: type(value).__name__)
def test_partitions_that_live_elsewhere(estimator, y):
    """Partitions as tensors stand for those of a GPU: work happens there, numbers are the same."""
    torch = require("torch")
    seen = []

    def tensor(block):
        seen.append(len(block))
        return torch.asarray(np.array(block))

    rows = da.from_array(X, chunks=(97, 3)).map_blocks(tensor, dtype=float, meta=np.empty((0, 0)))
    model = clone(estimator).fit(rows, y, sample_weight=WEIGHTS)
    agree(model, clone(estimator).fit(X, y, sample_weight=WEIGHTS))
    assert sum(seen) >= 2 * N


def test_held_out_errors_are_summed_where_the_rows_are(monkeypatch):
    """With squared error only one model's held-out values come back, not those of all alphas."""
    asked = []
    original = Thin.path

    def path(self, Y, z, mus):
        asked.append(len(mus))
        return original(self, Y, z, mus)

    monkeypatch.setattr(Thin, "path", path)
    estimator = KernelRidge(gamma=0.4, alpha=2.0 ** np.arange(-6, 5), **SETTINGS)
    model = clone(estimator).fit(da.from_array(X, chunks=(97, 3)), NUMBERS, sample_weight=WEIGHTS)
    assert asked == [1]
    agree(model, clone(estimator).fit(X, NUMBERS, sample_weight=WEIGHTS))
