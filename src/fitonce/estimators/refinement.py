"""From the best point of the lattice to the bottom of its valley.

Newton on log alpha, gradients or a line search for gamma, ARD.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp

from ..core.arrays import Array, NotPositiveDefiniteError, asarray_like, namespace, to_numpy
from ..core.criteria import criterion_of
from ..core.derivatives import Jet
from ..core.features import Deletions
from ..tuning.gradient import KernelObjective, LossAndSlope
from ..tuning.lattice import alpha_lattice
from ..tuning.newton import NewtonStep, newton
from ..tuning.search import Trial
from .problem import Problem, bias_basis

ALTERNATIONS = 4  # rounds of gamma, then alpha, where there is no joint gradient
WITHIN = np.log(4.0)  # how far gamma and alpha may move from the lattice point in a line search
CONVERGED = 1e-4  # of log gamma between rounds
# strength of the pull of log widths towards their common start, relative to the loss there
ARD_PULL = 0.05
ARD_FOLDS = 5
ARD_STANDARD_ERRORS = 2.0  # of the gain on unseen rows that widths per feature must show


@dataclass(frozen=True)
class Refinement:
    """What happened after the lattice.

    The steps of Newton's method (the last run), the rounds, and the fate of ARD widths.
    """

    steps: list[NewtonStep] = field(default_factory=list)
    rounds: list[dict[str, float]] = field(default_factory=list)
    ard: dict[str, float] | None = None
    trials: list[Trial] = field(
        default_factory=list
    )  # the steps and the result, as rows of cv_results_


def squared_loss(total: float) -> LossAndSlope:
    """Σ e²/total and its slope."""

    def loss(e: Array) -> tuple[float, Array]:
        return float(namespace(e).sum(e**2)) / total, 2.0 * e / total

    return loss


def smoothed_jet(margin: Jet, compression: float, weights: Array) -> Jet:
    """Weighted mean of σ(-γ · margin) with its derivatives."""
    xp = namespace(weights)
    s = 0.5 - 0.5 * xp.tanh(
        0.5 * compression * margin.value
    )  # the sigmoid of minus that, without overflow
    first = -compression * s * (1.0 - s)
    second = compression**2 * s * (1.0 - s) * (1.0 - 2.0 * s)
    losses: Jet = margin.through(s, first, second) * (weights / xp.sum(weights))
    return losses.sum()


def smoothed_loss(problem: Problem, compression: float) -> LossAndSlope:
    """Mean of σ(-γ y (y - e)) for ±1 targets as a function of the (scaled) residuals e, and its
    slope.
    """
    weights = problem.row_weights / namespace(problem.targets).sum(problem.row_weights)

    def loss(e: Array) -> tuple[float, Array]:
        xp = namespace(e)
        margin = 1.0 - problem.targets * problem.unscale(e)
        s = 0.5 - 0.5 * xp.tanh(0.5 * compression * margin)
        return float(xp.sum(weights * s)), problem.unscale(
            weights * compression * s * (1.0 - s) * problem.targets
        )

    return loss


def refine(
    model: Any, prepared: Any, deletions: Deletions | None, winner: Trial, problem: Problem
) -> tuple[Trial, Problem, Refinement]:
    """The winner of the lattice moved to the nearest minimum of the criterion; never to a worse
    one.

    Gamma first, where it is tuned: jointly with alpha by gradient where the criterion has one
    (function norm, leave-one-out), else in turns with alpha (Saadi et al.), each by a bounded line
    search. Then alpha, by Newton's method where the criterion has derivatives.
    """
    work = _Refiner(model, prepared, deletions, winner)
    best = _Point(winner, problem)
    rounds: list[dict[str, float]] = []
    if "gamma" in winner.parameters:
        best, rounds = work.gamma(best)
    best, steps = work.alpha(best)
    steps = [step for step in steps if np.isfinite(step.loss)]
    walked = Trial(
        best.trial.parameters,
        np.array([step.alpha for step in steps]),
        np.array([step.loss for step in steps]),
    )
    ard = None
    if model._ard:
        best, ard = work.ard(best)
    return (
        best.trial,
        best.problem,
        Refinement(steps, rounds, ard, [walked, best.trial] if steps else [best.trial]),
    )


@dataclass(frozen=True)
class _Point:
    """Where the search stands: one alpha with its loss, and the decomposition."""

    trial: Trial
    problem: Problem


class _Refiner:
    def __init__(
        self, model: Any, prepared: Any, deletions: Deletions | None, winner: Trial
    ) -> None:
        self.model, self.prepared, self.deletions = model, prepared, deletions
        self.penalty = winner.parameters.get("penalty", model.penalty)
        self.criterion = criterion_of(
            model.criterion, getattr(model, "compression", 1.0), model.pooled
        )
        self.tune_alpha = isinstance(model.alpha, str)
        self.smooth = (
            deletions is None and prepared.landmarks is None
        )  # leave-one-out of a kernel matrix has derivatives

    def problem(self, parameters: dict[str, Any]) -> Problem:
        problem: Problem = self.model._problem(
            self.prepared, self.model._kernel(self.prepared, parameters), self.penalty
        )
        return problem

    def loss(self, problem: Problem, alpha: float) -> float:
        return float(
            self.model._losses(
                problem, self.prepared, np.array([alpha]), self.deletions, self.criterion
            )[0]
        )

    def point(self, parameters: dict[str, Any], alpha: float) -> _Point:
        problem = self.problem(parameters)
        return self._at(problem, parameters, alpha)

    def _at(self, problem: Problem, parameters: dict[str, Any], alpha: float) -> _Point:
        return _Point(
            Trial(parameters, np.array([alpha]), np.array([self.loss(problem, alpha)])), problem
        )

    # ---- alpha -----------------------------------------------------------------------------------

    def alpha(self, best: _Point) -> tuple[_Point, list[NewtonStep]]:
        if not self.tune_alpha:
            return best, []
        window = alpha_lattice(best.problem.decomposition, self.prepared.total_weight)
        steps: list[NewtonStep] = []
        alpha = best.trial.alpha
        if self.smooth and self.model._loss_jet(best.problem, self.prepared, alpha) is not None:
            steps = newton(
                lambda mu: self.model._loss_jet(best.problem, self.prepared, mu),
                alpha,
                window[0],
                window[-1],
            )
            alpha = steps[-1].alpha
        else:
            alpha = float(
                np.exp(
                    self._line(
                        lambda t: self.loss(best.problem, float(np.exp(t))),
                        np.log(alpha),
                        np.log(window[[0, -1]]),
                    )
                )
            )
        return self._better(best, self._at(best.problem, best.trial.parameters, alpha)), steps

    def _line(self, function: Any, start: float, bounds: np.ndarray | None) -> float:
        lower, upper = start - WITHIN, start + WITHIN
        if bounds is not None:
            lower, upper = max(lower, float(bounds[0])), min(upper, float(bounds[1]))
        if not lower < upper:
            return start
        return float(
            scipy.optimize.minimize_scalar(
                function, bounds=(lower, upper), method="bounded", options={"xatol": 1e-3}
            ).x
        )

    def _better(self, before: _Point, after: _Point) -> _Point:
        return after if after.trial.loss < before.trial.loss else before

    # ---- gamma -----------------------------------------------------------------------------------

    def gamma(self, best: _Point) -> tuple[_Point, list[dict[str, float]]]:
        objective = self._objective(best)
        if objective is not None:
            return self._descend(best, objective)
        return self._alternate(best)

    def _objective(self, best: _Point) -> KernelObjective | None:
        """The smooth loss in log gamma and log alpha, where there is one.

        Leave-one-out, function norm, rbf or laplacian.
        """
        model, problem = self.model, best.problem
        loss = model._loss_and_slope(problem, self.prepared)
        if (
            loss is None
            or not self.smooth
            or self.penalty != "function"
            or model.kernel not in ("rbf", "laplacian")
        ):
            return None
        if not self.tune_alpha or model._intercept_option == "penalized":
            return None
        parameters = best.trial.parameters

        def kernel(gamma: Any) -> Array:
            return model._kernel(self.prepared, {**parameters, "gamma": gamma})(
                self.prepared.X, self.prepared.X
            )

        start = np.log([parameters["gamma"], best.trial.alpha])
        return KernelObjective(
            kernel,
            self.prepared.X,
            problem.scaled_targets,
            problem.smoother.Q0,
            problem.row_scale,
            loss,
            start,
        )

    def _descend(
        self, best: _Point, objective: KernelObjective
    ) -> tuple[_Point, list[dict[str, float]]]:
        window = alpha_lattice(best.problem.decomposition, self.prepared.total_weight)
        *widths, alpha = np.exp(objective.minimise((window[0], window[-1])))
        after = self._better(
            best, self.point({**best.trial.parameters, "gamma": float(widths[0])}, float(alpha))
        )
        return after, [_record(best), _record(after)]

    def _alternate(self, best: _Point) -> tuple[_Point, list[dict[str, float]]]:
        rounds = [_record(best)]
        for _ in range(ALTERNATIONS):
            before = np.log(best.trial.parameters["gamma"])
            parameters, alpha = best.trial.parameters, best.trial.alpha

            def loss(
                t: float, parameters: dict[str, Any] = parameters, alpha: float = alpha
            ) -> float:
                return self.point({**parameters, "gamma": float(np.exp(t))}, alpha).trial.loss

            t = self._line(loss, before, None)
            best = self._better(best, self.point({**parameters, "gamma": float(np.exp(t))}, alpha))
            best, _ = self.alpha(best)
            rounds.append(_record(best))
            if abs(np.log(best.trial.parameters["gamma"]) - before) < CONVERGED:
                break
        return best, rounds

    # ---- one width per feature -------------------------------------------------------------------

    def ard(self, best: _Point) -> tuple[_Point, dict[str, float]]:
        """Widths per feature by the held-out squared error, kept only where they pay on rows that
        did not choose them.

        Over-fitting the criterion is the danger (one parameter per feature). Two guards: log widths
        are pulled towards their common start, and in five folds the widths are chosen on each
        training part and judged on its test part, against one common width that was chosen there in
        the same way. They are kept if the squared error falls by more than two standard errors of
        the paired differences.
        """
        if sp.issparse(self.prepared.X):
            raise ValueError('gamma="ard" needs a dense X: make it dense, or use gamma="tune".')
        try:
            gain, error = self._ard_gain(best)
        except (
            NotPositiveDefiniteError
        ):  # too small an alpha for this kernel on some part of the rows
            return best, {"gain": 0.0, "standard_error": 0.0}
        record = {"gain": gain, "standard_error": error}
        if gain <= ARD_STANDARD_ERRORS * error:
            return best, record
        widths, alpha = self._widths(best, np.arange(self.prepared.X.shape[0]), per_feature=True)
        parameters = {**best.trial.parameters, "gamma": widths}
        if self.tune_alpha:
            return self.alpha(self.point(parameters, alpha))[0], record
        problem = self.problem(parameters)
        alphas = np.unique(np.atleast_1d(np.asarray(self.model.alpha, dtype=np.float64)))
        trials = [self._at(problem, parameters, float(alpha)) for alpha in alphas]
        return min(trials, key=lambda point: point.trial.loss), record

    def _widths(
        self, best: _Point, rows: np.ndarray, per_feature: bool
    ) -> tuple[np.ndarray, float]:
        """Widths, one per feature or one in all, and alpha, chosen on some of the rows.

        Alpha stays where it is not tuned.
        """
        part = self.prepared.rows(rows)
        n_widths = part.X.shape[1] if per_feature else 1
        start = np.log(
            np.append(np.full(n_widths, best.trial.parameters["gamma"]), best.trial.alpha)
        )
        targets = asarray_like(part.targets, best.problem.targets)
        Y = targets if part.row_scale is None else part.row_scale * targets
        Q0 = bias_basis(Y, part.row_scale, self.model._intercept_option)
        loss = squared_loss(part.total_weight * Y.shape[1])
        objective = KernelObjective(
            lambda widths: self.model._kernel(part, {**best.trial.parameters, "gamma": widths})(
                part.X, part.X
            ),
            *(part.X, Y, Q0, part.row_scale, loss, start),
            per_feature=per_feature,
        )
        pulled = replace(objective, pull=ARD_PULL * objective(start)[0])
        reach = 2.0**8 if self.tune_alpha else 1.0 + 1e-9
        *widths, alpha = np.exp(
            pulled.minimise((best.trial.alpha / reach, best.trial.alpha * reach))
        )
        return np.array(widths), float(alpha)

    def _ard_gain(self, best: _Point) -> tuple[float, float]:
        """Mean improvement of the squared error on unseen rows by a width per feature over a common
        one, and its standard error.
        """
        n = self.prepared.X.shape[0]
        fold = np.random.default_rng(0).permutation(n) % ARD_FOLDS
        gains = []
        for number in range(ARD_FOLDS):
            train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            (common,), alpha = self._widths(best, train, per_feature=False)
            plain = self._squared_errors(best, float(common), alpha, train, test)
            gains.append(
                plain
                - self._squared_errors(
                    best, *self._widths(best, train, per_feature=True), train, test
                )
            )
        gain = np.concatenate(gains)
        return float(gain.mean()), float(gain.std() / np.sqrt(n))

    def _squared_errors(
        self, best: _Point, gamma: Any, alpha: float, train: np.ndarray, test: np.ndarray
    ) -> np.ndarray:
        """Squared errors at the test rows of a model of the training rows."""
        part = self.prepared.rows(train)
        kernel = self.model._kernel(part, {**best.trial.parameters, "gamma": gamma})
        problem = self.model._problem(part, kernel, "function", alpha)
        solution = problem.solution(problem.fit(alpha), alpha)
        values = (
            kernel(self.prepared.rows(test).X, part.X) @ solution.dual_coef + solution.intercept
        )
        return np.asarray(np.mean((to_numpy(values) - self.prepared.targets[test]) ** 2, axis=1))


def _record(point: _Point) -> dict[str, float]:
    return {
        "gamma": float(np.mean(point.trial.parameters["gamma"])),
        "alpha": point.trial.alpha,
        "loss": point.trial.loss,
    }
