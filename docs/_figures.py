"""Every measured figure of docs/*.md, written from benchmarks/results.

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


def made_by(tables: str, *names: str) -> str:
    """Tables with the scripts, and the versions that they ran with, in a sentence below them."""
    found = [result(name) for name in names]
    scripts = ", ".join(f"`{one.get('made_by') or one['script']}`" for one in found)
    versions = found[0]["versions"]
    where = f", {found[0]['device']}" if "device" in found[0] else ", one thread"
    note = wrapped(
        f"Made by {scripts}; Python {versions['python']}, NumPy {versions['numpy']}, "
        f"scikit-learn {versions['sklearn']}{where}."
    )
    return f"{tables}\n{note}"


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
    """Every task at its largest size with a peer: ours, the peer, the ratio of the times."""
    rows = []
    for name, task in timed().items():
        sized = [(int(size), sides) for size, sides in task["sizes"].items() if peers(sides)]
        if not sized:
            continue
        size, sides = max(sized, key=lambda pair: pair[0])
        ours = next(iter(sides.values()))["seconds"]
        for peer in peers(sides):
            theirs = sides[peer]["seconds"]
            note = ", extrapolated" if peer in task["scaled"] else ""
            times = duration(ours), f"{peer}{note}", duration(theirs), ratio(theirs / ours)
            rows.append([f"{name}, {size:,} {task['unit']}", *times])
    return made_by(table(["task", "fitonce", "beside", "time", "times faster"], rows), "timings")


def ratio(value: float) -> str:
    """Two figures: 0.15, 7.8, 390."""
    return f"{value:.2g}" if value < 100 else f"{float(f'{value:.2g}'):,.0f}"


def peers(sides: dict[str, Any]) -> list[str]:
    """The sides that are other software."""
    words = "scikit-learn", "SVC", "himalaya", "Nystroem", "MAPIE"
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
    return made_by("\n".join(parts), "timings")


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


def default_fit() -> str:
    rows = [
        [n, f"{row['auto / eigh']:.1f}", f"{row['full / eigh']:.1f}" if "full" in row else "–"]
        for n, row in result("search")["rows"].items()
    ]
    header = ["rows", "default fit / one `eigh`", '`search="full"` / one `eigh`']
    return made_by(table(header, rows), "search")


def permutation() -> str:
    found = result("permutation")
    rows = []
    for name in ("five classes", "two classes"):
        case = found[name]
        for mode, values in case["modes"].items():
            what = f"n = {case['n']}, {name}, {case['permutations']:,} permutations"
            rows.append([what, f"`{mode}`", duration(values["seconds"]), f"{values['ratio']:.1f}"])
    times = table(["what", "`permute`", "time", "time / the bare matrix product"], rows)
    refits = table(
        ["five classes, by refitting (extrapolated)", "time", "beside `cosets`"],
        [
            [
                name,
                duration(seconds),
                f"{seconds / found['five classes']['modes']['cosets']['seconds']:.0f} times",
            ]
            for name, seconds in found["refits"].items()
        ],
    )
    return made_by(times + "\n" + refits, "permutation")


def positions() -> str:
    found = result("positions")
    spent = found["processor"]
    rows = [
        [f"`{mode}`", duration(seconds), f"{spent['times_faster'][mode]}"]
        for mode, seconds in spent["seconds"].items()
    ]
    rows.append(["MNE, refitting (extrapolated)", duration(spent["mne_seconds_extrapolated"]), "1"])
    what = (
        f"{found['epochs']} epochs × {found['channels']} channels × {found['times']} times, "
        f"{found['permutations']:,} permutations"
    )
    times = table([what, "time", "times faster"], rows)
    names = {
        "scores": "scores at all times",
        "scaled_scores": "the same, columns standardized",
        "generalization": "generalization over time",
        "scaled_generalization": "the same, columns standardized",
    }
    without = [
        [
            names[name],
            duration(spent[f"{name}_seconds"]["fitonce"]),
            duration(spent[f"{name}_seconds"]["mne"]),
            f"{spent[f'{name}_times_faster']}",
        ]
        for name in names
    ]
    rest = table(["no permutations", "fitonce", "MNE", "times faster"], without)
    return made_by(times + "\n" + rest, "positions")


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
    found = result("large")
    rows = []
    for case in (name for name in found if name.startswith("n=")):
        n, m = re.findall(r"\d+", case)
        ours, theirs, both = (
            found["runs"][f"fitonce {case}"],
            found["runs"][f"sklearn {case}"],
            found[case],
        )
        rows.append(
            [
                f"{int(n):,}, {m}",
                f"{duration(ours['seconds'])}, {ours['extra_gib']:.2g} GiB",
                f"{duration(theirs['seconds'])}, {theirs['extra_gib']:.2g} GiB",
                f"{both['times_faster']:.1f}",
                f"{both['accuracy_difference']:+.4f}",
            ]
        )
    header = [
        "rows, landmarks",
        "fitonce",
        "Nystroem + RidgeClassifierCV",
        "times faster",
        "difference in accuracy",
    ]
    return made_by(table(header, rows), "large")


def gpu() -> str:
    found = result("gpu")
    rows = []
    for n, path in sorted(found["path"].items(), key=lambda pair: int(pair[0])):
        fit = found["fit"].get(n)
        rows.append(
            [
                f"{int(n):,}",
                duration(path["band"]),
                duration(path["eigh"]) if "eigh" in path else "–",
                duration(fit["seconds"]) if fit else "–",
                f"{path['peak_GiB']:.1f} GiB",
            ]
        )
    header = [
        "rows",
        f"leave-one-out for {found['alphas']} alphas",
        "eigh alone",
        "whole fit",
        "peak memory of leave-one-out",
    ]
    return made_by(table(header, rows), "gpu")


def report_pages() -> str:
    shown = [(150, 2, 12), (1000, 2, 12), (1000, 2, 2), (1000, 5, 12), (2000, 2, 12)]
    pages = {
        (page["rows"], page["classes"], page["features"]): page
        for page in result("report_page")["pages"]
    }
    rows = []
    for key in shown:
        page = pages[key]
        features = f"{key[2]} (with boundaries)" if key[2] == 2 else str(key[2])
        seconds = [f"{page[what]:.1f} s" for what in ("explorer", "page", "fit")]
        size = f"{page['megabytes']:.1f} MB"
        rows.append([f"{key[0]:,}", key[1], features, page["stops"], size, *seconds])
    header = ["rows", "classes", "features", "stops", "page", "explorer", "whole page", "fit"]
    return made_by(table(header, rows), "report_page")


SIMULATED = Simulated(result, made_by)
SIMULATED = Simulated(result, made_by)
WRITERS = [speed, growth, default_fit, permutation, positions]
WRITERS += [raetsch, raetsch_counts, large, gpu, report_pages]
TABLES: dict[str, Callable[[], str]] = {one.__name__: one for one in WRITERS}
TABLES |= {**study_tables(result, made_by, duration), **SIMULATED.tables()}

# ---- figures inside sentences --------------------------------------------------------------------


def gpu_agreement(kind: str) -> str:
    """The largest difference from NumPy, over torch and CuPy, fixed and tuned models."""
    found = result("gpu_agreement")
    differences = [
        value
        for library in ("torch", "cupy")
        for name, value in found[library]["largest difference"].items()
        if kind in name
    ]
    return f"{max(differences):.0e}"


def times_faster(what: str) -> str:
    return f"{result('positions')['processor'][f'{what}_times_faster']:.0f}"


FIGURES: dict[str, Callable[[], str]] = {
    **{name: lambda text=text: text for name, text in SIMULATED.figures().items()},
    "scores_faster": lambda: times_faster("scores"),
    "generalization_faster": lambda: times_faster("generalization"),
    "peak_matrices": peak_matrices,
    "gpu_agreement_exact": lambda: gpu_agreement("exact"),
    "gpu_agreement_landmarks": lambda: gpu_agreement("landmarks"),
    "gpu_landmarks": lambda: "{seconds:.1f} s and {extra_peak_GiB:.1f} GiB".format(
        **result("gpu")["landmarks"]["1000000"]
    ),
    "dask_gpu_8": lambda: f"{result('dask_gpu')['planned']['8']:.0f} s",
    "dask_gpu_rate": lambda: f"{1e-3 / result('dask_gpu')['seconds a row']:.0f},000",
    **{
        f"targets_{side}": lambda side=side: beside_himalaya(side)
        for side in ("fitonce", "himalaya")
    },
    "targets_gpu_ours": lambda: f"{result('targets_gpu')['float64']['fitonce']['seconds']:.2f} s",
    "targets_gpu_theirs": lambda: (
        f"{result('targets_gpu')['float64']['himalaya']['seconds']:.1f} s"
    ),
    "gpu_permutations": lambda: "{cosets:.1f} s".format(**result("permutation_gpu")),
}


MARKED = Marked(DOCS, TABLES, FIGURES, (RESULTS / "measurements.md",))

if __name__ == "__main__":
    MARKED.main()
