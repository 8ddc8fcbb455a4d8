"""Named values as bars: weights and activation patterns, members of a committee, shares of kernels,
importance of columns, differences between models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..assessment import ColumnImportance, KernelShares, ModelComparison
from ..assessment.render import p_value, score_name
from ..core.arrays import to_numpy
from ..estimators.fitted import is_binary, is_regressor, model_of, model_or_committee, n_axes
from .style import COLORS, QUIET, STRONG, Display, literal, names_of

PALE = "#a8cfe6"
MOST_DOTS = 400  # dots that can be told apart on one bar


class BarDisplay(Display):
    """Named values as bars, from top to bottom, with intervals or a second measure beside them.

    Parameters
    ----------
    names : sequence of str
        Names of the bars.
    values : array of shape (n_bars,)
        Their lengths.
    beside : array of shape (n_bars,), default=None
        A second measure, drawn as pale bars.
    measures : tuple of two str, default=("", "")
        Names of the measures, for the legend.
    intervals : array of shape (n_bars, 2), default=None
        Ends of an interval on every bar.
    clear : array of bool of shape (n_bars,), default=None
        Which bars have a color; the others are grey. By default those whose interval does not hold
        zero, and all without intervals.
    dots : array of shape (n_bars, n_dots), default=None
        Single values behind each bar.
    notes : sequence of str, default=None
        Words at the right end of every bar.
    name : str, default=""
        Label of the axis.
    n_shown : int, default=20
        Number of bars to draw.
    """

    def __init__(
        self,
        *,
        names: Sequence[Any],
        values: Any,
        beside: Any = None,
        measures: tuple[str, str] = ("", ""),
        intervals: Any = None,
        clear: Any = None,
        dots: Any = None,
        notes: Sequence[str] | None = None,
        name: str = "",
        n_shown: int = 20,
    ) -> None:
        if len(names) != len(values) or not len(names):
            raise ValueError(
                "names and values must have the same length, at least one, got "
                f"{len(names)} and {len(values)}."
            )
        self.names, self.values, self.beside = names, np.asarray(values, dtype=float), beside
        self.measures, self.dots, self.notes = measures, dots, notes
        self.intervals = None if intervals is None else np.asarray(intervals, dtype=float)
        if clear is None and self.intervals is not None:
            clear = (self.intervals[:, 0] > 0) | (self.intervals[:, 1] < 0)
        self.clear = np.ones(len(names), dtype=bool) if clear is None else clear
        self.name, self.n_shown = name, min(n_shown, len(names))
        self._size = (6.6, 1.3 + (0.28 if beside is None else 0.42) * self.n_shown)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        feature_names: Sequence[Any] | None = None,
        output: int = 0,
        n_shown: int = 20,
        ax: Any = None,
    ) -> Self:
        """Plot the weights of a fitted committee, or the weights and activation patterns of a
        fitted model with ``kernel="linear"``, largest first; also of a pipeline that ends in one.

        Parameters
        ----------
        estimator : estimator
            A fitted committee or model, or a Pipeline that ends in one.
        X : array of shape (n_samples, n_features), default=None
            The training rows, from which patterns are computed; not used by committees.
        feature_names : sequence, default=None
            Names of the features.
        output : int, default=0
            Which output of the model: discriminant axis, class or target.
        n_shown : int, default=20
            Number of bars to draw.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_wine
        >>> from fitonce import KernelFisherDiscriminant
        >>> from fitonce.plotting import BarDisplay
        >>> data = load_wine()
        >>> X = (data.data - data.data.mean(0)) / data.data.std(0)
        >>> model = KernelFisherDiscriminant("linear").fit(X, data.target)
        >>> display = BarDisplay.from_estimator(model, X, feature_names=data.feature_names)
        >>> display.ax_.get_xlabel()
        'relative to the largest, axis 1'
        """
        model = model_or_committee(estimator, "bars show its members or weights")
        if hasattr(model, "members_"):
            return cls(
                names=model.names_,
                values=model.weights_,
                notes=[f"{weight:.0%}" for weight in model.weights_],
                name="weight in the committee",
                n_shown=n_shown,
            ).plot(ax=ax)
        W, outputs = _filters(model)
        if not 0 <= output < len(outputs):
            raise ValueError(f"output must be from 0 to {len(outputs) - 1}, got {output!r}.")
        if X is None:
            raise ValueError("X is needed with a linear model: patterns are made from its rows.")
        both = np.stack([W[:, output], activation_patterns(estimator, X)[:, output]])
        largest = np.abs(both).max(axis=1, keepdims=True)
        both /= np.where(largest > 0, largest, 1.0)
        order = np.argsort(-np.abs(both).max(axis=0), kind="stable")
        own = getattr(model, "feature_names_in_", [f"x{index}" for index in range(len(W))])
        names = names_of(feature_names, own, "feature_names")
        return cls(
            names=[names[feature] for feature in order],
            values=both[0, order],
            beside=both[1, order],
            measures=("weight", "activation pattern"),
            name=", ".join(filter(None, ["relative to the largest", outputs[output]])),
            n_shown=n_shown,
        ).plot(ax=ax)

    @classmethod
    def from_shares(cls, shares: KernelShares, *, ax: Any = None) -> Self:
        """Plot the result of `fitonce.kernel_shares`: the mean over targets of each share, with a
        dot for every target.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from fitonce import KernelRidge, KernelSum, kernel_shares
        >>> from fitonce.plotting import BarDisplay
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((60, 6))
        >>> y = X[:, 0] + rng.standard_normal(60)
        >>> members = [("a", "linear", [0, 1, 2]), ("b", "linear", [3, 4, 5])]
        >>> model = KernelRidge(1.0, kernel=KernelSum(members, [1, 1]))
        >>> shares = kernel_shares(model, X, y, cv=5)
        >>> BarDisplay.from_shares(shares).ax_.get_xlabel()
        'share of held-out R² = 0.49'
        """
        n, unique = len(shares.names), shares.unique
        product = shares.product.reshape(n, -1)
        return cls(
            names=shares.names,
            values=product.mean(axis=1),
            beside=None if unique is None else unique.reshape(n, -1).mean(axis=1),
            measures=("product measure", "unique share"),
            dots=product if 1 < product.shape[1] <= MOST_DOTS else None,
            name=f"share of held-out R² = {np.mean(shares.r2):.2f}",
            n_shown=n,
        ).plot(ax=ax)

    @classmethod
    def from_importance(cls, found: ColumnImportance, *, n_shown: int = 20, ax: Any = None) -> Self:
        """Plot the result of `fitonce.assessment.column_importance`: what held-out prediction loses
        without each column, the most important first, with intervals. Columns with a loss after the
        correction for all columns have a color.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from fitonce import KernelRidge
        >>> from fitonce.assessment import column_importance
        >>> from fitonce.plotting import BarDisplay
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(80, 3))
        >>> y = X[:, 2] + 0.5 * rng.normal(size=80)
        >>> found = column_importance(KernelRidge(kernel="linear", alpha=1.0).fit(X, y), X, y)
        >>> BarDisplay.from_importance(found).names[0]
        'x2'
        """
        order = np.argsort(-found.loss, kind="stable")
        loss = "loss of R²" if found.score_name == "r2" else "rise of the log-loss"
        return cls(
            names=[found.names[column] for column in order],
            values=found.loss[order],
            intervals=np.stack([found.low, found.high], axis=1)[order],
            clear=found.pvalues[order] <= 1.0 - found.level,
            notes=[f"p = {p_value(p)}" for p in found.pvalues[order]],
            name=f"{loss} without the column, with {100 * found.level:g} % interval",
            n_shown=n_shown,
        ).plot(ax=ax)

    @classmethod
    def from_comparison(cls, result: ModelComparison, *, ax: Any = None) -> Self:
        """Plot the result of `fitonce.compare`: the difference of every two models.

        To the right of zero, the first model of a pair is better; to the left, the second.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_iris
        >>> from fitonce import KernelFisherDiscriminant, compare
        >>> from fitonce.plotting import BarDisplay
        >>> rbf = KernelFisherDiscriminant(gamma=0.2, alpha=0.1)
        >>> linear = KernelFisherDiscriminant("linear", alpha=0.1)
        >>> result = compare({"rbf": rbf}, {"linear": linear}, *load_iris(return_X_y=True))
        >>> BarDisplay.from_comparison(result).names
        ['rbf - linear']
        """
        pairs, score = result.differences, score_name(result.score_name)
        return cls(
            names=[f"{one.first} - {one.second}" for one in pairs],
            values=[one.value for one in pairs],
            intervals=np.array([(one.low, one.high) for one in pairs]),
            notes=[f"p = {p_value(one.pvalue)}" for one in pairs],
            name=f"difference in {score}, with {100 * result.level:g} % interval",
            n_shown=len(pairs),
        ).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax.grid(False, axis="y")
        ax.axvline(0.0, color=STRONG, linewidth=0.8)
        shown, places = slice(self.n_shown), np.arange(self.n_shown)
        height = 0.7 if self.beside is None else 0.36
        above = places if self.beside is None else places - 0.5 * height
        colors = [COLORS[0] if clear else QUIET for clear in self.clear[shown]]
        ax.barh(above, self.values[shown], 0.9 * height, color=colors, label=self.measures[0])
        if self.beside is not None:
            given = places + 0.5 * height, self.beside[shown], 0.9 * height
            ax.barh(*given, color=PALE, label=self.measures[1])
        if self.intervals is not None:
            ax.hlines(above, *self.intervals[shown].T, color=STRONG, linewidth=1.6)
        if self.dots is not None:
            spread = height * np.linspace(-0.3, 0.3, self.dots.shape[1])
            dots = self.dots[shown], above[:, None] + spread
            ax.plot(*dots, ".", color=QUIET, markersize=2.5, alpha=0.6)
        for place, note in zip(places, self.notes or (), strict=False):
            at = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
            ax.annotate(note, (1.01, place), va="center", fontsize="small", **at)
        ax.set_yticks(places, [literal(name, 48) for name in self.names[shown]])
        ax.set(ylim=(self.n_shown - 0.5, -0.5), xlabel=self.name)
        ax.locator_params(axis="x", nbins=7)
        if self.n_shown < len(self.names):
            ax.set_ylabel(f"{self.n_shown} of {len(self.names)}")


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
    et al. 2014, eq. 6).

    A weight shows how the model uses a feature, a pattern how the feature varies with the output of
    the model. Cost: O(n p q).

    Parameters
    ----------
    estimator : estimator
        Fitted with ``kernel="linear"``, or a Pipeline that ends in one.
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
    centered = X - X.mean(axis=0)
    outputs = centered @ W
    # outputs of one class against the rest are dependent: the pseudo-inverse restricts to their
    # span
    inverse = np.linalg.pinv(outputs.T @ outputs, rcond=1e-10, hermitian=True)
    return np.asarray((centered.T @ outputs) @ inverse)
