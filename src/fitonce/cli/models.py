"""From a design and the settings of a command to an estimator.

Preprocessing and model in one pipeline, refitted inside every fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..estimators import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC
from .columns import TableDesign
from .errors import UserError, one_of
from .options import Settings
from .values import CATEGORY, NUMBERS

LANDMARKS_ABOVE = 2000  # rows; above, landmarks stand for them unless the user says otherwise
N_LANDMARKS = 300
MOST_CATEGORIES = 20  # of one column; rarer ones share one
MODELS: dict[str, dict[str, Any]] = {
    "classification": {"fisher": KernelFisherDiscriminant, "lssvm": LeastSquaresSVC},
    "regression": {"ridge": KernelRidge},
}
# older versions of scikit-learn find columns by name only with a protocol that newer polars lacks
NEW = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
FINDS_NAMES = NEW or hasattr(pl.DataFrame, "__dataframe__")
KERNELS = ("rbf", "linear", "poly", "laplacian", "cosine")


def pipeline(design: TableDesign, settings: Settings, seed: int) -> tuple[Any, list[str]]:
    """The estimator for a table, and what is to be said about it."""
    allowed = MODELS[design.task]
    name = settings.model or next(iter(allowed))
    if name not in allowed:
        raise UserError(
            f"--model {name} is not for {design.task}: use {' or '.join(allowed)}, or --task to "
            "say what the target is."
        )
    chosen: dict[str, Any] = {
        "kernel": one_of(settings.kernel, "kernel", KERNELS),
        "penalty": one_of(settings.penalty, "penalty", ("function", "dual", "tune")),
        "gamma": _number(settings.gamma, "gamma", ("tune", "scale", "ard")),
        "alpha": _number(settings.alpha, "alpha", ("tune",)),
    }
    landmarks, notes = _landmarks(settings.landmarks, len(design.y))
    if landmarks is not None:
        chosen |= {"landmarks": landmarks, "random_state": seed}
    steps = [("columns", preprocessing(design.kinds)), ("model", allowed[name](**chosen))]
    return Pipeline(steps), notes


def preprocessing(kinds: Mapping[str, str]) -> Any:
    """Numbers: median for what is missing, with a mark, and unit variance. Categories: one column
    each, rare and unknown ones together.
    """
    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES, sparse_output=False
    )
    scale = Pipeline([("impute", impute), ("scale", StandardScaler())])
    called: dict[str, list[Any]] = {NUMBERS: [], CATEGORY: []}
    for place, (name, kind) in enumerate(kinds.items()):
        called[kind].append(name if FINDS_NAMES else place)
    parts = [("numbers", scale, called[NUMBERS]), ("categories", encode, called[CATEGORY])]
    return ColumnTransformer([part for part in parts if part[-1]], sparse_threshold=0.0)


def _landmarks(text: str, n_rows: int) -> tuple[int | None, list[str]]:
    """How many landmarks, None for every row.

    More rows than `LANDMARKS_ABOVE` get some unless told otherwise.
    """
    if text == "none" or (text == "auto" and n_rows <= LANDMARKS_ABOVE):
        return None, []
    if text.isdigit() and int(text) >= 2:
        return min(int(text), n_rows), []
    if text != "auto":
        raise UserError(
            f"--landmarks must be auto, none or a number from 2 on, got {text!r} instead."
        )
    return N_LANDMARKS, [
        f"{n_rows:,} rows are more than {LANDMARKS_ABOVE:,}: {N_LANDMARKS} landmarks stand for "
        "them (Nyström); --landmarks changes that"
    ]


def _number(text: str, name: str, words: Sequence[str]) -> float | str:
    """A word or a positive number."""
    if text in words:
        return text
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not value > 0 or value == float("inf"):
        raise UserError(
            f"--{name} must be a positive number or {' or '.join(words)}, got {text!r} instead."
        )
    return value
