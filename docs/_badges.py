"""The badges of README.md as files of our own, made from pyproject.toml: nothing is fetched, and
nothing on them is a wish.

python docs/_badges.py            # writes docs/_static/badge-*.svg
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "_static"


def badges() -> dict[str, tuple[str, str]]:
    """File stem: what it says."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    (version,) = re.findall(
        r'__version__ = "(.+)"',
        (ROOT / "src" / "fitonce" / "core" / "version.py").read_text(encoding="utf-8"),
    )
    (sklearn,) = (
        entry.removeprefix("scikit-learn>=")
        for entry in project["dependencies"]
        if entry.startswith("scikit-learn")
    )
    return {
        "badge-version": ("version", version),
        "badge-python": ("Python", project["requires-python"].replace(">=", "≥ ")),
        "badge-sklearn": ("scikit-learn", f"≥ {sklearn}"),
        "badge-licence": ("licence", project["license"]),
        "badge-types": ("types", "mypy strict" if settings["tool"]["mypy"]["strict"] else "mypy"),
    }


def drawn(label: str, value: str) -> str:
    left, right = 7 * len(label) + 14, 7 * len(value) + 14
    text = escape(f"{label}: {value}")
    style = (
        'font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle" '
        'fill="#fff"'
    )
    edge = f"M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{text}"><title>{text}</title>'
        f'<rect width="{left + right}" height="20" rx="3" fill="#444"/><path d="{edge}" '
        'fill="#0b5cad"/>'
        f'<text x="{left / 2}" y="14" {style}>{escape(label)}</text>'
        f'<text x="{left + right / 2}" y="14" {style}>{escape(value)}</text></svg>\n'
    )


def main() -> None:
    for stem, words in badges().items():
        (FOLDER / f"{stem}.svg").write_text(drawn(*words), encoding="utf-8")


if __name__ == "__main__":
    main()
