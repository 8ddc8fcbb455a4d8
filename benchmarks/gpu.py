"""Absolute times on one GPU, float64: the exact leave-one-out path, k-fold, a whole fit, and
landmarks on a million rows.

Everything is for 21 values of alpha, an rbf kernel of 10 features and a free bias, and starts from
the kernel matrix on the device:

- `path`: leave-one-out residuals of every row for every alpha through the block band form
  (`Banded`), beside one bare `torch.linalg.eigh` of the same matrix and beside the same path
  through eigenvectors (`FunctionNorm`); how far the two differ, over all alpha and over those of at
  least 1e-4 of the largest eigenvalue. No eigh above 40,000 rows;
- `refit`: the path's value for the last row, and the k-fold values of the last tenth, beside models
  solved without those rows;
- `folds`: 10-fold held-out residuals for every alpha, by both forms;
- `fit`: `LeastSquaresSVC.fit` from the rows, kernel matrix and everything after it included;
- `landmarks`: `KernelRidge(landmarks=4096)` on 1,000,000 rows of 20 features.

    python benchmarks/gpu.py                      # what results/gpu.json does not have yet
    python benchmarks/gpu.py --parts path --n 4096 --again

Each row is written as soon as it is known. `--device cpu` with a small --n tries the script out.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np
import torch

from fitonce import KernelRidge, LeastSquaresSVC
from fitonce.core.band import WIDTH
from fitonce.core.banded import Banded
from fitonce.core.smoothers import FunctionNorm
from fitonce.core.spectrum import spectrum_of_kernel

SIZES = {
    "path": [4096, 8192, 16_384, 32_768, 65_536],
    "refit": [16_384, 65_536],
    "folds": [4096, 16_384],
    "fit": [4096, 16_384, 32_768],
    "landmarks": [1_000_000],
}
GAMMA = 0.1
ALPHAS = 2.0 ** np.arange(-10, 11)
EIGH_UP_TO = 40_000


class Device:
    """Where the arrays live, and the clock and the memory there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cuda = name.startswith("cuda")

    @property
    def title(self) -> str:
        return torch.cuda.get_device_name(self.name) if self.cuda else self.name

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def forget(self) -> None:
        gc.collect()
        if self.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def timed(self, task: Callable[[], Any]) -> tuple[float, Any]:
        self.wait()
        start = time.perf_counter()
        result = task()
        self.wait()
        return time.perf_counter() - start, result

    def peak_bytes(self) -> int:
        return torch.cuda.max_memory_allocated() if self.cuda else 0


