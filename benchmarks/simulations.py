"""Do scores, intervals, sets, p-values and importances mean what they say? Counts from simulations.

    python benchmarks/simulations.py                            # which there are
    python benchmarks/simulations.py confounds --jobs 16 --minutes 5   # goes on where it ended
    python benchmarks/simulations.py confounds --draws 50

A simulation is a list of settings, a number of draws, and what one draw of a setting gives. Draw s
of a setting has the seed [s, crc32 of the setting]. Every figure is a mean over draws with its
standard error (of a count, the binomial one). Blocks of draws are kept in
benchmarks/cache/simulations; the result, benchmarks/results/NAME.json, has a row for each setting.
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import common
import numpy as np
from scipy.stats import norm, t
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from fitonce import (
    KernelFisherDiscriminant,
    KernelRidge,
    LeastSquaresSVC,
    TunedPipeline,
    assess,
    column_importance,
    compare,
    cross_val_predict,
    permutation_test_score,
)
from fitonce.assessment.intervals import wilson
from fitonce.inference import validity

CACHE = Path(__file__).parent / "cache" / "simulations"
BLOCK, LEVEL = 20, 0.05
Rng = np.random.Generator
Setting = dict[str, Any]
Values = dict[str, float]
Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Simulation:
    """A setting may have its own number of draws, as a share of those of the simulation."""

    question: str
    draw: Callable[[Rng, int, Setting], Values]
    settings: Callable[[], Iterator[Setting]]
    draws: int


def grid(**values: tuple[Any, ...]) -> Callable[[], Iterator[Setting]]:
    """Every combination."""
    return lambda: (dict(zip(values, one, strict=True)) for one in product(*values.values()))


# ---- scores and their intervals ------------------------------------------------------------------

ALPHAS, FEATURES, NEW = [0.1, 1.0, 10.0, 100.0], 5, 4000


def of_scores() -> Iterator[Setting]:
    for tuned, kernel, effect, n in product(
        (False, True), ("linear", "rbf"), (0.0, 0.5), (30, 60, 100, 200)
    ):
        if not (tuned and n > 100):
            given = {"n": n, "kernel": kernel, "effect": effect, "tuned": tuned}
            given |= {"share of draws": 0.4} if tuned else {}
            yield given | {"kind": "labels", "share": 0.5}
            yield given | {"kind": "labels", "share": 0.3}
            yield given | {"kind": "numbers"}
    given = {"n": 60, "kernel": "linear", "tuned": False, "kind": "labels", "share": 0.3}
    yield given | {"effect": 0.0, "counts": True}
    yield given | {"effect": 0.5, "counts": True}
    for n_groups, kind in product((8, 20), ("labels", "numbers")):
        given = {"n": 6 * n_groups, "kernel": "linear", "effect": 0.5, "tuned": False}
        yield given | {"n_groups": n_groups, "kind": kind, "share": 0.5, "share of draws": 0.4}


def drawn(rng: Rng, n: int, given: Setting, groups: int = 0) -> Rows:
    """Rows and targets; rows of one group share an effect on every feature and on the target.

    Labels are drawn with a probability, so that their number varies as in a sample; with `counts`
    it is fixed.
    """
    X, own = rng.normal(size=(n, FEATURES)), np.zeros(n)
    if groups:
        of_row = np.arange(n) * groups // n
        X, own = X + rng.normal(size=(groups, FEATURES))[of_row], rng.normal(size=groups)[of_row]
    if given["kind"] == "numbers":
        return X, given["effect"] * (X[:, 0] + np.sin(2 * X[:, 1])) + rng.normal(size=n) + own
    order = rng.permutation(n) / n if given.get("counts") else rng.random(n)
    y = (order < given["share"]).astype(int)
    if groups:
        y = np.repeat(rng.permutation(groups) < given["share"] * groups, n // groups).astype(int)
    X[:, :2] += given["effect"] * (2 * y[:, None] - 1)
    return X, y


def model_of(given: Setting) -> Any:
    alpha: Any = ALPHAS if given.get("tuned") else 1.0
    gamma = {} if given["kernel"] == "linear" else {"gamma": 0.1}
    kind = LeastSquaresSVC if given["kind"] == "labels" else KernelRidge
    return kind(kernel=given["kernel"], alpha=alpha, **gamma)


def beyond(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """A loss of one's own: by how much a prediction is more than one off."""
    return np.maximum(np.abs(y - predicted) - 1.0, 0.0)


