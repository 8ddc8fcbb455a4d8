"""The studies of models.py: which models, on which sets, how many splits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from data import (
    FEW_DECIDING,
    FEW_LAST,
    FEW_REPORTING,
    FORTY,
    NO_TEXTS,
    TABLE_HALVES,
    TABLES,
    Table,
    at_most,
    bundled,
    drawn,
    forty,
    halves,
    made,
    raetsch,
    searched,
    smooth,
    tabpfn,
)
from models import Model, Study, one_hot, peer
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from fitonce import (
    KernelAveraging,
    KernelCommitteeClassifier,
    KernelCommitteeRegressor,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    Subsampling,
)
from fitonce import datasets as own
from fitonce.preparation import NormalScores, RelevanceScaler

# ---- models --------------------------------------------------------------------------------------


def single(kernel: Any = "rbf", **given: Any) -> Model:
    """One kernel model of either kind."""
    kinds = {True: KernelFisherDiscriminant, False: KernelRidge}
    return Model(lambda table: kinds[table.classes](kernel=kernel, **given))


def committee(members: Callable[[type], list[Any] | None] = lambda kind: None) -> Model:
    def make(table: Table) -> Any:
        if table.classes:
            return KernelCommitteeClassifier(members(KernelFisherDiscriminant))
        return KernelCommitteeRegressor(members(KernelRidge))

    return Model(make)


KERNELS: tuple[dict[str, Any], ...] = (
    {"kernel": "rbf"},
    {"kernel": "laplacian"},
    {"kernel": "exponential"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2},
)
FOUR = ["rbf", "exponential", "laplacian", "linear"]


def one_preparation(kind: type) -> list[Any]:
    return [kind(**kernel) for kernel in KERNELS]


def with_ranks(kind: type) -> list[Any]:
    return [*one_preparation(kind), make_pipeline(NormalScores(), kind(kernel="laplacian"))]


def with_weighed(kind: type) -> list[Any]:
    weighed = RelevanceScaler(labels=True)
    return [*one_preparation(kind), make_pipeline(weighed, kind(kernel="exponential"))]


OURS = {"default": single(), "tune": single("tune"), "committee": committee()}
WITHOUT = {f"without {left}": single([k for k in FOUR if k != left]) for left in FOUR}


def stratified(y: np.ndarray) -> StratifiedKFold:
    fewest = int(np.min(np.unique(y, return_counts=True)[1]))
    return StratifiedKFold(max(2, min(5, fewest)), shuffle=True, random_state=0)


class TunedSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """C and gamma by a grid of 8 × 8; labels by the SVC itself, probabilities by a sigmoid on
    folds.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> TunedSVC:
        gammas = 2.0 ** np.linspace(-8, 4, 8) * 2.0 / X.shape[1]
        grid = {"C": 2.0 ** np.linspace(-5, 10, 8), "gamma": gammas}
        folds = stratified(y)
        self.machine = GridSearchCV(SVC(), grid, cv=folds).fit(X, y).best_estimator_
        self.model = CalibratedClassifierCV(self.machine, cv=folds, ensemble=False).fit(X, y)
        self.classes_ = self.model.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.machine.predict(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(X))


XRFM_GRID = tuple(product((2.0, 5.0, 10.0, 20.0), (1e-3, 1e-2, 1e-1, 1.0), (False, True)))


class TunedXRFM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Bandwidth, ridge, full or diagonal metric by the Brier score of a fifth of the rows."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> TunedXRFM:
        from xrfm import xRFM

        parts = train_test_split(X.astype(np.float32), y, test_size=0.2, stratify=y, random_state=0)
        X, X_held, y, y_held = parts
        truth, found = np.eye(int(y.max()) + 1)[y_held], []
        for bandwidth, ridge, diagonal in XRFM_GRID:
            metric = {"kernel": "l2", "bandwidth": bandwidth, "exponent": 1.0, "diag": diagonal}
            fit = {"reg": ridge, "iters": 5, "verbose": False, "early_stop_rfm": True}
            options = {"device": "cpu", "n_threads": 1, "tuning_metric": "brier"}
            options |= {"random_state": 0, "verbose": False}
            model = xRFM({"model": metric, "fit": fit}, **options).fit(X, y, X_held, y_held)
            loss = float(np.mean((model.predict_proba(X_held) - truth) ** 2))
            found.append((loss if np.isfinite(loss) else np.inf, len(found), model))
        self.model, self.classes_ = min(found)[2], np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(X.astype(np.float32)), float)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.argmax(self.predict_proba(X), axis=1)


