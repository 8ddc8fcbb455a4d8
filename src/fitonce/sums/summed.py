"""A sum of kernels with known columns, and one with all parameters decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, asarray_like, namespace, take, to_numpy
from ..distances import PointKernel
from ..kernels import PARAMETERS, Kernel, central_gamma, check_square, scale_gamma
from .columns import Columns

WEIGHTS, GAMMA = "kernel__weights", "kernel__gamma"  # names for `set_params` of an estimator


def is_word(value: Any, *words: str) -> bool:
    return isinstance(value, str) and value in words


@dataclass(frozen=True)
class Member:
    """One kernel of a sum, with its columns as indices and its parameters as given."""

    name: str
    kernel: Any
    columns: Columns
    gamma: Any
    degree: float
    coef0: float

    @property
    def tunes_gamma(self) -> bool:
        return is_word(self.gamma, "tune")

    def check(self) -> None:
        if isinstance(self.kernel, str) or callable(self.kernel):
            return
        check_square(self.kernel)
        n_columns = (
            len(range(*self.columns.indices(1 << 62)))
            if isinstance(self.columns, slice)
            else len(self.columns)
        )
        if n_columns != 1:
            raise ValueError(
                f"the precomputed kernel {self.name!r} needs one column of X with the index of "
                f"each row in the matrix, got {n_columns} columns instead."
            )

    def rows(self, X: Any) -> Any:
        """The columns of this kernel."""
        if isinstance(self.columns, slice):
            return X[:, self.columns]
        return X[:, self.columns] if sp.issparse(X) else take(X.T, self.columns).T

    def central_gamma(self, X: Any, weights: np.ndarray | None) -> float:
        return central_gamma(self.kernel, self.rows(X), weights)

    def gamma_at(self, X: Any, weights: np.ndarray | None) -> float:
        """gamma as a number, if it is not tuned."""
        if is_word(self.gamma, "auto"):
            return 1.0 / int(self.rows(X).shape[1])
        if is_word(self.gamma, "scale"):
            return scale_gamma(self.rows(X), weights)
        return float(self.gamma)

    def with_gamma(self, gamma: float | None) -> Kernel:
        if callable(self.kernel):
            return Kernel(self.kernel)
        if not isinstance(self.kernel, str):
            return MatrixKernel("matrix", matrix=self.kernel)
        values = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        return Kernel(self.kernel, {name: values[name] for name in PARAMETERS[self.kernel]})


@dataclass(frozen=True)
class SumPlan:
    """A sum of kernels with known columns; `weights` is None if they are tuned, and "equal" if
    every kernel has the same share.
    """

    members: tuple[Member, ...]
    weights: tuple[float, ...] | str | None

    @property
    def tunes(self) -> bool:
        return self.weights is None or any(member.tunes_gamma for member in self.members)

    def gammas(
        self, X: Any, weights: np.ndarray | None, chosen: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """gamma of every kernel that has one: the chosen value if it is tuned."""
        found = {}
        for member in self.members:
            if member.tunes_gamma:
                found[member.name] = (chosen or {})[member.name]
            elif member.gamma is not None:
                found[member.name] = member.gamma_at(X, weights)
        return found

    def at(self, X: Any, weights: np.ndarray | None, chosen: Mapping[str, Any]) -> SummedKernel:
        """The kernel for these training rows, with the chosen weights and widths."""
        gammas = self.gammas(X, weights, chosen.get(GAMMA))
        kernels = tuple(member.with_gamma(gammas.get(member.name)) for member in self.members)
        if self.weights is None:
            theta = tuple(chosen[WEIGHTS][member.name] for member in self.members)
        elif isinstance(self.weights, str):
            rows = (member.rows(X) for member in self.members)
            parts = zip(kernels, rows, strict=True)
            variances = [variance_of(kernel(Z, Z), weights) for kernel, Z in parts]
            theta = tuple(1.0 / (len(kernels) * variance) for variance in variances)
        else:
            theta = self.weights
        return SummedKernel("sum", {}, self.members, kernels, theta)


def variance_of(K: Array, weights: np.ndarray | None) -> float:
    """v = Σ w ‖φ(x) - mean‖²/Σw, the mean squared distance of rows from their center in the feature
    space of a kernel; one if the kernel is constant.
    """
    w = np.ones(K.shape[0]) if weights is None else weights
    w = asarray_like(w / w.sum(), K)
    variance = float(w @ namespace(K).linalg.diagonal(K) - w @ (K @ w))
    return variance if variance > 0 else 1.0


# ---- decided -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatrixKernel(Kernel):
    """k(x, x') = matrix[x, x'] for rows given as indices into a matrix."""

    matrix: Any = None

    @property
    def foreign(self) -> bool:
        return True

    def with_points(self, Y: Array, constant: bool = False) -> PointKernel:
        points = self._numbers(Y)

        def kernel(X: Array) -> Array:
            rows = points if X is Y else self._numbers(X)
            found = np.asarray(to_numpy(self.matrix), dtype=np.float64)[np.ix_(rows, points)]
            return found if sp.issparse(X) else asarray_like(found, X)

        return PointKernel(kernel)

    def _numbers(self, X: Array) -> np.ndarray:
        given = to_numpy(X.toarray() if sp.issparse(X) else X)[:, 0]
        rows = np.rint(given).astype(np.intp)
        n = self.matrix.shape[0]
        if np.any(rows != given) or np.any(rows < 0) or np.any(rows >= n):
            raise ValueError(
                "the column of a precomputed kernel must contain row indices of its matrix, 0 to "
                f"{n - 1}, got {given[(rows != given) | (rows < 0) | (rows >= n)][0]:g} instead. "
                "Preprocessing must leave this column unchanged."
            )
        return np.asarray(rows)


@dataclass(frozen=True)
class SummedKernel(Kernel):
    """Σ_b θ_b k_b(x, x') with all parameters decided."""

    members: tuple[Member, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    weights: tuple[float, ...] = field(default=())

    @property
    def definite(self) -> bool:
        return all(kernel.definite for kernel in self.kernels)

    @property
    def foreign(self) -> bool:
        return any(kernel.foreign for kernel in self.kernels)

    def with_points(self, Y: Array, constant: bool = False) -> PointKernel:
        parts = [self.part(b, Y, constant) for b, weight in enumerate(self.weights) if weight > 0]
        offset = sum(part.offset for part in parts)
        return PointKernel(lambda X: _added([part(X) for part in parts]), offset)

    def part(self, number: int, Y: Array, constant: bool = False) -> PointKernel:
        """θ_b k_b with some points."""
        member, weight = self.members[number], self.weights[number]
        points = member.rows(Y)
        of_rows = self.kernels[number].with_points(points, constant)

        def weighted(X: Array) -> Array:
            K = of_rows(points if X is Y else member.rows(X))
            K *= weight
            return K

        return PointKernel(weighted, weight * of_rows.offset)


def _added(matrices: list[Array]) -> Array:
    total = matrices[0]
    for matrix in matrices[1:]:
        total += matrix
    return total
