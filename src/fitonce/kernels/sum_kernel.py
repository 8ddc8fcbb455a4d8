"""A sum of kernels with known columns, and with all parameters decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, asarray_like, namespace, take, to_numpy
from ..core.refused import RefusedError
from .distances import PointKernel
from .formulas import PARAMETERS, Kernel, check_square, gamma_of

WEIGHTS, GAMMA = "kernel__weights", "kernel__gamma"  # names for `set_params` of an estimator
Columns = slice | np.ndarray


def is_word(value: Any, *words: str) -> bool:
    return isinstance(value, str) and value in words


def column_numbers(name: str, given: Any, n_features: int, feature_names: Any) -> Columns:
    """Columns as indices, or as a slice where they are neighbors: a view, not a copy."""
    listed = given if isinstance(given, slice) else np.atleast_1d(np.asarray(given))
    names = [] if isinstance(listed, slice) else listed.ravel().tolist()
    if names and all(isinstance(column, str) for column in names):
        listed = _named_columns(name, names, feature_names)
    try:
        found = np.arange(n_features)[listed]
    except (IndexError, TypeError) as error:
        raise ValueError(
            f"columns of the kernel {name!r} must be a slice of integers, indices below "
            f"{n_features}, a mask with one entry for each of the {n_features} columns of X, or a "
            f"list of names, got {given!r:.100} instead. Use slice(None) for all columns."
        ) from error
    if found.ndim != 1 or found.size == 0:
        raise ValueError(f"the kernel {name!r} has no columns, got {given!r:.100}.")
    if np.all(np.diff(found) == 1):
        return slice(int(found[0]), int(found[-1]) + 1)
    return np.asarray(found, dtype=np.intp)


def _named_columns(name: str, wanted: list[str], feature_names: Any) -> np.ndarray:
    """Indices of columns given by their names."""
    known = [] if feature_names is None else list(feature_names)
    position = dict(zip(known, range(len(known)), strict=True))
    missing = [column for column in wanted if column not in position]
    if missing:
        none = (
            "no such column" if known else "no column names: fit on a data frame, or pass indices"
        )
        raise ValueError(f"the kernel {name!r} uses the column {missing[0]!r}, but X has {none}.")
    return np.array([position[column] for column in wanted], dtype=np.intp)


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
        """Refuse a matrix that is no kernel, or whose rows are not given by one column."""
        if isinstance(self.kernel, str) or callable(self.kernel):
            return
        check_square(self.kernel)
        columns = self.columns
        n_columns = columns.stop - columns.start if isinstance(columns, slice) else columns.shape[0]
        if n_columns != 1:
            raise RefusedError(
                f"the precomputed kernel {self.name!r} needs one column of X with the index of "
                f"each row in the matrix, got {n_columns} columns instead."
            )

    def rows(self, X: Any) -> Any:
        """The columns of this kernel."""
        if isinstance(self.columns, slice) or sp.issparse(X):
            return X[:, self.columns]
        return take(X.T, self.columns).T

    def gamma_at(self, X: Any, weights: np.ndarray | None) -> Any:
        """gamma as a number, if it is not tuned."""
        rule = isinstance(self.gamma, str)
        return gamma_of(self.gamma, self.rows(X), weights) if rule else self.gamma

    def variance(self, X: Any, weights: np.ndarray | None) -> float:
        """v = Σ w ‖φ(x) - mean‖²/Σw, the mean squared distance of rows from their center in the
        feature space of this kernel, gamma decided; one if the kernel is constant.
        """
        rows = self.rows(X)
        K = self.with_gamma(self.gamma)(rows, rows)
        w = np.ones(K.shape[0]) if weights is None else weights
        w = asarray_like(w / w.sum(), K)
        variance = float(w @ namespace(K).linalg.diagonal(K) - w @ (K @ w))
        return variance if variance > 0 else 1.0

    def with_gamma(self, gamma: float | None) -> Kernel:
        """The kernel of these columns, with all its parameters."""
        if callable(self.kernel):
            return Kernel(self.kernel)
        if not isinstance(self.kernel, str):
            return Kernel(MatrixLookup(self.kernel))
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
        tuned, known = chosen or {}, [m for m in self.members if m.gamma is not None]
        return {m.name: tuned[m.name] if m.tunes_gamma else m.gamma_at(X, weights) for m in known}

    def at(self, X: Any, weights: np.ndarray | None, chosen: Mapping[str, Any]) -> SummedKernel:
        """The kernel for these training rows, with the chosen weights and widths."""
        gammas = self.gammas(X, weights, chosen.get(GAMMA))
        members = tuple(replace(m, gamma=gammas.get(m.name)) for m in self.members)
        if self.weights is None:
            theta = tuple(chosen[WEIGHTS][member.name] for member in members)
        elif isinstance(self.weights, str):
            variances = [member.variance(X, weights) for member in members]
            theta = tuple(1.0 / (len(members) * variance) for variance in variances)
        else:
            theta = self.weights
        return SummedKernel("sum", {}, members, theta)


@dataclass(frozen=True)
class MatrixLookup:
    """k(x, x') = matrix[x, x'] for rows given as indices into a matrix."""

    matrix: Any

    def __call__(self, X: Array, Y: Array) -> Array:
        found = np.ix_(self._numbers(X), self._numbers(Y))
        return np.asarray(to_numpy(self.matrix), dtype=np.float64)[found]

    def _numbers(self, X: Array) -> np.ndarray:
        """The one column of X as row numbers of the matrix."""
        given = to_numpy(X.toarray() if sp.issparse(X) else X)[:, 0]
        rows = np.rint(given).astype(np.intp)
        n = self.matrix.shape[0]
        wrong = (rows != given) | (rows < 0) | (rows >= n)
        if np.any(wrong):
            raise RefusedError(
                "the column of a precomputed kernel must contain row indices of its matrix, 0 to "
                f"{n - 1}, got {given[wrong][0]:g} instead. "
                "Preprocessing must leave this column unchanged."
            )
        return np.asarray(rows)


@dataclass(frozen=True)
class SummedKernel(Kernel):
    """Σ_b θ_b k_b(x, x') with all parameters decided."""

    members: tuple[Member, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def kernels(self) -> list[Kernel]:
        return [member.with_gamma(member.gamma) for member in self.members]

    @property
    def definite(self) -> bool:
        return all(kernel.definite for kernel in self.kernels)

    @property
    def foreign(self) -> bool:
        return any(kernel.foreign for kernel in self.kernels)

    def with_points(self, Y: Array, constant: bool = False) -> PointKernel:
        parts = [self.part(b, Y, constant) for b, weight in enumerate(self.weights) if weight > 0]
        offset = sum(part.offset for part in parts)
        return PointKernel(lambda X: reduce(iadd, [part(X) for part in parts]), offset)

    def part(self, number: int, Y: Array, constant: bool = False) -> PointKernel:
        """θ_b k_b with some points."""
        member, weight = self.members[number], self.weights[number]
        points = member.rows(Y)
        of_rows = member.with_gamma(member.gamma).with_points(points, constant)

        def weighted(X: Array) -> Array:
            K = of_rows(points if X is Y else member.rows(X))
            K *= weight
            return K

        return PointKernel(weighted, weight * of_rows.offset)