def svm(table: Table) -> Any:
    if table.classes:
        return TunedSVC()
    grid = {"C": 10.0 ** np.arange(-1, 4), "gamma": ["scale", 0.001, 0.01, 0.1]}
    return GridSearchCV(SVR(), {**grid, "epsilon": [0.05, 0.3]}, cv=5)


def linear(table: Table) -> Any:
    if not table.classes:
        return RidgeCV(np.logspace(-3, 4, 15))
    given = {"max_iter": 1000, "scoring": "neg_log_loss", "l1_ratios": (0.0,)}
    return LogisticRegressionCV(Cs=10, cv=stratified(table.y), use_legacy_attributes=False, **given)


def lightgbm(table: Table) -> Any:
    import lightgbm as trees

    kind = trees.LGBMClassifier if table.classes else trees.LGBMRegressor
    return kind(n_jobs=1, random_state=0, verbosity=-1)


def forest(table: Table) -> Any:
    return (RandomForestClassifier if table.classes else RandomForestRegressor)(300, random_state=0)


def boosting(table: Table) -> Any:
    kind = HistGradientBoostingClassifier if table.classes else HistGradientBoostingRegressor
    return kind(random_state=0)


PEERS = {
    "SVM, grid": peer(svm),
    "random forest": peer(forest),
    "HistGradientBoosting": peer(boosting),
    "LightGBM": peer(lightgbm),
    "linear": peer(linear),
}
PEERS = {name: PEERS[name] for name in PEERS if name != "LightGBM" or find_spec("lightgbm")}
XRFM = {"xRFM": peer(lambda table: TunedXRFM())} if find_spec("xrfm") else {}
CALIBRATIONS = {
    f"{criterion}, {calibration}": single(criterion=criterion, calibration=calibration)
    for criterion, calibration in product(
        ("auto", "squared_error", "brier", "log_loss"), ("temperature", "sigmoid", "isotonic")
    )
}


# ---- categories ----------------------------------------------------------------------------------


