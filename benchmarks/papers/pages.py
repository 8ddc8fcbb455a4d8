"""Tables of the pages in docs/papers, made from the committed results.

    python benchmarks/papers/pages.py            # writes
    python benchmarks/papers/pages.py --check    # says which pages are not up to date

How the tables of a page are marked: docs/_marked.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "papers"
DOCS = HERE.parent.parent / "docs"
sys.path.insert(0, str(DOCS))

from _marked import Marked, table  # noqa: E402


def result(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def number(value: float) -> str:
    """Three figures: plain where that is short, with a power of ten elsewhere."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def plus_minus(pair: Sequence[float], digits: int = 1) -> str:
    return f"{pair[0]:.{digits}f} ± {pair[1]:.{digits}f}"


# ---- one function for each table -----------------------------------------------------------------


def cawley2003_figure1() -> str:
    found = result("cawley2003_figure1")
    columns = ("direct_over_analytic", "direct_over_exact", "leave_one_out_over_training")
    rows = [
        [n, *(f"{found[column][i]:.0f}" for column in columns[:2]), f"{found[columns[2]][i]:.2f}"]
        for i, n in enumerate(found["settings"]["sizes"])
    ]
    return table(
        [
            "n",
            "direct / analytic",
            "direct / exact (fitonce)",
            "leave-one-out with C⁻¹ at hand / training",
        ],
        rows,
    )


def cawley2003_slopes() -> str:
    found = result("cawley2003_figure1")
    counted = {
        "direct": "4",
        "analytic": "3",
        "leave-one-out after training": "3",
        "training": "3",
        "exact": "3 (one decomposition)",
    }
    return table(
        ["part", f"measured exponent, n ≥ {found['settings']['slopes_from']}", "counted"],
        [[part, f"{found['slopes'][part]:.1f}", counted[part]] for part in counted],
    )


def cawley2003_figure2() -> str:
    found = result("cawley2003_figure2")
    sizes = found["settings"]["sizes"]
    shown = [sizes.index(n) for n in (10, 30, 100, 500)]
    rows = []
    for mu, values in found["mean"].items():
        for cause in ("as printed", "slip", "basis kept", "targets kept", "rounding", "ours"):
            rows.append([mu, cause, *(number(values[cause][i]) for i in shown)])
    return table(["μ", "e", *(f"n = {sizes[i]}" for i in shown)], rows)


def cawley2003_error_rates() -> str:
    found = result("cawley2003_figure2")
    sizes = found["settings"]["sizes"]
    shown = [sizes.index(n) for n in (10, 30, 100, 500)]
    names = {
        "error rate, direct": "n literal fits",
        "error rate, ours": "fitonce, exact",
        "error rate, as printed": "as printed",
    }
    rows = [
        [mu, label, *(f"{100 * values[key][i]:.1f}" for i in shown)]
        for mu, values in found["mean"].items()
        for key, label in names.items()
    ]
    return table(["μ", "leave-one-out error in %", *(f"n = {sizes[i]}" for i in shown)], rows)


def saadi2007_figure2() -> str:
    found = result("saadi2007_figure2")
    names = {
        "paper": "fifteen lines, targets n/n₁ and -n/n₂ (the paper's)",
        "paper, targets ±1": "fifteen lines, targets ±1",
        "fitonce": '`KernelFisherDiscriminant(penalty="dual")`',
    }
    rows = [
        [label, number(found["chosen_mu"][key]), f"{100 * found['test_error'][key]:.2f}"]
        for key, label in names.items()
    ]
    return table(
        ["method", "chosen μ", "test error in %"],
        [*rows, ["Bayes's rule", "–", f"{100 * found['test_error']['bayes']:.2f}"]],
    )


