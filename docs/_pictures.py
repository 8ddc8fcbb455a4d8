"""What the pages show of the program: the first screen of a report, the figure of the tutorial on
decoding, and the screen of `fitonce fit`, all made by today's code.

python docs/_pictures.py           # needs chromium on the PATH
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
STATIC = DOCS / "_static"
BLOCK = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SCREEN = re.compile(r"(<!-- screen: fit -->\n).*?(<!-- end of screen -->)", re.DOTALL)


def report(folder: Path) -> None:
    """The page of examples/report_page.py in a headless Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("this needs chromium on the PATH")
    page, script = folder / "wine.html", ROOT / "examples" / "report_page.py"
    subprocess.run([sys.executable, str(script), str(page)], cwd=folder, check=True)
    options = "--headless --no-sandbox --disable-gpu --disable-background-networking"
    size = "--hide-scrollbars --window-size=1100,1150 --virtual-time-budget=8000"
    command = [chromium, *options.split(), *size.split()]
    command += [f"--screenshot={STATIC / 'report.png'}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True)


def decoding() -> None:
    """The figure of the tutorial, by its own lines."""
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {}
    for block in BLOCK.findall((DOCS / "tutorial-decoding.md").read_text(encoding="utf-8")):
        exec("\n".join(code_lines(block)), names)
    names["figure"].savefig(STATIC / "decoding.png", dpi=110)


def code_lines(block: str) -> list[str]:
    """A block without prompts and without what it prints."""
    if ">>>" not in block:
        return block.splitlines()
    return [line[4:] for line in block.splitlines() if line.startswith((">>>", "..."))]


def screen(folder: Path) -> None:
    """What `fitonce fit` prints, in the tutorial."""
    table, page = ROOT / "examples" / "diabetes.csv", DOCS / "tutorial-command-line.md"
    shutil.copy(table, folder)
    command = [sys.executable, "-m", "fitonce", "fit", table.name, "--target", "progression"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "TERM": "dumb"},
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [line.rstrip() for line in done.stdout.strip().splitlines()]
    shown = "\n".join(["```text", *lines, "```", ""])
    text = page.read_text(encoding="utf-8")
    page.write_text(SCREEN.sub(lambda match: match[1] + shown + match[2], text), encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report(Path(folder))
        screen(Path(folder))
    decoding()


if __name__ == "__main__":
    main()
