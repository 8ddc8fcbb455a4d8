"""What accuracy.py compares: models of this package and what one would take instead.

Every model sees the same numbers. Peers get what their users give them: the SVC a grid of 8 × 8 by
five folds and then `CalibratedClassifierCV`, the logistic regression its own search, the trees
their defaults (300 trees in the forest), xRFM a grid of 32 on a fifth of the training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import SVC

from fitonce import KernelCommitteeClassifier, KernelFisherDiscriminant

FOLDS, TREES = 5, 300
XRFM_GRID = tuple(product((2.0, 5.0, 10.0, 20.0), (1e-3, 1e-2, 1e-1, 1.0), (False, True)))


@dataclass(frozen=True)
class Model:
    """What it is called in the tables, and what makes an estimator for p features."""

    title: str
    make: Callable[[int], Any]
    ours: bool = False


def folds_of(y: np.ndarray) -> StratifiedKFold:
    fewest = int(np.min(np.unique(y, return_counts=True)[1]))
    return StratifiedKFold(max(2, min(FOLDS, fewest)), shuffle=True, random_state=0)


@dataclass
class TunedSVC:
    """C and gamma by a grid; labels by the SVC itself, probabilities by a sigmoid on folds."""

    n_features: int

    def fit(self, X: np.ndarray, y: np.ndarray) -> TunedSVC:
        gammas = 2.0 ** np.linspace(-8, 4, 8) * 2.0 / self.n_features
        grid = {"C": 2.0 ** np.linspace(-5, 10, 8), "gamma": gammas}
        self.machine = GridSearchCV(SVC(), grid, cv=folds_of(y)).fit(X, y).best_estimator_
        calibrated = CalibratedClassifierCV(self.machine, cv=folds_of(y), ensemble=False)
        self.calibrated = calibrated.fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.machine.predict(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.calibrated.predict_proba(X))


@dataclass
class TunedLogistic:
    n_features: int

    def fit(self, X: np.ndarray, y: np.ndarray) -> LogisticRegressionCV:
        return LogisticRegressionCV(
            Cs=10,
            cv=folds_of(y),
            scoring="neg_log_loss",
            max_iter=1000,
            l1_ratios=(0.0,),
            use_legacy_attributes=False,
        ).fit(X, y)


@dataclass
class TunedXRFM:
    """Bandwidth, ridge, full or diagonal metric by the Brier score of a fifth of the rows."""

    n_features: int

    def fit(self, X: np.ndarray, y: np.ndarray) -> TunedXRFM:
        X, X_held, y, y_held = train_test_split(
            X.astype(np.float32), y, test_size=0.2, stratify=y, random_state=0
        )
        truth = np.eye(int(y.max()) + 1)[y_held]
        found = []
        for bandwidth, ridge, diagonal in XRFM_GRID:
            model = self._fitted(bandwidth, ridge, diagonal, (X, y, X_held, y_held))
            loss = float(np.mean((model.predict_proba(X_held) - truth) ** 2))
            found.append((loss if np.isfinite(loss) else np.inf, len(found), model))
        self.model = min(found)[2]
        return self

    @staticmethod
    def _fitted(bandwidth: float, ridge: float, diagonal: bool, rows: tuple[Any, ...]) -> Any:
        from xrfm import xRFM

        model = {"kernel": "l2", "bandwidth": bandwidth, "exponent": 1.0, "diag": diagonal}
        fit = {"reg": ridge, "iters": 5, "verbose": False, "early_stop_rfm": True}
        return xRFM(
            {"model": model, "fit": fit},
            device="cpu",
            n_threads=1,
            tuning_metric="brier",
            random_state=0,
            verbose=False,
        ).fit(*rows)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(X.astype(np.float32)), float)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.argmax(self.predict_proba(X), axis=1)


def lightgbm(n_features: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=0, verbosity=-1)


def ours(title: str, **parameters: Any) -> Model:
    return Model(title, lambda p: KernelFisherDiscriminant(**parameters), ours=True)


PEERS = {
    "svc": Model("SVC, grid", TunedSVC),
    "forest": Model(
        "random forest", lambda p: RandomForestClassifier(TREES, n_jobs=1, random_state=0)
    ),
    "boosting": Model(
        "HistGradientBoosting", lambda p: HistGradientBoostingClassifier(random_state=0)
    ),
    "lightgbm": Model("LightGBM", lightgbm),
    "logistic": Model("logistic regression", TunedLogistic),
    "xrfm": Model("xRFM", TunedXRFM),
}
CALIBRATIONS = {
    f"{criterion}-{calibration}": ours(
        f"{criterion}, {calibration}", criterion=criterion, calibration=calibration
    )
    for criterion, calibration in (
        ("squared_error", "temperature"),
        ("squared_error", "sigmoid"),
        ("brier", "temperature"),
        ("brier", "sigmoid"),
        ("log_loss", "temperature"),
        ("log_loss", "sigmoid"),
        ("auto", "sigmoid"),
        ("auto", "isotonic"),
    )
}
OURS = {
    "default": ours("default"),
    "kernel": ours('kernel="tune"', kernel="tune"),
    "committee": Model("committee", lambda p: KernelCommitteeClassifier(), ours=True),
}
MODELS = {**OURS, **PEERS, **CALIBRATIONS}


def tabpfn_sentence() -> str:
    """Why TabPFN is not among the peers: its weights are downloaded, and this script never does."""
    if find_spec("tabpfn") is None:
        return "TabPFN is not installed."
    cached = Path.home() / ".cache" / "tabpfn"
    return "TabPFN has no weights on this disk." if not any(cached.glob("*.ckpt")) else ""
