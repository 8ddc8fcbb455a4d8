"""Do scores, intervals, p-values and importances mean what they say? Counts from simulations.

- coverage: how often the 95 % interval of each score holds what the model of all rows has on new
  ones, for fixed and for tuned models, with and without signal, and for groups of rows;
- bias: the accuracy that `assess` prints on pure noise, beside that of the majority class;
- level: how often `compare` calls any two of three equally good ways of making a model different;
- columns: how often `column_importance` calls a column without effect important, on average and
  any of them, and one with effect, corrected over columns.

Labels are drawn with a probability, so that their number varies as in a sample; with `counts` it is
fixed. Draw number s of a setting has the seed [s, the setting's own number]. Every count is printed
with its binomial standard error.

The work comes in blocks of draws, which are appended to a file as they are finished, so that it can
be interrupted, resumed, and divided among machines:

    python benchmarks/honest.py --jobs 16 --seconds 540 --part 1 3 --partial part1.jsonl
    python benchmarks/honest.py --merge part1.jsonl part2.jsonl part3.jsonl

A merge writes what there is, with the number of draws of every setting.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import common
import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from fitonce import KernelRidge, LeastSquaresSVC, assess, column_importance, compare

FEATURES, NEW, BLOCK = 5, 4000, 20
ALPHAS = [0.1, 1.0, 10.0, 100.0]
PARTIAL = common.RESULTS / "honest.jsonl"
Setting = dict[str, Any]


def settings(draws: int) -> Iterator[Setting]:
    """Every setting with its number of draws."""
    models = list(product(("linear", "rbf"), (0.0, 0.5)))
    for tuned, (kernel, effect), n in product((False, True), models, (30, 60, 100, 200)):
        if tuned and n > 100:
            continue
        given = {"n": n, "kernel": kernel, "effect": effect, "tuned": tuned}
        given |= {"what": "coverage", "draws": draws * 2 // 5 if tuned else draws}
        yield given | {"kind": "labels", "share": 0.5}
        yield given | {"kind": "labels", "share": 0.3}
        yield given | {"kind": "numbers"}
    counts = {"what": "coverage", "kernel": "linear", "tuned": False, "draws": draws, "n": 60}
    yield counts | {"kind": "labels", "share": 0.3, "effect": 0.0, "counts": True}
    yield counts | {"kind": "labels", "share": 0.3, "effect": 0.5, "counts": True}
    for n_groups, kind in product((8, 20), ("labels", "numbers")):
        given = {"what": "coverage", "n": 6 * n_groups, "n_groups": n_groups, "kind": kind}
        given |= {"kernel": "linear", "effect": 0.5, "tuned": False, "share": 0.5}
        yield given | {"draws": draws * 2 // 5}
    for few, many in ((15, 15), (25, 25), (17, 23), (20, 40)):
        yield {"what": "bias", "few": few, "many": many, "draws": draws}
    for effect, tuned in product((0.0, 0.5), (False, True)):
        yield {"what": "level", "n": 40, "effect": effect, "tuned": tuned, "draws": draws * 2 // 5}
    for kernel, effect in product(("linear", "rbf"), (0.0, 1.0)):
        yield {"what": "columns", "n": 80, "kernel": kernel, "effect": effect, "draws": draws}


# ---- one draw ------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator, n: int, given: Setting, groups: int = 0) -> tuple[Any, Any]:
    """Rows and targets; rows of one group share an effect on every feature and on the target."""
    X, own = rng.normal(size=(n, FEATURES)), np.zeros(n)
    if groups:
        of_row = np.arange(n) * groups // n
        X, own = X + rng.normal(size=(groups, FEATURES))[of_row], rng.normal(size=groups)[of_row]
    if given["kind"] == "numbers":
        return X, given["effect"] * (X[:, 0] + np.sin(2 * X[:, 1])) + rng.normal(size=n) + own
    share, order = given["share"], rng.random(n)
    if given.get("counts"):
        order = rng.permutation(n) / n
    y = (order < share).astype(int)
    if groups:
        y = np.repeat(rng.permutation(groups) < share * groups, n // groups).astype(int)
    X[:, :2] += given["effect"] * (2 * y[:, None] - 1)
    return X, y


def model_of(given: Setting) -> Any:
    alpha: Any = ALPHAS if given["tuned"] else 1.0
    gamma = {} if given["kernel"] == "linear" else {"gamma": 0.1}
    kind = LeastSquaresSVC if given["kind"] == "labels" else KernelRidge
    return kind(kernel=given["kernel"], alpha=alpha, **gamma)


def beyond(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """A loss of one's own: by how much a prediction is more than one off."""
    return np.maximum(np.abs(y - predicted) - 1.0, 0.0)


