"""Figure 1 of Cawley and Talbot (2003): run-time of leave-one-out, directly and analytically, for n
= 10 … 500.

Three ways to the leave-one-out values of the kernel Fisher discriminant of their equation (4),
kernel matrix given:

- direct: n literal fits, each solving the normal equations of the n - 1 remaining rows;
- analytic, as in the paper: C⁻¹ of all rows, then r/(1 - h) (an approximation, see figure 2);
- exact: one decomposition and the closed form of fitonce, which also removes the row's kernel
  function.

And the paper's last claim: with C⁻¹ there already, leave-one-out costs "considerably less" than
training. Training is C and its inverse.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.linalg
import shared

FULL = {
    "sizes": [10, 20, 35, 60, 100, 170, 300, 500],
    "trials": 20,
    "gamma": 0.5,
    "mu": 1.0,
    "slopes_from": 100,
}
QUICK = {"sizes": [10, 20, 40, 80], "trials": 2, "slopes_from": 20}


def train(K: np.ndarray, y: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Z = [K 1], C⁻¹ and the parameters of the model of all rows."""
    Z = shared.with_ones(K)
    C_inverse = scipy.linalg.inv(shared.bordered_normal_equations(Z, mu), check_finite=False)
    return Z, C_inverse, C_inverse @ (Z.T @ y)


def analytic(
    Z: np.ndarray, C_inverse: np.ndarray, parameters: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Held-out values by r/(1 - h), with h the diagonal of Z C⁻¹ Zᵀ."""
    h = np.einsum("ij,ij->i", Z @ C_inverse, Z)
    return y - (y - Z @ parameters) / (1.0 - h)


def exact(K: np.ndarray, y: np.ndarray, mu: float) -> np.ndarray:
    """fitonce: one decomposition of K, then the exact leave-one-out of the dual norm."""
    smoother = shared.dual_norm(K)
    return (
        y - smoother.leave_one_out(smoother.project(y[:, None]), np.array([mu])).residual[0, :, 0]
    )


def measure(n: int, trial: int, gamma: float, mu: float) -> dict[str, float]:
    """Seconds of each part on one draw, and whether the exact values are those of
    the direct fits.
    """
    K, y = shared.torus(n, trial, gamma)
    targets = shared.fisher_targets(y)
    exact(K, targets, mu)  # first calls pay for imports and caches
    clock = [time.process_time()]

    def lap() -> float:
        clock.append(time.process_time())
        return clock[-1] - clock[-2]

    direct = shared.direct_leave_one_out(K, targets[:, None], mu)[:, 0]
    spent = {"direct": lap()}
    trained = train(K, targets, mu)
    spent["training"] = lap()
    analytic(*trained, targets)
    spent["leave-one-out after training"] = lap()
    ours = exact(K, targets, mu)
    spent["exact"] = lap()
    spent["analytic"] = spent["training"] + spent["leave-one-out after training"]
    return {**spent, "exact against direct": shared.relative_error(direct, ours)}


def summarise(cells: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Means over the trials by size, slopes over the larger sizes, and ratios at the largest."""
    sizes, trials = settings["sizes"], settings["trials"]
    parts = [part for part in cells[f"{sizes[0]} 0"] if part != "exact against direct"]
    mean = {
        part: [
            float(np.mean([cells[f"{n} {trial}"][part] for trial in range(trials)])) for n in sizes
        ]
        for part in parts
    }
    large = [number for number, n in enumerate(sizes) if n >= settings["slopes_from"]]
    return {
        "mean_seconds": mean,
        "slopes": {
            part: shared.slope([sizes[i] for i in large], [mean[part][i] for i in large])
            for part in parts
        },
        "direct_over_analytic": [
            a / b for a, b in zip(mean["direct"], mean["analytic"], strict=True)
        ],
        "direct_over_exact": [a / b for a, b in zip(mean["direct"], mean["exact"], strict=True)],
        "leave_one_out_over_training": [
            a / b
            for a, b in zip(mean["leave-one-out after training"], mean["training"], strict=True)
        ],
        "largest_error_of_exact": max(cell["exact against direct"] for cell in cells.values()),
    }


def draw(plt: Any, sizes: list[int], summary: dict[str, Any]) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    mean, slopes = summary["mean_seconds"], summary["slopes"]
    lines = {
        "direct": ("direct: n fits", shared.RED, "o"),
        "analytic": ("analytic, as in the paper", shared.BLUE, "s"),
        "exact": ("exact, fitonce", shared.GREEN, "^"),
    }
    for part, (label, color, marker) in lines.items():
        left.loglog(
            sizes,
            mean[part],
            color=color,
            marker=marker,
            markersize=4,
            label=f"{label} (slope {slopes[part]:.1f})",
        )
    left.set(
        xlabel="training rows n",
        ylabel="CPU seconds, mean over draws",
        title="Leave-one-out run-time",
    )
    left.legend(fontsize=8)
    right.plot(
        sizes, summary["leave_one_out_over_training"], color=shared.BLUE, marker="s", markersize=4
    )
    right.axhline(1.0, color=shared.GREY, linewidth=0.8)
    right.set(
        xscale="log",
        ylim=(0, None),
        xlabel="training rows n",
        ylabel="leave-one-out / training",
        title="Leave-one-out with C⁻¹ at hand, over training",
    )
    return figure


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    sizes, gamma, mu = run.settings["sizes"], run.settings["gamma"], run.settings["mu"]
    keys = [(n, trial) for n in sizes for trial in range(run.settings["trials"])]
    summary = summarise(run.each(keys, lambda n, trial: measure(n, trial, gamma, mu)), run.settings)
    run.save(**summary)
    run.figure(draw, sizes, summary)


if __name__ == "__main__":
    main()
