"""Columns prepared for a kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.special
from array_api_compat import is_array_api_obj
from sklearn import config_context
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .core.arrays import asarray_like, namespace, to_numpy
from .core.refused import RefusedError

KNOTS = 200  # of a map from values to normal scores; between them it is linear
TREES, LEAF = 50, 2  # trees, whose time counts where rows are few, and the fewest rows in a leaf


class ClippedScaler(StandardScaler):
    r"""Standardize columns, and pull values far from the mean smoothly towards a limit.

    With the mean m and the standard deviation s of each column on the training rows,

        z = (x - m)/s ↦ z/√(1 + (z/limit)²)

    which is nearly z in the middle and never exceeds the limit (Holzmüller et al. 2024), so that no
    kernel extrapolates far outside the training rows. Missing values stay missing.

    Parameters
    ----------
    limit : float, default=3.0
        In standard deviations. Infinity is StandardScaler.
    copy : bool, default=True
        As in StandardScaler.

    Attributes
    ----------
    mean_, var_, scale_, n_samples_seen_, n_features_in_, feature_names_in_
        As in StandardScaler.

    Examples
    --------
    >>> from fitonce import ClippedScaler
    >>> scaler = ClippedScaler().fit([[0.0], [1.0], [2.0]])
    >>> scaler.transform([[1.0], [2.0], [1000.0]]).round(2).tolist()
    [[0.0], [1.13], [3.0]]
    """

    def __init__(self, limit: float = 3.0, *, copy: bool = True) -> None:
        super().__init__(copy=copy)
        self.limit = limit

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the means and variances, as StandardScaler does.

        Returns
        -------
        self
            The scaler.
        """
        limit: Any = self.limit
        if not isinstance(limit, (int, float, np.number)) or not limit > 0:
            raise RefusedError(
                f"limit must be a positive number of standard deviations, got {self.limit!r} "
                "instead."
            )
        super().partial_fit(X, y, sample_weight)
        return self

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """Clip columns.

        Returns
        -------
        array of shape (n_samples, n_features)
            Standardized, within the limit.
        """
        Z = _as_array(super().transform(X, copy))
        return Z / namespace(Z).hypot(asarray_like(1.0, Z, Z.dtype), Z / self.limit)

    def inverse_transform(self, X: Any, copy: bool | None = None) -> Any:
        """Undo `transform`; what is at the limit or beyond becomes very large.

        Returns
        -------
        array of shape (n_samples, n_features)
            The columns as they were.
        """
        Z = _as_array(X)
        xp = namespace(Z)
        inside = xp.clip(1.0 - (Z / self.limit) ** 2, min=float(xp.finfo(Z.dtype).tiny))
        return super().inverse_transform(Z / xp.sqrt(inside), copy)


class NormalScores(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Columns by the ranks of their values, spread like a normal distribution.

    A value with the rank r among the n training rows, where equal values share the mean of their
    ranks, becomes

        Φ⁻¹((r - ½)/n),  at most `limit` from zero

    Between the values of the training rows the map is linear, beyond them constant. Whether a
    column is given in logarithms, clipped or in other units makes no difference. Columns with at
    most two values stay as they are.

    Parameters
    ----------
    limit : float, default=3.0
        In standard deviations.

    Attributes
    ----------
    maps_ : list of arrays (2, n_knots)
        For every column, values (at most 200) and their scores; None for a column that stays.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from fitonce.preparation import NormalScores
    >>> scores = NormalScores().fit([[1.0], [10.0], [100.0]])
    >>> scores.transform([[1.0], [10.0], [55.0], [1e6]]).round(2).ravel().tolist()
    [-0.97, 0.0, 0.48, 0.97]
    """

    def __init__(self, limit: float = 3.0) -> None:
        self.limit = limit

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the ranks of the values of every column."""
        X = validate_data(self, _on_host(X), dtype=float)
        self.maps_ = [_scores_of(column, self.limit) for column in X.T]
        return self

    def transform(self, X: Any) -> Any:
        """The scores (n_samples, n_features)."""
        check_is_fitted(self)
        values = validate_data(self, _on_host(X), dtype=float, reset=False, copy=True)
        for j, known in enumerate(self.maps_):
            if known is not None:
                values[:, j] = np.interp(values[:, j], *known)
        return _as_given(values, X)


class RelevanceScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Columns multiplied by how much they say about the target.

    The importance a_j of a column is the share of the target's variance that the splits at this
    column explain, in the mean of 50 extremely randomized trees (Geurts et al. 2006):

        x_j ↦ x_j a_j/√(mean a²)

    A kernel of distances then nearly passes over columns that say nothing. The importances depend
    on the labels of all training rows: cross-validation finds them anew on each training set.

    Parameters
    ----------
    labels : bool, default=False
        Whether the target consists of labels of classes; otherwise of numbers.
    random_state : int, default=0
        Seed of the trees.

    Attributes
    ----------
    scale_ : array of shape (n_features,)
        The factors.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce.preparation import RelevanceScaler
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> scale = RelevanceScaler().fit(X, np.sin(X[:, 0])).scale_  # the first column says it all
    >>> bool(scale[0] > 4.0 * scale[1:].max())
    True
    """

    def __init__(self, *, labels: bool = False, random_state: int = 0) -> None:
        self.labels = labels
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Find the importances."""
        X, y = validate_data(self, _on_host(X), _on_host(y), multi_output=True, dtype=float)
        targets = (y[:, None] == np.unique(y)).astype(float) if self.labels else y
        found, random = np.zeros(X.shape[1]), check_random_state(self.random_state)
        X, options = X.astype(np.float32), {"min_samples_leaf": LEAF, "max_features": "sqrt"}
        # without a forest and its checks, which take longer than its trees where rows are few
        with config_context(skip_parameter_validation=True):
            for seed in [random.randint(np.iinfo(np.int32).max) for _ in range(TREES)]:
                tree = ExtraTreeRegressor(random_state=seed, **options)
                found += tree.fit(X, targets, check_input=False).feature_importances_
        size = np.sqrt(np.mean(found**2))
        self.scale_ = found / size if size > 0 else np.ones(len(found))
        return self

    def transform(self, X: Any) -> Any:
        """The columns (n_samples, n_features), multiplied."""
        check_is_fitted(self)
        values = validate_data(self, _on_host(X), dtype=float, reset=False)
        return _as_given(values * self.scale_, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _scores_of(column: np.ndarray, limit: float) -> np.ndarray | None:
    """Values of a column and their normal scores (2, k); None for at most two values."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= 2:
        return None
    share = (np.cumsum(counts) - 0.5 * counts) / len(column)
    scores = np.clip(scipy.special.ndtri(share), -limit, limit)
    kept = np.unique(np.linspace(0, len(values) - 1, KNOTS).round().astype(int))
    return np.stack([values, scores])[:, kept]


def _on_host(X: Any) -> Any:
    """Rows of a device as NumPy; everything else as it is."""
    return to_numpy(X) if is_array_api_obj(X) else X


def _as_given(values: np.ndarray, X: Any) -> Any:
    return asarray_like(values, X) if is_array_api_obj(X) else values


def _as_array(X: Any) -> Any:
    """An array of any library; a frame or a list as NumPy."""
    return X if is_array_api_obj(X) else np.asarray(X)


__all__ = ["ClippedScaler", "NormalScores", "RelevanceScaler"]
