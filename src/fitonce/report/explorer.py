r"""What the explorer of a page needs: the decomposition of the training rows, packed, and a table
to check its arithmetic by.

The page recomputes, at any position of its sliders, the leave-one-out result of every row. With V,
λ of the rows and targets Y,

    I - H = V diag(g) Vᵀ + (what lies outside V),   g = μ/(λ + μ)            r = (I - H)Y,   o_i = (I - H)_ii,   ρ_i = r_i / o_i

(the dual norm has its own diagonals, see `core.smoother`). Two short forms keep the work per row at
c×c numbers. The residual scatter R = Yᵀ(I - H)Y of the remaining rows is

    function norm:  R_i = R - r_i r_iᵀ / o_i
    dual norm:      R_i = R - (d r rᵀ + b (α rᵀ + r αᵀ) - o α αᵀ) / (o d + b²)

and with class sizes ν and n = Σν, the LDA rule of the discriminant step needs no eigenproblem: for
indicators P of a row,

    Q = R + ννᵀ/n,      score_j = (n - c) [(Q⁻¹P)_j - (Σ_k P_k)/n - ½ (Q⁻¹_jj - 1/ν_j)] + log prior_j

because θ diag(1/(1-a²)) θᵀ = Q⁻¹ - 11ᵀ/n. `decisions` below is these lines in NumPy on the packed
numbers; the page has the same in JavaScript; `KernelModel` has them in their original form, and the
table says how far the packed numbers are from that.

Directions with |λ| far below the smallest μ of the slider are dropped: they count as λ = 0, which
changes I - H by at most the factor λ/(λ + μ). Each column of V is stored as 32-bit integers times a
step: half the size of float64, with an error of 2⁻³² of its largest entry.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.arrays import to_numpy
from ..core.smoother import DualNorm, HeldOut
from ..estimators import KernelFisherDiscriminant
from ..estimators.base import KernelModel
from ..estimators.problem import LandmarkProblem, Problem
from ..kernels import PARAMETERS

WIDTH_ENTRIES = (
    1_200_000  # of V: up to here a width is embedded whole; a page multiplies them at every move
)
CUT_SHARE = 0.6  # of all entries that a chosen width gets where it must be cut
# of a held-out value, relative to their spread: positions of the slider beyond are not offered
MOST_DEVIATION = 0.25
OCTAVES, STEPS = (
    10,
    4,
)  # the alpha slider: so many powers of two to either side of the choice, in so many steps each
WIDTH_REACH = 3  # the gamma slider: so many powers of two to either side
NEGLIGIBLE = 1e-13  # of the smallest mu: directions below are dropped without a trace
ONE_WIDTH_ABOVE = 3000  # rows: decompositions of other widths take too long
NO_EXPLORER_ABOVE = 20000  # rows
# n·c² above which the table has one entry per power of two; per four where n·c³ is a thousand times
# that
TABLE_EFFORT = 6000
PLANE_KERNELS = ("linear", "rbf", "poly", "polynomial", "laplacian", "cosine", "sigmoid")


@dataclass(frozen=True)
class Width:
    """One kernel of the strip: the packed decomposition and the table of errors."""

    factor: float
    gamma: float | None
    V: np.ndarray  # (n, r) as the page will see it
    packed: np.ndarray  # (n, r) int32
    step: np.ndarray  # (r,)
    eigenvalues: np.ndarray
    z: np.ndarray  # VᵀY
    rest: np.ndarray  # (n, t): what of Y lies outside V and Q₀
    outside: np.ndarray  # (n,): diagonal of the projection on what lies outside V and Q₀
    z0: np.ndarray  # VᵀQ₀, of the dual norm
    rest0: np.ndarray
    KQ0: np.ndarray
    expansion: (
        np.ndarray
    )  # (m, r): coefficients of the landmarks for each direction, where there are landmarks
    centre: np.ndarray  # (r,): what the bias loses for each direction
    dropped: float  # the largest |λ| dropped
    full_rank: int
    errors: np.ndarray
    deviations: np.ndarray


@dataclass(frozen=True)
class Explorer:
    """Everything of the explorer: targets, slider stops, widths."""

    kind: str  # "discriminant", "signs" or "regression"
    dual: bool
    Y: np.ndarray  # scaled targets (n, t)
    scale: np.ndarray | None
    weights: np.ndarray | None
    Q0: np.ndarray  # (n, u)
    codes: np.ndarray | None
    priors: np.ndarray | None
    alphas: np.ndarray
    chosen: int
    table: np.ndarray  # which alphas the table has
    widths: list[Width]
    intercept: str
    active: np.ndarray
    X: np.ndarray | None
    landmarks: np.ndarray | None
    mean_Y: np.ndarray
    kernel: str
    parameters: dict[str, float]

    @property
    def chosen_width(self) -> int:
        return int(np.argmin([abs(np.log2(width.factor)) for width in self.widths]))

    @property
    def n_samples(self) -> int:
        return len(self.Y)

    @property
    def truncated(self) -> bool:
        return any(width.dropped > NEGLIGIBLE * self.alphas[0] for width in self.widths)


def build_explorer(
    model: KernelModel, X: Any, y: Any, sample_weight: Any, entries: int
) -> Explorer | str:
    """The explorer of a fitted model, with at most `entries` numbers of V in all, or a sentence
    that says why there is none.

    Raises ValueError where X and y are not the rows that the model was fitted on.
    """
    n = len(y)
    kept = getattr(model, "_kept", None)
    if n > NO_EXPLORER_ABOVE:
        return (
            f"There is no explorer for more than {NO_EXPLORER_ABOVE:,} rows; this model has {n:,}."
        )
    if kept is None and n > ONE_WIDTH_ABOVE:
        return (
            "There is no explorer: a model read from a file would have to be decomposed again, "
            f"which takes long for {n:,} rows."
        )
    if kept is not None:
        _check_kept(kept, X, y)
    if sample_weight is None and kept is not None:
        sample_weight = kept.training.weights
    chosen = _refit(model, X, y, sample_weight, 1.0)
    _check_same(model, chosen)
    problem = chosen._kept.problem
    alphas, stop = _stops(model, problem)
    targets = to_numpy(problem.scaled_targets)
    t = max(targets.shape[1], 2)
    every = 4 * STEPS if n * t**3 > 1000 * TABLE_EFFORT else STEPS if n * t**2 > TABLE_EFFORT else 1
    table = np.flatnonzero((np.arange(len(alphas)) - stop) % every == 0)
    kind = (
        "regression"
        if model._multi_output
        else ("discriminant" if isinstance(model, KernelFisherDiscriminant) else "signs")
    )
    active = np.asarray(chosen._kept.training.active)
    codes = (
        None
        if model._multi_output
        else np.searchsorted(model.classes_, np.asarray(to_numpy(y))[active])
    )
    weights = (
        None if sample_weight is None else np.asarray(to_numpy(sample_weight), dtype=float)[active]
    )
    rows, points = _plane(model, X, problem, active)
    mean_Y = np.average(
        targets if problem.row_scale is None else targets / to_numpy(problem.row_scale),
        axis=0,
        weights=_row_weights(problem),
    )
    explorer = Explorer(
        kind=kind,
        dual=isinstance(problem.smoother, DualNorm),
        Y=targets,
        scale=None if problem.row_scale is None else to_numpy(problem.row_scale)[:, 0],
        weights=weights,
        Q0=to_numpy(problem.smoother.Q0),
        codes=codes,
        priors=None if getattr(model, "priors", None) is None else model._given_priors(),
        alphas=alphas,
        chosen=stop,
        table=table,
        widths=[],
        intercept="penalized"
        if problem.fit_intercept == "penalized"
        else "free"
        if problem.fit_intercept
        else "none",
        active=active,
        X=rows,
        landmarks=points,
        mean_Y=mean_Y,
        kernel=model.kernel if isinstance(model.kernel, str) else "callable",
        parameters={
            name: float(getattr(model, f"{name}_"))
            for name in ("degree", "coef0")
            if hasattr(model, f"{name}_")
        },
    )
    explorer.widths.extend(_strip(explorer, model, chosen, X, y, sample_weight, entries))
    explorer.widths.sort(key=lambda width: width.factor)
    return _where_it_holds(explorer)


def _where_it_holds(explorer: Explorer) -> Explorer | str:
    """Without the smallest alphas, where a decomposition that was cut is too far from the exact one
    to show anything.
    """
    width = explorer.widths[explorer.chosen_width]
    deviations = width.deviations
    own = float(deviations[explorer.table == explorer.chosen][0])
    if own > MOST_DEVIATION:
        return (
            f"There is no explorer: with {width.V.shape[1]:,} of {width.full_rank:,} directions, "
            "which fit into the page, held-out "
            f"values would be off by {own:.1g} of their spread. Allow a larger page "
            "(max_megabytes)."
        )
    poor = np.flatnonzero(deviations > MOST_DEVIATION)
    start = (
        0
        if len(poor) == 0
        else int(min(explorer.table[min(poor[-1] + 1, len(deviations) - 1)], explorer.chosen))
    )
    kept = explorer.table >= start
    widths = [
        replace(width, errors=width.errors[kept], deviations=width.deviations[kept])
        for width in explorer.widths
    ]
    return replace(
        explorer,
        alphas=explorer.alphas[start:],
        chosen=explorer.chosen - start,
        table=explorer.table[kept] - start,
        widths=widths,
    )


def _row_weights(problem: Problem) -> np.ndarray:
    return np.asarray(to_numpy(problem.row_weights)[:, 0])


def _plane(
    model: KernelModel, X: Any, problem: Problem, active: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The rows where they lie in a plane and the page knows the kernel, and the landmarks if there
    are any.
    """
    if (
        not isinstance(model.kernel, str)
        or model.kernel not in PLANE_KERNELS
        or getattr(X, "shape", (0, 0))[1] != 2
    ):
        return None, None
    rows = np.asarray(to_numpy(X.toarray() if hasattr(X, "toarray") else X), dtype=float)[active]
    if not isinstance(problem, LandmarkProblem):
        return rows, None
    return rows, np.asarray(
        to_numpy(problem.X.toarray() if hasattr(problem.X, "toarray") else problem.X)
    )


