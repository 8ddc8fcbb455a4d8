"""Figure 1 of Treder (2019), remade: how much sooner do cross-validation and permutation tests
arrive than by retraining?

The paper's generator: class centroids on the unit hypersphere, one Wishart covariance for all
classes, equal class sizes; 10 folds; n = 100 and 1000, 5 and 10 classes. Every repeat times all
ways on the same data and folds, in processor seconds:

- from the features on: Fisher's discriminant on p×p scatter matrices trained again for every fold
  (bare NumPy, as the paper's standard approach), algorithm 1 in bare NumPy, and one call of
  fitonce with its checks;
- from a precomputed kernel matrix on: the kernel discriminant of fitonce fitted again for every
  fold, and one call of fitonce.

Permutation tests have 10 and 100 permutations as printed, and 1000. Retraining is timed on `timed`
labellings of each repeat and multiplied by their number; how far that is from all of them is
measured at one setting. Leave-one-out is timed beside the paper's ten folds.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import shared
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut, StratifiedKFold

from fitonce import KernelFisherDiscriminant, cross_val_predict, permutation_test_score

FULL = {
    "sizes": [100, 1000],
    "features": [10, 32, 100, 316, 1000],
    "classes": [5, 10],
    "permuted_features": [100, 1000],
    "permutations": [10, 100, 1000],
    "timed": 1,
    "left_out_fits": 20,
    "repeats": 3,
    "mu": 1.0,
}
QUICK = {
    "sizes": [60],
    "features": [10, 40],
    "classes": [5],
    "permuted_features": [40],
    "permutations": [5, 10],
    "left_out_fits": 3,
    "repeats": 2,
}
COMPARISONS = {
    "features, bare": ("retrained on features", "algorithm 1, bare"),
    "features, fitonce": ("retrained on features", "fitonce on features"),
    "kernel, fitonce": ("retrained on the kernel", "fitonce on the kernel"),
}
Folds = list[tuple[np.ndarray, np.ndarray]]


def generate(n: int, n_features: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a multivariate normal about centroids on the unit hypersphere, with a Wishart
    covariance; labels of equal shares.
    """
    rng = np.random.default_rng(seed)
    centroids = rng.normal(size=(n_classes, n_features))
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    # factor @ factor.T is Wishart, scaled
    factor = rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    y = rng.permutation(np.arange(n) % n_classes)
    return centroids[y] + rng.normal(size=(n, n_features)) @ factor.T, y


def seconds(task: Callable[[], Any]) -> float:
    """Processor seconds; a short task is done five times."""
    first = shared.seconds(task)
    return first if first > 0.01 else min(shared.seconds(task) for _ in range(5))


# ---- the ways ------------------------------------------------------------------------------------


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
    return nearest(X_test @ W, means @ W, counts)


