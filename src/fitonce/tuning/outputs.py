"""Outputs of a model without some rows: predicted targets turned into outputs by its own rule."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from ..core.arrays import Array, namespace
from ..core.holdout import Path
from ..core.lda import Rule
from ..core.readout import Indicators, Readout
from .problem import Problem, Refit, Without

ModelOfSome = Without | Refit


def outputs_without_each(problem: Problem, readout: Readout, path: Path) -> Array:
    """Outputs (n, o) of every row from the model without it, at the mu of a path: one batch."""
    rules = readout.rule_from(partial(problem.evidence_without_each, path))
    values = problem.values_without_each(path)[0, ...]
    return _settled(problem, readout, values, rules, float(path.mus[0]))


def _settled(problem: Problem, readout: Readout, P: Array, rule: Rule | None, mu: float) -> Array:
    """Outputs (k, o) of predicted targets P (k, t) with the ties of exact arithmetic."""
    largest = namespace(P).max(namespace(P).abs(problem.targets), axis=0)
    return readout.settled(P, rule, largest, problem.smoother.accuracy(mu))


def projections_without(model: ModelOfSome, readout: Readout, values: Array, n_axes: int) -> Array:
    """Projections of predicted targets on the first axes of the model without some rows."""
    solved = cast(Indicators, readout).axes(model.evidence())
    return (values @ solved.axes)[:, : min(n_axes, solved.rank)]


def read_without(
    without: ModelOfSome, readout: Readout, values: Array, rows: np.ndarray | None = None
) -> Array:
    """Outputs (k, o) for targets that the model without some rows predicts for them, with the ties
    of a refit.

    Where values agree to their accuracy, or are zero to it, and `rows` says whose they are, they
    are computed once more as a refit does: k(x, X)α + b does not see the labels of these rows.
    """
    problem, rule = without.problem, readout.rule_from(without.evidence)
    result = _settled(problem, readout, values, rule, without.mu)
    if rows is None or not readout.n_classes or not _differ(result, readout.read(values, rule)):
        return result
    X = problem.features_of(rows)
    if X is None:
        return result
    return predict_without(without, readout, X, problem.confounds_of(rows))


def predict_without(
    without: Without | Refit, readout: Readout, X: Array, confounds: Array | None = None
) -> Array:
    """Outputs (k, o) of new rows X by the model without some rows, as its refit predicts them."""
    problem, rule = without.problem, readout.rule_from(without.evidence)
    solution = without.solution
    if rule is not None:
        solution = solution.readout(rule.weights, rule.offsets)
    predict = solution.decisions if readout.n_classes else solution.values
    return predict(problem.kernel, X, problem.X, confounds=confounds)


def _differ(A: Array, B: Array) -> bool:
    """Anywhere but where there is no value: models without a class have none."""
    return bool(namespace(A).any((A != B) & (A == A)))