def _refit(model: KernelModel, X: Any, y: Any, sample_weight: Any, factor: float) -> Any:
    """The model at its chosen parameters with gamma times the factor, its decomposition kept.

    Leave-one-out, no calibration.
    """
    kept = getattr(model, "_kept", None)
    dropping = getattr(model, "shared_landmarks", False) == "drop"
    if factor == 1.0 and kept is not None and kept.folds is None and not dropping:
        return model
    fixed: dict[str, Any] = {
        "alpha": model.alpha_,
        "penalty": model.penalty_,
        "refine": False,
        "cv": None,
    }
    fixed |= {
        name: getattr(model, f"{name}_")
        for name in PARAMETERS.get(model.kernel, ())
        if isinstance(model.kernel, str)
    }
    if "gamma" in fixed:
        fixed["gamma"] = fixed["gamma"] * factor
    if (
        "landmarks" in model.get_params(deep=False)
        and getattr(model, "landmarks_", None) is not None
    ):
        fixed |= {"landmarks": model.landmarks_, "shared_landmarks": True}
    if "calibration" in model.get_params(deep=False):
        fixed["calibration"] = None
    return clone(model).set_params(**fixed).fit(X, y, sample_weight=sample_weight)


def _check_same(model: KernelModel, refitted: Any) -> None:
    ours, theirs = to_numpy(model.dual_coef_), to_numpy(refitted.dual_coef_)
    size = np.abs(ours).max() if ours.size else 0.0
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=1e-3, atol=1e-4 * size):
        raise ValueError(
            "X, y (and sample_weight) must be what the model was fitted on, but fitting the "
            "model's own settings to them gives another "
            "model: a report explains the training rows. Pass the same rows in the same order, or "
            "fit the model to these."
        )


