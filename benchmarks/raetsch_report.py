"""The summaries of raetsch.py: differences, counts and tables from its records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np
from raetsch_protocol import METHODS, Protocol, Record, write_text

from fitonce.datasets import RAETSCH

PUBLISHED_METHODS = ("ORKFD", "RBF", "AB", "ABL", "ABQ", "AB_R", "SVM", "KFD")
# Mean and standard deviation in % of table 1 of the paper, in the order of PUBLISHED_METHODS, as
# printed there.
PUBLISHED = {
    "banana": "10.5 0.42  10.76 0.42  12.26 0.67  10.73 0.43  "
    "10.90 0.46  10.85 0.42  11.53 0.66  10.75 0.45",
    "breast_cancer": "27.00 4.68  27.64 4.71  30.36 4.73  26.79 6.08  "
    "25.91 4.61  26.51 4.47  26.04 4.74  24.7 4.63",
    "diabetis": "23.22 1.76  24.29 1.88  26.47 2.29  24.11 1.90  "
    "25.39 2.20  23.79 1.80  23.53 1.73  23.2 1.63",
    "german": "23.62 2.16  24.71 2.38  27.45 2.50  24.79 2.22  "
    "25.25 2.14  24.34 2.08  23.62 2.07  23.71 2.20",
    "heart": "15.78 3.30  17.55 3.25  20.29 3.44  17.49 3.53  "
    "17.17 3.44  16.47 3.51  15.95 3.26  16.14 3.39",
    "image": "4.03 0.58  3.32 0.65  2.73 0.66  2.76 0.61  "
    "2.67 0.63  2.67 0.61  2.96 0.60  4.76 0.58",
    "ringnorm": "1.47 0.09  1.70 0.21  1.93 0.24  2.24 0.46  "
    "1.86 0.22  1.58 0.12  1.66 0.12  1.49 0.12",
    "flare_solar": "34.09 1.62  34.37 1.95  35.70 1.79  34.74 2.00  "
    "36.22 1.80  34.20 2.18  32.43 1.82  33.16 1.72",
    "splice": "10.80 0.70  9.95 0.78  10.14 0.51  10.22 1.59  "
    "10.11 0.52  9.50 0.65  10.88 0.66  10.51 0.64",
    "thyroid": "4.88 1.97  4.52 2.12  4.40 2.18  4.59 2.22  "
    "4.35 2.18  4.55 2.19  4.80 2.19  4.20 2.07",
    "titanic": "22.53 1.05  23.26 1.34  22.58 1.18  23.98 4.38  "
    "22.71 1.05  22.64 1.20  22.42 1.02  23.25 2.05",
    "twonorm": "2.64 0.19  2.85 0.28  3.03 0.28  3.17 0.43  "
    "2.97 0.26  2.70 0.24  2.96 0.23  2.61 0.23",
    "waveform": "9.55 0.33  10.66 1.08  10.84 0.58  10.53 1.02  "
    "10.07 0.51  9.79 0.81  9.88 0.43  9.86 0.44",
}


@dataclass(frozen=True)
class Estimate:
    mean: float
    sd: float
    n: int

    @property
    def standard_error(self) -> float:
        return self.sd / self.n**0.5

    @classmethod
    def of(cls, values: Any) -> Estimate:
        values = np.asarray(values, dtype=float)
        return cls(
            float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0, len(values)
        )

    def to_dict(self) -> dict[str, float]:
        return {
            "mean": self.mean,
            "sd": self.sd,
            "n": self.n,
            "standard_error": self.standard_error,
        }


Records = Mapping[str, Mapping[str, Record]]  # by set, then by method


def published(name: str) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of the published methods, as fractions."""
    numbers = [float(text) / 100.0 for text in PUBLISHED[name].split()]
    return dict(zip(PUBLISHED_METHODS, zip(numbers[::2], numbers[1::2], strict=True), strict=True))


def load_records(protocol: Protocol) -> Records:
    found = {name: {key: protocol.load(key, name) for key in METHODS} for name in RAETSCH}
    return {
        name: {k: r for k, r in row.items() if r and "mean" in r} for name, row in found.items()
    }


