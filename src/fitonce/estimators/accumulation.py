"""A model from sums over blocks of rows, which can be computed anywhere.

For example on a queue, in Spark, over MPI, or from one file per night.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from ..core.arrays import is_numpy, take, to_numpy
from ..core.moments import MomentFit, Moments, merge, merge_folds
from ..core.readout import Readout
from ..core.rows import block_rows
from ..landmarks.features import LandmarkMap, landmark_map
from ..rows.blocks import checked_block, rechunked
from ..rows.places import brought, sent
from ..tuning.data import Data
from ..tuning.lattice import alpha_lattice
from ..tuning.search import Search, Trial
from ..tuning.solution import Solution
from ..tuning.specification import is_option
from .parameters import as_numbers
from .setup import Labels, specification_of
from .validation import check_landmarks


@dataclass(frozen=True)
class Part:
    """The moments of some rows, fold by fold.

    Parts are small (p×p numbers per fold), can be pickled, and can be added in any order.
    """

    folds: Mapping[int, Moments]

    def merge(self, other: Part) -> Part:
        """The part of both sets of rows together."""
        return Part(merge_folds(self.folds, other.folds))

    @property
    def n_rows(self) -> int:
        return sum(moments.n_rows for moments in self.folds.values())


class Accumulation:
    """Fit an estimator from sums over blocks, without having all rows in one place.

    `accumulate` reduces every block to a `Part`, wherever the block is. Parts can be merged in any
    order, and `fit` builds the model. This takes one pass over the rows and p×p numbers of traffic
    for each block. Candidates for alpha are compared by the k-fold squared error of the targets,
    which follows exactly from the parts of the folds, without another pass. Results that need a
    second pass are not available: leave-one-out values, other criteria, calibration. For these,
    use ``fit`` of the estimator on `fitonce.rows.open_rows`.

    Parameters
    ----------
    estimator : KernelFisherDiscriminant, LeastSquaresSVC or KernelRidge
        The estimator, with fixed kernel parameters, ``calibration=None``, and alpha a number,
        candidates or "tune" (the last two need folds). Its `landmarks` are ignored.
    landmarks : array of shape (n_landmarks, n_features)
        The landmarks, the same for all blocks.
    classes : array-like, optional
        All labels, for classifiers: a single block may lack some of them.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import Accumulation, LeastSquaresSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = LeastSquaresSVC(gamma=0.5, calibration=None)
    >>> job = Accumulation(model, X[:40], classes=["other", "same"])
    >>> blocks = [slice(i, i + 100) for i in range(0, 600, 100)]
    >>> parts = [job.accumulate(X[b], y[b], fold=i) for i, b in enumerate(blocks)]
    >>> model = job.fit(parts)
    >>> print(f"{model.score(X, y):.2f}")
    0.98
    """

    def __init__(self, estimator: Any, landmarks: Any, *, classes: Any = None) -> None:
        self.model = clone(estimator)
        self.model.__fitonce_check__()
        self.specification = specification_of(self.model, 0)  # no criterion is asked
        self._refuse_what_needs_rows()
        self.classes = None
        if is_classifier(self.model):
            if classes is None:
                raise ValueError(
                    "classes must be given for a classifier: a single block may not contain all of "
                    "them."
                )
            self.classes = np.unique(np.asarray(classes))
            if len(self.classes) < 2:
                raise ValueError(
                    f"classes must have at least two labels, got {self.classes.tolist()} instead."
                )
        points = np.array(as_numbers("landmarks", landmarks))
        points = check_landmarks(points, points if points.ndim == 2 else np.empty((0, 0)))
        self.features = self._feature_map(points)

    def _refuse_what_needs_rows(self) -> None:
        model = self.model
        if self.specification.chooses_kernel:
            raise ValueError(
                f"kernel must be a single kernel here, got {model.kernel!r}: choosing one needs "
                "all rows."
            )
        tuned = [
            name
            for name in (*self.specification.used, "penalty")
            if is_option(getattr(model, name), "tune", "scale")
        ]
        if tuned:
            raise ValueError(
                f"{', '.join(tuned)} must be fixed here, got {getattr(model, tuned[0])!r}: tuning "
                "needs all rows."
            )
        if getattr(model, "calibration", None) is not None:
            raise ValueError(
                f"calibration must be None here, got {model.calibration!r}: it needs held-out "
                "values of every row."
            )
        if getattr(model, "readout", "lda") == "softmax":
            raise ValueError(
                'readout must be "lda" or "centroid" here, got "softmax": it needs held-out values '
                "of every row."
            )
        if getattr(model, "class_weight", None) is not None:
            raise ValueError(
                "class_weight cannot be used here: pass the weights of the rows as sample_weight."
            )

    def _feature_map(self, points: np.ndarray) -> LandmarkMap:
        specification = self.specification
        no_rows = Data(points, np.empty(0), None, np.empty((0, 0)), None, None)
        kernel = specification.kernel_at(no_rows, {})
        return landmark_map(kernel, points, specification.penalty, specification.fit_intercept)

    def _labels(self, y: np.ndarray) -> Labels:
        """How the estimator reads y; for classes, from one row each and a few more."""
        if self.classes is not None:
            n = len(self.classes)
            y = self.classes[np.arange(2 * n + 2) % n]
        labels: Labels = self.model.__fitonce_labels__(y, None)
        return labels

    def accumulate(self, X: Any, y: Any, sample_weight: Any = None, fold: Any = 0) -> Part:
        """Compute the part of a block.

        The block has rows X (k, n_features), targets y, weights, and the fold of its rows (one
        number, or one per row). The work happens on the device of X, such as a GPU; the part is
        copied to the host.
        """
        X = checked_block(X, "the block", self.features.landmarks.shape[1])
        Y = self._targets(to_numpy(y))
        if len(Y) != len(X):
            raise ValueError(f"the block has {len(X)} rows but {len(Y)} targets.")
        weights = None if sample_weight is None else _block_weights(sample_weight, len(X))[:, None]
        fold = _block_folds(fold, len(X))
        parts: list[Part] = []
        start = 0
        features, (Y, weights) = sent(self.features, X), sent((Y, weights), X)
        for rows in rechunked([X], block_rows(self.features.M.shape[1], host=is_numpy(X))):
            Z = features(rows)
            own = slice(start, start + len(rows))
            for number in np.unique(fold[own]):
                where = np.flatnonzero(fold[own] == number)
                w = None if weights is None else take(weights[own, :], where)
                moments = Moments.of(take(Z, where), take(Y[own, :], where), w)
                parts.append(Part({int(number): moments}))
            start = own.stop
        return brought(reduce(Part.merge, parts) if parts else Part({}))  # type: ignore[no-any-return]

    def _targets(self, y: np.ndarray) -> np.ndarray:
        if self.classes is None:
            numbers = as_numbers("y", y)
            if not np.all(np.isfinite(numbers)):
                raise ValueError("y of the block contains NaN or infinity: leave out those rows.")
            return self._labels(numbers).readout.targets(numbers)
        unknown = np.setdiff1d(y, self.classes)
        if len(unknown):
            raise ValueError(
                f"the block has labels {unknown.tolist()[:5]} that are not in "
                f"classes={self.classes.tolist()[:20]}."
            )
        return self._labels(y).readout.targets(np.searchsorted(self.classes, y))

    def fit(self, parts: Part | Iterable[Part]) -> Any:
        """Fit the estimator to all rows behind the parts.

        If alpha is not a single number, it is chosen by k-fold squared error.
        """
        part = parts if isinstance(parts, Part) else reduce(Part.merge, parts, Part({}))
        if not part.folds:
            raise ValueError(
                "there are no parts to fit: call accumulate for at least one block of rows first."
            )
        total = merge(part.folds.values())
        if not total.weight > 0:
            raise ValueError("sample_weight is zero for every row: there is nothing to fit.")
        labels = self._labels(np.zeros((2, total.sum_Y.shape[0])))
        if self.classes is None and total.sum_Y.shape[0] == 1:
            labels = self._labels(np.zeros(2))
        self._check_classes(labels.readout, total)
        model = clone(self.model)
        solved = MomentFit(total, self.specification.fit_intercept is True)
        self._choose(model, part, total, solved)
        mu = np.array([model.alpha_])
        w = solved.coef(mu)[0]
        solution = Solution(*self.features.model(w, solved.mean_Y, solved.mean_Z))
        z = solved.z
        E = solved.target_scatter - (z * solved.inverse(mu)).T @ z
        sizes = np.diagonal(total.YY).copy()
        model._set_without_rows(labels, self.features, solution, E, sizes)
        return model

    def _check_classes(self, readout: Readout, total: Moments) -> None:
        """Check that every class has rows.

        The class sizes follow from Σw and the sums of the targets, which are linear in the sizes.
        """
        if self.classes is None:
            return
        targets = readout.targets(np.arange(len(self.classes)))
        system = np.column_stack([targets, np.ones(len(targets))]).T
        sizes = np.linalg.lstsq(system, np.append(total.sum_Y, total.weight), rcond=None)[0]
        missing = self.classes[sizes <= 1e-13 * total.weight]
        if len(missing):
            raise ValueError(
                f"classes contains labels {missing.tolist()[:5]} that no row with positive weight "
                "has: remove them from classes."
            )

    def _choose(self, model: Any, part: Part, total: Moments, solved: MomentFit) -> None:
        given = self.specification.alphas
        if given is not None and len(given) == 1:
            model.alpha_ = float(given[0])
            return
        if len(part.folds) < 2:
            raise ValueError(
                "choosing alpha needs parts of at least two folds: pass the fold of each row to "
                "accumulate."
            )
        alphas = alpha_lattice(solved, total.weight) if given is None else np.unique(given)
        errors = np.zeros(len(alphas))
        for moments in part.folds.values():
            trained = MomentFit(total.without(moments), solved.free_bias)
            coef = trained.coef(alphas)
            errors += trained.squared_error(moments, coef, trained.intercept(coef))
        found = Search([Trial({}, alphas, errors / (total.weight * total.sum_Y.shape[0]))])
        model.alpha_, model.best_score_ = found.winner.alpha, -found.winner.loss
        model.cv_results_, model.best_params_ = found.cv_results(), {"alpha": model.alpha_}


def _block_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights of a block, which may all be zero, since other blocks can have positive weights."""
    weights = as_numbers("sample_weight", sample_weight)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one weight for each of the {n_rows} rows of the block, got "
            f"shape {weights.shape} instead."
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(
            "sample_weight must be finite and not negative: a weight counts how often a row is "
            "there."
        )
    return weights


def _block_folds(fold: Any, n_rows: int) -> np.ndarray:
    numbers = np.asarray(fold) if n_rows else np.empty(0, dtype=int)
    if numbers.dtype.kind not in "iu" or numbers.shape not in ((), (n_rows,)):
        raise ValueError(
            f"fold must be an integer, or one for each of the {n_rows} rows of the block, got "
            f"{fold!r} instead."
        )
    return np.broadcast_to(numbers, (n_rows,))
