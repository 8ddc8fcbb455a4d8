"""What a page or a terminal shows about a model: honest scores, intervals, baselines, the
permutation test, the choices made.

`assess` runs nested cross-validation and a permutation test through the library's own functions and
gathers the answer in an `Assessment`; `compare` sets two of them, from the same folds, beside each
other.
"""

from .assess import assess, significance
from .compared import Difference, ModelComparison
from .folds import choice_of
from .result import Assessment, CalibrationCurve, Comparison, Estimate, compare

__all__ = [
    "Assessment",
    "CalibrationCurve",
    "Comparison",
    "Difference",
    "Estimate",
    "ModelComparison",
    "assess",
    "choice_of",
    "compare",
    "significance",
]