def truth(model: Any, X: np.ndarray, y: np.ndarray, kind: str) -> Values:
    """The scores of a fitted model on new rows."""
    predicted = model.predict(X)
    if kind == "numbers":
        mse = float(np.mean((y - predicted) ** 2))
        errors = {"mae": np.mean(np.abs(y - predicted)), "rmse": np.sqrt(mse)}
        return errors | {"r2": 1.0 - mse / np.var(y), "beyond": np.mean(beyond(y, predicted))}
    p = model.predict_proba(X)
    return {
        "accuracy": np.mean(predicted == y),
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
        "roc_auc": roc_auc_score(y, model.decision_function(X)),
        "log_loss": log_loss(y, p),
        "brier": np.mean((p[:, 1] - y) ** 2),
    }


def scores(rng: Rng, seed: int, given: Setting) -> Values:
    """Whether the 95 % interval of each score holds the truth; NaN without one."""
    groups = given.get("n_groups", 0)
    X, y = drawn(rng, given["n"], given, groups)
    while given["kind"] == "labels" and min(np.sum(y == 0), np.sum(y == 1)) < 3:
        X, y = drawn(rng, given["n"], given, groups)
    X_new, y_new = drawn(rng, NEW, given, NEW // 4 if groups else 0)
    model, of_row = model_of(given), np.arange(given["n"]) * groups // given["n"]
    of_row = of_row if groups else None  # temperatures are those of left-out groups
    true = truth(model.fit(X, y, groups=of_row), X_new, y_new, given["kind"])
    own = {"beyond": beyond} if given["kind"] == "numbers" else None
    options = {"permutations": 0, "random_state": seed, "losses": own, "groups": of_row}
    found = assess(model, X, y, **options).intervals
    return {
        name: float(found[name].low <= value <= found[name].high)
        if np.isfinite(found[name].low)
        else np.nan
        for name, value in true.items()
    }


def noise(rng: Rng, seed: int, given: Setting) -> Values:
    """The accuracy of noise, less that of the majority class."""
    y = np.repeat([0, 1], [given["few"], given["many"]])
    X = rng.normal(size=(len(y), FEATURES))
    model = LeastSquaresSVC(gamma=0.1, alpha=1e4, calibration=None)
    answer = assess(model, X, y, permutations=0, random_state=seed)
    return {"bias": answer.accuracy.value - answer.baseline_metrics["accuracy"]}


def comparisons(rng: Rng, seed: int, given: Setting) -> Values:
    """Whether any two of three parts of the features, of one law, are told apart."""

    def part(number: int) -> Any:
        own = slice(2 * number, 2 * number + 2)
        alpha: Any = ALPHAS if given["tuned"] else 1.0
        return LeastSquaresSVC(partial(of_columns, own=own), alpha=alpha, calibration=None)

    y = np.arange(given["n"]) % 2
    X = rng.normal(size=(given["n"], 6)) + given["effect"] * (2 * y[:, None] - 1)
    found = compare([part(k) for k in range(3)], None, X, y, repeats=3, random_state=seed)
    p = [difference.pvalue for difference in found.differences]
    return {"any of three pairs": float(min(p) <= LEVEL)}


def of_columns(A: np.ndarray, B: np.ndarray, own: slice) -> np.ndarray:
    return A[:, own] @ B[:, own].T


def columns(rng: Rng, seed: int, given: Setting) -> Values:
    """Shares of columns called important: without effect, any of those, and with effect."""
    X = rng.normal(size=(given["n"], 8))
    y = given["effect"] * X[:, :2].sum(axis=1) + rng.normal(size=given["n"])
    model = model_of({"kernel": given["kernel"], "kind": "numbers"}).fit(X, y)
    p = column_importance(model, X, y).pvalues
    none = p[2:] if given["effect"] else p
    found = {"without effect": np.mean(none <= LEVEL), "any": float(np.any(none <= LEVEL))}
    return found | ({"with effect": np.mean(p[:2] <= LEVEL)} if given["effect"] else {})


def partitions(rng: Rng, seed: int, given: Setting) -> Values:
    """Whether intervals of an accuracy hold that of the model of all rows, which is known: a linear
    rule cuts a normal law. Wilson's on one partition and on ten, the corrected t of Nadeau and
    Bengio on ten, and that of `assess`.
    """
    n, distance = given["n"], given["distance"]
    y, X = rng.permutation(np.arange(n) % 2), rng.normal(size=(n, 10))
    X[:, 0] += distance * (2 * y - 1)
    model = LeastSquaresSVC("linear", alpha=1.0).fit(X, y)
    b = float(model.decision_function(np.zeros((1, 10)))[0])
    w = model.decision_function(np.eye(10)) - b
    ends = (w[0] * distance + b, w[0] * distance - b) / np.linalg.norm(w)
    true, right = float(np.mean(norm.cdf(ends))), []
    for number in range(10):
        folds = list(StratifiedKFold(10, shuffle=True, random_state=10 * seed + number).split(X, y))
        held = cross_val_predict(model, X, y, cv=folds) == y
        right.append([held[test].mean() for _, test in folds])
    splits, means = np.ravel(right), np.mean(right, axis=1)
    error = np.sqrt((1 / len(splits) + 1 / 9) * np.var(splits, ddof=1))
    nested = assess(model, X, y, permutations=0, random_state=seed).intervals["accuracy"]
    found = {
        "Wilson": wilson(float(means[0]), n, 0.95),
        "Wilson, ten partitions": wilson(float(means.mean()), n, 0.95),
        "corrected t": t.interval(0.95, len(splits) - 1, splits.mean(), error),
        "assess": (nested.low, nested.high),
    }
    covers = {name: float(low <= true <= high) for name, (low, high) in found.items()}
    widths = {f"{name} width": min(h, 1.0) - max(low, 0.0) for name, (low, h) in found.items()}
    return covers | widths | {"accuracy": true}


# ---- intervals and sets of predictions -----------------------------------------------------------


def wave(rng: Rng, n: int) -> Rows:
    X = rng.uniform(-3.0, 3.0, size=(n, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def growing_noise(rng: Rng, n: int) -> Rows:
    X = rng.uniform(-3.0, 3.0, size=(n, 1))
    return X, X[:, 0] + (0.1 + 0.3 * np.abs(X[:, 0])) * rng.normal(size=n)


def heavy_tails(rng: Rng, n: int) -> Rows:
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] * X[:, 1] + 0.4 * rng.standard_t(3, size=n)


def many_features(rng: Rng, n: int) -> Rows:
    X = rng.normal(size=(n, 40))
    return X, X[:, :5].sum(axis=1) + rng.normal(size=n)


def friedman(rng: Rng, n: int) -> Rows:
    X = rng.uniform(size=(n, 10))
    y = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    return X, y + 10.0 * X[:, 3] + 5.0 * X[:, 4] + rng.normal(size=n)


@cache
def scaled(name: str) -> Rows:
    """A real set; the scale comes from all rows, which treats them alike."""
    loads = {"diabetes": load_diabetes, "wine": load_wine, "breast cancer": load_breast_cancer}
    X, y = loads[name](return_X_y=True)
    return StandardScaler().fit_transform(X), y


def of_set(name: str, rng: Rng, n: int) -> Rows:
    X, y = scaled(name)
    order = rng.permutation(len(X))[:n]
    return X[order], y[order]


LAWS: dict[str, Callable[[Rng, int], Rows]] = {
    "wave": wave,
    "growing noise": growing_noise,
    "heavy tails": heavy_tails,
    "many features": many_features,
    "friedman": friedman,
    **{name: partial(of_set, name) for name in ("diabetes", "wine", "breast cancer")},
}
EVEN = ("wave", "many features", "friedman")  # normal noise of constant variance
METHODS = ("jackknife+", "cv+", "full", "jackknife-minmax")


def covered(model: Any, X: np.ndarray, y: np.ndarray, method: str) -> float:
    """The share of new targets inside."""
    if isinstance(model, KernelRidge):
        low, high = model.predict_interval(X, 0.9, method).T
        return float(np.mean((low <= y) & (y <= high)))
    sets = model.predict_set(X, 0.9, method)
    return float(np.mean(sets[np.arange(len(y)), np.searchsorted(model.classes_, y)]))


def intervals(rng: Rng, seed: int, given: Setting) -> Values:
    n = given["n"]
    X, y = LAWS[given["law"]](rng, n + 50)
    kind = KernelFisherDiscriminant if y.dtype.kind == "i" else KernelRidge
    fixed = {} if given["tuned"] else {"gamma": 0.5 / X.shape[1], "alpha": 0.3}
    model = kind(**fixed).fit(X[:n], y[:n])
    return {method: covered(model, X[n:], y[n:], method) for method in METHODS}


def few(rng: Rng, seed: int, given: Setting) -> Values:
    """Coverage of 90 % intervals of models tuned on few rows."""
    n, found = given["n"], {}
    for law in EVEN:
        X, y = LAWS[law](rng, n + 200)
        model = KernelRidge().fit(X[:n], y[:n])
        for method in ("jackknife+", "jackknife-minmax"):
            found[f"{law} {method}"] = covered(model, X[n:], y[n:], method)
    return over_laws(found)


def density(rng: Rng, seed: int, given: Setting) -> Values:
    """Coverage of ±1.96 deviations of a Gaussian process whose parameters its density chose."""
    n, found = given["n"], {}
    for law in EVEN:
        X, y = LAWS[law](rng, n + 200)
        for criterion in ("loo_log_density", "marginal_likelihood"):
            model = KernelRidge(criterion=criterion).fit(X[:n], y[:n])
            asked = {"return_std": True, "signal_variance": "profile", "noise": True}
            mean, std = model.predict(X[n:], **asked)
            found[f"{law} {criterion}"] = np.mean(np.abs(y[n:] - mean) <= 1.96 * std)
    return over_laws(found)


def over_laws(found: Values) -> Values:
    """The mean over the laws."""
    ways = {name.removeprefix(f"{law} ") for law in EVEN for name in found if name.startswith(law)}
    return {way: np.mean([found[f"{law} {way}"] for law in EVEN]) for way in sorted(ways)}


def rare(rng: Rng, seed: int, given: Setting) -> Values:
    """Sets of a class of one tenth: coverage of its rows and of all, and the size."""
    y = (np.arange(2100) % 10 == 0).astype(int)
    X = rng.normal(size=(len(y), 2)) + 1.2 * y[:, None]
    model = KernelFisherDiscriminant("linear", alpha=1.0).fit(X[:100], y[:100])
    sets, y = model.predict_set(X[100:], 0.9, per_class=given["per_class"]), y[100:]
    held = sets[np.arange(len(y)), y]
    return {"rare": held[y == 1].mean(), "all": held.mean(), "size": sets.sum(axis=1).mean()}


def selection(rng: Rng, seed: int, given: Setting) -> Values:
    """Log-loss of pipelines that choose 10 of 300 columns of noise; log 2 is the best."""
    n, y = 60, np.arange(260) % 2
    X, found = rng.normal(size=(len(y), 300)), {}
    for kind in (Pipeline, TunedPipeline):
        steps = [("best", SelectKBest(k=10)), ("model", KernelFisherDiscriminant("linear"))]
        model = kind(steps).fit(X[:n], y[:n])
        found[f"{kind.__name__} log-loss"] = float(log_loss(y[n:], model.predict_proba(X[n:])))
        if kind is Pipeline:
            sets = model[-1].predict_set(model[:-1].transform(X[n:]), 0.9)
            found["Pipeline sets"] = float(sets[np.arange(200), y[n:]].mean())
    return found


HARD = {"few": few, "density": density, "rare": rare, "selection": selection}


def of_hard() -> Iterator[Setting]:
    yield from ({"what": "few", "n": n} for n in (20, 40, 80))
    yield from ({"what": "density", "n": n} for n in (40, 100))
    yield from ({"what": "rare", "per_class": each} for each in (False, True))
    yield {"what": "selection"}


def hard(rng: Rng, seed: int, given: Setting) -> Values:
    return HARD[given["what"]](rng, seed, given)


# ---- p-values ------------------------------------------------------------------------------------


def permutations(rng: Rng, seed: int, given: Setting) -> Values:
    """Whether noise is rejected, where labels and folds move together and where labels move over
    fixed folds. Free permutations over stratified folds are refused; the refusal is switched off.
    """
    n, free = given["n"], given["permute"] == "free"
    X, y = rng.normal(size=(n, 2)), np.arange(n) % 2
    cv: Any = KFold(5)
    if given["folds"] == "stratified":
        y, cv = rng.permutation(y), StratifiedKFold(5, shuffle=True, random_state=seed)
        cv = list(cv.split(X, y)) if free else cv
    options = {"n_permutations": 99, "random_state": seed, "exact": False}
    model = KernelFisherDiscriminant("linear", alpha=1000.0)  # follows the classes' shares
    known, validity.more_even_than_chance = validity.more_even_than_chance, never
    try:
        test = permutation_test_score(model, X, y, cv=cv, permute=given["permute"], **options)
    finally:
        validity.more_even_than_chance = known
    return {"rejected": float(test.pvalue <= LEVEL)}


def never(*_: Any) -> bool:
    return False


def of_confounds() -> Iterator[Setting]:
    for task, effect in product(("classes", "regression"), ("straight", "curved")):
        for confounds, n, kernel in product(
            ("ignored", "numbers", "squares", "levels"), (40, 100), ("linear", "rbf")
        ):
            given = {"confounds": confounds, "task": task, "effect": effect, "n": n}
            asked = (
                confounds == "numbers"
                or (confounds == "ignored" and n == 100 and kernel == "linear")
                or (confounds == "squares" and effect == "curved")
                or (confounds == "levels" and effect == "straight" and kernel == "linear")
            )
            if asked:
                yield given | {"kernel": kernel}


def confounds(rng: Rng, seed: int, given: Setting) -> Values:
    """Whether a test rejects where features and targets follow a confound, and nothing else."""
    n, y = given["n"], np.zeros(0)
    while len(y) == 0 or (given["task"] == "classes" and min(np.sum(y == 0), np.sum(y == 1)) < 5):
        c = rng.normal(size=n)
        if given["confounds"] == "levels":
            c = np.digitize(c, [-0.5, 0.5]).astype(float) - 1.0
        effect = c**2 - 1.0 if given["effect"] == "curved" else c
        X = effect[:, None] * rng.uniform(0.5, 1.5, size=5) + rng.normal(size=(n, 5))
        y = effect + rng.normal(size=n)
        if given["task"] == "classes":
            y = (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-1.5 * effect))).astype(int)
    known = {
        "ignored": None,
        "numbers": c,
        "squares": np.column_stack([c, c**2]),
        "levels": np.array(list("abc"))[np.clip(c, -1, 1).astype(int) + 1],
    }[given["confounds"]]
    model: Any = KernelRidge(1.0, kernel=given["kernel"], gamma=0.1)
    if given["task"] == "classes":
        model = LeastSquaresSVC(given["kernel"], gamma=0.1, alpha=1.0, calibration=None)
    params = None if known is None else {"confounds": known}
    options = {"n_permutations": 99, "cv": 5, "random_state": seed}
    p = permutation_test_score(model, X, y, params=params, **options).pvalue
    return {"rejected": float(p <= LEVEL)}


