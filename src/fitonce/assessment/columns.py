r"""Which columns matter: what held-out prediction loses without a column, exactly.

The model without a column has the kernel without it, at the same gamma and alpha. Row by row, its
exact held-out loss beside that of the full model is

    Δ_i = loss_i(without the column) - loss_i,    z = mean(Δ) / (sd(Δ)/√n)

and z is tested one-sided. The loss is the squared error over the variance of the target, or the
log-loss of decisions at the temperature of the full model. Columns with the same information can
replace each other, so that neither matters alone: columns that are near copies leave together.

A column leaves by becoming constant: kernels of distances do not see it then, and in a linear one
the intercept takes it up. The steps of a pipeline before the model stay as they were fitted.
One decomposition for each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import t
from sklearn.model_selection import LeaveOneOut

from ..core.progress import report_progress
from ..core.readout import labels_of
from ..crossval import cross_val_predict
from ..crossval.depends import depends
from ..estimators.fitted import model_of
from . import render
from .data import AssessedRows, column_of, on_host, splitters
from .folds import choice_of, fixed, splits_of, without_groups
from .intervals import HeldOutValues, holm

COPIES = 0.95  # correlation from which columns leave together


@dataclass(frozen=True, repr=False)
class ColumnImportance:
    """What held-out prediction loses without each column or group of columns.

    Attributes
    ----------
    names : list of str
    loss : array of shape (n_columns,)
        The mean increase of the loss: of the squared error over the variance of the target (what R²
        loses), or of the log-loss.
    low, high : array of shape (n_columns,)
        Its interval.
    pvalues : array of shape (n_columns,)
        One-sided p-values of no increase, corrected over the columns (Holm).
    change : array of shape (n_columns,)
        What the score, R² or accuracy, loses.
    score_name : {"r2", "accuracy"}
    score : float
        The held-out score of all columns together.
    level : float
    """

    names: list[str]
    loss: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pvalues: np.ndarray
    change: np.ndarray
    score_name: str
    score: float
    level: float

    def __str__(self) -> str:
        return render.as_text([render.columns(self)])

    def __repr__(self) -> str:
        return f"<ColumnImportance: {len(self.names)} columns>"

    def _repr_html_(self) -> str:
        return render.as_html([render.columns(self)])


def column_importance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    columns: Mapping[str, Sequence[Any]] | None = None,
    feature_names: Sequence[str] | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    confounds: Any = None,
    level: float = 0.95,
    random_state: int = 0,
) -> ColumnImportance:
    """Measure what held-out prediction loses without each column, with intervals and p-values.

    The model keeps its settings and is trained without the column; every row is predicted by models
    that have not seen it (leave-one-out, or folds that keep groups together). All of this is in
    closed form.

    Parameters
    ----------
    estimator : fitted estimator of fitonce, or a fitted Pipeline that ends in one
        Its settings are kept. The steps of a pipeline before the model are not fitted again.
    X, y : array or data frame, array
        The rows, in general those that the estimator was fitted on.
    columns : dict of str to sequence, default=None
        Names and numbers (or names) of columns that leave together. None: every column, with its
        near copies (correlation above .95).
    feature_names : sequence of str, default=None
        Names of the columns; by default those of the data frame.
    groups, sample_weight, confounds : arrays, default=None
        As in `assess`.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed for folds of groups.

    Returns
    -------
    ColumnImportance
        The loss without each column.

    Examples
    --------
    >>> import numpy as np
    >>> from fitonce import KernelRidge
    >>> from fitonce.assessment import column_importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=80)
    >>> found = column_importance(KernelRidge(kernel="linear", alpha=1.0).fit(X, y), X, y)
    >>> found.pvalues < 0.05
    array([ True, False, False])
    """
    model = model_of(estimator, "columns are left out of its kernel")
    data = AssessedRows.of(estimator, X, y, groups, sample_weight, confounds)
    kept, params = fixed(model, choice_of(model)), without_groups(data.params)
    method = "predict" if data.classes is None else "decision_function"
    single = data.groups is None and depends(kept, X, params, method=method).route.name == "one"
    cv = LeaveOneOut() if single else splitters(None, data, 1, random_state)[0]
    splits = splits_of(cv, data)
    together = _together(X, feature_names) if columns is None else _positions(columns, X)

    def held_out(rows: Any) -> np.ndarray:
        Z = rows if model is estimator else estimator[:-1].transform(rows)
        found = cross_val_predict(kept, Z, data.y, cv=splits, params=params, method=method)
        return on_host(found)

    outputs = [held_out(X)]
    for number, places in enumerate(together.values()):
        report_progress(number, len(together), "columns left out")
        outputs.append(held_out(_without(X, places)))
    report_progress(len(together), len(together), "columns left out")
    losses, scores = _losses(data, outputs)
    units = np.arange(len(data.y)) if data.groups is None else data.groups
    every = np.arange(len(data.y))
    apart = [
        HeldOutValues(
            [every],
            [loss - losses[0]],
            [],
            np.unique(units, return_inverse=True)[1].reshape(-1),
            data.weights_of(every),
            0.0,
        )
        for loss in losses[1:]
    ]
    mean, error = np.array([(d.mean, np.sqrt(d.naive)) for d in apart]).T
    dof = apart[0].n_units - 1
    reach = t.ppf(0.5 + level / 2, dof) * error
    z = np.divide(mean, error, out=np.zeros_like(mean), where=error > 0)
    return ColumnImportance(
        names=list(together),
        loss=mean,
        low=mean - reach,
        high=mean + reach,
        pvalues=holm(t.sf(z, dof)),
        change=scores[0] - scores[1:],
        score_name=data.score_name,
        score=float(scores[0]),
        level=level,
    )


def _losses(data: AssessedRows, outputs: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """The losses of rows and the scores from held-out outputs, of which the first are those of all
    columns.
    """
    w = data.weights_of(np.arange(len(data.y)))
    if data.classes is None:
        centre = np.average(data.y, weights=w)
        spread = np.average((data.y - centre) ** 2, weights=w)
        losses = [(data.y - said.reshape(-1)) ** 2 / spread for said in outputs]
        return losses, np.array([1.0 - np.average(loss, weights=w) for loss in losses])
    codes = np.searchsorted(data.classes, data.y)
    right = [labels_of(decision, data.classes) == data.y for decision in outputs]

    def log_loss(decision: np.ndarray, scale: float) -> np.ndarray:
        both = np.stack([0.0 * decision, decision], axis=1) if decision.ndim == 1 else decision
        return np.asarray(-log_softmax(scale * both, axis=1)[np.arange(len(codes)), codes])

    found = minimize_scalar(
        lambda log: np.average(log_loss(outputs[0], np.exp(log)), weights=w), bounds=(-7.0, 7.0)
    )
    losses = [log_loss(decision, float(np.exp(found.x))) for decision in outputs]
    return losses, np.array([np.average(each, weights=w) for each in right])


def _together(X: Any, given: Sequence[str] | None) -> dict[str, list[int]]:
    """Columns by name; those that are near copies of an earlier one leave with it."""
    own = getattr(X, "columns", [f"x{j}" for j in range(X.shape[1])])
    names = [str(name) for name in (own if given is None else given)]
    Z = np.column_stack([_standard(column_of(X, j)) for j in range(len(names))])
    alike = np.abs(Z.T @ Z) > COPIES
    found: dict[int, list[int]] = {}
    for j in range(len(names)):
        first = next((i for i in found if alike[i, j]), j)
        found.setdefault(first, []).append(j)
    others = {i: render.joined([names[j] for j in found[i][1:]]) for i in found}
    return {names[i] + (f" (with {said})" if said else ""): found[i] for i, said in others.items()}


def _standard(values: np.ndarray) -> np.ndarray:
    """A column of numbers, centred and of length one; zeros if it is constant or no numbers."""
    if values.dtype.kind not in "biuf" or not np.all(np.isfinite(values.astype(float))):
        return np.zeros(len(values))
    centred = values.astype(float) - values.mean()
    return np.asarray(centred / (np.linalg.norm(centred) or 1.0))


def _positions(columns: Mapping[str, Sequence[Any]], X: Any) -> dict[str, list[int]]:
    names = list(getattr(X, "columns", []))
    return {
        str(name): [names.index(place) if place in names else int(place) for place in places]
        for name, places in columns.items()
    }


def _without(X: Any, places: Sequence[int]) -> Any:
    """The rows with columns that say nothing: zero for numbers in an array, else the first value
    of the column.
    """
    if hasattr(X, "with_columns"):  # polars
        first = X[[0] * len(X)]
        return X.with_columns([first.to_series(place) for place in places])
    if hasattr(X, "iloc"):
        changed = X.copy()
        for place in places:
            changed.isetitem(place, X.iloc[[0] * len(X), place].set_axis(X.index))
        return changed
    changed = X.copy()
    changed[:, places] = 0.0 if X.dtype.kind in "biuf" else X[:1, places]
    return changed
