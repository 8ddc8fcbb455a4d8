r"""How much each of several kernels explains of held-out targets.

A sum of kernels predicts a sum of parts, ŷ = Σ_b ŷ_b + rest. Here ŷ_b is the output of kernel b
minus its mean over the training rows, and the rest is the difference between the mean of the
training targets and the mean of all targets. With y and ŷ centered on the mean of y,

    R² = 1 - Σ(y - ŷ)²/Σy² = Σ ŷ∘(2y - ŷ)/Σy²,

so the **product measure** of kernel b, Σ ŷ_b∘(2y - ŷ)/Σy², adds up to R² together with that of the
rest. The **unique share** is R² minus the R² of the model without the kernel, tuned again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import check_cv

from ..core.arrays import to_numpy
from ..core.progress import report_progress
from ..core.splits import Splits
from ..crossval import cross_val_predict
from ..crossval.lookup import subset
from ..estimators.fitted import (
    final_step,
    fitted_kernel,
    is_model,
    is_regressor,
    record_of,
    rows_for,
    solution_of,
)
from ..kernels import KernelSum, SummedKernel
from . import render

Part = tuple[np.ndarray, np.ndarray]  # rows of a test set, and values (…, m, t)


@dataclass(frozen=True)
class KernelShares:
    """How much several kernels contribute to the R² of held-out predictions.

    Attributes
    ----------
    names : list of str
        Names of the kernels.
    product : array of shape (n_kernels,) or (n_kernels, n_targets)
        Product measures. They and `rest` add up to `r2`.
    unique : array of the same shape, or None
        R² minus the R² of the model without the kernel.
    rest : float or array of shape (n_targets,)
        The product measure of the means of the training targets; close to zero.
    r2 : float or array of shape (n_targets,)
        R² of the held-out predictions over all rows.
    predicted : array of shape (n_kernels, n_samples) or (n_kernels, n_samples, n_targets)
        Held-out predictions of every kernel; NaN for rows that are not tested.
    """

    names: list[str]
    product: np.ndarray
    unique: np.ndarray | None
    rest: Any
    r2: Any
    predicted: np.ndarray

    def __str__(self) -> str:
        """A table of means over the targets."""
        columns = [self.product] if self.unique is None else [self.product, self.unique]
        means = np.round([[np.mean(share) for share in column] for column in columns], 2) + 0.0
        rows = [
            (name, *(f"{share:.2f}" for share in each))
            for name, each in zip(self.names, means.T, strict=True)
        ]
        beside = [""] * (len(columns) - 1)
        rows += [
            (name, f"{round(float(np.mean(value)), 2) + 0.0:.2f}", *beside)
            for name, value in (("rest", self.rest), ("R²", self.r2))
        ]
        head = ("kernel", "product measure", "unique share")[: 1 + len(columns)]
        return render.as_text([render.Block("", head, rows)])


def kernel_shares(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    params: Mapping[str, Any] | None = None,
    unique: bool = True,
) -> KernelShares:
    """Measure how much each kernel of a `KernelSum` explains of held-out targets.

    Parameters
    ----------
    estimator : KernelRidge, or a Pipeline that ends in one
        The estimator, with a `KernelSum` as its kernel. All its tuning is repeated on every
        training set.
    X, y : array-like
        Rows and targets.
    groups, cv : as in `cross_val_predict`
        The splits.
    params : dict, default=None
        Parameters for `fit`: ``sample_weight``, and ``groups`` for the inner splits.
    unique : bool, default=True
        Whether to compute unique shares, which needs another run without each kernel.

    Returns
    -------
    KernelShares
        Product measures and unique shares.

    Notes
    -----
    The shares describe the predictions of the kernels, not causes. A product measure is negative if
    the part of a kernel makes the prediction worse. A unique share is negative if the model without
    the kernel predicts better.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import KernelRidge, KernelSum, kernel_shares
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 20))
    >>> y = X[:, :10] @ rng.standard_normal(10) + X[:, 10] + rng.standard_normal(150)
    >>> kernel = KernelSum([("ten", "linear", slice(0, 10)), ("one", "linear", [10]),
    ...                     ("none", "linear", slice(11, 20))], [1, 1, 1])
    >>> shares = kernel_shares(KernelRidge(1.0, kernel=kernel), X, y, cv=5)
    >>> bool(abs(shares.product.sum() + shares.rest - shares.r2) < 1e-12)
    True
    >>> [f"{share:.2f}" for share in shares.product]
    ['0.65', '0.14', '0.01']
    """
    kernel, y, given = _kernel_of(estimator), np.asarray(to_numpy(y), float), dict(params or {})
    if any(name.endswith("confounds") for name in given):
        raise ValueError("kernel_shares is not available for models with confounds.")
    splits = list(check_cv(cv, y).split(X, y, groups=groups))
    weights = next((v for name, v in given.items() if name.endswith("sample_weight")), None)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    found = _mean(_refitted(estimator, X, y, splits, given), len(y))
    rows = np.flatnonzero(np.isfinite(found[0, :, 0]))
    w, Y, (*parts, predicted) = weights[rows], y[rows].reshape(len(rows), -1), found[:, rows]
    mean = np.average(Y, axis=0, weights=w)
    beside = (2.0 * (Y - mean) - (predicted - mean)) / np.average((Y - mean) ** 2, 0, w)
    product = np.average(parts * beside, axis=1, weights=w)
    rest = np.average((predicted - mean - np.sum(parts, axis=0)) * beside, axis=0, weights=w)
    r2 = r2_score(Y, predicted, sample_weight=w, multioutput="raw_values")
    leaving = []
    for number, name in enumerate(kernel.names if unique and len(kernel.names) > 1 else []):
        report_progress(number, len(kernel.names), "kernels left out")
        other = clone(estimator)
        last = final_step(other)
        last.kernel = last.kernel.without(name)
        if isinstance(last.kernel.weights, Mapping) and not any(last.kernel.weights.values()):
            folds = _means(y, weights, splits)
        else:
            folds = iter(cross_val_predict(other, X, y, cv=splits, params=given, by_fold=True))
        said = _mean(((test, to_numpy(v).reshape(len(test), -1)) for test, v in folds), len(y))
        less = r2_score(Y, said[rows], sample_weight=w, multioutput="raw_values")
        leaving.append(r2 - less)
    # without the axis of targets if there is one target
    shown = ... if y.ndim == 2 else (..., 0)
    return KernelShares(
        kernel.names,
        product[shown],
        np.stack(leaving)[shown] if leaving else None,
        rest[shown],
        r2[shown],
        found[:-1][shown],
    )


def _kernel_of(estimator: Any) -> KernelSum:
    """The sum of kernels of an estimator whose shares can be computed."""
    model = final_step(estimator)
    if not (is_model(model) and is_regressor(model) and isinstance(model.kernel, KernelSum)):
        raise TypeError(
            "kernel_shares needs a KernelRidge with a KernelSum as its kernel, or a Pipeline that "
            f"ends in one, got {type(model).__name__} instead: shares divide the R² of a "
            "regression."
        )
    if model.landmarks is not None:
        raise ValueError(
            "kernel_shares needs a model of all rows, got landmarks: use landmarks=None."
        )
    if hasattr(model, "confounds_"):
        raise ValueError("kernel_shares() needs a model without confounds: fit without them.")
    return model.kernel


def _refitted(
    estimator: Any, X: Any, y: np.ndarray, splits: Splits, params: Mapping[str, Any]
) -> Iterator[Part]:
    """Parts of the kernels and predictions (B + 1, m, t) of a model fitted on each training set."""
    for number, (train, test) in enumerate(splits):
        report_progress(number, len(splits), "folds")
        given = {
            name: np.asarray(value)[train] if np.shape(value)[:1] == (len(y),) else value
            for name, value in params.items()
        }
        fitted = clone(estimator).fit(subset(X, train), y[train], **given)
        model, rows = final_step(fitted), subset(X, test)
        values = to_numpy(fitted.predict(rows)).reshape(1, len(test), -1)
        rows = rows if model is fitted else fitted[:-1].transform(rows)
        yield test, np.concatenate([predicted_parts(model, rows), values])


def predicted_parts(model: Any, X: Any) -> np.ndarray:
    """The output of each kernel of a fitted model for new rows (B, m, t), minus its mean over the
    training rows.
    """
    kernel, points = fitted_kernel(model), model.X_fit_
    assert isinstance(kernel, SummedKernel)
    dual = to_numpy(solution_of(model).dual_coef)
    weights = to_numpy(record_of(model, "kernel_shares").problem.row_weights)[:, 0]
    rows = rows_for(model, X, "kernel_shares")
    of_rows = _matrices(kernel, rows, points)
    own = _matrices(kernel, points, points)
    means = (weights @ to_numpy(K) / weights.sum() for K in own)
    return np.stack([(to_numpy(K) - mean) @ dual for K, mean in zip(of_rows, means, strict=True)])


def _matrices(kernel: SummedKernel, X: Any, points: Any) -> Iterator[Any]:
    """θ_b K_b between rows and points."""
    return (kernel.part(number, points)(X) for number in range(len(kernel.members)))


def _means(y: np.ndarray, weights: np.ndarray, splits: Splits) -> Iterator[Part]:
    for train, test in splits:
        mean = np.average(y[train], axis=0, weights=weights[train])
        yield test, np.broadcast_to(mean, (len(test), *y.shape[1:]))


def _mean(folds: Iterator[Part], n: int) -> np.ndarray:
    """The means (…, n, t) over the folds that test a row; NaN for rows that are not tested."""
    found = list(folds)
    total, count = np.zeros((*found[0][1].shape[:-2], n, found[0][1].shape[-1])), np.zeros((n, 1))
    for rows, values in found:
        total[..., rows, :] += values
        count[rows] += 1
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)
