"""Progress goes to the callback of the thread, and to no other."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from fitonce import KernelFisherDiscriminant, permutation_test_score
from fitonce.core.progress import has_callback, progress_callback, report_progress


def test_only_inside_and_the_innermost_is_called():
    outer, inner = [], []
    report_progress(0, 1, "before")
    assert not has_callback()
    with progress_callback(lambda *told: outer.append(told)):
        report_progress(1, 3, "one")
        with progress_callback(lambda *told: inner.append(told)):
            report_progress(2, 3, "two")
        report_progress(3, 3, "three")
        assert has_callback()
    report_progress(4, 4, "after")
    assert outer == [(1, 3, "one"), (3, 3, "three")] and inner == [(2, 3, "two")]


def test_an_error_ends_the_callback():
    with pytest.raises(RuntimeError, match="broken"), progress_callback(lambda *told: None):
        raise RuntimeError("broken")
    assert not has_callback()


def test_another_thread_does_not_call_it():
    told = []
    with progress_callback(lambda *words: told.append(words)):
        thread = threading.Thread(target=lambda: report_progress(1, 1, "elsewhere"))
        thread.start()
        thread.join()
    assert told == []


def test_permutations_and_kernels_are_told_instead_of_printed(capsys):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    told = []
    with progress_callback(lambda *words: told.append(words)):
        KernelFisherDiscriminant(verbose=1).fit(X, y)
        kernels = [done for done, _, what in told if what == "kernels tried"]
        assert kernels == list(range(1, len(kernels) + 1)) and len(kernels) > 2
        permutation_test_score(
            KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, n_permutations=20, verbose=1
        )
    assert told[-1] == (20, 20, "permutations") and capsys.readouterr().err == ""
    KernelFisherDiscriminant(verbose=1).fit(X, y)
    assert "fitonce: " in capsys.readouterr().err
