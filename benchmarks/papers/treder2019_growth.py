"""How the direct approach grows with n, p, n_Te, k, c and m, beside section 2.4 (and the Nyström
remark of section 3) of Treder (2019).

Each part of the flow is timed alone, one quantity varied and the others held, and the exponent of
the largest values is put beside the one that the operation count predicts. For sums of two powers
the prediction is the local exponent of the count itself over the same values.

- n: hat matrix of all rows (Cholesky factorisation and inverse), counted n³;
- p: linear kernel matrix of p features, counted n²·p, once; retraining pays for it in every fold;
- n_Te: held-out values of one test set, counted n_Te³ + n·n_Te² in the paper. Ours is n_Te³ +
  c·n_Te²: the n×n_Te block is not needed, since the scatter of the training rows follows from the
  test rows alone;
- k: all test sets of one size, counted k;
- c: the discriminant step of one fold, counted c²·n_Te + c³ (printed c³ for all k folds together;
  it is k·c³);
- m: Nyström features K_nm K_mm^(-1/2) and their decomposition, counted n·m² + m³.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import shared
from sklearn.metrics.pairwise import rbf_kernel

from fitonce.core.inverse import Inverse
from fitonce.core.readout import axes_of
from fitonce.core.smoothers import FunctionNorm
from fitonce.core.spectrum import spectrum_of_features

FULL = {
    "n": [256, 512, 1024, 2048, 4096],
    "p": [64, 256, 1024, 4096],
    "n_Te": [16, 32, 64, 128, 256, 512, 1024],
    "k": [4, 8, 16, 32, 64],
    "c": [4, 8, 16, 32, 64, 128],
    "m": [64, 128, 256, 512, 1024],
    "held": {"n": 2048, "n_Te": 32, "c": 5, "rows_for_m": 4096, "rows_for_p": 1024},
    "repeats": 7,
    "repeats_from_2048": 3,
    "mu": 1.0,
}
QUICK = {
    "n": [64, 128, 256],
    "p": [16, 64, 256],
    "n_Te": [8, 32, 128],
    "k": [2, 4, 8],
    "c": [4, 8, 16],
    "m": [16, 32, 64],
    "held": {"n": 300, "n_Te": 16, "c": 4, "rows_for_m": 400, "rows_for_p": 200},
    "repeats": 2,
}


def problem(n: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    """A kernel matrix and class indicators."""
    rng = np.random.default_rng([2019, n, c])
    labels = rng.permutation(np.arange(n) % c)
    X = rng.normal(size=(n, 10)) + 0.1 * labels[:, None]
    return rbf_kernel(X, gamma=0.05), np.eye(c)[labels]


def ones(n: int) -> np.ndarray:
    return np.full((n, 1), n**-0.5)


def best(task: Callable[[], Any], repeats: int) -> float:
    """The shortest of several times: load only adds."""
    return min(shared.seconds(task) for _ in range(repeats))


def hat_matrix(n: int, settings: dict[str, Any]) -> float:
    K, _ = problem(n, settings["held"]["c"])
    repeats = settings["repeats"] if n < 2048 else settings["repeats_from_2048"]
    copies = iter([K.copy() for _ in range(repeats)])  # the matrix is overwritten
    return best(lambda: Inverse.of(next(copies), ones(n), settings["mu"]), repeats)


def kernel_matrix(p: int, settings: dict[str, Any]) -> float:
    X = np.random.default_rng([2019, p]).normal(size=(settings["held"]["rows_for_p"], p))
    return best(lambda: X @ X.T, settings["repeats"])


def held_out_of(settings: dict[str, Any], test_sets: list[np.ndarray], c: int) -> float:
    """Seconds of held-out values for the test sets, hat matrix given."""
    mu, n = settings["mu"], settings["held"]["n"]
    K, Y = problem(n, c)
    smoother = FunctionNorm(Inverse.of(K, ones(n), mu), K @ ones(n))
    fitted = smoother.fit(smoother.project(Y), mu)
    return best(
        lambda: [smoother.leave_out(rows, mu).held_out(fitted) for rows in test_sets],
        settings["repeats"],
    )


def test_set(size: int, number: int, settings: dict[str, Any]) -> np.ndarray:
    return np.random.default_rng([size, number]).permutation(settings["held"]["n"])[:size]


def one_test_set(size: int, settings: dict[str, Any]) -> float:
    return held_out_of(settings, [test_set(size, 0, settings)], settings["held"]["c"])


def many_test_sets(k: int, settings: dict[str, Any]) -> float:
    size = settings["held"]["n_Te"]
    return held_out_of(
        settings, [test_set(size, number, settings) for number in range(k)], settings["held"]["c"]
    )


def discriminant_step(c: int, settings: dict[str, Any]) -> float:
    """Seconds of scatter and c×c eigenproblem of one fold, held-out values given."""
    mu, n = settings["mu"], settings["held"]["n"]
    K, Y = problem(n, c)
    smoother = FunctionNorm(Inverse.of(K, ones(n), mu), K @ ones(n))
    fitted = smoother.fit(smoother.project(Y), mu)
    rows = test_set(settings["held"]["n_Te"], 0, settings)
    held_out = smoother.leave_out(rows, mu).held_out(fitted)
    E = Y.T @ fitted.residual
    sizes, dof = Y.sum(axis=0) - Y[rows].sum(axis=0), np.asarray(float(n - len(rows) - c))

    def step() -> None:
        axes_of(E - held_out.lost(), sizes, dof)

    return best(lambda: [step() for _ in range(10)], settings["repeats"]) / 10


def nystroem(m: int, settings: dict[str, Any]) -> float:
    n = settings["held"]["rows_for_m"]
    X = np.random.default_rng([2019, m]).normal(size=(n, 10))
    K_nm = rbf_kernel(X, X[:m], gamma=0.05)

    def features() -> None:
        eigenvalues, E = scipy.linalg.eigh(K_nm[:m], check_finite=False)
        root = E / np.sqrt(np.maximum(eigenvalues, 1e-12 * eigenvalues[-1]))
        spectrum_of_features(K_nm @ root, ones(n))

    return best(features, 2 if settings["quick"] else 3)


PARTS: dict[str, Callable[[int, dict[str, Any]], float]] = {
    "n": hat_matrix,
    "p": kernel_matrix,
    "n_Te": one_test_set,
    "k": many_test_sets,
    "c": discriminant_step,
    "m": nystroem,
}


def counts(part: str, values: list[int], held: dict[str, int]) -> dict[str, list[float]]:
    """Operation counts up to a factor.

    As in the paper, and of what fitonce does where that differs.
    """
    x = np.array(values, dtype=float)
    printed = {
        "n": x**3,
        "p": held["rows_for_p"] ** 2 * x,
        "n_Te": x**3 + held["n"] * x**2,
        "k": x,
        "c": x**2 * held["n"] + x**3,
        "m": held["rows_for_m"] * x**2 + x**3,
    }[part]
    ours = {"n_Te": x**3 / 3 + held["c"] * x**2, "c": x**2 * held["n_Te"] + x**3}.get(part, printed)
    return {"paper": list(printed), "fitonce": list(ours)}


def summarise(cells: dict[str, float], settings: dict[str, Any]) -> dict[str, Any]:
    """Exponents over the upper three values: measured, and of the operation counts."""
    found = {}
    for part in PARTS:
        values = settings[part]
        seconds = [cells[f"{part} {value}"] for value in values]
        predicted = {
            who: shared.slope(values[-3:], count[-3:])
            for who, count in counts(part, values, settings["held"]).items()
        }
        found[part] = {
            "seconds": seconds,
            "exponent": shared.slope(values[-3:], seconds[-3:]),
            "exponent_of_the_count": predicted,
        }
    return found


def draw(plt: Any, settings: dict[str, Any], growth: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(1, len(PARTS), figsize=(16.5, 3.4), layout="constrained")
    titles = {
        "n": "hat matrix, rows n",
        "p": "kernel matrix, features p",
        "n_Te": "one test set, n_Te rows",
        "k": "k test sets",
        "c": "discriminant step, c classes",
        "m": "Nyström, m landmarks",
    }
    for panel, (part, row) in zip(axes, growth.items(), strict=True):
        x, seconds = np.array(settings[part], dtype=float), row["seconds"]
        panel.loglog(
            x,
            seconds,
            color=shared.GREEN,
            marker="^",
            markersize=4,
            label=f"measured, {row['exponent']:.1f}",
        )
        for who, style in (("paper", "--"), ("fitonce", ":")):
            count = np.array(counts(part, settings[part], settings["held"])[who])
            label = (
                f"count of {'the paper' if who == 'paper' else who}, "
                f"{row['exponent_of_the_count'][who]:.1f}"
            )
            panel.loglog(
                x, count * seconds[-1] / count[-1], color=shared.GREY, linestyle=style, label=label
            )
        panel.set_title(titles[part], fontsize=9.5)
        panel.set_xlabel(part)
        panel.set_xticks(x, [f"{value:g}" for value in x], fontsize=7)
        panel.minorticks_off()
        panel.legend(fontsize=7.5)
    axes[0].set_ylabel("CPU seconds")
    return figure


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    run.each(
        [(part, value) for part in PARTS for value in settings[part]],
        lambda part, value: PARTS[part](value, settings),
    )
    growth = summarise(run.cells, settings)
    run.save(growth=growth)
    run.figure(draw, settings, growth)


if __name__ == "__main__":
    main()
