"""Evaluation of a model for a report or a terminal: honest scores, intervals, baselines, a
permutation test, and the settings that were chosen.

`assess` runs nested cross-validation and a permutation test with the library's own functions and
returns an `Assessment`. `compare_assessments` compares two of them from the same folds. `compare`
estimates how much several models differ on the same splits. `kernel_shares` says how much each of
several kernels explains. `beside` adds a linear model and a random forest on the same held-out
rows.
"""

from .assess import assess, significance
from .compared import Difference, ModelComparison
from .comparison import compare
from .contest import Contest, beside
from .folds import choice_of
from .result import Assessment, CalibrationCurve, Comparison, Estimate, compare_assessments
from .shares import KernelShares, kernel_shares

__all__ = [
    "Assessment",
    "CalibrationCurve",
    "Comparison",
    "Contest",
    "Difference",
    "Estimate",
    "KernelShares",
    "ModelComparison",
    "assess",
    "beside",
    "choice_of",
    "compare",
    "compare_assessments",
    "kernel_shares",
    "significance",
]
