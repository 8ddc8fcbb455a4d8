"""Fit once; cross-validate, tune and permute for free.

Kernel Fisher discriminants and their least-squares relatives. One decomposition gives the held-out
predictions for every row, every regularization value and every split, exactly as if the model had
been refitted.
"""

# ruff: noqa: F403, F405
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.version import __version__ as __version__

if TYPE_CHECKING:
    from ._public import *


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


_SUBPACKAGES = ("conversions", "datasets", "encoding", "plotting", "positions", "report", "rows")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBPACKAGES, "__version__"})


def __getattr__(name: str) -> Any:
    """Import public names and subpackages on demand, so that the command line can show its help
    before scikit-learn is imported.
    """
    if name in __all__:
        value = getattr(import_module("._public", __name__), name)
    elif not name.startswith("_"):
        try:
            value = import_module(f".{name}", __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
