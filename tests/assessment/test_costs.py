"""What `assess` fits, decomposes and keeps, and how it tells how far it is."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from sklearn.model_selection import LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, assess
from fitonce.core.progress import progress_callback

N = 60


class Counts:
    """Factorisations of matrices as large as a training set, and fits with how many of the earlier
    ones were still in memory.
    """

    def __init__(self) -> None:
        self.decompositions = 0
        self.fits = 0
        self.alive_at_once = 0
        self.models: list[weakref.ref[Any]] = []

    def fitted(self, model: Any) -> None:
        gc.collect()
        self.fits += 1
        self.models.append(weakref.ref(model))
        alive = {id(found) for found in (model_() for model_ in self.models) if found is not None}
        self.alive_at_once = max(self.alive_at_once, len(alive))


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    counts = Counts()

    def counting_decompositions(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(a: Any, *args: Any, **kwargs: Any) -> Any:
            counts.decompositions += a.shape[0] >= N // 2
            return original(a, *args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    def counting_fits(kind: type) -> None:
        original = kind.fit

        def counted(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, X, *args, **kwargs)
            counts.fitted(self)
            return result

        monkeypatch.setattr(kind, "fit", counted)

    for owner, name in (
        (scipy.linalg, "eigh"),
        (scipy.linalg.lapack, "dpotrf"),
        (scipy.linalg, "cho_factor"),
        (np.linalg, "inv"),
    ):
        counting_decompositions(owner, name)
    for kind in (KernelFisherDiscriminant, LeastSquaresSVC, KernelRidge):
        counting_fits(kind)
    return counts


def data():
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    return rng.normal(size=(N, 3)) + y[:, None], y


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize(
    "model",
    [LeastSquaresSVC(gamma=0.2, alpha=1.0, calibration=None), KernelRidge(gamma=0.2, alpha=1.0)],
    ids=["labels", "numbers"],
)
def test_fixed_parameters_cost_one_decomposition_and_no_fit(model, repeats, counts):
    X, y = data()
    answer = assess(model, X, y, cv=5, repeats=repeats, permutations=0)
    pairs = int(hasattr(model, "decision_function"))  # AUC leaves out every two rows: one more
    assert counts.fits == 0 and counts.decompositions == 1 + pairs
    assert answer.route.name == "one" and answer.route.fitted_folds == 0
    assert answer.choices == [{"gamma": 0.2, "alpha": 1.0, "penalty": "function"}] * 5 * repeats


def test_leave_one_out_of_fixed_parameters_is_one_decomposition(counts):
    X, y = data()
    answer = assess(KernelRidge(1.0, gamma=0.2), X, X[:, 0] + y, cv=LeaveOneOut(), permutations=0)
    assert counts.fits == 0 and counts.decompositions == 1
    assert "corrected" in answer.r2.method or "independent" in answer.r2.method


@pytest.mark.parametrize(
    "model",
    [
        KernelFisherDiscriminant(gamma=0.2, alpha=1.0),
        KernelFisherDiscriminant(gamma=0.2),
        make_pipeline(StandardScaler(), LeastSquaresSVC(gamma=0.2)),
    ],
    ids=["probabilities", "tuned", "pipeline"],
)
def test_what_needs_a_fit_is_fitted_once_a_fold_and_let_go(model, counts):
    """Temperatures and tuned values belong to a training set; its decomposition is not kept."""
    X, y = data()
    answer = assess(model, X, y, cv=5, permutations=0)
    partitions = 1 if answer.route.name == "one" else 5  # the interval takes five of tuned models
    assert counts.fits == 5 * partitions and counts.alive_at_once <= 2
    assert answer.probabilities is not None and len(answer.choices) == 5


def test_progress_is_told_to_the_callable_or_to_who_listens():
    X, y = data()
    model = make_pipeline(StandardScaler(), KernelRidge(gamma=0.2, alpha=1.0))
    told, heard = [], []
    with progress_callback(lambda *words: heard.append(words)):
        assess(model, X, y, cv=3, repeats=2, permutations=0, progress=lambda *w: told.append(w))
        assert heard == []
        assess(model, X, y, cv=3, repeats=2, permutations=39)
    assert told == [(done, 15, "cross-validation") for done in range(16)]
    assert heard[:16] == told and heard[-1] == (39, 39, "permutations")
