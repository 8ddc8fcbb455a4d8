"""The analyses of variance of Treder (2019), section 2.5, on the logarithm of the speed-up.

Two data sets. (a) The replicates of our figure 1 (``benchmarks/permutation_figure1.py``), where
both ways work on the same kernel matrix. (b) A smaller factorial run here in which retraining is
what the paper's was: Fisher's discriminant on the features, S_b W = (S_w + μI) W Λ with p×p scatter
matrices, solved again on every training set. Full factorial models, all factors as categories; F
against the scatter of replicates within cells.

The paper does not print its degrees of freedom or model, so only the pattern of the F values can be
compared, not their size.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.stats
import shared
from sklearn.model_selection import StratifiedKFold

from fitonce import KernelFisherDiscriminant, cross_val_predict

sys.path.insert(0, str(shared.HERE.parent))
from permutation_figure1 import generate

FIGURE1 = shared.HERE.parent / "results" / "permutation_figure1.json"
PUBLISHED = {
    "cross-validation": {
        "n": 1023.97,
        "features": 38270.22,
        "classes": "p = .15",
        "n × features": 125.74,
    },
    "permutations": {"n": 366.2, "permutations": 27.4, "features": 16970.31, "n × features": 24.93},
}
FULL = {
    "sizes": [100, 1000],
    "features": [10, 32, 100, 316, 1000],
    "classes": [5, 10],
    "repeats": 5,
    "mu": 1.0,
}
QUICK = {"sizes": [60, 120], "features": [10, 40], "repeats": 2}


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


def table_of(
    rows: list[dict[str, Any]], factors: list[str], value: Callable[[dict[str, float]], float]
) -> np.ndarray:
    """Replicates as an array with one axis for each factor, in the order of its levels."""
    levels = [sorted({row[factor] for row in rows}) for factor in factors]
    by_cell = {
        tuple(row[factor] for factor in factors): [value(run) for run in row["runs"]]
        for row in rows
    }
    return np.array([by_cell[cell] for cell in itertools.product(*levels)]).reshape(
        *(len(level) for level in levels), -1
    )


def log_speed_up(run: dict[str, float]) -> float:
    return float(np.log(run["retrained"] / run["direct"]))


# ---- (b): retraining on features -----------------------------------------------------------------


def fisher_on_features(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, n_classes: int, mu: float
) -> np.ndarray:
    """Labels by S_b W = (S_w + μI) W Λ on the features, Wᵀ(S_w + μI)W = I, and the LDA rule in that
    space.
    """
    counts = np.bincount(y, minlength=n_classes)
    means = np.stack([X[y == label].mean(axis=0) for label in range(n_classes)])
    within = X - means[y]
    between = np.sqrt(counts)[:, None] * (means - X.mean(axis=0))
    S_w = within.T @ within
    S_w[np.diag_indices(len(S_w))] += mu
    p = len(S_w)
    keep = min(n_classes - 1, p)
    _, W = scipy.linalg.eigh(
        between.T @ between, S_w, subset_by_index=[p - keep, p - 1], check_finite=False
    )
    Z, centroids = X_test @ W, means @ W
    dof = len(y) - n_classes
    scores = dof * (Z @ centroids.T - 0.5 * np.sum(centroids**2, axis=1)) + np.log(counts / len(y))
    return np.argmax(scores, axis=1)


def one_run(n: int, p: int, c: int, repeat: int, mu: float) -> dict[str, float]:
    """Seconds of 10-fold cross-validation, directly and by retraining on the same data and folds,
    and the labels they agree on.
    """
    X, y = generate(n, p, c, repeat)
    folds = list(StratifiedKFold(min(10, n // c), shuffle=True, random_state=repeat).split(X, y))
    model = KernelFisherDiscriminant("linear", alpha=mu, calibration=None)
    direct: list[np.ndarray] = []
    direct_seconds = shared.seconds(lambda: direct.append(cross_val_predict(model, X, y, cv=folds)))
    retrained = np.empty(n, dtype=int)

    def retrain() -> None:
        for train, test in folds:
            retrained[test] = fisher_on_features(X[train], y[train], X[test], c, mu)

    return {
        "direct": direct_seconds,
        "retrained": shared.seconds(retrain),
        "agree": float(np.mean(direct[0] == retrained)),
    }


def draw(plt: Any, rows: list[dict[str, Any]]) -> Any:
    figure, axes = plt.subplots(figsize=(5.6, 4), layout="constrained")
    styles = itertools.product(
        sorted({row["n"] for row in rows}), sorted({row["classes"] for row in rows})
    )
    for (n, c), color in zip(
        styles, (shared.BLUE, shared.PURPLE, shared.ORANGE, shared.RED), strict=False
    ):
        chosen = sorted(
            (row["features"], np.median([run["retrained"] / run["direct"] for run in row["runs"]]))
            for row in rows
            if (row["n"], row["classes"]) == (n, c)
        )
        axes.loglog(
            *zip(*chosen, strict=True),
            color=color,
            marker="o",
            markersize=4,
            label=f"n = {n}, {c} classes",
        )
    axes.axhline(1.0, color=shared.GREY, linewidth=0.8)
    axes.set(
        xlabel="features",
        ylabel="retraining time / direct time",
        title="10-fold cross-validation, retraining on the features",
    )
    axes.legend(fontsize=8)
    return figure


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    keys = list(
        itertools.product(
            settings["sizes"], settings["features"], settings["classes"], range(settings["repeats"])
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one_run(60, 10, 5, 0, settings["mu"])  # first calls pay for imports and caches
        run.each(keys, lambda n, p, c, repeat: one_run(n, p, c, repeat, settings["mu"]))
    rows = [
        {
            "n": n,
            "features": p,
            "classes": c,
            "runs": [run.cells[f"{n} {p} {c} {repeat}"] for repeat in range(settings["repeats"])],
        }
        for n, p, c in itertools.product(
            settings["sizes"], settings["features"], settings["classes"]
        )
    ]
    committed = json.loads(FIGURE1.read_text(encoding="utf-8"))["rows"]
    folds = [row for row in committed if row["kind"] == "cross-validation"]
    tests = [row for row in committed if row["kind"] == "permutations"]
    printed = [row for row in tests if row["permutations"] <= 100]  # the paper has 10 and 100
    three, four = ["n", "features", "classes"], ["n", "features", "classes", "permutations"]
    analyses = {
        "cross-validation, same kernel matrix": anova(table_of(folds, three, log_speed_up), three),
        "cross-validation, retraining on the features": anova(
            table_of(rows, three, log_speed_up), three
        ),
        "permutations, same kernel matrix": anova(table_of(printed, four, log_speed_up), four),
    }
    medians = [
        float(np.median([cell["retrained"] / cell["direct"] for cell in row["runs"]]))
        for row in rows
    ]
    run.save(
        published_F=PUBLISHED,
        analyses=analyses,
        speed_up_on_features={
            f"{row['n']} {row['features']} {row['classes']}": value
            for row, value in zip(rows, medians, strict=True)
        },
        smallest_agreement_of_labels=min(cell["agree"] for cell in run.cells.values()),
    )
    run.figure(draw, rows)
    for title, effects in analyses.items():
        print(title)
        for effect, row in effects.items():
            print(
                f"   {effect:40s} F({row['df'][0]}, {row['df'][1]}) = {row['F']:10.2f}   p = "
                f"{row['p']:.2g}"
            )
    agreement = run.derived["smallest_agreement_of_labels"]
    print(
        f"speed-up over retraining on features: {min(medians):.1f} … {max(medians):.0f}; labels "
        f"agree on {agreement:.2%} or more"
    )


if __name__ == "__main__":
    main()
