"""Which encoding of categorical columns gives the lower held-out loss, in a kernel of distances?

One column for each level, so that two rows that differ in a category are at a squared distance w:
the overlap distance. Compared are weights w (a standardised number has a mean squared difference
of 2), levels of few rows merged or not, the weight that gives every category a mean squared
difference of 2, columns of unit variance, and levels numbered in alphabetical order. "Chosen"
takes, on each training set, the candidate whose model has the best leave-one-out score there.

Classes are judged by log-loss and error, numbers by the squared error over that of the mean.

    python benchmarks/mixed_tables.py --splits 8     # some minutes
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import common
import mixed_sets
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from fitonce import KernelFisherDiscriminant, KernelRidge

WEIGHTS, MERGED = (0.5, 2.0, 8.0), (1, 3, 10)
PLAIN = "w = 2"


def one_hot(rare: int = 1) -> Any:
    """Levels of fewer than `rare` rows are merged."""
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=rare if rare > 1 else None,
        sparse_output=False,
    )


class Spread(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One column for each level, over √(1 - Σp²): mean squared differences of 2."""

    def fit(self, X: Any, y: Any = None) -> Spread:
        self.encoder_ = one_hot().fit(X)
        p, lengths = self.encoder_.transform(X).mean(axis=0), map(len, self.encoder_.categories_)
        parts = np.split(p, np.cumsum(list(lengths))[:-1])
        spread = [np.full(len(part), 1.0 - np.sum(part**2)) for part in parts]
        self.scale_ = np.concatenate([np.sqrt(np.where(s > 0, s, 1.0)) for s in spread])
        return self

    def transform(self, X: Any) -> np.ndarray:
        return np.asarray(self.encoder_.transform(X) / self.scale_)


def numbered() -> Any:
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(codes, StandardScaler())


def overlap_name(weight: float, rare: int) -> str:
    return f"w = {weight:g}" if rare == 1 else f"w = {weight:g}, fewer than {rare} rows merged"


ENCODINGS: dict[str, tuple[Callable[[], Any], float]] = {
    overlap_name(w, rare): (lambda rare=rare: one_hot(rare), w) for w in WEIGHTS for rare in MERGED
} | {
    "mean squared difference 2": (Spread, 2.0),
    "unit variance": (lambda: make_pipeline(one_hot(), StandardScaler()), 2.0),
    "numbered": (numbered, 2.0),
}
CHOICES = {
    "chosen: merged": [overlap_name(2.0, rare) for rare in MERGED],
    "chosen: merged or not (3)": [overlap_name(2.0, rare) for rare in (1, 3)],
    "chosen: merged or not (10)": [overlap_name(2.0, rare) for rare in (1, 10)],
    "chosen: weight": [overlap_name(w, 1) for w in WEIGHTS],
    "chosen: weight 2 or 0.5": [overlap_name(w, 1) for w in (2.0, 0.5)],
    "chosen: both": [overlap_name(w, rare) for w in WEIGHTS for rare in MERGED],
}


def encoded(table: mixed_sets.Table, name: str) -> Any:
    """Standardised numbers beside categories; w = 2 is a column for each level as it is."""
    make, weight = ENCODINGS[name]
    numbers = [column for column in table.X.columns if column not in table.categories]
    parts = [("numbers", StandardScaler(), numbers), ("categories", make(), table.categories)]
    weights = {"categories": float(np.sqrt(weight / 2.0))}
    return ColumnTransformer(parts, transformer_weights=weights, sparse_threshold=0.0)


def judged(table: mixed_sets.Table, part: mixed_sets.Split, name: str) -> dict[str, float]:
    """Losses on the test rows, and the leave-one-out score on the training rows."""
    classes = table.task == mixed_sets.CLASSES
    columns = encoded(table, name)
    X = columns.fit_transform(part.X)
    model = (KernelFisherDiscriminant if classes else KernelRidge)().fit(X, part.y)
    new = columns.transform(part.X_test)
    found = {"held_out": float(model.best_score_)}
    if classes:
        p = model.predict_proba(new)
        found["error"] = float(np.mean(model.predict(new) != part.y_test))
        return found | {"loss": float(log_loss(part.y_test, p, labels=model.classes_))}
    total = np.mean((part.y_test - part.y.mean()) ** 2)
    error = float(np.mean((model.predict(new) - part.y_test) ** 2) / total)
    return found | {"error": error, "loss": error}


def with_choices(found: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Beside the encodings what a choice among some of them would have given; ties go to the
    first.
    """
    best = {
        name: max(candidates, key=lambda one: found[one]["held_out"])
        for name, candidates in CHOICES.items()
    }
    return found | {name: found[one] | {"taken": one} for name, one in best.items()}


def evaluate(name: str, splits: int) -> dict[str, Any]:
    """Means over splits, and log-ratios of the loss to that of plain columns with their errors."""
    runs = []
    for number in range(splits):
        table, part = mixed_sets.table_of(name, number), mixed_sets.split_of(name, number)
        runs.append(with_choices({one: judged(table, part, one) for one in ENCODINGS}))
    names = list(runs[0])
    means = {}
    for one in names:
        ratios = [np.log(run[one]["loss"] / run[PLAIN]["loss"]) for run in runs]
        means[one] = {
            "loss": float(np.mean([run[one]["loss"] for run in runs])),
            "error": float(np.mean([run[one]["error"] for run in runs])),
            "ratio": float(np.mean(ratios)),
            "ratio_se": float(np.std(ratios, ddof=1) / np.sqrt(splits)),
        }
    table = mixed_sets.table_of(name)
    sizes = {"columns": table.X.shape[1], "categories": len(table.categories)}
    described = {"task": table.task, "rows": len(part.y), **sizes, "levels": sum(table.levels)}
    return described | {"encodings": means}


def summary(sets: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Over the sets: the loss relative to plain columns (geometric mean), the worst set, the rank,
    and on how many sets it is better or worse by more than two standard errors.
    """
    names = list(next(iter(sets.values()))["encodings"])
    ranks = np.array(
        [_ranks([one["encodings"][n]["loss"] for n in names]) for one in sets.values()]
    )
    found = {}
    for number, name in enumerate(names):
        own = [one["encodings"][name] for one in sets.values()]
        ratios = np.array([one["ratio"] for one in own])
        clear = np.array([abs(one["ratio"]) > 2.0 * one["ratio_se"] for one in own])
        found[name] = {
            "relative": float(np.exp(ratios.mean())),
            "worst": float(np.exp(ratios.max())),
            "rank": float(ranks[:, number].mean()),
            "better": int(np.sum(clear & (ratios < 0))),
            "worse": int(np.sum(clear & (ratios > 0))),
        }
    return found


def _ranks(losses: Sequence[float]) -> np.ndarray:
    values = np.asarray(losses)
    below = (values[None, :] < values[:, None]).sum(axis=1)
    return below + 0.5 * ((values[None, :] == values[:, None]).sum(axis=1) + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=8)
    splits = parser.parse_args().splits
    warnings.simplefilter("ignore")
    sets = {}
    for name in mixed_sets.SETS:
        sets[name] = evaluate(name, splits)
        own = sets[name]["encodings"]
        print(f"{name:24s}", *(f"{v['loss']:.3f}" for v in own.values()), flush=True)
    found = summary(sets)
    for name, one in found.items():
        print(f"{name:36s}", *(f"{key} {value:.3g}" for key, value in one.items()))
    common.write(__file__, {"splits": splits, "sets": sets, "summary": found})


if __name__ == "__main__":
    main()
