"""Calibration: from held-out decisions to probabilities.

Everything here is small and on the host: n rows, c classes, and a leading axis for m candidates if
there are several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.special

FLAT = float(np.exp(-10.0))  # differences of logits at which all classes are equally probable
TINY = float(np.finfo(float).tiny)
NEWTON_STEPS = 60
QUADRATIC = 1e-6  # a step of Newton's method this small leaves an error of about its square
SMALL_STEP = 1e-5  # of a parameter, below which rounding decides which of two losses is smaller
# rows of doubt about probabilities that doubt already: few, so that those of separable classes come
# near 0 and 1; what they are worth on 128 rows: benchmarks/models.py few_rows
DOUBTED = 0.25
OFFSET_PRIOR = 1.0  # precision of the normal prior on class offsets
GRADIENT = 1e-9  # largest slope of the loss at the offsets that are found
ELEMENTS = 1 << 16  # scores up to which β is tried for all doublings at once
DOUBLINGS = 24  # of β, where the search through the floor looks for a second minimum


def class_scores(decision: np.ndarray) -> np.ndarray:
    """Decisions as one column per class.

    Two-class decisions d become (0, d), whose softmax is the sigmoid of d.
    """
    if decision.ndim == 1:
        return np.column_stack([np.zeros_like(decision), decision])
    return decision


def soft_targets(
    labels: np.ndarray, weights: np.ndarray, n_classes: int, rows: float = 1.0
) -> np.ndarray:
    """Targets (k, c) a little off certainty: (n + 1)/(n + 2) for the own class, the others share
    1/(n + 2); n is the sum of the weights.

    That is Laplace's rule for n rows, all of them right. It keeps the temperature finite where the
    held-out scores separate the classes perfectly. Platt (1999) has the size of the own class in
    place of n. `rows` is the worth of the doubt.
    """
    doubt = rows / (weights.sum() + 2.0)
    targets = np.full((len(labels), n_classes), doubt / (n_classes - 1.0))
    targets[np.arange(len(labels)), labels] = 1.0 - doubt
    return targets


def _of_present(targets: np.ndarray, scores: np.ndarray, axis: int) -> np.ndarray:
    """Targets without the classes that have no score, which get probability 0."""
    present = np.isfinite(scores)
    if present.all():
        return targets
    kept = targets * present
    return np.asarray(kept / np.maximum(np.sum(kept, axis=axis, keepdims=True), TINY))


def least_probability(weights: np.ndarray, n_classes: int) -> float:
    """Half a row's worth among n + 1, shared by all classes: 1/(2 c (n + 1))."""
    return 0.5 / (n_classes * (float(weights.sum()) + 1.0))


def mixed(p: np.ndarray, floor: float) -> np.ndarray:
    """Probabilities (…, c) mixed with equal ones: none is below the floor, their order stays."""
    return np.asarray(floor + (1.0 - p.shape[-1] * floor) * p)


