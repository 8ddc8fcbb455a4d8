"""How often does a permutation test reject pure noise, and do few placements of the folds matter?

All with features that know nothing of the labels. Labels that alternate with unshuffled folds (n =
12 to 40), and labels in random order with folds stratified on them: the share of p-values at or
below 0.05 when labels and folds move together, and when labels move over fixed folds (which
scikit-learn's function does for `KFold` and for a list of splits). Then p-values of twenty
placements beside those of as many placements as labellings: the root mean square of their
difference, and of the difference of two independent runs of the latter.

``--sets`` says how many data sets each part has; the standard error of a rejection rate is printed.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import common
import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from fitonce import KernelFisherDiscriminant
from fitonce.inference import permutation_test_score, placements, validity

PERMUTATIONS, FEATURES, FOLDS, LEVEL = 99, 2, 5, 0.05
SIZES = (12, 20, 24, 40)
FOLLOWS_PRIORS = KernelFisherDiscriminant("linear", alpha=1000.0)
PLAIN = KernelFisherDiscriminant("linear", alpha=1.0)


def pvalue(model: Any, X: np.ndarray, y: np.ndarray, seed: int, **options: Any) -> float:
    result = permutation_test_score(
        model, X, y, n_permutations=PERMUTATIONS, random_state=seed, exact=False, **options
    )
    return float(result.pvalue)


def designed(n: int, sets: int, permute: str) -> float:
    """Alternating labels, folds in the order of the rows: the share of rejections."""
    found = []
    for number in range(sets):
        X = np.random.default_rng(number).normal(size=(n, FEATURES))
        options = {"cv": KFold(FOLDS), "permute": permute}
        found.append(pvalue(FOLLOWS_PRIORS, X, np.arange(n) % 2, number, **options))
    return float(np.mean(np.array(found) <= LEVEL))


def stratified(n: int, sets: int, permute: str) -> float:
    """Folds stratified on the observed labels: the share of rejections.

    Free permutations over such folds are refused; here the refusal is switched off.
    """
    known, found = validity.more_even_than_chance, []
    validity.more_even_than_chance = lambda *arguments: False
    try:
        for number in range(sets):
            rng = np.random.default_rng(20_000 + number)
            X, y = rng.normal(size=(n, FEATURES)), rng.permutation(np.arange(n) % 2)
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=number)
            cv = list(folds.split(X, y)) if permute == "free" else folds
            found.append(pvalue(FOLLOWS_PRIORS, X, y, number, cv=cv, permute=permute))
    finally:
        validity.more_even_than_chance = known
    return float(np.mean(np.array(found) <= LEVEL))


def noise(number: int) -> tuple[np.ndarray, np.ndarray]:
    """24 rows, classes of 8 and 16 in random order."""
    rng = np.random.default_rng(10_000 + number)
    return rng.normal(size=(24, 3)), rng.permutation((np.arange(24) < 8).astype(int))


def few_and_many(sets: int) -> dict[str, float]:
    """Twenty placements beside a hundred, for stratified folds."""
    few, many, again = [], [], []
    least = placements.LEAST
    for number in range(sets):
        X, y = noise(number)
        few.append(pvalue(PLAIN, X, y, 3 * number, cv=StratifiedKFold(4)))
        try:
            placements.LEAST = PERMUTATIONS + 1
            many.append(pvalue(PLAIN, X, y, 3 * number + 1, cv=StratifiedKFold(4)))
            again.append(pvalue(PLAIN, X, y, 3 * number + 2, cv=StratifiedKFold(4)))
        finally:
            placements.LEAST = least

    def apart(a: list[float], b: list[float]) -> float:
        return float(np.sqrt(np.mean((np.array(a) - np.array(b)) ** 2)))

    return {
        "rejected, twenty placements": float(np.mean(np.array(few) <= LEVEL)),
        "rejected, a placement each": float(np.mean(np.array(many) <= LEVEL)),
        "twenty beside a placement each": apart(few, many),
        "two runs of a placement each": apart(many, again),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=500)
    sets = parser.parse_args().sets
    warnings.simplefilter("ignore")
    rates: dict[str, dict[str, float]] = {}
    for number, n in enumerate(SIZES):
        rates[str(n)] = {permute: designed(n, sets, permute) for permute in ("cosets", "free")}
        common.progress(number + 1, len(SIZES), "sizes")
    even = {
        str(n): {permute: stratified(n, sets, permute) for permute in ("cosets", "free")}
        for n in SIZES
    }
    agreement = few_and_many(sets)
    error = float(np.sqrt(LEVEL * (1 - LEVEL) / sets))
    common.write(
        __file__,
        {
            "sets": sets,
            "permutations": PERMUTATIONS,
            "level": LEVEL,
            "standard error": error,
            "alternating labels": rates,
            "stratified folds": even,
            "placements": agreement,
        },
    )
    for name, value in agreement.items():
        print(f"{name:32s} {value:.3f}")
    print(f"share of p ≤ {LEVEL} (standard error {error:.3f} at the level)")
    for what, shares in (("alternating", rates), ("stratified", even)):
        for size, rate in shares.items():
            print(f"    {what}, n = {size}: together {rate['cosets']:.3f}, free {rate['free']:.3f}")


if __name__ == "__main__":
    main()
