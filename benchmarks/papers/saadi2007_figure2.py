"""Figure 2 of Saadi, Talbot and Cawley (2007): output of the optimally regularised discriminant on
the torus data.

One sample; every method chooses μ among the 21 values 2⁻¹⁰ … 2¹⁰ by the smoothed leave-one-out
error: the paper's own fifteen lines (`fifteen_lines.py`), and fitonce with the same penalty on the
coefficients, whose leave-one-out is exact. The
paper does not give n or the kernel width; ours are in the settings. Bayes's boundary is the circle
of radius 2.15, its error 4.89 %. Both are tested on fresh rows, and so are the fifteen lines with
targets ±1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shared
from fifteen_lines import orkfd
from sklearn.metrics.pairwise import rbf_kernel

from fitonce import KernelFisherDiscriminant
from fitonce.datasets import make_torus, torus_bayes

FULL = {"n": 256, "gamma": 0.25, "test_rows": 50_000, "grid": 161, "seed": 0}
QUICK = {"n": 80, "test_rows": 2000, "grid": 31}
MUS = 2.0 ** np.arange(-10, 11)
METHODS = ("paper", "paper, targets ±1", "fitonce")


def surfaces(n: int, gamma: float, test_rows: int, grid: int, seed: int) -> dict[str, Any]:
    X, y = make_torus(n, random_state=seed)
    X_test, y_test = make_torus(test_rows, random_state=seed + 1)
    targets = shared.fisher_targets(y.astype(float))
    K = rbf_kernel(X, gamma=gamma)
    error, mu, alpha, b, _ = orkfd(K, targets, MUS)
    _, mu_signs, alpha_signs, b_signs, _ = orkfd(K, y.astype(float), MUS)
    model = KernelFisherDiscriminant(
        gamma=gamma, alpha=MUS, penalty="dual", criterion="smoothed_error"
    ).fit(X, y)
    axis = np.linspace(-7.5, 7.5, grid)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    def paper(rows: np.ndarray) -> np.ndarray:
        return rbf_kernel(rows, X, gamma=gamma) @ alpha + b

    def test_error(decision: np.ndarray) -> float:
        return float(np.mean(np.sign(decision) != y_test))

    return {
        "X": X,
        "y": y,
        "axis": axis,
        "paper": {
            "mu": mu,
            "smoothed_leave_one_out_error": error,
            "test_error": test_error(paper(X_test)),
            "surface": paper(points).reshape(grid, grid),
        },
        "fitonce": {
            "mu": model.alpha_,
            "test_error": test_error(model.decision_function(X_test)),
            "surface": model.decision_function(points).reshape(grid, grid),
        },
        "paper, targets ±1": {
            "mu": mu_signs,
            "test_error": test_error(rbf_kernel(X_test, X, gamma=gamma) @ alpha_signs + b_signs),
        },
        "bayes_test_error": test_error(torus_bayes(X_test)),
    }


def draw(plt: Any, found: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained", sharey=True)
    X, y, axis = np.array(found["X"]), np.array(found["y"]), np.array(found["axis"])
    titles = {
        "paper": "fifteen lines of the paper",
        "fitonce": "fitonce, penalty on the coefficients",
    }
    for panel, (name, title) in zip(axes, titles.items(), strict=True):
        surface = np.array(found[name]["surface"])
        limit = np.max(np.abs(surface))
        panel.contourf(
            axis,
            axis,
            surface,
            levels=np.linspace(-limit, limit, 21),
            cmap="RdBu",
            extend="both",
            alpha=0.75,
        )
        panel.contour(axis, axis, surface, levels=[0.0], colors="black", linewidths=1.6)
        panel.add_patch(
            plt.Circle((0, 0), 2.15, fill=False, linestyle="--", color="black", linewidth=0.9)
        )
        panel.scatter(*X[y > 0].T, s=9, color="#0b3c6f", label="class +1")
        panel.scatter(*X[y < 0].T, s=9, color="#8c1d18", marker="^", label="class -1")
        panel.set(
            title=f"{title}\nμ = {found[name]['mu']:g}, test error {found[name]['test_error']:.2%}",
            xlabel="x₁",
            aspect="equal",
        )
        panel.grid(False)
    axes[0].set_ylabel("x₂")
    axes[0].legend(fontsize=8, loc="upper left", frameon=True)
    figure.supxlabel("solid: decision boundary; dashed: Bayes's", fontsize=8.5)
    return figure


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    # a second's work: not kept
    found = surfaces(*(settings[key] for key in ("n", "gamma", "test_rows", "grid", "seed")))
    run.save(
        chosen_mu={name: found[name]["mu"] for name in METHODS},
        test_error={name: found[name]["test_error"] for name in METHODS}
        | {"bayes": found["bayes_test_error"]},
    )
    run.figure(draw, found)


if __name__ == "__main__":
    main()
