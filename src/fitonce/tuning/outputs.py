"""Outputs of a model without some rows: predicted targets turned into outputs by its own rule."""

from __future__ import annotations

from typing import cast

import numpy as np

from ..core.arrays import Array, namespace, take, to_numpy
from ..core.holdout import Fitted, Path
from ..core.lda import Axes, Rule
from ..core.readout import Indicators, Readout
from ..core.ties import settled_outputs
from .problem import Problem, Without


def axes_of_fit(problem: Problem, readout: Readout, fitted: Fitted) -> Axes:
    """The discriminant axes of all rows."""
    readout = cast(Indicators, readout)
    sizes = problem.sizes
    return readout.axes(problem.scatter(fitted), sizes, problem.degrees_of_freedom(sizes))


def rule_of_fit(problem: Problem, readout: Readout, fitted: Fitted) -> Rule | None:
    """The rule of all rows; None if predicted targets are the output."""
    if not readout.needs_scatter:
        return None
    sizes = problem.sizes
    dof = problem.degrees_of_freedom(sizes)
    return readout.rule(problem.scatter(fitted), sizes, dof=dof)


def settle(
    problem: Problem, readout: Readout, mu: float, P: Array, outputs: Array, rule: Rule | None
) -> Array:
    """Outputs (k, o) of predicted targets P (k, t) with the ties of exact arithmetic: what lies
    below their accuracy is rounding, which knows the labels of the rows held out.
    """
    xp = namespace(P)
    targets = xp.max(xp.abs(problem.targets), axis=0)
    unit = xp.maximum(xp.max(xp.abs(P), axis=0), targets)
    size = readout.size(unit, rule)
    size = xp.max(size, axis=0) if size.ndim > 1 else size
    return settled_outputs(outputs, problem.smoother.accuracy(mu) * to_numpy(size))


def outputs_without_each(problem: Problem, readout: Readout, path: Path) -> Array:
    """Outputs (n, o) of every row from the model without it, at the mu of a path: one batch."""
    values, mu = problem.values_without_each(path), float(path.mus[0])
    if not readout.needs_scatter:
        return settle(problem, readout, mu, values, readout.read(values, None), None)
    E = problem.scatter_without_each(path)
    sizes = problem.sizes - problem.row_weights * problem.targets
    rule = readout.rule(E, sizes, dof=problem.degrees_of_freedom(sizes, each=True))
    rules = problem.of_rows(rule)
    outputs = readout.read(values[:, None, :], rules)[:, 0, :]
    return settle(problem, readout, mu, values, outputs, rules)


def _scatter_left(without: Without) -> tuple[Array, Array, Array | None]:
    """Residual scatter, class sizes and degrees of freedom of the rows that are left."""
    problem, rows, E = without.problem, without.removal.rows, without.scatter
    removed = take(problem.row_weights * problem.targets, rows)
    sizes = problem.sizes - namespace(removed).sum(removed, axis=0)
    return E, sizes, problem.degrees_of_freedom(sizes, rows)


def projections_without(without: Without, readout: Readout, values: Array, n_axes: int) -> Array:
    """Projections of predicted targets on the first axes of the model without some rows."""
    axes = cast(Indicators, readout).axes(*_scatter_left(without)).axes
    return (values @ axes)[:, :n_axes]


def _rule_without(without: Without, readout: Readout) -> Rule | None:
    if not readout.needs_scatter:
        return None
    E, sizes, dof = _scatter_left(without)
    return readout.rule(E, sizes, dof=dof)


def read_without(
    without: Without, readout: Readout, values: Array, rows: np.ndarray | None = None
) -> Array:
    """Outputs (k, o) for targets that the model without some rows predicts for them, with the ties
    of a refit.

    Where values agree to their accuracy, or are zero to it, and `rows` says whose they are, they
    are computed once more as a refit does: k(x, X)α + b does not see the labels of these rows.
    """
    problem, rule = without.problem, _rule_without(without, readout)
    outputs = readout.read(values, rule)
    result = settle(problem, readout, without.mu, values, outputs, rule)
    if rows is None or not readout.n_classes or not _differ(result, outputs):
        return result
    X = problem.features_of(rows)
    if X is None:
        return result
    return predict_without(without, readout, X, problem.confounds_of(rows))


def predict_without(
    without: Without, readout: Readout, X: Array, confounds: Array | None = None
) -> Array:
    """Outputs (k, o) of new rows X by the model without some rows, as its refit predicts them."""
    problem, rule = without.problem, _rule_without(without, readout)
    solution = without.solution
    if rule is not None:
        rule = rule.difference() if readout.n_classes == 2 else rule
        solution = solution.readout(rule.weights, rule.offsets)
    predict = solution.decisions if readout.n_classes else solution.values
    return predict(problem.kernel, X, problem.X, confounds=confounds)


def _differ(A: Array, B: Array) -> bool:
    """Anywhere but where there is no value: models without a class have none."""
    return bool(namespace(A).any((A != B) & (A == A)))
