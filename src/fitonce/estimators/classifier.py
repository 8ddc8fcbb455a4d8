"""What the classifiers share: labels, decisions, probabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.calibration import Calibration, by_output
from ..core.readout import labels_of
from .base import KernelModel
from .intervals import class_sets
from .parameters import used
from .probability import fit_calibration
from .record import record_of, record_of_unseen
from .validation import blockwise


def labels_as_rows(decision: Array, classes: np.ndarray) -> Any:
    """The labels of decisions or probabilities, in their namespace if it can represent them."""
    labels = labels_of(to_numpy(decision), classes)
    if isinstance(decision, np.ndarray) or labels.dtype.kind not in "iufb":
        return labels
    return asarray_like(labels, decision, dtype=getattr(namespace(decision), str(labels.dtype)))


def _gives_probabilities(estimator: Any) -> bool:
    return estimator.default_temperature is not None or used(estimator, "calibration") is not None


class KernelClassifier(ClassifierMixin, KernelModel):
    """Base class of the classifiers; not for direct use.

    Labels are NumPy arrays; numbers stay on the device of the data.
    """

    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"confounds": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"confounds": True}
    __metadata_request__predict_log_proba: ClassVar[dict[str, bool]] = {"confounds": True}
    floor_: float = 0.0  # for models without calibration
    default_temperature: ClassVar[float | None] = None  # without calibration, if it makes sense

    def _classes(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The classes and the class indices of the rows; raises errors if y has no valid labels."""
        try:
            check_classification_targets(y)
            classes, codes = np.unique(y, return_inverse=True)
        except TypeError as error:
            kinds = ", ".join(sorted({type(label).__name__ for label in y}))
            raise TypeError(
                f"labels must all be of the same type, such as strings or numbers, got {kinds} "
                "instead: they cannot be sorted."
            ) from error
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but the data "
                f"contains only one class: {classes.tolist()[0]!r}. Check the labels, or the "
                "sample weights."
            )
        return classes, codes

    def _set_held_out(self, held_out: Array) -> None:
        """Calibrate: a temperature, and for "sigmoid" and "isotonic" also a threshold, which
        shifts all decisions, including the held-out ones.
        """
        self._shift = 0.0
        self.held_out_decision_ = held_out
        if self.calibration is not None:
            self._calibrate(to_numpy(held_out))
        elif self.default_temperature is not None:
            self.temperature_ = self.default_temperature

    def _calibrate(self, decision: np.ndarray) -> None:
        """Calibrate with decisions of all rows, from models that have not seen them."""
        record, held_out = record_of(self, "calibration"), self.held_out_decision_
        known, weights = record.row_weights > 0, record.row_weights
        labels = np.searchsorted(self.classes_, record.training.y[known])
        found = fit_calibration(self.calibration, decision[known], labels, weights[known])
        self.temperature_, self.floor_ = 1.0 / found.beta, found.floor
        if found.steps is not None:
            self.isotonic_ = asarray_like(found.steps, held_out)
        if np.any(found.shift) or np.any(self._shift):
            shift = np.atleast_1d(by_output(found.shift))
            moved, model = asarray_like(shift - self._shift, held_out), self._solution()
            self._shift, self.held_out_decision_ = shift, held_out + moved
            self._set_solution(replace(model, intercept=model.intercept + moved), record.readout)

    @blockwise
    def decision_function(self, X: Any, confounds: Any = None) -> Array:
        """Decide by the rule of the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows, or their kernel with the training rows for ``kernel="precomputed"``.
        confounds : table or array, default=None
            The confounds of these rows, if the model was fitted with confounds.

        Returns
        -------
        array of shape (n,) or (n, n_classes)
            For two classes positive for ``classes_[1]``.
        """
        return self._predicted(X, "decision_function", confounds)

    @blockwise
    def predict(self, X: Any, confounds: Any = None) -> Any:
        """Predict the most probable class of each row.

        Returns
        -------
        array of shape (n,)
            Labels, in the namespace of X if it can represent them.
        """
        return labels_as_rows(self._predicted(X, "predict", confounds), self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None, confounds: Any = None) -> float:
        """Score by accuracy.

        Returns
        -------
        float
            The share of correctly predicted rows.
        """
        given = {} if confounds is None else {"confounds": confounds}
        predicted = to_numpy(self.predict(X, **given))
        return float(accuracy_score(to_numpy(y), predicted, sample_weight=sample_weight))

    @available_if(_gives_probabilities)
    @blockwise
    def predict_proba(self, X: Any, confounds: Any = None) -> Array:
        """Predict probabilities of the classes.

        Returns
        -------
        array of shape (n, n_classes)
            Softmax of decision / temperature, none below `floor_`.
        """
        return self._probabilities(X, "predict_proba", confounds)

    @available_if(_gives_probabilities)
    @blockwise
    def predict_log_proba(self, X: Any, confounds: Any = None) -> Array:
        """Predict logarithms of probabilities.

        Returns
        -------
        array of shape (n, n_classes)
            log p of `predict_proba`.
        """
        with np.errstate(divide="ignore"):
            result = self._probabilities(X, "predict_log_proba", confounds)
            return namespace(result).log(result)

    def predict_set(
        self,
        X: Any,
        confidence: float = 0.9,
        method: str = "jackknife+",
        *,
        per_class: bool = False,
        cv: Any = None,
        confounds: Any = None,
    ) -> np.ndarray:
        """Prediction sets that contain the labels of new rows, without an extra calibration set.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            New rows, or their kernel with the training rows for ``kernel="precomputed"``.
        confidence : float, default=0.9
            The desired coverage, 1 - α: the share of new rows whose label is in the set.
        method : {"jackknife+", "cv+", "jackknife-minmax", "full"}, default="jackknife+"
            Guaranteed coverage for exchangeable rows and parameters that were not tuned on them: at
            least 1 - α for "full" and "jackknife-minmax", 1 - 2α for "jackknife+", 1 - 2α - √(2/n)
            for "cv+". If `fit` was given groups, whole groups are left out and counted.
        per_class : bool, default=False
            Whether the coverage holds for the rows of each class (Mondrian sets). Otherwise a rare
            class can be missing from nearly all sets of its own rows. A class with fewer than
            confidence/(1 - confidence) rows is then in every set.
        cv : int, splitter or iterable of splits, default=None
            The folds of "cv+"; by default those of the estimator's `cv`, else ten random folds.
        confounds : table or array, default=None
            The confounds of these rows, if the model was fitted with confounds.

        Returns
        -------
        array of bool, shape (m, n_classes)
            Whether each of `classes_` is in the set.

        Notes
        -----
        Classes are compared by decision values before calibration. Exact: equal to n refits (k for
        "cv+").

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from fitonce import KernelFisherDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = KernelFisherDiscriminant(gamma=0.2, alpha=0.1).fit(X[::2], y[::2])
        >>> sets = model.predict_set(X[1::2], confidence=0.95)
        >>> print(f"{sets[range(75), y[1::2]].mean():.2f}, {sets.sum(axis=1).mean():.2f} classes")
        0.97, 1.01 classes
        """
        record = record_of_unseen(self, "predict_set")
        X, _, C = self._new_rows(X, "predict_set", confounds)
        return class_sets(record, X, C, confidence, method, cv, per_class)

    def _probabilities(self, X: Any, method: str, confounds: Any = None) -> Array:
        """Class probabilities (n, c) from the calibration of the fit."""
        decision = self._predicted(X, method, confounds)
        # decisions have already been shifted
        shift = np.zeros(len(self.classes_))
        isotonic = used(self, "calibration") == "isotonic"
        steps = to_numpy(self.isotonic_) if isotonic else None
        fitted = Calibration(1.0 / self.temperature_, shift, self.floor_, steps)
        result = fitted.probabilities(to_numpy(decision))
        return result if isinstance(decision, np.ndarray) else asarray_like(result, decision)
