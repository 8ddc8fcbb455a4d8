"""Exchanges by name, and the conditions for exchanging groups of rows as units."""

from __future__ import annotations

import warnings

import numpy as np

from ..core.numerical_warnings import depth_inside_package
from .exchange import (
    Exchange,
    LabelExchange,
    ShiftExchange,
    SignExchange,
    ValidityWarning,
    blocks_of,
    first_seen,
    numbered,
)

EXCHANGES = ("within", "rows", "whole", "whole-unequal", "sign", "shift")
UNITS = {
    "whole": "are exchanged together as one unit",
    "whole-unequal": "are exchanged together as one unit",
    "sign": "form a pair whose labels are swapped",
}
TIED = 0.05  # warn if sizes differ between labels at this level


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
        return ShiftExchange(n, blocks_of(n, groups, atoms))
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
    partner = _partners(labels, units, n_classes) if classifier else None
    return SignExchange(unit_of_row, len(units), partner)


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


def _partners(labels: np.ndarray, units: list[np.ndarray], n_classes: int) -> np.ndarray:
    """For every row, the row of its unit whose label it takes if the unit flips."""
    if n_classes != 2:
        raise ValueError(
            f'exchange="sign" needs two classes, got {n_classes} instead: a flip swaps the two '
            'classes inside a pair. Use exchange="within".'
        )
    partner = np.arange(len(labels))
    for number, rows in enumerate(units):
        first, second = rows[labels[rows] == 0], rows[labels[rows] == 1]
        if len(first) != len(second):
            raise ValueError(
                'exchange="sign" needs the same number of rows of both classes in every group, '
                f"got {len(first)} and {len(second)} in group number {number}: otherwise a flip "
                'would change the class sizes. Use exchange="within".'
            )
        partner[first], partner[second] = second, first
    return partner
