"""Outputs of the model of the first rows for later rows, for every number of first rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.arrays import Array, namespace, square_block, take
from ..core.readout import Evidence
from ..core.splits import complement
from ..core.windows import Window, WindowFactor
from .decompose import prepared_kernel
from .problem import Problem
from .tuner import Tuner


class WindowModels:
    """The models of the first rows of some training sets; one factor is kept at a time.

    `problem` holds the targets and weights of all rows, `tuner` makes what the kernel matrix is
    made of once more. Each training set without repeated rows gives an order of all rows: first
    its own, then the others. So a factor predicts every row, whichever set it was made for.
    """

    def __init__(
        self, problem: Problem, tuner: Callable[[], Tuner], trains: list[np.ndarray], mu: float
    ) -> None:
        self.problem, self.mu = problem, mu
        n = problem.n_samples
        orders = (np.concatenate([train, complement(train, n)]) for train in trains)
        self.orders = [order for order in orders if len(order) == n]
        self._tuner = tuner
        self._current: _Order | None = None

    def of(self, train: np.ndarray) -> WindowModel | None:
        """The model of these training rows, if they are the first of an order."""
        if self._current is None or not self._current.begins_with(train):
            matching = (order for order in self.orders if begins_with(order, train))
            order = next(matching, None)
            if order is None:
                return None
            self._current = self._factored(order)
        current = self._current
        return WindowModel(self.problem, current, current.factor.window(current.w, len(train)))

    @cached_property
    def _kernel(self) -> tuple[Array, Array]:
        """The kernel matrix of all rows and Q₀."""
        tuner = self._tuner()
        data, spec = tuner.data, tuner.specification
        kernel, bias = spec.kernel_at(data, {}), spec.fit_intercept
        made = prepared_kernel(data.X, kernel, bias, data.row_scale)
        return made.K, made.Q0

    def _factored(self, order: np.ndarray) -> _Order:
        K, Q0 = self._kernel
        factor = WindowFactor.of_kernel(square_block(K, order), take(Q0, order), self.mu)
        w = factor.project(take(self.problem.projected.Y, order))
        return _Order(order, np.argsort(order), factor, w)


@dataclass(frozen=True)
class _Order:
    """Rows in the order in which they join, their places in it, its factor and its targets."""

    rows: np.ndarray
    place: np.ndarray
    factor: WindowFactor
    w: Array

    def begins_with(self, train: np.ndarray) -> bool:
        return begins_with(self.rows, train)


def begins_with(order: np.ndarray, train: np.ndarray) -> bool:
    """Whether training rows are the first of an order, and not all of it."""
    return 0 < len(train) < len(order) and np.array_equal(train, order[: len(train)])


@dataclass(frozen=True)
class WindowModel:
    """The model of the first rows of an order."""

    problem: Problem
    order: _Order
    window: Window

    @property
    def _first(self) -> np.ndarray:
        return self.order.rows[: self.window.size]

    def values(self, rows: np.ndarray) -> Array:
        """Predicted targets (k, t) of later rows, or of the window's own."""
        place = self.order.place[rows]
        if np.all(place >= self.window.size):
            values = self.window.values(place)
        else:
            Y = take(self.problem.projected.Y, self._first)
            values = take(Y - self.window.residuals(), place)
        return self.problem.unscale(values, rows)

    @property
    def evidence(self) -> Evidence:
        """Scatter and class sizes of the window."""
        first = take(self.problem.row_weights * self.problem.targets, self._first)
        sizes = namespace(first).sum(first, axis=0)
        return Evidence(self.window.residual_scatter(), sizes)
