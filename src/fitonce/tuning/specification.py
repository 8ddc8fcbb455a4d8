"""What is tuned, as values: the kernel and its parameters, alpha, penalty, criterion."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import PARAMETERS, Kernel, central_gamma, scale_gamma
from ..sums import SumPlan
from .criterion import Criterion
from .decompose import FitIntercept
from .lattice import GammaLattice
from .problem import Data

TUNED_VALUES: dict[str, tuple[Any, ...]] = {
    "penalty": ("function", "dual"),
    "degree": (2, 3, 4),
    "coef0": (0.0, 1.0),
}


def is_option(value: Any, *names: str) -> bool:
    """Whether a parameter is one of these words; arrays are not compared."""
    return isinstance(value, str) and value in names


@dataclass(frozen=True)
class Specification:
    """A model with its parameters as given: numbers, or words such as "tune".

    `alphas` are the candidates, None where they are placed by the rows. `dropping` says that
    landmarks leave with their rows, `search` how gamma is looked for where there are many rows.
    """

    kernel: Any
    kernel_params: Mapping[str, Any] | None
    gamma: Any
    degree: Any
    coef0: Any
    penalty: str
    alphas: np.ndarray | None
    fit_intercept: FitIntercept
    criterion: Criterion
    refine: bool = False
    dropping: bool = False
    search: str = "auto"

    @property
    def used(self) -> tuple[str, ...]:
        """The parameters that the kernel has."""
        named = isinstance(self.kernel, str)
        return PARAMETERS[self.kernel] if named else ()

    @property
    def tunes_gamma(self) -> bool:
        return "gamma" in self.used and is_option(self.gamma, "tune", "ard")

    @property
    def tunes_sum(self) -> bool:
        """Whether weights or widths of a sum of kernels are tuned."""
        return isinstance(self.kernel, SumPlan) and self.kernel.tunes

    @property
    def ard(self) -> bool:
        """One gamma per feature."""
        return is_option(self.kernel, "rbf") and is_option(self.gamma, "ard")

    @property
    def refines(self) -> bool:
        """Whether the search goes on beyond its lattice."""
        return (self.refine or self.ard) and (self.alphas is None or self.tunes_gamma)

    def others(self) -> list[dict[str, Any]]:
        """Every combination of the tuned parameters that are not gamma or alpha."""
        options = {
            name: values
            for name, values in TUNED_VALUES.items()
            if (name in self.used or name == "penalty") and is_option(getattr(self, name), "tune")
        }
        combinations = itertools.product(*options.values())
        return [dict(zip(options, values, strict=True)) for values in combinations]

    def gamma_lattice(self, data: Data) -> GammaLattice | None:
        if not self.tunes_gamma:
            return None
        reach = 6 if self.kernel in ("rbf", "laplacian") else 4
        return GammaLattice.around(central_gamma(self.kernel, data.X, data.weights), reach)

    def kernel_at(self, data: Data, chosen: Mapping[str, Any]) -> Kernel:
        """The kernel with chosen values for the parameters that are tuned."""
        if isinstance(self.kernel, SumPlan):
            return self.kernel.at(data.X, data.weights, chosen)
        if callable(self.kernel):
            return Kernel(self.kernel, dict(self.kernel_params or {}))
        parameters = {name: chosen.get(name, getattr(self, name)) for name in self.used}
        if "gamma" in parameters:
            parameters["gamma"] = _gamma(parameters["gamma"], data)
        return Kernel(self.kernel, parameters)

    def central_kernel(self, data: Data) -> Kernel:
        """The kernel by which landmarks are chosen: as given, tuned parameters in the middle of
        what will be tried.
        """
        centre: dict[str, Any] = {"degree": 3, "coef0": 1.0}
        if self.tunes_gamma:
            centre["gamma"] = central_gamma(self.kernel, data.X, data.weights)
        tuned = {n: v for n, v in centre.items() if is_option(getattr(self, n), "tune", "ard")}
        return self.kernel_at(data, tuned)


def _gamma(gamma: Any, data: Data) -> Any:
    """A number, or one width per feature."""
    n_features = data.X.shape[1]
    if np.ndim(gamma) == 1:
        if len(gamma) != n_features:
            raise ValueError(
                f"gamma must be one number, or one width per feature ({n_features}), got "
                f"{len(gamma)} of them instead. It is not a list of candidates: use "
                '"tune" to have it chosen.'
            )
        return np.asarray(gamma, dtype=np.float64)
    if gamma is None or is_option(gamma, "auto"):
        return 1.0 / n_features
    return scale_gamma(data.X, data.weights) if is_option(gamma, "scale") else gamma
