"""Ten tables such as a newcomer has, through the command line, beside a tuned SVC and a forest.

Mixed types, dates, identifiers, missing values, decimal commas, many categories, rare classes, few
rows, many columns, numbers to predict, many rows. Each table is written as a file and given to
``fitonce fit``; the SVC (or SVR) is tuned by a grid search inside every fold, the forest has 300
trees, and both see the same rows in the same folds behind usual preprocessing.

    python benchmarks/newcomer.py            # all tables, some minutes
    python benchmarks/newcomer.py wide mixed # some of them
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
import polars as pl
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

GRID = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-3.5, 0.5, 5)}
LARGE = 3000  # rows above which the SVC is a logistic regression, and one split is compared
NOISE = 2.0  # standard errors of the difference that count as noise


def mixed(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """Numbers and categories with gaps, an identifier and a constant."""
    n = 400
    age, dose = rng.uniform(20, 80, n), rng.exponential(1, n)
    sex, ward = rng.choice(["f", "m"], n), rng.choice(list("ABCDE"), n)
    risk = 0.05 * (age - 50) + dose * (sex == "f") - 0.8 * (ward == "B") + rng.logistic(0, 0.5, n)
    age = np.where(rng.random(n) < 0.1, np.nan, age.round())
    frame = pl.DataFrame({"patient_no": range(1001, 1001 + n), "age": age, "dose": dose.round(3)})
    frame = frame.with_columns(
        pl.Series("sex", sex), pl.Series("ward", ward), pl.lit("clinic").alias("source")
    )
    frame = frame.with_columns(pl.col("age").fill_nan(None))
    return frame.with_columns(pl.Series("ill", np.where(risk > 0, "yes", "no"))), "ill", {}


def dated(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """Dates in text that carry the signal: season, weekend and a trend."""
    n = 500
    day = np.sort(rng.integers(0, 900, n)).astype("timedelta64[D]") + np.datetime64("2021-01-04")
    month = day.astype("datetime64[M]").astype(int) % 12
    weekend = (day.astype("datetime64[D]").astype(int) + 3) % 7 >= 5
    price = rng.uniform(1, 3, n)
    sold = 50 + 15 * np.sin(2 * np.pi * month / 12) + 12 * weekend - 8 * price
    sold += 0.02 * np.arange(n) + rng.normal(0, 4, n)
    said = [f"{d.day:02d}.{d.month:02d}.{d.year}" for d in day.astype(object)]
    return pl.DataFrame({"date": said, "price": price, "sold": sold.round(1)}), "sold", {}


def commas(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """Semicolons and decimal commas, as a spreadsheet of half of Europe writes them."""
    bunch = load_breast_cancer()
    rows = rng.choice(len(bunch.target), 250, replace=False)
    names = [f"v{i + 1}" for i in range(20)]
    text = {
        name: [f"{value:.5f}".replace(".", ",") for value in bunch.data[rows, i]]
        for i, name in enumerate(names)
    }
    frame = pl.DataFrame(text).with_columns(
        pl.Series("diagnosis", bunch.target_names[bunch.target[rows]])
    )
    return frame, "diagnosis", {"separator": ";"}


def many_categories(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """27 subjects who differ in their answers: a category of as many levels tells most."""
    n, levels = 810, 27
    subject, x = rng.integers(0, levels, n), rng.normal(size=(n, 3))
    habit = rng.permutation(levels) % 2
    flip = rng.random(n) < 0.04
    answer = np.where((habit[subject] == 1) ^ flip, "left", "right")
    frame = pl.DataFrame({"who": [f"s{i:02d}" for i in subject], "x1": x[:, 0], "x2": x[:, 1]})
    return frame.with_columns(pl.Series("answer", answer)), "answer", {}


def rare(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """One row in fifteen is of the class that matters."""
    n = 900
    X = rng.normal(size=(n, 8))
    score = 1.6 * X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(0, 0.6, n)
    fraud = np.where(score > np.quantile(score, 1 - 1 / 15), "fraud", "fine")
    return _numbers(X).with_columns(pl.Series("verdict", fraud)), "verdict", {}


def tiny(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """24 rows."""
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 4)) + 1.1 * y[:, None]
    group = np.where(y, "treated", "control")
    return _numbers(X).with_columns(pl.Series("arm", group)), "arm", {}


def wide(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """60 rows of 2,000 columns, as expression data have."""
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2000)) + 0.3 * rng.normal(size=(60, 1))
    X[:, :40] += 0.8 * y[:, None]
    kind = np.where(y, "tumour", "normal")
    return _numbers(X).with_columns(pl.Series("tissue", kind)), "tissue", {}


def regression(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """442 patients, a number to predict."""
    bunch = load_diabetes(scaled=False)
    frame = pl.DataFrame(bunch.data, schema=list(bunch.feature_names))
    return frame.with_columns(pl.Series("progression", bunch.target)), "progression", {}


def many_classes(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """Ten digits, 64 pixels, a column of row numbers with gaps."""
    bunch = load_digits()
    rows = np.sort(rng.choice(len(bunch.target), 1000, replace=False))
    frame = pl.DataFrame({"nr": rows}).hstack(_numbers(bunch.data[rows]))
    return frame.with_columns(pl.Series("digit", bunch.target[rows])), "digit", {}


def large_linear(rng: np.random.Generator) -> tuple[pl.DataFrame, str, dict[str, Any]]:
    """30,000 rows, 200 columns, all of which matter a little."""
    n, p = 30_000, 200
    X, w = rng.normal(size=(n, p)), rng.normal(size=p)
    y = X @ w + 0.4 * np.sqrt(p) * rng.normal(size=n) > 0
    return _numbers(X).with_columns(pl.Series("bought", np.where(y, "yes", "no"))), "bought", {}


TABLES: dict[str, Callable[[np.random.Generator], tuple[pl.DataFrame, str, dict[str, Any]]]] = {
    "mixed": mixed,
    "dated": dated,
    "commas": commas,
    "many_categories": many_categories,
    "rare": rare,
    "tiny": tiny,
    "wide": wide,
    "regression": regression,
    "many_classes": many_classes,
    "large_linear": large_linear,
}


def _numbers(X: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame(X, schema=[f"x{i + 1}" for i in range(X.shape[1])])


# ---- the program --------------------------------------------------------------------------------


def program(frame: pl.DataFrame, target: str, reading: dict[str, Any], folder: Path) -> Any:
    """What ``fitonce fit`` says of the table, with the held-out predictions of its rows."""
    from typer.testing import CliRunner

    from fitonce.cli import run
    from fitonce.cli.app import app

    path = folder / "table.csv"
    frame.write_csv(path, **reading)
    seen: list[Any] = []
    assessed = run.assess

    def watched(estimator: Any, X: Any, y: Any, **options: Any) -> Any:
        seen.append((X, y, assessed(estimator, X, y, **options)))
        return seen[-1][-1]

    run.assess = watched
    try:
        start = time.perf_counter()
        args = [
            "fit",
            str(path),
            "-t",
            target,
            "--no-page",
            "--json",
            "--force",
            "--out",
            str(folder),
        ]
        result = CliRunner().invoke(app, args)
        seconds = time.perf_counter() - start
    finally:
        run.assess = assessed
    if result.exit_code:
        raise SystemExit(f"{target}: {result.output}{result.stderr}")
    return json.loads(result.stdout), *seen[0], seconds


# ---- the others ---------------------------------------------------------------------------------


def others(X: pl.DataFrame, y: np.ndarray, answer: Any) -> dict[str, np.ndarray]:
    """Held-out predictions of a tuned SVC and of a forest on the same rows and folds."""
    frame, number = X.to_pandas(), answer.classes is None
    rows, folds = np.arange(len(y)), range(1 if len(y) > LARGE else answer.n_splits)
    tests = [np.flatnonzero(answer.fold == fold) for fold in folds]
    splits = [(np.setdiff1d(rows, test), test) for test in tests]
    if len(y) > LARGE:
        machine = LogisticRegression(max_iter=2000)
    else:
        machine = GridSearchCV(SVR() if number else SVC(), GRID, cv=5)
    trees = (RandomForestRegressor if number else RandomForestClassifier)(300, random_state=0)
    found = {}
    for name, model in (("svm", machine), ("forest", trees)):
        prepared = make_pipeline(_prepared(frame), model)
        held = np.full(len(y), np.nan) if number else np.full(len(y), None)
        for train, test in splits:
            prepared.fit(frame.iloc[train], y[train])
            held[test] = prepared.predict(frame.iloc[test])
        found[name] = held
    return found


def _prepared(frame: Any) -> Any:
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    codes = OneHotEncoder(handle_unknown="ignore", min_frequency=2)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (codes, make_column_selector(dtype_exclude="number")),
        sparse_threshold=0.0,
    )


def compared(name: str, folder: Path) -> dict[str, Any]:
    frame, target, reading = TABLES[name](np.random.default_rng(0))
    said, X, y, answer, seconds = program(frame, target, reading, folder)
    predictions = {"fitonce": answer.predictions, **others(X, y, answer)}
    tested = np.array([p is not None and p == p for p in predictions["svm"]])
    losses = {key: _losses(p[tested], y[tested], answer) for key, p in predictions.items()}
    spread = float(np.var(y[tested])) if answer.classes is None else 1.0
    scores = {key: 1 - float(np.mean(loss)) / spread for key, loss in losses.items()}
    best = max(scores, key=scores.__getitem__)
    worse = losses["fitonce"] - losses[best]
    error = float(np.std(worse) / np.sqrt(len(worse)))
    noise = best == "fitonce" or float(np.mean(worse)) <= NOISE * error
    return {
        "rows": frame.height,
        "columns": frame.width - 1,
        "score": answer.score_name,
        "scores": {key: round(value, 4) for key, value in scores.items()},
        "best": best,
        "within_noise": bool(noise),
        "p": said["assessment"]["permutation"]["pvalue"],
        "notes": said["notes"],
        "warnings": said["warnings"],
        "seconds": round(seconds, 1),
    }


def _losses(predicted: np.ndarray, y: np.ndarray, answer: Any) -> np.ndarray:
    if answer.classes is None:
        return np.asarray((predicted.astype(float) - y) ** 2)
    return np.array([a != b for a, b in zip(predicted, y, strict=True)], dtype=float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES), help="names of tables")
    names = parser.parse_args().tables
    results = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results[name] = compared(name, Path(folder))
        row = results[name]
        scores = "  ".join(f"{key} {value:.3f}" for key, value in row["scores"].items())
        verdict = "within noise" if row["within_noise"] else f"BEHIND {row['best']}"
        print(f"{name:16s} {scores}  {verdict}  {row['seconds']} s", flush=True)
        for line in [*row["notes"], *(f"warning: {text}" for text in row["warnings"])]:
            print(f"    {line}")
    if set(names) == set(TABLES):
        print(common.write(__file__, {"tables": results}))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
