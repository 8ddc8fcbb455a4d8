"""A fit keeps to its memory budget, at most four n×n matrices beside the data; and running out."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fitonce import KernelFisherDiscriminant, LeastSquaresSVC, cross_val_predict
from fitonce.core.memory import (
    Memory,
    NotEnoughMemoryError,
    explanation,
    memory_of,
    out_of_memory_explained,
    rows_that_fit,
)
from optional import require

N = 1200


def matrices_at_peak(task) -> float:
    """Peak of what NumPy allocates during the task, in n×n float64 matrices."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1] / (8 * N * N)
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    return rng.normal(size=(N, 5)) + 0.5 * y[:, None], y


@pytest.mark.parametrize("penalty", ["function", "dual"])
@pytest.mark.parametrize("estimator", [KernelFisherDiscriminant, LeastSquaresSVC])
def test_a_fit_needs_at_most_four_matrices(estimator, penalty, data):
    model = estimator(gamma=0.1, alpha=2.0 ** np.arange(-10, 11), penalty=penalty)
    assert 1.0 < matrices_at_peak(lambda: model.fit(*data)) <= 4.0


def test_a_search_over_gamma_needs_no_more(data):
    """The decompositions of others are not kept beside the one that is made."""
    assert 1.0 < matrices_at_peak(lambda: KernelFisherDiscriminant().fit(*data)) <= 3.2


def test_cross_validation_at_fixed_parameters_needs_less(data):
    model = KernelFisherDiscriminant(gamma=0.1, alpha=1.0)
    assert 1.0 < matrices_at_peak(lambda: cross_val_predict(model, *data, cv=10)) <= 3.0


def test_the_measure_sees_a_matrix_too_many():
    assert matrices_at_peak(lambda: [np.ones((N, N)) for _ in range(5)]) > 4.0


# ---- running out of memory -----------------------------------------------------------------------


@pytest.fixture
def xp(request):
    return require(request.param)


class OutOfMemoryError(RuntimeError):
    """As torch's, by name."""


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemoryError("CUDA out of memory. Tried to allocate 32.00 GiB"),
        MemoryError("Unable to allocate 32.0 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_out_of_memory_says_what_was_asked_what_was_free_and_what_to_do(error, monkeypatch):
    monkeypatch.setattr(
        "fitonce.core.memory.memory_of", lambda like: Memory("cuda:0", 40 * 2**30, 140 * 2**30)
    )
    with pytest.raises(NotEnoughMemoryError) as told, out_of_memory_explained(65_536, np.zeros(0)):
        raise error
    assert told.value.__cause__ is error
    message = str(told.value)
    for part in (
        "65,536 rows",
        "32.0 GiB",
        "64.0 GiB",
        "40.0 GiB of 140.0 GiB were free on cuda:0",
        "About 51,000 rows",
        "landmarks=",
    ):
        assert part in message


def test_other_errors_pass_and_nested_explanations_do_not_pile_up():
    with pytest.raises(ZeroDivisionError), out_of_memory_explained(10, np.zeros(0)):
        raise ZeroDivisionError
    with (
        pytest.raises(NotEnoughMemoryError, match=r"^not enough memory for 20 rows"),
        out_of_memory_explained(10, np.zeros(0)),
        out_of_memory_explained(20, np.zeros(0)),
    ):
        raise MemoryError


@pytest.mark.parametrize(
    "xp", ["numpy", pytest.param("torch", marks=pytest.mark.torch)], indirect=True
)
def test_a_matrix_that_no_machine_holds(xp):
    n = 10**8
    with (
        pytest.raises(NotEnoughMemoryError, match=r"100,000,000 rows.*landmarks="),
        out_of_memory_explained(n, xp.zeros(1)),
    ):
        xp.empty((n, n))


def test_rows_that_fit_do_fit_and_are_fewer_than_asked():
    for free in (10**6, 10**9, 40 * 2**30):
        rows = rows_that_fit(free, 2.0)
        assert 16 * rows**2 <= free < 16 * (1.2 * rows) ** 2
    assert "About 750 rows" in explanation(
        1000, 2.0, Memory("cuda:0", 2**40, 2**40)
    )  # the estimate was too small
    assert "free" not in explanation(1000, 2.0, None)


def test_memory_of_this_machine():
    memory = memory_of(np.zeros(1))
    assert memory is None or 0 < memory.free <= memory.total
