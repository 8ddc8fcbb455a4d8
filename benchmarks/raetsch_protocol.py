"""What raetsch.py compares, and on which splits: the methods, the protocol and its records."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from fitonce import KernelFisherDiscriminant, LeastSquaresSVC
from fitonce.datasets import RAETSCH, fetch_raetsch, raetsch_splits

Record = dict[str, Any]
Parameters = dict[str, Any]

SELECTION_SETS = 5
CALIBRATION_SPLITS = 20


# ---- the methods ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """How a method chooses its parameters on one training set, and what it is with parameters
    given.
    """

    title: str
    # (n_features, quick): the estimator that chooses; None: parameters of `base`
    tuned: Callable[[int, bool], Any] | None
    chosen: Callable[[Any], Parameters]
    fixed: Callable[[Parameters], Any]
    settings: Callable[[], str]
    base: str | None = None
    max_splits: int | None = None


def ours(title: str, estimator: Any) -> Method:
    return Method(
        title,
        tuned=lambda n_features, quick: clone(estimator),
        chosen=lambda model: {
            "gamma": float(model.gamma_),
            "alpha": float(model.alpha_),
            "penalty": str(model.penalty_),
        },
        fixed=lambda parameters: clone(estimator).set_params(**parameters),
        settings=lambda: call(estimator),
    )


def call(estimator: BaseEstimator) -> str:
    """The call that makes this estimator, with every parameter."""
    parameters = estimator.get_params(deep=False).items()
    return f"{type(estimator).__name__}({', '.join(f'{name}={v!r}' for name, v in parameters)})"


def svc_grid(n_features: int, quick: bool) -> GridSearchCV:
    gammas = [2.0**k * 2.0 / n_features for k in range(-8, 5, 4 if quick else 1)]
    return GridSearchCV(
        SVC(), {"C": [2.0**k for k in range(-5, 11, 5 if quick else 1)], "gamma": gammas}, cv=10
    )


def training_sigmoid(parameters: Parameters) -> TrainingSigmoid:
    return TrainingSigmoid(METHODS["default"].fixed(parameters))


@dataclass
class TrainingSigmoid:
    """Probabilities by a sigmoid fitted to the projections of the rows that the model was trained
    on.
    """

    model: Any

    def fit(self, X: np.ndarray, y: np.ndarray) -> CalibratedClassifierCV:
        return CalibratedClassifierCV(
            FrozenEstimator(self.model.fit(X, y)), method="sigmoid", ensemble=False
        ).fit(X, y)


METHODS = {
    "default": ours("ours (function norm)", KernelFisherDiscriminant()),
    "dual": ours("dual norm", KernelFisherDiscriminant(penalty="dual")),
    "ls-svm": ours("LS-SVM", LeastSquaresSVC()),
    "ridge": ours("ridge, no bias", LeastSquaresSVC(fit_intercept=False)),
    "svc": Method(
        "GridSearchCV(SVC)",
        tuned=svc_grid,
        chosen=lambda search: dict(search.best_params_),
        fixed=lambda parameters: SVC(**parameters),
        settings=lambda: "gamma 2^-8 … 2^4 times 2/n_features, C 2^-5 … 2^10, 10 folds",
    ),
    "svc-calibrated": Method(
        "CalibratedClassifierCV(SVC)",
        tuned=None,
        chosen=dict,
        fixed=lambda parameters: CalibratedClassifierCV(SVC(**parameters)),
        settings=lambda: "sigmoid, 5 folds",
        base="svc",
        max_splits=CALIBRATION_SPLITS,
    ),
    "training-sigmoid": Method(
        "sigmoid on training projections",
        tuned=None,
        chosen=dict,
        fixed=training_sigmoid,
        settings=lambda: METHODS["default"].settings(),
        base="default",
        max_splits=CALIBRATION_SPLITS,
    ),
}


def medians(chosen: list[Parameters]) -> Parameters:
    """Majority of what is a word, then medians of what is a number (on a log scale) among those
    that have these words.
    """
    words = [
        tuple((k, v) for k, v in sorted(choice.items()) if isinstance(v, str)) for choice in chosen
    ]
    winner = Counter(words).most_common(1)[0][0]
    among = [choice for choice, own in zip(chosen, words, strict=True) if own == winner]
    numbers = [k for k, v in among[0].items() if not isinstance(v, str)]
    return {
        k: float(2.0 ** np.median(np.log2([choice[k] for choice in among]))) for k in numbers
    } | dict(winner)


# ---- the protocol --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Protocol:
    """Which splits, how many, and where the records go."""

    folder: Path
    offset: int
    max_splits: int | None
    quick: bool

    @property
    def selection_sets(self) -> int:
        return 2 if self.quick else SELECTION_SETS

    def n_splits(self, method: Method, name: str) -> int:
        return min(
            n for n in (RAETSCH[name].n_splits, self.max_splits, method.max_splits) if n is not None
        )

    def path(self, method: str, name: str) -> Path:
        return self.folder / f"{name}.{method}.json"

    def load(self, method: str, name: str) -> Record | None:
        path = self.path(method, name)
        return json.loads(path.read_text()) if path.is_file() else None

    def save(self, record: Record) -> None:
        write_text(self.path(record["method"], record["set"]), json.dumps(record, indent=1) + "\n")

    def split(
        self, name: str, number: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Standardised training rows and labels, test rows and labels of split `number` counted
        from the offset.
        """
        X, y = load_set(name)
        ((train, test),) = raetsch_splits(
            name, len(X), start=self.offset + number, stop=self.offset + number + 1
        )
        mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
        scale = np.where(deviation > 0, deviation, 1.0)
        return (X[train] - mean) / scale, y[train], (X[test] - mean) / scale, y[test]


@cache
def load_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    bunch = fetch_raetsch(name)
    return bunch.data, bunch.target


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def open_record(protocol: Protocol, key: str, name: str, fresh: bool) -> Record:
    """What is there already, or an empty record if that is nothing, or of other settings or
    parameters.
    """
    method = METHODS[key]
    record: Record = {
        "set": name,
        "method": key,
        "settings": method.settings(),
        "offset": protocol.offset,
        "quick": protocol.quick,
    }
    if method.base:
        base = protocol.load(method.base, name)
        if base is None or "parameters" not in base:
            raise SystemExit(
                f"{key} takes its parameters from {method.base}, which has not been run on "
                f"{name}: run that first."
            )
        record["parameters"] = base["parameters"]
    found = None if fresh else protocol.load(key, name)
    if found is None:
        return record
    stale = [k for k, v in record.items() if found.get(k, v) != v]
    if stale:
        print(
            f"{key} {name}: computed with other {', '.join(stale)}, starting again", file=sys.stderr
        )
        return record
    return found
