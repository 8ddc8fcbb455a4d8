"""Table 1 of Saadi, Talbot and Cawley (2007) on all thirteen of Rätsch's benchmarks, beside a tuned
SVC on the same splits.

Model selection sees the first five training sets only; the medians of the five chosen parameters
are then used on every split (where the penalty is chosen too, the majority of the five wins, then
the medians among those). Features are standardised with the mean and standard deviation of the
training rows. One thread. Needs the data: see ``fitonce.datasets.fetch_raetsch``.

    python benchmarks/raetsch.py                             # everything, or what is missing
    python benchmarks/raetsch.py --methods default --sets heart thyroid
    python benchmarks/raetsch.py --seed-offset 1000          # splits that the table does not use
    python benchmarks/raetsch.py --methods default --fresh   # after a change of the code
    python benchmarks/raetsch.py --report                    # tables alone, no computation

Defaults are chosen with --seed-offset. One JSON file for each method and set lies in
benchmarks/results/raetsch/; benchmarks/results/raetsch.json is made from them. With
--seed-offset or --quick all of it goes to benchmarks/cache/ instead.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import common
import numpy as np
from raetsch_protocol import METHODS, Protocol, Record, medians, open_record
from raetsch_report import report
from sklearn.metrics import brier_score_loss, log_loss

from fitonce.datasets import RAETSCH

SAVE_EVERY = 10
CHEAP_FIRST = (
    "thyroid",
    "titanic",
    "heart",
    "breast_cancer",
    "banana",
    "twonorm",
    "ringnorm",
    "waveform",
    "diabetis",
    "flare_solar",
    "german",
    "splice",
    "image",
)
QUICK_SETS = ("thyroid", "titanic", "heart")


def select(protocol: Protocol, record: Record) -> Iterator[str]:
    """Choose parameters on the first training sets, then their medians."""
    method, name = METHODS[record["method"]], record["set"]
    if method.tuned is None or "parameters" in record:
        return
    done = record.setdefault("selection", [])
    for number in range(len(done), protocol.selection_sets):
        X, y, _, _ = protocol.split(name, number)
        model = method.tuned(X.shape[1], protocol.quick)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X, y)
        seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
        done.append(
            {
                "split": protocol.offset + number,
                "seconds": seconds,
                "cpu_seconds": cpu_seconds,
                "chosen": method.chosen(model),
            }
        )
        protocol.save(record)
        yield f"training set {number + 1}"
    record["parameters"] = medians([entry["chosen"] for entry in done])
    protocol.save(record)


def score(protocol: Protocol, record: Record) -> Iterator[str]:
    """Test error (and what the probabilities are worth) on the splits that have none yet."""
    method, name = METHODS[record["method"]], record["set"]
    errors = record.setdefault("error", [])
    n_splits = protocol.n_splits(method, name)
    for number in range(len(errors), n_splits):
        X, y, X_test, y_test = protocol.split(name, number)
        model = method.fixed(record["parameters"])
        model = model.fit(X, y)
        errors.append(float(np.mean(model.predict(X_test) != y_test)))
        if hasattr(model, "predict_proba"):
            for key, value in probability_scores(y_test, model.predict_proba(X_test)).items():
                record.setdefault(key, []).append(value)
        if len(errors) % SAVE_EVERY == 0 or len(errors) == n_splits:
            record |= {
                "mean": float(np.mean(errors)),
                "sd": float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0,
            }
            protocol.save(record)
        yield f"split {number + 1}"


def probability_scores(y: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    return {
        "log_loss": float(log_loss(y, probabilities, labels=[-1, 1])),
        "brier": float(brier_score_loss(y, probabilities[:, 1], pos_label=1)),
    }


def run(protocol: Protocol, methods: list[str], names: list[str], fresh: bool) -> None:
    for key, name in ((key, name) for key in methods for name in names):
        record = open_record(protocol, key, name, fresh)
        for done, _ in enumerate(chain(select(protocol, record), score(protocol, record)), 1):
            common.progress(done, protocol.n_splits(METHODS[key], name), f"{key} {name}")
        print(f"{key:16s} {name:14s} {summary_of(record)}", flush=True)


def summary_of(record: Record) -> str:
    values = ", ".join(
        f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
        for k, v in record["parameters"].items()
    )
    return f"{100 * np.mean(record['error']):6.2f} %   {values}"


# ---- the command ---------------------------------------------------------------------------------


def folder_of(offset: int, quick: bool) -> Path:
    if offset == 0 and not quick:
        return common.RESULTS / "raetsch"
    return Path(__file__).parent / "cache" / f"raetsch-{offset}{'-quick' if quick else ''}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=list(METHODS),
        default=list(METHODS),
        metavar="METHOD",
        help=", ".join(METHODS),
    )
    parser.add_argument(
        "--sets", nargs="+", choices=list(RAETSCH), metavar="SET", help=", ".join(CHEAP_FIRST)
    )
    parser.add_argument(
        "--seed-offset",
        type=int,
        default=0,
        help="number of the first split; 1000 and up for choosing defaults",
    )
    parser.add_argument("--splits", type=int, help="at most this many test splits")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two training sets, three splits, a coarse SVC grid, three sets: does it run?",
    )
    parser.add_argument("--fresh", action="store_true", help="compute again what is there already")
    parser.add_argument("--report", action="store_true", help="only make the tables")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    max_splits = arguments.splits or (3 if arguments.quick else None)
    protocol = Protocol(
        folder_of(arguments.seed_offset, arguments.quick),
        arguments.seed_offset,
        max_splits,
        arguments.quick,
    )
    wanted = arguments.sets or (QUICK_SETS if arguments.quick else CHEAP_FIRST)
    if not arguments.report:
        run(
            protocol,
            arguments.methods,
            [name for name in CHEAP_FIRST if name in wanted],
            arguments.fresh,
        )
    print(report(protocol))


if __name__ == "__main__":
    main()
