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
benchmarks/results/raetsch/; benchmarks/results/raetsch.json and raetsch.md are made from them. With
--seed-offset or --quick all of it goes to benchmarks/cache/ instead.
"""

from __future__ import annotations

import argparse
import sys
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
    jobs = [(key, name) for key in methods for name in names]
    bar = Bar(sum(work(protocol, key, name) for key, name in jobs))
    for key, name in jobs:
        record = open_record(protocol, key, name, fresh)
        bar.skip(len(record.get("selection", [])) + len(record.get("error", [])))
        started = time.perf_counter()
        for step in chain(select(protocol, record), score(protocol, record)):
            bar.advance(f"{key} {name}: {step}")
        bar.line(
            f"{key:16s} {name:14s} {summary_of(record)}   {time.perf_counter() - started:6.0f} s"
        )
    bar.close()


def work(protocol: Protocol, key: str, name: str) -> int:
    method = METHODS[key]
    return protocol.n_splits(method, name) + (protocol.selection_sets if method.tuned else 0)


def summary_of(record: Record) -> str:
    values = ", ".join(
        f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
        for k, v in record["parameters"].items()
    )
    return f"{100 * np.mean(record['error']):6.2f} %   {values}"


class Bar:
    """A progress bar on a terminal; elsewhere one line for each record that is finished."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.skipped = total, 0, 0
        self.started = time.perf_counter()
        self.shown = sys.stderr.isatty()

    def skip(self, steps: int) -> None:
        self.done += steps
        self.skipped += steps

    def advance(self, label: str) -> None:
        self.done += 1
        if not self.shown:
            return
        share = min(1.0, self.done / max(self.total, 1))
        filled = round(30 * share)
        rate = (time.perf_counter() - self.started) / max(self.done - self.skipped, 1)
        left = max(self.total - self.done, 0) * rate
        bar = "█" * filled + "·" * (30 - filled)
        print(
            f"\r\033[K{bar} {share:4.0%} {left / 60:5.1f} min left  {label}",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def line(self, text: str) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        print(text, flush=True)

    def close(self) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


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
