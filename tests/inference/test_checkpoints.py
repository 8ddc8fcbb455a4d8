"""A checkpoint goes on with the same test and no other; files that cannot serve are told early."""

from __future__ import annotations

import errno
import functools
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import fbeta_score, get_scorer, make_scorer
from sklearn.model_selection import KFold, StratifiedKFold

from fitonce import KernelFisherDiscriminant
from fitonce.inference import permutation_test_score
from fitonce.inference.checkpoint import Checkpoint, fingerprint
from fitonce.positions import permutation_test

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(24, 3)), np.arange(24) % 2
SCALE = 2.0


def scaled(width: float) -> Callable[..., Any]:
    return lambda A, B: np.exp(-width * ((A[:, None] - B) ** 2).sum(axis=2))


def by_global(A: Any, B: Any) -> Any:
    return SCALE * A @ B.T


class Linear:
    """A kernel with a parameter."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def __call__(self, A: Any, B: Any) -> Any:
        return self.slope * A @ B.T

    def twice(self, A: Any, B: Any) -> Any:
        return 2 * self(A, B)


class Slotted:
    __slots__ = ("slope",)

    def __init__(self, slope: float) -> None:
        self.slope = slope


def linear(A: Any, B: Any, slope: float = 1.0) -> Any:
    return slope * A @ B.T


def itself(depth: int) -> int:
    return depth and itself(depth - 1)


SAME: dict[str, Callable[[], Any]] = {
    "closure": lambda: scaled(0.5),
    "lambda": lambda: lambda A, B: A @ B.T,
    "partial": lambda: functools.partial(linear, slope=2.0),
    "callable object": lambda: Linear(2.0),
    "bound method": lambda: Linear(2.0).twice,
    "slots": lambda: Slotted(2.0),
    "function of itself": lambda: itself,
    "scorer": lambda: make_scorer(fbeta_score, beta=2.0),
    "scorer by name": lambda: get_scorer("roc_auc"),
    "built in": lambda: [math.exp, np.exp, np.linalg.norm, len, "a".join],
    "estimator": lambda: KernelFisherDiscriminant(kernel=Linear(1.0), alpha=[0.1, 1.0]),
    "splitter": lambda: StratifiedKFold(3, shuffle=True, random_state=1),
    "generator state": lambda: [np.random.RandomState(3), np.random.default_rng(3)],
    "sparse": lambda: scipy.sparse.csr_matrix(np.eye(3)),
    "objects": lambda: np.array([None, "a", 1.5, np.nan], dtype=object),
    "settings": lambda: {"b": {1, 2}, "a": (np.float64(1.0), np.int64(2), np.dtype("f4"))},
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_thing_made_again(name: str) -> None:
    """As another object, or as the same one twice."""
    thing, again = SAME[name](), SAME[name]()
    assert fingerprint(part=[thing, thing]) == fingerprint(part=[thing, again])


def test_the_same_in_another_process() -> None:
    """No addresses, no order of sets: a lambda, a partial and an object in a script."""
    script = """
import functools
from fitonce.inference.checkpoint import fingerprint
class Kernel:
    def __init__(self, slope): self.slope = slope
    def __call__(self, A, B): return self.slope * A @ B.T
parts = [lambda A: A + 1, functools.partial(pow, 2), Kernel(3.0), {"a", "b", "c"}, {1: None}]
mark = fingerprint(part=parts)
print(mark)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ
    )
    here: dict[str, Any] = {"__name__": "here"}
    exec(compile(script, "script", "exec", dont_inherit=True), here)
    assert run.stdout.strip() == here["mark"]


