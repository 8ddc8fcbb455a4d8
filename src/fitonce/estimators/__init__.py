"""The scikit-learn classes: validate, call the core, set attributes."""

from .fisher import KernelFisherDiscriminant
from .ridge import KernelRidge
from .svc import LeastSquaresSVC
from .validation import NumericalWarning
from .verification import Verification

__all__ = ["KernelFisherDiscriminant", "KernelRidge", "LeastSquaresSVC", "NumericalWarning", "Verification"]
