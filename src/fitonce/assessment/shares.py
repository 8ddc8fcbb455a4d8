r"""How much each of several kernels explains of held-out targets.

A sum of kernels predicts a sum of parts, ŷ = Σ_b ŷ_b + rest. Here ŷ_b is the output of kernel b
minus its mean over the training rows, and the rest is the difference between the mean of the
training targets and the mean of all targets. With y and ŷ centered on the mean of y,

    R² = 1 - Σ(y - ŷ)²/Σy² = Σ ŷ∘(2y - ŷ)/Σy²,

so the **product measure** of kernel b, Σ ŷ_b∘(2y - ŷ)/Σy², adds up to R² together with that of the
rest. The **unique share** is R² minus the R² of the model without the kernel, tuned again. Two
kernels with the same information have large product measures and small unique shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from ..core.arrays import to_numpy
from ..core.progress import report_progress
from ..core.splits import Splits, complement
from ..crossval import cross_val_predict
from ..crossval.lookup import subset
from ..estimators.confounding import check_no_confounds
from ..estimators.fitted import (
    final_step,
    fitted_kernel,
    held_out_output,
    is_model,
    is_regressor,
    record_of,
    rows_for,
    solution_of,
)
from ..kernels import KernelSum, SummedKernel

Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, their parts (B, m, t) and values (m, t)


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
        width = max(map(len, [*self.names, "kernel"]))
        lines = [f"{'kernel':{width}}  product measure"]
        lines += [f"{name:{width}}  {_text(np.mean(share)):>15}" for name, share in self._lines()]
        if self.unique is not None:
            columns = ["unique share", *(_text(np.mean(share)) for share in self.unique)]
            found = [f"{line}  {text:>12}" for line, text in zip(lines, columns, strict=False)]
            lines[: len(found)] = found
        return "\n".join(lines)

    def _lines(self) -> list[tuple[str, Any]]:
        return [*zip(self.names, self.product, strict=True), ("rest", self.rest), ("R²", self.r2)]


def _text(share: Any) -> str:
    return f"{round(float(share), 2) + 0.0:.2f}"


def kernel_shares(
    estimator: Any,
    X: Any = None,
    y: Any = None,
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
        The estimator, with a `KernelSum` as its kernel.
    X, y : array-like, default=None
        Rows and targets for nested cross-validation: all tuning is repeated on every training set.
        Without them, the estimator must be fitted, and its own held-out values are used, from
        leave-one-out or its `cv`. Tuned weights depend on these values.
    groups, cv : as in `cross_val_predict`
        The outer splits; only with X.
    params : dict, default=None
        Parameters for `fit`: ``sample_weight``, and ``groups`` for the inner splits.
    unique : bool, default=True
        Whether to compute unique shares, which needs another run without each kernel.

    Returns
    -------
    KernelShares

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
    ...                     ("none", "linear", slice(11, 20))])
    >>> shares = kernel_shares(KernelRidge(kernel=kernel).fit(X, y))
    >>> bool(abs(shares.product.sum() + shares.rest - shares.r2) < 1e-12)
    True
    >>> [f"{share:.2f}" for share in shares.product]
    ['0.69', '0.14', '0.00']
    """
    model = _model_of(estimator)
    check_no_confounds(model, "kernel_shares()")
    if any(name.endswith("confounds") for name in params or ()):
        raise ValueError("kernel_shares is not available for models with confounds.")
    if X is None:
        record = record_of(model, "kernel_shares")
        training = record.training
        y, weights = training.y, training.weights
        found = _gathered(_own_parts(model), len(y))
        base = clone(model)
        base.kernel = clone(model.kernel).set_params(kernels=model.kernel_.kernels)
        given = training.X, training.y, training.weights, training.groups
        rows = training.active
        splits = record.folds or [(np.delete(rows, i), rows[i : i + 1]) for i in range(len(rows))]
    else:
        y, options = np.asarray(to_numpy(y), dtype=np.float64), dict(params or {})
        splits = list(check_cv(cv, y, classifier=False).split(X, y, groups=groups))
        weights = next((v for n, v in options.items() if n.endswith("sample_weight")), None)
        found = _gathered(_nested_parts(estimator, X, y, splits, options), len(y))
        base = estimator
    scores = found.scores(y, weights)
    names, without = model.kernel.names, []
    for number, name in enumerate(names if unique and len(names) > 1 else []):
        report_progress(number, len(names), "kernels left out")
        other = clone(base)
        last = final_step(other)
        last.kernel = last.kernel.without(name)
        if _without_weight(last.kernel):
            predicted = _held_out_means(y, weights, splits)
        elif X is None:
            predicted = held_out_output(other.fit(*given))
        else:
            predicted = _held_out(other, X, y, splits, options)
        without.append(r_squared(y, predicted, weights))
    r2, rest, product = (values if y.ndim == 2 else values[..., 0] for values in scores)
    leaving = r2 - np.stack(without).reshape(product.shape) if without else None
    parts = found.parts if y.ndim == 2 else found.parts[..., 0]
    if y.ndim == 1:
        return KernelShares(names, product, leaving, float(rest), float(r2), parts)
    return KernelShares(names, product, leaving, rest, r2, parts)


