"""The scikit-learn estimators: validate, call the core, set attributes."""

from ..core.numerical_warnings import NumericalWarning
from ..uncertainty.process import GaussianProcess
from .accuracy import Verification
from .committee import KernelCommitteeClassifier, KernelCommitteeRegressor
from .fewer_rows import KernelAveraging, Subsampling
from .fisher import KernelFisherDiscriminant
from .ridge import KernelRidge
from .svc import LeastSquaresSVC
from .tuned_pipeline import TunedPipeline

__all__ = [
    "GaussianProcess",
    "KernelAveraging",
    "KernelCommitteeClassifier",
    "KernelCommitteeRegressor",
    "KernelFisherDiscriminant",
    "KernelRidge",
    "LeastSquaresSVC",
    "NumericalWarning",
    "Subsampling",
    "TunedPipeline",
    "Verification",
]
