"""Does it pay to leave the lattice? The joint lattice beside refinement after it, and beside the
papers' alternation.

Four generators with known Bayes error, 10 draws of n = 200 training and 2,000 test rows. `lattice`
is the default; `refined` adds ``refine=True`` (gamma and alpha in turns for the Brier criterion, as
Saadi et al. alternate; gamma and alpha together by gradient and Newton's method on log alpha for
the smoothed error of the LS-SVM). Criterion, test error and seconds; differences are paired over
draws.
"""

from __future__ import annotations

import time
import warnings

import common
import numpy as np
from sklearn.base import BaseEstimator

from fitonce import KernelFisherDiscriminant, LeastSquaresSVC
from fitonce.datasets import make_ringnorm, make_torus, make_twonorm, make_waveform

GENERATORS = {
    "torus": make_torus,
    "twonorm": make_twonorm,
    "ringnorm": make_ringnorm,
    "waveform": make_waveform,
}
MODELS = {
    "KFD, Brier, in turns": KernelFisherDiscriminant(),
    "LS-SVM, smoothed error, gradient": LeastSquaresSVC(criterion="smoothed_error"),
}
DRAWS = 10


def measure(
    model: BaseEstimator, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> tuple[float, float, float]:
    """Criterion, test error and seconds of one fit."""
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return -model.best_score_, float(np.mean(model.predict(X_test) != y_test)), seconds


def compare(name: str, model: BaseEstimator) -> dict[str, float]:
    lattice, refined = [], []
    for seed in range(DRAWS):
        X, y = GENERATORS[name](n_samples=2200, random_state=seed)
        split = X[:200], y[:200], X[200:], y[200:]
        lattice.append(measure(model.set_params(refine=False), *split))
        refined.append(measure(model.set_params(refine=True), *split))
    a, b = np.array(lattice), np.array(refined)
    difference = 100 * (b[:, 1] - a[:, 1])
    return {
        "criterion_lattice": a[:, 0].mean(),
        "criterion_refined": b[:, 0].mean(),
        "error_lattice": 100 * a[:, 1].mean(),
        "error_difference": difference.mean(),
        "standard_error": difference.std() / np.sqrt(DRAWS),
        "seconds_lattice": a[:, 2].mean(),
        "seconds_refined": b[:, 2].mean(),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    results = {}
    for label, model in MODELS.items():
        for done, name in enumerate(GENERATORS, 1):
            row = results[f"{label}, {name}"] = compare(name, model)
            common.progress(done, len(GENERATORS), label)
            print(
                f"{label:34s} {name:9s} criterion {row['criterion_lattice']:.5f} -> "
                f"{row['criterion_refined']:.5f}   test error "
                f"{row['error_lattice']:5.2f} % {row['error_difference']:+.2f} ± "
                f"{row['standard_error']:.2f}   "
                f"{row['seconds_lattice']:.2f} s -> {row['seconds_refined']:.2f} s"
            )
    common.write(__file__, {"draws": DRAWS, "rows": results})


if __name__ == "__main__":
    main()
