r"""Prediction sets of classes: all labels that conform to the rows.

The nonconformity score of a label at a row is E(x, y) = (best score of another class) - (score of
y). With models without row i (or its fold or group), a label y belongs to the set of a new row x if

    Σ_i mass_i [ E₋ᵢ(x_i, y_i) < E₋ᵢ(x, y) ] < confidence          jackknife+, CV+,

which covers at least 1 - 2α of exchangeable new rows (Romano, Sesia and Candès 2020). With the
smallest E over all models instead of E₋ᵢ(x, y), it covers at least 1 - α ("jackknife-minmax").
"full" adds the new row to the fit with each label in turn, and compares the deleted scores of all
n + 1 rows:

    1 + #{i: E_i(y) ≥ E(x, y)} > α (n + 1),

which covers at least 1 - α. Sets *for each class* count, in all of these, only the rows of y's own
class (Mondrian conformal prediction, Vovk, Gammerman and Shafer 2005, section 4.5): rows of a class
are exchangeable with a new row of it, so every guarantee holds for each class. None of them needs a
refit.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.holdout import Lines, Path, Smoothing, deleted_lines, scatter_with
from ..core.lda import Rule
from ..core.readout import Evidence, Readout
from ..tuning.problem import Problem
from .intervals import needed
from .left_out import ROUNDING, LeftOut, mass_of


def oddities(outputs: np.ndarray) -> np.ndarray:
    """E (…, c) of every class from outputs (…, o): decisions of two classes, or class scores."""
    if outputs.shape[-1] == 1:
        return np.concatenate([outputs, -outputs], axis=-1)
    best = np.sort(outputs, axis=-1)[..., -2:]
    rival = np.where(outputs == best[..., 1:], best[..., :1], best[..., 1:])
    return np.asarray(rival - outputs)


def own_oddity(outputs: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """E (…, n) of the classes that rows have."""
    every = oddities(outputs)
    return np.asarray(np.take_along_axis(every, codes[..., None], axis=-1)[..., 0])


def mass_of_classes(codes: np.ndarray, counted: np.ndarray, n_classes: int) -> np.ndarray:
    """The mass (n, c) of every row where its own class is the candidate, zero elsewhere."""
    mass = np.zeros((len(codes), n_classes))
    for code in range(n_classes):
        mass[codes == code, code] = mass_of(counted[codes == code])
    return mass


class LeftOutSets:
    """Sets from the models without each row, fold or group; `mass` (n, c) is what every row counts
    for each candidate, nothing where it is not compared with that.
    """

    def __init__(
        self, left: LeftOut, readout: Readout, codes: np.ndarray, mass: np.ndarray
    ) -> None:
        self.left, self.readout, self.mass = left, readout, mass
        self.rules = readout.rule_from(left.evidence)
        own = left.problem.unscale(left.problem.projected.Y - left.held_out.residual)
        rules = None if self.rules is None else self.rules.take(left.owner)
        outputs = to_numpy(readout.read(own[:, None, :], rules))[:, 0, :]
        self.own = own_oddity(outputs, codes)

    def members(
        self, confidence: float, minmax: bool, smoothing: Smoothing, f: Array
    ) -> np.ndarray:
        """Membership (m, c) of every class at new rows with predicted targets f (m, t)."""
        values = namespace(f).permute_dims(self.left.values(smoothing, f), (1, 0, 2))
        outputs = to_numpy(self.readout.read(values, self.rules))
        every = np.moveaxis(oddities(outputs), 0, 1)[:, self.left.owner]  # (m, n, c)
        if minmax:
            every = np.where(self.mass > 0, every, np.inf).min(axis=1, keepdims=True)
        accuracy = self.left.problem.smoother.accuracy(self.left.mu)
        room = accuracy * max(np.abs(self.own).max(), np.abs(every).max())
        below = self.own[None, :, None] < every - room
        mass = np.einsum("mnc,nc->mc", below, self.mass)
        return np.asarray(mass < confidence - ROUNDING)


class FullSets:
    """Sets from the fits of n + 1 rows, for the function norm; `compared` (n, c) are the rows that
    each candidate is compared with.
    """

    def __init__(
        self,
        problem: Problem,
        path: Path,
        readout: Readout,
        codes: np.ndarray,
        compared: np.ndarray,
    ) -> None:
        self.problem, self.readout, self.codes = problem, readout, codes
        self.compared = compared
        self.one_minus_h = path.one_minus_h[0, :]
        self.accuracy = problem.smoother.accuracy(float(path.mus[0]))
        self.fitted = problem.smoother.fitted(problem.projected, path)
        self.rule = readout.rule_from(partial(problem.evidence, self.fitted))
        self.labels = readout.targets(np.arange(readout.n_classes))

    def members(self, confidence: float, smoothing: Smoothing, f: Array) -> np.ndarray:
        """Membership (m, c) of every class."""
        own = oddities(to_numpy(self.readout.read(f, self.rule)))
        scale = self.problem.row_scale
        lines = deleted_lines(smoothing, self.fitted.residual, self.one_minus_h, scale)
        members = []
        for code, target in enumerate(self.labels):
            delta = asarray_like(target[None, :], f) - f
            joined = to_numpy(self._joined(smoothing, lines, delta, code))
            others = own_oddity(joined, np.broadcast_to(self.codes, joined.shape[:2]))
            room = self.accuracy * max(np.abs(others).max(), np.abs(own).max())
            compared = self.compared[:, code]
            count = np.sum((others >= own[:, code : code + 1] - room) & compared, axis=1)
            members.append(count >= needed(confidence, int(compared.sum())))
        return np.column_stack(members)

    def _joined(self, smoothing: Smoothing, lines: Lines, delta: Array, code: int) -> Array:
        """Outputs (m, n, o) of every row without itself, with the new row added as `code`."""
        e = lines.at_zero + lines.slope[:, :, None] * delta[:, None, :]
        scatter = self.readout.needs_scatter
        rules = self._rules(smoothing, e, delta, code) if scatter else None
        values = (self.problem.targets - e)[:, :, None, :]
        return self.readout.read(values, rules)[:, :, 0, :]

    def _rules(self, smoothing: Smoothing, e: Array, delta: Array, code: int) -> Rule | None:
        """The rules (m, n) of the joined rows without each row: E₊ - r₊ᵢ eᵢᵀ, with the sizes
        reduced.
        """
        problem, tau = self.problem, smoothing.excess
        assert tau is not None
        scaled = e if problem.row_scale is None else e * problem.row_scale
        joined = scatter_with(problem.scatter(self.fitted), delta, tau)
        # r₊ = r - h δ/(1 + τ), for all rows including the new one
        change = delta / (1.0 + tau)[:, None]
        r = self.fitted.residual - smoothing.to_targets[:, :, None] * change[:, None, :]
        E = joined[:, None, :, :] - r[..., :, None] * scaled[..., None, :]
        joins = asarray_like(self.labels[code], e)
        sizes = problem.sizes + joins - problem.row_weights * problem.targets
        return self.readout.rule(Evidence(E, sizes + namespace(e).zeros_like(e)))
