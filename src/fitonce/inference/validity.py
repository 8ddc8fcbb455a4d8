"""Which way of permuting is valid with which splitter, and how folds reveal the way they were made.

A permutation test compares the observed score with scores of labelings that are equally likely
under the null hypothesis, *given the folds*. If folds are balanced, because they depend on y or
because the rows have a designed order, they belong to the observed labeling: under free
permutations, they are unbalanced, the priors of the training sets are shifted away from each test
fold, and the null scores are too low. If labels and folds are permuted together (`placements.py`),
they stay balanced. Only splits that follow the order of the rows, or use X,
cannot be permuted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
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

from ..core.numerical_warnings import depth_inside_package
from ..core.splits import Split
from .exchange import (
    Exchange,
    LabelExchange,
    TurnExchange,
    ValidityWarning,
    blocks_of,
    first_seen,
    numbered,
)

MODES = ("cosets", "resplit", "within-folds", "free")
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
    'permute="free" is not valid here: {}. Freely permuted labels are unbalanced in the folds, '
    "while the observed labels are balanced, so the test rejects pure noise far more often than "
    "its level (11–45 % at 5 % in simulations). Use "
    'permute="cosets" (the default), permute="within-folds", permute="resplit" (as in '
    "scikit-learn), or a splitter that ignores y."
)
STILL = (
    'permute="cosets" permutes the folds with the labels, which is not valid here: {}. Use '
    'permute="free" if the splits do not depend on y (and exchange="shift" if neighboring rows are '
    'similar), permute="within-folds", or permute="resplit" (as in scikit-learn).'
)
ORDERED = (
    'these splits follow the order of the rows, so the folds are fixed (permute="{}") and only the '
    "labels are permuted. This is valid if the rows are exchangeable and their labels have no "
    'designed order. For time series, whose neighboring rows are similar, use exchange="shift".'
)
BALANCED = (
    "the labels are spread over the folds more evenly than by chance, although the splitter "
    "ignores y (an alternating or designed order of the rows). Free permutations do not keep this "
    "balance, "
    'and the p-value can be too small. Use permute="cosets" (the default), which does.'
)
EXCHANGES = ("within", "rows", "whole", "whole-unequal", "sign", "shift")
UNITS = {
    "whole": "are exchanged together as one unit",
    "whole-unequal": "are exchanged together as one unit",
    "sign": "form a pair whose labels are swapped",
}
TIED = 0.05  # warn if sizes differ between labels at this level
BALANCE_DRAWS = 999  # labelings that the observed folds are compared with
BALANCE_LEVEL = 0.01  # folds that are more even than all but this share seem to depend on y


def is_list_of_splits(cv: Any) -> bool:
    """Whether a checked splitter wraps a list of splits, so that there is no splitter to ask."""
    return type(cv) is type(check_cv([(np.array([0]), np.array([1]))]))


def ignores_y(cv: Any) -> bool | None:
    """True or False if the splitter is known, None otherwise."""
    if type(cv) in IGNORE_Y:
        return True
    return False if isinstance(cv, USE_Y) else None


def draws_anew(cv: Any) -> bool:
    """Whether each call of `split` gives other folds because the splitter shares a random generator
    with its caller.
    """
    return (
        isinstance(getattr(cv, "random_state", None), np.random.RandomState)
        and getattr(cv, "shuffle", True) is not False
    )


def follows_order(splits: Sequence[Split]) -> bool:
    """Whether every test set comes after its training set, as in a time series."""
    return all(
        len(train) > 0 and len(test) > 0 and train.max() < test.min() for train, test in splits
    )


def looks_at_rows(cv: Any, split: Callable[[Any, bool], list[Split]]) -> bool:
    """Whether an unknown splitter makes other folds if the same rows are reversed.

    `split(cv, reverse)` applies it. Folds that differ from call to call also count, and so does a
    splitter that fails.
    """
    if ignores_y(cv) is not None or is_list_of_splits(cv):
        return False
    try:
        first, second = (split(deepcopy(cv), reverse) for reverse in (False, True))
    except Exception:  # a user-defined splitter may raise anything
        return True
    return len(first) != len(second) or not all(
        np.array_equal(train, other_train) and np.array_equal(test, other_test)
        for (train, test), (other_train, other_test) in zip(first, second, strict=True)
    )


def choose_mode(
    permute: str | None,
    cv: Any,
    splits: Sequence[Split],
    split: Callable[[Any, bool], list[Split]],
    exchange: str | None,
) -> str:
    """The mode of permuting: the requested one, or labels and folds together, or a mode for splits
    that must stay fixed.
    """
    if permute is not None and permute not in MODES:
        raise ValueError(
            f"permute must be None or one of {', '.join(map(repr, MODES))}, got {permute!r} "
            "instead."
        )
    listed = is_list_of_splits(cv)
    if permute == "resplit" and listed:
        raise ValueError(
            'permute="resplit" needs a splitter, got a list of splits instead: a list cannot be '
            "recomputed for permuted labels. Pass the splitter itself, or leave out permute; the "
            "splits are then permuted with the labels."
        )
    if permute not in (None, "cosets"):
        return permute
    ordered = follows_order(splits)
    if exchange == "whole-unequal":
        why = "groups of unequal size cannot be exchanged between folds"
    elif ordered:
        why = f"the splits of {type(cv).__name__} follow the order of the rows"
    elif looks_at_rows(cv, split):
        why = f"the splits of {type(cv).__name__} depend on X, or differ at every call"
    else:
        return "cosets"
    if permute == "cosets":
        raise ValueError(STILL.format(why))
    mode = "within-folds" if listed else "free" if ignores_y(cv) else "resplit"
    if ordered and exchange != "shift":
        warnings.warn(ORDERED.format(mode), ValidityWarning, stacklevel=depth_inside_package())
    return mode


def check_free(
    cv: Any, splits: Sequence[Split], columns: np.ndarray | None, groups: np.ndarray | None
) -> None:
    """Refuse free permutations if the folds depend on y, or seem to; warn about folds that are
    balanced although they ignore y. `columns` (n, t) are indicators of classes, or targets.
    """
    free_of_y = ignores_y(cv)
    if free_of_y is False:
        raise ValueError(REFUSAL.format(f"the folds of {type(cv).__name__} depend on y"))
    if columns is None or not more_even_than_chance(splits, columns, groups):
        return
    if free_of_y is None:
        made = (
            "the labels are spread over these splits more evenly than by chance, as if they "
            "depended on y"
        )
        raise ValueError(REFUSAL.format(made))
    warnings.warn(BALANCED, ValidityWarning, stacklevel=depth_inside_package())


def more_even_than_chance(
    splits: Sequence[Split], columns: np.ndarray, groups: np.ndarray | None
) -> bool:
    """Whether the classes, or targets, are spread over the test folds more evenly than in 99 % of
    random labelings.

    The measure is Σ (sum - expected)² over folds and columns; rows are permuted within the groups,
    if given.
    """
    n = len(columns)
    if len(splits) < 2 or len(splits) > n // 2:
        return False
    member = np.zeros((len(splits), n))
    for number, (_, test) in enumerate(splits):
        member[number, test] = 1.0
    centered = columns - columns.mean(axis=0)

    def unevenness(permuted: np.ndarray) -> float:
        return float(np.sum((member @ permuted) ** 2))

    observed, as_even = unevenness(centered), 0
    exchange, rng = LabelExchange(np.arange(n), blocks_of(n, groups)), np.random.RandomState(0)
    for _ in range(BALANCE_DRAWS):
        as_even += unevenness(centered[exchange.draw(rng).indices]) <= observed + 1e-9
        if as_even + 1 > BALANCE_LEVEL * (BALANCE_DRAWS + 1):
            return False
    return True


def atoms_of(splits: Sequence[Split], n_samples: int) -> np.ndarray:
    """Number the sets of rows that all splits treat alike: for a partition, the test folds.

    Labels that are permuted only inside such a set do not change the class counts of any training
    or test set.
    """
    pattern = np.zeros((n_samples, len(splits)), dtype=np.int8)
    for number, (train, test) in enumerate(splits):
        pattern[train, number] = 1
        pattern[test, number] = 2
    return np.unique(pattern, axis=0, return_inverse=True)[1].reshape(-1)


def permutable_atoms(splits: Sequence[Split], n_samples: int) -> np.ndarray:
    """The atoms; raises an error if no two rows are in the same atom."""
    atoms = atoms_of(splits, n_samples)
    if len(np.unique(atoms)) == n_samples:
        raise ValueError(
            'permute="within-folds" needs rows that all splits treat alike, but no two rows are '
            "tested together in the same splits (leave-one-out, many repeated or overlapping "
            "splits): there is nothing to permute. Use a single partition into folds, or "
            'permute="cosets", which moves the splits with the labels.'
        )
    return atoms


def movable_atoms(cv: Any, splits: Sequence[Split], n_samples: int) -> np.ndarray:
    """Number the sets of rows inside which any rearrangement keeps the *set* of splits.

    These are the atoms, and folds of a single row, all of which may change places: for
    leave-one-out one set of all rows, as for leave-p-out. Rows that are never tested are one atom.
    """
    if type(cv) is LeavePOut:
        return np.zeros(n_samples, dtype=int)
    single, untested = len(splits), len(splits) + 1
    fold = np.full(n_samples, untested)
    for number, (train, test) in enumerate(splits):
        if len(train) + len(test) != n_samples or np.any(fold[test] < untested):
            return atoms_of(splits, n_samples)
        fold[test] = number if len(test) > 1 else single
    return fold


# ---- exchanges by name ---------------------------------------------------------------------------


def make_exchange(
    kind: str | None,
    labels: np.ndarray,
    groups: np.ndarray | None,
    atoms: np.ndarray | None,
    classifier: bool,
    n_classes: int,
) -> Exchange:
    """The exchange with that name.

    `labels` numbers the distinct targets, `atoms` the sets of rows that permutations must not
    leave (the test folds, for permutations within folds; None for no limit).
    """
    n, kind = len(labels), kind or "within"
    if kind not in EXCHANGES:
        raise ValueError(
            f"exchange must be None or one of {', '.join(map(repr, EXCHANGES))}, got {kind!r} "
            "instead."
        )
    if kind in ("within", "rows"):
        return LabelExchange(labels, blocks_of(n, groups if kind == "within" else None, atoms))
    if kind == "shift":
        blocks = blocks_of(n, groups, atoms)
        return TurnExchange(n, blocks, list(map(len, blocks)))
    if groups is None and (kind != "sign" or classifier):
        raise ValueError(
            f"exchange={kind!r} needs groups, got None instead: they define which rows "
            f"{UNITS[kind]}."
        )
    unit_of_row = np.arange(n) if groups is None else numbered(groups)
    units = blocks_of(n, unit_of_row)
    for number, rows in enumerate(units):
        if atoms is not None and len(np.unique(atoms[rows])) > 1:
            raise ValueError(
                f'permute="within-folds" with exchange={kind!r} needs every group inside one test '
                f"fold, but group number {number} is in several: permuting its labels would change "
                "the class counts of the folds. Use a splitter that keeps groups together "
                '(GroupKFold, StratifiedGroupKFold), or permute="resplit".'
            )
    if kind == "whole":
        return _whole(labels, units, atoms)
    if kind == "whole-unequal":
        return _whole_unequal(labels, units, atoms)
    if classifier:
        units = _pairs(labels, units, n_classes)
    return TurnExchange(n, units, [2] * len(units), signs=not classifier)


def _whole(labels: np.ndarray, units: list[np.ndarray], atoms: np.ndarray | None) -> LabelExchange:
    sizes = np.array([len(rows) for rows in units])
    places = None if atoms is None else atoms[[rows[0] for rows in units]]
    blocks = blocks_of(len(units), sizes, places)
    alone = sum(len(block) == 1 for block in blocks)
    where = "" if atoms is None else " in the same fold"
    if alone == len(units):
        raise ValueError(
            f'exchange="whole" needs groups of equal size that can be exchanged{where}, got sizes '
            f"{sorted(sizes.tolist())} instead: groups of unequal size are not exchangeable. Give "
            "all groups the same number of rows (drop some at random, or average them to one row "
            "each). "
            'Or use exchange="whole-unequal" if every group has one label and the group sizes are '
            'unrelated to the labels; or exchange="within" if labels vary inside groups.'
        )
    if alone > len(units) / 4:
        warnings.warn(
            f'exchange="whole": {alone} of {len(units)} groups have a size that no other group has'
            f"{where}, and keep their labels. The test is valid, but less powerful than it could "
            "be: give all groups the same number of rows.",
            ValidityWarning,
            stacklevel=depth_inside_package(),
        )
    return LabelExchange(first_seen([tuple(labels[rows]) for rows in units]), blocks, units)


def _whole_unequal(
    labels: np.ndarray, units: list[np.ndarray], atoms: np.ndarray | None
) -> LabelExchange:
    if any(len(np.unique(labels[rows])) > 1 for rows in units):
        raise ValueError(
            'exchange="whole-unequal" needs groups whose rows all have the same label, got a group '
            'with several labels instead. Use exchange="whole" (groups of equal size exchange '
            'their labels in order) or exchange="within".'
        )
    own = labels[[rows[0] for rows in units]]
    if _tied(np.array([len(rows) for rows in units], dtype=float), own):
        warnings.warn(
            'exchange="whole-unequal": the groups of one label have more rows than those of '
            "another. The test then also detects the sizes: a small p-value need not mean that the "
            'features are informative. Use exchange="whole", which exchanges labels only among '
            "groups of equal size.",
            ValidityWarning,
            stacklevel=depth_inside_package(),
        )
    places = None if atoms is None else atoms[[rows[0] for rows in units]]
    return LabelExchange(own, blocks_of(len(units), places), units)


def _tied(sizes: np.ndarray, labels: np.ndarray) -> bool:
    """Whether sizes differ between labels more than in 95 % of 199 random permutations."""

    def between(sizes: np.ndarray) -> float:
        sums, counts = np.bincount(labels, sizes), np.bincount(labels)
        return float(np.sum(sums[counts > 0] ** 2 / counts[counts > 0]))

    rng, observed = np.random.RandomState(0), between(sizes)
    as_large = sum(between(rng.permutation(sizes)) >= observed - 1e-9 for _ in range(199))
    return (1 + as_large) / 200 <= TIED


def _pairs(labels: np.ndarray, units: list[np.ndarray], n_classes: int) -> list[np.ndarray]:
    """Units with the rows of one class before as many of the other, so that half a turn swaps
    them.
    """
    if n_classes != 2:
        raise ValueError(
            f'exchange="sign" needs two classes, got {n_classes} instead: a flip swaps the two '
            'classes inside a pair. Use exchange="within".'
        )
    pairs = []
    for number, rows in enumerate(units):
        first, second = rows[labels[rows] == 0], rows[labels[rows] == 1]
        if len(first) != len(second):
            raise ValueError(
                'exchange="sign" needs the same number of rows of both classes in every group, '
                f"got {len(first)} and {len(second)} in group number {number}: otherwise a flip "
                'would change the class sizes. Use exchange="within".'
            )
        pairs.append(np.concatenate([first, second]))
    return pairs