def _check_kept(kept: Any, X: Any, y: Any) -> None:
    """Compare with the rows that a model still has.

    All of them, or where it has only the targets, those.
    """
    training = kept.training
    same = np.array_equal(np.asarray(training.y), np.asarray(to_numpy(y)))
    if isinstance(training.X, np.ndarray) and training.X.shape[1] > 0:
        same = same and np.allclose(
            training.X,
            np.asarray(to_numpy(X.toarray() if hasattr(X, "toarray") else X), dtype=float),
        )
    if not same:
        raise ValueError(
            "X and y must be what the model was fitted on, in the same order, but they differ "
            "from the rows that it keeps: a report "
            "explains the training rows."
        )


def _stops(model: KernelModel, problem: Problem) -> tuple[np.ndarray, int]:
    """Slider positions of alpha, and which of them is the chosen one.

    As far as float64 and the kernel allow.
    """
    exponents = np.arange(-OCTAVES * STEPS, OCTAVES * STEPS + 1) / STEPS
    alphas = float(model.alpha_) * 2.0**exponents
    least = max(
        1e3 * problem.smoother.conditioning / 1e-6, 1.05 * problem.decomposition.lower_bound
    )
    allowed = (alphas >= min(least, float(model.alpha_))) & np.isfinite(alphas)
    return alphas[allowed], int(np.flatnonzero(exponents[allowed] == 0)[0])


