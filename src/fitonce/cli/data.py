"""The table of `fitonce demo`."""

from __future__ import annotations

import polars as pl
from sklearn.datasets import load_breast_cancer

from .tables import Table


def demo_table() -> Table:
    """569 biopsies, benign or malignant, with 30 measurements each."""
    bunch = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in bunch.feature_names]
    diagnosis = pl.Series("diagnosis", bunch.target_names[bunch.target].tolist())
    frame = pl.DataFrame(bunch.data, schema=names).with_columns(diagnosis)
    source = (
        "data: Wisconsin breast cancer (Street, Wolberg and Mangasarian 1993), from scikit-learn"
    )
    return Table(frame, "breast cancer", [source])
