"""Several classes: the LDA rule, a softmax readout and committees.

Test error in % and log-loss, means over splits, of tuned models on standardised features: three
sets of scikit-learn and generators of classes that least squares has trouble with. "product" has
three classes by the product of two features, "middle" a small class between two large ones.

    python benchmarks/readouts.py --splits 5
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import common
import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from fitonce import (
    KernelCommitteeClassifier,
    KernelFisherDiscriminant,
    LeastSquaresSVC,
)
from fitonce.datasets import make_waveform3

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
N_TEST = 2000
MODELS: dict[str, Callable[[], Any]] = {
    "lda": KernelFisherDiscriminant,
    "softmax": lambda: KernelFisherDiscriminant(readout="softmax"),
    "one against rest": LeastSquaresSVC,
    "committee": KernelCommitteeClassifier,
}


def product(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes by the product of the first two of five features."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 5))
    return X, np.digitize(X[:, 0] * X[:, 1] + 0.1 * random.normal(size=n), [-0.3, 0.3])


def middle(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes along one of five features; a small one lies between two large ones."""
    random = np.random.default_rng(seed)
    y = random.choice(3, n, p=[0.46, 0.08, 0.46])
    X = random.normal(size=(n, 5))
    X[:, 0] += 3.0 * (y - 1)
    return X, y


def blobs(n_classes: int) -> Callable[[int, int], tuple[np.ndarray, np.ndarray]]:
    def make(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        X, y = make_classification(
            n, 15, n_informative=6, n_classes=n_classes, class_sep=1.5, random_state=seed
        )
        return X, y

    return make


def waveform(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_waveform3(n, random_state=seed)


LOADED = {"wine": (load_wine, 80), "iris": (load_iris, 75), "digits": (load_digits, 300)}
MADE = {
    "product": (product, 400),
    "middle": (middle, 300),
    "waveform3": (waveform, 200),
    "blobs4": (blobs(4), 300),
    "blobs6": (blobs(6), 300),
}


def parts(name: str, seed: int) -> Parts:
    """Standardised training and test rows."""
    if name in LOADED:
        load, n = LOADED[name]
        X, y = load(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(y))
        X, y = X[order], y[order]
    else:
        make, n = MADE[name]
        X, y = make(n + N_TEST, seed)
    scaler = StandardScaler().fit(X[:n])
    return scaler.transform(X[:n]), y[:n], scaler.transform(X[n:]), y[n:]


def evaluate(name: str, splits: int) -> dict[str, dict[str, float]]:
    """Mean error and log-loss of every model on one set."""
    found: dict[str, list[tuple[float, float]]] = {model: [] for model in MODELS}
    for seed in range(splits):
        X, y, X_new, y_new = parts(name, seed)
        for model, make in MODELS.items():
            fitted = make().fit(X, y)
            error = 100.0 * float(np.mean(fitted.predict(X_new) != y_new))
            loss = float(log_loss(y_new, fitted.predict_proba(X_new), labels=fitted.classes_))
            found[model].append((error, loss))
    return {
        model: {
            "error": float(np.mean([error for error, _ in values])),
            "log_loss": float(np.mean([loss for _, loss in values])),
            "error_se": float(np.std([error for error, _ in values]) / np.sqrt(splits)),
        }
        for model, values in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = {}
    for number, name in enumerate((*LOADED, *MADE)):
        common.progress(number, len(LOADED) + len(MADE), name)
        sets[name] = evaluate(name, options.splits)
        said = [f"{m} {v['error']:.1f}/{v['log_loss']:.3f}" for m, v in sets[name].items()]
        print(f"{name:10s} {', '.join(said)}", flush=True)
    mean = {
        model: {
            what: float(np.mean([found[model][what] for found in sets.values()]))
            for what in ("error", "log_loss")
        }
        for model in MODELS
    }
    print({model: {what: round(v, 4) for what, v in mean[model].items()} for model in mean})
    common.write(__file__, {"splits": options.splits, "sets": sets, "mean": mean})


if __name__ == "__main__":
    main()
