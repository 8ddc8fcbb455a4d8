"""Why Richard's discriminant failed (2012): wine at 48.9 %, and tuned kernels worse than untuned
ones.

Everything of his recipe that could be at fault, switched one by one, all combinations:

- features: raw, or standardized with the training rows' mean and deviation;
- regularizer: none (μ = eps·tr N, which is what rounding supplies) or μ = 1e-3·tr(N)/n;
- sigmoid fitted to: projections of the training rows, or their leave-one-out values (closed form,
  exact);
- units of the sigmoid's lattice: "unit α" (an eigenvector as a library returns it, whatever the
  projections are then), or "class means at ±1";
- gamma, for the RBF kernel: 3-fold error rate on the linear lattice 0.1 … 1 that his optima
  suggest, 3-fold on a logarithmic lattice, or leave-one-out error rate in closed form on that
  lattice.

The model is the kernel Fisher discriminant with penalty μ‖α‖², whose direction is that of (N +
μI)⁻¹(M₁ - M₂). Linear kernel: 16 combinations. RBF kernel: 48. Main effects are differences of
means over all other factors.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import richard2012
import shared
from sklearn.model_selection import StratifiedKFold

FACTORS = {
    "features": ("raw", "standardized"),
    "regularizer": ("none", "1e-3"),
    "sigmoid on": ("training values", "held-out values"),
    "units": ("unit alpha", "class means at ±1"),
}
CHOICES = (
    "3 folds, linear lattice",
    "3 folds, logarithmic lattice",
    "leave-one-out, logarithmic lattice",
)
FULL = {
    "draws": 10,
    "linear": list(np.linspace(0.1, 1.0, 10).round(10)),
    "logarithmic": list((10.0 ** np.linspace(-5, 2, 15)).round(10)),
}
QUICK = {"draws": 1, "linear": [0.2], "logarithmic": [0.01], "sets": ["wine"]}


@dataclass(frozen=True)
class Projection:
    """One fitted discriminant.

    Coefficients, bias and the values of its training rows, fitted and held out.
    """

    alpha: np.ndarray
    b: float
    fitted: np.ndarray
    held_out: np.ndarray

    @classmethod
    def of(cls, K: np.ndarray, y: np.ndarray, ridge: str) -> Projection:
        """Least squares on ±1 with penalty μ‖α‖²: the direction is that of (N + μI)⁻¹(M₁ - M₂)."""
        targets = np.where(y == 1, 1.0, -1.0)[:, None]
        smoother = shared.dual_norm(K)
        mu = max(
            (np.finfo(float).eps if ridge == "none" else float(ridge) / len(K)) * smoother.trace,
            np.finfo(float).tiny,
        )
        projected = smoother.project(targets)
        fitted = smoother.fit(projected, mu)
        alpha = fitted.dual[:, 0]
        held_out = targets - smoother.leave_one_out(projected, np.array([mu])).residual[0]
        return cls(
            alpha, float(np.mean(targets[:, 0] - K @ alpha)), fitted.values[:, 0], held_out[:, 0]
        )

    def scale(self, units: str, y: np.ndarray) -> tuple[float, float]:
        """(factor, shift) that bring a value f = k·α + b to the units asked for."""
        if units == "unit alpha":
            factor = 1.0 / max(float(np.linalg.norm(self.alpha)), np.finfo(float).tiny)
            return factor, -self.b * factor
        m1, m0 = self.fitted[y == 1].mean(), self.fitted[y == 0].mean()
        half = 0.5 * (m1 - m0) if m1 != m0 else 1.0
        return 1.0 / half, -0.5 * (m1 + m0) / half


def answers(
    projection: Projection, y: np.ndarray, K_test: np.ndarray, on: str, units: str
) -> np.ndarray:
    """Labels of the test rows by the sigmoid that was fitted to training or held-out values."""
    factor, shift = projection.scale(units, y)
    values = projection.fitted if on == "training values" else projection.held_out
    sigmoid, _ = richard2012.fit_sigmoid(factor * values + shift, y)
    return richard2012.predictions(
        sigmoid, factor * (K_test @ projection.alpha + projection.b) + shift
    )


SIGMOIDS = tuple(itertools.product(FACTORS["sigmoid on"], FACTORS["units"]))


def all_sigmoids(
    K: np.ndarray, y: np.ndarray, K_test: np.ndarray, ridge: str
) -> dict[tuple[str, str], np.ndarray]:
    projection = Projection.of(K, y, ridge)
    return {(on, units): answers(projection, y, K_test, on, units) for on, units in SIGMOIDS}


def three_fold_errors(
    X: np.ndarray, y: np.ndarray, gamma: float, ridge: str
) -> dict[tuple[str, str], float]:
    errors: dict[tuple[str, str], list[float]] = {key: [] for key in SIGMOIDS}
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        K = richard2012.kernel("rbf", X, X[train], gamma)
        for key, answer in all_sigmoids(K[train], y[train], K[test], ridge).items():
            errors[key].append(float(np.mean(answer != y[test])))
    return {key: float(np.mean(values)) for key, values in errors.items()}


def leave_one_out_error(X: np.ndarray, y: np.ndarray, gamma: float, ridge: str) -> float:
    """Error rate of the sign of the held-out values: closed form, no sigmoid."""
    held_out = Projection.of(richard2012.kernel("rbf", X, X, gamma), y, ridge).held_out
    return float(np.mean((held_out > 0) != (y == 1)))


def one_draw(
    name: str, draw: int, linear: list[float], logarithmic: list[float]
) -> dict[str, float]:
    """Test accuracy in % of every combination on one draw, by its factors' levels joined with ' |
    '.
    """
    X_raw, y, T_raw, t = richard2012.split(name, draw)
    found: dict[str, float] = {}

    def score(answer: np.ndarray) -> float:
        return 100.0 * float(np.mean(answer == t))

    for features, ridge in itertools.product(FACTORS["features"], FACTORS["regularizer"]):
        X, T = X_raw, T_raw
        if features == "standardized":
            mean, deviation = X.mean(axis=0), X.std(axis=0)
            deviation = np.where(deviation > 0, deviation, 1.0)
            X, T = (X - mean) / deviation, (T - mean) / deviation
        K, K_test = richard2012.kernel("linear", X, X), richard2012.kernel("linear", T, X)
        for (on, units), answer in all_sigmoids(K, y, K_test, ridge).items():
            found[f"linear | {features} | {ridge} | {on} | {units}"] = score(answer)

        def tested(
            gamma: float, X: np.ndarray = X, T: np.ndarray = T, ridge: str = ridge
        ) -> dict[tuple[str, str], np.ndarray]:
            return all_sigmoids(
                richard2012.kernel("rbf", X, X, gamma),
                y,
                richard2012.kernel("rbf", T, X, gamma),
                ridge,
            )

        made: dict[float, dict[tuple[str, str], np.ndarray]] = {}
        for choice, lattice in zip(CHOICES, (linear, logarithmic, logarithmic), strict=True):
            if choice.startswith("3 folds"):
                errors = [three_fold_errors(X, y, gamma, ridge) for gamma in lattice]
            else:
                errors = [
                    dict.fromkeys(SIGMOIDS, leave_one_out_error(X, y, gamma, ridge))
                    for gamma in lattice
                ]
            for on, units in SIGMOIDS:
                gamma = lattice[int(np.argmin([error[on, units] for error in errors]))]
                made.setdefault(gamma, {})
                if not made[gamma]:
                    made[gamma] = tested(gamma)
                found[f"rbf | {features} | {ridge} | {on} | {units} | {choice}"] = score(
                    made[gamma][on, units]
                )
    return found


def summarise(cells: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Mean and standard deviation of every combination, and main effects.

    Mean accuracy at each level, by kernel and set.
    """
    means: dict[str, Any] = {}
    effects: dict[str, Any] = {}
    for name in settings["sets"]:
        found = [cells[f"{name} {draw}"] for draw in range(settings["draws"])]
        means[name] = {}
        for key in found[0]:
            values = [cell[key] for cell in found]
            means[name][key] = [
                float(np.mean(values)),
                float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
            ]
        effects[name] = {}
        for kind in ("linear", "rbf"):
            factors = {**FACTORS, **({"gamma by": CHOICES} if kind == "rbf" else {})}
            effects[name][kind] = {
                factor: {level: mean_at(means[name], kind, position, level) for level in levels}
                for position, (factor, levels) in enumerate(factors.items(), 1)
            }
    return {"combinations": means, "main_effects": effects}


