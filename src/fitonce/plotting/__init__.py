"""Display classes as in scikit-learn: create them with one call, and modify the plot through
``ax_`` and ``figure_``. They need matplotlib.

>>> import matplotlib; matplotlib.use("Agg")
>>> from sklearn.datasets import load_iris
>>> from fitonce import KernelFisherDiscriminant
>>> from fitonce.plotting import ProjectionDisplay
>>> model = KernelFisherDiscriminant().fit(*load_iris(return_X_y=True))
>>> display = ProjectionDisplay.from_estimator(model)
>>> display.ax_.get_xlabel()
'held-out discriminant axis 1'
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "BarDisplay": "bars",
    "CalibrationDisplay": "predictions",
    "CriterionMapDisplay": "tuning",
    "GeneralizationDisplay": "permutations",
    "InfluenceDisplay": "rows",
    "IntervalDisplay": "predictions",
    "PermutationNullDisplay": "permutations",
    "ProjectionDisplay": "rows",
    "RegularizationPathDisplay": "tuning",
    "TimeCourseDisplay": "permutations",
    "activation_patterns": "bars",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return list(__all__)
