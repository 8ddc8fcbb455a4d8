"""Fits side by side: no state of the process is touched, and every doubt is told once."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import parallel_config

from fitonce import KernelFisherDiscriminant, LeastSquaresSVC, NumericalWarning, assess
from fitonce.core.numerical_warnings import warn_numerical, warnings_held_back
from fitonce.rows import open_rows

CONSTANT = "all training rows look the same to the kernel"


def problem(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0.4).astype(int)


def side_by_side(job, n_jobs, n_threads=4):
    """Jobs of a few threads, which all start at the same time."""
    start = threading.Barrier(n_threads)

    def run(number):
        if number < n_threads:
            start.wait()
        return job(number)

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(run, range(n_jobs)))


def predict_blocks(number):
    import pandas as pd

    X, y = problem()
    named = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LeastSquaresSVC(gamma=0.3, alpha=0.1, landmarks=10, random_state=0).fit(named, y)
    for _ in range(20):
        model.predict(open_rows([X[:20], X[20:]]))


def fit(number):
    KernelFisherDiscriminant().fit(*problem(seed=number))


def judge(number):
    assess(LeastSquaresSVC(gamma=0.3, alpha=0.1), *problem(seed=number), permutations=0, cv=3)


def filters():
    """All but those that scikit-learn's own checks of arrays leave behind in threads."""
    return [item for item in warnings.filters if item[2].__name__ != "ComplexWarning"]


@pytest.mark.parametrize("job", [fit, predict_blocks, judge])
def test_the_filters_of_the_process_stay_as_they_are(job):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="a filter of our own")
        before, shown = filters(), warnings.showwarning
        for _ in range(2):
            side_by_side(job, 8)
            assert filters() == before and warnings.showwarning is shown
    with pytest.warns(UserWarning, match="still heard"):
        warnings.warn("still heard", UserWarning, stacklevel=1)


@pytest.mark.parametrize("backend", [None, "threading", "loky"])
def test_a_doubt_of_every_kernel_is_told_once(backend):
    """Whichever thread or process tries the kernels; the warning points at this file."""
    X, y = np.ones((20, 2)), np.arange(20) % 2
    with pytest.warns(NumericalWarning, match=CONSTANT) as told:
        if backend is None:
            LeastSquaresSVC(calibration=None).fit(X, y)
        else:
            with parallel_config(backend=backend, n_jobs=2):
                LeastSquaresSVC(calibration=None).fit(X, y)
    said = [item for item in told if CONSTANT in str(item.message)]
    assert len(said) == 1 and said[0].filename == __file__


def test_warnings_held_back_belong_to_their_thread():
    def hold(number):
        with warnings_held_back() as mine:
            for step in range(50):
                warn_numerical(f"{number}, {step}")
        return mine

    for number, mine in enumerate(side_by_side(hold, 8)):
        assert mine == [f"{number}, {step}" for step in range(50)]
    with warnings_held_back() as outer:
        with warnings_held_back() as held:
            warn_numerical("within")
        warn_numerical("without")
    assert (held, outer) == (["within"], ["without"])
    with pytest.warns(NumericalWarning, match="told"):
        warn_numerical("told")
