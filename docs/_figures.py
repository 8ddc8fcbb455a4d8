"""Every measured figure of README.md and docs/*.md, written from benchmarks/results.

    python docs/_figures.py            # writes
    python docs/_figures.py --check    # says which pages are not up to date; the tests do that too

How the parts of a page are marked: _marked.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _marked import Marked, table, wrapped
from _studies import Simulated, study_tables

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "benchmarks" / "results"


def result(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def made_by(tables: str, *names: str, tasks: tuple[str, ...] = ()) -> str:
    """Tables with the scripts, and the versions that they ran with, in a sentence below them; of a
    result with tasks those that are named.
    """
    found = [result(name) for name in names]
    if tasks:
        found = [found[0]["tasks"][task] for task in tasks]
    scripts = ", ".join(dict.fromkeys(f"`{script_of(one)}`" for one in found))
    versions = found[0]["versions"]
    where = f", {found[0]['device']}" if "device" in found[0] else ", one thread"
    note = wrapped(
        f"Made by {scripts}; Python {versions['python']}, NumPy {versions['numpy']}, "
        f"scikit-learn {versions['sklearn']}{where}."
    )
    return f"{tables}\n{note}"


def script_of(found: dict[str, Any]) -> str:
    """The former script that has made a result, or today's, tasks of one list as one."""
    if "made_by" in found:
        return str(found["made_by"])
    script = str(found["script"])
    return script.split()[0] if "timings.py" in script or "gpu.py" in script else script


def duration(seconds: float) -> str:
    """Two or three figures, in seconds, minutes or hours."""
    if seconds < 1e-3:
        return f"{seconds * 1e3:.2f} ms"
    if seconds < 1:
        return f"{seconds:.2g} s" if seconds >= 0.1 else f"{seconds * 1e3:.0f} ms"
    if seconds < 600:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# ---- tables --------------------------------------------------------------------------------------


def timed() -> dict[str, Any]:
    """The tasks of timings.py, by name."""
    tasks: dict[str, Any] = result("timings")["tasks"]
    return tasks


def speed() -> str:
    """Every task at its largest size with a peer."""
    rows = []
    for name, task in timed().items():
        sized = [(int(size), sides) for size, sides in task["sizes"].items() if peers(sides)]
        if not sized:
            continue
        size, sides = max(sized, key=lambda pair: pair[0])
        for peer in peers(sides):
            side = peer.removeprefix("MNE, ") if peer.startswith("MNE, ") else "fitonce"
            own, theirs = sides[side], sides[peer]["seconds"]
            note = ", extrapolated" if peer in task["scaled"] else ""
            what = f"{label(name, side)}, {size:,} {task['unit']}"
            cells = [duration(own["seconds"]), f"{peer}{note}", duration(theirs)]
            rows.append([what, *cells, ratio(theirs / own["seconds"])])
    header = ["task", "fitonce", "beside", "time", "times faster"]
    return made_by(table(header, rows), "timings", tasks=tuple(timed()))


def label(name: str, side: str) -> str:
    """What is timed: a side other than the first names itself."""
    return name if side == "fitonce" else f"{name.split(',')[0]}, {side}"


def memory(measured: dict[str, float]) -> str:
    return f"{measured['MiB']:,.0f} MiB" if measured["MiB"] > 10 else ""


def ratio(value: float) -> str:
    """Two figures: 0.15, 7.8, 390."""
    return f"{value:.2g}" if value < 100 else f"{float(f'{value:.2g}'):,.0f}"


def peers(sides: dict[str, Any]) -> list[str]:
    """The sides that are other software."""
    words = "scikit-learn", "SVC", "himalaya", "Nystroem", "MAPIE", "MNE"
    return [name for name in sides if any(word in name for word in words)]


def growth() -> str:
    """Every side of every task: seconds and memory at each size, and the slope."""
    parts = []
    for name, task in timed().items():
        sizes = list(task["sizes"])
        rows = [
            [
                side + (" (extrapolated)" if side in task["scaled"] else ""),
                *(shown(task["sizes"][size].get(side)) for size in sizes),
                f"{task['slopes'][side]:.1f}" if side in task["slopes"] else "",
            ]
            for side in task["sizes"][sizes[0]]
        ]
        header = [name, *(f"{int(size):,} {task['unit']}" for size in sizes), "slope"]
        parts.append(table(header, rows))
    return made_by("\n".join(parts), "timings", tasks=tuple(timed()))


