"""What the scripts of this folder share: the papers' data, direct models, and, from
``recording.py``, how results are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.linalg
from recording import HERE, RESULTS, Run, start
from sklearn.metrics.pairwise import rbf_kernel

from fitonce.core.smoothers import KernelSmoother
from fitonce.datasets import make_torus
from fitonce.kernels import Kernel
from fitonce.tuning.decompose import decompose

__all__ = ["HERE", "RESULTS", "Run", "start"]

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = (
    "#1f77b4",
    "#e6792b",
    "#2a9d5c",
    "#c8372d",
    "#7b5ea7",
    "#777777",
)


def seconds(task: Callable[[], Any]) -> float:
    """CPU seconds of this process.

    With one thread, the time that a task takes where nothing else runs.
    """
    began = time.process_time()
    task()
    return time.process_time() - began


def slope(x: Iterable[float], y: Iterable[float]) -> float:
    """Exponent of a power law, by least squares on log-log axes."""
    return float(np.polyfit(np.log(list(x)), np.log(list(y)), 1)[0])


# ---- the two-class problem of Cawley & Talbot (2003) and Saadi et al. (2007) ---------------------


def torus(n: int, trial: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Kernel matrix (n, n) and labels ±1 of one draw.

    A Gaussian (a quarter of the rows) inside an annulus.
    """
    X, y = make_torus(n, random_state=np.random.default_rng([2003, n, trial]))
    return rbf_kernel(X, gamma=gamma), y.astype(float)


def indicators(y: np.ndarray) -> np.ndarray:
    """(n, 2): one column for y > 0, one for y < 0."""
    return np.column_stack([y > 0, y < 0]).astype(float)


def fisher_targets(y: np.ndarray) -> np.ndarray:
    """n/n₁ for y > 0 and -n/n₂ for y < 0."""
    return indicators(y) @ fisher_scores(y)


def fisher_scores(y: np.ndarray) -> np.ndarray:
    """(n/n₁, -n/n₂)"""
    return len(y) / np.array([np.sum(y > 0), -np.sum(y < 0)], dtype=float)


def bordered_normal_equations(Z: np.ndarray, mu: float) -> np.ndarray:
    """C = ZᵀZ + diag(μ, …, μ, 0) for Z = [K 1].

    The last parameter is the bias, which is not penalised.
    """
    C = Z.T @ Z
    C[np.diag_indices(len(C) - 1)] += mu
    return C


def with_ones(K: np.ndarray) -> np.ndarray:
    return np.column_stack([K, np.ones(len(K))])


def direct_leave_one_out(K: np.ndarray, Y: np.ndarray, mu: float) -> np.ndarray:
    """Held-out values (n, t) by n literal fits of equation (4), each without the row and without
    its kernel function.
    """
    values = np.empty_like(Y)
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        Z = with_ones(K[np.ix_(rest, rest)])
        coefficients = scipy.linalg.solve(
            bordered_normal_equations(Z, mu), Z.T @ Y[rest], assume_a="pos"
        )
        values[i] = np.append(K[i, rest], 1.0) @ coefficients
    return values


def direct_leave_one_out_basis_kept(K: np.ndarray, Y: np.ndarray, mu: float) -> np.ndarray:
    """The same where only the row leaves.

    The kernel function centred on it stays in the expansion, as in the papers' algebra.
    """
    Z = with_ones(K)
    values = np.empty_like(Y)
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        coefficients = scipy.linalg.solve(
            bordered_normal_equations(Z[rest], mu), Z[rest].T @ Y[rest], assume_a="pos"
        )
        values[i] = Z[i] @ coefficients
    return values


def dual_norm(K: np.ndarray) -> KernelSmoother:
    """fitonce's decomposition of the same model (penalty μ‖α‖², free bias), for any μ.

    K is left as it is.
    """
    return decompose(K.copy(), Kernel("precomputed"), "dual", True, None)


def relative_error(direct: np.ndarray, other: np.ndarray) -> float:
    """e = ‖r̃ - r̂‖² / ‖r̃‖², the papers' measure: squared norms, so that 1e-30 is rounding."""
    return float(np.sum((direct - other) ** 2) / np.sum(direct**2))
