"""Where the public names are defined. `fitonce` imports them when the first one is used."""

from .assessment import (
    Assessment,
    Difference,
    KernelShares,
    ModelComparison,
    assess,
    compare,
    kernel_shares,
)
from .core.hat_matrix import HeldOutDiscriminant, held_out, held_out_discriminant
from .crossval import (
    CrossValidation,
    LeavePairOut,
    RefitWarning,
    Route,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    leave_pair_out,
)
from .estimators import (
    GaussianProcess,
    KernelAveraging,
    KernelCommitteeClassifier,
    KernelCommitteeRegressor,
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    NumericalWarning,
    Subsampling,
    TunedPipeline,
    Verification,
)
from .inference import PermutationTest, ValidityWarning, permutation_test_score
from .io.onnx import to_onnx
from .io.saving import load, save
from .positions.targets import TargetTest, permutation_test_targets
from .sums import KernelSum

__all__ = [
    "Assessment",
    "CrossValidation",
    "Difference",
    "GaussianProcess",
    "HeldOutDiscriminant",
    "KernelAveraging",
    "KernelCommitteeClassifier",
    "KernelCommitteeRegressor",
    "KernelFisherDiscriminant",
    "KernelRidge",
    "KernelShares",
    "KernelSum",
    "LeastSquaresSVC",
    "LeavePairOut",
    "ModelComparison",
    "NumericalWarning",
    "PermutationTest",
    "RefitWarning",
    "Route",
    "Subsampling",
    "TargetTest",
    "TunedPipeline",
    "ValidityWarning",
    "Verification",
    "assess",
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
