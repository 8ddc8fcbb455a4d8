"""Figure 3 of Saadi, Talbot and Cawley (2007): time to choose the best of 21 regularisation values,
n = 8 … 4096, on the torus data.

Three dense ways, each from the kernel matrix to the 21 leave-one-out errors, as "preparation" (done
once) and "search" (done for each value):

- canonical: eigenvectors of KᵀK, then O(n²) for each value (the fifteen lines of the paper);
- conventional: KᵀK once, then for each value the inverse of C and the diagonal of the hat matrix,
  O(n³), as the paper describes it;
- Cholesky: the same, but with one triangular solve in place of the inverse and the product: the
  best that we know without canonical form;
- fitonce: our decomposition (eigenvectors of K) and exact leave-one-out.

And the sparse forms of section 3.5.1 with m landmarks: canonical and conventional. "The
computational advantage … is exactly the same for sparse and fully dense models" is checked by their
ratios.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import shared
from sklearn.metrics.pairwise import rbf_kernel

from fitonce.datasets import make_torus

MUS = 2.0 ** np.arange(-10, 11)
FEWER_FROM = 2048  # rows
FULL = {
    "sizes": [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
    "trials": 20,
    "largest": {"4096": 1},  # trials of sizes at which twenty would take long
    "cholesky": 2,  # trials of the one that is not in the paper, from 2,048 rows on
    "landmarks": 128,
    "gamma": 0.5,
    "slopes_from": 512,
}
QUICK = {
    "sizes": [16, 64, 256],
    "trials": 3,
    "largest": {},
    "cholesky": 3,
    "landmarks": 32,
    "slopes_from": 64,
}

Way = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[float, float, np.ndarray]]


def canonical(F: np.ndarray, y: np.ndarray, mus: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Seconds of preparation and search, and the held-out residuals r/(1 - h).

    The features F are K itself, or K_nm of landmarks.
    """
    clock = time.process_time()
    lam, V = scipy.linalg.eigh(F.T @ F, overwrite_a=True, check_finite=False, driver="evd")
    U = F @ V
    squares, zeta, xi = U**2, U.sum(axis=0), U.T @ y
    prepared = time.process_time()
    # all values at once: three products with n×n matrices, O(n²) for each value
    c = 1.0 / (lam[:, None] + mus)
    eta_1, nu = U @ (c * zeta[:, None]) - 1.0, U @ (c * xi[:, None])
    S = len(y) - zeta**2 @ c
    residuals = (y[:, None] - nu - eta_1 * (y @ eta_1) / S) / (1.0 - squares @ c - eta_1**2 / S)
    return prepared - clock, time.process_time() - prepared, residuals.T


def conventional(F: np.ndarray, y: np.ndarray, mus: np.ndarray) -> tuple[float, float, np.ndarray]:
    """The hat matrix's diagonal from the inverse of C, for every value anew."""
    clock = time.process_time()
    Z = shared.with_ones(F)
    ZZ, Zy = Z.T @ Z, Z.T @ y
    penalised = np.diag_indices(F.shape[1])
    prepared = time.process_time()
    residuals = []
    for mu in mus:
        C = ZZ.copy()
        C[penalised] += mu
        C_inverse = scipy.linalg.inv(C, overwrite_a=True, check_finite=False)
        h = np.einsum("ij,ij->i", Z @ C_inverse, Z)
        residuals.append((y - Z @ (C_inverse @ Zy)) / (1.0 - h))
    return prepared - clock, time.process_time() - prepared, np.array(residuals)


def cholesky(F: np.ndarray, y: np.ndarray, mus: np.ndarray) -> tuple[float, float, np.ndarray]:
    """C = LLᵀ and H = (L⁻¹Zᵀ)ᵀ(L⁻¹Zᵀ): no inverse."""
    clock = time.process_time()
    Z = shared.with_ones(F)
    ZZ = Z.T @ Z
    penalised = np.diag_indices(F.shape[1])
    prepared = time.process_time()
    residuals = []
    for mu in mus:
        C = ZZ.copy()
        C[penalised] += mu
        L = scipy.linalg.cholesky(C, lower=True, overwrite_a=True, check_finite=False)
        R = scipy.linalg.solve_triangular(L, Z.T, lower=True, check_finite=False)
        residuals.append((y - R.T @ (R @ y)) / (1.0 - np.einsum("ij,ij->j", R, R)))
    return prepared - clock, time.process_time() - prepared, np.array(residuals)


