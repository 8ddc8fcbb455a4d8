"""Figure 1 of Saadi, Talbot and Cawley (2007): the unit step and the logistic function that stands
in for it.

Left, as in the paper, for several compression factors γ. Right, what it is for: the leave-one-out
error of one torus sample as a function of log₂ μ, counted and smoothed. The counted error is a
staircase, without a slope to follow; the smoothed one approaches it as γ grows, and its minimum is
what the method chooses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shared
from scipy.special import expit

FULL = {"n": 200, "gamma": 0.5, "factors": [2, 5, 20], "steps": 400, "log2_mu": [-10, 10]}
QUICK = {"n": 60, "steps": 60}


def criteria(
    n: int, gamma: float, factors: list[float], steps: int, log2_mu: list[float]
) -> dict[str, Any]:
    """Counted and smoothed leave-one-out error on a fine lattice of log₂ μ, dual norm, exact
    held-out values, targets n/n₁, -n/n₂.
    """
    K, y = shared.torus(n, 0, gamma)
    Y = shared.indicators(y)
    exponents = np.linspace(*log2_mu, steps)
    smoother = shared.dual_norm(K)
    held_out = Y - smoother.leave_one_out(smoother.project(Y), 2.0**exponents).residual
    counts = Y.sum(axis=0) - Y
    scores = (n - 1) / counts * np.array([1.0, -1.0])
    margin = y * np.sum(held_out * scores, axis=2)
    return {
        "log2_mu": exponents.round(4),
        "counted": np.mean(margin <= 0, axis=1).round(6),
        "smoothed": {
            str(factor): np.mean(expit(-factor * margin), axis=1).round(6) for factor in factors
        },
    }


def summarise(curves: dict[str, Any]) -> dict[str, Any]:
    """How far the smoothed error is from the counted one, and how many levels the staircase has."""
    counted = np.array(curves["counted"])
    distance = {
        factor: float(np.mean(np.abs(np.array(values) - counted)))
        for factor, values in curves["smoothed"].items()
    }
    return {"mean_distance_to_counted": distance, "levels_of_counted": len(np.unique(counted))}


def draw(plt: Any, factors: list[float], curves: dict[str, Any]) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    x = np.linspace(-2, 2, 801)
    left.plot(x, np.where(x >= 0, 1.0, 0.0), color="black", linewidth=1.2, label="step Ψ(x)")
    right.plot(curves["log2_mu"], curves["counted"], color="black", linewidth=1.2, label="counted")
    for factor, color in zip(factors, (shared.BLUE, shared.ORANGE, shared.GREEN), strict=False):
        left.plot(x, expit(factor * x), color=color, label=f"γ = {factor}")
        right.plot(
            curves["log2_mu"],
            curves["smoothed"][str(factor)],
            color=color,
            label=f"smoothed, γ = {factor}",
        )
    left.set(
        xlabel="x", ylabel="f(x) = 1/(1 + exp(-γx))", title="The step and its smooth stand-ins"
    )
    right.set(
        xlabel="log₂ μ",
        ylabel="leave-one-out error",
        title="The criterion on one torus sample",
        ylim=(0, None),
    )
    for axes in (left, right):
        axes.legend(fontsize=8)
    return figure


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    arguments = [settings[key] for key in ("n", "gamma", "factors", "steps", "log2_mu")]
    run.each(["curves"], lambda _: criteria(*arguments))
    curves = run.cells["curves"]
    summary = summarise(curves)
    run.save(**summary)
    run.figure(draw, settings["factors"], curves)


if __name__ == "__main__":
    main()
