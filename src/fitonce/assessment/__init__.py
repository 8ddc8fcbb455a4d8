"""Evaluation of a model for a report or a terminal: honest scores, intervals, baselines, a
permutation test, and the settings that were chosen.
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