def truth(model: Any, X: np.ndarray, y: np.ndarray, kind: str) -> dict[str, float]:
    """The scores of a fitted model on new rows."""
    predicted = model.predict(X)
    if kind == "numbers":
        mse = float(np.mean((y - predicted) ** 2))
        errors = {"mae": np.mean(np.abs(y - predicted)), "rmse": np.sqrt(mse)}
        return errors | {"r2": 1.0 - mse / np.var(y), "beyond": np.mean(beyond(y, predicted))}
    p = model.predict_proba(X)
    return {
        "accuracy": np.mean(predicted == y),
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
        "roc_auc": roc_auc_score(y, model.decision_function(X)),
        "log_loss": log_loss(y, p),
        "brier": np.mean((p[:, 1] - y) ** 2),
    }


def coverage(rng: np.random.Generator, seed: int, given: Setting) -> dict[str, float]:
    """Whether the interval of each score holds the truth, and its width; NaN without one."""
    groups = given.get("n_groups", 0)
    X, y = drawn(rng, given["n"], given, groups)
    while given["kind"] == "labels" and min(np.sum(y == 0), np.sum(y == 1)) < 3:
        X, y = drawn(rng, given["n"], given, groups)
    X_new, y_new = drawn(rng, NEW, given, NEW // 4 if groups else 0)
    model = model_of(given)
    own = {"beyond": beyond} if given["kind"] == "numbers" else None
    of_row = np.arange(given["n"]) * groups // given["n"] if groups else None
    fitted = model.fit(X, y, groups=of_row)  # temperatures are those of left-out groups
    true = truth(fitted, X_new, y_new, given["kind"])
    options = {"permutations": 0, "random_state": seed, "losses": own, "groups": of_row}
    score, found = assess(model, X, y, **options).intervals, {}
    for name, value in true.items():
        one = score[name]
        found[name] = float(one.low <= value <= one.high) if np.isfinite(one.low) else np.nan
        found[f"{name} width"] = one.high - one.low
        found[f"{name} bias"] = one.value - value
    return found


def bias(rng: np.random.Generator, seed: int, given: Setting) -> dict[str, float]:
    """The accuracy of noise, less that of the majority class."""
    y = np.repeat([0, 1], [given["few"], given["many"]])
    X = rng.normal(size=(len(y), FEATURES))
    model = LeastSquaresSVC(gamma=0.1, alpha=1e4, calibration=None)
    answer = assess(model, X, y, permutations=0, random_state=seed)
    return {"bias": answer.accuracy.value - answer.baseline.value}


def level(rng: np.random.Generator, seed: int, given: Setting) -> dict[str, float]:
    """Whether any two of three parts of the features, of one law, are told apart."""

    def part(number: int) -> Any:
        alpha: Any = ALPHAS if given["tuned"] else 1.0
        own = slice(2 * number, 2 * number + 2)
        kernel = lambda A, B: A[:, own] @ B[:, own].T  # noqa: E731
        return LeastSquaresSVC(kernel, alpha=alpha, calibration=None)

    y = np.arange(given["n"]) % 2
    X = rng.normal(size=(given["n"], 6)) + given["effect"] * (2 * y[:, None] - 1)
    found = compare([part(k) for k in range(3)], None, X, y, repeats=3, random_state=seed)
    p = [difference.pvalue for difference in found.differences]
    return {"any of three pairs": float(min(p) <= 0.05)}


def columns(rng: np.random.Generator, seed: int, given: Setting) -> dict[str, float]:
    """Shares of columns without effect below .05, any of them, and of those with effect."""
    X = rng.normal(size=(given["n"], 8))
    y = given["effect"] * X[:, :2].sum(axis=1) + rng.normal(size=given["n"])
    model = model_of({"tuned": False, "kernel": given["kernel"], "kind": "numbers"}).fit(X, y)
    p = column_importance(model, X, y).pvalues
    none = p[2:] if given["effect"] else p
    found = {"without effect": np.mean(none <= 0.05), "any": float(np.any(none <= 0.05))}
    return found | ({"with effect": np.mean(p[:2] <= 0.05)} if given["effect"] else {})


DRAWS = {"coverage": coverage, "bias": bias, "level": level, "columns": columns}


# ---- all draws -----------------------------------------------------------------------------------


def key(setting: Setting) -> str:
    return json.dumps({k: v for k, v in setting.items() if k != "draws"}, sort_keys=True)


def block(setting: Setting, first: int, last: int) -> dict[str, Any]:
    """Some draws of a setting, with their processor time."""
    start, number = time.process_time(), zlib.crc32(key(setting).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            DRAWS[setting["what"]](np.random.default_rng([seed, number]), seed, setting)
            for seed in range(first, last)
        ]
    values = {name: [one[name] for one in found] for name in found[0]}
    seconds = time.process_time() - start
    return {"setting": key(setting), "first": first, "values": values, "seconds": seconds}


def read(paths: list[Path]) -> dict[tuple[str, int], dict[str, Any]]:
    """The finished blocks of some files; a last line that was cut off is left out."""
    found = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            if line.endswith("}"):
                one = json.loads(line)
                found[one["setting"], one["first"]] = one
    return found


def summary(setting: Setting, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the draws that are known, with their standard errors."""
    row = dict(setting) | {"seconds": sum(one["seconds"] for one in blocks)}
    for name in blocks[0]["values"]:
        values = np.array([v for one in blocks for v in one["values"][name]], dtype=float)
        known = values[np.isfinite(values)]
        row[name] = {
            "mean": float(known.mean()) if len(known) else None,
            "error": float(known.std() / np.sqrt(len(known))) if len(known) else None,
            "n": len(known),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000, help="of fixed models; 2/5 of tuned")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", type=int, nargs=2, default=(1, 1), help="number, of how many")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no block after these")
    parser.add_argument("--partial", type=Path, default=PARTIAL)
    parser.add_argument("--merge", type=Path, nargs="+")
    asked = parser.parse_args()
    every = [
        (setting, first, min(first + BLOCK, setting["draws"]))
        for setting in settings(asked.draws)
        for first in range(0, setting["draws"], BLOCK)
    ]
    done = read(asked.merge or [asked.partial])
    if not asked.merge:
        number, parts = asked.part
        order = np.random.default_rng(0).permutation(len(every))[number - 1 :: parts]
        open_ = [every[k] for k in order if (key(every[k][0]), every[k][1]) not in done]
        end, total = time.monotonic() + asked.seconds, len(order)
        tasks = (delayed(block)(*one) for one in open_ if time.monotonic() < end)
        with asked.partial.open("a", encoding="utf-8") as file:
            for one in Parallel(asked.jobs, return_as="generator_unordered")(tasks):
                done[one["setting"], one["first"]] = one
                file.write(json.dumps(one) + "\n")
                file.flush()
        finished = total - len(open_) + sum((key(s), f) in done for s, f, _ in open_)
        seconds = sum(one["seconds"] for one in done.values())
        print(f"{finished} of {total} blocks, {seconds:.0f} s of processor time", flush=True)
    missing = sum((key(setting), first) not in done for setting, first, _ in every)
    print(f"{missing} of {len(every)} blocks are missing")
    if not missing or asked.merge:
        write([(s, [one for (k, _), one in done.items() if k == key(s)]) for s in settings(1)])


def write(found: list[tuple[Setting, list[dict[str, Any]]]]) -> None:
    """The result of all blocks that there are; every setting needs one."""
    rows = []
    for setting, blocks in found:
        given = setting | {"draws": sum(len(next(iter(b["values"].values()))) for b in blocks)}
        rows.append(summary(given, blocks))
        show(rows[-1])
    covers = [row for row in rows if row["what"] == "coverage" and "n_groups" not in row]
    least = {
        name: min(row["draws"] for row in covers if row["tuned"] == tuned)
        for name, tuned in (("draws", False), ("tuned draws", True))
    }
    note = "draw s of a setting: numpy.random.default_rng([s, crc32 of the setting]), s from 0"
    common.write(__file__, {**least, "seeds": note, "rows": rows})


def show(row: dict[str, Any]) -> None:
    counts = {k: v for k, v in row.items() if isinstance(v, dict) and v["n"]}
    shown = {k: v for k, v in counts.items() if not k.endswith((" width", " bias"))}
    said = (f"{k} {v['mean']:.3f} ± {v['error']:.3f}" for k, v in shown.items())
    given = (f"{k} {v}" for k, v in row.items() if not isinstance(v, dict) and k != "seconds")
    print(f"{', '.join(given)}: {', '.join(said)}", flush=True)


if __name__ == "__main__":
    main()