def rows_of(n: int, p: int, device: Device) -> tuple[torch.Tensor, torch.Tensor]:
    """Standard normal features and a noisy function of two of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n)
    return torch.asarray(X, device=device.name), torch.asarray(y, device=device.name)


def kernel_of(X: torch.Tensor) -> torch.Tensor:
    """The rbf kernel matrix, a block of rows at a time: no second matrix of its size."""
    n = X.shape[0]
    K = torch.empty((n, n), dtype=X.dtype, device=X.device)
    for start in range(0, n, 2048):
        block = torch.cdist(X[start : start + 2048], X, compute_mode="donot_use_mm_for_euclid_dist")
        K[start : start + 2048] = block.square_().mul_(-GAMMA).exp_()
    return K


def bias(n: int, device: Device) -> torch.Tensor:
    return torch.full((n, 1), n**-0.5, dtype=torch.float64, device=device.name)


def band_form(K: torch.Tensor, Q0: torch.Tensor) -> FunctionNorm:
    KQ0 = K @ Q0
    return FunctionNorm(Banded.of(K, Q0), KQ0)


def eigen_form(K: torch.Tensor, Q0: torch.Tensor) -> FunctionNorm:
    KQ0 = K @ Q0
    return FunctionNorm(spectrum_of_kernel(K, Q0), KQ0)


def check(smoother: FunctionNorm) -> None:
    """As a fit does it: the band form makes its factors here."""
    if not smoother.admits(ALPHAS):
        raise ValueError(f"there is no model at an alpha of {ALPHAS[0]:g}")


def leave_one_out(smoother: FunctionNorm, Y: torch.Tensor) -> torch.Tensor:
    """Held-out residuals at every alpha."""
    check(smoother)
    return smoother.leave_one_out(smoother.project(Y), ALPHAS).residual


def band_path(K: torch.Tensor, Q0: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
    return leave_one_out(band_form(K, Q0), Y)


def eigen_path(K: torch.Tensor, Q0: torch.Tensor, Y: torch.Tensor) -> tuple[torch.Tensor, float]:
    smoother = eigen_form(K, Q0)
    return leave_one_out(smoother, Y), smoother.largest


def path(n: int, device: Device, repeats: int) -> dict[str, Any]:
    X, y = rows_of(n, 10, device)
    Q0, Y = bias(n, device), y[:, None]
    seconds = []
    for _ in range(repeats):
        held_out = None
        K = kernel_of(X)
        device.forget()
        elapsed, held_out = device.timed(lambda K=K: band_path(K, Q0, Y))
        seconds.append(elapsed)
    row: dict[str, Any] = {
        "band": min(seconds),
        "band, all runs": seconds,
        "peak_matrices": device.peak_bytes() / (8 * n * n),
    }
    row["peak_GiB"] = device.peak_bytes() / 2**30
    del K
    if n > EIGH_UP_TO:
        return row
    K = kernel_of(X)
    row["eigh"] = min(
        device.timed(lambda: torch.linalg.eigh(K))[0] for _ in range(1 if n > 20_000 else repeats)
    )
    row["eigenvalue form"], (expected, largest) = device.timed(lambda: eigen_path(K, Q0, Y))
    error = (held_out - expected).abs().amax(dim=(1, 2)) / expected.abs().amax(dim=(1, 2))
    well = torch.asarray(1e-4 * largest <= ALPHAS, device=error.device)
    row["smallest alpha / largest eigenvalue"] = float(ALPHAS[0] / largest)
    row["error"] = float(error.max())
    row["error, alpha ≥ 1e-4 λ_max"] = float(error[well].max())
    row["eigh / band"] = row["eigh"] / row["band"]
    return row


def refit(n: int, device: Device, repeats: int) -> dict[str, Any]:
    """A Cholesky factor of K + alpha·I holds that of every leading block.

    Models without the last rows, solved literally.
    """
    X, y = rows_of(n, 10, device)
    Q0, Y = bias(n, device), y[:, None]
    alpha = float(ALPHAS[len(ALPHAS) // 2])
    tenth = np.arange(n - n // 10, n)
    smoother = band_form(kernel_of(X), Q0)
    targets = smoother.project(Y)
    residual = smoother.leave_one_out(targets, np.array([alpha])).residual
    held_out = float(Y[-1, 0] - residual[0, -1, 0])
    removal, fitted = smoother.leave_out(tenth, alpha), smoother.fit(targets, alpha)
    fold = Y[tenth] - removal.held_out(fitted).residual
    del smoother, targets, removal, fitted
    device.forget()
    K = kernel_of(X)
    K.diagonal().add_(alpha)
    torch.linalg.cholesky(K, out=K)
    without_one = float(literal(K, X, y, n - 1, alpha)[0])
    without_fold = literal(K, X, y, int(tenth[0]), alpha)
    scale = float(y.abs().max())
    return {
        "alpha": alpha,
        "leave-one-out, last row, error": abs(held_out - without_one) / scale,
        "fold of the last tenth, error": float((fold[:, 0] - without_fold).abs().max()) / scale,
    }


def literal(
    L: torch.Tensor, X: torch.Tensor, y: torch.Tensor, n_train: int, alpha: float
) -> torch.Tensor:
    """Predictions for the rows after the first n_train by the model of those.

    (K + alpha I) a + b = y, 1ᵀa = 0.
    """
    L = L[:n_train, :n_train]
    right = torch.stack([y[:n_train], torch.ones_like(y[:n_train])], dim=1)
    solved = torch.linalg.solve_triangular(L, right, upper=False)
    solved = torch.linalg.solve_triangular(L.mT, solved, upper=True)
    b = solved[:, 0].sum() / solved[:, 1].sum()
    dual = solved[:, 0] - b * solved[:, 1]
    new = (
        torch.cdist(X[n_train:], X[:n_train], compute_mode="donot_use_mm_for_euclid_dist")
        .square_()
        .mul_(-GAMMA)
        .exp_()
    )
    return new @ dual + b


def folds(n: int, device: Device, repeats: int) -> dict[str, Any]:
    X, y = rows_of(n, 10, device)
    Q0, Y = bias(n, device), y[:, None]
    tests = np.array_split(np.random.default_rng(0).permutation(n), 10)

    def held_out(smoother: FunctionNorm) -> torch.Tensor:
        check(smoother)
        targets = smoother.project(Y)
        parts = []
        for alpha in ALPHAS.tolist():
            fitted = smoother.fit(targets, alpha)
            parts.append(
                torch.cat(
                    [smoother.leave_out(test, alpha).held_out(fitted).residual for test in tests]
                )
            )
        return torch.stack(parts)

    row: dict[str, Any] = {}
    K = kernel_of(X)
    row["band, decomposition"], band = device.timed(lambda: band_form(K.clone(), Q0))
    row["band, folds"], ours = device.timed(lambda: held_out(band))
    band = None
    row["eigh, decomposition"], eigen = device.timed(lambda: eigen_form(K.clone(), Q0))
    row["eigh, folds"], theirs = device.timed(lambda: held_out(eigen))
    well = torch.asarray(1e-4 * eigen.largest <= ALPHAS, device=ours.device)
    error = (ours - theirs).abs().amax(dim=(1, 2)) / theirs.abs().amax(dim=(1, 2))
    row["error"], row["error, alpha ≥ 1e-4 λ_max"] = float(error.max()), float(error[well].max())
    return row


def fit(n: int, device: Device, repeats: int) -> dict[str, Any]:
    X, y = rows_of(n, 10, device)
    labels = torch.asarray(y > 0, dtype=torch.int64)
    seconds = []
    for _ in range(repeats):
        model = None
        device.forget()
        elapsed, model = device.timed(
            lambda: LeastSquaresSVC(gamma=GAMMA, alpha=ALPHAS).fit(X, labels)
        )
        seconds.append(elapsed)
    return {
        "seconds": min(seconds),
        "alpha": float(model.alpha_),
        "peak_matrices": device.peak_bytes() / (8 * n * n),
    }


def landmarks(n: int, device: Device, repeats: int) -> dict[str, Any]:
    if "landmarks" not in KernelRidge().get_params():
        return {"skipped": "KernelRidge has no parameter landmarks"}
    X, y = rows_of(n, 20, device)
    m = min(4096, n // 4)
    device.forget()
    before = device.peak_bytes()
    model = KernelRidge(gamma=GAMMA / 2, alpha=ALPHAS, landmarks=m, random_state=0)
    seconds, model = device.timed(lambda: model.fit(X, y))
    return {
        "landmarks": m,
        "seconds": seconds,
        "alpha": float(model.alpha_),
        "score": float(model.best_score_),
        "extra_peak_GiB": (device.peak_bytes() - before) / 2**30,
    }


PARTS: dict[str, Callable[[int, Device, int], dict[str, Any]]] = {
    "path": path,
    "refit": refit,
    "folds": folds,
    "fit": fit,
    "landmarks": landmarks,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--n", type=int, nargs="+", help="instead of each part's own sizes")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="measure what is there already, too")
    arguments = parser.parse_args()
    device = Device(arguments.device)
    file = common.RESULTS / "gpu.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    results |= {
        "device": device.title,
        "torch": torch.__version__,
        "alphas": len(ALPHAS),
        "width": WIDTH,
    }
    for part in arguments.parts:
        rows = results.setdefault(part, {})
        for n in arguments.n or SIZES[part]:
            if str(n) in rows and not arguments.again:
                continue
            PARTS[part](min(n, 2048), device, 1)  # libraries load, memory pools fill
            device.forget()
            rows[str(n)] = PARTS[part](n, device, arguments.repeats)
            print(part, n, rows[str(n)], flush=True)
            if device.cuda:  # a try on another device is no result
                common.write(__file__, results)
            device.forget()


if __name__ == "__main__":
    main()
