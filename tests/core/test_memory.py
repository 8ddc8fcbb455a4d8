"""A fit keeps to its memory budget, at most four n×n matrices beside the data; and running out."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from fitonce import KernelFisherDiscriminant, LeastSquaresSVC, cross_val_predict
from fitonce.core.memory import (
    Memory,
    NotEnoughMemoryError,
    _group_memory,
    explanation,
    memory_of,
    out_of_memory_explained,
    rows_that_fit,
)

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
        "fitonce.core.memory.memory_of", lambda like: Memory("on cuda:0", 40 * 2**30, 140 * 2**30)
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
        1000, 2.0, Memory("on cuda:0", 2**40, 2**40)
    )  # the estimate was too small
    assert "free" not in explanation(1000, 2.0, None)


def test_memory_of_this_machine():
    memory = memory_of(np.zeros(1))
    assert memory is None or 0 < memory.free <= memory.total


# ---- limits below what the machine has -----------------------------------------------------------


def file_of(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_limit_of_a_container_is_named(tmp_path):
    """Version 2 of cgroups: the tightest of the groups; cached files count as free."""
    file_of(tmp_path, "proc/self/cgroup", "0::/jobs/mine\n")
    group = "sys/fs/cgroup/jobs"
    file_of(tmp_path, f"{group}/memory.max", f"{8 * 2**30}\n")
    file_of(tmp_path, f"{group}/memory.current", f"{2 * 2**30}\n")
    file_of(tmp_path, f"{group}/mine/memory.max", f"{4 * 2**30}\n")
    file_of(tmp_path, f"{group}/mine/memory.current", f"{2 * 2**30}\n")
    file_of(tmp_path, f"{group}/mine/memory.stat", f"anon 5\ninactive_file {2**30}\n")
    own, above = _group_memory(tmp_path)
    assert (own.free, own.total) == (3 * 2**30, 4 * 2**30)
    assert (above.free, above.total) == (6 * 2**30, 8 * 2**30)
    said = explanation(100_000, 2.0, own)
    assert "3.0 GiB of 4.0 GiB were free within the memory limit of this container or job" in said


def test_a_group_without_a_limit(tmp_path):
    file_of(tmp_path, "proc/self/cgroup", "7:cpu:/\n0::/mine\nnonsense\n")
    group = "sys/fs/cgroup/mine"
    file_of(tmp_path, f"{group}/memory.current", f"{2**28}\n")
    for none in ("max\n", ""):
        file_of(tmp_path, f"{group}/memory.max", none)
        assert _group_memory(tmp_path) == []
    assert _group_memory(tmp_path / "absent") == []


def test_the_least_of_all_limits_counts(monkeypatch):
    small = Memory("within a limit", 2**20, 2**30)
    monkeypatch.setattr("fitonce.core.memory._group_memory", lambda root: [small])
    assert memory_of(np.zeros(1)) is small


@pytest.mark.parametrize(
    "model",
    [
        KernelFisherDiscriminant(gamma=0.1, alpha=0.1),
        KernelFisherDiscriminant(penalty="dual", gamma=0.1, alpha=0.1),
        LeastSquaresSVC(gamma=0.1),
        LeastSquaresSVC(),
    ],
)
def test_models_that_are_gone_leave_no_matrix_to_the_garbage_collector(model, data):
    """A cycle of references would keep kernel matrices until the next collection."""
    X, y = (part[:300] for part in data)
    matrix = 8 * len(y) ** 2
    model.fit(X, y)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(3):
            clone(model).fit(X, y).predict_proba(X[:5])
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert kept < matrix
