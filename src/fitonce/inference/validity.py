"""Which way of permuting is valid with which splitter, and what a splitter's folds say about how
they were made.

A permutation test compares the observed score with scores of labellings that the null hypothesis
makes equally likely, *given the folds*. Folds that were balanced with the help of y are part of the
observed labelling: under free permutations they are unbalanced, the training priors lean away from
each test fold, and the null scores are too low. Such a test rejects pure noise up to 73 % of the
time at a nominal 5 %.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    check_cv,
)

from .exchange import LabelExchange, blocks_of

MODES = ("resplit", "within-folds", "free")
IGNORE_Y = (
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    LeaveOneOut,
    LeavePOut,
    GroupKFold,
    LeaveOneGroupOut,
    LeavePGroupsOut,
    GroupShuffleSplit,
    PredefinedSplit,
    TimeSeriesSplit,
)
USE_Y = (StratifiedKFold, RepeatedStratifiedKFold, StratifiedShuffleSplit, StratifiedGroupKFold)
REFUSAL = (
    'permute="free" is not valid here: {}. Labels permuted freely over all rows are then '
    "unbalanced in folds where the observed ones are balanced, and the test rejects pure noise far "
    "more often than its level says (25–73 % at 5 % in simulations). Use "
    'permute="within-folds" (fast), permute="resplit" (what scikit-learn does), or a splitter '
    "that ignores y."
)
LISTED = (
    "a list of splits does not say whether it was made from y, so labels are permuted within the "
    "test folds, which is valid either way; scikit-learn permutes freely, which is not if the "
    'folds are stratified. Say permute="free" if the splits were made without looking at y, '
    'permute="within-folds" to keep this, or pass the splitter itself.'
)
BALANCED = (
    "the folds hold the classes more evenly than chance would although the splitter ignores y "
    "(an alternating or designed order of the rows). Free permutations do not keep that, and their "
    'p-value can be too small. Use permute="within-folds", or shuffle the rows.'
)
BALANCE_DRAWS = 999  # labellings that the observed folds are compared with
BALANCE_LEVEL = 0.01  # folds more even than all but this share of them look as if made from y

Split = tuple[np.ndarray, np.ndarray]


class ValidityWarning(UserWarning):
    """The p-value may not mean what it seems to; the message says why and what to do."""


def is_list_of_splits(cv: Any) -> bool:
    """Whether a checked splitter is the wrapper of a list of splits, which has no
    splitter to ask.
    """
    return type(cv) is type(check_cv([(np.array([0]), np.array([1]))]))


def ignores_y(cv: Any) -> bool | None:
    """True or False where the splitter is a known one, None where it cannot be known."""
    if type(cv) in IGNORE_Y:
        return True
    return False if isinstance(cv, USE_Y) else None


def draws_anew(cv: Any) -> bool:
    """Whether each call of `split` gives other folds because the splitter shares a generator with
    its caller.
    """
    return (
        isinstance(getattr(cv, "random_state", None), np.random.RandomState)
        and getattr(cv, "shuffle", True) is not False
    )


def choose_mode(
    permute: str | None,
    cv: Any,
    splits: Sequence[Split],
    labels: np.ndarray | None,
    groups: np.ndarray | None,
) -> str:
    """The way of permuting: the one asked for, refused where it is known to be invalid, or
    scikit-learn's where it is valid; with a warning where free permutations meet folds that look
    balanced. `labels` are those of a classification, else None.
    """
    if permute is not None and permute not in MODES:
        raise ValueError(
            f"permute must be None or one of {', '.join(map(repr, MODES))}, got {permute!r} "
            "instead."
        )
    listed, free_of_y = is_list_of_splits(cv), ignores_y(cv)
    if permute == "resplit" and listed:
        raise ValueError(
            'permute="resplit" needs a splitter, got a list of splits instead: a list cannot be '
            "made again for permuted labels. Pass the "
            'splitter itself; or permute="within-folds", or permute="free" if the splits were '
            "made without looking at y."
        )
    freely = permute == "free" or (permute is None and free_of_y is True)
    doubtful = freely and free_of_y is not False and labels is not None
    balanced = doubtful and more_even_than_chance(splits, labels, groups)  # type: ignore[arg-type]
    if permute == "free" and (free_of_y is False or (free_of_y is None and balanced)):
        made = (
            "these splits hold the classes more evenly than chance would, as if made with the help "
            "of y"
        )
        raise ValueError(
            REFUSAL.format(made if listed else f"{type(cv).__name__} makes its folds from y")
        )
    if listed and permute is None:  # a list does not say how it was made; this is valid either way
        warnings.warn(LISTED, ValidityWarning, stacklevel=4)
        return "within-folds"
    mode = permute or ("free" if free_of_y and not draws_anew(cv) else "resplit")
    if balanced and mode == "free":
        warnings.warn(BALANCED, ValidityWarning, stacklevel=4)
    return mode


def more_even_than_chance(
    splits: Sequence[Split], labels: np.ndarray, groups: np.ndarray | None
) -> bool:
    """Whether the classes are spread over the test folds more evenly than in 99 % of random
    labellings.

    The measure is Σ (count - expected)² over folds and classes; labels move within the groups, if
    given. One honest set of folds in a hundred looks like this by chance; of stratified folds of a
    few dozen rows and more, nearly all do.
    """
    n, n_classes = len(labels), int(labels.max()) + 1
    if len(splits) < 2 or len(splits) > n // 2:
        return False
    member = np.zeros((len(splits), n))
    for number, (_, test) in enumerate(splits):
        member[number, test] = 1.0
    share = np.bincount(labels, minlength=n_classes) / n
    expected = member.sum(axis=1)[:, None] * share

    def unevenness(permuted: np.ndarray) -> float:
        counts = np.stack([member @ (permuted == code) for code in range(n_classes)], axis=1)
        return float(np.sum((counts - expected) ** 2))

    observed, as_even = unevenness(labels), 0
    exchange, rng = LabelExchange(labels, blocks_of(n, groups)), np.random.RandomState(0)
    for _ in range(BALANCE_DRAWS):
        as_even += unevenness(labels[exchange.draw(rng).indices]) <= observed + 1e-9
        if as_even + 1 > BALANCE_LEVEL * (BALANCE_DRAWS + 1):
            return False
    return True


def atoms_of(splits: Sequence[Split], n_samples: int) -> np.ndarray:
    """Number the sets of rows that all splits treat alike: for a partition, the test folds.

    Labels that move only inside such a set leave every training and test set with the class counts
    it had.
    """
    pattern = np.zeros((n_samples, len(splits)), dtype=np.int8)
    for number, (train, test) in enumerate(splits):
        pattern[train, number] = 1
        pattern[test, number] = 2
    atoms = np.unique(pattern, axis=0, return_inverse=True)[1].reshape(-1)
    if len(np.unique(atoms)) == n_samples:
        raise ValueError(
            'permute="within-folds" needs rows that all splits treat alike, but no two rows are '
            "tested together in the same splits (leave-one-out, many repeated or overlapping "
            "splits): there is nothing to permute. Use a single partition into folds, "
            'permute="resplit", or "free" if the splitter ignores y.'
        )
    return atoms
