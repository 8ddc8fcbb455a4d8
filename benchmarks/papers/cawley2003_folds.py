"""S-fold cross-validation of Cawley and Talbot (2003), section 2, timed.

The paper's sentence: in each of S trials n/S applications of Bartlett's formula erase the rows of a
fold from the inverse of C, "again resulting in a computational complexity of O(n³) operations". One
application is O(n²), so all folds take n of them, whatever S is. Measured on the torus data, from
the kernel matrix to all held-out values:

- Bartlett: C⁻¹ once, then for every fold n/S corrections, one after the other, and the model;
- blocks: C⁻¹ and H = ZC⁻¹Zᵀ once, then (I - H_TeTe)⁻¹r_Te for every fold; the same numbers;
- exact: fitonce's decomposition and formula for folds, in which the kernel functions of the rows
  leave too;
- refits: S systems of the rows that are left, each by one Cholesky factor.

The first two keep the kernel functions of the deleted rows; their numbers are compared with literal
fits that keep them too, those of the exact form with the refits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import shared

FULL = {
    "sizes": [64, 128, 256, 512, 1024],
    "folds": [5, 10, 50],
    "trials": {"64": 20, "128": 20, "256": 10, "512": 3, "1024": 1},
    "gamma": 0.5,
    "mu": 1.0,
    "slopes_from": 256,
}
QUICK = {"sizes": [32, 64], "folds": [4], "trials": {"32": 2, "64": 2}, "slopes_from": 32}

Way = Callable[[np.ndarray, np.ndarray, float, list[np.ndarray]], np.ndarray]


def bartlett(K: np.ndarray, y: np.ndarray, mu: float, tests: list[np.ndarray]) -> np.ndarray:
    """Held-out values with n/S corrections of C⁻¹ for every fold."""
    Z = shared.with_ones(K)
    C_inverse = scipy.linalg.inv(shared.bordered_normal_equations(Z, mu), overwrite_a=True)
    values, Zy = np.empty_like(y), Z.T @ y
    for test in tests:
        left = C_inverse.copy(order="F")
        for z in Z[test]:
            u = left @ z
            # left += uuᵀ/(1 - zᵀu), in place: both triangles, as the formula is written
            left = scipy.linalg.blas.dger(1.0 / (1.0 - z @ u), u, u, a=left, overwrite_a=1)
        values[test] = Z[test] @ (left @ (Zy - Z[test].T @ y[test]))
    return values


def blocks(K: np.ndarray, y: np.ndarray, mu: float, tests: list[np.ndarray]) -> np.ndarray:
    """The same by one system for every fold."""
    Z = shared.with_ones(K)
    C_inverse = scipy.linalg.inv(shared.bordered_normal_equations(Z, mu), overwrite_a=True)
    ZC = Z @ C_inverse
    residual, values = y - ZC @ (Z.T @ y), np.empty_like(y)
    for test in tests:
        H = ZC[test] @ Z[test].T
        values[test] = y[test] - np.linalg.solve(np.eye(len(test)) - H, residual[test])
    return values


def exact(K: np.ndarray, y: np.ndarray, mu: float, tests: list[np.ndarray]) -> np.ndarray:
    smoother = shared.dual_norm(K)
    targets = smoother.project(y[:, None])
    deletions = [(test, np.arange(len(test))) for test in tests]
    values = np.empty_like(y)
    values[np.concatenate(tests)] = smoother.held_out_folds(targets, np.array([mu]), deletions)[
        0, :, 0
    ]
    return values


def refits(K: np.ndarray, y: np.ndarray, mu: float, tests: list[np.ndarray]) -> np.ndarray:
    values = np.empty_like(y)
    for test in tests:
        train = np.setdiff1d(np.arange(len(y)), test)
        Z, rows = (shared.with_ones(K[np.ix_(part, train)]) for part in (train, test))
        values[test] = rows @ solved(Z, y[train], mu)
    return values


def refits_basis_kept(
    K: np.ndarray, y: np.ndarray, mu: float, tests: list[np.ndarray]
) -> np.ndarray:
    Z, values = shared.with_ones(K), np.empty_like(y)
    for test in tests:
        train = np.setdiff1d(np.arange(len(y)), test)
        values[test] = Z[test] @ solved(Z[train], y[train], mu)
    return values


def solved(Z: np.ndarray, y: np.ndarray, mu: float) -> np.ndarray:
    C = shared.bordered_normal_equations(Z, mu)
    return scipy.linalg.solve(C, Z.T @ y, assume_a="pos", overwrite_a=True, check_finite=False)


WAYS: dict[str, Way] = {"bartlett": bartlett, "blocks": blocks, "exact": exact, "refits": refits}
TITLES = {
    "bartlett": ("Bartlett's formula, row by row", shared.RED, "o"),
    "blocks": ("one system a fold", shared.BLUE, "s"),
    "exact": ("fitonce, exact", shared.GREEN, "^"),
    "refits": ("S refits", shared.GREY, "x"),
}


def measure(n: int, S: int, trial: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds of each way, and e of its values against literal fits."""
    K, y = shared.torus(n, trial, settings["gamma"])
    order = np.random.default_rng([n, trial]).permutation(n)
    tests = [np.sort(part) for part in np.array_split(order, S)]
    given = K, y, settings["mu"], tests
    found: dict[str, Any] = {"seconds": {}}
    values = {}
    for name, way in WAYS.items():

        def task(name: str = name, way: Way = way) -> None:
            values[name] = way(*given)

        found["seconds"][name] = shared.seconds(task)
    kept = refits_basis_kept(*given)
    found["e"] = {
        "bartlett": shared.relative_error(y - kept, y - values["bartlett"]),
        "blocks": shared.relative_error(y - kept, y - values["blocks"]),
        "exact": shared.relative_error(y - values["refits"], y - values["exact"]),
        "basis kept": shared.relative_error(y - values["refits"], y - kept),
    }
    return found


