"""Models × sets × splits: errors, probabilities and times, many at a time.

    python benchmarks/models.py                              # which studies there are
    python benchmarks/models.py forty --jobs 16 --minutes 9  # goes on where it ended
    python benchmarks/models.py forty --models committee svc --splits 1
    python benchmarks/models.py forty --fresh                # ours again, after a change of code
    python benchmarks/models.py forty --keep-peers           # theirs as the stored result has them

A study (studies.py) is a list of models, a list of sets (data.py) and a number of splits. Every
model gets the same rows: numbers imputed and standardized by the training rows, a column for each
category; models of this package see them clipped (`ClippedScaler`), as the guides advise. Labels
are judged by error (%), log-loss, Brier score, AUC of one class against the others, and the
expected calibration error of the most probable class in ten bins; probabilities are first kept at
or above 1/(2 c (n + 1)), because a forest would otherwise have infinite log-losses. Numbers are
judged by R² and by "far": how many ranges of the training targets a prediction lies outside of
them, when a test row is moved 100 standard deviations away in every number. Times are processor
times of one thread; "criterion" is the loss of the parameters chosen. Sets whose data are not at
hand are left out, and named in the result.

What is computed lies in benchmarks/cache/models; benchmarks/results/STUDY.json has the means of
every set and, over the sets, ranks, means and how often a model is better than another.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import common
import numpy as np
from data import Set, Split, Table
from scipy.stats import rankdata
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fitonce
from fitonce import ClippedScaler

CACHE = Path(__file__).parent / "cache" / "models"
MOST_LEVELS, BINS = 40, 10
LARGER_IS_BETTER = ("auc", "r2")
Values = dict[str, float]


def one_hot() -> OneHotEncoder:
    """A column for each category; the rarest of more than forty are merged."""
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_LEVELS, sparse_output=False
    )


@dataclass(frozen=True)
class Model:
    """What makes an estimator for training rows, and how its columns are prepared."""

    make: Callable[[Table], Any]
    ours: bool = True
    scaler: Callable[[], Any] = ClippedScaler
    encoder: Callable[[], Any] = one_hot

    def pipeline(self, table: Table) -> Pipeline:
        p, q = table.numbers.shape[1], table.texts.shape[1]
        impute = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        parts = [
            ("numbers", make_pipeline(impute, self.scaler()), list(range(p))),
            ("texts", self.encoder(), list(range(p, p + q))),
        ]
        columns = ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0.0)
        return make_pipeline(columns, self.make(table))


def peer(make: Callable[[Table], Any]) -> Model:
    return Model(make, ours=False, scaler=StandardScaler)


@dataclass(frozen=True)
class Study:
    """What it asks, the models, the sets, and which of them decided and which report."""

    question: str
    models: Mapping[str, Model]
    sets: Mapping[str, Set]
    splits: int
    halves: Mapping[str, list[str]] = field(default_factory=dict)


# ---- one model on one split ----------------------------------------------------------------------


def judged(model: Model, split: Split) -> Values:
    train, test = split
    centre, size = (0, 1) if train.classes else (train.y.mean(), train.y.std())
    start = time.process_time()
    fitted = model.pipeline(train).fit(train.X, (train.y - centre) / size if size != 1 else train.y)
    found = {"fit": time.process_time() - start}
    if hasattr(fitted[-1], "best_score_"):
        found["criterion"] = -float(fitted[-1].best_score_)
    if train.classes:
        return found | of_labels(fitted, train, test)
    return found | of_numbers(lambda X: centre + size * fitted.predict(X), train, test)


def of_labels(fitted: Any, train: Table, test: Table) -> Values:
    start = time.process_time()
    error = 100.0 * float(np.mean(fitted.predict(test.X) != test.y))
    found = {"predict": time.process_time() - start, "error": error}
    if not hasattr(fitted, "predict_proba"):
        return found
    p = fitted.predict_proba(test.X)
    y = np.searchsorted(fitted.classes_, test.y)
    p = np.maximum(np.nan_to_num(p), 0.5 / (p.shape[1] * (len(train.y) + 1.0)))
    p /= p.sum(axis=1, keepdims=True)
    truth = np.eye(p.shape[1])[y]
    seen = [k for k in range(p.shape[1]) if 0 < truth[:, k].sum() < len(y)]
    top, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((BINS * top).astype(int), BINS - 1)
    gaps = [abs(np.sum(right[bins == b]) - np.sum(top[bins == b])) for b in range(BINS)]
    return found | {
        "log_loss": float(-np.mean(np.log(p[np.arange(len(y)), y]))),
        "brier": 0.5 * float(np.mean(np.sum((p - truth) ** 2, axis=1))),
        "auc": float(np.mean([roc_auc_score(truth[:, k], p[:, k]) for k in seen])),
        "calibration": float(np.sum(gaps)) / len(y),
    }


def of_numbers(predict: Callable[[Any], np.ndarray], train: Table, test: Table) -> Values:
    start = time.process_time()
    r2 = float(r2_score(test.y, predict(test.X)))
    seconds = time.process_time() - start
    far = test.numbers[:1] + 100.0 * np.nanstd(train.numbers, axis=0)
    value = predict(Table(far, test.texts[:1], test.y[:1], False).X)[0]
    low, high = train.y.min(), train.y.max()
    away = float(max(low - value, value - high, 0.0) / (high - low))
    return {"predict": seconds, "r2": r2, "far": away}


# ---- all of them ---------------------------------------------------------------------------------


@cache
def state() -> str:
    """A name for this state of the package's code."""
    files = sorted(Path(fitonce.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def path_of(study: str, ours: bool) -> Path:
    return CACHE / f"{study}.{state() if ours else 'peers'}.jsonl"


def known(study: str) -> dict[tuple[str, str, int], Values]:
    """By set, model and split: what has been computed with this state of the code."""
    found = {}
    for path in (path_of(study, ours) for ours in (True, False)):
        for line in path.read_text().splitlines() if path.is_file() else []:
            *key, values = json.loads(line)
            found[tuple(key)] = values
    return found


def computed(study: str, name: str, model: str, number: int) -> Values | None:
    from studies import STUDIES

    warnings.simplefilter("ignore")
    with contextlib.suppress(FileNotFoundError):
        return judged(STUDIES[study].models[model], STUDIES[study].sets[name](number))
    return None


def run(name: str, study: Study, models: list[str], splits: int, given: Any) -> None:
    """What is missing, split by split, until the time is over."""
    wanted = [(s, m, k) for k in range(splits) for s in study.sets for m in models]
    found = known(name)
    CACHE.mkdir(parents=True, exist_ok=True)
    todo = [(name, *key) for key in wanted if key not in found]
    for (_, *key), values in common.gather(computed, todo, given.jobs, given.minutes):
        if values is None:
            continue
        with path_of(name, study.models[key[1]].ours).open("a") as file:
            file.write(json.dumps([*key, values]) + "\n")


def record(study: Study, found: Mapping[tuple[str, str, int], Values]) -> dict[str, Any]:
    """sets[measure][set] has the mean over the splits and its standard error for each model."""
    sets = [s for s in study.sets if any((s, m, 0) in found for m in study.models)]
    models = [m for m in study.models if all((s, m, 0) in found for s in sets)]
    values: dict[str, dict[str, np.ndarray]] = {}
    for name in sets:
        n = min(sum((name, m, k) in found for k in range(study.splits)) for m in models)
        for measure in sorted(set.intersection(*(set(found[name, m, 0]) for m in models))):
            rows = [[found[name, m, k][measure] for k in range(n)] for m in models]
            values.setdefault(measure, {})[name] = np.array(rows)
    halves = {half: [s for s in names if s in sets] for half, names in study.halves.items()}
    return {
        "question": study.question,
        "splits": study.splits,
        "models": {m: "ours" if study.models[m].ours else "peer" for m in models},
        "shape": {name: shape(study.sets[name](0)) for name in sets},
        "missing": [name for name in study.sets if name not in sets],
        "halves": halves or {"all": sets},
        "summary": {
            half: {
                measure: summary(study, models, measure, [of[n] for n in names if n in of])
                for measure, of in values.items()
                if any(n in of for n in names)
            }
            for half, names in (halves or {"all": sets}).items()
        },
        "sets": {
            measure: {name: spread(rows) for name, rows in of.items()}
            for measure, of in values.items()
            if measure not in ("fit", "predict", "brier", "auc")
        },
    }


def spread(rows: np.ndarray) -> list[list[float]]:
    """The mean of each row, and its standard error."""
    n = rows.shape[1]
    errors = rows.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(rows), np.nan)
    return np.column_stack([rows.mean(axis=1), np.nan_to_num(errors)]).tolist()


def summary(
    study: Study, models: list[str], measure: str, sets: list[np.ndarray]
) -> dict[str, Any]:
    """Over the sets: mean rank, mean and median of each model, and the share of sets on which it is
    better than each of the others. For R² also the worst of a split, by how much a model is most
    behind the best peer of a split, and the largest value.
    """
    sign = -1.0 if measure in LARGER_IS_BETTER else 1.0
    means = np.array([rows.mean(axis=1) for rows in sets])
    ranks = rankdata(sign * means.round(9), axis=1).mean(axis=0)
    splits = np.concatenate(sets, axis=1)
    peers = np.array([not study.models[m].ours for m in models])
    best = splits[peers].max(axis=0, initial=-np.inf)
    found: dict[str, Any] = {}
    for place, model in enumerate(models):
        better = (sign * (means[:, [place]] - means) < -1e-9).mean(axis=0)
        one: dict[str, Any] = {
            "rank": ranks[place],
            "mean": means[:, place].mean(),
            "median": np.median(means[:, place]),
            "largest": splits[place].max(),
            "better than": dict(zip(models, better.tolist(), strict=True)),
        }
        if measure == "r2":
            one["worst"] = splits[place].min()
            one["most behind the best peer"] = (best - splits[place]).max() if peers.any() else 0.0
        found[model] = one
    return {"number of sets": len(sets), "models": found}


def with_kept_peers(study: Study, result: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """Models of this package beside the peers of the stored result, which had the same sets and
    splits: measures of which it has the mean of every set.
    """
    peers = [m for m, whose in stored["models"].items() if whose == "peer"]
    models = [*(m for m in result["models"] if m not in peers), *peers]
    ours, theirs = (list(one["models"]) for one in (result, stored))
    sets: dict[str, dict[str, Any]] = {}
    for measure in ("error", "log_loss", "calibration"):
        for name, rows in result["sets"][measure].items():
            old = stored["sets"][measure][name]
            kept = [old[theirs.index(m)] if m in peers else rows[ours.index(m)] for m in models]
            sets.setdefault(measure, {})[name] = kept
    of_half = {
        half: {
            measure: summary(study, models, measure, [np.array(of[n])[:, :1] for n in names])
            for measure, of in sets.items()
        }
        for half, names in result["halves"].items()
    }
    kept_from = {"models": peers, "commit": stored["commit"], "versions": stored["versions"]}
    whose = {m: "peer" if m in peers else "ours" for m in models}
    return result | {"models": whose, "kept": kept_from, "summary": of_half, "sets": sets}


def shape(split: Split) -> list[int]:
    """Training rows, columns as they come, classes (0: numbers), test rows."""
    train, test = split
    columns = train.numbers.shape[1] + train.texts.shape[1]
    return [len(train.y), columns, train.classes * len(np.unique(train.y)), len(test.y)]


def main() -> None:
    from studies import STUDIES

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", nargs="?", choices=STUDIES)
    parser.add_argument("--models", nargs="+", metavar="MODEL")
    parser.add_argument("--splits", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no model after these")
    parser.add_argument("--fresh", action="store_true", help="models of this package again")
    parser.add_argument("--report", action="store_true", help="the result alone")
    parser.add_argument("--keep-peers", action="store_true", help="peers of the stored result")
    given = parser.parse_args()
    if given.study is None:
        for name, study in STUDIES.items():
            size = f"{len(study.models)} models × {len(study.sets)} sets × {study.splits} splits"
            print(f"{name:14s} {size}: {study.question}")
        return
    study = STUDIES[given.study]
    if given.fresh:
        path_of(given.study, True).unlink(missing_ok=True)
    if not given.report:
        run(
            given.study,
            study,
            given.models or list(study.models),
            given.splits or study.splits,
            given,
        )
    found = known(given.study)
    missing = sum(
        (s, m, k) not in found
        for s in study.sets
        for m in study.models
        for k in range(study.splits)
    )
    print(f"{missing} of {len(study.sets) * len(study.models) * study.splits} are missing")
    if given.keep_peers:
        found = {key: one for key, one in found.items() if study.models[key[1]].ours}
    result = record(study, found)
    if given.keep_peers:
        stored = json.loads((common.RESULTS / f"{given.study}.json").read_text(encoding="utf-8"))
        result = with_kept_peers(study, result, stored)
    timed = () if given.keep_peers else map(str.lower, result["models"])
    for package in (one for one in timed if one in ("lightgbm", "xrfm")):
        importlib.import_module(package)  # its version is part of the record
    for half, measures in result["summary"].items():
        for measure, one in measures.items():
            said = (f"{m} {v['mean']:.4g} ({v['rank']:.1f})" for m, v in one["models"].items())
            print(f"{half}, {measure}:", "  ".join(said))
    print(common.write(f"models.py {given.study}", result, given.study))


if __name__ == "__main__":
    main()
