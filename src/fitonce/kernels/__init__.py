"""Kernels: formulas of two rows, and weighted sums of several kernels, K = Σ_b θ_b K_b.

`Kernel` has all its parameters fixed. `KernelSum` is the user's declaration of a sum; with columns
known it becomes a `SumPlan`, and with weights and widths decided a `SummedKernel`, which is a
kernel like any other.
"""

from .distances import (
    EUCLIDEAN,
    MANHATTAN,
    RADIAL,
    SQUARED,
    DistancesTo,
    PointKernel,
    off_origin,
)
from .formulas import (
    FAMILIES,
    OVERFLOW,
    PARAMETERS,
    Kernel,
    asymmetry,
    central_gamma,
    check_kernel_values,
    check_square,
    families,
    gamma_of,
    largest_entry,
    scale_gamma,
)
from .sums import (
    GAMMA,
    TUNED_WIDTHS,
    WEIGHTS,
    KernelSum,
    MatrixLookup,
    Member,
    SummedKernel,
    SumPlan,
)

__all__ = [
    "EUCLIDEAN",
    "FAMILIES",
    "GAMMA",
    "MANHATTAN",
    "OVERFLOW",
    "PARAMETERS",
    "RADIAL",
    "SQUARED",
    "TUNED_WIDTHS",
    "WEIGHTS",
    "DistancesTo",
    "Kernel",
    "KernelSum",
    "MatrixLookup",
    "Member",
    "PointKernel",
    "SumPlan",
    "SummedKernel",
    "asymmetry",
    "central_gamma",
    "check_kernel_values",
    "check_square",
    "families",
    "gamma_of",
    "largest_entry",
    "off_origin",
    "scale_gamma",
]