def summarise(cells: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """By the number of folds: mean seconds of every way, their exponents, the worst e."""
    sizes, found = settings["sizes"], {}
    large = [i for i, n in enumerate(sizes) if n >= settings["slopes_from"]]
    for S in settings["folds"]:
        of = [
            [cells[f"{n} {S} {trial}"] for trial in range(settings["trials"][str(n)])]
            for n in sizes
        ]
        seconds = {
            way: [float(np.mean([cell["seconds"][way] for cell in row])) for row in of]
            for way in WAYS
        }
        found[str(S)] = {
            "seconds": seconds,
            "slopes": {
                way: shared.slope([sizes[i] for i in large], [values[i] for i in large])
                for way, values in seconds.items()
            },
            "largest_e": {
                way: max(cell["e"][way] for row in of for cell in row)
                for way in ("bartlett", "blocks", "exact")
            },
            "e_of_the_kept_basis": [
                float(np.mean([cell["e"]["basis kept"] for cell in row])) for row in of
            ],
        }
    return found


def draw(plt: Any, settings: dict[str, Any], found: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(
        1,
        len(found),
        figsize=(4.0 * len(found), 4.2),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    for panel, (S, part) in zip(axes[0], found.items(), strict=True):
        for way, (label, color, marker) in TITLES.items():
            panel.loglog(
                settings["sizes"],
                part["seconds"][way],
                color=color,
                marker=marker,
                markersize=4,
                label=f"{label}, slope {part['slopes'][way]:.1f}",
            )
        panel.set(title=f"{S} folds", xlabel="training rows n")
        panel.legend(fontsize=8)
    axes[0, 0].set_ylabel("CPU seconds, mean over draws")
    return figure


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    keys = [
        (n, S, trial)
        for n in settings["sizes"]
        for S in settings["folds"]
        for trial in range(settings["trials"][str(n)])
    ]
    found = summarise(
        run.each(keys, lambda n, S, trial: measure(n, S, trial, settings)), run.settings
    )
    run.save(folds=found)
    run.figure(draw, settings, found)


if __name__ == "__main__":
    main()