def other_class(source: str) -> Any:
    made: dict[str, Any] = {"__name__": "nowhere"}
    exec(source, made)  # what a user types into a session
    return made["Kernel"]()


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "two lambdas": (lambda A, B: A @ B.T, lambda A, B: 2 * A @ B.T),
    "closures": (scaled(0.5), scaled(0.6)),
    "defaults": (lambda A, s=1: A * s, lambda A, s=2: A * s),
    "keyword defaults": (lambda A, *, s=1: A * s, lambda A, *, s=2: A * s),
    "names of attributes": (lambda A: A.sum(), lambda A: A.mean()),
    "inner functions": (lambda A: [a + 1 for a in A], lambda A: [a + 2 for a in A]),
    "partials": (functools.partial(linear, slope=1.0), functools.partial(linear, slope=2.0)),
    "parameters": (Linear(1.0), Linear(2.0)),
    "methods": (Linear(1.0).twice, Linear(1.0).__call__),
    "slots": (Slotted(1.0), Slotted(2.0)),
    "code of a class": (
        other_class("class Kernel:\n    def __call__(self, A, B): return A @ B.T"),
        other_class("class Kernel:\n    def __call__(self, A, B): return 2 * A @ B.T"),
    ),
    "code of a property": (
        other_class("class Kernel:\n    @property\n    def slope(self): return 1"),
        other_class("class Kernel:\n    @property\n    def slope(self): return 2"),
    ),
    "scorers": (make_scorer(fbeta_score, beta=2.0), make_scorer(fbeta_score, beta=3.0)),
    "seeds": (np.random.RandomState(0), np.random.RandomState(1)),
    "shapes": (scipy.sparse.csr_matrix((3, 4)), scipy.sparse.csr_matrix((3, 5))),
    "types": (np.arange(3, dtype=np.int32), np.arange(3, dtype=np.float32)),
    "texts and numbers": ("1", 1),
    "nesting": ([["a"], "b"], [["a", "b"]]),
    "built in": (np.exp, np.log),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_another_thing(name: str) -> None:
    first, second = DIFFERENT[name]
    assert fingerprint(part=first) != fingerprint(part=second)


def test_global_names_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(kernel=by_global)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert fingerprint(kernel=by_global) != before


def test_column_names_count() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "c"])
    assert fingerprint(X=table) == fingerprint(X=table.copy())
    assert fingerprint(X=table) != fingerprint(X=table.rename(columns={"a": "b", "b": "a"}))
    assert fingerprint(X=table) != fingerprint(X=table[["b", "a", "c"]])
    mixed = table.assign(d=["x", "y"] * 12)
    assert fingerprint(X=mixed) != fingerprint(X=mixed.assign(d=["y", "x"] * 12))


def test_versions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(X=X)
    monkeypatch.setattr(sys.modules[fingerprint.__module__], "VERSIONS", ("0",))
    assert fingerprint(X=X) != before