def _strip(
    explorer: Explorer, model: KernelModel, chosen: Any, X: Any, y: Any, weights: Any, entries: int
) -> Iterator[Width]:
    """The chosen width with up to half of the entries, then its neighbours, nearest first, while
    there is room for them whole.
    """
    n = explorer.n_samples
    fits = n * (n - 1) <= min(entries, WIDTH_ENTRIES)
    limit = n if fits else max(min(int(CUT_SHARE * entries), 2 * WIDTH_ENTRIES), n) // n
    first = _pack(explorer, model, chosen, 1.0, limit)
    yield first
    left = entries - first.V.size
    whole = first.dropped <= NEGLIGIBLE * explorer.alphas[0]
    gamma = isinstance(model.kernel, str) and "gamma" in PARAMETERS.get(model.kernel, ())
    if not gamma or (n > ONE_WIDTH_ABOVE and first.full_rank > n // 2):
        return
    if not whole:
        left //= 2  # one neighbour to either side, cut like the chosen one
    for step in range(1, (WIDTH_REACH if whole else 1) + 1):
        for factor in (2.0**-step, 2.0**step):
            other = _refit(model, X, y, weights, factor)
            lower_bound = other._kept.problem.decomposition.lower_bound
            if explorer.alphas[0] <= lower_bound:
                continue
            width = _pack(explorer, model, other, factor, min(limit, max(left // n, 1)))
            if whole and width.dropped > NEGLIGIBLE * explorer.alphas[0]:
                return  # no room for all of it
            left -= width.V.size if whole else 0
            yield width


def _pack(
    explorer: Explorer, model: KernelModel, fitted: Any, factor: float, rank_limit: int
) -> Width:
    """Spectrum of a fitted model as the page will see it, and the table of its errors beside the
    exact ones.
    """
    problem = fitted._kept.problem
    smoother = problem.decomposition
    V, eigenvalues = to_numpy(smoother.spectrum.V), to_numpy(smoother.spectrum.eigenvalues)
    order = np.argsort(-np.abs(eigenvalues), kind="stable")
    sizes = np.abs(eigenvalues[order]) ** (2 if explorer.dual else 1)
    floor = NEGLIGIBLE**2 if explorer.dual else NEGLIGIBLE  # σ enters the dual norm's B unsquared
    rank = min(int(np.sum(sizes > floor * explorer.alphas[0])), rank_limit)
    kept, gone = order[:rank], order[rank:]
    columns = V[:, kept]
    step = (
        np.abs(columns).max(axis=0, initial=0.0) / (2**31 - 1) if len(columns) else np.zeros(rank)
    )
    step = np.where(step > 0, step, 1.0)
    packed = np.rint(columns / step).astype(np.int32)
    Y, Q0 = explorer.Y, explorer.Q0
    inside = to_numpy(smoother.spectrum.Q0)
    outside = np.sum(V[:, gone] ** 2, axis=1)
    rest, rest0 = V[:, gone] @ (V[:, gone].T @ Y), V[:, gone] @ (V[:, gone].T @ Q0)
    if not smoother.spectrum.complete:  # directions that the decomposition itself has left out
        outside = np.maximum(1.0 - np.sum(inside**2, axis=1) - np.sum(columns**2, axis=1), 0.0)
        rest = Y - inside @ (inside.T @ Y) - columns @ (columns.T @ Y)
        rest0 = Q0 - inside @ (inside.T @ Q0) - columns @ (columns.T @ Q0)
    expansion, centre = (
        _expansion(problem, columns, eigenvalues[kept])
        if explorer.landmarks is not None
        else (np.zeros((0, 0)),) * 2
    )
    gamma = getattr(fitted, "gamma_", None)
    width = Width(
        factor=factor,
        gamma=float(gamma) if gamma is not None and np.ndim(gamma) == 0 else None,
        V=packed * step,
        packed=packed,
        step=step,
        eigenvalues=eigenvalues[kept],
        z=columns.T @ Y,
        rest=rest,
        outside=outside,
        z0=columns.T @ Q0,
        rest0=rest0,
        KQ0=_kernel_times(problem, Q0)
        if explorer.X is not None and explorer.landmarks is None
        else np.zeros((0, 0)),
        expansion=expansion,
        centre=centre,
        dropped=float(sizes[rank]) if len(gone) else 0.0,
        full_rank=len(eigenvalues),
        errors=np.empty(0),
        deviations=np.empty(0),
    )
    pairs = [
        _compare(explorer, model, width, problem, float(alpha))
        for alpha in explorer.alphas[explorer.table]
    ]
    errors, deviations = np.array(pairs).T
    return Width(**{**vars(width), "errors": errors, "deviations": deviations})


def _kernel_times(problem: Problem, Q0: np.ndarray) -> np.ndarray:
    """diag(s) K diag(s) Q₀ with the kernel as the page evaluates it.

    Decompositions may have moved the origin.
    """
    s = np.ones((len(Q0), 1)) if problem.row_scale is None else to_numpy(problem.row_scale)
    return np.asarray(s * (to_numpy(problem.kernel(problem.X, problem.X)) @ (s * Q0)))


def _expansion(
    problem: LandmarkProblem, V: np.ndarray, eigenvalues: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the landmarks (m, r) and share of the bias (r,) that a unit of target along
    each direction gives, times λ + μ.

    Read off the fit of the directions themselves, whose coefficients at any μ are these over λ + μ.
    """
    mu = float(np.max(eigenvalues, initial=1.0))
    smoother = problem._feature_norm
    solution = problem.solution(smoother.fit(V, mu), mu)
    factor = eigenvalues + mu
    return np.asarray(to_numpy(solution.dual_coef) * factor), np.asarray(
        to_numpy(solution.intercept) * factor
    )


def _compare(
    explorer: Explorer, model: KernelModel, width: Width, problem: Problem, mu: float
) -> tuple[float, float]:
    """The exact error at one alpha, and the largest difference of a held-out value to the packed
    one, relative to their spread.
    """
    held_out = problem.decomposition.leave_one_out(problem.scaled_targets, np.asarray([mu]))
    force = None if held_out.force is None else held_out.force[0, ...]
    exact = to_numpy(
        model._decide_each(problem, problem.fit(mu), HeldOut(held_out.residual[0, ...], force))
    )
    packed = decisions(explorer, width, mu)
    finite = np.isfinite(exact) & np.isfinite(packed)
    spread = float(np.std(exact[finite])) if finite.any() else 0.0
    difference = (
        float(np.abs(exact[finite] - packed[finite]).max(initial=0.0)) / spread
        if spread > 0
        else 0.0
    )
    return error_of(explorer, exact), difference


def error_of(explorer: Explorer, values: np.ndarray) -> float:
    """The figure beside the sliders.

    Share of rows misclassified, or for regression the root of the mean squared residual.
    """
    w = np.ones(len(values)) if explorer.weights is None else explorer.weights
    if explorer.codes is None:
        scale = np.ones((len(values), 1)) if explorer.scale is None else explorer.scale[:, None]
        residual = explorer.Y / scale - values.reshape(len(values), -1)
        return float(np.sqrt(np.average(np.mean(residual**2, axis=1), weights=w)))
    labels = (values > 0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)
    return float(np.average(labels != explorer.codes, weights=w))


def decisions(explorer: Explorer, width: Width, mu: float) -> np.ndarray:
    """Held-out decision values (n,) or (n, c) from the packed numbers, line by line as the page
    computes them.
    """
    V, Y, Q0, values = width.V, explorer.Y, explorer.Q0, width.eigenvalues
    if explorer.dual:
        q = values**2 + mu
        E = V @ ((mu / q)[:, None] * width.z0) + width.rest0
        W = V @ ((values / q)[:, None] * width.z0)
        E_S, W_S = (E, W) if Q0.shape[1] == 0 else (E / (Q0.T @ E), W / (Q0.T @ E))
        r = V @ ((mu / q)[:, None] * width.z) + width.rest - E_S @ (E.T @ Y)
        a = V @ ((values / q)[:, None] * width.z) - W_S @ (E.T @ Y)
        o = V**2 @ (mu / q) + width.outside - np.sum(E_S * E, axis=1)
        b = V**2 @ (values / q) - np.sum(E_S * W, axis=1)
        d = V**2 @ (1.0 / q) + width.outside / mu + np.sum(W_S * W, axis=1)
        den = o * d + b**2
        rho = (d[:, None] * r + b[:, None] * a) / den[:, None]
    else:
        g = mu / (values + mu)
        r = V @ (g[:, None] * width.z) + width.rest
        o = V**2 @ g + width.outside
        rho = r / o[:, None]
    scale = np.ones(len(Y)) if explorer.scale is None else explorer.scale
    P = (Y - rho) / scale[:, None]
    if explorer.kind != "discriminant":
        return np.asarray(P[:, 0] if P.shape[1] == 1 else P)
    R = Y.T @ r
    R = 0.5 * (R + R.T)
    if explorer.dual:
        outer = (
            d[:, None, None] * _outer(r, r)
            + b[:, None, None] * (_outer(a, r) + _outer(r, a))
            - o[:, None, None] * _outer(a, a)
        )
        R_each = R - outer / den[:, None, None]
    else:
        R_each = R - _outer(r, r) / o[:, None, None]
    sizes = np.sum(Y * scale[:, None], axis=0) - Y * scale[:, None]
    return _scores(explorer, R_each, sizes, P)


def _outer(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.asarray(A[:, :, None] * B[:, None, :])


def _scores(explorer: Explorer, R: np.ndarray, sizes: np.ndarray, P: np.ndarray) -> np.ndarray:
    """The LDA rule without an eigenproblem, for every row's own R (n, c, c) and
    class sizes (n, c).
    """
    present = sizes > 1e-9
    total = sizes.sum(axis=1)
    dof = np.maximum(total - present.sum(axis=1), 0.0)
    both = present[:, :, None] & present[:, None, :]
    Q = np.where(both, R + _outer(sizes, sizes) / total[:, None, None], 0.0)
    Q[:, np.arange(Q.shape[1]), np.arange(Q.shape[1])] += ~present
    inverse = np.linalg.inv(Q)
    P = np.where(present, P, 0.0)
    safe = np.where(present, sizes, 1.0)
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)
    linear = np.einsum("njk,nk->nj", inverse, P) - P.sum(axis=1, keepdims=True) / total[:, None]
    priors = safe / total[:, None] if explorer.priors is None else explorer.priors[None, :]
    score = dof[:, None] * (linear - 0.5 * (diagonal - 1.0 / safe)) + np.log(priors)
    score = np.where(present, score, -np.inf)
    if score.shape[1] > 2:
        return np.asarray(score)
    with np.errstate(invalid="ignore"):
        difference = score[:, 1] - score[:, 0]
    return np.asarray(np.where(np.isfinite(difference), difference, np.nan))


def pack(array: np.ndarray) -> str:
    """Little-endian bytes of an array in base64."""
    kind = "<i4" if array.dtype == np.int32 else "<f8"
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode("ascii")


def payload(explorer: Explorer) -> dict[str, Any]:
    """The explorer as JSON for the page; binary numbers in base64."""
    optional = {
        "scale": explorer.scale,
        "weights": explorer.weights,
        "X": explorer.X,
        "landmarks": explorer.landmarks,
    }
    return {
        "kind": explorer.kind,
        "dual": explorer.dual,
        "n": explorer.n_samples,
        "meanY": explorer.mean_Y.tolist(),
        "t": explorer.Y.shape[1],
        "Y": pack(explorer.Y),
        "Q0": pack(explorer.Q0) if explorer.Q0.shape[1] else None,
        "codes": None if explorer.codes is None else explorer.codes.tolist(),
        "priors": None if explorer.priors is None else explorer.priors.tolist(),
        "alphas": explorer.alphas.tolist(),
        "chosen": explorer.chosen,
        "chosenWidth": explorer.chosen_width,
        "table": explorer.table.tolist(),
        "intercept": explorer.intercept,
        "kernel": explorer.kernel,
        "parameters": explorer.parameters,
        "active": explorer.active.tolist(),
        **{name: None if array is None else pack(array) for name, array in optional.items()},
        "widths": [_width(explorer, width) for width in explorer.widths],
    }


def _width(explorer: Explorer, width: Width) -> dict[str, Any]:
    arrays = {
        name: getattr(width, name) for name in ("eigenvalues", "step", "z", "rest", "outside")
    }
    if explorer.dual:
        arrays |= {"z0": width.z0, "rest0": width.rest0}
    if explorer.X is not None:
        arrays |= (
            {"KQ0": width.KQ0}
            if explorer.landmarks is None
            else {"expansion": width.expansion, "centre": width.centre}
        )
    numbers = {name: getattr(width, name) for name in ("factor", "gamma", "dropped")}
    tables = {"errors": width.errors.tolist(), "deviations": width.deviations.tolist()}
    return {
        **numbers,
        **tables,
        "rank": width.V.shape[1],
        "V": pack(width.packed),
        **{name: pack(a) for name, a in arrays.items()},
    }
