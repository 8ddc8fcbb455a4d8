"""Tables of the page on Treder (2019)."""

from __future__ import annotations

from statistics import median

from tables import number, result, table

COMPARISONS = {
    "features, bare": "on features, both in bare NumPy",
    "features, fitonce": "on features, one call of fitonce",
    "kernel, fitonce": "kernel matrix given, fitonce both",
}


def treder2019_figure1() -> str:
    """The range of the median speed-ups, by what is compared."""
    rows = result("treder2019_figure1")["rows"]

    def between(comparison: str, kind: str, permutations: int | None = None) -> str:
        medians = [
            median(row["speed_up"])
            for row in rows
            if row["comparison"] == comparison
            and row["kind"] == kind
            and row.get("permutations") == permutations
        ]
        return f"{number(min(medians))} … {number(max(medians))}"

    lines = [["cross-validation", "up to 1,000", "cross-validation", None]] + [
        [f"{count} permutations", headline, "permutations", count]
        for count, headline in ((10, "up to 10,000"), (100, "up to 10,000"), (1000, "not run"))
    ]
    return table(
        ["", "published", *COMPARISONS.values()],
        [
            [name, headline, *(between(comparison, kind, count) for comparison in COMPARISONS)]
            for name, headline, kind, count in lines
        ],
    )


def treder2019_seconds() -> str:
    """Medians of the processor seconds behind it, at the corners of the design."""
    found = result("treder2019_figure1")
    cells, settings = found["cells"], found["settings"]
    ways = (
        "retrained on features",
        "algorithm 1, bare",
        "fitonce on features",
        "retrained on the kernel",
        "fitonce on the kernel",
    )
    rows = []
    for n in settings["sizes"]:
        for p in (settings["features"][0], settings["features"][-1]):
            parts = [cells[f"folds {n} {p} 5 {one}"] for one in range(settings["repeats"])]
            times = [1e3 * median(part[way] for part in parts) for way in ways]
            rows.append([f"n = {n}, p = {p}", *(number(value) for value in times)])
    return table(["10 folds, 5 classes: ms", *ways], rows)


def treder2019_anova() -> str:
    found = result("treder2019_anova")
    analyses, printed = found["analyses"], found["published_F"]
    rows = []
    for kind, effects in printed.items():
        for effect, F in effects.items():
            cells = []
            for comparison in COMPARISONS:
                row = analyses[f"{kind}; {comparison}"][effect]
                p = "< .001" if row["p"] < 0.001 else f"= {row['p']:.2g}"
                cells.append(f"{row['F']:.1f} (p {p})")
            rows.append([kind, effect, F, *cells])
    return table(["analysis", "effect", "published F", *COMPARISONS.values()], rows)


def treder2019_growth() -> str:
    found = result("treder2019_growth")
    what = {
        "n": "hat matrix of all rows",
        "p": "linear kernel matrix",
        "n_Te": "held-out values of one test set",
        "k": "k test sets of one size",
        "c": "discriminant step of one fold",
        "m": "Nyström features and their decomposition",
    }
    printed = {
        "n": "n³",
        "p": "n²·p",
        "n_Te": "n_Te³ + n·n_Te²",
        "k": "k",
        "c": "c²·n + c³",
        "m": "n·m² + m³",
    }
    rows = []
    for part, row in found["growth"].items():
        values = found["settings"][part]
        predicted = row["exponent_of_the_count"]
        rows.append(
            [
                part,
                what[part],
                f"{values[-3]} … {values[-1]}",
                printed[part],
                *(f"{predicted[who]:.1f}" for who in ("paper", "fitonce")),
                f"{row['exponent']:.1f}",
            ]
        )
    return table(
        [
            "grows",
            "step",
            "values",
            "counted in the paper",
            "its exponent",
            "exponent of our count",
            "measured",
        ],
        rows,
    )


TABLES = (treder2019_figure1, treder2019_seconds, treder2019_anova, treder2019_growth)
