"""From a design and the settings of a command to an estimator.

Preprocessing and model in one pipeline, refitted inside every fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .columns import Column, TableDesign
from .errors import UserError
from .options import Settings
from .values import CATEGORY

LANDMARKS_ABOVE = 2000  # rows; above, landmarks stand for them unless the user says otherwise
N_LANDMARKS = 300
MOST_CATEGORIES = 20  # of one column; rarer ones share one
MODELS = {"classification": ("fisher", "lssvm"), "regression": ("ridge",)}
KERNELS = ("rbf", "linear", "poly", "laplacian", "cosine")


def pipeline(design: TableDesign, settings: Settings, seed: int) -> tuple[Any, list[str]]:
    """The estimator for a table, and what is to be said about it."""
    from sklearn.pipeline import Pipeline

    model, notes = estimator(design, settings, seed)
    return Pipeline([("columns", preprocessing(design.columns)), ("model", model)]), notes


def preprocessing(columns: Sequence[Column]) -> Any:
    """Numbers: median for what is missing, with a mark, and unit variance. Categories.

    One column each, rare and unknown ones together.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    called: list[Any] = (
        [column.name for column in columns] if _knows_names() else list(range(len(columns)))
    )
    numbers = [
        name for name, column in zip(called, columns, strict=True) if column.kind != CATEGORY
    ]
    categories = [
        name for name, column in zip(called, columns, strict=True) if column.kind == CATEGORY
    ]
    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES, sparse_output=False
    )
    parts = [
        ("numbers", Pipeline([("impute", impute), ("scale", StandardScaler())]), numbers),
        ("categories", encode, categories),
    ]
    return ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0.0)


def _knows_names() -> bool:
    """Whether the installed scikit-learn finds columns of polars' tables by name.

    Older ones need a protocol that newer polars lacks.
    """
    import polars as pl
    import sklearn

    return hasattr(pl.DataFrame, "__dataframe__") or tuple(
        int(part) for part in sklearn.__version__.split(".")[:2]
    ) >= (1, 9)


def estimator(design: TableDesign, settings: Settings, seed: int) -> tuple[Any, list[str]]:
    """The model by itself."""
    from ..estimators import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC

    name = settings.model or MODELS[design.task][0]
    if name not in MODELS[design.task]:
        allowed = " or ".join(MODELS[design.task])
        raise UserError(
            f"--model {name} is not for {design.task}: use {allowed}, or --task to say what the "
            "target is."
        )
    if settings.kernel not in KERNELS:
        raise UserError(
            f"--kernel must be one of {', '.join(KERNELS)}, got {settings.kernel!r} instead."
        )
    chosen: dict[str, Any] = {
        "kernel": settings.kernel,
        "penalty": _word(settings.penalty, "penalty", ("function", "dual", "tune")),
    }
    chosen["gamma"] = _number(settings.gamma, "gamma", ("tune", "scale", "ard"))
    chosen["alpha"] = _number(settings.alpha, "alpha", ("tune",))
    landmarks, notes = _landmarks(settings.landmarks, len(design.y))
    if landmarks is not None:
        chosen |= {"landmarks": landmarks, "random_state": seed}
    kind = {"fisher": KernelFisherDiscriminant, "lssvm": LeastSquaresSVC, "ridge": KernelRidge}[
        name
    ]
    return kind(**chosen), notes


def _landmarks(text: str, n_rows: int) -> tuple[int | None, list[str]]:
    """How many landmarks, None for every row.

    More rows than `LANDMARKS_ABOVE` get some unless told otherwise.
    """
    if text == "none":
        return None, []
    if text != "auto":
        if not text.isdigit() or int(text) < 2:
            raise UserError(
                f"--landmarks must be auto, none or a number from 2 on, got {text!r} instead."
            )
        return min(int(text), n_rows), []
    if n_rows <= LANDMARKS_ABOVE:
        return None, []
    said = (
        f"{n_rows:,} rows are more than {LANDMARKS_ABOVE:,}: {N_LANDMARKS} landmarks stand for "
        "them (Nyström); --landmarks changes that"
    )
    return N_LANDMARKS, [said]


def _word(text: str, name: str, words: Sequence[str]) -> str:
    if text not in words:
        raise UserError(f"--{name} must be one of {', '.join(words)}, got {text!r} instead.")
    return text


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


__all__ = ["pipeline"]
