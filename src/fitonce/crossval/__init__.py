"""scikit-learn's cross-validation functions: choose a route and call the core."""

from .depends import RefitWarning, Route
from .functions import (
    CrossValidation,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from .pairs import LeavePairOut, leave_pair_out

__all__ = [
    "CrossValidation",
    "LeavePairOut",
    "RefitWarning",
    "Route",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "learning_curve",
    "leave_pair_out",
]
