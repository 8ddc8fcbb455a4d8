"""Table 1 of Saadi, Talbot and Cawley (2007), its claims recounted, with our numbers beside the
published ones.

The numbers of the methods as published are made by ``saadi2007_selection.py``, those of fitonce by
``benchmarks/raetsch.py`` (model selection on the first five training sets, medians, all splits; its
records lie in ``benchmarks/results/raetsch``); this script only counts. The claims of the paper:

- ORKFD beats KFD with 10-fold cross-validation on seven sets of thirteen and loses on six;
- it has the lowest error of the eight methods on five sets and the second lowest on three more;
- its selection is considerably faster than that by k folds.

They are counted on the printed numbers, and again with the standard error: the ± in the table are
standard deviations over 100 (20) splits, so the standard error of a mean is a tenth of them (a
fifth). The splits overlap, which makes that too small; it is the scale the paper has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import shared

sys.path.insert(0, str(shared.HERE.parent))
import raetsch_report

RECORDS = shared.HERE.parent / "results" / "raetsch"
SELECTION = "saadi2007_selection.json"
# the methods as published, with the coding of the targets
REMADE = {
    "orkfd": "ORKFD, targets n/n₁, -n/n₂",
    "orkfd-signs": "ORKFD, targets ±1",
    "kfd": "KFD, targets n/n₁, -n/n₂",
    "kfd-signs": "KFD, targets ±1",
}
OURS = {
    "default": "function norm (the default)",
    "dual": "dual norm (the paper's penalty)",
    "ls-svm": "LS-SVM (section 5.1)",
}


def published() -> dict[str, dict[str, tuple[float, float]]]:
    """Mean and standard deviation in %, by set and method."""
    return {
        name: {
            m: (100 * mean, 100 * sd) for m, (mean, sd) in raetsch_report.published(name).items()
        }
        for name in raetsch_report.PUBLISHED
    }


def ours(folder: Path, name: str) -> dict[str, tuple[float, float, int]]:
    """Mean, standard deviation in % and number of splits of our methods on one set."""
    found = {}
    for method in OURS:
        path = folder / f"{name}.{method}.json"
        if path.is_file():
            record = json.loads(path.read_text(encoding="utf-8"))
            found[method] = (100 * record["mean"], 100 * record["sd"], len(record["error"]))
    return found


def remade() -> dict[str, dict[str, Any]]:
    """What ``saadi2007_selection.py`` found, by set and method."""
    loaded = json.loads((shared.RESULTS / SELECTION).read_text(encoding="utf-8"))
    sets: dict[str, dict[str, Any]] = loaded["sets"]
    return sets


def errors_of(row: dict[str, Any]) -> dict[str, tuple[float, float, int]]:
    """Mean, standard deviation in % and number of splits of the methods as published."""
    return {
        m: (100 * row[m]["mean"], 100 * row[m]["sd"], row[m]["splits"])
        for m in REMADE
        if "mean" in row.get(m, {})
    }


def times(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """How many times as long as ORKFD's the selection by k folds takes: by set, and the median.

    Both as they search, and on the lattice of the folds.
    """
    ratios = {
        against: {
            name: row["kfd"]["seconds"] / row[against]["seconds"] for name, row in rows.items()
        }
        for against in ("orkfd", "lattice")
    }
    return {
        against: {"by_set": found, "median": float(np.median(list(found.values())))}
        for against, found in ratios.items()
    }


def n_splits(name: str) -> int:
    return 20 if name in ("image", "splice") else 100


def duel(
    one: dict[str, tuple[float, float]], other: dict[str, tuple[float, float]]
) -> dict[str, Any]:
    """Where one has the lower mean, the higher, and where the difference is more than its standard
    error √((s₁² + s₂²)/splits).
    """
    wins = [name for name in one if one[name][0] < other[name][0]]
    losses = [name for name in one if one[name][0] > other[name][0]]

    def clear(names: list[str]) -> list[str]:
        return [
            name
            for name in names
            if abs(one[name][0] - other[name][0])
            > ((one[name][1] ** 2 + other[name][1] ** 2) / n_splits(name)) ** 0.5
        ]

    return {
        "wins": wins,
        "losses": losses,
        "clear_wins": clear(wins),
        "clear_losses": clear(losses),
    }


def gap(one: tuple[float, ...], other: tuple[float, ...], name: str) -> float:
    """The difference of two means in its standard errors."""
    return (one[0] - other[0]) / ((one[1] ** 2 + other[1] ** 2) / n_splits(name)) ** 0.5


def ranks(table: dict[str, dict[str, tuple[float, float]]], method: str) -> dict[str, int]:
    """1 + the number of methods with a strictly lower mean: ties share the better rank."""
    return {
        name: 1 + sum(mean < row[method][0] for mean, _ in row.values())
        for name, row in table.items()
    }


def column(table: dict[str, Any], method: str) -> dict[str, tuple[float, float]]:
    return {name: tuple(row[method][:2]) for name, row in table.items()}


def main() -> None:
    run = shared.start(__file__, __doc__, {"records": "benchmarks/results/raetsch"}, {})
    table = published()
    made = remade()
    found = {name: ours(RECORDS, name) | errors_of(made.get(name, {})) for name in table}
    every = {**REMADE, **OURS}
    complete = [method for method in every if all(method in row for row in found.values())]
    paper_ranks = ranks(table, "ORKFD")
    summary: dict[str, Any] = {
        "published": {name: {m: list(v) for m, v in row.items()} for name, row in table.items()},
        "ours": {name: {m: list(v) for m, v in row.items()} for name, row in found.items()},
        "selection": times({name: made[name] for name in table if name in made}),
        "remade_ORKFD_against_remade_KFD": {
            coding: duel(column(found, f"orkfd{coding}"), column(found, f"kfd{coding}"))
            for coding in ("", "-signs")
            if {f"orkfd{coding}", f"kfd{coding}"} <= set(complete)
        },
        "gap_to_published_in_standard_errors": {
            m: {
                name: gap(row[m], table[name]["KFD" if m.startswith("kfd") else "ORKFD"], name)
                for name, row in found.items()
            }
            for m in complete
        },
        "claims": {
            "ORKFD against KFD, as printed": "7 wins, 6 losses",
            "ORKFD against KFD, recounted": duel(column(table, "ORKFD"), column(table, "KFD")),
            "ORKFD best and second, as printed": "5 and 3",
            "ORKFD best, recounted": [name for name, rank in paper_ranks.items() if rank == 1],
            "ORKFD second, recounted": [name for name, rank in paper_ranks.items() if rank == 2],
        },
        "ours_against_published_ORKFD": {
            m: duel(column(found, m), column(table, "ORKFD")) for m in complete
        },
        "ours_against_published_KFD": {
            m: duel(column(found, m), column(table, "KFD")) for m in complete
        },
        "ranks_of_ours_among_the_published": {
            m: ranks(
                {
                    name: {**{k: v for k, v in row.items() if k != "ORKFD"}, m: found[name][m][:2]}
                    for name, row in table.items()
                },
                m,
            )
            for m in complete
        },
    }
    run.save(**summary)


if __name__ == "__main__":
    main()