def paired(row: Mapping[str, Record], one: str, other: str, what: str = "error") -> Estimate | None:
    """Differences one - other over the splits that both have."""
    if one not in row or other not in row or not row[one].get(what) or not row[other].get(what):
        return None
    n = min(len(row[one][what]), len(row[other][what]))
    return Estimate.of(np.subtract(row[one][what][:n], row[other][what][:n]))


def selection_cpu(record: Record) -> float:
    return float(sum(entry["cpu_seconds"] for entry in record["selection"]))


def speed_up(row: Mapping[str, Record]) -> float | None:
    return (
        selection_cpu(row["svc"]) / selection_cpu(row["default"])
        if {"svc", "default"} <= set(row)
        else None
    )


def at_least_orkfd(row: Mapping[str, Record], name: str) -> bool | None:
    """Mean error at most that of the published ORKFD plus our own sd/√splits."""
    if "default" not in row:
        return None
    error = Estimate.of(row["default"]["error"])
    return error.mean <= published(name)["ORKFD"][0] + error.standard_error


def count(answers: Any) -> dict[str, int]:
    known = [bool(answer) for answer in answers if answer is not None]
    return {"yes": sum(known), "of": len(known)}


def compare(
    records: Records, one: str, other: str, what: str, holds: Callable[[Estimate], bool]
) -> dict[str, int]:
    differences = (paired(row, one, other, what) for row in records.values())
    return count(None if d is None else holds(d) for d in differences)


def targets(records: Records) -> dict[str, Any]:
    ratios = [ratio for row in records.values() if (ratio := speed_up(row)) is not None]
    return {
        "not worse than SVC by more than one standard error (11)": compare(
            records, "default", "svc", "error", lambda d: d.mean <= d.standard_error
        ),
        "better than SVC (6)": compare(records, "default", "svc", "error", lambda d: d.mean < 0),
        "better than SVC by more than one standard error": compare(
            records, "default", "svc", "error", lambda d: d.mean < -d.standard_error
        ),
        "at least as good as the published ORKFD, allowing sd/√splits (11)": count(
            at_least_orkfd(row, n) for n, row in records.items()
        ),
        "selection faster than the SVC grid, median of CPU times (30)": median(ratios)
        if ratios
        else None,
        "log-loss at most CalibratedClassifierCV(SVC) (9)": compare(
            records, "default", "svc-calibrated", "log_loss", lambda d: d.mean <= 0
        ),
        "Brier score at most CalibratedClassifierCV(SVC) (9)": compare(
            records, "default", "svc-calibrated", "brier", lambda d: d.mean <= 0
        ),
        "log-loss below that of a sigmoid on training projections (13)": compare(
            records, "default", "training-sigmoid", "log_loss", lambda d: d.mean < 0
        ),
        "Brier score below that of a sigmoid on training projections (13)": compare(
            records, "default", "training-sigmoid", "brier", lambda d: d.mean < 0
        ),
    }


def summarise_record(record: Record) -> Record:
    summary: Record = {"parameters": record.get("parameters"), "settings": record["settings"]}
    for what in ("error", "log_loss", "brier"):
        if record.get(what):
            summary[what] = Estimate.of(record[what]).to_dict()
    if "selection" in record:
        summary["selection_cpu_seconds"] = selection_cpu(record)
        summary["selection_seconds"] = float(sum(entry["seconds"] for entry in record["selection"]))
    return summary


def summarise(records: Records) -> Record:
    sets = {}
    for name, row in records.items():
        differences = {key: paired(row, key, "svc") for key in row if key != "svc"}
        sets[name] = {
            "methods": {key: summarise_record(record) for key, record in row.items()},
            "minus_svc": {key: d.to_dict() for key, d in differences.items() if d},
            "speed_up": speed_up(row),
            "published": {
                key: {"mean": mean, "sd": sd} for key, (mean, sd) in published(name).items()
            },
        }
    return {"targets": targets(records), "sets": sets}


def report(protocol: Protocol) -> Path:
    """Write the summary of all records; its path."""
    records = load_records(protocol)
    for what, found in targets(records).items():
        print(f"{what}: {found}")
    if protocol.offset == 0 and not protocol.quick:
        return common.write("raetsch.py", summarise(records))
    path = protocol.folder.with_suffix(".json")
    write_text(path, json.dumps(summarise(records)) + "\n")
    return path
