"""What tuning chooses on one training set for each of many labelings.

Every labeling has a search of its own, with the trials and in the order that a fit would make. The
trials themselves are shared: a kernel that one search asks for is tried for all labelings, whose
targets are the columns of the same products. Where the criterion cannot judge many labelings at
once (a user's function, ranks), a search makes its own trials on the decompositions that all share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import scipy.special

from ..core.arrays import Array, index_like, namespace, to_numpy
from ..core.columns import columns_at_once
from ..core.criteria import BY_TARGET, LOSSES, HeldOutScores, blended, log_loss_of_two
from ..core.readout import Evidence
from ..core.spectrum import row_blocks
from ..tuning.criterion import AUTO, BOTH
from ..tuning.gamma_search import search
from ..tuning.many_targets import HoldOut, held_out_by_formulas, held_out_by_maps, losses_of_targets
from ..tuning.problem import Problem
from ..tuning.trial_runner import TrialRunner
from ..tuning.trials import Parameters, Trial
from ..tuning.tuner import Tuner

Choice = tuple[tuple[tuple[str, Any], ...], float]  # chosen parameters (and penalty), and alpha
OF_CLASSES = ("squared_error", "log_loss", "brier", BOTH)  # judged for many labelings at once
ELEMENTS = 1 << 17  # held-out values that are looked at together: a megabyte, for the cache


def key_of(parameters: Parameters) -> tuple[tuple[str, Any], ...]:
    """Parameters as what they can be looked up by."""
    return tuple(sorted(parameters.items()))


def judges_together(model: Any) -> bool:
    """Whether the search of a model judges many labelings at once."""
    known = BY_TARGET if model.multi_output else (AUTO, *OF_CLASSES)
    return bool(model.pooled) and isinstance(model.criterion, str) and model.criterion in known


@dataclass
class Choices:
    """The searches of many labelings on one training set: labels `values` (B, n), or numbers
    (B, t, n) with their targets Y (B, t, n) where those live.

    `problem` has the decomposition for some parameters, and of a `sample` where one is given.
    """

    tuner: Tuner
    problem: Callable[..., Problem]
    values: np.ndarray
    Y: Array
    tried: dict[Any, Trial] = field(default_factory=dict)  # with losses (m, B) of all labelings

    def all(self) -> list[Choice]:
        """The choice of each labeling."""
        branches = self.tuner.specification.branches(self.tuner.data)
        if not self._together:
            winners = [TrialRunner(self._relabelled(y)).trials().winner for y in self.values]
        else:
            searches = (partial(self._attempt, number) for number in range(len(self.values)))
            staged = self._sampled is not None
            winners = [search(attempt, branches, staged).winner for attempt in searches]
        return [(key_of(winner.parameters), winner.alpha) for winner in winners]

    @property
    def _together(self) -> bool:
        """Whether one pass judges all labelings, on a sample of the same rows too."""
        spec, numbers = self.tuner.specification, self.tuner.data.codes is None
        if spec.tunes_sum or spec.criterion.name not in (BY_TARGET if numbers else OF_CLASSES):
            return False
        return self.tuner.sample() is None or self._sampled is not None

    @cached_property
    def _sampled(self) -> Choices | None:
        """The same on the sample with which searches begin; None where there is none, or where
        labelings have samples of other rows.
        """
        if self.tuner.sample() is None:
            return None
        tuners = [self._relabelled(labels).sample() for labels in self.values]
        drawn = [tuner.drawn for tuner in tuners if tuner is not None and tuner.drawn is not None]
        first, rows = drawn[0], [sample.rows for sample in drawn]
        same = all(np.array_equal(own, first.rows) for own in rows)
        alike = all(sample.key == first.key for sample in drawn)  # rows that look the same
        if not (same or (alike and self.tuner.deletions is None)):
            return None
        xp = namespace(self.Y)
        parts = zip(self.values, self.Y, rows, strict=True)
        taken = [(y[..., own], xp.take(Y, index_like(own, Y), axis=1)) for y, Y, own in parts]
        values, targets = zip(*taken, strict=True)
        problem = partial(self.problem, sample=tuners[0])
        return Choices(cast(Tuner, tuners[0]), problem, np.stack(values), xp.stack(targets))

    def _relabelled(self, labels: np.ndarray) -> Tuner:
        """The tuner of one labeling."""
        data, targets = self.tuner.data, self.tuner.readout.targets
        if data.classes is None:
            y = labels[0] if len(labels) == 1 else labels.T
            return replace(self.tuner, data=data.relabelled(y, None, targets(y)))
        relabelled = data.relabelled(data.classes[labels], labels, targets(labels))
        return replace(self.tuner, data=relabelled)

    def _attempt(
        self,
        number: int,
        several: Sequence[Parameters],
        *,
        sample: bool = False,
        alpha: float | None = None,
    ) -> list[Trial]:
        """The trials of one labeling, on all rows or on the sample, at all alphas or at one."""
        of = self._sampled if sample and self._sampled is not None else self
        size = len(of.values[0].T) if sample else None
        trials = (of._of_all(parameters, alpha) for parameters in several)
        return [Trial(t.parameters, t.alphas, t.losses[:, number], size) for t in trials]

    def _of_all(self, parameters: Parameters, alpha: float | None) -> Trial:
        """A trial with the losses of all labelings."""
        one = alpha is not None and self.tuner.probes(parameters)
        key = key_of(parameters), alpha if one else None
        if key not in self.tried:
            problem = self.problem(parameters)
            alphas = np.array([alpha]) if one else self.tuner.alphas(problem)
            problem.check(alphas)
            of = self._of_numbers if self.tuner.data.codes is None else self._of_classes
            losses = of(problem, alphas)
            losses = np.where(np.isfinite(losses), losses, np.inf)
            self.tried[key] = Trial(parameters, alphas, losses)
        return self.tried[key]

    def _of_numbers(self, problem: Problem, alphas: np.ndarray) -> np.ndarray:
        """Losses (m, B): the mean over the targets of each labeling."""
        tuner, Y, xp = self.tuner, self.Y, namespace(self.Y)
        B, t, n = Y.shape
        of = problem, tuner.deletions, alphas
        hold_out: HoldOut = partial(held_out_by_formulas, *of)
        if problem.smoother.maps_pay(B * t, tuner.deletions is not None):
            hold_out = held_out_by_maps(*of, xp.float64)
        columns, criterion = xp.reshape(Y, (B * t, n)).T, tuner.specification.criterion
        losses = [
            losses_of_targets(problem, criterion, tuner.data.weights, hold_out, columns[:, block])
            for block in row_blocks(B * t, columns_at_once(2 * n * (1 + len(alphas)), Y))
        ]
        joined = np.concatenate(losses, axis=1)
        finite = np.where(np.isfinite(joined), joined, np.inf)
        return np.asarray(finite.reshape(-1, B, t).mean(axis=2))

    def _of_classes(self, problem: Problem, alphas: np.ndarray) -> np.ndarray:
        """Losses (m, B), a few labelings and alphas at a time."""
        B, n = self.values.shape
        columns = n * self.tuner.readout.n_targets
        several = max(1, min(len(alphas), ELEMENTS // (64 * columns)))
        labellings = list(row_blocks(B, max(1, ELEMENTS // (several * columns))))
        rows = []
        for part in row_blocks(len(alphas), several):
            of_part = [self._of_block(problem, alphas[part], self.values[b]) for b in labellings]
            rows.append(np.concatenate(of_part, axis=1))
        return np.concatenate(rows)

    def _of_block(self, problem: Problem, alphas: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Losses (m, b) of labels (b, n)."""
        readout, name = self.tuner.readout, self.tuner.specification.criterion.given
        two = readout.n_classes == 2 and readout.n_kept == 1  # another column would follow
        targets = readout.kept_targets(codes) if two else readout.targets(codes).swapaxes(1, 2)
        P, evidence, rows = self._held_out(problem, alphas, targets, codes)
        weights = self.tuner.data.weights
        weights = np.ones(len(rows)) if weights is None else weights[rows]
        truth, labels = targets.swapaxes(1, 2)[:, rows], codes[:, rows]
        share = weights / weights.sum()
        squares = np.mean(share @ (truth - P) ** 2, axis=2)
        if name == "squared_error":
            return np.asarray(squares)
        loss = "log_loss" if name == BOTH else name
        if two:
            d = readout.read(P, readout.rule(evidence, definite=True))[..., 0]
            losses = _of_margins(np.where(labels == 1, d, -d), weights, loss)
        else:
            scores = readout.class_scores(P, evidence, None)
            assert scores is not None
            losses = _of_own_first(scores[0], labels, weights, loss)
        if name != BOTH:
            return losses
        spread = np.mean(share @ (truth - (share @ truth)[:, None, :]) ** 2, axis=1)
        shares = np.stack([(labels == j) @ share for j in range(readout.n_classes)])
        entropy = np.sum(scipy.special.entr(shares), axis=0)
        of_one = shares.max(axis=0) == 1.0  # a class alone leaves nothing to be a share of
        spread, entropy = (np.where(of_one, 1.0, of) for of in (spread, entropy))
        return blended(float(weights.sum()), squares / spread, losses / entropy)

    def _held_out(
        self, problem: Problem, alphas: np.ndarray, targets: np.ndarray, codes: np.ndarray
    ) -> tuple[np.ndarray, Evidence | None, np.ndarray]:
        """Held-out targets (m, b, k, t) of the k rows tested, what the readout knows of all rows
        that train, and which rows are tested.
        """
        readout, deletions, weights = (
            self.tuner.readout,
            self.tuner.deletions,
            self.tuner.data.weights,
        )
        b, t, n = targets.shape
        of_all = problem.with_targets(targets.reshape(b * t, n).T)
        path = of_all.path(alphas) if deletions is None or readout.needs_scatter else None
        P, rows, _ = of_all.held_out_targets(alphas, deletions, path)
        P = np.ascontiguousarray(to_numpy(P).reshape(-1, len(rows), b, t).transpose(0, 2, 1, 3))
        if path is None or not readout.needs_scatter:
            return P, None, rows
        r, Y = (to_numpy(A).reshape(-1, n, b, t) for A in (path.residual, of_all.projected.Y))
        E = np.einsum("mnbt,nbs->mbts", r, Y[0])
        counted = np.ones(n) if weights is None else weights
        sizes = np.stack([(codes == j) @ counted for j in range(readout.n_classes)], axis=1)
        return P, Evidence(E, np.broadcast_to(sizes, (*E.shape[:2], sizes.shape[1]))), rows


def _of_margins(margins: np.ndarray, weights: np.ndarray, name: str) -> np.ndarray:
    """Losses (m, b) of two classes from the margins (m, b, k) of the own one."""
    if name == "log_loss":
        flat = margins.reshape(-1, margins.shape[2])
        return log_loss_of_two(flat, weights).reshape(margins.shape[:2])
    return _of_own_first(np.stack([margins, 0.0 * margins], axis=3), None, weights, name)


def _of_own_first(
    scores: np.ndarray, labels: np.ndarray | None, weights: np.ndarray, name: str
) -> np.ndarray:
    """Losses (m, b) of class scores (m, b, k, c), for labels (b, k).

    These losses treat all classes alike: with the own class of every row as the first, all
    labelings are candidates for the same labels.
    """
    m, b, k, c = scores.shape
    if labels is not None:
        order = (labels[:, :, None] + np.arange(c)) % c
        scores = np.take_along_axis(scores, np.broadcast_to(order, scores.shape), axis=3)
    first, none = np.zeros(k, dtype=int), np.zeros((k, 0))
    flat = scores.reshape(m * b, k, c)
    held_out = HeldOutScores(flat[:, :, :0], none, weights, first, flat, first)
    return LOSSES[name](held_out).reshape(m, b)