def mean_at(means: dict[str, list[float]], kind: str, position: int, level: str) -> float:
    parts = [(key.split(" | "), value[0]) for key, value in means.items()]
    return float(
        np.mean([value for key, value in parts if key[0] == kind and key[position] == level])
    )


def draw(plt: Any, summary: dict[str, Any]) -> Any:
    """Main effects.

    Accuracy at each level of each factor, one panel for each kernel, one line for each set.
    """
    colors = {"ionosphere": shared.BLUE, "iris": shared.GREEN, "wine": shared.RED}
    figure, axes = plt.subplots(
        1, 2, figsize=(11, 4.4), layout="constrained", sharey=True, width_ratios=(8, 11)
    )
    short = {
        "training values": "training",
        "held-out values": "held out",
        "unit alpha": "unit α",
        "class means at ±1": "means ±1",
        "standardized": "scaled",
        CHOICES[0]: "3-fold\nlinear",
        CHOICES[1]: "3-fold\nlog",
        CHOICES[2]: "LOO\nlog",
    }
    for panel, kind in zip(axes, ("linear", "rbf"), strict=True):
        ticks: list[tuple[float, str]] = []
        for name, by_kind in summary["main_effects"].items():
            x = 0.0
            ticks = []
            for factor, levels in by_kind[kind].items():
                at = [x + step for step in range(len(levels))]
                panel.plot(
                    at,
                    list(levels.values()),
                    color=colors[name],
                    marker="o",
                    markersize=4,
                    label=name if factor == "features" else None,
                )
                ticks += [
                    (position, short.get(level, level))
                    for position, level in zip(at, levels, strict=True)
                ]
                x = at[-1] + 2.0
        panel.set_xticks(
            [position for position, _ in ticks],
            [label for _, label in ticks],
            rotation=60,
            ha="right",
            fontsize=8,
        )
        start = 0.0
        for factor, levels in by_kind[kind].items():
            panel.text(
                start + (len(levels) - 1) / 2,
                1.01,
                factor,
                transform=panel.get_xaxis_transform(),
                ha="center",
                fontsize=8,
                color="#444444",
            )
            start += len(levels) + 1.0
        panel.set_title(
            {"linear": "linear kernel", "rbf": "RBF kernel, gamma chosen"}[kind], pad=18
        )
        panel.legend(fontsize=8, loc="lower right")
    axes[0].set_ylabel("test accuracy in %, mean over all else")
    return figure


def main() -> None:
    run = richard2012.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    keys = [(name, number) for name in settings["sets"] for number in range(settings["draws"])]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        run.each(
            keys,
            lambda name, number: one_draw(
                name, number, settings["linear"], settings["logarithmic"]
            ),
        )
    summary = summarise(run.cells, settings)
    run.save(**summary)
    run.figure(draw, summary)


if __name__ == "__main__":
    main()
