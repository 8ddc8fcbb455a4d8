"""Outputs of many labelings and folds at once, which `metrics` scores."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.arrays import Array, asarray_like, is_numpy, namespace


@dataclass(frozen=True)
class Outputs:
    """The outputs of the models of one run of folds for their test rows, for B labelings.

    `values` is (B, k, m) or (B, k, c, m); `truth` has the labels or targets: (B, k, m) or (B, k,
    t, m).
    A run of pooled folds has k = 1. Values closer than `accuracy`, (B, k) or (B, k, c), differ
    only by rounding; None if they have already been made equal.
    """

    values: Array
    truth: Array
    accuracy: Array | None = None


def size_of_targets(P: Array, truth: Array | None) -> Array:
    """The magnitude (B, k, t) of predicted targets (B, k, t, m) and of their truth (B, k, m) or
    (B, k, t, m), which is one for classes (None).
    """
    xp = namespace(P)
    size = xp.maximum(xp.max(P, axis=-1), -xp.min(P, axis=-1))
    if truth is None:
        return xp.maximum(size, xp.ones_like(size))
    truth = asarray_like(truth, P) if is_numpy(truth) else truth
    largest = xp.reshape(xp.max(xp.abs(truth), axis=-1), (*size.shape[:2], -1))
    return xp.maximum(size, largest)


def pooled(runs: list[Outputs]) -> list[Outputs]:
    """The test rows of all folds as one fold."""

    def flat(A: Array) -> Array:
        xp, last = namespace(A), A.ndim - 1
        folds_beside_rows = xp.permute_dims(A, (0, *range(2, last), 1, last))
        return xp.reshape(folds_beside_rows, (A.shape[0], 1, *A.shape[2:last], -1))

    values, truth = [flat(run.values) for run in runs], [flat(run.truth) for run in runs]
    xp = namespace(values[0])
    accuracy = None
    if all(run.accuracy is not None for run in runs):
        by_run = [xp.max(run.accuracy, axis=1, keepdims=True) for run in runs]
        accuracy = xp.max(xp.stack(by_run), axis=0)
    seen = namespace(truth[0]).concat(truth, axis=-1)
    return [Outputs(xp.concat(values, axis=-1), seen, accuracy)]
