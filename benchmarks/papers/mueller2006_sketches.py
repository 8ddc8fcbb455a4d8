"""The two sketches that Müller's lecture notes (2006/2007) leave to "a separate sheet".

Left: why the means alone do not choose the direction. The same two classes projected on the line
through their means and on Fisher's direction S_W⁻¹(m₁ - m₂). Right: two pairs of projected classes
with the same distance between means, of which "case 2" separates better because its scatter is
smaller. J = |m̃₁ - m̃₂|²/(s̃₁² + s̃₂²) says so. The numbers of both sketches are in the results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shared

FULL = {
    "n_each": 150,
    "seed": 3,
    "covariance": [[4.0, 3.2], [3.2, 3.2]],
    "means": [[0.0, 0.0], [3.0, 0.4]],
}
QUICK = {"n_each": 40}


def classes(
    n_each: int, seed: int, covariance: list[list[float]], means: list[list[float]]
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    first, second = (rng.multivariate_normal(mean, covariance, size=n_each) for mean in means)
    return first, second


def criterion(first: np.ndarray, second: np.ndarray) -> float:
    """J of two projected classes: squared distance of the means over the sum of the scatters."""
    scatter = np.sum((first - first.mean()) ** 2) + np.sum((second - second.mean()) ** 2)
    return float((first.mean() - second.mean()) ** 2 / scatter)


def directions(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Unit vectors: through the means, and Fisher's S_W⁻¹(m₁ - m₂)."""
    difference = first.mean(axis=0) - second.mean(axis=0)
    S_W = sum((X - X.mean(axis=0)).T @ (X - X.mean(axis=0)) for X in (first, second))
    fisher = np.linalg.solve(S_W, difference)
    return {
        "through the means": difference / np.linalg.norm(difference),
        "Fisher": fisher / np.linalg.norm(fisher),
    }


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    """Share of rows on the wrong side of the midpoint of the projected means."""
    middle, side = 0.5 * (first.mean() + second.mean()), np.sign(first.mean() - second.mean())
    return float(
        0.5 * (np.mean(side * (first - middle) < 0) + np.mean(side * (second - middle) > 0))
    )


def draw(
    plt: Any, first: np.ndarray, second: np.ndarray, cases: dict[str, tuple[np.ndarray, np.ndarray]]
) -> Any:
    figure = plt.figure(figsize=(10.5, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))
    plane, one, two = left.subplot_mosaic(
        [["plane", "one"], ["plane", "two"]], width_ratios=(1.3, 1)
    ).values()
    plane.scatter(*first.T, s=8, color=shared.BLUE)
    plane.scatter(*second.T, s=8, color=shared.ORANGE, marker="^")
    center = 0.5 * (first.mean(axis=0) + second.mean(axis=0))
    found = directions(first, second)
    for (name, w), panel, style in zip(found.items(), (one, two), ("--", "-"), strict=True):
        ends = center + np.outer((-7, 7), w)
        plane.plot(*ends.T, color="black", linestyle=style, linewidth=1.2, label=name)
        histograms(panel, first @ w, second @ w)
        panel.set_title(
            f"{name}: J = {1000 * criterion(first @ w, second @ w):.1f}·10⁻³", fontsize=9
        )
    plane.plot(
        *np.stack([first.mean(axis=0), second.mean(axis=0)]).T, "o", color="black", markersize=5
    )
    plane.set(
        title="Motivation of Fisher's criterion",
        aspect="equal",
        xlabel="x₁",
        ylabel="x₂",
        xlim=(-7, 9),
        ylim=(-7, 10),
    )
    plane.legend(fontsize=8, loc="upper right", title="direction w", title_fontsize=8, frameon=True)
    panels = right.subplots(2, 1, sharex=True)
    for panel, (name, pair) in zip(panels, cases.items(), strict=True):
        histograms(panel, *pair)
        panel.set_title(f"{name}: same means, J = {1000 * criterion(*pair):.1f}·10⁻³", fontsize=9)
    panels[1].set_xlabel("projected value y = w·x")
    right.suptitle("Goodness of separation in projected data", fontsize=10.5)
    return figure


def histograms(panel: Any, first: np.ndarray, second: np.ndarray) -> None:
    bins = np.linspace(min(first.min(), second.min()), max(first.max(), second.max()), 32)
    for values, color in ((first, shared.BLUE), (second, shared.ORANGE)):
        panel.hist(values, bins=bins, color=color, alpha=0.6)
        panel.axvline(values.mean(), color=color, linewidth=1.4)
    panel.set_yticks([])
    panel.grid(False)


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    first, second = classes(
        settings["n_each"], settings["seed"], settings["covariance"], settings["means"]
    )
    standard = np.random.default_rng(settings["seed"]).normal(size=(2, 4 * settings["n_each"]))
    standard = (standard - standard.mean(axis=1, keepdims=True)) / standard.std(
        axis=1, keepdims=True
    )
    cases = {
        name: (s * standard[0] - 1.5, s * standard[1] + 1.5)
        for name, s in (("case 1", 1.6), ("case 2", 0.6))
    }
    found = directions(first, second)
    run.save(
        criterion={name: criterion(first @ w, second @ w) for name, w in found.items()},
        overlap={name: overlap(first @ w, second @ w) for name, w in found.items()},
        distance_of_means={
            name: float(abs((first.mean(axis=0) - second.mean(axis=0)) @ w))
            for name, w in found.items()
        },
        criterion_of_cases={name: criterion(*pair) for name, pair in cases.items()},
        overlap_of_cases={name: overlap(*pair) for name, pair in cases.items()},
    )
    run.figure(draw, first, second, cases)


if __name__ == "__main__":
    main()
