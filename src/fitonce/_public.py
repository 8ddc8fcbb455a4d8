"""Where the public names are defined. `fitonce` imports them when the first one is used."""

from .assessment import (
    assess,
    column_importance,
    compare,
    kernel_shares,
)
from .core.hat_matrix import held_out, held_out_discriminant
from .crossval import (
    RefitWarning,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    leave_pair_out,
)
from .estimators import (
    KernelAveraging,
    KernelCommitteeClassifier,
    KernelCommitteeRegressor,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    NumericalWarning,
    Subsampling,
    TunedPipeline,
)
from .inference import ValidityWarning, permutation_test_score
from .io.onnx import to_onnx
from .io.saving import load, save
from .kernels import KernelSum
from .positions.targets import permutation_test_targets
from .preparation import ClippedScaler

__all__ = [
    "ClippedScaler",
    "KernelAveraging",
    "KernelCommitteeClassifier",
    "KernelCommitteeRegressor",
    "KernelFisherDiscriminant",
    "KernelRidge",
    "KernelSum",
    "LeastSquaresSVC",
    "NumericalWarning",
    "RefitWarning",
    "Subsampling",
    "TunedPipeline",
    "ValidityWarning",
    "assess",
    "column_importance",
    "compare",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "held_out",
    "held_out_discriminant",
    "kernel_shares",
    "learning_curve",
    "leave_pair_out",
    "load",
    "permutation_test_score",
    "permutation_test_targets",
    "save",
    "to_onnx",
]
