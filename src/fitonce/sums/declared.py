"""Several kernels, as declared by the user."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..core.arrays import to_numpy
from ..kernels import PARAMETERS
from ..radial import RADIAL
from .columns import column_numbers
from .summed import Member, SummedKernel, SumPlan, is_word

TUNED_WIDTHS = tuple(RADIAL)  # kernels whose gamma has a gradient
NAMED = tuple(name for name in PARAMETERS if name != "precomputed")


class KernelSum(BaseEstimator):
    """A weighted sum of several kernels, each on its own columns.

    Pass it as `kernel` to one of the estimators. Their own `gamma`, `degree` and `coef0` are then
    not used.

    Parameters
    ----------
    kernels : list of (name, kernel, columns)
        As in scikit-learn's ColumnTransformer. The kernel is a name known to the estimators
        ("linear", "rbf", …), a callable on matrices, or a precomputed matrix. Columns are a slice,
        indices, a mask, or names of a data frame. A precomputed matrix (N, N) contains the kernel
        between all rows that will ever be used; its single column of X gives the index of each row
        in the matrix.
    weights : "tune", "equal", sequence or dict of numbers, default="tune"
        Weight θ of each kernel, in order or by name; weights must not be negative. "tune" minimizes
        the held-out squared error of the targets with its exact gradient, together with alpha and
        the tuned gammas; the criterion of the estimator chooses among the results of several
        starting points. "equal" gives every kernel the same share, without using the targets.
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
    def tunes(self) -> bool:
        """Whether weights or widths are tuned."""
        return is_word(self.weights, "tune") or any(is_word(g, "tune") for g in self._gammas())

    @property
    def dependence(self) -> str | None:
        """A description of what depends on the training rows."""
        if is_word(self.weights, "tune"):
            return "the weights of kernels are chosen on each training set"
        if is_word(self.weights, "equal"):
            return 'weights="equal" depends on the training rows'
        for gamma in self._gammas():
            if is_word(gamma, "tune", "scale"):
                return f"gamma={gamma!r} depends on the training rows"
        return None

    def untuned(self) -> KernelSum:
        """The same sum without using the targets: equal shares, and gamma="scale"."""
        gammas = dict(zip(self.names, self._gammas(), strict=True))
        parameters = self.get_params(deep=False)
        parameters["gamma"] = {
            name: "scale" if is_word(gamma, "tune") else gamma
            for name, gamma in gammas.items()
            if gamma is not None
        }
        if is_word(self.weights, "tune"):
            parameters["weights"] = "equal"
        return KernelSum(**parameters)

    def _gammas(self) -> list[Any]:
        parts = [_part(given) for given in _triples(self.kernels)]
        return [self._gamma_of(name, kernel) for name, kernel, _ in parts]

    @property
    def functions(self) -> list[Any]:
        """The kernels that are Python functions."""
        return [kernel for _, kernel, _ in self.kernels if callable(kernel)]

    def without(self, name: str) -> KernelSum:
        """The sum without one of its kernels."""
        if name not in self.names or len(self.names) == 1:
            raise ValueError(
                f"name must be one of {self.names}, and two kernels must exist, got {name!r} "
                "instead."
            )
        parameters = self.get_params(deep=False)
        parameters["kernels"] = [part for part in self.kernels if part[0] != name]
        weights = self.weights
        if not isinstance(weights, str):
            parameters["weights"] = {n: w for n, w in self._weights().items() if n != name}
        for option in ("gamma", "degree", "coef0"):
            if isinstance(parameters[option], Mapping):
                given = parameters[option]
                parameters[option] = {n: value for n, value in given.items() if n != name}
        return KernelSum(**parameters)

    # ---- what it may be --------------------------------------------------------------------------

    def plan(self, n_features: int, feature_names: Any = None) -> SumPlan:
        """The sum with its columns as indices; raises errors for invalid parameters."""
        parts = [_part(given) for given in _triples(self.kernels)]
        names = [name for name, _, _ in parts]
        if len(set(names)) != len(names):
            raise ValueError(f"the kernels of a sum need unique names, got {names} instead.")
        members = tuple(
            Member(
                name,
                kernel,
                column_numbers(name, columns, n_features, feature_names),
                self._gamma_of(name, kernel),
                self._number("degree", name),
                self._number("coef0", name),
            )
            for name, kernel, columns in parts
        )
        for member in members:
            member.check()
        if is_word(self.weights, "equal"):
            return SumPlan(members, "equal")
        weights = None if is_word(self.weights, "tune") else tuple(self._weights().values())
        return SumPlan(members, weights)

    def decided(self, kernel: SummedKernel) -> KernelSum:
        """This sum with the columns, weights and widths of a kernel built from it."""
        names = [member.name for member in kernel.members]
        widths = {
            name: float(part.parameters["gamma"])
            for name, part in zip(names, kernel.kernels, strict=True)
            if "gamma" in part.parameters
        }
        return KernelSum(
            [(member.name, member.kernel, member.columns) for member in kernel.members],
            dict(zip(names, map(float, kernel.weights), strict=True)),
            gamma=widths,
            degree=self.degree,
            coef0=self.coef0,
        )

    def kernel(self, n_features: int) -> SummedKernel:
        """The kernel of a sum whose parameters are all decided."""
        return self.plan(n_features).at(None, None, {})

    def _weights(self) -> dict[str, float]:
        names, given = self.names, self.weights
        if isinstance(given, str) or given is None:
            raise ValueError(
                'weights must be "tune", "equal" or one number for each kernel, got '
                f"{given!r} instead."
            )
        if isinstance(given, Mapping):
            _check_names("weights", given, names)
            given = [given.get(name) for name in names]
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.array(np.nan)
        fine = values.shape == (len(names),) and np.all(np.isfinite(values)) and np.all(values >= 0)
        if not fine or not np.any(values > 0):
            raise ValueError(
                f'weights must be "tune", "equal" or one number for each of {names}, none '
                f"negative and not all zero, got {self.weights!r} instead: with a negative weight, "
                "the sum would not be a kernel."
            )
        return dict(zip(names, values.tolist(), strict=True))

    def _gamma_of(self, name: str, kernel: Any) -> Any:
        given = self._option("gamma", name, "tune")
        if not isinstance(kernel, str) or "gamma" not in PARAMETERS[kernel]:
            return None
        positive = kernel in TUNED_WIDTHS
        number = _is_number(given) and np.isfinite(given) and (given > 0 or not positive)
        if number or is_word(given, "scale", "auto") or (is_word(given, "tune") and positive):
            return given
        if is_word(given, "tune"):
            raise ValueError(
                f"gamma of the {kernel} kernel {name!r} cannot be tuned in a sum: pass "
                f'gamma={{"{name}": a number or "scale"}}. Widths of {", ".join(TUNED_WIDTHS)} '
                "can be tuned."
            )
        raise ValueError(
            f'gamma of the kernel {name!r} must be a {"positive " * positive}number, "tune", '
            f'"scale" or "auto", got {given!r} instead.'
        )

    def _number(self, option: str, name: str) -> float:
        given = self._option(option, name, {"degree": 3, "coef0": 1}[option])
        if not _is_number(given) or not np.isfinite(given):
            raise ValueError(
                f"{option} of the kernel {name!r} must be a finite number, got {given!r} instead."
            )
        return float(given)

    def _option(self, option: str, name: str, default: Any) -> Any:
        given = getattr(self, option)
        if not isinstance(given, Mapping):
            return given
        _check_names(option, given, self.names)
        return given.get(name, default)