@pytest.mark.parametrize(
    "thing", [(i for i in range(3)), threading.Lock(), sys.stderr, {"inside": [threading.Lock()]}]
)
def test_what_cannot_be_identified_is_refused(thing: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot identify a .* in scoring"):
        fingerprint(scoring=thing)


# ---- runs ----------------------------------------------------------------------------------------


def test_a_lambda_of_another_test_is_refused(tmp_path: Path) -> None:
    """Two kernels of one name, two scorers, swapped columns: not the same test."""
    path = tmp_path / "run.npz"
    model = KernelFisherDiscriminant(kernel=scaled(0.5), alpha=1.0)
    options: dict[str, Any] = {"n_permutations": 9, "cv": KFold(3)}
    first = permutation_test_score(model, X, Y, checkpoint=path, **options)
    again = KernelFisherDiscriminant(kernel=scaled(0.5), alpha=1.0)
    known = permutation_test_score(again, X, Y, checkpoint=path, **options)
    np.testing.assert_array_equal(known.permutation_scores, first.permutation_scores)
    other = KernelFisherDiscriminant(kernel=scaled(5.0), alpha=1.0)
    for changed in ({"estimator": other}, {"scoring": make_scorer(fbeta_score, beta=2.0)}):
        with pytest.raises(ValueError, match="belongs to another test"):
            permutation_test_score(
                **{"estimator": model, "X": X, "y": Y, "checkpoint": path, **options, **changed}
            )


@pytest.mark.parametrize("kernel", [Linear(2.0), functools.partial(linear, slope=2.0)])
def test_callable_objects_and_partials_go_on(
    kernel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.npz"

    def run(**options: Any) -> Any:
        model = KernelFisherDiscriminant(kernel=kernel, alpha=1.0)
        return permutation_test_score(model, X, Y, cv=KFold(3), n_permutations=30, **options)

    write, calls = Checkpoint.save, []

    def interrupted(file: Checkpoint, results: Any) -> None:
        write(file, results)
        calls.append(len(results["accuracy"]))
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=path, max_bytes=20_000)
    monkeypatch.undo()
    assert 0 < calls[0] < 30
    resumed = run(checkpoint=path, max_bytes=20_000)
    np.testing.assert_array_equal(resumed.permutation_scores, run(max_bytes=20_000)[1])
    assert resumed.n_placements == run().n_placements


@pytest.mark.parametrize("function", [permutation_test_score, permutation_test])
def test_places_are_checked_before_anything_is_computed(
    function: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = X if function is permutation_test_score else X[:, :, None]

    def run(path: Path) -> None:
        model = KernelFisherDiscriminant("linear", alpha=1.0)
        function(model, data, Y, cv=KFold(3), n_permutations=9, checkpoint=path)

    (tmp_path / "empty.npz").touch()
    with pytest.raises(ValueError, match=r"empty.npz is empty: it was not written by a run"):
        run(tmp_path / "empty.npz")
    (tmp_path / "short.npz").write_bytes(b"PK\x03\x04")
    np.save(tmp_path / "array.npy", np.arange(3))
    for name in ("short.npz", "array.npy"):
        with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
            run(tmp_path / name)
    from fitonce.inference import evaluation

    monkeypatch.setattr(evaluation.Evaluation, "__init__", lambda *_: pytest.fail("computed"))
    with pytest.raises(ValueError, match=r"there is no folder .*nowhere: create it first"):
        run(tmp_path / "nowhere" / "run.npz")
    with pytest.raises(ValueError, match="it is a folder"):
        run(tmp_path)
    if os.name == "posix" and os.getuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(ValueError, match="permission denied"):
            run(tmp_path / "closed" / "run.npz")


def test_a_full_disk_leaves_the_last_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence that names the file; what was there stays, and nothing beside it."""
    file = Checkpoint(tmp_path / "run.npz", "mark")
    file.save({"a": np.arange(2.0)})

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match=r"run.npz cannot be written: the disk is full"):
        file.save({"a": np.arange(3.0)})
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["run.npz"]
    assert len(file.load(5, {"a": ()})["a"]) == 2


def test_two_processes_on_one_file(tmp_path: Path) -> None:
    """Each writes the whole file under a name of its own."""
    file, failures = Checkpoint(tmp_path / "run.npz", "mark"), []

    def write(number: int) -> None:
        try:
            for _ in range(20):
                file.save({"a": np.full(50, float(number))})
                assert file.load(50, {"a": ()})
        except Exception as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not failures and os.listdir(tmp_path) == ["run.npz"]
    assert len(set(file.load(50, {"a": ()})["a"])) == 1


@pytest.mark.parametrize(
    ("most", "shapes"),
    [(3, {"a": (2,), "b": ()}), (4, {"a": ()}), (4, {"a": (3,), "b": ()}), (4, {"b": (), "c": ()})],
    ids=["more than were asked for", "another score", "another shape", "another name"],
)
def test_results_of_other_shapes_are_not_believed(
    most: int, shapes: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    """The right fingerprint is not enough."""
    file = Checkpoint(tmp_path / "run.npz", "mark")
    file.save({"a": np.zeros((4, 2)), "b": np.zeros(4)})
    assert set(file.load(4, {"a": (2,), "b": ()})) == {"a", "b"}
    with pytest.raises(ValueError, match="damaged: it does not contain the scores"):
        file.load(most, shapes)
    file.save({"a": np.zeros((4, 2)), "b": np.zeros(3)})
    with pytest.raises(ValueError, match="damaged: it does not contain the scores"):
        file.load(4, {"a": (2,), "b": ()})