def inverse_temperatures(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, doubt: float = 1.0
) -> np.ndarray:
    """For each of m candidates (m, k, c), the β that minimizes the cross-entropy of softmax(β ·
    scores).

    The loss is convex in β; its derivative is the mean over rows of Σ_j (p_j(β) - target_j)
    score_j. With scores s ≤ 0, less the largest of each row, C = mean Σ_j target_j |s_j| and U =
    mean Σ_j |s_j|:

    - above (c - 1)/(e C) the derivative is positive, since Σ_j p_j |s_j| ≤ (c - 1)/(e β);
    - below `FLAT`/U all probabilities are equal. Scores that are worse than useless end there.

    Both bounds scale with the scores: their unit does not matter.
    """
    n_classes = scores.shape[2]
    if n_classes == 2:
        with np.errstate(invalid="ignore"):
            difference = scores[:, :, 1] - scores[:, :, 0]
        margins = np.where(labels == 1, difference, -difference)
        return inverse_temperatures_of_two(margins, weights, doubt)
    weight = weights / weights.sum()
    # classes lead: sums over few of them are then fast
    centred = np.ascontiguousarray(np.moveaxis(scores, 2, 0))
    centred -= np.max(centred, axis=0)
    # a class that was absent: softmax gives it probability 0
    finite = np.where(np.isfinite(centred), centred, 0.0)
    unit = np.sum(np.abs(finite), axis=0) @ weight
    unit = np.where(unit > 0, unit, 1.0)
    centred /= unit[:, None]
    finite /= unit[:, None]
    targets = soft_targets(labels, weights, n_classes, doubt).T[:, None, :]
    targets = _of_present(targets, centred, axis=0)
    constant = np.sum(targets * finite, axis=0) @ weight

    def derivatives(log_beta: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slope and curvature of some candidates, with their β at those values."""
        scores, values = centred[:, which], finite[:, which]
        p = np.exp(np.exp(log_beta)[:, None] * scores)
        p /= np.sum(p, axis=0)
        mean = np.sum(p * values, axis=0)
        spread = np.sum(p * values**2, axis=0) - mean**2
        return mean @ weight - constant[which], np.exp(log_beta) * (spread @ weight)

    upper = np.log((n_classes - 1.0) / np.e / np.maximum(-constant, TINY))
    return np.asarray(np.exp(_roots(derivatives, upper)) / unit)


def inverse_temperatures_of_two(
    margins: np.ndarray, weights: np.ndarray, rows: float = 1.0
) -> np.ndarray:
    """The same for two classes, from the margins (m, k) of the own class over the other, which are
    infinite where one of them is absent.

    The worse of the two has the score -|margin|, and with targets 1 - δ and δ, p = σ(-β|margin|),

        slope = C - mean p |margin|,        curvature in β = mean p (1 - p) margin².
    """
    weight, doubt = weights / weights.sum(), rows / (weights.sum() + 2.0)
    size = np.abs(margins)
    size[~np.isfinite(size)] = 0.0
    unit = size @ weight
    unit = np.where(unit > 0, unit, 1.0)
    size /= unit[:, None]
    constant = (np.where(margins > 0, doubt, 1.0 - doubt) * size) @ weight

    def derivatives(log_beta: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slope and curvature of some candidates at their β."""
        beta, own = np.exp(log_beta), size if len(which) == len(size) else size[which]
        p = own * -beta[:, None]
        np.exp(p, out=p)
        rest = p + 1.0
        p /= rest
        p *= own
        np.subtract(own, p, out=rest)
        rest *= p
        return constant[which] - p @ weight, beta * (rest @ weight)

    return np.asarray(
        np.exp(_roots(derivatives, np.log(1.0 / np.e / np.maximum(constant, TINY)))) / unit
    )


def _roots(
    derivatives: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    upper: np.ndarray,
) -> np.ndarray:
    """log β (m,) of all candidates together, by Newton's method inside a shrinking bracket from
    `FLAT` to an upper bound.

    A candidate that has arrived is left alone: a few that come slowly do not keep the others.
    """
    lower, upper = np.full(len(upper), np.log(FLAT)), upper.copy()
    log_beta = np.clip(np.zeros(len(upper)), lower, upper)
    rising = derivatives(lower, np.arange(len(lower)))[0] >= 0  # the least is at the lower bound
    log_beta = np.where(rising, lower, log_beta)
    active = np.flatnonzero(~rising)
    for _ in range(NEWTON_STEPS):
        if not len(active):
            break
        at = log_beta[active]
        slope, curvature = derivatives(at, active)
        upper[active] = np.where(slope > 0, at, upper[active])
        lower[active] = np.where(slope > 0, lower[active], at)
        low, high = lower[active], upper[active]
        with np.errstate(over="ignore"):  # a step that long is outside the bracket, and halves it
            step = at - slope / np.where(curvature > 0, curvature, 1.0)
        inside = (curvature > 0) & (step >= low) & (step <= high)
        log_beta[active] = np.where(inside, step, 0.5 * (low + high))
        moved = np.abs(log_beta[active] - at)
        # candidates that tie must not be told apart by what is left
        active = active[moved >= np.where(inside, QUADRATIC, 1e-12)]
    return log_beta


@dataclass(frozen=True)
class Calibration:
    """How decisions become probabilities: softmax(β (s + shift)), none below a floor; for isotonic
    regression, followed by steps.

    The shift (c,) also moves the threshold between the classes.
    """

    beta: float
    shift: np.ndarray
    floor: float = 0.0
    steps: np.ndarray | None = None

    def moved(self, decision: np.ndarray) -> np.ndarray:
        """Decisions with the calibrated threshold."""
        return np.asarray(decision + by_output(self.shift))

    def probabilities(self, decision: np.ndarray) -> np.ndarray:
        """Class probabilities (k, c) from decisions before calibration."""
        moved = self.moved(decision)
        if self.steps is None:
            return probabilities(moved, self.beta, self.floor)
        if moved.ndim == 1:
            p = np.interp(moved, *self.steps)
            return np.column_stack([1.0 - p, p])
        p = probabilities(moved, self.beta)
        return mixed(top_label_isotonic(p, self.steps), self.floor)


def by_output(shift: np.ndarray) -> np.ndarray:
    """Shifts of outputs from shifts of classes: for two classes, the difference."""
    return np.asarray(shift[1] - shift[0] if len(shift) == 2 else shift)


def calibrate(
    decision: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    *,
    offsets: bool,
    floored: bool = False,
) -> Calibration:
    """Fit β, and with `offsets` one constant per class, to held-out decisions.

    Both are fitted through the floor, except for scores that are logarithms of probabilities with
    their own floor (`floored`, without offsets): those doubt already. Rows without a finite score
    of their own class are left out.
    """
    scores = class_scores(decision)
    c = scores.shape[1]
    usable = (
        np.isfinite(scores[np.arange(len(labels)), labels])
        & ~np.isnan(scores).any(axis=1)
        & (weights > 0)
    )
    scores, labels, weights = scores[usable], labels[usable], weights[usable]
    floor = least_probability(weights, c)
    if not usable.any():
        return Calibration(1.0, np.zeros(c), floor)
    betas = inverse_temperatures(scores[None], labels, weights, DOUBTED if floored else 1.0)
    if not floored:
        betas = through_floor(betas, scores[None], labels, weights, floor)
    beta = float(betas[0])
    if not offsets:
        return Calibration(beta, np.zeros(c), floor)
    beta, b = _with_offsets(beta, scores, labels, weights, floor)
    return Calibration(beta, b / beta, floor)


def through_floor(
    betas: np.ndarray, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, floor: float
) -> np.ndarray:
    """From the β (m,) of the plain softmax of m candidates (m, k, c) to those of the probabilities
    as they are predicted.

    Those are p = φ + (1 - cφ) q with the floor φ and q = softmax(β s). A row far on the wrong side
    costs the plain softmax without bound, and one such row can make all probabilities vague; p
    says that there may be a few. With θ = log β, u = β s, m = Σ_j q_j u_j and v = Σ_j q_j (u_j -
    m)²

        q′_j = q_j (u_j - m)
        q″_j = q_j ((u_j - m)² + u_j - m - v),

    which Newton's method takes downhill from the β given, a lower bound. There may be a second
    minimum far above the first, where one row has a huge score on the wrong side. It is taken only
    if the likelihood of the n rows is more than n times that of the first, since sharp
    probabilities that are wrong cost more than vague ones.
    """
    n_classes = scores.shape[2]
    centred = np.ascontiguousarray(np.moveaxis(scores, 2, 0))  # classes lead, as above
    centred -= np.max(centred, axis=0)
    present = np.isfinite(centred)
    finite = np.where(present, centred, 0.0)
    targets = soft_targets(labels, weights, n_classes).T[:, None, :]
    targets = _of_present(targets, centred, axis=0) * (weights / weights.sum())
    share = 1.0 - n_classes * floor

    def softmax(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u and q (…, c, m, k) for values θ (…, m) of every candidate."""
        u = np.exp(theta)[..., None, :, None] * finite
        q = np.where(present, np.exp(u), 0.0)
        q /= np.sum(q, axis=-3, keepdims=True)
        return u, q

    def derivatives(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Loss, slope and curvature in log β, of every candidate."""
        u, q = softmax(theta)
        apart = u - np.sum(q * u, axis=0)
        spread = np.sum(q * apart**2, axis=0)
        p = floor + share * q
        first = share * q * apart / p
        second = share * q * (apart**2 + apart - spread) / p
        loss = -np.sum(targets * np.log(p), axis=(0, 2))
        curvature = np.sum(targets * (first**2 - second), axis=(0, 2))
        return loss, -np.sum(targets * first, axis=(0, 2)), curvature

    def descend(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The next minima from θ, and the losses there."""
        loss, slope, curvature = derivatives(theta)
        for _ in range(NEWTON_STEPS):
            newton = -slope / np.where(curvature > 0, curvature, 1.0)
            step = np.clip(np.where(curvature > 0, newton, -np.sign(slope)), -1.0, 1.0)
            after = np.maximum(lower, theta + step)
            found = derivatives(after)
            while np.any(worse := (found[0] > loss) & (np.abs(after - theta) > SMALL_STEP)):
                after = np.where(worse, 0.5 * (theta + after), after)
                found = derivatives(after)
            moved, theta = np.max(np.abs(after - theta)), after
            loss, slope, curvature = found
            if moved < 1e-12:
                break
        return theta, loss

    lower = np.log(betas)
    near, loss = descend(lower)
    total = float(weights.sum())
    bound = loss - np.log(max(total, 1.0)) / total
    far = near
    further = near + np.log(2.0) * np.arange(1.0, DOUBLINGS)[:, None]
    for starts in np.array_split(further, min(len(further), 1 + finite.size // ELEMENTS)):
        log_p = np.log(floor + share * softmax(starts)[1])
        for start, here in zip(starts, -np.sum(targets * log_p, axis=(-3, -1)), strict=True):
            far, bound = np.where(here < bound, start, far), np.minimum(here, bound)
    return np.asarray(np.exp(near if np.all(far == near) else descend(far)[0]))


def _with_offsets(
    beta: float, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, floor: float
) -> tuple[float, np.ndarray]:
    """The least cross-entropy of p = φ + (1 - cφ) q, q = softmax(u), u = β s + b, from the β of
    b = 0; with b_1 = 0, and Platt's sigmoid where there are two classes.

    A standard normal prior on the offsets, b - mean b, keeps them small where few rows lie near the
    threshold. With targets t, the floor φ, a = t (1 - cφ) q/p and A = Σ_j a_j, each row has

        ∂L/∂u = A q - a.
    """
    c = scores.shape[1]
    scale = max(float(np.std(scores[np.isfinite(scores)])), np.finfo(float).tiny)
    finite = np.where(np.isfinite(scores), scores, 0.0) / scale
    masked = np.where(np.isfinite(scores), 0.0, -np.inf)
    targets = _of_present(soft_targets(labels, weights, c), scores, axis=1)
    w, share = weights / weights.sum(), 1.0 - c * floor
    strength = OFFSET_PRIOR / weights.sum()

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss and its gradient in β and b_2, …, b_c."""
        b = np.append(0.0, theta[1:])
        q = scipy.special.softmax(theta[0] * finite + b + masked, axis=1)
        p = np.maximum(floor + share * q, TINY)
        a = targets * share * q / p
        slope = w[:, None] * (np.sum(a, axis=1, keepdims=True) * q - a)
        prior = strength * (b - b.mean())
        value = 0.5 * float(prior @ b) - float(np.sum(targets * np.log(p), axis=1) @ w)
        return value, np.append(np.sum(slope * finite), (np.sum(slope, axis=0) + prior)[1:])

    start = np.append(beta * scale, np.zeros(c - 1))
    theta = scipy.optimize.minimize(loss, start, jac=True, method="BFGS", tol=GRADIENT).x
    # on to the last digits, in which refits agree
    theta = scipy.optimize.root(lambda at: loss(at)[1], theta, tol=1e-13).x
    beta = float(theta[0]) / scale
    if beta <= 0:  # scores worse than useless: the class shares remain
        shares = np.log(w @ targets)
        return FLAT / scale, shares - shares[0]
    return beta, np.concatenate([[0.0], theta[1:]])


def probabilities(decision: np.ndarray, beta: float, floor: float = 0.0) -> np.ndarray:
    """softmax(β · class scores), one column per class, rows summing to one, none below the
    floor.
    """
    scaled = beta * class_scores(decision)
    return mixed(scipy.special.softmax(scaled, axis=1), floor)


def top_label_isotonic(p: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Probabilities whose largest one is mapped by the steps, the others sharing the rest as
    before; it stays the largest.
    """
    rows = np.arange(len(p))
    top = np.argmax(p, axis=1)
    others = p.copy()
    others[rows, top] = 0.0
    rest = np.maximum(others.sum(axis=1), np.finfo(float).tiny)
    second = others.max(axis=1)
    confidence = np.maximum(
        np.interp(p[rows, top], *steps), (1.0 + 1e-9) * second / (rest + second)
    )
    result = others * ((1.0 - confidence) / rest)[:, None]
    result[rows, top] = confidence
    return np.asarray(result / result.sum(axis=1, keepdims=True))
