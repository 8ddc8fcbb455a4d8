"""The analyses of variance of Treder (2019), section 2.5, on the logarithm of the speed-up of every
repeat of our figure 1 (``treder2019_figure1.py``), for each of its three comparisons.

Full factorial models, all factors as categories; F against the scatter of repeats within cells.
The paper does not print its degrees of freedom or model, so only the pattern of the F values can be
compared, not their size.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import scipy.stats
import shared
from treder2019_figure1 import COMPARISONS

FIGURE1 = shared.RESULTS / "treder2019_figure1.json"
PUBLISHED = {
    "cross-validation": {
        "n": 1023.97,
        "features": 38270.22,
        "classes": "p = .15",
        "n × features": 125.74,
    },
    "permutations": {"n": 366.2, "permutations": 27.4, "features": 16970.31, "n × features": 24.93},
}
FULL: dict[str, Any] = {"permutations": [10, 100]}  # as in the paper
QUICK: dict[str, Any] = {}


def anova(values: np.ndarray, factors: list[str]) -> dict[str, Any]:
    """Balanced full factorial analysis of variance of values (levels of factor 1, levels of factor
    2, …, replicates).

    The sum of squares of an effect is that of its term in the decomposition of the cell means:
    marginal mean over the other factors less the terms of all its proper subsets.
    """
    n_replicates = values.shape[-1]
    cells = values.mean(axis=-1)
    error_df = cells.size * (n_replicates - 1)
    error = float(np.sum((values - cells[..., None]) ** 2)) / error_df
    terms: dict[tuple[int, ...], np.ndarray] = {}
    found = {}
    for size in range(len(factors) + 1):
        for effect in itertools.combinations(range(len(factors)), size):
            others = tuple(axis for axis in range(len(factors)) if axis not in effect)
            marginal = cells.mean(axis=others, keepdims=True)
            terms[effect] = marginal - sum(
                term for subset, term in terms.items() if set(subset) < set(effect)
            )
            if effect:
                df = int(np.prod([cells.shape[axis] - 1 for axis in effect]))
                squares = n_replicates * float(
                    np.sum(np.broadcast_to(terms[effect], cells.shape) ** 2)
                )
                F = squares / df / error
                found[" × ".join(factors[axis] for axis in effect)] = {
                    "F": F,
                    "df": [df, error_df],
                    "p": float(scipy.stats.f.sf(F, df, error_df)),
                    "sum_of_squares": squares,
                }
    return found


def table_of(rows: list[dict[str, Any]], factors: list[str]) -> np.ndarray:
    """Logarithms of the speed-up, one axis for each factor in the order of its levels, then the
    repeats.
    """
    levels = [sorted({row[factor] for row in rows}) for factor in factors]
    by_cell = {tuple(row[factor] for factor in factors): row["speed_up"] for row in rows}
    return np.log([by_cell[cell] for cell in itertools.product(*levels)]).reshape(
        *(len(level) for level in levels), -1
    )


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    rows = json.loads(FIGURE1.read_text(encoding="utf-8"))["rows"]
    three = ["n", "features", "classes"]
    analyses = {}
    for comparison in COMPARISONS:
        chosen = [row for row in rows if row["comparison"] == comparison]
        folds = [row for row in chosen if row["kind"] == "cross-validation"]
        tests = [row for row in chosen if row.get("permutations") in run.settings["permutations"]]
        analyses[f"cross-validation; {comparison}"] = anova(table_of(folds, three), three)
        four = [*three, "permutations"]
        analyses[f"permutations; {comparison}"] = anova(table_of(tests, four), four)
    run.save(published_F=PUBLISHED, analyses=analyses)


if __name__ == "__main__":
    main()
