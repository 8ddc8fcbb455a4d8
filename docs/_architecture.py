"""The picture of docs/architecture.md: how rows become held-out values, and which room does what.

    python docs/_architecture.py            # writes docs/_static/architecture.svg

It has its own ground and follows the reader's choice of light or dark, so that it needs neither
from the page around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

PICTURE = Path(__file__).resolve().parent / "_static" / "architecture.svg"
WIDTH, MARGIN, GAP = 860, 18, 20
BOX_HEIGHT, BAND_HEIGHT, BAND_GAP = 62, 112, 30
STYLE = """
  .ground { fill: #ffffff } .band { fill: #f2f5f9 } .box { fill: #ffffff; stroke: #5b7ea3 }
  text { font-family: system-ui, sans-serif; fill: #1d2733 } .what { fill: #46566a }
  .title { fill: #2b5a8c; font-weight: 600 } .room { font-weight: 600 }
  .arrow { stroke: #46566a; stroke-width: 1.5; fill: none } .tip { fill: #46566a }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #14181e } .band { fill: #1d242d } .box { fill: #14181e; stroke: #6f97c2 }
    text { fill: #e6ebf1 } .what { fill: #aebccb } .title { fill: #8fbcec }
    .arrow { stroke: #aebccb } .tip { fill: #aebccb }
  }
"""


@dataclass(frozen=True)
class Band:
    """A row of the picture: its title and its boxes, each a room and what it does."""

    title: str
    boxes: tuple[tuple[str, str], ...]
    in_order: bool  # whether each box hands on to the next


BANDS = (
    Band(
        "no labels: once for each kernel",
        (
            ("rows/", "arrays, files, Dask"),
            ("kernels, landmarks/", "K, or features Z"),
            ("spectrum, moments", "core: decomposition"),
            ("smoothers, features", "core: fitted values H Y"),
        ),
        in_order=True,
    ),
    Band(
        "labels enter, in one batch",
        (
            ("readout", "core: targets"),
            ("holdout", "core: rows leave"),
            ("readout", "core: decisions"),
            ("criteria", "core: losses"),
            ("tuning/", "kernel and mu"),
        ),
        in_order=True,
    ),
    Band(
        "what a user calls",
        (
            ("estimators/", "fit, predict, verify"),
            ("crossval/", "scores, without refits"),
            ("inference/", "permutation tests"),
            ("positions/", "every time, every place"),
        ),
        in_order=False,
    ),
    Band(
        "what a reader sees",
        (
            ("assessment/", "the evidence"),
            ("plotting/", "displays"),
            ("report/", "one page"),
            ("io/", "model files, ONNX"),
            ("cli/", "the program"),
        ),
        in_order=False,
    ),
)


def text(x: float, y: float, words: str, kind: str, size: int, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" class="{kind}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def arrow(*points: tuple[float, float]) -> str:
    """A line through the points with a tip at the last."""
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}" class="arrow" marker-end="url(#tip)"/>'


def top_of(number: int) -> float:
    return MARGIN + number * (BAND_HEIGHT + BAND_GAP)


def places(band: Band) -> list[tuple[float, float]]:
    """Left end and width of each box."""
    inner = WIDTH - 4 * MARGIN
    width = (inner - GAP * (len(band.boxes) - 1)) / len(band.boxes)
    return [(2 * MARGIN + i * (width + GAP), width) for i in range(len(band.boxes))]


def centre(band: int, box: int) -> float:
    left, width = places(BANDS[band])[box]
    return left + width / 2


def drawn_band(number: int, band: Band) -> list[str]:
    top = top_of(number)
    box_top, middle = top + 38, top + 38 + BOX_HEIGHT / 2
    parts = [
        f'<rect x="{MARGIN}" y="{top:g}" width="{WIDTH - 2 * MARGIN}" height="{BAND_HEIGHT}" '
        'rx="10" class="band"/>',
        text(2 * MARGIN, top + 25, band.title, "title", 14, "start"),
    ]
    for i, ((left, width), (room, what)) in enumerate(zip(places(band), band.boxes, strict=True)):
        parts += [
            f'<rect x="{left:g}" y="{box_top:g}" width="{width:g}" height="{BOX_HEIGHT}" rx="6" '
            'class="box"/>',
            text(left + width / 2, middle - 5, room, "room", 12),
            text(left + width / 2, middle + 15, what, "what", 12),
        ]
        if band.in_order and i:
            parts.append(arrow((left - GAP, middle), (left - 2, middle)))
    return parts


def links() -> list[str]:
    """Between the bands: the smoother to the deletions, the choice back to the kernel, results."""
    box_tops = [top_of(number) + 38 for number in range(len(BANDS))]
    smoother, holdout, lane = centre(0, 3), centre(1, 1), top_of(1) - BAND_GAP / 2
    left, width = places(BANDS[1])[-1]
    choice, edge, kernel = left + width, WIDTH - MARGIN / 2, centre(0, 1) + 60
    choice_height, top_lane = box_tops[1] + BOX_HEIGHT / 2, top_of(0) + 20
    down = [
        arrow((WIDTH / 2, top_of(number) - BAND_GAP), (WIDTH / 2, top_of(number)))
        for number in range(2, len(BANDS))
    ]
    return [
        arrow(
            (smoother, box_tops[0] + BOX_HEIGHT),
            (smoother, lane),
            (holdout, lane),
            (holdout, box_tops[1]),
        ),
        arrow(
            (choice, choice_height),
            (edge, choice_height),
            (edge, top_lane),
            (kernel, top_lane),
            (kernel, box_tops[0]),
        ),
        text(kernel + 14, top_lane + 14, "the next kernel", "what", 12, "start"),
        *down,
    ]


def drawn() -> str:
    height = top_of(len(BANDS)) - BAND_GAP + MARGIN
    parts = [part for number, band in enumerate(BANDS) for part in drawn_band(number, band)]
    tip = '<path d="M0,0 L8,4 L0,8 z" class="tip"/>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">',
            "<title>From rows to held-out values, and which room does what</title>",
            f"<style>{STYLE}</style>",
            '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" '
            f'orient="auto">{tip}</marker></defs>',
            f'<rect width="{WIDTH}" height="{height:g}" rx="12" class="ground"/>',
            *parts,
            *links(),
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
    print(PICTURE)
