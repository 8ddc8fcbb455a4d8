"""The columns of a table as numbers, in one pipeline with the model.

Numbers: missing values become the median, with an indicator; then unit variance. Categories: one
0/1 column for each level. Two rows that differ in a category have a squared distance of 2 there,
however rare their levels are. This is the mean squared distance of two rows in a standardized
number.

Categories with few rows are kept separate or merged, whichever gives the better held-out score on
the training rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..estimators import TunedPipeline
from ..estimators.fitted import chosen_steps, is_committee, is_model
from .columns import TableDesign
from .features import Feature
from .remarks import counted

RARE = 10  # rows; categories with fewer are merged if that scores better: mixed_tables.py
# limits on the categories that are kept in one column: their number, and the size of their columns
MOST_LEVELS, FEWEST_LEVELS, MOST_ENTRIES = 1000, 20, 100_000_000
MERGED = "columns__categories__min_frequency"  # the parameter that is chosen
# older versions of scikit-learn find columns by name only through a protocol that newer polars
# lacks
NEW = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
FINDS_NAMES = NEW or hasattr(pl.DataFrame, "__dataframe__")


def pipeline_of(design: TableDesign, model: Any, choose: bool = True) -> Pipeline:
    """A pipeline of the preprocessing of a table, which is tuned if there is a choice, and a
    model.
    """
    steps = [("columns", preprocessing(design.features, len(design.y))), ("model", model)]
    judges = is_model(model) or is_committee(model)
    if choose and judges and any(rare > 1 for *_, rare, _ in _rare_levels(design)):
        return TunedPipeline(steps, [{MERGED: 1}, {MERGED: RARE}])
    return Pipeline(steps)


def preprocessing(features: Sequence[Feature], n_rows: int) -> Any:
    """Numbers imputed and scaled, categories in columns."""
    impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=1,
        max_categories=most_levels(n_rows),
        sparse_output=False,
    )
    scale = Pipeline([("impute", impute), ("scale", StandardScaler())])
    called: dict[bool, list[Any]] = {False: [], True: []}
    for place, feature in enumerate(features):
        called[feature.is_category].append(feature.name if FINDS_NAMES else place)
    parts = [("numbers", scale, called[False]), ("categories", encode, called[True])]
    return ColumnTransformer([part for part in parts if part[-1]], sparse_threshold=0.0)


def most_levels(n_rows: int) -> int:
    """The number of categories kept for one column, as memory allows; the merged ones count as
    one.
    """
    return max(FEWEST_LEVELS, min(MOST_LEVELS, MOST_ENTRIES // n_rows))


def about_categories(design: TableDesign, choose: bool = True) -> list[str]:
    """Remarks about columns in which some categories are merged, or may be."""
    most, notes = most_levels(len(design.y)), []
    for name, counts, rare, rows in _rare_levels(design):
        if len(counts) > most:
            rest = counts[most - 1 :]
            notes.append(
                f"{name!r}: {len(counts):,} categories, of which the {len(rest):,} rarest "
                f"({counted(int(rest.sum()))}) are merged"
            )
        elif rare > 1 and choose:
            notes.append(
                f"{name!r}: {len(counts):,} categories, of which {rare:,} have fewer than {RARE} "
                f"rows ({counted(rows)} in all): kept separate or merged, by held-out score"
            )
    return notes


def chosen_categories(estimator: Any) -> list[str]:
    """A remark about what a fitted pipeline chose for rare categories, if it had a choice."""
    chosen = chosen_steps(estimator).get(MERGED)
    return [] if chosen is None else [f"categories: {described_choice(chosen)}, by held-out score"]


def described_choice(value: int) -> str:
    """A description of the chosen value of the parameter `MERGED`."""
    return "all kept separate" if value == 1 else f"those with fewer than {value} rows merged"


def _rare_levels(design: TableDesign) -> Iterator[tuple[str, np.ndarray, int, int]]:
    """For each category: its name, the numbers of rows of its levels in descending order, the
    number of its rare levels, and their rows.
    """
    for feature in (feature for feature in design.features if feature.is_category):
        counts = np.sort(design.X[feature.name].value_counts()["count"].to_numpy())[::-1]
        rare = counts < RARE
        yield feature.name, counts, int(rare.sum()), int(counts[rare].sum())
