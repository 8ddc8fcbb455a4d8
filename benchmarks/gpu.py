"""What runs on one GPU: times, memory, and how far from NumPy.

    python benchmarks/gpu.py                    # everything; each part is written as it is finished
    python benchmarks/gpu.py --only path fit
    python benchmarks/gpu.py --device cpu --scale 16      # does it run? Nothing is written

- path: leave-one-out of every row for 21 alphas through the block band form, from the kernel
  matrix on, beside one bare `torch.linalg.eigh` of it (up to 40,000 rows); peak of memory;
- fit: `LeastSquaresSVC.fit` from the rows; landmarks: a million rows on 4,096 landmarks;
- permutations: 10,000 of ten folds of 16,384 rows, beside the bare product;
- targets: 100,000 targets, each with an alpha of its own, beside himalaya on the same GPU;
- agreement: the largest difference of decisions and held-out values from NumPy's, relative to the
  largest of them, over estimators, penalties, weights, folds, landmarks, by torch and CuPy;
- dask: the million rows as a Dask array of CuPy arrays. From its rate: 100,000,000 rows on 1, 8 and
  64 GPUs, if every worker does its share at that rate and sums merge in a tree of 8 branches at
  10 GB/s.

Everything is float64 with an rbf kernel and a free bias; arrays are on the device before a clock
starts.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import common
import numpy as np
import torch
from sklearn.model_selection import KFold

import fitonce.tuning.decompose as decompose
from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, permutation_test_score
from fitonce.core.arrays import to_numpy
from fitonce.core.banded import Banded
from fitonce.core.smoothers import FunctionNorm
from fitonce.estimators.fitted import held_out_output

GAMMA, EIGH_UP_TO = 0.1, 40_000
ALPHAS = 2.0 ** np.arange(-10, 11)
Found = dict[str, Any]


class Device:
    """Where the arrays live, and the clock and the memory there."""

    def __init__(self, name: str, scale: int) -> None:
        self.name, self.scale, self.cuda = name, scale, name.startswith("cuda")

    def forget(self) -> None:
        gc.collect()
        if self.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def timed(self, task: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
        """The shortest of some times, and the last result."""
        best, result = math.inf, None
        for _ in range(repeats):
            result = None
            self.wait()
            start = time.perf_counter()
            result = task()
            self.wait()
            best = min(best, time.perf_counter() - start)
        return best, result

    def GiB(self) -> float:
        return torch.cuda.max_memory_allocated() / 2**30 if self.cuda else 0.0

    def rows(self, n: int, p: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Standard normal features and a noisy function of two of them."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, p))
        y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n)
        return torch.asarray(X, device=self.name), torch.asarray(y, device=self.name)


def kernel_of(X: torch.Tensor) -> torch.Tensor:
    """The rbf kernel matrix, a block of rows at a time: no second matrix of its size."""
    K = torch.empty((len(X), len(X)), dtype=X.dtype, device=X.device)
    for start in range(0, len(X), 2048):
        block = torch.cdist(X[start : start + 2048], X, compute_mode="donot_use_mm_for_euclid_dist")
        K[start : start + 2048] = block.square_().mul_(-GAMMA).exp_()
    return K


def path(device: Device) -> Found:
    found: Found = {}
    for n in (size // device.scale for size in (4096, 8192, 16_384, 32_768, 65_536)):
        X, y = device.rows(n, 10)
        Q0 = torch.full((n, 1), n**-0.5, dtype=torch.float64, device=device.name)
        seconds = []
        for _ in range(2):
            K = kernel_of(X)
            device.forget()
            seconds.append(device.timed(partial(leave_one_out, K, Q0, y[:, None]))[0])
        row = found[str(n)] = {"band": min(seconds), "peak_GiB": device.GiB()}
        del K
        device.forget()
        if n <= EIGH_UP_TO:
            K = kernel_of(X)
            row["eigh"] = device.timed(lambda K=K: torch.linalg.eigh(K), 1 if n > 20_000 else 2)[0]
            row["eigh / band"] = row["eigh"] / row["band"]
    return {"rows": found, "alphas": len(ALPHAS)}


def leave_one_out(K: torch.Tensor, Q0: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
    """Held-out residuals at every alpha."""
    KQ0 = K @ Q0
    smoother = FunctionNorm(Banded.of(K, Q0), KQ0)
    if not smoother.admits(ALPHAS):  # as a fit does it: the band form makes its factors here
        raise ValueError(f"there is no model at an alpha of {ALPHAS[0]:g}")
    return smoother.leave_one_out(smoother.project(Y), ALPHAS).residual


def fit(device: Device) -> Found:
    found: Found = {}
    for n in (size // device.scale for size in (4096, 16_384, 32_768)):
        X, y = device.rows(n, 10)
        labels, model = (y > 0).to(torch.int64), LeastSquaresSVC(gamma=GAMMA, alpha=ALPHAS)
        device.forget()
        seconds, _ = device.timed(lambda X=X, y=labels, m=model: m.fit(X, y), 2)
        found[str(n)] = {"seconds": seconds, "peak_GiB": device.GiB()}
    return {"rows": found}


def landmarks(device: Device) -> Found:
    n = 1_000_000 // device.scale
    X, y = device.rows(n, 20)
    device.forget()
    before = device.GiB()
    model = KernelRidge(gamma=GAMMA / 2, alpha=ALPHAS, landmarks=4096 // device.scale)
    seconds, _ = device.timed(lambda: model.set_params(random_state=0).fit(X, y))
    return {"n": n, "seconds": seconds, "extra_peak_GiB": device.GiB() - before}


def permutations(device: Device) -> Found:
    n, count = 16_384 // device.scale, 10_000 // device.scale
    X, y = device.rows(n, 10)
    K, labels = kernel_of(X), (to_numpy(y) > 0).astype(int)
    right = torch.asarray(np.random.default_rng(1).normal(size=(n, count)), device=device.name)
    model = KernelFisherDiscriminant("precomputed", alpha=1.0)
    given = {"cv": KFold(10, shuffle=True, random_state=0), "n_permutations": count}

    def test(mode: str) -> Callable[[], Any]:
        return lambda: permutation_test_score(model, K, labels, permute=mode, **given)

    product = device.timed(lambda: (K @ right).sum().item(), 3)[0]
    found = {mode: device.timed(test(mode), 3)[0] for mode in ("cosets", "free")}
    return {"n": n, "permutations": count, "product": product, **found}


def targets(device: Device) -> Found:
    n, p, count = 1000, 5000, 100_000 // device.scale
    random = torch.Generator(device=device.name).manual_seed(0)
    drawn: Any = {"generator": random, "device": device.name, "dtype": torch.float64}
    X = torch.randn((n, p), **drawn)
    Y = torch.empty((n, count), device=device.name, dtype=torch.float64)
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        signal = X @ (torch.randn((p, size), **drawn) / p**0.5)
        noise = torch.randn((n, size), **drawn)
        Y[:, start : start + size] = signal * (2.0 * torch.rand(size, **drawn)) + noise
    K, alphas, cv = X @ X.T, np.logspace(0, 6, 20), KFold(5)
    ours = KernelRidge(
        alphas, kernel="precomputed", cv=cv, fit_intercept=False, alpha_per_target=True,
        store_dual_coef=True, store_held_out=False,
    )  # fmt: skip
    ours.fit(K, Y[:, :2000])  # libraries load
    found: Found = {"targets": count, "fitonce": device.timed(lambda: ours.fit(K, Y), 2)[0]}
    if find_spec("himalaya"):
        from himalaya.backend import set_backend
        from himalaya.kernel_ridge import KernelRidgeCV

        backend = set_backend("torch_cuda" if device.cuda else "torch")
        given = backend.asarray(alphas, dtype="float64")
        batches = {"n_targets_batch": 20_000, "n_alphas_batch": 5, "n_targets_batch_refit": 20_000}
        theirs = KernelRidgeCV(given, kernel="precomputed", cv=cv, solver_params=batches)
        theirs.fit(K, Y[:, :2000])
        found["himalaya"] = device.timed(lambda: theirs.fit(K, Y), 2)[0]
    return found


def agreement(device: Device) -> Found:
    decompose.BAND_FROM = 100  # so that the band form is the one compared
    libraries: dict[str, Any] = {"torch": lambda A: torch.asarray(A, device=device.name)}
    if find_spec("cupy") and device.cuda:
        import cupy

        libraries["cupy"] = cupy.asarray
    return {name: differences(move) for name, move in libraries.items()}


def differences(move: Callable[[np.ndarray], Any]) -> Found:
    rng, n = np.random.RandomState(0), 300
    X, weights = rng.randn(n, 4), rng.rand(n) + 0.2
    two = (X[:, 0] * X[:, 1] + 0.4 * rng.randn(n) > 0).astype(int)
    models = [
        (KernelFisherDiscriminant, two),
        (KernelFisherDiscriminant, np.abs(X[:, :3]).argmax(axis=1)),
        (LeastSquaresSVC, two),
        (KernelRidge, X @ [1.0, 2.0, 3.0, 4.0] + rng.randn(n)),
    ]
    settings = itertools.product(
        models, ("function", "dual"), (None, weights), (None, 40, X[:30]), (None, 4), (0.5, "tune")
    )
    worst: dict[str, float] = {}
    count = others = 0
    for (kind, y), penalty, w, points, cv, alpha in settings:
        given = {"gamma": 0.3, "alpha": alpha, "penalty": penalty, "landmarks": points, "cv": cv}
        model = {**given, "random_state": 0}
        host = kind(**model).fit(X, y, sample_weight=w)
        weight = None if w is None else move(w)
        there = kind(**model).fit(move(X), move(y), sample_weight=weight)
        count += 1
        if host.alpha_ != there.alpha_:
            others += 1
            continue
        name = f"{'tuned' if alpha == 'tune' else 'fixed'}, "
        name += "exact" if points is None else "landmarks"
        pairs = [(output(there, move(X)), output(host, X))]
        pairs += [(held_out_output(there), held_out_output(host))]
        apart = max(np.max(np.abs(a - b)) / np.max(np.abs(b)) for a, b in pairs)
        worst[name] = max(worst.get(name, 0.0), float(apart))
    return {"models": count, "another alpha chosen": others, "largest difference": worst}


def output(model: Any, X: Any) -> np.ndarray:
    return to_numpy(getattr(model, "decision_function", model.predict)(X))


def dask(device: Device) -> Found:
    if not (find_spec("dask") and find_spec("cupy") and device.cuda):
        return {}
    import cupy
    import dask
    import dask.array as da

    n, m, p = 1_000_000, 4096, 20
    rng = np.random.default_rng(0)
    X = cupy.asarray(rng.normal(size=(n, p)))
    y = cupy.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.5 * cupy.asarray(rng.normal(size=n))
    targets, chunked = cupy.asnumpy(y), da.from_array(X, chunks=(n // 8, p), asarray=False)

    def fitted(X: Any, y: Any, m: int = m) -> float:
        model = KernelRidge(gamma=0.05, alpha=ALPHAS, landmarks=m, random_state=0)
        return device.timed(lambda: model.fit(X, y))[0]

    fitted(X[:50_000], y[:50_000], 512)  # libraries load
    one = fitted(X, y)
    with dask.config.set(scheduler="threads", num_workers=1):
        whole, part = fitted(chunked, targets), fitted(chunked[: n // 4], targets[: n // 4])
    each = (whole - part) / (n - n // 4)
    merge = 8 * 8 * m * m / 10e9
    planned = {
        str(cards): whole - n * each + each * 1e8 / cards
        + math.ceil(math.log(cards, 8) if cards > 1 else 0) * merge
        for cards in (1, 8, 64)
    }  # fmt: skip
    return {"one array": one, "Dask": whole, "seconds a row": each, "planned": planned}


TASKS = {
    "path": path,
    "fit": fit,
    "landmarks": landmarks,
    "permutations": permutations,
    "targets": targets,
    "agreement": agreement,
    "dask": dask,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=int, default=1, help="problems are so many times smaller")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    device, file = Device(given.device, given.scale), common.RESULTS / "gpu.json"
    for name in given.only:
        device.forget()
        found = TASKS[name](device)
        print(name, found, flush=True)
        if found and device.cuda and device.scale == 1:
            tasks = json.loads(file.read_text(encoding="utf-8"))["tasks"]
            made = {"device": torch.cuda.get_device_name(), **found}
            tasks[name] = common.record(f"gpu.py {name}", made)
            file.write_text(common.compact({"tasks": tasks}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
