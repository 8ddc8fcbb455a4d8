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
        self._tuner, self._order = tuner, np.arange(0)

    def of(self, train: np.ndarray) -> WindowModel | None:
        """The model of these training rows, if they are the first of an order."""
        orders = (self._order, *self.orders)
        order = next((order for order in orders if begins_with(order, train)), None)
        if order is None:
            return None
        if order is not self._order:
            K, Q0 = self._kernel
            factor = WindowFactor.of_kernel(square_block(K, order), take(Q0, order), self.mu)
            self._w = factor.project(take(self.problem.projected.Y, order))
            self._order, self._place, self._factor = order, np.argsort(order), factor
        window = self._factor.window(self._w, len(train))
        return WindowModel(self.problem, order, self._place, window)

    @cached_property
    def _kernel(self) -> tuple[Array, Array]:
        """The kernel matrix of all rows and Q₀."""
        tuner = self._tuner()
        data, spec = tuner.data, tuner.specification
        kernel, bias = spec.kernel_at(data, {}), spec.fit_intercept
        made = prepared_kernel(data.X, kernel, bias, data.row_scale)
        return made.K, made.Q0


def begins_with(order: np.ndarray, train: np.ndarray) -> bool:
    """Whether training rows are the first of an order, and not all of it."""
    return 0 < len(train) < len(order) and np.array_equal(train, order[: len(train)])


@dataclass(frozen=True)
class WindowModel:
    """The model of the first rows of an order, in which `place` says where every row is."""

    problem: Problem
    order: np.ndarray
    place: np.ndarray
    window: Window

    @property
    def mu(self) -> float:
        return self.window.factor.mu

    @property
    def _first(self) -> np.ndarray:
        return self.order[: self.window.size]

    def values(self, rows: np.ndarray) -> Array:
        """Predicted targets (k, t) of later rows, or of the window's own."""
        place = self.place[rows]
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
