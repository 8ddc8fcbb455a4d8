"""The rows that train, a sample of them, and what is tuned, as values: kernel, alpha, penalty,
criterion.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.arrays import Array, asarray_like, namespace, take, to_numpy
from ..core.columns import Columns
from ..core.holdout import Deletion
from ..core.refused import RefusedError
from ..core.rows import dense_like, is_rows
from ..kernels import EUCLIDEAN, PARAMETERS, RADIAL, Kernel, SumPlan, central_gamma, gamma_of
from ..kernels.sums import is_word
from ..landmarks.choice import Landmarks
from .criterion import Criterion
from .decompose import FitIntercept
from .gamma_search import Branch, GammaLattice

# what these cost in quality: benchmarks/models.py search_500, search_1200
SAMPLED_FROM = 400  # rows; below, every kernel is tried on all of them
PROBED_FROM = 1000  # rows; below, the walk on all of them decomposes at every gamma
SAMPLE = 700  # rows that are enough to begin with, unless that is below a third of all
FEW = 5  # sampled rows of a class; where it has fewer, all of its rows come


@dataclass(frozen=True)
class Data:
    """The rows that train: features (or kernel), y as given, targets, weights and their roots.

    `confounds` C (n, q) are `removed` from the features, or else predictors without a penalty.
    `codes` are class indices and `classes` the labels they stand for, None for regression. Targets
    that are processed in blocks are `columns`; `y` and `targets` have none then.
    """

    X: Any
    y: np.ndarray
    codes: np.ndarray | None
    targets: np.ndarray
    weights: np.ndarray | None
    row_scale: Array | None
    landmarks: Landmarks | None = None
    classes: np.ndarray | None = None
    confounds: Array | None = None
    removed: bool = True
    columns: Columns | None = None

    def rows(self, rows: np.ndarray) -> Data:
        """Some of the rows, without landmarks."""
        names = ("X", "y", "codes", "targets", "weights", "row_scale", "confounds")
        given = ((name, getattr(self, name)) for name in names)
        some = {
            name: A.subset(rows) if is_rows(A) else take(A, rows)
            for name, A in given
            if A is not None
        }
        columns = None if self.columns is None else self.columns.take(rows)
        return replace(self, **some, columns=columns, landmarks=None)

    def relabelled(self, y: np.ndarray, codes: np.ndarray | None, targets: np.ndarray) -> Data:
        return replace(self, y=y, codes=codes, targets=targets)

    @property
    def total_weight(self) -> float:
        return float(self.X.shape[0]) if self.weights is None else float(self.weights.sum())


@dataclass(frozen=True)
class Sample:
    """A sample of the rows for the first part of a search: their numbers, and a key, where equal
    keys are equal features and weights.
    """

    rows: np.ndarray
    key: bytes

    def deletions(
        self, deletions: Sequence[Deletion] | None, n_samples: int
    ) -> list[Deletion] | None:
        """Splits of all rows as splits of the sample; those that test none of its rows are gone."""
        if deletions is None:
            return None
        position = np.full(n_samples, -1)
        position[self.rows] = np.arange(len(self.rows))
        restricted = []
        for deleted, tested in deletions:
            left = position[deleted] >= 0
            number = np.cumsum(left) - 1
            if left[tested].any():
                restricted.append((position[deleted[left]], number[tested[left[tested]]]))
        return restricted


def sample_of(data: Data, deletions: Sequence[Deletion] | None = None) -> Sample:
    """The sample of the rows that train. Cost: one projection and a sort.

    The rows are sorted by a fixed projection of their features, and rows at equal distances in that
    order are taken. So the sample depends on the rows and not on their order, and it is spread over
    all of them. Labels matter only for rows with equal features, and for rare classes, which are
    included completely.
    """
    n = data.X.shape[0]
    place = _projected(data.X)
    weights = np.ones(n) if data.weights is None else data.weights
    split = np.zeros(n)  # of rows that are the same in all else
    for number, (deleted, _) in enumerate(deletions or ()):
        split[deleted] = number
    order = np.lexsort((split, *data.targets.T, weights, place))
    m = max(n // 3, min(n // 2, SAMPLE))
    taken = np.zeros(n, dtype=bool)
    taken[order[((np.arange(m) + 0.5) * n / m).astype(int)]] = True
    if data.codes is not None:
        counts = np.bincount(data.codes[taken], minlength=int(data.codes.max()) + 1)
        taken |= counts[data.codes] < FEW
    rows = order[taken[order]]
    return Sample(rows, place[rows].tobytes() + weights[rows].tobytes())


def _projected(X: Any) -> np.ndarray:
    """One number for each row, on the host; the sums run over a row's own entries only, so that
    equal rows have equal ones wherever they stand.
    """
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    if hasattr(X, "multiply"):
        return np.asarray(X.multiply(direction[None, :]).sum(axis=1), dtype=np.float64).ravel()
    u = asarray_like(direction, dense_like(X))
    return np.asarray(to_numpy(namespace(X).sum(X * u, axis=1)), dtype=np.float64)


TUNED_VALUES: dict[str, tuple[Any, ...]] = {
    "penalty": ("function", "dual"),
    "degree": (2, 3, 4),
    "coef0": (0.0, 1.0),
}


@dataclass(frozen=True)
class Specification:
    """A model with its parameters as given: numbers, or words such as "tune".

    `kernel` is a name or a function, or a tuple of names of which one is to be chosen.
    `alphas` are the candidates, None if they are placed by the rows. `dropping` says that
    landmarks leave with their rows, `search` how finely gamma and alpha are looked for, on a sample
    first where there are many rows, `each_target` that every target has an alpha of its own.
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
    each_target: bool = False

    @property
    def families(self) -> tuple[Any, ...]:
        """The kernels that are compared; one, where none is chosen."""
        return self.kernel if isinstance(self.kernel, tuple) else (self.kernel,)

    @property
    def chooses_kernel(self) -> bool:
        return len(self.families) > 1

    @property
    def tunes_gamma(self) -> bool:
        has_gamma = any("gamma" in used_by(family) for family in self.families)
        return has_gamma and is_word(self.gamma, "tune")

    @property
    def tunes_sum(self) -> bool:
        """Whether weights or widths of a sum of kernels are tuned."""
        return isinstance(self.kernel, SumPlan) and self.kernel.tunes

    @property
    def refines(self) -> bool:
        """Whether the search goes on beyond its lattice."""
        return self.refine and (self.alphas is None or self.tunes_gamma)

    def branches(self, data: Data) -> list[Branch]:
        """Every combination of the tuned parameters that are not gamma or alpha, kernels before
        all, each with its lattice of gammas.
        """
        return [
            Branch(other, self._gamma_lattice(family, data))
            for family in self.families
            for other in self._others(family)
        ]

    def _others(self, family: Any) -> list[dict[str, Any]]:
        """The combinations of what is tuned beside gamma and alpha, for one kernel."""
        used = used_by(family)
        options: dict[str, tuple[Any, ...]] = {"kernel": (family,)} if self.chooses_kernel else {}
        options |= {
            name: values
            for name, values in TUNED_VALUES.items()
            if (name in used or name == "penalty") and is_word(getattr(self, name), "tune")
        }
        combinations = itertools.product(*options.values())
        return [dict(zip(options, values, strict=True)) for values in combinations]

    def _gamma_lattice(self, family: Any, data: Data) -> GammaLattice | None:
        """The candidates for the gamma of a kernel; None where it is not tuned."""
        if not (self.tunes_gamma and "gamma" in used_by(family)):
            return None
        centre, coarse = central_gamma(family, data.X, data.weights), self.search == "coarse"
        return GammaLattice.around(centre, *_window(family), coarse)

    def kernel_at(self, data: Data, chosen: Mapping[str, Any]) -> Kernel:
        """The kernel with chosen values for the parameters that are tuned."""
        family = chosen.get("kernel", self.families[0])
        if isinstance(family, SumPlan):
            return family.at(data.X, data.weights, chosen)
        if callable(family):
            return Kernel(family, dict(self.kernel_params or {}))
        parameters = {name: chosen.get(name, getattr(self, name)) for name in used_by(family)}
        if "gamma" in parameters:
            parameters["gamma"] = _gamma(parameters["gamma"], data)
        return Kernel(family, parameters)

    def central_kernel(self, data: Data) -> Kernel:
        """The kernel by which landmarks are chosen: as given, tuned parameters in the middle of
        what will be tried; of several kernels the first.
        """
        family = self.families[0]
        centre: dict[str, Any] = {"degree": 3, "coef0": 1.0}
        if self.tunes_gamma and "gamma" in used_by(family):
            centre["gamma"] = central_gamma(family, data.X, data.weights)
        tuned = {n: v for n, v in centre.items() if is_word(getattr(self, n), "tune")}
        return self.kernel_at(data, tuned)


def used_by(family: Any) -> tuple[str, ...]:
    """The parameters that a kernel has; a function has its own."""
    return PARAMETERS[family] if isinstance(family, str) else ()


def _window(family: str) -> tuple[int, int]:
    """Powers of two below and above the center that are tried first: half as many where gamma
    multiplies the distance itself and not its square.
    """
    if family not in RADIAL:
        return 4, 4
    return (1, 3) if RADIAL[family].distance == EUCLIDEAN else (2, 6)


def _gamma(gamma: Any, data: Data) -> Any:
    """A number, or one width per feature."""
    n_features = data.X.shape[1]
    if np.ndim(gamma) == 1:
        if len(gamma) != n_features:
            raise RefusedError(
                f"gamma must be one number, or one width per feature ({n_features}), got "
                f"{len(gamma)} of them instead. It is not a list of candidates: use "
                '"tune" for that.'
            )
        return np.asarray(gamma, dtype=np.float64)
    return gamma_of(gamma, data.X, data.weights)
