"""Every measured figure of docs/*.md, written from benchmarks/results.

    python docs/_figures.py            # writes
    python docs/_figures.py --check    # says which pages are not up to date; the tests do that too

How the parts of a page are marked: _marked.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from _accuracy import tables as accuracy_tables
from _marked import Marked, table, wrapped

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "benchmarks" / "results"


def result(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def made_by(tables: str, *names: str) -> str:
    """Tables with the scripts, and the versions that they ran with, in a sentence below them."""
    found = [result(name) for name in names]
    scripts = ", ".join(f"`{one['script']}`" for one in found)
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


def kernel_families() -> str:
    found = result("kernels")
    rows = []
    for way, mean in found["mean"].items():
        gain = found["gain"][way]
        less = "" if way == "rbf" else f"{gain['mean']:+.4f} ± {gain['standard_error']:.4f}"
        errors = f"{mean['error']:.2f}", f"{mean['log_loss']:.4f}"
        rows.append([way, *errors, less, f"{found['rank']['log_loss'][way]:.1f}"])
    header = ["kernels", "test error, %", "log-loss", "log-loss less than rbf", "mean rank"]
    return made_by(table(header, rows), "kernels")


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


def search_quality() -> str:
    found = result("search_quality")
    auto, n_sets = found["summary"]["auto"], len(found["rows"])
    worse = [row["auto"]["criterion worse by %"] for row in found["rows"].values()]
    rows = [
        ["same gamma as the full search", f"{auto['same gamma']} of {n_sets}"],
        ["criterion worse by, largest", f"{max(worse):.2f} %"],
        ["criterion worse by, mean", f"{sum(worse) / n_sets:.3f} %"],
        ["test error, mean difference", f"{auto['test error difference, mean']:+.3f} points"],
        ["test error, largest difference", f"{auto['test error difference, largest']:+.2f} points"],
        ["times faster, median", f"{auto['times faster, median']:.1f}"],
    ]
    header = [f"{n_sets} sets, {found['n_train']} training rows", "default search"]
    return made_by(table(header, rows), "search_quality")


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


def raetsch_hindsight() -> str:
    found = result("raetsch_hindsight")
    rows = [
        [
            name,
            f"{one['default']:.2f}",
            f"{one['best by hindsight']:.2f}",
            f"{one['svc']:.2f}",
            f"{one['best - svc']:+.2f} ± {one['standard error']:.2f}",
        ]
        for name, one in found["sets"].items()
    ]
    header = [
        f"first {found['splits']} splits",
        "discriminant",
        "best gamma and alpha by hindsight",
        "GridSearchCV(SVC)",
        "hindsight - SVC",
    ]
    return made_by(table(header, rows), "raetsch_hindsight")


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


def landmarks() -> str:
    found = result("landmarks")
    size = str(found["sizes"][-2])
    methods = [name for name in next(iter(found["sets"].values())) if name != "exact"]

    def cell(one: dict[str, Any]) -> str:
        return f"{one['error']:.1f} ± {one['error_se']:.1f}"

    rows = [
        [name, cell(one["exact"]), *(cell(one[method][size]) for method in methods)]
        for name, one in found["sets"].items()
    ]
    header = [
        f"error in %, {size} landmarks (± standard error)",
        "exact",
        *(f"`{method}`" for method in methods),
    ]
    return made_by(table(header, rows), "landmarks")


def landmark_path() -> str:
    """Errors at every number of landmarks, and how long the choice of the largest took over the
    sets.
    """
    found = result("landmarks")
    sizes = [str(size) for size in found["sizes"]]
    sets = found["sets"]
    rows = []
    for method in (name for name in next(iter(sets.values())) if name != "exact"):
        errors = [
            " / ".join(f"{one[method][size]['error']:.1f}" for size in sizes)
            for one in sets.values()
        ]
        seconds = [one[method][sizes[-1]].get("choosing_seconds") for one in sets.values()]
        rows.append([method, *errors, "" if None in seconds else between(seconds)])
    header = [
        f"m = {' / '.join(sizes)}",
        *(f"{name} (exact {one['exact']['error']:.1f})" for name, one in sets.items()),
    ]
    return table([*header, f"s to choose {sizes[-1]}"], rows)


def between(seconds: Sequence[float]) -> str:
    return "< 0.01" if max(seconds) < 0.01 else f"{min(seconds):.2f} to {max(seconds):.2f}"


def refinement() -> str:
    rows = [
        [
            name,
            f"{1 - row['criterion_refined'] / row['criterion_lattice']:.1%}",
            f"{row['error_difference']:+.3f} ± {row['standard_error']:.3f}",
        ]
        for name, row in result("refinement")["rows"].items()
    ]
    return made_by(
        table(
            ["model, generator", "criterion lower by", "test error in %, refined - lattice"], rows
        ),
        "refinement",
    )


METHODS = ("jackknife+", "cv+", "full", "jackknife-minmax")


def coverage(parameters: str) -> str:
    """Coverage by source and method, and the mean size of the default beside it."""
    found = result("prediction_intervals")
    by_source: dict[str, dict[str, dict[str, Any]]] = {}
    for row in found["rows"]:
        if row["parameters"] == parameters:
            by_source.setdefault(row["law"], {})[row["method"]] = row
    rows = [
        [name, *(f"{by_method[method]['coverage']:.1%}" for method in METHODS)]
        for name, by_method in by_source.items()
    ]
    least = next(iter(by_source.values()))
    rows.append(["*guaranteed*", *(f"*{least[method]['guarantee']:.1%}*" for method in METHODS)])
    return table(["source", *(f'`"{method}"`' for method in METHODS)], rows)


def coverage_fixed() -> str:
    return coverage("fixed")


def coverage_tuned() -> str:
    return made_by(coverage("tuned"), "prediction_intervals")


def calibration() -> str:
    """Both estimators on the sets that decided and on those that confirm, the defaults first."""
    found = result("calibration")
    halves = ("deciding", "confirming")
    shown = [
        ("auto", "temperature", "floor"),
        ("auto", "temperature", "late"),
        ("auto", "temperature", "none"),
        ("auto", "sigmoid", "floor"),
        ("auto", "isotonic", "floor"),
        ("squared_error", "temperature", "floor"),
        ("brier", "temperature", "floor"),
        ("log_loss", "temperature", "floor"),
    ]
    floors = {"floor": "`floor_`", "late": "`floor_`, after the fit", "none": "none"}

    def cells(estimator: str, variant: str) -> list[str]:
        parts = [found["ranking"][half][estimator][variant] for half in halves]
        return [
            *(f"{part['relative']:.2f}, {part['worst']:.2f}" for part in parts),
            *(f"{part['error']:.1f}" for part in parts),
            *(f"{part['calibration_error']:.3f}" for part in parts),
        ]

    rows = []
    for estimator in found["ranking"]["deciding"]:
        for criterion, way, floor in shown:
            variant = f"{estimator} | {criterion} | {way} | {floor}"
            said = floors[floor] if way == "temperature" else "`floor_`"
            what = [f"`{estimator}`", f'`"{criterion}"`', f'`"{way}"`', said]
            rows.append([*what, *cells(estimator, variant)])
    for peer in ("SVC grid, calibrated", "base rates"):
        rows.append([peer, "", "", "", *cells("KernelFisherDiscriminant", peer)])
    header = ["estimator", "`criterion`", "`calibration`", "floor"]
    measured = [
        f"{what}, {half}"
        for what in ("log-loss: mean and worst set", "error %", "calibration error")
        for half in halves
    ]
    told = [f"{half} are {', '.join(found['halves'][half])}" for half in halves]
    note = wrapped(f"Means over {found['splits']} splits of each set; {'; '.join(told)}.")
    return made_by(table([*header, *measured], rows) + "\n" + note, "calibration")


def score_intervals() -> str:
    """Coverage and, in brackets, mean width of every method, by number of rows and data."""
    found = result("score_intervals")["rows"]
    methods = list(dict.fromkeys(row["method"] for row in found))
    cells: dict[tuple[int, str], list[str]] = {}
    for row in found:
        start = [str(row["n"]), f"{row['data']} ({row['accuracy']:.0%})"]
        cells.setdefault((row["n"], row["data"]), start).append(
            f"{row['coverage']:.0%} ({row['width']:.2f})"
        )
    return made_by(table(["rows", "data (accuracy)", *methods], cells.values()), "score_intervals")


def honest_coverage() -> str:
    """How often the interval of each score held the true one, for each kind of model."""
    scores = {
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced accuracy",
        "roc_auc": "AUC",
        "log_loss": "log-loss",
        "brier": "Brier score",
        "r2": "R²",
        "mae": "mean absolute error",
        "rmse": "root mean squared error",
        "beyond": "a loss of one's own",
    }
    found = [row for row in result("honest")["rows"] if row["what"] == "coverage"]
    plain = [row for row in found if not (row.get("counts") or row.get("n_groups"))]
    kinds = {
        "fixed": [row for row in plain if not row["tuned"]],
        "tuned": [row for row in plain if row["tuned"]],
        "20 groups": [row for row in found if row.get("n_groups") == 20],
        "8 groups": [row for row in found if row.get("n_groups") == 8],
    }
    rows = [
        [words, *(percent(kind, name) for kind in kinds.values())] for name, words in scores.items()
    ]
    return made_by(table(["score", *kinds], rows), "honest")


def percent(rows: list[dict[str, Any]], name: str) -> str:
    """The mean share of some settings, the lowest and the highest."""
    shares = [100 * row[name]["mean"] for row in rows if name in row and row[name]["n"]]
    if len(shares) < 2:
        return f"{shares[0]:.0f} %" if shares else ""
    return f"{sum(shares) / len(shares):.0f} % ({min(shares):.0f} to {max(shares):.0f})"


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


def newcomers() -> str:
    names = {"accuracy": "accuracy", "r2": "R²"}
    rows = [
        [
            name.replace("_", " "),
            f"{one['rows']:,} × {one['columns']:,}",
            names[one["score"]],
            *(f"{one['scores'][who]:.3f}" for who in ("fitonce", "svm", "forest")),
        ]
        for name, one in result("newcomer")["tables"].items()
    ]
    header = ["table", "size", "score", "fitonce", "SVM", "forest"]
    return made_by(table(header, rows), "newcomer")


def long_tables() -> str:
    rows = [
        [
            f"{one['rows']:,} × {one['columns']}",
            f"{one['accuracy']:.3f}",
            f"{one['new_rows']:.3f}",
            duration(one["processor_seconds"]),
            f"{one['peak_GiB']:.1f} GiB",
        ]
        for one in result("long_tables")["tables"].values()
    ]
    header = ["table", "accuracy, as reported", "accuracy on new rows", "processor time", "memory"]
    return made_by(table(header, rows), "long_tables")


def mixed_tables() -> str:
    """Losses relative to a column for each level as it is, over the tables."""
    found = result("mixed_tables")
    rows = [
        [
            name,
            f"{one['relative']:.3f}",
            f"{one['worst']:.2f}",
            f"{one['better']} / {one['worse']}",
            f"{one['rank']:.1f}",
        ]
        for name, one in found["summary"].items()
        if not re.match(r"w = (0.5|8), |chosen: (merged$|weight 2)", name)
    ]
    header = ["encoding", "loss, relative", "on the worst table", "better / worse on", "mean rank"]
    return made_by(table(header, rows), "mixed_tables")


CONFOUNDS = {
    "ignored": "none, labels move freely",
    "levels": "categories",
    "numbers": "a number",
    "squares": "a number and its square",
}


def confound_levels() -> str:
    """How often tests with confounds reject where nothing is there, linear kernel."""
    cells, rows = result("confounds_level")["cells"], []
    for confounds, said in CONFOUNDS.items():
        for task in ("classes", "regression"):
            for shape in ("linear", "nonlinear"):
                names = [f"{confounds}, {task}, {shape}, n={n}, linear" for n in (40, 100)]
                if any(name in cells for name in names):
                    found = (cells.get(name, {}).get("rejected") for name in names)
                    shown = ["–" if rate is None else f"{100 * rate:.1f} %" for rate in found]
                    curve = "straight" if shape == "linear" else "curved"
                    rows.append([said, task, curve, *shown])
    header = ["confounds given", "target", "their effect", "40 rows", "100 rows"]
    return made_by(table(header, rows), "confounds_level")


TABLES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        confound_levels,
        kernel_families,
        speed,
        growth,
        default_fit,
        search_quality,
        permutation,
        positions,
        raetsch,
        raetsch_counts,
        raetsch_hindsight,
        large,
        gpu,
        landmarks,
        landmark_path,
        refinement,
        coverage_fixed,
        coverage_tuned,
        calibration,
        score_intervals,
        honest_coverage,
        report_pages,
        newcomers,
        mixed_tables,
        long_tables,
    )
} | accuracy_tables(result, made_by, duration)

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


def tuned_shortfall() -> str:
    """By how much tuning lowers the coverage of jackknife+, at most, in percentage points."""
    found = {
        (row["law"], row["parameters"]): row["coverage"]
        for row in result("prediction_intervals")["rows"]
        if row["method"] == "jackknife+"
    }
    lost = [value - found[law, "tuned"] for (law, kind), value in found.items() if kind == "fixed"]
    return f"{100 * max(lost):.1f}"


def hard(what: str, name: str) -> str:
    """A share of `coverage_hard`, in percent."""
    return f"{100 * result('coverage_hard')[what][name]['mean']:.0f} %"


def hard_loss(name: str) -> str:
    """A log-loss of `coverage_hard`."""
    return f"{result('coverage_hard')['selection'][name]['mean']:.2f}"


def rejected(design: str) -> str:
    """How often noise is rejected where labels move over fixed folds, over the numbers of rows."""
    rates = [100 * rate["free"] for rate in result("permutation_level")[design].values()]
    return f"{min(rates):.0f} to {max(rates):.0f} %"


def rejected_together() -> str:
    """The same where labels and folds move together: the largest of all."""
    found = result("permutation_level")
    designs = ("alternating labels", "stratified folds")
    rates = [rate["cosets"] for design in designs for rate in found[design].values()]
    return f"{100 * max(rates):.0f} %"


def times_faster(what: str) -> str:
    return f"{result('positions')['processor'][f'{what}_times_faster']:.0f}"


def interval_shortfall(n: int) -> str:
    """By how many percentage points intervals of nominally 95 % fall short, least and most."""
    rows = [row for row in result("score_intervals")["rows"] if row["n"] == n]
    lost = [100 * (0.95 - row["coverage"]) for row in rows]
    return f"{min(lost):.0f} to {max(lost):.0f}"


def covered(name: str, tuned: bool) -> str:
    """How often the intervals of `assess` held the true score: the mean of the settings, the lowest
    and the highest.
    """
    rows = [row for row in result("honest")["rows"] if row["what"] == "coverage" and name in row]
    plain = [row for row in rows if not (row.get("counts") or row.get("n_groups"))]
    shares = [100 * row[name]["mean"] for row in plain if row["tuned"] == tuned]
    mean = sum(shares) / len(shares)
    return f"{mean:.0f} % (mean of {len(shares)} settings; {min(shares):.0f} to {max(shares):.0f})"


def noise_bias(few: int) -> str:
    """The accuracy on balanced noise less one half, in points, with its standard error."""
    rows = [row for row in result("honest")["rows"] if row["what"] == "bias"]
    own = next(row["bias"] for row in rows if row["few"] == few)
    return f"{100 * own['mean']:+.1f} ± {100 * own['error']:.1f} points"


FIGURES: dict[str, Callable[[], str]] = {
    "covered_accuracy": lambda: covered("accuracy", False),
    "covered_r2": lambda: covered("r2", False),
    "covered_accuracy_tuned": lambda: covered("accuracy", True),
    "covered_r2_tuned": lambda: covered("r2", True),
    "covered_log_loss": lambda: covered("log_loss", False),
    "covered_log_loss_tuned": lambda: covered("log_loss", True),
    "honest_draws": lambda: str(result("honest")["draws"]),
    "honest_tuned_draws": lambda: str(result("honest")["tuned draws"]),
    "noise_bias_15": lambda: noise_bias(15),
    "noise_bias_25": lambda: noise_bias(25),
    "rejected_alternating": lambda: rejected("alternating labels"),
    "rejected_stratified": lambda: rejected("stratified folds"),
    "rejected_together": rejected_together,
    "scores_faster": lambda: times_faster("scores"),
    "generalization_faster": lambda: times_faster("generalization"),
    "interval_shortfall_50": lambda: interval_shortfall(50),
    "tuned_shortfall": tuned_shortfall,
    "covered_few": lambda: hard("few", "20 jackknife+"),
    "covered_few_minmax": lambda: hard("few", "20 jackknife-minmax"),
    "covered_density_40": lambda: hard("density", "40 loo_log_density 95"),
    "covered_density_100": lambda: hard("density", "100 loo_log_density 95"),
    "covered_likelihood_40": lambda: hard("density", "40 marginal_likelihood 95"),
    "covered_likelihood_100": lambda: hard("density", "100 marginal_likelihood 95"),
    "covered_rare": lambda: hard("rare", "False rare"),
    "covered_rare_all": lambda: hard("rare", "False all"),
    "covered_rare_per_class": lambda: hard("rare", "True rare"),
    "size_rare": lambda: f"{result('coverage_hard')['rare']['False size']['mean']:.2f}",
    "size_rare_per_class": lambda: f"{result('coverage_hard')['rare']['True size']['mean']:.2f}",
    "selected_loss": lambda: hard_loss("Pipeline log-loss"),
    "selected_loss_whole": lambda: hard_loss("TunedPipeline log-loss"),
    "selected_sets": lambda: hard("selection", "Pipeline sets"),
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
