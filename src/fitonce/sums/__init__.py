"""Sums of kernels, K = Σ_b θ_b K_b: each kernel has its own columns and its own weight.

`KernelSum` is the declaration by the user. When the columns are known, it becomes a `SumPlan`, and
when weights and widths are decided, a `SummedKernel`, which is a kernel like any other.
"""

from .declared import TUNED_WIDTHS, KernelSum
from .summed import GAMMA, WEIGHTS, MatrixKernel, Member, SummedKernel, SumPlan, variance_of

__all__ = [
    "GAMMA",
    "TUNED_WIDTHS",
    "WEIGHTS",
    "KernelSum",
    "MatrixKernel",
    "Member",
    "SumPlan",
    "SummedKernel",
    "variance_of",
]
