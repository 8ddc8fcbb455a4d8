"""Links of the built site: every internal one leads to a page and an anchor that exist, and nothing
is loaded from elsewhere.

python docs/_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, where it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        if "id" in found:
            self.anchors.add(found["id"])
        if "href" in found:
            (self.loads if tag == "link" else self.links).append(found["href"])
        if "src" in found:
            self.loads.append(found["src"])


def broken(root: Path) -> list[str]:
    """One line for each link or file of the site that is not there, or that needs a network to
    load.
    """
    pages = {path: Page(path) for path in root.resolve().rglob("*.html")}
    lines = []
    for path, page in pages.items():
        here = path.relative_to(root.resolve())
        lines += [f"{here} loads {target}" for target in page.loads if urlsplit(target).netloc]
        for target in page.links + page.loads:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not goal.exists() or (
                anchor and goal in pages and anchor not in pages[goal].anchors
            ):
                lines.append(f"{here} links to {target}")
    return lines


def main() -> None:
    root = Path(sys.argv[1])
    lines = broken(root)
    if not (root / "index.html").exists():
        lines.append(f"{root} has no index.html")
    raise SystemExit("\n".join(lines) if lines else 0)


if __name__ == "__main__":
    main()
