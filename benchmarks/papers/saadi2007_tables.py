"""Tables of the page on Saadi, Talbot and Cawley (2007)."""

from __future__ import annotations

from tables import number, plus_minus, result, table


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


TITLES = {
    "orkfd": "ORKFD as published, targets n/n₁, -n/n₂",
    "orkfd-signs": "ORKFD as published, targets ±1",
    "kfd": "KFD as published, targets n/n₁, -n/n₂",
    "kfd-signs": "KFD as published, targets ±1",
    "dual": "dual norm",
    "default": "function norm",
    "ls-svm": "LS-SVM",
}


def saadi2007_table1() -> str:
    """The methods as published beside the numbers that are printed."""
    found = result("saadi2007_table1")
    rows = []
    for name, row in found["published"].items():
        ours = found["ours"][name]
        cells = []
        for printed, key in (("ORKFD", "orkfd"), ("KFD", "kfd")):
            cells.append(plus_minus(row[printed], 2))
            cells += [plus_minus(ours[key + coding][:2], 2) for coding in ("", "-signs")]
        rows.append([name, str(ours["orkfd"][2]), *cells])
    header = ["set", "splits"]
    for printed in ("ORKFD", "KFD"):
        header += [f"published {printed}", f"{printed}, n/n₁ and -n/n₂", f"{printed}, ±1"]
    return table(header, rows)


def saadi2007_ours() -> str:
    found = result("saadi2007_table1")
    rows = [
        [
            name,
            plus_minus(row["ORKFD"], 2),
            *(plus_minus(found["ours"][name][m][:2], 2) for m in ("dual", "default", "ls-svm")),
        ]
        for name, row in found["published"].items()
    ]
    return table(["set", "published ORKFD", "dual norm", "function norm", "LS-SVM"], rows)


def saadi2007_seconds() -> str:
    """Time to choose on one training set."""
    sets = result("saadi2007_selection")["sets"]
    ratios = result("saadi2007_table1")["selection"]
    rows = []
    for name, row in sets.items():
        seconds = [row[way]["seconds"] for way in ("orkfd", "lattice", "kfd")]
        rows.append(
            [
                name,
                f"{row['orkfd']['kernels']:.0f}",
                *(f"{value:.2f}" for value in seconds),
                f"{ratios['orkfd']['by_set'][name]:.1f}",
                f"{ratios['lattice']['by_set'][name]:.1f}",
            ]
        )
    medians = (f"{ratios[way]['median']:.1f}" for way in ("orkfd", "lattice"))
    return table(
        [
            "set",
            "widths that ORKFD tried",
            "ORKFD, s",
            "ORKFD on KFD's lattice, s",
            "KFD, 10 folds, s",
            "KFD / ORKFD",
            "KFD / ORKFD on its lattice",
        ],
        [*rows, ["median", "–", "–", "–", "–", *medians]],
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
    for coding, words in (("", "targets n/n₁, -n/n₂"), ("-signs", "targets ±1")):
        duel = found["remade_ORKFD_against_remade_KFD"][coding]
        rows.append([f"both remade, {words}: ORKFD against KFD", "–", counts(duel)])
    for method, title in TITLES.items():
        if method.startswith("kfd"):
            continue
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


def saadi2007_gaps() -> str:
    """Ours less the published ORKFD (KFD for KFD), in standard errors of the difference."""
    found = result("saadi2007_table1")["gap_to_published_in_standard_errors"]
    methods = [m for m in TITLES if m in found]
    rows = [[name, *(f"{found[m][name]:+.1f}" for m in methods)] for name in found[methods[0]]]
    return table(["set", *(TITLES[m] for m in methods)], rows)


def counts(duel: dict[str, list[str]]) -> str:
    clear = (
        f"{len(duel['clear_wins'])} and {len(duel['clear_losses'])} by more than a standard error"
    )
    return f"{len(duel['wins'])} better, {len(duel['losses'])} worse ({clear})"


TABLES = (
    saadi2007_figure2,
    saadi2007_figure3,
    saadi2007_ratios,
    saadi2007_figure4,
    saadi2007_table1,
    saadi2007_ours,
    saadi2007_seconds,
    saadi2007_gaps,
    saadi2007_claims,
)
