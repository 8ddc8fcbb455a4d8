"""Weighted sums of kernels: as a user declares them, with known columns, and with all parameters
decided.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..core.arrays import Array, asarray_like, namespace, take, to_numpy
from ..core.refused import RefusedError
from .distances import RADIAL, PointKernel
from .formulas import PARAMETERS, Kernel, check_square, gamma_of

TUNED_WIDTHS = tuple(RADIAL)  # kernels whose gamma has a gradient
NAMED = tuple(name for name in PARAMETERS if name != "precomputed")
DEFAULTS = {"gamma": "tune", "degree": 3, "coef0": 1}  # of kernels that a dictionary leaves out
WEIGHTS, GAMMA = "kernel__weights", "kernel__gamma"  # names for `set_params` of an estimator
Columns = slice | np.ndarray


class KernelSum(BaseEstimator):
    """A weighted sum of several kernels, each on its own columns.

    Pass it as `kernel` to one of the estimators. Their own `gamma`, `degree` and `coef0` are then
    not used.

    Parameters
    ----------
    kernels : list of (name, kernel, columns)
        As in scikit-learn's ColumnTransformer. The kernel is a name, a callable on matrices, or a
        precomputed matrix (N, N), whose single column of X gives the index of each row in it.
    weights : "tune", "equal", sequence or dict of numbers, default="tune"
        Weight θ ≥ 0 of each kernel, in order or by name. "tune" minimizes the held-out squared
        error of the targets, together with alpha and the tuned gammas; the criterion of the
        estimator chooses among several starting points. "equal" gives every kernel the same share.
    gamma : "tune", "scale", "auto", float or dict, default="tune"
        For every kernel that has one, or by name; kernels that are not named are tuned. Tuning
        works for kernels based on distances, not for "poly" and "sigmoid".
    degree, coef0 : float or dict, default=3 and 1
        For every kernel that has one, or by name.

    Notes
    -----
    Tuned weights are scaled so that Σ θ_b v_b = 1, where v_b is the mean squared distance of the
    training rows from their center in the feature space of kernel b. So θ_b v_b is the share of a
    kernel. If alpha is fixed, weights are not scaled, since alpha is relative to them.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import KernelRidge, KernelSum
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 12))
    >>> Y = X[:, :4] @ rng.standard_normal((4, 3)) + np.sin(2 * X[:, 4:7])
    >>> Y += 0.5 * rng.standard_normal(Y.shape)
    >>> kernel = KernelSum([("sound", "linear", slice(0, 4)), ("motion", "rbf", [4, 5, 6]),
    ...                     ("nothing", "linear", slice(7, 12))])
    >>> model = KernelRidge(kernel=kernel).fit(X, Y)
    >>> {name: weight > 0.01 for name, weight in model.kernel_.weights.items()}
    {'sound': True, 'motion': True, 'nothing': False}
    """

    def __init__(
        self,
        kernels: Any,
        weights: Any = "tune",
        *,
        gamma: Any = "tune",
        degree: Any = 3,
        coef0: Any = 1,
    ) -> None:
        self.kernels = kernels
        self.weights = weights
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def __sklearn_clone__(self) -> KernelSum:
        """The same parameters; matrices are shared, not copied."""
        return KernelSum(**self.get_params(deep=False))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KernelSum):
            return NotImplemented
        return _equal(self.get_params(deep=False), other.get_params(deep=False))

    __hash__ = None  # type: ignore[assignment]

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.kernels]

    @property
    def functions(self) -> list[Any]:
        return [kernel for _, kernel, _ in self.kernels if callable(kernel)]

    @property
    def tunes(self) -> bool:
        """Whether weights or widths are tuned."""
        tuned = (member.tunes_gamma for member in self._members())
        return is_word(self.weights, "tune") or any(tuned)

    @property
    def dependence(self) -> str | None:
        """A description of what depends on the training rows."""
        if is_word(self.weights, "tune"):
            return "the weights of kernels are chosen on each training set"
        if is_word(self.weights, "equal"):
            return 'weights="equal" depends on the training rows'
        given = (member.gamma for member in self._members())
        word = next((gamma for gamma in given if is_word(gamma, "tune", "scale")), None)
        return None if word is None else f"gamma={word!r} depends on the training rows"

    def untuned(self) -> KernelSum:
        """The same sum without using the targets: equal shares, and gamma="scale"."""
        known = [member for member in self._members() if member.gamma is not None]
        scaled = {m.name: "scale" if m.tunes_gamma else m.gamma for m in known}
        weights = "equal" if is_word(self.weights, "tune") else self.weights
        return self._with(gamma=scaled, weights=weights)

    def without(self, name: str) -> KernelSum:
        """The sum without one of its kernels."""
        if name not in self.names or len(self.names) == 1:
            raise ValueError(
                f"name must be one of {self.names}, and two kernels must exist, got {name!r} "
                "instead."
            )
        weights = self.weights if isinstance(self.weights, str) else self._weights()
        changed: dict[str, Any] = {"kernels": [part for part in self.kernels if part[0] != name]}
        for option, given in {**self.get_params(deep=False), "weights": weights}.items():
            if isinstance(given, Mapping):
                changed[option] = {n: value for n, value in given.items() if n != name}
        return self._with(**changed)

    def plan(self, n_features: int, feature_names: Any = None) -> SumPlan:
        """The sum with its columns as indices; raises errors for invalid parameters."""
        members = []
        for member in self._members():
            columns = column_numbers(member.name, member.columns, n_features, feature_names)
            members.append(replace(member, columns=columns))
            members[-1].check()
        if is_word(self.weights, "equal"):
            return SumPlan(tuple(members), "equal")
        tuned = is_word(self.weights, "tune")
        return SumPlan(tuple(members), None if tuned else tuple(self._weights().values()))

    def decided(self, kernel: SummedKernel) -> KernelSum:
        """The sum with the columns, weights and widths of a kernel built from it."""
        members = kernel.members
        return self._with(
            kernels=[(member.name, member.kernel, member.columns) for member in members],
            weights=dict(zip(self.names, map(float, kernel.weights), strict=True)),
            gamma={m.name: float(m.gamma) for m in members if m.gamma is not None},
        )

    def kernel(self, n_features: int) -> SummedKernel:
        """The kernel of a sum whose parameters are all decided."""
        return self.plan(n_features).at(None, None, {})

    def _with(self, **changed: Any) -> KernelSum:
        return KernelSum(**{**self.get_params(deep=False), **changed})

    # ---- what its parameters may be --------------------------------------------------------------

    def _members(self) -> list[Member]:
        """The kernels with valid parameters, and columns as given."""
        _check_parts(self.kernels)
        gammas, degrees, coef0s = (self._option(option) for option in DEFAULTS)
        members = []
        for name, kernel, columns in self.kernels:
            if not (is_finite_number(degrees[name]) and is_finite_number(coef0s[name])):
                raise ValueError(
                    f"degree and coef0 of the kernel {name!r} must be finite numbers, got "
                    f"{degrees[name]!r} and {coef0s[name]!r} instead."
                )
            gamma = _checked_gamma(name, kernel, gammas[name])
            powers = float(degrees[name]), float(coef0s[name])
            members.append(Member(name, kernel, columns, gamma, *powers))
        return members

    def _option(self, option: str) -> dict[str, Any]:
        """A parameter of every kernel by name, as given."""
        given = getattr(self, option)
        if not isinstance(given, Mapping):
            return dict.fromkeys(self.names, given)
        _check_names(option, given, self.names)
        return {name: given.get(name, DEFAULTS[option]) for name in self.names}

    def _weights(self) -> dict[str, float]:
        """The weights by name, where they are numbers."""
        names, given = self.names, self.weights
        if isinstance(given, Mapping):
            _check_names("weights", given, names)
            given = [given.get(name) for name in names]
        numeric = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)
        fine = (
            numeric
            and len(given) == len(names)
            and all(is_finite_number(w) and w >= 0 for w in given)
        )
        if not fine or not any(given):
            raise ValueError(
                f'weights must be "tune", "equal" or one number for each kernel of {names}, none '
                f"negative and not all zero, got {self.weights!r} instead: with a negative weight, "
                "the sum would not be a kernel."
            )
        return dict(zip(names, map(float, given), strict=True))


def _check_parts(kernels: Any) -> None:
    """Refuse what is no list of triples with unique names and kernels that exist."""
    triples = isinstance(kernels, Sequence) and all(
        isinstance(part, (tuple, list)) and len(part) == 3 and isinstance(part[0], str)
        for part in kernels
    )
    if not triples or not kernels or len({part[0] for part in kernels}) < len(kernels):
        raise ValueError(
            "kernels must be a list of triples (name, kernel, columns), at least one of them, with "
            f"unique names, got {kernels!r:.100} instead."
        )
    for name, kernel, _ in kernels:
        known = is_word(kernel, *NAMED) or callable(kernel) or getattr(kernel, "ndim", 0) == 2
        if not known or sp.issparse(kernel):
            raise ValueError(
                f"the kernel {name!r} must be one of {', '.join(map(repr, NAMED))}, a callable "
                f"kernel(X, Y) -> matrix or a dense square matrix, got {kernel!r:.100} instead. "
                "Pass a precomputed kernel as a matrix, and as columns the one column of X with "
                "the index of each row in the matrix, so that the rows can be split."
            )


def _checked_gamma(name: str, kernel: Any, given: Any) -> Any:
    """The gamma of one kernel as given, None if it has none."""
    if not isinstance(kernel, str) or "gamma" not in PARAMETERS[kernel]:
        return None
    words = '"scale" or "auto"'
    number = is_finite_number(given)
    if kernel in TUNED_WIDTHS:
        words, number = f'positive, "tune", {words}', number and given > 0
        number = number or is_word(given, "tune")
    if not number and not is_word(given, "scale", "auto"):
        raise ValueError(
            f"gamma of the {kernel} kernel {name!r} must be a number, {words}, got {given!r} "
            f"instead. Kernels other than {', '.join(TUNED_WIDTHS)} cannot be tuned in a sum."
        )
    return given


def _check_names(option: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse an option for a kernel that is not there."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"{option} contains {unknown[0]!r}, which is not one of the kernels {list(names)}."
        )


def is_finite_number(value: Any) -> bool:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and bool(np.isfinite(value))


def _equal(a: Any, b: Any) -> bool:
    """Whether two parameters are equal, arrays and lists entry by entry."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return a is b or bool(np.array_equal(to_numpy(np.asarray(a)), np.asarray(b)))
    return bool(a == b)


# ---- with known columns, and with all parameters decided ----------------------------------------


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
