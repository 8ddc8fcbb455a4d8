"""The table of the page on Fisher's discriminant and least squares."""

from __future__ import annotations

from tables import number, result, table


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


TABLES = (mueller2006_sketches,)
