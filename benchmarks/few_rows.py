"""Log-loss of committees on 128 training rows: what ranks and weighed columns bring.

Sets with few informative columns and several classes, separable ones, and others; the sets of one
list decide about defaults, those of the other report, and scikit-learn's breast cancer is looked at
last. Means over seeds, on at most 600 new rows. "before" has five kernels on clipped columns, as
the default was until then.

    python benchmarks/few_rows.py --seeds 4 --jobs 2
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from joblib import Parallel, delayed
from public_tables import KERNELS
from sklearn import datasets as sets
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from fitonce import ClippedScaler, KernelCommitteeClassifier, KernelFisherDiscriminant
from fitonce.datasets import fetch_raetsch, make_threenorm, make_torus, make_waveform3
from fitonce.preparation import NormalScores, RelevanceScaler

TRAIN, TEST = 128, 600
Rows = tuple[np.ndarray, np.ndarray]


def informative(
    columns: int, informative: int, classes: int, **given: Any
) -> Callable[[int], Rows]:
    options = {"n_redundant": 0, "n_clusters_per_class": 1, "flip_y": 0.0, **given}
    shape = {"n_features": columns, "n_informative": informative, "n_classes": classes}
    return lambda seed: sets.make_classification(
        TRAIN + TEST, random_state=seed, **shape, **options
    )


def drawn(load: Callable[[], Rows]) -> Callable[[int], Rows]:
    def rows(seed: int) -> Rows:
        X, y = load()
        order = np.random.default_rng([77, seed]).permutation(len(y))[: TRAIN + TEST]
        return X[order], y[order]

    return rows


def digits(*which: int) -> Callable[[int], Rows]:
    def load() -> Rows:
        X, y = sets.load_digits(return_X_y=True)
        return X[np.isin(y, which)], y[np.isin(y, which)]

    return drawn(load)


def raetsch(name: str) -> Callable[[int], Rows]:
    return drawn(lambda: (lambda found: (found.data, found.target))(fetch_raetsch(name)))


DECIDING: dict[str, Callable[[int], Rows]] = {
    "4 of 24 columns, 4 classes": informative(24, 4, 4, class_sep=1.5),
    "3 of 20, 4 clusters": informative(20, 3, 2, n_clusters_per_class=2, class_sep=1.5),
    "3 of 16, 3 classes": informative(16, 3, 3, n_redundant=2, class_sep=1.2, flip_y=0.02),
    "separable": informative(10, 5, 2, n_redundant=2, class_sep=2.5),
    "separable, 30 columns": informative(30, 6, 2, n_redundant=20, class_sep=1.5),
    "digits 3, 8": digits(3, 8),
    "digits 0 to 3": digits(0, 1, 2, 3),
    "iris": drawn(lambda: sets.load_iris(return_X_y=True)),
    "heart": raetsch("heart"),
    "banana": raetsch("banana"),
    "image": raetsch("image"),
    "waveform": lambda seed: make_waveform3(TRAIN + TEST, random_state=seed),
}
REPORTING: dict[str, Callable[[int], Rows]] = {
    "5 of 24 columns, 5 classes": informative(24, 5, 5, class_sep=1.5),
    "4 of 30": informative(30, 4, 2, class_sep=1.0),
    "blobs": lambda seed: sets.make_blobs(
        TRAIN + TEST, centers=3, n_features=8, cluster_std=2.5, random_state=seed
    ),
    "separable, 3 classes": informative(12, 5, 3, n_redundant=4, class_sep=2.0),
    "digits 1, 7": digits(1, 7),
    "digits 4 to 7": digits(4, 5, 6, 7),
    "wine": drawn(lambda: sets.load_wine(return_X_y=True)),
    "thyroid": raetsch("thyroid"),
    "german": raetsch("german"),
    "splice": raetsch("splice"),
    "threenorm": lambda seed: make_threenorm(TRAIN + TEST, random_state=seed),
    "torus": lambda seed: make_torus(TRAIN + TEST, random_state=seed),
}
LAST = {"breast cancer": drawn(lambda: sets.load_breast_cancer(return_X_y=True))}
HALVES = {"deciding": DECIDING, "reporting": REPORTING, "looked at last": LAST}


def committee(kind: str) -> KernelCommitteeClassifier:
    if kind == "default":
        return KernelCommitteeClassifier()
    members = [KernelFisherDiscriminant(**kernel) for kernel in KERNELS]
    if kind == "ranks":
        members.append(make_pipeline(NormalScores(), KernelFisherDiscriminant("laplacian")))
    if kind == "weighed columns":
        weighed = RelevanceScaler(labels=True)
        members.append(make_pipeline(weighed, KernelFisherDiscriminant("exponential")))
    return KernelCommitteeClassifier(members)


KINDS = ("before", "ranks", "weighed columns", "default")


def losses(half: str, name: str, seed: int) -> list[float]:
    warnings.simplefilter("ignore")
    X, y = HALVES[half][name](seed)
    n = min(TRAIN, 2 * len(y) // 3)
    found = []
    for kind in KINDS:
        model = make_pipeline(ClippedScaler(), committee(kind)).fit(X[:n], y[:n])
        p = model.predict_proba(X[n:])
        found.append(float(log_loss(y[n:], p, labels=model.classes_)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    cases = [
        (half, name, k) for half in HALVES for name in HALVES[half] for k in range(given.seeds)
    ]
    values = np.array(Parallel(given.jobs)(delayed(losses)(*case) for case in cases))
    record: dict[str, Any] = {"seeds": given.seeds, "train": TRAIN}
    for half in HALVES:
        means = {
            name: values[[case[:2] == (half, name) for case in cases]].mean(axis=0)
            for name in HALVES[half]
        }
        of_sets = np.array(list(means.values()))
        record[half] = {
            "mean": dict(zip(KINDS, of_sets.mean(axis=0).tolist(), strict=True)),
            "sets": {n: dict(zip(KINDS, v.tolist(), strict=True)) for n, v in means.items()},
            "lower than before": {
                kind: int(np.sum(of_sets[:, j] < of_sets[:, 0])) for j, kind in enumerate(KINDS)
            },
            "most above before": {
                kind: float(np.max(of_sets[:, j] - of_sets[:, 0])) for j, kind in enumerate(KINDS)
            },
        }
        print(half, record[half], flush=True)
    common.write(__file__, record)


if __name__ == "__main__":
    main()
