"""Tables of the page on Treder (2019)."""

from __future__ import annotations

from tables import result, table


def treder2019_anova() -> str:
    found = result("treder2019_anova")
    analyses, printed = found["analyses"], found["published_F"]
    rows = []
    for kind, titles in {
        "cross-validation": (
            "cross-validation, retraining on the features",
            "cross-validation, same kernel matrix",
        ),
        "permutations": ("permutations, same kernel matrix",),
    }.items():
        for effect, F in printed[kind].items():
            cells = []
            for title in titles:
                row = analyses[title][effect]
                p = "< .001" if row["p"] < 0.001 else f"= {row['p']:.2g}"
                cells.append(f"{row['F']:.1f} (p {p})")
            rows.append([kind, effect, F, *(cells if len(cells) == 2 else ["–", *cells])])
    return table(
        ["analysis", "effect", "published F", "F, retraining on features", "F, same kernel matrix"],
        rows,
    )


def treder2019_growth() -> str:
    found = result("treder2019_growth")
    what = {
        "n": "hat matrix of all rows",
        "n_Te": "held-out values of one test set",
        "k": "k test sets of one size",
        "c": "discriminant step of one fold",
        "m": "Nyström features and their decomposition",
    }
    printed = {"n": "n³", "n_Te": "n_Te³ + n·n_Te²", "k": "k", "c": "c²·n + c³", "m": "n·m² + m³"}
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


TABLES = (
    treder2019_anova,
    treder2019_growth,
)