def _model_of(estimator: Any) -> Any:
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
    return model


def r_squared(y: np.ndarray, predicted: np.ndarray, weights: Any = None) -> np.ndarray:
    """R² of every target (t,) over the rows that have a prediction."""
    y, predicted = (A.reshape(len(A), -1) for A in (y, predicted))
    w, total = _weights(y, predicted, weights)
    return np.asarray(1.0 - np.nansum(w * (y - predicted) ** 2, axis=0) / total)


def _weights(y: np.ndarray, predicted: np.ndarray, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """Weights (n, 1) of the rows, zero for those without a prediction, and Σw(y - mean)² (t,)."""
    tested = np.isfinite(predicted[:, 0])
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    w = (w * tested)[:, None]
    mean = np.sum(w * y, axis=0) / np.sum(w)
    return w, np.sum(w * (y - mean) ** 2, axis=0)


# ---- held-out parts ------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldOutParts:
    """Held-out predictions of all rows: the parts of the kernels (B, n, t), and their sum (n, t);
    NaN for rows that are not tested.
    """

    parts: np.ndarray
    predicted: np.ndarray

    def scores(self, y: np.ndarray, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """R² (t,), the rest (t,) and the product measures (B, t)."""
        y = y.reshape(len(y), -1)
        w, total = _weights(y, self.predicted, weights)
        mean = np.sum(w * y, axis=0) / np.sum(w)
        beside = w * (2.0 * (y - mean) - (self.predicted - mean)) / total
        rest = self.predicted - mean - self.parts.sum(axis=0)
        product = np.nansum(self.parts * beside, axis=1)
        return r_squared(y, self.predicted, weights), np.nansum(rest * beside, axis=0), product


def _gathered(folds: Iterator[Part], n: int) -> HeldOutParts:
    """The means over the folds that test a row."""
    parts: Any = 0.0
    predicted: Any = 0.0
    count = np.zeros(n)
    for rows, part, values in folds:
        if np.ndim(parts) == 0:
            parts, predicted = np.zeros((len(part), n, part.shape[2])), np.zeros((n, part.shape[2]))
        parts[:, rows] += part
        predicted[rows] += values
        count[rows] += 1
    with np.errstate(invalid="ignore"):
        return HeldOutParts(parts / count[:, None], predicted / count[:, None])


def _own_parts(model: Any) -> Iterator[Part]:
    """Parts of a fitted model, fold by fold or row by row, in closed form: coefficients without the
    left-out rows, times the kernels of these rows.
    """
    record, kernel, mu = record_of(model, "kernel_shares"), _kernel_of(model), float(model.alpha_)
    problem, training = record.problem, record.training
    matrices = [to_numpy(K) for K in _matrices(kernel, problem.X, problem.X)]
    weights, active = to_numpy(problem.row_weights)[:, 0], training.active
    fitted = problem.fit(mu)
    folds = record.folds
    if folds is None:
        folds = [(np.delete(active, i), active[i : i + 1]) for i in range(len(active))]
    position = training.positions()
    for train, test in folds:
        test = test[position[test] >= 0]
        deleted = complement(position[train][position[train] >= 0], len(active))
        without = problem.without(fitted, deleted, mu)
        dual = to_numpy(without.solution.dual_coef)
        left = weights.copy()
        left[deleted] = 0.0
        rows = position[test]
        part = [(K[rows] - left @ K / left.sum()) @ dual for K in matrices]
        yield test, np.stack(part), to_numpy(without.values(rows))


def _nested_parts(
    estimator: Any, X: Any, y: np.ndarray, splits: Splits, params: dict[str, Any]
) -> Iterator[Part]:
    """Parts of a model that is refitted on each training set."""
    for number, (train, test) in enumerate(splits):
        report_progress(number, len(splits), "folds")
        given = {name: _of_rows(value, train, len(y)) for name, value in params.items()}
        fitted = clone(estimator).fit(subset(X, train), y[train], **given)
        model, rows = final_step(fitted), subset(X, test)
        values = to_numpy(fitted.predict(rows)).reshape(len(test), -1)
        rows = rows if model is fitted else fitted[:-1].transform(rows)
        yield test, predicted_parts(model, rows), values


def predicted_parts(model: Any, X: Any) -> np.ndarray:
    """The output of each kernel of a fitted model for new rows (B, m, t), minus its mean over the
    training rows.
    """
    kernel, points = _kernel_of(model), model.X_fit_
    dual = to_numpy(solution_of(model).dual_coef)
    weights = to_numpy(record_of(model, "kernel_shares").problem.row_weights)[:, 0]
    rows = rows_for(model, X, "kernel_shares")
    of_rows = _matrices(kernel, rows, points)
    own = _matrices(kernel, points, points)
    means = (weights @ to_numpy(K) / weights.sum() for K in own)
    return np.stack([(to_numpy(K) - mean) @ dual for K, mean in zip(of_rows, means, strict=True)])


def _kernel_of(model: Any) -> SummedKernel:
    kernel = fitted_kernel(model)
    assert isinstance(kernel, SummedKernel)
    return kernel


def _matrices(kernel: SummedKernel, X: Any, points: Any) -> Iterator[Any]:
    """θ_b K_b between rows and points."""
    return (kernel.part(number, points)(X) for number in range(len(kernel.members)))


def _held_out(
    estimator: Any, X: Any, y: np.ndarray, splits: Splits, params: dict[str, Any]
) -> np.ndarray:
    """Held-out predictions (n, t), averaged if a row is tested several times."""
    folds = cross_val_predict(estimator, X, y, cv=splits, params=params, by_fold=True)
    values = ((rows, to_numpy(found).reshape(len(rows), -1)) for rows, found in folds)
    return _gathered(((rows, found[None], found) for rows, found in values), len(y)).predicted


def _without_weight(kernel: KernelSum) -> bool:
    """Whether all weights are given as zero, so that only a constant is left of the model."""
    return isinstance(kernel.weights, Mapping) and not any(kernel.weights.values())


def _held_out_means(y: np.ndarray, weights: Any, splits: Splits) -> np.ndarray:
    """The means of the training targets as held-out predictions (n, t)."""
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    y = y.reshape(len(y), -1)
    means = ((test, np.average(y[train], axis=0, weights=w[train])) for train, test in splits)
    values = ((test, np.tile(mean, (len(test), 1))) for test, mean in means)
    return _gathered(((test, found[None], found) for test, found in values), len(y)).predicted


def _of_rows(value: Any, rows: np.ndarray, n: int) -> Any:
    """A parameter of `fit`, restricted to some rows if it has one entry per row."""
    return np.asarray(value)[rows] if np.shape(value)[:1] == (n,) else value
