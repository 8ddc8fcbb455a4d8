"""Sums of kernels, K = Σ_b θ_b K_b: each looks at columns of its own and has a weight of its own.

`KernelSum` is what a user writes down. With the columns of the rows known it becomes a `SumPlan`,
and with weights and widths decided a `SummedKernel`, which is a kernel like any other.
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
