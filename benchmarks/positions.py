"""What does a night of time-resolved decoding cost?

300 epochs × 64 channels × 200 times, two classes, 5 folds, 1000 permutations, in one process with
pinned threads. `fitonce.positions` runs all of it, in every mode (validation, drawing, splitting,
scoring and all corrections included). MNE's SlidingEstimator with scikit-learn's LDA is
cross-validated literally on a few permuted label sets, at all times, and the seconds per
permutation are multiplied. The same for `permute="resplit"`, whose folds are made again for every
permutation as scikit-learn's function does. Without permutations, the scores of all times are
compared with those of the SlidingEstimator, and the generalisation matrix with that of MNE's
GeneralizingEstimator; both also with a StandardScaler before the model, on each side. Both sides
run in turn and the shortest time of each counts, on the clock and of the processor, which other
work on the machine disturbs less. Ratios last.

``--quick`` takes 20 times and 100 permutations, and does not write a result.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any

import common
import mne
import numpy as np
from mne.decoding import GeneralizingEstimator, SlidingEstimator, cross_val_multiscore
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import KernelFisherDiscriminant
from fitonce.positions import cross_val_score, generalize, permutation_test

N_EPOCHS, N_CHANNELS, FOLDS = 300, 64, 5
COMPARED = "scores", "generalization", "scaled_scores", "scaled_generalization"
MODES: dict[str, Any] = {
    "cosets": StratifiedKFold(FOLDS),
    "free": KFold(FOLDS, shuffle=True, random_state=0),
    "within-folds": StratifiedKFold(FOLDS),
    "resplit": StratifiedKFold(FOLDS),
}
MODEL = KernelFisherDiscriminant("linear", alpha=1.0)


def epochs(n_times: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(N_EPOCHS) % 2)
    X = rng.normal(size=(N_EPOCHS, N_CHANNELS, n_times))
    X[:, :8, n_times // 3 : n_times // 2] += 0.3 * y[:, None, None]
    return X, y


def theirs(estimator: BaseEstimator, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(
        cross_val_multiscore(estimator, X, y, cv=StratifiedKFold(FOLDS), verbose="ERROR")
    )


def compared(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Scores and generalization matrices of both sides, alone and after a StandardScaler."""
    lda, cv, tasks = LinearDiscriminantAnalysis(), StratifiedKFold(FOLDS), {}
    options = {"scoring": "accuracy", "verbose": "ERROR"}
    for name, ours, other in (
        ("", MODEL, lda),
        ("scaled_", make_pipeline(StandardScaler(), MODEL), make_pipeline(StandardScaler(), lda)),
    ):
        sliding = SlidingEstimator(other, **options)
        generalizing = GeneralizingEstimator(other, **options)
        tasks[f"{name}scores"] = partial(cross_val_score, ours, X, y, cv=cv)
        tasks[f"{name}scores_mne"] = partial(theirs, sliding, X, y)
        tasks[f"{name}generalization"] = partial(generalize, ours, X, y, cv=cv)
        tasks[f"{name}generalization_mne"] = partial(theirs, generalizing, X, y)
    return tasks


def timed(rounds: int, **tasks: Any) -> dict[str, dict[str, float]]:
    """The shortest time of each task over rounds in which all of them run in turn, on the clock and
    of the processor.
    """
    best = {name: {"clock": float("inf"), "processor": float("inf")} for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            clock, processor = time.perf_counter(), time.process_time()
            task()
            best[name]["clock"] = min(best[name]["clock"], time.perf_counter() - clock)
            best[name]["processor"] = min(best[name]["processor"], time.process_time() - processor)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--rounds",
        type=int,
        default=2,
        help="rounds in turn; MNE and LDA are timed on one permutation in each",
    )
    options = parser.parse_args()
    n_times, n_permutations = (20, 100) if options.quick else (200, 1000)
    X, y = epochs(n_times)
    sliding = SlidingEstimator(LinearDiscriminantAnalysis(), scoring="accuracy", verbose="ERROR")
    rng = np.random.default_rng(1)

    def ours(mode: str) -> Any:
        return lambda: permutation_test(
            MODEL, X, y, cv=MODES[mode], permute=mode, n_permutations=n_permutations
        )

    warnings.simplefilter("ignore")
    tasks = {mode: ours(mode) for mode in MODES} | {
        "mne": lambda: theirs(sliding, X, rng.permutation(y))
    }
    slow = tasks.pop("resplit")
    times = timed(options.rounds, **tasks) | timed(1, resplit=slow)
    once = timed(options.rounds, **compared(X, y))
    results: dict[str, Any] = {
        "epochs": N_EPOCHS,
        "channels": N_CHANNELS,
        "times": n_times,
        "folds": FOLDS,
        "permutations": n_permutations,
        "mne": mne.__version__,
    }
    for kind in ("clock", "processor"):
        refitted = times["mne"][kind] * n_permutations
        results[kind] = {
            "seconds": {mode: round(times[mode][kind], 3) for mode in MODES},
            "mne_seconds_per_permutation": round(times["mne"][kind], 3),
            "mne_seconds_extrapolated": round(refitted, 1),
            "times_faster": {mode: round(refitted / times[mode][kind]) for mode in MODES},
        }
        for name in COMPARED:
            own, other = once[name][kind], once[f"{name}_mne"][kind]
            results[kind][f"{name}_seconds"] = {"fitonce": round(own, 3), "mne": round(other, 3)}
            results[kind][f"{name}_times_faster"] = round(other / own, 1)
        print(f"by the {kind}: MNE + LDA {times['mne'][kind]:.2f} s per permutation")
        for mode in MODES:
            print(
                f"    {mode:<14}{times[mode][kind]:>9.2f} s "
                f"{results[kind]['times_faster'][mode]:>8} times faster"
            )
        for name in COMPARED:
            seconds = results[kind][f"{name}_seconds"]
            print(
                f"    {name:<22}{seconds['fitonce']:>9.2f} s "
                f"{results[kind][f'{name}_times_faster']:>8} times faster than {seconds['mne']} s"
            )
    if not options.quick:
        print(common.write(__file__, results))


if __name__ == "__main__":
    main()
