"""Display of the features that a learned metric uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..estimators.fitted import feature_shares, metric_of, model_of
from .style import COLORS, Display, literal, names_of, plain


class MetricDisplay(Display):
    """The share of each feature in a metric as bars: how much of a squared distance comes from it,
    for features with equal variance.

    The model varies most along features with a large share. A small share means that the model
    does not need the feature, not that the feature is unrelated to the target: another feature may
    carry the same information. It is recommended to use `from_estimator`.

    Parameters
    ----------
    shares : array of shape (n_features,)
    feature_names : sequence
    n_features : int, default=20
        Number of features to draw.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    bars_ : matplotlib container of bars
    """

    def __init__(
        self, *, shares: np.ndarray, feature_names: Sequence[Any], n_features: int = 20
    ) -> None:
        self.shares, self.feature_names, self.n_features = shares, feature_names, n_features

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[Any] | None = None,
        n_features: int = 20,
        ax: Any = None,
    ) -> Self:
        """Plot the metric of a fitted estimator (or of a pipeline that ends in one).

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from fitonce import KernelRidge
        >>> from fitonce.plotting import MetricDisplay
        >>> X = np.random.default_rng(0).normal(size=(60, 4))
        >>> model = KernelRidge(metric="diagonal").fit(X, np.sin(2 * X[:, 1]))
        >>> int(MetricDisplay.from_estimator(model).shares.argmax())
        1
        """
        model = model_of(estimator)
        if metric_of(model) is None:
            raise ValueError(
                "MetricDisplay needs a model with a metric, got one without: fit with "
                'metric="learn". If metric_ is None, a metric did not improve predictions.'
            )
        shares = feature_shares(model)
        own = getattr(model, "feature_names_in_", [f"x{index}" for index in range(len(shares))])
        names = names_of(feature_names, own, "feature_names")
        return cls(shares=shares, feature_names=names, n_features=n_features).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        plain(ax)
        order = np.argsort(-self.shares, kind="stable")[: self.n_features][::-1]
        places = np.arange(len(order))
        self.bars_ = ax.barh(places, 100.0 * self.shares[order], color=COLORS[0], height=0.7)
        ax.set_yticks(places, [literal(self.feature_names[row]) for row in order])
        ax.set_xlabel("share in the metric, %")
        if len(order) < len(self.shares):
            ax.set_ylabel(f"{len(order)} of {len(self.shares)} features")
