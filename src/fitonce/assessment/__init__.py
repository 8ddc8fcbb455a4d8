"""Evaluation of a model for a report or a terminal: honest scores, intervals, baselines, a
permutation test, and the settings that were chosen.

`assess` runs nested cross-validation and a permutation test with the library's own functions, or
scores a fitted model on new rows, and returns an `Assessment`. `compare` estimates how much several
models differ on the same splits. `kernel_shares` says how much each of several kernels explains,
`column_importance` what prediction loses without each column. `render` has all of it in words.
"""

from .assess import assess, significance
from .columns import ColumnImportance, column_importance
from .compare import Difference, ModelComparison, compare
from .folds import choice_of
from .result import Assessment, CalibrationCurve, Estimate
from .shares import KernelShares, kernel_shares

__all__ = [
    "Assessment",
    "CalibrationCurve",
    "ColumnImportance",
    "Difference",
    "Estimate",
    "KernelShares",
    "ModelComparison",
    "assess",
    "choice_of",
    "column_importance",
    "compare",
    "kernel_shares",
    "significance",
]