def tuned_permutations(rng: Rng, seed: int, given: Setting) -> Values:
    """Whether noise is rejected where kernel, gamma and alpha are chosen for every labeling."""
    n, chosen = 30, {"kernel": "tune", "search": "coarse"}
    X, y = rng.normal(size=(n, 5)), rng.permutation(np.arange(n) % 2)
    model: Any = KernelFisherDiscriminant(**chosen)
    cv: Any = StratifiedKFold(3, shuffle=True, random_state=seed)
    if given["task"] == "numbers":
        model, y = KernelRidge(**chosen), rng.normal(size=n)
        cv = KFold(3, shuffle=True, random_state=seed)
    permute = "free" if given["task"] == "numbers" else "within-folds"
    options = {"n_permutations": 19, "random_state": seed, "permute": permute, "pooled": True}
    p = permutation_test_score(model, X, y, cv=cv, **options).pvalue
    return {"rejected": float(p <= LEVEL)}


SETTINGS = {
    "scores": Simulation(
        "how often the 95 % interval of each score holds the true one", scores, of_scores, 1000
    ),
    "noise": Simulation(
        "the accuracy printed on noise, less that of the majority class",
        noise,
        lambda: ({"few": a, "many": b} for a, b in ((15, 15), (25, 25), (17, 23), (20, 40))),
        1000,
    ),
    "comparisons": Simulation(
        "how often `compare` tells equal models apart",
        comparisons,
        grid(n=(40,), effect=(0.0, 0.5), tuned=(False, True)),
        400,
    ),
    "columns": Simulation(
        "how often columns are called important",
        columns,
        grid(n=(80,), kernel=("linear", "rbf"), effect=(0.0, 1.0)),
        1000,
    ),
    "partitions": Simulation(
        "intervals of an accuracy from one partition and from ten",
        partitions,
        grid(n=(50, 100, 300), distance=(1.645, 0.6)),
        500,
    ),
    "intervals": Simulation(
        "how often 90 % intervals and sets of predictions hold a new target",
        intervals,
        grid(law=tuple(LAWS), tuned=(False, True), n=(60,)),
        500,
    ),
    "hard": Simulation(
        "where intervals, sets and probabilities are hardest to trust", hard, of_hard, 200
    ),
    "permutations": Simulation(
        "how often a permutation test rejects noise",
        permutations,
        grid(
            folds=("in the order of rows", "stratified"),
            n=(12, 20, 24, 40),
            permute=("cosets", "free"),
        ),
        500,
    ),
    "confounds": Simulation(
        "how often tests with confounds reject what the confounds explain",
        confounds,
        of_confounds,
        200,
    ),
    "tuned_permutations": Simulation(
        "how often tests that tune for every labeling reject noise",
        tuned_permutations,
        grid(task=("two classes", "numbers")),
        400,
    ),
}


