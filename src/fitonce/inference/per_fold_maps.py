r"""One decomposition per training set, shared by all labelings: for models that depend on their
training rows but not on their labels.

All labelings are columns of the targets of one decomposition, which predicts the targets of the
test rows and gives the residual scatter E = Yᵀ(I - H)Y. If something is tuned, each labeling makes
the same choice as in a fit, in every training set (`choices`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.arrays import Array, asarray_like, index_like, namespace, take
from ..core.readout import Evidence, Readout
from ..core.rows import dense_like
from ..core.splits import Splits
from ..core.ties import EPSILON, ROUNDING
from ..crossval.lookup import FoldContext
from ..crossval.metrics import Outputs, size_of_targets
from ..estimators.confounding import new_confounds
from ..estimators.fitted import final_step
from ..estimators.setup import Setup, folds_of, setup_of
from ..estimators.validation import check_new_data
from ..tuning.problem import Problem
from ..tuning.trials import Parameters
from ..tuning.tuner import Tuner
from .choices import Choice, Choices, key_of
from .deletion_maps import kept_targets
from .placements import Placement
from .question import Question

TERMS = 2.0 * EPSILON / ROUNDING  # of a sum: each is off by an ulp, as in `settled_decisions`


@dataclass
class TrainedFold:
    """One training set: its rows, and for every kernel asked for a decomposition that all
    labelings share.
    """

    setup: Setup
    X_test: Array
    max_bytes: int
    C_test: Array | None = None  # confounds of the test rows
    inner: Splits | None = None  # by which alpha is chosen; None for leave-one-out
    problems: dict[Any, Problem] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tuner = replace(self.setup.tuner(self.inner), make=self._made)
        spec = self.tuner.specification
        self.readout: Readout = self.setup.readout
        self.fixed: Choice | None = None  # the choice, where there is only one
        (first, *more) = spec.branches(self.tuner.data)
        self.one_kernel = not more and first.lattice is None and not spec.tunes_sum
        if self.one_kernel and spec.alphas is not None and len(spec.alphas) == 1:
            self.fixed = key_of(first.other), float(spec.alphas[0])

    def problem(self, parameters: Parameters, sample: Tuner | None = None) -> Problem:
        """The decomposition for these kernel parameters, of all rows or of a sample.

        The latest ones are kept while they fit into the budget.
        """
        tuner = self.tuner if sample is None else sample
        key = key_of(parameters), None if tuner.drawn is None else tuner.drawn.key
        if key not in self.problems:
            data = tuner.data
            size = 8 * data.X.shape[0] ** 2
            while self.problems and self._held() + size > self.max_bytes:
                self.problems.pop(next(iter(self.problems)))
            if self.setup.training.precomputed:  # a decomposition overwrites it
                copied = namespace(data.X).asarray(data.X, copy=True)
                tuner = replace(tuner, data=replace(data, X=copied))
            mu = None if self.fixed is None else self.fixed[1]
            self.problems[key] = tuner.problem(parameters, mu)
        return self.problems[key]

    def _held(self) -> int:
        return sum(8 * problem.n_samples**2 for problem in self.problems.values())

    def _made(self, tuner: Tuner, parameters: Parameters) -> Problem:
        """The shared decomposition with the labels of a tuner."""
        return self.problem(parameters, tuner).with_targets(tuner.data.targets)

    def choices(self, values: np.ndarray, Y: Array) -> list[Choice]:
        """What the search chooses for each labeling: labels (B, n) or numbers (B, t, n), and their
        kept targets (B, t, n).
        """
        if self.fixed is not None:
            return [self.fixed] * len(values)
        return Choices(self.tuner, self.problem, values, Y).all()

    def predicted(self, choice: Choice, Y: Array) -> tuple[Array, Array, Array | None]:
        """Targets (B, t, m) that a choice predicts for the test rows, from kept targets Y (B, t,
        n); the size (B, t) of what they are summed from; and the residual scatter (B, t, t) where
        the readout needs it.
        """
        xp, (B, t, n) = namespace(Y), Y.shape
        problem, mu = self.problem(dict(choice[0])), choice[1]
        problem = problem.with_targets(xp.reshape(Y, (B * t, n)).T)
        fitted = problem.fit(mu)
        model = problem.solution(fitted, mu)
        P, size = model.sized_values(problem.kernel, self.X_test, problem.X, self.C_test)
        E = None
        if self.readout.needs_scatter:
            own, rest = (xp.reshape(A.T, (B, t, n)) for A in (fitted.Y, fitted.residual))
            E = own @ xp.matrix_transpose(rest)
        P = xp.reshape(P.T, (B, t, -1))
        largest = size_of_targets(
            P[:, None, :, :], None if self.readout.n_classes else Y[:, None, :, :]
        )
        unit = largest[:, 0, :] + TERMS * xp.reshape(size, (B, t))
        return P, unit, E


class PlacementMaps(ABC):
    """Fold maps that take the labelings of one placement at a time."""

    @abstractmethod
    def at(self, placement: Placement, values: Array, sizes: np.ndarray | None) -> list[Outputs]:
        """Outputs of labelings with these folds."""

    def outputs(
        self, placements: Sequence[Placement], values: Array, sizes: np.ndarray | None
    ) -> list[Outputs]:
        """Outputs by run of folds for labels (B, n) or numbers (B, t, n), given the class sizes
        (B, k, c) of their training sets; placements may come in any order.
        """
        numbers = np.array([placement.number for placement in placements])
        members = [np.flatnonzero(numbers == number) for number in dict.fromkeys(numbers.tolist())]
        parts = [
            self.at(placements[own[0]], take(values, own), None if sizes is None else sizes[own])
            for own in members
        ]
        order = np.argsort(np.concatenate(members))
        return [joined(same, order) for same in zip(*parts, strict=True)]


class PerFoldMaps(PlacementMaps):
    """One decomposition for each training set, of the observed folds and of others in turn."""

    route = "per-fold"
    like = np.empty(0)  # labels are looked at one by one, on the host

    def __init__(
        self,
        question: Question,
        weights: np.ndarray | None,
        max_bytes: int,
        groups: np.ndarray | None = None,
    ) -> None:
        """`groups` are those of the estimator's own splitter."""
        self.question, self.weights, self.max_bytes = question, weights, max_bytes
        self.groups = groups
        self.shared = FoldContext(question.estimator, question.X, question.y)
        self.shared.confounds = question.confounds
        self._latest = question.observed  # the placement whose training sets are kept
        self._made = {0: self._make_fold(*question.splits[0])}
        self.readout, self.one_kernel = self._made[0].readout, self._made[0].one_kernel

    def block_size(self, placement: Placement) -> int:
        """Labelings that travel together.

        As many as the budget allows, since every block may decompose the training sets again.
        """
        each = 8 * self.question.n_samples * (6 * self.readout.n_targets + 4)
        return max(1, self.max_bytes // each)

    def _make_fold(self, train: np.ndarray, test: np.ndarray) -> TrainedFold:
        """Steps fitted, rows validated.

        The labels given are placeholders: nothing here looks at them.
        """
        estimator, classes = clone(self.question.estimator), self.question.classes
        X_train, X_test = self.shared.rows(train, train), self.shared.rows(test, train)
        model = final_step(estimator)
        if model is not estimator:
            steps = estimator[:-1]
            X_train, X_test = steps.fit_transform(X_train), steps.transform(X_test)
        y = self.question.y[train]
        if classes is not None:
            y = classes[np.arange(len(train)) % len(classes)]
        weights = None if self.weights is None else self.weights[train]
        of_train, of_test = (self.shared.confounds_of(rows) for rows in (train, test))
        groups = None if self.groups is None else self.groups[train]
        setup = setup_of(model, X_train, y, weights, groups, of_train)
        X_test, _ = check_new_data(model, X_test, "predict", setup.training.X)
        C = new_confounds(model, of_test, len(test), "predict")
        C_test = None if C is None else asarray_like(C, dense_like(X_test))
        inner = folds_of(model.cv, setup.training, classifier=classes is not None)
        return TrainedFold(setup, X_test, self.max_bytes, C_test, inner)

    def at(
        self, placement: Placement, values: np.ndarray, sizes: np.ndarray | None
    ) -> list[Outputs]:
        """Outputs by fold of labelings with these folds, whose training sets are kept."""
        if placement.number != self._latest.number:
            self._latest, self._made = placement, {}
        outputs = []
        for number, (train, test) in enumerate(placement.splits):
            fold_sizes = None if sizes is None else sizes[:, number : number + 1, :]
            read, accuracy = self._outputs(number, values[..., train], fold_sizes)
            outputs.append(Outputs(read, values[..., test][:, None, ...], accuracy))
        return outputs

    def _outputs(
        self, number: int, values: np.ndarray, sizes: np.ndarray | None
    ) -> tuple[Array, Array]:
        """Outputs of a fold's models, and their accuracy."""
        splits = self._latest.splits
        fold = self._made.pop(number, None) or self._make_fold(*splits[number])
        size = 24 * fold.setup.data.X.shape[0] ** 2 * len(splits)
        if fold.one_kernel and size <= self.max_bytes:
            self._made[number] = fold
        like = dense_like(fold.setup.data.X)
        xp = namespace(like)
        Y = kept_targets(self.readout, values, like)
        own = None if sizes is None else asarray_like(sizes, like)
        places: dict[Choice, list[int]] = {}
        for place, choice in enumerate(fold.choices(values, Y)):
            places.setdefault(choice, []).append(place)
        pieces = []
        for choice, members in places.items():
            some = index_like(np.array(members), Y)
            of_some = None if own is None else xp.take(own, some, axis=0)
            pieces.append(self._read(*fold.predicted(choice, xp.take(Y, some, axis=0)), of_some))
        order = index_like(np.argsort(np.concatenate(list(places.values()))), like)
        outputs, accuracy = (
            xp.take(xp.concat(parts, axis=0), order, axis=0) for parts in zip(*pieces, strict=True)
        )
        return outputs, accuracy

    def _read(
        self, P: Array, unit: Array, E: Array | None, sizes: Array | None
    ) -> tuple[Array, Array]:
        """Outputs of one fold's models from predicted targets (B, t, m), and their accuracy."""
        evidence = None if E is None else Evidence(E[:, None, :, :], sizes)
        definite = self.readout.n_classes < 3  # else an indefinite kernel makes other axes
        read, size = self.readout.read_kept(P[:, None, :, :], unit[:, None, :], evidence, definite)
        return read, ROUNDING * size


def joined(parts: Sequence[Outputs], order: np.ndarray) -> Outputs:
    """Outputs of the same fold for several sets of labelings, as one in another order."""
    if len(parts) == 1:
        return parts[0]
    arrays = [[getattr(part, name) for part in parts] for name in ("values", "truth", "accuracy")]
    return Outputs(*(take(namespace(each[0]).concat(each, axis=0), order) for each in arrays))
