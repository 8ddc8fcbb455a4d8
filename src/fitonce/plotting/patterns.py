"""Weights of a linear kernel, and the activation patterns that make them interpretable (Haufe et
al.
2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..core.arrays import to_numpy
from ..estimators.fitted import is_binary, is_regressor, model_of, n_axes
from .style import COLORS, STRONG, Display, literal, names_of, plain, pyplot


def _filters(model: Any) -> tuple[np.ndarray, list[str]]:
    """Weights (p, q) of the outputs, and the names of the outputs."""
    if not hasattr(model, "coef_"):
        raise ValueError(
            f'weights and patterns need kernel="linear", got kernel={model.kernel!r} instead: with '
            "other kernels, features have no weights."
        )
    if hasattr(model, "transform") and not is_binary(model):
        W = to_numpy(model.scalings_)[:, : n_axes(model)]
        return W, [f"axis {index + 1}" for index in range(W.shape[1])]
    W = np.atleast_2d(to_numpy(model.coef_)).T
    single = W.shape[1] == 1
    if is_regressor(model):
        return W, [""] if single else [f"target {index}" for index in range(W.shape[1])]
    names = [literal(label) for label in model.classes_]
    return W, [f"towards {names[1]}"] if single else names


def activation_patterns(estimator: Any, X: Any) -> np.ndarray:
    r"""Activation patterns A = Σ_X W Σ_ŝ⁻¹ of the weights W of a linear model, with ŝ = XW (Haufe
    et al.
    2014, eq. 6).

    A weight shows how the model uses a feature, which may be only to cancel noise shared with other
    features. A pattern shows how the feature varies with the output of the model, and can be
    interpreted. Cost: O(n p q); the p×p covariance is not formed.

    Parameters
    ----------
    estimator : fitted estimator with ``kernel="linear"``, or a Pipeline that ends in one
    X : array of shape (n_samples, n_features)
        The training rows, as passed to `fit`; a pipeline transforms them first.

    Returns
    -------
    array of shape (n_features, n_outputs)
        One column for the decision of two classes, for each discriminant axis of more classes, or
        for each target.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import LeastSquaresSVC
    >>> from fitonce.plotting import activation_patterns
    >>> rng = np.random.default_rng(0)
    >>> signal, noise = np.repeat([-1.0, 1.0], 50), rng.normal(size=100)
    >>> X = np.column_stack([signal + noise, noise])  # the second feature only cancels noise
    >>> model = LeastSquaresSVC("linear", alpha=1e-3).fit(X, signal)
    >>> print(abs(model.coef_[0]).round(1), abs(activation_patterns(model, X)[:, 0]).round(1))
    [1. 1.] [1. 0.]
    """
    model = model_of(estimator)
    W, _ = _filters(model)
    if model is not estimator and len(estimator.steps) > 1:
        X = estimator[:-1].transform(X)
    X = np.asarray(to_numpy(X.toarray() if hasattr(X, "toarray") else X), dtype=float)
    if X.ndim != 2 or X.shape[1] != W.shape[0]:
        raise ValueError(
            f"X must have the {W.shape[0]} features of the model, got shape {X.shape} instead."
        )
    centred = X - X.mean(axis=0)
    outputs = centred @ W
    # outputs of one class against the rest are dependent: the pseudo-inverse restricts to their
    # span
    return np.asarray(
        (centred.T @ outputs) @ np.linalg.pinv(outputs.T @ outputs, rcond=1e-10, hermitian=True)
    )


class WeightsDisplay(Display):
    """Weights and activation patterns of a linear kernel by feature, largest first.

    Parameters
    ----------
    weights : array of shape (n_features, n_outputs)
        Weights of the features.
    patterns : array of shape (n_features, n_outputs)
        Activation patterns; see `activation_patterns`.
    feature_names : sequence
        Names of the features.
    output_names : sequence
        Names of the outputs.
    output : int, default=0
        Index of the output to draw.
    n_features : int, default=20
        Number of features to draw.

    Attributes
    ----------
    axes_, figure_ : matplotlib axes (weights, patterns) and figure
    ax_ : the first of the axes
    """

    def __init__(
        self,
        *,
        weights: np.ndarray,
        patterns: np.ndarray,
        feature_names: Sequence[Any],
        output_names: Sequence[str],
        output: int = 0,
        n_features: int = 20,
    ) -> None:
        self.weights, self.patterns = weights, patterns
        self.feature_names, self.output_names = feature_names, output_names
        self.output, self.n_features = output, n_features

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        feature_names: Sequence[Any] | None = None,
        output: int = 0,
        n_features: int = 20,
        ax: Any = None,
    ) -> Self:
        """Plot a fitted estimator with ``kernel="linear"`` (or a pipeline that ends in one) and its
        training rows.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_wine
        >>> from fitonce import KernelFisherDiscriminant
        >>> from fitonce.plotting import WeightsDisplay
        >>> data = load_wine()
        >>> X = (data.data - data.data.mean(0)) / data.data.std(0)
        >>> model = KernelFisherDiscriminant("linear").fit(X, data.target)
        >>> WeightsDisplay.from_estimator(model, X, feature_names=data.feature_names).weights.shape
        (13, 2)
        """
        model = model_of(estimator)
        W, output_names = _filters(model)
        own_names = getattr(model, "feature_names_in_", [f"x{index}" for index in range(len(W))])
        return cls(
            weights=W,
            patterns=activation_patterns(estimator, X),
            feature_names=names_of(feature_names, own_names, "feature_names"),
            output_names=output_names,
            output=output,
            n_features=n_features,
        ).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw weights and patterns on a pair of axes, or on a new figure."""
        if not 0 <= self.output < self.weights.shape[1]:
            raise ValueError(
                f"output must be from 0 to {self.weights.shape[1] - 1}, got {self.output!r} "
                "instead."
            )
        w, a = self.weights[:, self.output], self.patterns[:, self.output]
        sizes = [np.abs(values) / (np.abs(values).max() or 1.0) for values in (w, a)]
        order = np.argsort(-np.maximum(*sizes))[: self.n_features][::-1]
        if ax is None:
            _, ax = pyplot().subplots(
                1, 2, figsize=(6.8, 1.2 + 0.24 * len(order)), sharey=True, layout="constrained"
            )
        self.axes_ = np.atleast_1d(ax)
        if len(self.axes_) != 2:
            raise ValueError(
                "ax must be a pair of axes, for weights and patterns, got "
                f"{len(self.axes_)} instead."
            )
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        self._bars(self.axes_[0], w[order], "weight", COLORS[0])
        self._bars(self.axes_[1], a[order], "activation pattern", COLORS[1])
        self.axes_[0].set_yticks(
            np.arange(len(order)), [literal(self.feature_names[row]) for row in order]
        )
        self.axes_[1].tick_params(labelleft=False)
        if len(order) < len(w):
            self.axes_[0].set_ylabel(f"{len(order)} of {len(w)} features")
        return self

    def _bars(self, ax: Any, values: np.ndarray, title: str, color: str) -> None:
        plain(ax)
        ax.barh(np.arange(len(values)), values, color=color, height=0.7)
        ax.axvline(0.0, color=STRONG, linewidth=0.8)
        name = self.output_names[self.output]
        ax.set_xlabel(f"{title}, {name}" if name else title)