def fitonce(K: np.ndarray, y: np.ndarray, mus: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Exact.

    Not the same numbers as the others, which keep the basis function of the deleted row.
    """
    clock = time.process_time()
    smoother = shared.dual_norm(K)
    prepared = time.process_time()
    residuals = smoother.leave_one_out(smoother.project(y[:, None]), mus).residual[:, :, 0]
    return prepared - clock, time.process_time() - prepared, residuals


DENSE: dict[str, Way] = {
    "canonical": canonical,
    "conventional": conventional,
    "cholesky": cholesky,
    "fitonce": fitonce,
}
SPARSE: dict[str, Way] = {"sparse canonical": canonical, "sparse conventional": conventional}


def measure(n: int, trial: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds of every way on one draw, and whether the ways that should agree do."""
    gamma, landmarks = settings["gamma"], settings["landmarks"]
    left_out = {"cholesky"} if n >= FEWER_FROM and trial >= settings["cholesky"] else set()
    rng = np.random.default_rng([2007, n, trial])
    X, labels = make_torus(n, random_state=rng)
    y = shared.fisher_targets(labels.astype(float))
    kernel_seconds = shared.seconds(lambda: rbf_kernel(X, gamma=gamma))
    K = rbf_kernel(X, gamma=gamma)
    K_nm = np.ascontiguousarray(K[:, rng.permutation(n)[:landmarks]])
    found: dict[str, Any] = {"kernel": kernel_seconds}
    residuals = {}
    for name, way in {**DENSE, **SPARSE}.items():
        if name in left_out:
            continue
        F = K_nm if name in SPARSE else K
        preparation, search, residuals[name] = way(F, y, MUS)
        found[name] = {"preparation": preparation, "search": search}
    for name in {"conventional", "cholesky"} - left_out:
        found[f"{name} against canonical"] = shared.relative_error(
            residuals["canonical"], residuals[name]
        )
    found["sparse conventional against canonical"] = shared.relative_error(
        residuals["sparse canonical"], residuals["sparse conventional"]
    )
    found["squared error, dense and sparse"] = [
        float(np.min(np.mean(residuals[name] ** 2, axis=1)))
        for name in ("canonical", "sparse canonical")
    ]
    return found


def trials(n: int, settings: dict[str, Any]) -> int:
    return int(settings["largest"].get(str(n), settings["trials"]))


def summarise(cells: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Means over the trials, slopes over the larger sizes, the search's share of the total, and
    ratios.
    """
    sizes = settings["sizes"]
    ways = [*DENSE, *SPARSE]

    def mean(n: int, read: Callable[[Any], float], way: str | None = None) -> float:
        found = (cells[f"{n} {trial}"] for trial in range(trials(n, settings)))
        return float(np.mean([read(cell) for cell in found if way is None or way in cell]))

    kernel = [mean(n, lambda cell: cell["kernel"]) for n in sizes]
    search = {
        way: [mean(n, lambda cell, way=way: cell[way]["search"], way) for n in sizes]
        for way in ways
    }
    total = {
        way: [
            mean(n, lambda cell, way=way: cell[way]["search"] + cell[way]["preparation"], way)
            for n in sizes
        ]
        for way in ways
    }
    large = [number for number, n in enumerate(sizes) if n >= settings["slopes_from"]]

    def slopes(values: list[float]) -> float:
        return shared.slope([sizes[i] for i in large], [values[i] for i in large])

    def ratio(one: str, other: str) -> list[float]:
        return [a / b for a, b in zip(total[one], total[other], strict=True)]

    return {
        "kernel_seconds": kernel,
        "search_seconds": search,
        "total_seconds": total,
        "slopes": {
            way: {"search": slopes(search[way]), "total": slopes(total[way])} for way in ways
        },
        "share_of_search": {
            way: [a / b for a, b in zip(search[way], total[way], strict=True)] for way in ways
        },
        "ratios": {
            "conventional / canonical": ratio("conventional", "canonical"),
            "cholesky / canonical": ratio("cholesky", "canonical"),
            "conventional / fitonce": ratio("conventional", "fitonce"),
            "sparse conventional / sparse canonical": ratio(
                "sparse conventional", "sparse canonical"
            ),
            "canonical / sparse canonical": ratio("canonical", "sparse canonical"),
        },
    }


def draw(plt: Any, settings: dict[str, Any], summary: dict[str, Any]) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
    sizes = settings["sizes"]
    styles = {
        "canonical": ("canonical (ORKFD)", shared.BLUE, "o", left),
        "conventional": ("conventional (inverse)", shared.RED, "s", left),
        "cholesky": ("conventional (Cholesky)", shared.ORANGE, "D", left),
        "fitonce": ("fitonce, exact", shared.GREEN, "^", left),
        "sparse canonical": ("canonical", shared.BLUE, "o", right),
        "sparse conventional": ("conventional (inverse)", shared.RED, "s", right),
    }
    for way, (label, color, marker, axes) in styles.items():
        style = {"color": color, "marker": marker, "markersize": 3.5}
        axes.loglog(
            sizes,
            summary["total_seconds"][way],
            label=f"{label}, slope {summary['slopes'][way]['total']:.1f}",
            **style,
        )
        axes.loglog(
            sizes,
            summary["search_seconds"][way],
            linestyle="--",
            label=f"… search only, {summary['slopes'][way]['search']:.1f}",
            **style,
        )
    left.set(title="Dense", xlabel="training rows n", ylabel="CPU seconds for 21 values of μ")
    right.set(title=f"Sparse, {settings['landmarks']} landmarks", xlabel="training rows n")
    for axes in (left, right):
        axes.legend(fontsize=7.5)
    return figure


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    keys = [(n, trial) for n in settings["sizes"] for trial in range(trials(n, settings))]
    run.each(keys, lambda n, trial: measure(n, trial, settings))
    summary = summarise(run.cells, settings)
    run.save(**summary)
    run.figure(draw, settings, summary)


if __name__ == "__main__":
    main()
