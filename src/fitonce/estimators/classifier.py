"""What the two classifiers share: labels, decisions, probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.criteria import calibrate, probabilities
from ..core.smoother import Fitted
from .base import KernelModel
from .blockwise import blockwise
from .problem import Problem
from .progress import with_callbacks
from .validation import check_options


def _gives_probabilities(estimator: Any) -> bool:
    return estimator._default_temperature is not None or estimator.calibration is not None


def isotonic_steps(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A non-decreasing map from scores to probabilities as rows (2, k) of knots, kept off 0 and 1
    by half a row's worth.
    """
    usable = np.isfinite(scores)
    fit = IsotonicRegression(out_of_bounds="clip").fit(
        scores[usable], positive[usable].astype(float), weights[usable]
    )
    least = 0.5 / (weights[usable].sum() + 1.0)
    return np.stack([fit.X_thresholds_, np.clip(fit.y_thresholds_, least, 1.0 - least)])


def even_odds(steps: np.ndarray) -> float:
    """The largest score whose probability does not exceed one half.

    Far beyond the knots where none does.
    """
    x, p = steps
    reach = 10.0 * (x[-1] - x[0] + 1.0)
    if p[-1] <= 0.5:
        return float(x[-1] + reach)
    if p[0] > 0.5:
        return float(x[0] - reach)
    last = int(np.flatnonzero(p <= 0.5)[-1])
    return float(x[last] + (0.5 - p[last]) * (x[last + 1] - x[last]) / (p[last + 1] - p[last]))