def _triples(kernels: Any) -> list[Any]:
    if isinstance(kernels, (str, Mapping)) or not isinstance(kernels, Sequence) or not kernels:
        raise ValueError(
            "kernels must be a list of (name, kernel, columns), at least one of them, got "
            f"{kernels!r:.100} instead."
        )
    return list(kernels)


def _part(given: Any) -> tuple[str, Any, Any]:
    if not isinstance(given, (tuple, list)) or len(given) != 3 or not isinstance(given[0], str):
        raise ValueError(
            f"each kernel of a sum must be a triple (name, kernel, columns), got {given!r:.100} "
            "instead."
        )
    name, kernel, columns = given
    if is_word(kernel, "precomputed"):
        raise ValueError(
            f"pass the kernel {name!r} as a matrix, not as the word 'precomputed', and as columns "
            "the one column of X with the index of each row in the matrix, so that the rows can be "
            "split."
        )
    known = is_word(kernel, *NAMED) or callable(kernel) or getattr(kernel, "ndim", 0) == 2
    if not known or sp.issparse(kernel):
        raise ValueError(
            f"the kernel {name!r} must be one of {', '.join(map(repr, NAMED))}, a callable "
            f"kernel(X, Y) -> matrix or a dense square matrix, got {kernel!r:.100} instead."
        )
    return name, kernel, columns


def _check_names(option: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"{option} contains {unknown[0]!r}, which is not one of the kernels {list(names)}."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return a is b or bool(np.array_equal(to_numpy(np.asarray(a)), np.asarray(b)))
    return bool(a == b)
