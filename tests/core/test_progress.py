"""Progress goes to the listener of the thread, and to nobody else."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from fitonce import KernelFisherDiscriminant, permutation_test_score
from fitonce.core.progress import heard, listening, say


def test_only_inside_and_the_innermost_listens():
    outer, inner = [], []
    say(0, 1, "before")
    assert not heard()
    with listening(lambda *told: outer.append(told)):
        say(1, 3, "one")
        with listening(lambda *told: inner.append(told)):
            say(2, 3, "two")
        say(3, 3, "three")
        assert heard()
    say(4, 4, "after")
    assert outer == [(1, 3, "one"), (3, 3, "three")] and inner == [(2, 3, "two")]


def test_an_error_ends_the_listening():
    with pytest.raises(RuntimeError, match="broken"), listening(lambda *told: None):
        raise RuntimeError("broken")
    assert not heard()


def test_another_thread_is_not_heard():
    told = []
    with listening(lambda *words: told.append(words)):
        thread = threading.Thread(target=lambda: say(1, 1, "elsewhere"))
        thread.start()
        thread.join()
    assert told == []


def test_permutations_and_kernels_are_told_instead_of_printed(capsys):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    told = []
    with listening(lambda *words: told.append(words)):
        KernelFisherDiscriminant(verbose=1).fit(X, y)
        kernels = [done for done, _, what in told if what == "kernels tried"]
        assert kernels == list(range(1, len(kernels) + 1)) and len(kernels) > 2
        permutation_test_score(
            KernelFisherDiscriminant(gamma=0.2, alpha=1.0), X, y, n_permutations=20, verbose=1
        )
    assert told[-1] == (20, 20, "permutations") and capsys.readouterr().err == ""
    KernelFisherDiscriminant(verbose=1).fit(X, y)
    assert "fitonce: " in capsys.readouterr().err
