"""Long tables through ``fitonce fit``: is the answer right, how long does it take, how much memory?

- wide: 100,000 rows of 500 columns with a linear signal, beside a logistic regression of all rows;
- long: 1,000,000 rows of numbers and categories, with the page;
- grouped: 7,584 rows in groups of 16, which stay together inside the tuning.

Each table is made in a temporary folder and given to the program in a process of its own. The saved
model then predicts rows that the program has not seen.

The system counts the memory of this script as the program's until that has begun, so that a small
table is measured in a run of its own.

    python benchmarks/long_tables.py            # all of them, some minutes of processor time
    python benchmarks/long_tables.py grouped    # one; the others' results are kept
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression

import fitonce

NEW = 20_000  # rows that are kept back
Made = tuple[pl.DataFrame, list[str]]


def _frame(X: np.ndarray, y: np.ndarray, **more: Any) -> pl.DataFrame:
    frame = pl.DataFrame(X, schema=[f"x{i + 1}" for i in range(X.shape[1])])
    labels = np.where(y, "yes", "no")
    return frame.with_columns(*(pl.Series(n, v) for n, v in more.items()), pl.Series("y", labels))


def wide(rng: np.random.Generator) -> Made:
    """All columns matter a little."""
    n, p = 100_000 + NEW, 500
    X, w = (
        rng.standard_normal((n, p), dtype=np.float32),
        rng.normal(size=p).astype(np.float32),
    )
    y = X @ w + 0.4 * np.sqrt(p) * rng.normal(size=n) > 0
    return _frame(X, y), ["--no-page"]


def long(rng: np.random.Generator) -> Made:
    """Ten numbers, of which two interact, and two categories."""
    n = 1_000_000 + NEW
    X = rng.standard_normal((n, 10), dtype=np.float32)
    city, level = rng.integers(0, 20, n), rng.normal(size=20)
    sex = rng.choice(["f", "m"], n)
    y = X[:, 0] * X[:, 1] + level[city] + 0.5 * (sex == "f") + rng.logistic(0, 0.4, n) > 0
    return _frame(X, y, city=[f"city {k}" for k in city], sex=sex), []


def grouped(rng: np.random.Generator) -> Made:
    """474 groups of 16 rows, each with an offset of its own; and others to be predicted."""
    groups = 474 + NEW // 16
    group = np.repeat(np.arange(groups), 16)
    X = rng.normal(size=(len(group), 10)) + rng.normal(size=(groups, 10))[group]
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=len(group)) > 0
    frame = _frame(X, y, who=[f"s{k}" for k in group])
    return frame, ["--group", "who", "--no-page"]


TABLES: dict[str, Callable[[np.random.Generator], Made]] = {
    "wide": wide,
    "long": long,
    "grouped": grouped,
}


def logistic(frame: pl.DataFrame, new: pl.DataFrame) -> float:
    """Accuracy of a logistic regression on new rows."""
    numbers = [name for name in frame.columns if name.startswith("x")]
    X, y = frame.select(numbers).to_numpy(), frame["y"].to_numpy()
    model = LogisticRegression(max_iter=200).fit(X, y)
    return float(model.score(new.select(numbers).to_numpy(), new["y"].to_numpy()))


def measured(command: list[str]) -> tuple[bytes, Any]:
    """What a program prints, and the processor time and memory that it has used."""
    started = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert started.stdout is not None
    answer = started.stdout.read()
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return answer, used


def run(name: str, keep: str | None) -> dict[str, Any]:
    made, options = TABLES[name](np.random.default_rng(0))
    frame, new = made[:-NEW], made[-NEW:]
    with tempfile.TemporaryDirectory() as temporary:
        folder, path = Path(keep or temporary), Path(temporary) / f"{name}.parquet"
        frame.write_parquet(path)
        program = [sys.executable, "-m", "fitonce", "fit", str(path), "-t", "y", "--json"]
        answer, used = measured([*program, "--force", "--out", str(folder), *options])
        said = json.loads(answer)
        page = said["files"].get("page")
        extra = {"page_MB": Path(page).stat().st_size / 1e6} if page else {}
        model = fitonce.load(said["files"]["model"])
        columns = new.select([column["name"] for column in said["columns"]])
        extra["new_rows"] = float(np.mean(model.predict(columns) == new["y"].to_numpy()))
    if name == "wide":
        extra["logistic"] = logistic(frame, new)
    return {
        "rows": frame.height,
        "columns": frame.width - 1,
        "accuracy": said["assessment"]["score"]["value"],
        "comparison": said["comparison"],
        **extra,
        "p": said["assessment"]["permutation"]["pvalue"],
        "processor_seconds": used.ru_utime + used.ru_stime,
        "peak_GiB": used.ru_maxrss / 2**20,
        "kernel": said["settings"]["kernel"],
        "notes": said["notes"],
        "warnings": said["warnings"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES), help="names of tables")
    parser.add_argument("--keep", help="a folder for model and page")
    options = parser.parse_args()
    path = common.RESULTS / "long_tables.json"
    found = json.loads(path.read_text())["tables"] if path.exists() else {}
    for name in options.tables:
        found[name] = run(name, options.keep)
        print(name, json.dumps(found[name], indent=1), flush=True)
        common.write(__file__, {"tables": found})


if __name__ == "__main__":
    main()