def shown(measured: dict[str, float] | None) -> str:
    """Seconds, and memory where it is more than 10 MiB."""
    if measured is None:
        return ""
    memory = f", {measured['MiB']:.0f} MiB" if measured["MiB"] > 10 else ""
    return duration(measured["seconds"]) + memory


def peak_matrices() -> str:
    """The peak memory of a fit with 21 alphas, in n×n matrices of float64."""
    sizes = timed()["fit, 21 alphas"]["sizes"]
    size = max(map(int, sizes))
    return f"{sizes[str(size)]['fitonce']['MiB'] * 2**20 / (8 * size**2):.1f}"


def beside_himalaya(side: str) -> str:
    """Time and memory of the largest number of targets from many columns."""
    sizes = timed()["targets, 5,000 columns"]["sizes"]
    found = sizes[max(sizes, key=int)][side]
    return f"{duration(found['seconds'])} and {found['MiB'] / 1024:.1f} GiB"


def raetsch() -> str:
    def error(method: dict[str, Any]) -> str:
        return f"{100 * method['error']['mean']:.1f} ± {100 * method['error']['sd']:.1f}"

    columns = {
        "default": "discriminant",
        "dual": "dual norm",
        "ls-svm": "LS-SVM",
        "svc": "GridSearchCV(SVC)",
    }
    rows = [
        [name, *(error(found["methods"][column]) for column in columns), f"{found['speed_up']:.0f}"]
        for name, found in result("raetsch")["sets"].items()
    ]
    return made_by(table(["set", *columns.values(), "selection, times faster"], rows), "raetsch")


def raetsch_counts() -> str:
    rows = []
    for name, value in result("raetsch")["targets"].items():
        plain = re.sub(r" \(\d+\)$", "", name)
        rows.append(
            [
                plain,
                f"{value['yes']} of {value['of']}"
                if isinstance(value, dict)
                else f"{value:.0f} times",
            ]
        )
    return made_by(table(["on Rätsch's 13 sets", "result"], rows), "raetsch")


def large() -> str:
    """Landmarks beside the peer, at the largest sizes."""
    rows, names = [], ("300 landmarks, 21 alphas", "500 landmarks, 21 alphas")
    for name in names:
        sizes = timed()[name]["sizes"]
        size = max(sizes, key=int)
        ours, theirs = (sizes[size][side] for side in ("fitonce", "Nystroem + RidgeClassifierCV"))
        cells = [f"{duration(one['seconds'])}, {memory(one)}" for one in (ours, theirs)]
        times = f"{theirs['seconds'] / ours['seconds']:.1f}"
        rows.append([f"{int(size):,}, {name.split()[0]}", *cells, times])
    header = ["rows, landmarks", "fitonce", "Nystroem + RidgeClassifierCV", "times faster"]
    return made_by(table(header, rows), "timings", tasks=names)


def on_gpu(name: str) -> dict[str, Any]:
    found: dict[str, Any] = result("gpu")["tasks"][name]
    return found


def gpu() -> str:
    rows, fits = [], on_gpu("fit")["rows"]
    for n, path in sorted(on_gpu("path")["rows"].items(), key=lambda pair: int(pair[0])):
        cells = [duration(path["band"]), duration(path["eigh"]) if "eigh" in path else "–"]
        cells += [duration(fits[n]["seconds"]) if n in fits else "–", f"{path['peak_GiB']:.1f} GiB"]
        rows.append([f"{int(n):,}", *cells])
    header = ["rows", f"leave-one-out for {on_gpu('path')['alphas']} alphas", "eigh alone"]
    header += ["whole fit", "peak memory of leave-one-out"]
    return made_by(table(header, rows), "gpu", tasks=("path", "fit"))


def seconds_of(name: str, size: int) -> dict[str, float]:
    """Seconds of every side of a task."""
    sides = timed()[name]["sizes"][str(size)]
    return {side: measured["seconds"] for side, measured in sides.items()}


