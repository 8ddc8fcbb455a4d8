"""What a fit keeps: its rows, its decomposition and its splits.

And all held-out outputs that follow from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.arrays import Array, asarray_like, namespace, take, to_numpy
from ..core.holdout import Fitted, Path
from ..core.readout import Readout, indicators
from ..core.splits import Splits, complement
from ..tuning.outputs import outputs_without_each, predict_without, read_without
from ..tuning.problem import Problem
from ..tuning.tuner import Tuner
from .setup import Training


def record_of(model: Any, what: str) -> FitRecord:
    """The record of a fitted model, with one alpha and all targets in memory, needed by `what`."""
    alpha = alpha_of(model, f"{what}()")
    return replace(kept_of(model, what).whole(), alpha=alpha, penalty=model.penalty_)


def alpha_of(model: Any, what: str = "this") -> float:
    """The alpha of a fitted model with one alpha for all targets, needed by `what`."""
    alpha = getattr(model, "alpha_", np.nan)
    if np.ndim(alpha):
        raise ValueError(
            f"{what} needs one alpha for all targets, got a model with alpha_per_target=True: "
            "fit the targets of interest with alpha_per_target=False."
        )
    return float(alpha)


def record_of_unseen(model: Any, what: str) -> FitRecord:
    """The record of a model whose left-out rows no step of its pipeline has seen with targets."""
    if model._step_with_targets_ is not None:
        raise ValueError(
            f"{what}() compares new rows with training rows that were left out of the model, but "
            f"the step {model._step_with_targets_!r} before it has used their targets: they fit "
            "too well, and fewer new rows would be covered than promised. Choose columns without "
            "y, or on other rows."
        )
    return record_of(model, what)


def kept_of(model: Any, what: str) -> FitRecord:
    """The record as it was kept."""
    record: FitRecord | None = model._kept
    if record is None:
        raise ValueError(
            f"{what}() needs the decomposition of the training rows. It is n×n and therefore not "
            "stored in files or sent to other processes: fit the model again first."
        )
    return record


@dataclass(frozen=True)
class FitRecord:
    """For `at` and `verify`, displays and reports; not stored in files (it is n×n).

    `alpha` and `penalty` are those of the model that `record_of` is asked about.
    """

    training: Training
    tuner: Tuner
    problem: Problem
    folds: Splits | None
    alpha: float = np.nan
    penalty: str = "function"

    def light(self) -> FitRecord:
        """Without a precomputed kernel that the decomposition has overwritten."""
        if not (self.training.precomputed and self.training.all_active):
            return self
        training = replace(self.training, X=self.training.X[:, :0])
        tuner = replace(self.tuner, data=replace(self.tuner.data, X=training.X))
        return replace(self, training=training, tuner=tuner)

    def whole(self) -> FitRecord:
        """With all targets in memory."""
        columns = self.tuner.data.columns
        if columns is None:
            return self
        Y = to_numpy(columns.checked().whole(np.empty(0)))
        training = replace(self.training, y=np.asarray(to_numpy(self.training.y)))
        data = replace(self.tuner.data, y=Y, targets=Y, columns=None)
        tuner, problem = replace(self.tuner, data=data), self.problem.with_targets(Y)
        return replace(self, training=training, tuner=tuner, problem=problem)

    def some_targets(self, targets: np.ndarray) -> FitRecord:
        """Of all targets in memory some."""
        training = replace(self.training, y=self.training.y[:, targets])
        problem = self.problem.with_targets(self.tuner.data.targets[:, targets])
        return replace(self, training=training, problem=problem)

    @property
    def row_weights(self) -> np.ndarray:
        """The weights of all rows (n,), including those of classes; zero if not trained on."""
        weights, active = np.zeros(self.training.n_samples), self.training.active
        weights[active] = 1.0 if self.tuner.data.weights is None else self.tuner.data.weights
        return weights

    @property
    def readout(self) -> Readout:
        return self.tuner.readout

    @property
    def path(self) -> Path:
        """Residuals and leverages at the alpha of the model."""
        return self.problem.path(np.asarray([self.alpha]))

    def fitted(self, path: Path) -> Fitted:
        return self.problem.smoother.fitted(self.problem.projected, path)

    def held_out(self, path: Path) -> Array:
        """The output of every row from models that were not trained on it, from `cv` or
        leave-one-out, at the mu of a path.

        Rows tested by several splits get the mean, rows never tested get NaN.
        """
        mu, fitted, n = float(path.mus[0]), self.fitted(path), self.training.n_samples
        if self.folds is None:
            return self._without_each(path, fitted)
        outputs = [to_numpy(self.fold_outputs(fitted, mu, *fold)) for fold in self.folds]
        tested = np.concatenate([test for _, test in self.folds])
        total = np.zeros((n, *outputs[0].shape[1:]))
        np.add.at(total, tested, np.concatenate(outputs))
        count = np.bincount(tested, minlength=n).reshape(-1, *[1] * (total.ndim - 1))
        with np.errstate(invalid="ignore"):
            return asarray_like(total / count, self.problem.targets)

    def _without_each(self, path: Path, fitted: Fitted) -> Array:
        """Leave-one-out. Rows with zero weight are those of a fold for which nothing leaves."""
        active = self.training.active
        outputs = outputs_without_each(self.problem, self.readout, path)
        outputs = self.readout.shaped(self._as_refits(outputs, np.arange(len(active))[:, None]))
        if self.training.all_active:
            return outputs
        inactive = complement(active, self.training.n_samples)
        others = self.fold_outputs(fitted, float(path.mus[0]), active, inactive)
        both = namespace(outputs).concat([outputs, others], axis=0)
        return take(both, np.argsort(np.concatenate([active, inactive])))

    def fold_outputs(self, fitted: Fitted, mu: float, train: np.ndarray, test: np.ndarray) -> Array:
        """The output for the test rows of one split; those with zero weight are new rows."""
        training, problem, readout = self.training, self.problem, self.readout
        deleted, _ = training.deletion(train, test)
        without = problem.without(fitted, deleted, mu)
        position = training.positions()[test]
        rows, others, parts = position[position >= 0], test[position < 0], []
        if len(rows):
            parts.append(read_without(without, readout, without.values(rows), rows))
        if len(others):
            C = training.confounds
            own = None if C is None else asarray_like(C[others], problem.targets)
            parts.append(predict_without(without, readout, training.inactive_rows(others), own))
        together = namespace(parts[0]).concat(parts, axis=0)
        outputs = take(together, np.argsort(np.argsort(position < 0, kind="stable")))
        return readout.shaped(self._as_refits(outputs, deleted[None, :]))

    def _as_refits(self, outputs: Array, deleted: np.ndarray) -> Array:
        """Outputs (k, o) of models without rows (k, d) or (1, d) as refits give them: -inf for a
        class that has left, NaN where a refit is refused.
        """
        codes, weights = self.tuner.data.codes, self.tuner.data.weights
        n = len(self.training.active)
        Z = np.ones((n, 1)) if codes is None else indicators(codes, self.readout.n_classes)
        wZ = Z if weights is None else weights[:, None] * Z
        counts = Z.sum(axis=0) - Z[deleted].sum(axis=1)
        sizes = np.where(counts > 0, wZ.sum(axis=0) - wZ[deleted].sum(axis=1), 0.0)
        possible = self.readout.can_fit(sizes, counts)[:, None]
        if np.all(possible) and np.all(counts > 0):
            return outputs
        gone = np.where(counts > 0, 0.0, -np.inf) if self.readout.n_classes > 2 else 0.0
        return outputs + asarray_like(np.where(possible, gone, np.nan), outputs)
