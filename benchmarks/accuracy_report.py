"""The summaries of accuracy.py: means with standard errors, ranks, counts, and their picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import common
import numpy as np
import scipy.stats
from accuracy_models import CALIBRATIONS, MODELS, OURS, PEERS, tabpfn_sentence
from accuracy_sets import DECIDING, REPORTING, split_of
from picked import picked_elsewhere

MEASURES = ("error", "log_loss", "brier", "auc", "calibration", "fit", "predict")
RANKED = ("error", "log_loss", "brier", "auc")
LARGER_IS_BETTER = ("auc",)
FEW = 100  # training rows from which on a log-loss may be judged set by set

Records = Mapping[tuple[str, str], Mapping[str, Any]]


def complete(records: Records, models: Sequence[str], names: Sequence[str]) -> list[str]:
    """The models that have been run on all of these sets."""
    return [model for model in models if all(records[name, model]["splits"] for name in names)]


def values(records: Records, name: str, models: Sequence[str], measure: str) -> np.ndarray:
    """A measure (models, splits) on the splits that all of these models have."""
    n = min(len(records[name, model]["splits"]) for model in models)
    return np.array([[s[measure] for s in records[name, model]["splits"][:n]] for model in models])


def of_set(records: Records, name: str, models: Sequence[str]) -> dict[str, Any]:
    """Means and standard errors over the splits (None of one split), and what the set is like."""
    split = split_of(name, 0)
    found: dict[str, dict[str, list[float | None]]] = {model: {} for model in models}
    for measure in MEASURES:
        table = values(records, name, models, measure)
        for model, row in zip(models, table, strict=True):
            error = row.std(ddof=1) / np.sqrt(len(row)) if len(row) > 1 else None
            found[model][measure] = [
                round(float(row.mean()), 5),
                None if error is None else round(float(error), 5),
            ]
    return {
        "rows": len(split.y),
        "features": split.X.shape[1],
        "of levels": int(split.levels.sum()),
        "classes": int(split.y.max()) + 1,
        "test rows": len(split.y_test),
        "splits": values(records, name, models, "error").shape[1],
        "models": found,
    }


# ---- ranks ---------------------------------------------------------------------------------------


def means(sets: Mapping[str, Any], models: Sequence[str], measure: str) -> np.ndarray:
    """(sets, models), smaller is better."""
    sign = -1.0 if measure in LARGER_IS_BETTER else 1.0
    return np.array(
        [[sign * one["models"][m][measure][0] for m in models] for one in sets.values()]
    )


def ranking(sets: Mapping[str, Any], models: Sequence[str], measure: str) -> dict[str, Any]:
    """Mean ranks, Friedman's test, and the difference of ranks that Nemenyi's test calls
    significant at 5 %.
    """
    table = means(sets, models, measure)
    ranks = scipy.stats.rankdata(table, axis=1).mean(axis=0)
    k, n = len(models), len(table)
    critical = scipy.stats.studentized_range.ppf(0.95, k, 1e6) / np.sqrt(2.0)
    order = np.argsort(ranks, kind="stable")
    return {
        "ranks": {models[i]: round(float(ranks[i]), 2) for i in order},
        "critical_difference": round(float(critical * np.sqrt(k * (k + 1) / (6.0 * n))), 2),
        "friedman_p": float(scipy.stats.friedmanchisquare(*table.T).pvalue) if k > 2 else 1.0,
    }


def against(
    records: Records, names: Sequence[str], model: str, other: str, measure: str
) -> dict[str, int]:
    """On how many sets a model is ahead of another, level, behind, on all splits that both have;
    and how often by more than two standard errors of the paired difference.
    """
    sign = -1.0 if measure in LARGER_IS_BETTER else 1.0
    found = dict.fromkeys(("ahead", "level", "behind", "clearly ahead", "clearly behind"), 0)
    for name in names:
        a, b = values(records, name, [model, other], measure)
        paired, n = sign * (a - b), len(a)
        noise = 2.0 * paired.std(ddof=1) / np.sqrt(n) if n > 1 else np.inf
        difference = float(np.round(paired.mean(), 9))
        found["ahead" if difference < 0 else "behind" if difference > 0 else "level"] += 1
        if abs(difference) > noise:
            found["clearly ahead" if difference < 0 else "clearly behind"] += 1
    return found


def beside_variants(
    records: Records, names: Sequence[str], model: str, variants: Sequence[str]
) -> dict[str, Any]:
    """A model's log-loss and calibration error over the best of its own variants, itself among
    them; and over the variant that is best on the other splits.
    """
    found: dict[str, Any] = {}
    rows = {name: len(split_of(name, 0).y) for name in names}
    for measure in ("log_loss", "calibration"):
        tables = {name: values(records, name, [model, *variants], measure) for name in names}
        least = {name: max(float(t.mean(axis=1).min()), 1e-12) for name, t in tables.items()}
        fair = {name: max(picked_elsewhere(t), 1e-12) for name, t in tables.items()}
        found[measure] = {
            "splits": sorted({t.shape[1] for t in tables.values()}),
            "best": _ratios(tables, least, rows),
            "best elsewhere": _ratios(tables, fair, rows),
        }
    return found


def _ratios(
    tables: Mapping[str, np.ndarray], least: Mapping[str, float], rows: Mapping[str, int]
) -> dict[str, Any]:
    ratios = {name: float(table[0].mean()) / least[name] for name, table in tables.items()}
    worst = max((name for name in ratios if rows[name] >= FEW), key=ratios.__getitem__)
    return {
        "mean": round(float(np.mean(list(ratios.values()))), 3),
        "median": round(float(np.median(list(ratios.values()))), 3),
        "worst": round(ratios[worst], 3),
        "worst set": worst,
    }


def times(sets: Mapping[str, Any], models: Sequence[str]) -> dict[str, dict[str, float]]:
    """Median seconds over the sets, to fit and to predict."""
    return {
        model: {
            what: float(np.median([one["models"][model][what][0] for one in sets.values()]))
            for what in ("fit", "predict")
        }
        for model in models
    }


def summary(records: Records, sets: Mapping[str, Any], models: Sequence[str]) -> dict[str, Any]:
    ours = [model for model in models if model in OURS]
    return {
        "ranking": {measure: ranking(sets, models, measure) for measure in RANKED},
        "means": {
            measure: {
                model: round(float(mean), 4)
                for model, mean in zip(
                    models, abs(means(sets, models, measure).mean(axis=0)), strict=True
                )
            }
            for measure in (*RANKED, "calibration")
        },
        "against": {
            model: {
                peer: {
                    measure: against(records, list(sets), model, peer, measure)
                    for measure in RANKED[:2]
                }
                for peer in models
                if peer != model
            }
            for model in ours
        },
        "times": times(sets, models),
    }


def report(records: Records) -> None:
    """Write accuracy.json and accuracy.png from what has been computed."""
    found: dict[str, Any] = {
        "titles": {key: model.title for key, model in MODELS.items()},
        "ours": list(OURS),
        "left out": tabpfn_sentence(),
        "halves": {},
    }
    for half, names in (("deciding", DECIDING), ("reporting", REPORTING)):
        models = complete(records, [*OURS, *PEERS], names)
        variants = complete(records, list(CALIBRATIONS), names)
        if not models:
            continue
        sets = {name: of_set(records, name, models) for name in names}
        found["halves"][half] = {**summary(records, sets, models), "sets": sets}
        if variants:
            found["halves"][half]["variants"] = beside_variants(records, names, "default", variants)
    common.write("accuracy.py", found)
    if "reporting" in found["halves"]:
        draw(found)
    for half, one in found["halves"].items():
        for measure in RANKED[:2]:
            ranks = one["ranking"][measure]
            line = "  ".join(f"{model} {rank}" for model, rank in ranks["ranks"].items())
            print(f"{half}, {measure}: {line}  (critical {ranks['critical_difference']})")


# ---- the picture ---------------------------------------------------------------------------------


def cliques(ranks: Sequence[float], critical: float) -> list[tuple[float, float]]:
    """Spans of ranks that are not significantly different, none inside another."""
    spans = [(low, max(r for r in ranks if r <= low + critical)) for low in ranks]
    kept = [spans[0], *(b for a, b in pairwise(spans) if b[1] > a[1])] if spans else []
    return [span for span in kept if span[1] > span[0]]


def draw(found: Mapping[str, Any]) -> None:
    """Mean ranks on a line each, error and log-loss; bars join what is not told apart."""
    import matplotlib.pyplot as plt

    half = found["halves"]["reporting"]
    figure, axes = plt.subplots(2, 1, figsize=(7.2, 6.4), layout="constrained")
    for axis, measure, what in zip(axes, RANKED, ("test error", "log-loss"), strict=False):
        one = half["ranking"][measure]
        names, ranks = list(one["ranks"]), list(one["ranks"].values())
        critical, right = one["critical_difference"], len(ranks) + 0.0
        rows = int(np.ceil(len(ranks) / 2))
        for place, (name, rank) in enumerate(zip(names, ranks, strict=True)):
            left = place < rows
            depth = -1.0 - (place if left else len(ranks) - 1 - place)
            end = 0.4 if left else right + 0.6
            style = {"color": "#b03a2e" if name in found["ours"] else "#333333"}
            axis.plot([rank, rank, end], [0, depth, depth], lw=1.0, **style)
            axis.plot(rank, 0, "o", ms=4, **style)
            label = f"{found['titles'][name]}  {rank:.1f}" if left else None
            label = label or f"{rank:.1f}  {found['titles'][name]}"
            axis.text(
                end,
                depth,
                f" {label} ",
                ha="right" if left else "left",
                va="center",
                fontsize=9,
                weight="bold" if name in found["ours"] else "normal",
                **style,
            )
        for level, (low, high) in enumerate(cliques(ranks, critical)):
            y = -0.25 - 0.18 * level
            axis.plot([low - 0.05, high + 0.05], [y, y], lw=3.0, color="#7f8c8d", alpha=0.8)
        axis.plot([1, 1 + critical], [1.0, 1.0], lw=1.5, color="#333333")
        axis.text(1 + critical / 2, 1.1, "critical difference", ha="center", fontsize=8)
        axis.plot([1, len(ranks)], [0, 0], lw=1.2, color="#333333")
        for tick in range(1, len(ranks) + 1):
            axis.plot([tick, tick], [0, 0.12], lw=1.0, color="#333333")
            axis.text(tick, 0.2, str(tick), ha="center", fontsize=8)
        axis.set_title(f"mean rank in {what}, {len(half['sets'])} sets", fontsize=10, loc="left")
        axis.set_xlim(-2.6, right + 3.6)
        axis.set_ylim(-rows - 0.8, 1.8)
        axis.axis("off")
    figure.savefig(common.RESULTS / "accuracy.png", dpi=150)
    plt.close(figure)