def saadi2007_figure3() -> str:
    found = result("saadi2007_figure3")
    slopes, share, ratios = found["slopes"], found["share_of_search"], found["ratios"]
    n = found["settings"]["sizes"][-1]
    rows = [
        ["exponent of the search, canonical", "about 2", f"{slopes['canonical']['search']:.2f}"],
        ["exponent of the total, canonical", "about 3", f"{slopes['canonical']['total']:.2f}"],
        [
            "exponent of the total, conventional",
            "about 3",
            f"{slopes['conventional']['total']:.2f}",
        ],
        [
            f"share of the search at n = {n}, canonical",
            "0.4 %",
            f"{100 * share['canonical'][-1]:.2f} %",
        ],
        [
            f"conventional / canonical at n = {n}",
            "about 10",
            f"{ratios['conventional / canonical'][-1]:.1f}",
        ],
        [
            f"conventional by Cholesky / canonical at n = {n}",
            "–",
            f"{ratios['cholesky / canonical'][-1]:.1f}",
        ],
        [f"conventional / fitonce at n = {n}", "–", f"{ratios['conventional / fitonce'][-1]:.1f}"],
        [f"share of the search at n = {n}, fitonce", "–", f"{100 * share['fitonce'][-1]:.2f} %"],
        [
            "exponent of the total, sparse canonical",
            "1 (ℓn² with n fixed)",
            f"{slopes['sparse canonical']['total']:.2f}",
        ],
        [
            f"sparse conventional / sparse canonical at n = {n}",
            "“exactly the same” as dense",
            f"{ratios['sparse conventional / sparse canonical'][-1]:.1f}",
        ],
    ]
    return table(["quantity", "published", "here"], rows)


def saadi2007_ratios() -> str:
    found = result("saadi2007_figure3")
    sizes = found["settings"]["sizes"]
    shown = [i for i, n in enumerate(sizes) if n >= 64]
    rows = [
        [name, *(f"{values[i]:.1f}" for i in shown)] for name, values in found["ratios"].items()
    ]
    return table(["ratio of total times", *(f"n = {sizes[i]}" for i in shown)], rows)


def saadi2007_figure4() -> str:
    found = result("saadi2007_figure4")
    sizes = found["settings"]["sizes"]
    shown = [sizes.index(n) for n in (8, 32, 128, 256)]
    names = {
        "as published": "canonical form",
        "rounding": "rounding of it",
        "ours": "fitonce, exact",
        "ls-svm": "LS-SVM of section 5.1",
    }
    rows = [
        [number(float(mu)), label, *(number(values[key][i]) for i in shown)]
        for mu, values in found["mean"].items()
        for key, label in names.items()
    ]
    return table(["μ", "e", *(f"n = {sizes[i]}" for i in shown)], rows)


def saadi2007_table1() -> str:
    found = result("saadi2007_table1")
    rows = []
    for name, row in found["published"].items():
        ours = found["ours"][name]
        cells = [plus_minus(row[method], 2) for method in ("ORKFD", "KFD")]
        rows.append(
            [
                name,
                *cells,
                *(plus_minus(ours[method][:2], 2) for method in ("dual", "default", "ls-svm")),
            ]
        )
    return table(
        ["set", "published ORKFD", "published KFD", "dual norm", "function norm", "LS-SVM"], rows
    )


def saadi2007_claims() -> str:
    found = result("saadi2007_table1")
    claims = found["claims"]
    against = claims["ORKFD against KFD, recounted"]
    rows = [
        ["published ORKFD against published KFD", "7 better, 6 worse", counts(against)],
        [
            "ORKFD best of eight, second",
            "5, 3",
            f"{len(claims['ORKFD best, recounted'])}, {len(claims['ORKFD second, recounted'])}",
        ],
    ]
    titles = {"dual": "dual norm", "default": "function norm", "ls-svm": "LS-SVM"}
    for method, title in titles.items():
        ranks = list(found["ranks_of_ours_among_the_published"][method].values())
        rows.append(
            [
                f"our {title} against published ORKFD",
                "–",
                counts(found["ours_against_published_ORKFD"][method]),
            ]
        )
        rows.append(
            [
                f"our {title} in ORKFD's place: best of eight, second",
                "–",
                f"{ranks.count(1)}, {ranks.count(2)}",
            ]
        )
    return table(["claim", "paper", "counted"], rows)


def counts(duel: dict[str, list[str]]) -> str:
    clear = (
        f"{len(duel['clear_wins'])} and {len(duel['clear_losses'])} by more than a standard error"
    )
    return f"{len(duel['wins'])} better, {len(duel['losses'])} worse ({clear})"


RICHARD = ("KFD, no regulariser", "KFD, unit α", "KFD, means at ±1", "KFD + linear SVM", "SVM")


def richard_table(name: str, parameters: str | None) -> str:
    rows = []
    for row in result(name)["table"]:
        values = ", ".join(f"{value:g}" for value in row["parameters"])
        rows.append(
            [
                row["set"],
                *([values] if parameters else []),
                f"{row['published KFD']:.1f}",
                f"{row['published SVM']:.1f}",
                *(plus_minus(row[method]) for method in RICHARD),
                f"{100 * row['constant answer']:.0f} %",
            ]
        )
    header = [
        "set",
        *([parameters] if parameters else []),
        "published KFD",
        "published SVM",
        *RICHARD,
        "unit α: one answer to all rows",
    ]
    return table(header, rows)


