"""The picture of the report in README.md: the page of examples/report_page.py in a headless
Chromium.

python docs/_picture.py            # writes docs/_static/report.png; needs chromium on the PATH
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "_static" / "report.png"


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("this needs chromium on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "wine.html"
        subprocess.run(
            [sys.executable, str(ROOT / "examples" / "report_page.py"), str(page)],
            cwd=folder,
            check=True,
        )
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--hide-scrollbars",
        ]
        size, wait = "--window-size=1100,1150", "--virtual-time-budget=8000"
        subprocess.run(
            [chromium, *options, size, wait, f"--screenshot={PICTURE}", page.as_uri()],
            check=True,
            capture_output=True,
        )
    print(PICTURE)


if __name__ == "__main__":
    main()
