r"""A metric learned from the fitted model: rounds of average gradient outer products.

The kernel uses distances ‖R(x - x')‖ with M = RᵀR. A model f = Σ_j α_j k(·, x_j) has the
gradient

    ∇f(x) = M Σ_j α_j w(x, x_j) (x - x_j),      w of `radial.py`

and the mean of ∇f ∇fᵀ over rows and outputs, G, shows along which directions f varies. A round sets
M ← (p G/tr G + ε)^power, or only its diagonal if requested, and fits again.

With landmarks, the sum over j runs over these. All rounds and folds use the same landmarks: f is a
sum of kernels at these points, whatever the metric.

M depends on the labels of all training rows, so a later leave-one-out would be optimistic. The
number of rounds, the power, the form, and whether to use a metric at all are therefore chosen with
folds in which each metric is learned only on the training rows, including gamma and alpha. A metric
is kept if it lowers the criterion, and also the squared error of the targets by more than two
standard errors of the paired differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.arrays import Array, NotPositiveDefiniteError, asarray_like, take, to_numpy
from ..core.criteria import HeldOutScores
from ..core.doubt import doubts_held_back
from ..core.rows import block_rows, on_host
from ..core.spectrum import row_blocks
from ..distances import DistancesTo
from ..kernels import Kernel, MetricKernels, central_gamma, projected, projection_of
from ..radial import RADIAL
from .best import Evaluated
from .criterion import Criterion
from .lattice import GammaLattice
from .outputs import rule_of_fit
from .problem import Problem
from .sample import Sample
from .search import Branch, Search, Trial
from .tuner import Tuned, Tuner
from .walk import search

Split = tuple[np.ndarray, np.ndarray]  # numbers of rows that train, and of those that are tested
ROUNDS = 3
POWERS = (0.5, 1.0)
RIDGE = 1e-3  # ε: no direction is lost for good
STANDARD_ERRORS = 2.0  # of the gain on unseen rows
REACH = 2  # powers of two of gamma around where it was before a round


@dataclass(frozen=True)
class Form:
    """How a metric is learned; without rounds, none is."""

    diagonal: bool = False
    power: float = 1.0
    rounds: int = 0


def forms_of(option: str) -> list[Form]:
    """The forms that an option stands for: "full", "diagonal", or "learn" for both."""
    kinds = {"full": (False,), "diagonal": (True,), "learn": (False, True)}[option]
    return [
        Form(diagonal, power, rounds)
        for diagonal in kinds
        for power in POWERS
        for rounds in range(1, ROUNDS + 1)
    ]


@dataclass(frozen=True)
class Judged:
    """What the folds say: the form that is kept (None: no metric), the losses of all forms, the
    gain in squared error of the best one with its standard error, and the metrics of the kept form,
    each with the rows that it has seen and those that it has not.
    """

    form: Form | None
    losses: dict[str, float]
    gain: float
    standard_error: float
    loss: float
    metrics: list[tuple[np.ndarray, Split]]

    @property
    def record(self) -> dict[str, Any]:
        kept = "none" if self.form is None else _name(self.form)
        errors = {"gain": self.gain, "standard_error": self.standard_error}
        return {"kept": kept, "losses": self.losses, **errors}


def _name(form: Form) -> str:
    if not form.rounds:
        return "none"
    kind = "diagonal" if form.diagonal else "full"
    return f"{kind}, power {form.power:g}, {form.rounds} round{'s' * (form.rounds > 1)}"


@dataclass(frozen=True)
class _Said:
    """What a model says of other rows: predicted targets (k, t), and class scores with separations
    where there are classes; and the metric that it goes by.
    """

    targets: np.ndarray
    classes: Any
    metric: np.ndarray | None


# ---- one metric ----------------------------------------------------------------------------------


def outer_products(
    kernel: Kernel, X: Any, points: Any, dual_coef: Array, weights: np.ndarray | None
) -> np.ndarray:
    """Σ ∇f ∇fᵀ over rows and outputs (p, p), weighted by the rows, on the host.

    `points` are where the model has its coefficients (m, t): all rows, or landmarks. O(n m p) time,
    a block of rows at a time.
    """
    radial, gamma = RADIAL[str(kernel.function)], float(kernel.parameters["gamma"])
    R = kernel.projection
    P = projected(points, R)
    distances, P = DistancesTo(radial.distance, P), _dense(P)
    w = np.ones(X.shape[0]) if weights is None else weights / weights.mean()
    total = np.zeros((P.shape[1], P.shape[1]))
    for rows in row_blocks(X.shape[0], block_rows(int(P.shape[0]), host=on_host(X))):
        Z = projected(X[rows], R)
        W = radial.weight(gamma * distances(Z), gamma)
        Z, root_w = _dense(Z), asarray_like(np.sqrt(w[rows, None]), W)
        for output in range(dual_coef.shape[1]):
            alpha = dual_coef[:, output : output + 1]
            gradient = root_w * (Z * (W @ alpha) - W @ (alpha * P))
            total += to_numpy(gradient.T @ gradient)
    root = np.eye(len(total)) if R is None else to_numpy(R)
    root = np.diag(root) if root.ndim == 1 else root
    return np.asarray(root @ total @ root.T)


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


def metric_of(G: np.ndarray, form: Form) -> np.ndarray:
    """(p G/tr G + ε)^power, (p,) where it is diagonal; the identity where f does not vary."""
    p, size = len(G), float(np.trace(G))
    if form.diagonal:
        return (np.diag(G) * (p / size if size > 0 else 0.0) + RIDGE) ** form.power
    values, vectors = np.linalg.eigh(G * (p / size) if size > 0 else np.eye(p))
    return np.asarray((vectors * (np.maximum(values, 0.0) + RIDGE) ** form.power) @ vectors.T)


@dataclass(frozen=True)
class _Model:
    """A model after some rounds: its tuner, with the metric, its problem and what was chosen."""

    tuner: Tuner
    problem: Problem
    trial: Trial
    metric: np.ndarray | None = None

    def after(self, form: Form) -> _Model:
        """One round on."""
        data = self.tuner.data
        alpha = self.trial.alpha
        solution = self.problem.solution(self.problem.fit(alpha), alpha)
        G = outer_products(
            self.problem.kernel, data.X, self.problem.X, solution.dual_coef, data.weights
        )
        metric = metric_of(G, form)
        spec = replace(self.tuner.specification, projection=projection_of(metric, data.X))
        tuner = replace(self.tuner, specification=spec)
        best: list[Evaluated] = []

        def evaluate(several: Sequence[dict[str, Any]]) -> list[Trial]:
            trials = []
            for parameters in several:
                found = tuner.evaluate(parameters)
                trials.append(found.trial)
                if not best or Search([best[0].trial, found.trial]).winner is found.trial:
                    best[:] = [found]
            return trials

        search(evaluate, [self._branch(tuner)])
        assert best[0].problem is not None
        return _Model(tuner, best[0].problem, best[0].trial, metric)

    def _branch(self, tuner: Tuner) -> Branch:
        """The gammas around the last one, moved as the size of the distances has."""
        other = {name: v for name, v in self.trial.parameters.items() if name != "gamma"}
        gamma = self.trial.parameters.get("gamma")
        if gamma is None:
            return Branch(other, None)
        family, data = str(self.problem.kernel.function), self.tuner.data
        before, now = (
            central_gamma(family, projected(data.X, t.specification.projection), data.weights)
            for t in (self.tuner, tuner)
        )
        return Branch(other, GammaLattice(round(np.log2(gamma * now / before)), REACH))

    def says(self, X: Any) -> _Said:
        alpha = self.trial.alpha
        solution = self.problem.solution(self.problem.fit(alpha), alpha)
        values = solution.values(self.problem.kernel, X, self.problem.X)
        classes = self.tuner.class_scores(self.problem, np.array([alpha]), values[None, ...])
        classes = None if classes is None else [to_numpy(part)[0] for part in classes]
        return _Said(to_numpy(values), classes, self.metric)


def learned(tuner: Tuner, tuned: Tuned, form: Form) -> tuple[Tuner, Tuned, np.ndarray]:
    """The model of all rows with the metric of a form: its tuner, what was tuned, the metric."""
    model = _start(tuner, tuned)
    for _ in range(form.rounds):
        model = model.after(form)
    assert model.metric is not None
    found = Search([*tuned.found.trials, model.trial])
    return model.tuner, Tuned(found, model.trial, model.problem), model.metric


def _start(tuner: Tuner, tuned: Tuned) -> _Model:
    """The best model whose kernel can have a metric."""
    spec = tuner.specification
    if not spec.chooses_kernel or tuned.winner.parameters["kernel"] in MetricKernels:
        return _Model(tuner, tuned.problem, tuned.winner)
    trials = [t for t in tuned.found.trials if t.parameters.get("kernel") in MetricKernels]
    winner = Search(trials).winner
    return _Model(tuner, tuner.problem(winner.parameters), winner)


def held_out_outputs(tuner: Tuner, judged: Judged, trial: Trial) -> np.ndarray:
    """Outputs (n, o) of every row by a refit, at the gamma and alpha of all rows, with the metric
    that was learned without the row.
    """
    alpha, parts, rows = trial.alpha, [], []
    for metric, (train, test) in judged.metrics:
        part = _of_rows(tuner, train)
        spec = replace(part.specification, projection=projection_of(metric, part.data.X))
        problem = replace(part, specification=spec).problem(trial.parameters, alpha)
        fitted, readout = problem.fit(alpha), part.readout
        X = take(tuner.data.X, test)
        values = problem.solution(fitted, alpha).values(problem.kernel, X, problem.X)
        parts.append(to_numpy(readout.read(values, rule_of_fit(problem, readout, fitted))))
        rows.append(test)
    order = np.argsort(np.concatenate(rows))
    return np.concatenate(parts)[order]


# ---- folds ---------------------------------------------------------------------------------------


def judge(tuner: Tuner, forms: Sequence[Form], splits: Sequence[Split]) -> Judged | None:
    """Every form on the same folds, each learned on the training rows; None if a training set
    has too few rows for a model.
    """
    asked = [Form(), *forms]
    parts: list[list[_Said]] = []
    for train, test in splits:
        if not _regular(tuner, train):
            return None
        with doubts_held_back():
            try:
                said = _said(_of_rows(tuner, train), asked, take(tuner.data.X, test))
            except NotPositiveDefiniteError:
                return None
        parts.append([said[form] for form in asked])
    return _compared(tuner, asked, parts, splits)


def _regular(tuner: Tuner, train: np.ndarray) -> bool:
    data, landmarks = tuner.data, tuner.data.landmarks
    dropping = tuner.specification.dropping
    if landmarks is not None and not len(landmarks.among(train, data.X.shape[0], dropping).rows):
        return False
    if data.codes is None:
        return len(train) > 2
    w = None if data.weights is None else data.weights[train]
    sizes = np.bincount(data.codes[train], weights=w, minlength=tuner.readout.n_classes)
    return bool(tuner.readout.is_regular(sizes))


def _of_rows(tuner: Tuner, rows: np.ndarray) -> Tuner:
    """The same on some of the rows, with the landmarks of all; without those that leave with their
    rows, where they do.
    """
    data, n = tuner.data, tuner.data.X.shape[0]
    deletions = Sample(rows, b"").deletions(tuner.deletions, n)
    part = data.rows(rows)
    if data.landmarks is not None:
        kept = data.landmarks.among(rows, n, tuner.specification.dropping)
        part = replace(part, landmarks=kept)
    return replace(tuner, data=part, deletions=deletions)


def _said(tuner: Tuner, asked: Sequence[Form], X: Any) -> dict[Form, _Said]:
    """What the models of one training set say of other rows, by form."""
    tuned = tuner.search()
    plain = _Model(tuner, tuned.problem, tuned.winner)
    said, start = {Form(): plain.says(X)}, _start(tuner, tuned)
    for diagonal, power in dict.fromkeys((f.diagonal, f.power) for f in asked if f.rounds):
        model = start
        for done in range(1, max(f.rounds for f in asked) + 1):
            form = Form(diagonal, power, done)
            model = model.after(form)
            if form in asked:
                said[form] = model.says(X)
    return said


def _compared(
    tuner: Tuner,
    asked: Sequence[Form],
    parts: Sequence[Sequence[_Said]],
    splits: Sequence[Split],
) -> Judged:
    tests = [test for _, test in splits]
    data, criterion = tuner.data, tuner.specification.criterion
    if criterion.of_the_fit:
        criterion = Criterion("squared_error", 1.0, True)
    rows = np.concatenate(tests)
    weights = np.ones(len(rows)) if data.weights is None else data.weights[rows]

    every = range(len(asked))
    predicted = np.stack([np.concatenate([part[f].targets for part in parts]) for f in every])
    decision = separation = None
    if data.codes is not None:
        decision = np.stack([np.concatenate([part[f].classes[0] for part in parts]) for f in every])
        separation = np.stack([np.mean([part[f].classes[1] for part in parts], 0) for f in every])
    scores = HeldOutScores(
        predicted,
        data.targets[rows],
        weights,
        np.repeat(np.arange(len(tests)), [len(test) for test in tests]),
        decision,
        None if data.codes is None else data.codes[rows],
        separation,
        data.y[rows],
        data.classes,
    )
    losses = criterion.losses(scores)
    best = int(np.argmin(losses[1:])) + 1
    squares = np.mean((predicted - data.targets[rows]) ** 2, axis=2)
    gains = squares[0] - squares[best]
    gain = float(np.average(gains, weights=weights))
    error = float(np.sqrt(np.sum(weights**2 * (gains - gain) ** 2)) / weights.sum())
    pays = losses[best] < losses[0] and gain > STANDARD_ERRORS * error
    named = {_name(form): float(loss) for form, loss in zip(asked, losses, strict=True)}
    metrics = [(part[best].metric, split) for part, split in zip(parts, splits, strict=True)]
    form, loss = (asked[best], losses[best]) if pays else (None, losses[0])
    return Judged(form, named, gain, error, float(loss), metrics if pays else [])  # type: ignore[arg-type]