def headline() -> str:
    """The table "How fast" of README.md."""
    many = seconds_of("1,000 permutations, 5 classes", 1000)
    refits = [many[name] / many["fitonce"] for name in many if name.startswith("scikit-learn")]
    targets = result("raetsch")["targets"]
    speed = targets["selection faster than the SVC grid, median of CPU times (30)"]
    not_worse = targets["not worse than SVC by more than one standard error (11)"]["yes"]
    better = targets["better than SVC (6)"]["yes"]
    decoding, large = seconds_of("decoding, 1,000 permutations", 200), "500 landmarks, 21 alphas"
    sides = timed()[large]["sizes"]["1000000"]
    ours, theirs = sides["fitonce"], sides["Nystroem + RidgeClassifierCV"]
    path = on_gpu("path")["rows"]["32768"]
    rows = [
        (
            "1000 permutations of 10-fold kernel FDA, n = 1000, 5 classes: "
            f"{many['fitonce']:.2f} s",
            "scikit-learn refitting SVC; the same estimator (both extrapolated)",
            " and ".join(f"{ratio:.0f} ×" for ratio in sorted(refits)) + " faster",
        ),
        (
            "kernel width and alpha chosen by default, Rätsch's 13 benchmarks",
            f"GridSearchCV(SVC): better on {better}, not worse by more than one standard error on "
            f"{not_worse} of 13",
            f"{speed:.0f} × faster (median)",
        ),
        (
            "decoding over time, 300 epochs × 64 channels × 200 time points, 5 folds, "
            f"1000 permutations: {decoding['fitonce']:.1f} s",
            "MNE's SlidingEstimator with LDA (extrapolated)",
            f"{decoding['MNE'] / decoding['fitonce']:.0f} × faster",
        ),
        (
            "1,000,000 rows × 20 features, 500 landmarks, 21 candidates of alpha by "
            f"leave-one-out: {ours['seconds']:.0f} s",
            "Nystroem + RidgeClassifierCV",
            f"{theirs['seconds'] / ours['seconds']:.1f} × faster, "
            f"{100 * ours['MiB'] / theirs['MiB']:.0f} % of its extra memory",
        ),
        (
            "exact leave-one-out of 32,768 rows, 21 candidates of alpha, one H200: "
            f"{path['band']:.1f} s",
            "one eigendecomposition of the kernel matrix there",
            f"{path['eigh / band']:.1f} × faster",
        ),
    ]
    note = wrapped(
        "One thread, both sides in turn in one process unless said otherwise; made by the scripts "
        "in [`benchmarks/`](benchmarks)."
    )
    return f"{table(['what', 'beside', 'result'], rows)}\n{note}"


SIMULATED = Simulated(result, made_by)
SIMULATED = Simulated(result, made_by)
WRITERS = [headline, speed, growth, raetsch, raetsch_counts, large, gpu]
TABLES: dict[str, Callable[[], str]] = {one.__name__: one for one in WRITERS}
TABLES |= {**study_tables(result, made_by), **SIMULATED.tables()}

# ---- figures inside sentences --------------------------------------------------------------------


def gpu_agreement(kind: str) -> str:
    """The largest difference from NumPy, over torch and CuPy, fixed and tuned models."""
    found = on_gpu("agreement")
    differences = [
        value
        for library in ("torch", "cupy")
        for name, value in found[library]["largest difference"].items()
        if kind in name
    ]
    return f"{max(differences):.0e}"


def times_faster(what: str) -> str:
    """Scores of MNE's estimators over ours."""
    sizes = timed()["decoding, 1,000 permutations"]["sizes"]
    found = sizes[max(sizes, key=int)]
    return f"{found[f'MNE, {what}']['seconds'] / found[what]['seconds']:.0f}"


FIGURES: dict[str, Callable[[], str]] = {
    **{name: lambda text=text: text for name, text in SIMULATED.figures().items()},
    "scores_faster": lambda: times_faster("scores"),
    "generalization_faster": lambda: times_faster("time × time"),
    "peak_matrices": peak_matrices,
    "gpu_agreement_exact": lambda: gpu_agreement("exact"),
    "gpu_agreement_landmarks": lambda: gpu_agreement("landmarks"),
    "gpu_landmarks": lambda: "{seconds:.1f} s and {extra_peak_GiB:.1f} GiB".format(
        **on_gpu("landmarks")
    ),
    "dask_gpu_8": lambda: f"{on_gpu('dask')['planned']['8']:.0f} s",
    "dask_gpu_rate": lambda: f"{1e-3 / on_gpu('dask')['seconds a row']:.0f},000",
    **{
        f"targets_{side}": lambda side=side: beside_himalaya(side)
        for side in ("fitonce", "himalaya")
    },
    "targets_gpu_ours": lambda: f"{on_gpu('targets')['fitonce']:.2f} s",
    "targets_gpu_theirs": lambda: f"{on_gpu('targets')['himalaya']:.1f} s",
    "gpu_path": lambda: duration(on_gpu("path")["rows"]["16384"]["band"]),
    "gpu_permutations": lambda: "{cosets:.1f} s".format(**on_gpu("permutations")),
}


MARKED = Marked(DOCS, TABLES, FIGURES, (RESULTS / "measurements.md", DOCS.parent / "README.md"))

if __name__ == "__main__":
    MARKED.main()
