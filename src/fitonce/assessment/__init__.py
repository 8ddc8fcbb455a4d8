"""What a page or a terminal shows about a model: honest scores, intervals, baselines, the
permutation test, the choices made.

`assess` runs nested cross-validation and a permutation test through the library's own functions and
gathers the answer in an `Assessment`; `compare_assessments` sets two of them, from the same folds,
beside each other. `compare` tells by how much models differ on the same splits, `kernel_shares`
what each of several kernels explains, `beside` what a linear model and a forest make of the same
held-out rows.
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
