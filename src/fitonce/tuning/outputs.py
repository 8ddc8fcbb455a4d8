"""What a model without some rows says: predicted targets made outputs by its own rule."""

from __future__ import annotations

from typing import cast

from ..core.arrays import Array, namespace, take
from ..core.holdout import Fitted, HeldOut, Path, scatter_without
from ..core.lda import Axes, Rule
from ..core.readout import Indicators, Readout
from .problem import Problem, Without


def residual_scatter(fitted: Fitted) -> Array:
    """E = Yᵀ(I - H)Y (t, t) of a fit."""
    return fitted.Y.T @ fitted.residual


def axes_of_fit(problem: Problem, readout: Readout, fitted: Fitted) -> Axes:
    """The discriminant axes of all rows."""
    readout = cast(Indicators, readout)
    sizes = problem.sizes
    return readout.axes(residual_scatter(fitted), sizes, problem.degrees_of_freedom(sizes))


def rule_of_fit(problem: Problem, readout: Readout, fitted: Fitted) -> Rule | None:
    """The rule of all rows; None where predicted targets are the output."""
    if not readout.needs_scatter:
        return None
    sizes = problem.sizes
    dof = problem.degrees_of_freedom(sizes)
    return readout.rule(residual_scatter(fitted), sizes, dof=dof)


def outputs_without_each(problem: Problem, readout: Readout, path: Path) -> Array:
    """Outputs (n, o) of every row from the model without it, at the mu of a path: one batch."""
    values = problem.values_without_each(path)
    if not readout.needs_scatter:
        return readout.read(values, None)
    held_out = path.leave_one_out()
    r, rho = path.residual[0, :, None, :], held_out.residual[0, :, None, :]
    force = dual = None
    if held_out.force is not None and path.dual is not None:
        force, dual = held_out.force[0, :, None, :], path.dual[0, :, None, :]
    fitted = problem.smoother.fitted(problem.projected, path)
    E = scatter_without(residual_scatter(fitted), r, HeldOut(rho, force), dual)
    sizes = problem.sizes - problem.row_weights * problem.targets
    rule = readout.rule(E, sizes, dof=problem.degrees_of_freedom(sizes, each=True))
    return readout.read(values[:, None, :], problem.of_rows(rule))[:, 0, :]


def _scatter_left(without: Without) -> tuple[Array, Array, Array | None]:
    """Residual scatter, class sizes and degrees of freedom of the rows that are left."""
    problem, rows, fitted = without.problem, without.removal.rows, without.fitted
    dual = None if fitted.dual is None else take(fitted.dual, rows)
    residual = take(fitted.residual, rows)
    E = scatter_without(residual_scatter(fitted), residual, without.held_out, dual)
    removed = take(problem.row_weights * problem.targets, rows)
    sizes = problem.sizes - namespace(removed).sum(removed, axis=0)
    return E, sizes, problem.degrees_of_freedom(sizes, rows)


def read_without(without: Without, readout: Readout, values: Array, n_axes: int = 0) -> Array:
    """Outputs (k, o) for targets that the model without some rows predicts, or their projections
    on its first axes.
    """
    if not readout.needs_scatter:
        return readout.read(values, None)
    E, sizes, dof = _scatter_left(without)
    if n_axes:
        axes = cast(Indicators, readout).axes(E, sizes, dof).axes
        return (values @ axes)[:, :n_axes]
    return readout.read(values, readout.rule(E, sizes, dof=dof))
