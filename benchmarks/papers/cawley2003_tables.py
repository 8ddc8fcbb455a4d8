"""Tables of the page on Cawley and Talbot (2003)."""

from __future__ import annotations

from tables import number, result, table


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


def cawley2003_folds() -> str:
    found = result("cawley2003_folds")
    sizes = found["settings"]["sizes"]
    names = {
        "bartlett": "Bartlett's formula, row by row",
        "blocks": "one system a fold",
        "exact": "fitonce, exact",
        "refits": "S refits",
    }
    rows = [
        [
            S,
            name,
            *(number(1000 * seconds) for seconds in part["seconds"][way]),
            f"{part['slopes'][way]:.1f}",
        ]
        for S, part in found["folds"].items()
        for way, name in names.items()
    ]
    times = [f"ms at n = {n}" for n in sizes]
    return table(["S", "way", *times, f"exponent, n ≥ {found['settings']['slopes_from']}"], rows)


TABLES = (
    cawley2003_figure1,
    cawley2003_slopes,
    cawley2003_folds,
    cawley2003_figure2,
    cawley2003_error_rates,
)