def nearest(Z: np.ndarray, centroids: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The LDA rule for projections with Wᵀ(S_w + μI)W = I."""
    dof = counts.sum() - len(counts)
    scores = dof * (Z @ centroids.T - 0.5 * np.sum(centroids**2, axis=1))
    return np.argmax(scores + np.log(counts / counts.sum()), axis=1)


def retrain(X: np.ndarray, y: np.ndarray, folds: Folds, mu: float) -> np.ndarray:
    labels, c = np.empty(len(y), dtype=int), int(y.max()) + 1
    for train, test in folds:
        labels[test] = fisher_on_features(X[train], y[train], X[test], c, mu)
    return labels


def hat_matrix(X: np.ndarray, mu: float) -> np.ndarray:
    """With a free bias: 1/n + G(G + μI)⁻¹, or from p×p where that is smaller."""
    Z, n = X - X.mean(axis=0), len(X)
    if Z.shape[1] < n:
        inverse = np.linalg.inv(Z.T @ Z + mu * np.eye(Z.shape[1]))
        return np.asarray(1 / n + Z @ inverse @ Z.T)
    G = Z @ Z.T
    return np.asarray(1 / n + G @ np.linalg.inv(G + mu * np.eye(n)))


def algorithm_1(
    H: np.ndarray, blocks: list[np.ndarray], labellings: list[np.ndarray], folds: Folds
) -> np.ndarray:
    """Labels (B, n) by both steps, a loop over labellings and folds as in the paper; `blocks` are
    the inverses of I - H on the test sets.
    """
    predicted = np.empty((len(labellings), len(H)), dtype=int)
    for number, y in enumerate(labellings):
        Y = np.eye(int(y.max()) + 1)[y]
        residual = Y - H @ Y
        E = Y.T @ residual
        for (train, test), block in zip(folds, blocks, strict=True):
            rho = block @ residual[test]
            counts = np.bincount(y[train], minlength=Y.shape[1])
            A = np.diag(counts) - (E - residual[test].T @ rho)
            a2, theta = scipy.linalg.eigh(A, np.diag(counts), check_finite=False)
            a2, theta = a2[:-1], theta[:, :-1]  # the constant has a² = 1
            axes = theta / np.sqrt(a2 * (1 - a2))
            predicted[number, test] = nearest((Y[test] - rho) @ axes, a2 * axes, counts)
    return predicted


def blocks_of(H: np.ndarray, folds: Folds) -> list[np.ndarray]:
    return [np.linalg.inv(np.eye(len(test)) - H[np.ix_(test, test)]) for _, test in folds]


def bare(X: np.ndarray, labellings: list[np.ndarray], folds: Folds, mu: float) -> np.ndarray:
    H = hat_matrix(X, mu)
    return algorithm_1(H, blocks_of(H, folds), labellings, folds)


def refit(model: Any, K: np.ndarray, y: np.ndarray, folds: Folds) -> None:
    for train, test in folds:
        fitted = clone(model).fit(K[np.ix_(train, train)], y[train])
        fitted.predict(K[np.ix_(test, train)])


# ---- what is timed -------------------------------------------------------------------------------


def models(mu: float) -> tuple[Any, Any]:
    return tuple(
        KernelFisherDiscriminant(kernel, alpha=mu, calibration=None)
        for kernel in ("linear", "precomputed")
    )


def folds_of(X: np.ndarray, y: np.ndarray, repeat: int) -> Folds:
    return list(StratifiedKFold(10, shuffle=True, random_state=repeat).split(X, y))


def cross_validation(n: int, p: int, c: int, repeat: int, mu: float) -> dict[str, float]:
    X, y = generate(n, p, c, repeat)
    folds, K = folds_of(X, y, repeat), X @ X.T
    linear, precomputed = models(mu)
    labels: list[np.ndarray] = []
    spent = {
        "retrained on features": seconds(lambda: labels.append(retrain(X, y, folds, mu))),
        "algorithm 1, bare": seconds(lambda: labels.append(bare(X, [y], folds, mu)[0])),
        "fitonce on features": seconds(
            lambda: labels.append(cross_val_predict(linear, X, y, cv=folds))
        ),
        "retrained on the kernel": seconds(lambda: refit(precomputed, K, y, folds)),
        "fitonce on the kernel": seconds(lambda: cross_val_predict(precomputed, K, y, cv=folds)),
    }
    return {**spent, "agree": min(float(np.mean(labels[0] == other)) for other in labels)}


def permutations(
    n: int, p: int, c: int, repeat: int, settings: dict[str, Any]
) -> dict[str, dict[str, float]]:
    """Seconds by the number of permutations; the observed labelling is one more."""
    mu, timed = settings["mu"], settings["timed"]
    X, y = generate(n, p, c, repeat)
    cv = StratifiedKFold(10, shuffle=True, random_state=repeat)
    folds, K, rng = folds_of(X, y, repeat), X @ X.T, np.random.default_rng(repeat)
    labellings = [y, *(rng.permutation(y) for _ in range(max(settings["permutations"])))]
    linear, precomputed = models(mu)
    on_features, on_kernel = (
        sum(seconds(lambda y=y, work=work: work(y)) for y in labellings[1 : timed + 1]) / timed
        for work in (lambda y: retrain(X, y, folds, mu), lambda y: refit(precomputed, K, y, folds))
    )
    H = hat_matrix(X, mu)
    once = seconds(lambda: blocks_of(hat_matrix(X, mu), folds))
    each = seconds(lambda: algorithm_1(H, blocks_of(H, folds), labellings[:10], folds)) / 10
    found = {}
    for count in settings["permutations"]:
        what = {"cv": cv, "n_permutations": count, "random_state": repeat}
        test = partial(permutation_test_score, y=y, **what)
        found[str(count)] = {
            "retrained on features": on_features * (count + 1),
            "algorithm 1, bare": once + each * (count + 1),
            "fitonce on features": seconds(partial(test, linear, X)),
            "retrained on the kernel": on_kernel * (count + 1),
            "fitonce on the kernel": seconds(partial(test, precomputed, K)),
        }
    return found


def leave_one_out(n: int, repeat: int, settings: dict[str, Any]) -> dict[str, float]:
    """On the kernel matrix; a few of the n fits are timed and multiplied."""
    X, y = generate(n, 100, 5, repeat)
    K, (_, precomputed) = X @ X.T, models(settings["mu"])
    some = list(LeaveOneOut().split(K))[: settings["left_out_fits"]]
    return {
        "retrained on the kernel": seconds(lambda: refit(precomputed, K, y, some)) * n / len(some),
        "fitonce on the kernel": seconds(
            lambda: cross_val_predict(precomputed, K, y, cv=LeaveOneOut())
        ),
    }


def extrapolation(settings: dict[str, Any]) -> float:
    """Seconds of retraining all of 11 labellings over 11 times those of one, on features."""
    n, p = settings["sizes"][0], settings["permuted_features"][0]
    X, y = generate(n, p, settings["classes"][0], 0)
    folds, rng = folds_of(X, y, 0), np.random.default_rng(0)
    labellings = [y, *(rng.permutation(y) for _ in range(10))]
    began = time.process_time()
    for labels in labellings:
        retrain(X, labels, folds, settings["mu"])
    every = time.process_time() - began
    return every / (11 * seconds(lambda: retrain(X, labellings[1], folds, settings["mu"])))


# ---- summary and figure --------------------------------------------------------------------------


def ratios(cells: list[dict[str, float]], comparison: str) -> list[float]:
    slow, fast = COMPARISONS[comparison]
    return [cell[slow] / cell[fast] for cell in cells]


def rows_of(cells: dict[str, Any], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for every setting and comparison, with the speed-up of every repeat."""
    repeats, found = range(settings["repeats"]), []
    common = list(itertools.product(settings["sizes"], settings["classes"], COMPARISONS))
    for n, c, comparison in common:
        for p in settings["features"]:
            parts = [cells[f"folds {n} {p} {c} {repeat}"] for repeat in repeats]
            row = {"kind": "cross-validation", "n": n, "classes": c, "features": p}
            found.append({**row, "comparison": comparison, "speed_up": ratios(parts, comparison)})
        for p, count in itertools.product(settings["permuted_features"], settings["permutations"]):
            parts = [cells[f"labels {n} {p} {c} {repeat}"][str(count)] for repeat in repeats]
            row = {"kind": "permutations", "n": n, "classes": c, "features": p}
            row |= {"permutations": count, "comparison": comparison}
            found.append({**row, "speed_up": ratios(parts, comparison)})
    return found


def median_of(rows: list[dict[str, Any]], **given: Any) -> list[tuple[int, float]]:
    """(features or permutations, median speed-up) of the rows with these settings."""
    axis = "features" if given["kind"] == "cross-validation" else "permutations"
    chosen = [row for row in rows if all(row[key] == value for key, value in given.items())]
    return sorted((row[axis], float(np.median(row["speed_up"]))) for row in chosen)


def draw(plt: Any, rows: list[dict[str, Any]], settings: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(
        2, 3, figsize=(12, 6.8), sharey="row", sharex="row", layout="constrained"
    )
    titles = {
        "features, bare": "retraining on features / algorithm 1,\nboth in bare NumPy",
        "features, fitonce": "retraining on features (bare NumPy) /\none call of fitonce",
        "kernel, fitonce": "kernel matrix given: fitting again /\none call of fitonce",
    }
    colors = dict(zip(settings["sizes"], (shared.BLUE, shared.ORANGE), strict=False))
    for (top, bottom), (comparison, title) in zip(axes.T, titles.items(), strict=True):
        for n, c in itertools.product(settings["sizes"], settings["classes"]):
            style = {"color": colors[n], "marker": "o", "markersize": 4}
            style["linestyle"] = "-" if c == settings["classes"][0] else "--"
            given = {"n": n, "classes": c, "comparison": comparison}
            points = median_of(rows, kind="cross-validation", **given)
            top.plot(*zip(*points, strict=True), label=f"n = {n}, {c} classes", **style)
            for p, fill in zip(settings["permuted_features"], ("full", "none"), strict=False):
                points = median_of(rows, kind="permutations", features=p, **given)
                label = f"n = {n}, {c} classes, p = {p}"
                bottom.plot(*zip(*points, strict=True), label=label, fillstyle=fill, **style)
        top.set_title(title)
        top.set_xlabel("features p, 10-fold cross-validation")
        bottom.set_xlabel("permutations, 10-fold permutation test")
        for panel in (top, bottom):
            panel.set(xscale="log", yscale="log")
            panel.axhline(1.0, color=shared.GREY, linewidth=0.8)
    for panel in axes[:, 0]:
        panel.set_ylabel("times faster (median)")
    axes[0, 2].legend(fontsize=7.5)
    axes[1, 2].legend(fontsize=7, loc="lower right")
    return figure


def main() -> None:
    run = shared.start(__file__, __doc__, FULL, QUICK)
    settings = run.settings
    three = settings["sizes"], settings["classes"], range(settings["repeats"])
    folds = [
        ("folds", n, p, c, repeat)
        for p in settings["features"]
        for n, c, repeat in itertools.product(*three)
    ]
    labels = [
        ("labels", n, p, c, repeat)
        for p in settings["permuted_features"]
        for n, c, repeat in itertools.product(*three)
    ]
    single = [("single", n, repeat) for n in settings["sizes"] for repeat in three[2]]

    def cell(kind: str, *given: int) -> Any:
        if kind == "folds":
            return cross_validation(*given, settings["mu"])
        if kind == "labels":
            return permutations(*given, settings)
        return leave_one_out(*given, settings)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cross_validation(60, 10, 5, 0, settings["mu"])  # first calls pay for imports and caches
        run.each([*folds, *labels, *single], cell)
        run.each(["extrapolation"], lambda _: extrapolation(settings))
    rows = rows_of(run.cells, settings)
    alone = {
        str(n): float(
            np.median(
                [
                    ratios([run.cells[f"single {n} {repeat}"]], "kernel, fitonce")[0]
                    for repeat in three[2]
                ]
            )
        )
        for n in settings["sizes"]
    }
    highest = {
        f"{kind}; {comparison}": max(
            float(np.median(row["speed_up"]))
            for row in rows
            if row["kind"] == kind and row["comparison"] == comparison
        )
        for kind in ("cross-validation", "permutations")
        for comparison in COMPARISONS
    }
    run.save(
        rows=rows,
        highest=highest,
        leave_one_out=alone,
        literal_over_extrapolated=run.cells["extrapolation"],
        smallest_agreement_of_labels=min(
            value["agree"] for key, value in run.cells.items() if key.startswith("folds")
        ),
    )
    run.figure(draw, rows, settings)


if __name__ == "__main__":
    main()