# ---- all draws -----------------------------------------------------------------------------------


def key(setting: Setting) -> str:
    return json.dumps(setting, sort_keys=True)


def block(name: str, text: str, first: int, last: int) -> dict[str, list[float]]:
    """Some draws of a setting."""
    number, given, found = zlib.crc32(text.encode()), json.loads(text), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, last):
            rng = np.random.default_rng([seed, number])
            found.append(SETTINGS[name].draw(rng, seed, given))
    return {what: [float(one[what]) for one in found] for what in found[0]}


def read(path: Path) -> dict[tuple[str, int], dict[str, list[float]]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {(text, first): values for text, first, values in map(json.loads, lines)}


def summary(setting: Setting, blocks: list[dict[str, list[float]]]) -> dict[str, Any]:
    """The mean over the draws that are known, its standard error and their number."""
    row: dict[str, Any] = {"setting": setting}
    for name in blocks[0]:
        values = np.array([value for one in blocks for value in one[name]])
        values = values[np.isfinite(values)]
        if len(values):
            error = float(values.std() / np.sqrt(len(values)))
            row[name] = {"mean": float(values.mean()), "error": error, "n": len(values)}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=SETTINGS)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="end after these")
    given = parser.parse_args()
    if given.name is None:
        for name, one in SETTINGS.items():
            size = f"{len(list(one.settings()))} settings × {one.draws} draws"
            print(f"{name:20s} {size}: {one.question}")
        return
    asked, path = SETTINGS[given.name], CACHE / f"{given.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {key(one): one for one in asked.settings()}
    done, wanted = read(path), []
    for text, setting in settings.items():
        n = int((given.draws or asked.draws) * setting.get("share of draws", 1.0))
        wanted += [(given.name, text, k, min(k + BLOCK, n)) for k in range(0, n, BLOCK)]
    order = np.random.default_rng(0).permutation(len(wanted))
    todo = [wanted[k] for k in order if wanted[k][1:3] not in done]
    for (_, text, first, _), values in common.gather(block, todo, given.jobs, given.minutes):
        done[text, first] = values
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([text, first, values]) + "\n")
    rows = []
    for text, setting in settings.items():
        if blocks := [values for (one, _), values in done.items() if one == text]:
            rows.append(summary(setting, blocks))
            values = (
                f"{k} {v['mean']:.3f} ± {v['error']:.3f}"
                for k, v in rows[-1].items()
                if k != "setting"
            )
            print(text, *values, sep=", ")
    print(f"{sum(one[1:3] not in done for one in wanted)} of {len(wanted)} blocks are missing")
    record = {"question": asked.question, "rows": rows}
    print(common.write(f"simulations.py {given.name}", record, given.name))


if __name__ == "__main__":
    main()