def richard2012_table1() -> str:
    return richard_table("richard2012_table1", None)


def richard2012_table2() -> str:
    return richard_table("richard2012_table2", "gamma")


def richard2012_table3() -> str:
    return richard_table("richard2012_table3", "gamma, coef, degree")


def top_three(name: str, parameters: str) -> str:
    found = result(name)["top_three"]
    rows = []
    for method in RICHARD:
        for data, three in found[method].items():
            best = "; ".join(
                f"{', '.join(f'{v:g}' for v in row['parameters'])}: {plus_minus(row['accuracy'])}"
                for row in three
            )
            rows.append([data, method, best])
    rows.sort(key=lambda row: list(found[RICHARD[0]]).index(row[0]))
    return table(["set", "method", f"top three ({parameters}: accuracy)"], rows)


def richard2012_top_rbf() -> str:
    return top_three("richard2012_table2", "gamma")


def richard2012_top_poly() -> str:
    return top_three("richard2012_table3", "gamma, coef, degree")


def richard2012_table4() -> str:
    found = result("richard2012_table4")
    rows = []
    for name, methods in found["table"].items():
        for method, row in methods.items():
            key = (
                "KFD"
                if method.startswith("KFD, unit α, linear")
                else "SVM"
                if method.startswith("SVM, linear")
                else None
            )
            printed = (
                f"{found['published'][name][key][1]:.1f} (gamma "
                f"{found['published'][name][key][0]:g})"
                if key
                else ""
            )
            rows.append(
                [name, method, printed, plus_minus(row["accuracy"]), number(row["median_gamma"])]
            )
    return table(["set", "method and lattice", "published", "accuracy here", "median gamma"], rows)


def richard2012_ablation() -> str:
    effects = result("richard2012_ablation")["main_effects"]
    names = list(effects)
    rows = []
    for kind in ("linear", "rbf"):
        for factor, levels in effects[names[0]][kind].items():
            for level in levels:
                rows.append(
                    [
                        kind,
                        factor,
                        level,
                        *(f"{effects[name][kind][factor][level]:.1f}" for name in names),
                    ]
                )
    return table(["kernel", "factor", "level", *names], rows)


def richard2012_ablation_ends() -> str:
    """All of the recipe, and all of it repaired."""
    found = result("richard2012_ablation")["combinations"]
    cells = {
        "linear, as published": "linear | raw | 1e-3 | training values | unit alpha",
        "linear, all repaired": "linear | standardised | 1e-3 | held-out values | class means at "
        "±1",
        "RBF, as published": "rbf | raw | 1e-3 | training values | unit alpha | 3 folds, linear "
        "lattice",
        "RBF, all repaired, 3 folds": "rbf | standardised | 1e-3 | held-out values | class means "
        "at ±1 | 3 folds, logarithmic lattice",
        "RBF, all repaired, closed form": (
            "rbf | standardised | 1e-3 | held-out values | class means at ±1 | leave-one-out, "
            "logarithmic lattice"
        ),
    }
    return table(
        ["combination", *found],
        [
            [label, *(plus_minus(found[name][key]) for name in found)]
            for label, key in cells.items()
        ],
    )


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


def mueller2006_sketches() -> str:
    found = result("mueller2006_sketches")
    rows = [
        [
            name,
            number(found["distance_of_means"][name]),
            number(found["criterion"][name]),
            f"{100 * found['overlap'][name]:.1f} %",
        ]
        for name in found["criterion"]
    ]
    return table(
        [
            "direction",
            "distance of the projected means",
            "J",
            "rows on the wrong side of the midpoint",
        ],
        rows,
    )


TABLES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        cawley2003_figure1,
        cawley2003_slopes,
        cawley2003_figure2,
        cawley2003_error_rates,
        saadi2007_figure2,
        saadi2007_figure3,
        saadi2007_ratios,
        saadi2007_figure4,
        saadi2007_table1,
        saadi2007_claims,
        richard2012_table1,
        richard2012_table2,
        richard2012_table3,
        richard2012_top_rbf,
        richard2012_top_poly,
        richard2012_table4,
        richard2012_ablation,
        richard2012_ablation_ends,
        treder2019_anova,
        treder2019_growth,
        mueller2006_sketches,
    )
}


MARKED = Marked(DOCS / "papers", TABLES)

if __name__ == "__main__":
    MARKED.main()
