"""100,000 targets on one GPU, each with an alpha of its own: fitonce beside himalaya, with torch.

The same precomputed linear kernel, five folds and twenty candidates, float64 and float32; all
arrays are on the GPU before the clock starts. Run with

    OMP_NUM_THREADS=8 python benchmarks/targets_gpu.py [--himalaya FOLDER] [--targets 100000]

`--himalaya` is the folder that holds the package `himalaya`, where it is not installed; without it
and without the package, only fitonce is timed. `--out FILE` writes the result there instead of into
`results/`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
import torch
from sklearn.model_selection import KFold

from fitonce import KernelRidge

N, P, FOLDS, ALPHAS = 1000, 5000, 5, np.logspace(0, 6, 20)


def problem(n_targets: int, device: str, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """A linear kernel, and targets of which each has a signal of its own size."""
    random = torch.Generator(device=device).manual_seed(0)
    draw = {"generator": random, "device": device, "dtype": torch.float64}
    X = torch.randn((N, P), **draw)
    Y = torch.empty((N, n_targets), device=device, dtype=dtype)
    for start in range(0, n_targets, 10_000):
        size = min(10_000, n_targets - start)
        signal = X @ (torch.randn((P, size), **draw) / P**0.5)
        strength = 2.0 * torch.rand(size, **draw)
        Y[:, start : start + size] = (signal * strength + torch.randn((N, size), **draw)).to(dtype)
    return X @ X.T, Y


def ours(K: torch.Tensor, Y: torch.Tensor) -> np.ndarray:
    options = {"kernel": "precomputed", "cv": KFold(FOLDS), "fit_intercept": False}
    stored = {"store_dual_coef": True, "store_held_out": False}
    model = KernelRidge(ALPHAS, alpha_per_target=True, **options, **stored).fit(K, Y)
    return np.asarray(model.alpha_)


def theirs(K: torch.Tensor, Y: torch.Tensor) -> np.ndarray:
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import KernelRidgeCV

    backend = set_backend("torch_cuda" if K.is_cuda else "torch")
    given = backend.asarray(ALPHAS, dtype="float64" if Y.dtype == torch.float64 else "float32")
    params = {"n_targets_batch": 20_000, "n_alphas_batch": 5, "n_targets_batch_refit": 20_000}
    model = KernelRidgeCV(
        alphas=given, kernel="precomputed", cv=KFold(FOLDS), solver_params=params
    ).fit(K.to(Y.dtype), Y)
    return np.asarray(backend.to_numpy(model.best_alphas_))


def timed(run: Any, K: torch.Tensor, Y: torch.Tensor) -> tuple[np.ndarray, float, float]:
    """The alphas, seconds and peak GiB beside the data."""
    run(K, Y[:, :2000])
    peak = 0.0
    if K.is_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        torch.cuda.synchronize()
    start = time.perf_counter()
    alphas = run(K, Y)
    if K.is_cuda:
        torch.cuda.synchronize()
        peak = (torch.cuda.max_memory_allocated() - before) / 2**30
    return alphas, time.perf_counter() - start, peak


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--himalaya", default=None)
    parser.add_argument("--targets", type=int, default=100_000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=None)
    asked = parser.parse_args()
    if asked.himalaya is not None:
        sys.path.insert(0, asked.himalaya)
    sides = {"fitonce": ours}
    try:
        import himalaya

        sides["himalaya"] = theirs
        version = getattr(himalaya, "__version__", "")
    except ImportError:
        version = ""
    name = torch.cuda.get_device_name() if asked.device == "cuda" else "CPU"
    result: dict[str, Any] = {"targets": asked.targets, "device": name, "himalaya": version}
    for dtype in (torch.float64, torch.float32):
        K, Y = problem(asked.targets, asked.device, dtype)
        found = {side: timed(run, K, Y) for side, run in sides.items()}
        part: dict[str, Any] = {
            side: {"seconds": seconds, "peak_GiB": peak}
            for side, (_, seconds, peak) in found.items()
        }
        if "himalaya" in found:
            same = np.isclose(found["fitonce"][0], found["himalaya"][0], rtol=1e-4)
            part["same_alpha"] = float(np.mean(same))
        result[str(dtype).removeprefix("torch.")] = part
        print(json.dumps(part), flush=True)
    if asked.out is None:
        common.write(__file__, result)
    else:
        asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