class Spread(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One column for each level, over √(1 - Σp²): mean squared differences of 2."""

    def fit(self, X: Any, y: Any = None) -> Spread:
        self.encoder_ = one_hot().fit(X)
        p, lengths = self.encoder_.transform(X).mean(axis=0), []
        for column in range(X.shape[1]):
            names = self.encoder_.get_feature_names_out()
            lengths.append(sum(name.startswith(f"x{column}_") for name in names))
        parts = np.split(p, np.cumsum(lengths)[:-1])
        spread = [np.full(len(part), 1.0 - np.sum(part**2)) for part in parts]
        self.scale_ = np.concatenate([np.sqrt(np.where(s > 0, s, 1.0)) for s in spread])
        return self

    def transform(self, X: Any) -> np.ndarray:
        return np.asarray(self.encoder_.transform(X) / self.scale_)


def merged(rare: int) -> Any:
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=rare, sparse_output=False
    )


def weighed(w: float) -> Any:
    """Rows that differ in a category are at a squared distance w."""
    return make_pipeline(one_hot(), FunctionTransformer(lambda A: np.sqrt(w / 2) * A))


def numbered() -> Any:
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(codes, StandardScaler())


ENCODERS: dict[str, Callable[[], Any]] = {
    "w = 2": one_hot,
    "w = 0.5": partial(weighed, 0.5),
    "w = 8": partial(weighed, 8.0),
    "fewer than 3 rows merged": partial(merged, 3),
    "fewer than 10 rows merged": partial(merged, 10),
    "mean squared difference 2": Spread,
    "unit variance": lambda: make_pipeline(one_hot(), StandardScaler()),
    "numbered": numbered,
}


# ---- landmarks -----------------------------------------------------------------------------------

METHODS = ("uniform", "kmeans", "leverage", "cholesky", "greedy", "averaging", "subsampling")
SIZES = (20, 40, 80, 160, 320)


def on_landmarks(method: str, m: int) -> Model:
    """A model on m landmarks; on m averages of n/m rows of one class; on m rows alone."""

    def make(table: Table) -> Any:
        if method == "averaging":
            n_average = max(1, len(table.y) // m)
            return KernelAveraging(LeastSquaresSVC(), n_average=n_average, random_state=0)
        if method == "subsampling":
            return Subsampling(LeastSquaresSVC(), max_samples=m, random_state=0)
        return LeastSquaresSVC(landmarks=m, landmark_method=method, random_state=0)

    return Model(make)


LANDMARK_SETS = {
    **{n: drawn(partial(raetsch, n), 1000, 1) for n in ("banana", "splice", "image")},
    "digits": drawn(partial(bundled, "digits"), 1000, 1),
    "ringnorm": made(own.make_ringnorm, 1000, 5000),
    "torus": made(own.make_torus, 1000, 5000),
}
REFINED = {
    "torus": own.make_torus,
    "twonorm": own.make_twonorm,
    "ringnorm": own.make_ringnorm,
    "waveform": own.make_waveform,
}
SMOOTH = {
    "diabetes": at_most(400, partial(bundled, "diabetes", False), 2001, 1000),
    **{f"{name}, {n} rows": one for n in (100, 300) for name, one in smooth(n).items()},
}

STUDIES = {
    "forty": Study(
        "forty public sets of at most 400 training rows, beside what one would take instead",
        {**OURS, **PEERS, **XRFM},
        FORTY,
        5,
        halves(FORTY),
    ),
    "tables": Study(
        "public tables with mixed columns, at most 800 training rows",
        {
            **OURS,
            "tune, without rbf": WITHOUT["without rbf"],
            "exponential": single("exponential"),
            "committee, one preparation": committee(one_preparation),
            **PEERS,
        },
        TABLES,
        3,
        TABLE_HALVES,
    ),
    "kernels": Study(
        "each kernel alone and choices among several, on the sets that decide",
        {
            **{k: single(k) for k in (*FOUR, "poly", "matern32", "matern52")},
            "tune": single("tune"),
            **WITHOUT,
            "and poly": single([*FOUR, "poly"]),
            "and matern32": single([*FOUR, "matern32"]),
        },
        {name: FORTY[name] for name in halves(FORTY)["deciding"]},
        2,
    ),
    "rbf": Study(
        'kernel="tune" with and without rbf: public tables, and smooth functions',
        {"tune": single("tune"), "without rbf": WITHOUT["without rbf"]},
        TABLES | SMOOTH,
        2,
        {**TABLE_HALVES, "smooth": list(SMOOTH)},
    ),
    "few_rows": Study(
        "committees on 128 training rows: what ranks and weighed columns bring",
        {
            "before": committee(one_preparation),
            "ranks": committee(with_ranks),
            "weighed columns": committee(with_weighed),
            "default": committee(),
        },
        FEW_DECIDING | FEW_REPORTING | FEW_LAST,
        4,
        {
            "deciding": list(FEW_DECIDING),
            "reporting": list(FEW_REPORTING),
            "looked at last": list(FEW_LAST),
        },
    ),
    "calibration": Study(
        "criteria and calibrations of the default, from at most 80 training rows",
        CALIBRATIONS,
        forty(80),
        2,
        halves(FORTY),
    ),
    "tabpfn": Study(
        "the eleven sets of the repository not-a-feature/WebTabPFN: 128 rows, one split",
        OURS,
        tabpfn(),
        1,
    ),
    "encodings": Study(
        "columns of categories in a kernel of distances",
        {name: Model(single().make, encoder=make) for name, make in ENCODERS.items()},
        {name: one for name, one in TABLES.items() if name not in NO_TEXTS},
        3,
    ),
    "search_1200": Study(
        "a search that begins on a sample beside the full one, 1,200 training rows",
        {mode: single(search=mode) for mode in ("full", "auto")},
        searched(1200),
        1,
    ),
    "search_500": Study(
        "a search that begins on a sample beside the full one, 500 training rows",
        {mode: single(search=mode) for mode in ("full", "auto")},
        searched(500),
        1,
    ),
    "refinement": Study(
        "does it pay to leave the lattice? 200 training rows",
        {
            f"{title}, {'refined' if refine else 'lattice'}": Model(
                partial(
                    lambda table, kind, given: kind(**given),
                    kind=kind,
                    given={**given, "refine": refine},
                )
            )
            for title, kind, given in (
                ("KFD, Brier", KernelFisherDiscriminant, {}),
                ("LS-SVM, smoothed error", LeastSquaresSVC, {"criterion": "smoothed_error"}),
            )
            for refine in (False, True)
        },
        {name: made(make, 200) for name, make in REFINED.items()},
        10,
    ),
    "landmarks": Study(
        "which landmarks pay? 1,000 training rows",
        {"exact": Model(lambda table: LeastSquaresSVC())}
        | {f"{method} {m}": on_landmarks(method, m) for method in METHODS for m in SIZES},
        LANDMARK_SETS,
        3,
    ),
}
