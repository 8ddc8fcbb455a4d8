"""What does choosing the kernel cost, and what does it bring?

Processor time of a fit with `kernel="tune"` beside that of `kernel="rbf"`, at 400 and 2000 rows of
20 features. Then test error in % and log-loss of each kernel alone, and of choices among several,
on the sets of accuracy_sets.py that decide about defaults, at most 400 training rows, means over
splits; and over all sets the mean of each and its mean rank. A choice is the fit with the best
`best_score_`, which is what a list of kernels gives. Sets that are not on the disk are left out and
named.

    python benchmarks/kernels.py              # everything, or what is missing
    python benchmarks/kernels.py --costs      # times alone
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import common
import numpy as np
from accuracy import measures
from accuracy_sets import DECIDING, Split, split_of
from sklearn import datasets

from fitonce import KernelFisherDiscriminant
from fitonce.kernels import FAMILIES as FOUR

N_SPLITS = 2
FAMILIES = (*FOUR, "poly")  # with the one that kernel="tune" leaves out
SINGLE = ("rbf", "exponential", "laplacian", "matern32", "matern52", "linear", "poly")
CHOICES: dict[str, tuple[str, ...]] = {
    "tune": FAMILIES,
    **{f"without {name}": tuple(k for k in FAMILIES if k != name) for name in FAMILIES},
    "and matern32": (*FAMILIES, "matern32"),
    "and matern52": (*FAMILIES, "matern52"),
    "matern32 for exponential": tuple("matern32" if k == "exponential" else k for k in FAMILIES),
    "matern32 for rbf": tuple("matern32" if k == "rbf" else k for k in FAMILIES),
    "all": SINGLE,
}
MEASURES = ("error", "log_loss")
Scores = dict[str, dict[str, float]]


def costs() -> dict[str, Any]:
    found = {}
    for n in (400, 2000):
        X, y = datasets.make_classification(n, 20, n_informative=8, random_state=0)
        seconds = common.interleaved(
            3 if n == 400 else 2,
            time.process_time,
            rbf=lambda X=X, y=y: KernelFisherDiscriminant().fit(X, y),
            tune=lambda X=X, y=y: KernelFisherDiscriminant(kernel="tune").fit(X, y),
        )
        found[str(n)] = {**seconds, "times": seconds["tune"] / seconds["rbf"]}
    return found


def of_split(split: Split) -> Scores:
    """Error and log-loss of every kernel and every choice."""
    found, held_out = {}, {}
    for kernel in SINGLE:
        model = KernelFisherDiscriminant(kernel).fit(split.X, split.y)
        p = model.predict_proba(split.X_test)
        scores = measures(model.classes_[p.argmax(axis=1)], p, split)
        found[kernel] = {name: scores[name] for name in MEASURES}
        held_out[kernel] = model.best_score_
    for name, kernels in CHOICES.items():
        found[name] = found[max(kernels, key=lambda kernel: held_out[kernel])]
    return found


def means(several: list[Scores]) -> Scores:
    """Over splits or sets."""
    return {
        way: {name: float(np.mean([one[way][name] for one in several])) for name in MEASURES}
        for way in (*SINGLE, *CHOICES)
    }


def ranks(sets: dict[str, Scores], measure: str) -> dict[str, float]:
    """Mean rank of each way over the sets, ties shared."""
    ways = (*SINGLE, *CHOICES)
    table = np.array([[one[way][measure] for way in ways] for one in sets.values()])
    found = (table[:, :, None] > table[:, None, :]).sum(axis=2) + 1.0
    found += 0.5 * ((table[:, :, None] == table[:, None, :]).sum(axis=2) - 1)
    return dict(zip(ways, found.mean(axis=0).tolist(), strict=True))


def gains(sets: dict[str, Scores]) -> dict[str, dict[str, float]]:
    """How much less log-loss than rbf each way has, mean over the sets and its standard error."""
    found = {}
    for way in (*SINGLE, *CHOICES):
        less = [one["rbf"]["log_loss"] - one[way]["log_loss"] for one in sets.values()]
        error = float(np.std(less) / np.sqrt(len(less)))
        found[way] = {"mean": float(np.mean(less)), "standard_error": error}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--costs", action="store_true")
    alone = parser.parse_args().costs
    warnings.simplefilter("ignore")
    path = common.RESULTS / "kernels.json"
    record: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    record = {name: record[name] for name in ("costs", "sets") if name in record}
    if alone or "costs" not in record:
        record["costs"] = costs()
        print(record["costs"], flush=True)
    sets: dict[str, Scores] = record.setdefault("sets", {})
    missing = []
    for number, name in enumerate([] if alone else DECIDING, start=1):
        if name not in sets:
            try:
                sets[name] = means([of_split(split_of(name, k)) for k in range(N_SPLITS)])
            except FileNotFoundError:
                missing.append(name)
                continue
            common.write(__file__, record)
        common.progress(number, len(DECIDING), "kernels")
        print(name, {way: round(one["error"], 1) for way, one in sets[name].items()}, flush=True)
    if sets:
        record |= {"splits": N_SPLITS, "missing": missing, "mean": means(list(sets.values()))}
        record["gain"] = gains(sets)
        record["rank"] = {measure: ranks(sets, measure) for measure in MEASURES}
    common.write(__file__, record)


if __name__ == "__main__":
    main()