def top_label_isotonic(p: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Probabilities whose largest one is mapped by the steps, the others sharing the rest as
    before; it stays the largest.
    """
    rows = np.arange(len(p))
    top = np.argmax(p, axis=1)
    others = p.copy()
    others[rows, top] = 0.0
    rest = np.maximum(others.sum(axis=1), np.finfo(float).tiny)
    second = others.max(axis=1)
    confidence = np.maximum(
        np.interp(p[rows, top], *steps), (1.0 + 1e-9) * second / (rest + second)
    )
    result = others * ((1.0 - confidence) / rest)[:, None]
    result[rows, top] = confidence
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def labels_of(decision: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The label with the largest decision; for two classes the second where it is positive."""
    codes = (decision > 0).astype(int) if decision.ndim == 1 else np.argmax(decision, axis=1)
    return np.asarray(classes[codes])


class KernelClassifier(ClassifierMixin, KernelModel):
    """Shared by the classifiers; not for direct use.

    Labels are kept on the host, numbers where the data live.
    """

    _default_temperature: float | None = (
        None  # the temperature without calibration, where one makes sense
    )

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the model, choosing what is to be tuned by the `criterion` of held-out predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows, or the square kernel matrix for ``kernel="precomputed"``. With
            `landmarks` also a Dask collection, or the rows of a file or of blocks
            (`fitonce.rows.open_rows`), which bring their targets with them.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 equals a repeated row; rows of weight 0 do not train.
        groups : array-like of shape (n_samples,), default=None
            Groups for ``cv``; with ``cv=None``, whole groups are left out together.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, groups)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_options(self, calibration=("temperature", "sigmoid", "isotonic", None))

    def _encode(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        try:
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
        except TypeError as error:
            kinds = ", ".join(sorted({type(label).__name__ for label in y}))
            raise TypeError(
                f"labels must all be of one kind, such as strings or numbers, got {kinds} "
                "instead: they cannot be sorted."
            ) from error
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but the data "
                "contains only one class: "
                f"{self.classes_.tolist()[0]!r}. Check the labels, or the sample weights."
            )
        return self._codes_to_targets(codes)

    def _codes_to_targets(self, codes: np.ndarray) -> np.ndarray:
        """Targets (n, t) of rows whose labels are classes_[codes]; indicators here."""
        indicators = np.zeros((len(codes), len(self.classes_)))
        indicators[np.arange(len(codes)), codes] = 1.0
        return indicators

    @property
    def _binary(self) -> bool:
        return len(self.classes_) == 2

    def _output(self, values: Array) -> Array:
        return values[:, 0] if self._binary else values

    def _calibrate(self, problem: Problem, fitted: Fitted, mu: float) -> None:
        """Set held_out_decision_ and what makes probabilities of decisions.

        A temperature, and for "sigmoid" a shift of the threshold.
        """
        self.held_out_decision_ = self._held_out_outputs(problem, fitted, mu)
        if self.calibration is None:
            if self._default_temperature is not None:
                self.temperature_ = self._default_temperature
            return
        training = self._kept.training
        known = np.isin(training.y, self.classes_)
        labels = np.searchsorted(self.classes_, training.y[known])
        weights = self._row_weights(
            training.y[known], None if training.weights is None else training.weights[known]
        )
        weights = np.ones(len(labels)) if weights is None else weights
        decision = to_numpy(self.held_out_decision_)[known]
        calibration = calibrate(
            decision, labels, weights, offsets=self.calibration != "temperature"
        )
        self.temperature_ = 1.0 / calibration.beta
        shift = calibration.offsets / calibration.beta
        self._shift_intercept(shift)
        if self.calibration == "isotonic":
            self._fit_isotonic(
                decision + (shift[1] - shift[0] if self._binary else shift), labels, weights
            )

    def _fit_isotonic(self, decision: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> None:
        """Two classes.

        Steps from the decision to the probability, the threshold moved to even odds; more: steps of
        the top label's.
        """
        if self._binary:
            steps = isotonic_steps(decision, labels == 1, weights)
            threshold = even_odds(steps)
            self._shift_intercept(np.array([0.0, -threshold]))
            self.isotonic_ = asarray_like(
                steps - np.array([[threshold], [0.0]]), self.held_out_decision_
            )
            return
        usable = np.isfinite(decision).all(axis=1)
        p = probabilities(decision[usable], 1.0 / self.temperature_)
        steps = isotonic_steps(p.max(axis=1), p.argmax(axis=1) == labels[usable], weights[usable])
        self.isotonic_ = asarray_like(steps, self.held_out_decision_)

    def _shift_intercept(self, shift: np.ndarray) -> None:
        """Move the threshold: decisions become those of the calibrated classes."""
        if not np.any(shift):
            return
        self.intercept_ = self.intercept_ + (
            float(shift[1] - shift[0]) if self._binary else asarray_like(shift, self.intercept_)
        )

    @property
    def _held_out(self) -> Array:
        return self.held_out_decision_

    @blockwise
    def decision_function(self, X: Any) -> Array:
        """Decision values: (n,) for two classes, positive for ``classes_[1]``; (n, n_classes) for
        more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows, or their kernel with the training rows for ``kernel="precomputed"``.
        """
        return self._predicted(X, "decision_function")

    @blockwise
    def predict(self, X: Any) -> Any:
        """The most probable class of each row.

        Labels come in the caller's namespace where it can hold them.
        """
        return self._labels(self._predicted(X, "predict"))

    def _row_dependence(self) -> str | None:
        if self.calibration in ("sigmoid", "isotonic"):
            return f"calibration={self.calibration!r} places the threshold on each training set"
        return super()._row_dependence()

    def _regular(self, sizes: np.ndarray) -> bool:
        """Whether a training set with these (weighted) class sizes gives a model of the same shape
        as the whole.
        """
        return bool(np.all(sizes > 0))

    def _labels(self, decision: Array) -> Any:
        labels = labels_of(to_numpy(decision), self.classes_)
        if isinstance(decision, np.ndarray) or labels.dtype.kind not in "iufb":
            return labels
        return asarray_like(labels, decision, dtype=getattr(namespace(decision), str(labels.dtype)))

    @available_if(_gives_probabilities)
    @blockwise
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, n_classes).

        Softmax of the decision values over the calibrated temperature.
        """
        return self._probabilities(X, "predict_proba")

    @available_if(_gives_probabilities)
    @blockwise
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return namespace(result := self._probabilities(X, "predict_log_proba")).log(result)

    def _probabilities(self, X: Any, method: str) -> Array:
        decision = self._predicted(X, method)
        host = to_numpy(decision)
        if self.calibration == "isotonic" and self._binary:
            p = np.interp(host, *to_numpy(self.isotonic_))
            result = np.column_stack([1.0 - p, p])
        elif self.calibration == "isotonic":
            result = top_label_isotonic(
                probabilities(host, 1.0 / self.temperature_), to_numpy(self.isotonic_)
            )
        else:
            result = probabilities(host, 1.0 / self.temperature_)
        return result if isinstance(decision, np.ndarray) else asarray_like(result, decision)
