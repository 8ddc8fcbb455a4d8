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
from ..tuning.outputs import outputs_without_each, read_without, rule_of_fit
from ..tuning.problem import Problem
from ..tuning.solution import Solution
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


def mean_by_row(folds: Splits, outputs: list[np.ndarray], n_samples: int) -> np.ndarray:
    """The mean of the outputs of the test rows of splits, for all rows; NaN for rows never
    tested.
    """
    total, count = np.zeros((n_samples, *outputs[0].shape[1:])), np.zeros(n_samples)
    for (_, test), output in zip(folds, outputs, strict=True):
        np.add.at(total, test, output)
        np.add.at(count, test, 1)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count.reshape(-1, *[1] * (total.ndim - 1)))


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
        training = self.training.without_destroyed_kernel()
        if training is self.training:
            return self
        data = replace(self.tuner.data, X=training.X)
        return replace(self, training=training, tuner=replace(self.tuner, data=data))

    @property
    def by_target(self) -> bool:
        """Whether targets are processed in blocks."""
        return self.tuner.data.columns is not None

    def unchanged(self) -> FitRecord:
        """The record, after checking that targets that were not copied are unchanged."""
        if self.tuner.data.columns is not None:
            self.tuner.data.columns.checked()
        return self

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

        Rows tested by several splits get the mean, rows never tested get NaN. Rows with zero
        weight are predicted from the kernel.
        """
        mu, fitted = float(path.mus[0]), self.fitted(path)
        if self.folds is None:
            outputs = outputs_without_each(self.problem, self.readout, path)
            outputs = self._as_refits(outputs, np.arange(len(self.training.active))[:, None])
            return self.readout.shaped(self._with_inactive(outputs, fitted, mu))
        outputs = [self.fold_outputs(fitted, mu, *fold) for fold in self.folds]
        tested = np.concatenate([test for _, test in self.folds])
        if np.array_equal(np.sort(tested), np.arange(self.training.n_samples)):  # each once
            return take(namespace(outputs[0]).concat(outputs, axis=0), np.argsort(tested))
        mean = mean_by_row(self.folds, [*map(to_numpy, outputs)], self.training.n_samples)
        return asarray_like(mean, self.problem.targets)

    def fold_outputs(self, fitted: Fitted, mu: float, train: np.ndarray, test: np.ndarray) -> Array:
        """The output for the test rows of one split."""
        position = self.training.positions()
        deleted, _ = self.training.deletion(train, test)
        without = self.problem.without(fitted, deleted, mu)
        inside = position[test] >= 0
        rows = position[test[inside]]
        values = without.values(rows)
        if not inside.all():
            outside = self._predicted(without.solution, test[~inside])
            order = np.argsort(np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)]))
            values = take(namespace(values).concat([values, outside], axis=0), order)
        tested = rows if inside.all() else None
        outputs = read_without(without, self.readout, values, tested)
        return self.readout.shaped(self._as_refits(outputs, deleted[None, :]))

    def fold_of(self, mu: float, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        """The same at another mu, as a NumPy array."""
        return to_numpy(self.fold_outputs(self.problem.fit(mu), mu, train, test))

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

    def _predicted(self, solution: Solution, rows: np.ndarray) -> Array:
        """Targets that a model predicts for rows with zero weight."""
        problem, training = self.problem, self.training
        C = training.confounds
        own = None if C is None else asarray_like(C[rows], problem.targets)
        X = training.inactive_rows(rows)
        return solution.values(problem.kernel, X, problem.X, confounds=own)

    def _with_inactive(self, outputs: Array, fitted: Fitted, mu: float) -> Array:
        """Outputs of the active rows extended to all rows: the others are never used for training,
        so the fitted model gives held-out values for them.
        """
        if self.training.all_active:
            return outputs
        inactive = complement(self.training.active, self.training.n_samples)
        values = self._predicted(self.problem.solution(fitted, mu), inactive)
        others = self.readout.read(values, rule_of_fit(self.problem, self.readout, fitted))
        both = namespace(outputs).concat([outputs, others], axis=0)
        return take(both, np.argsort(np.concatenate([self.training.active, inactive])))
