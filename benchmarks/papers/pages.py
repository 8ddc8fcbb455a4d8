"""Tables of the pages in docs/papers and of results/papers.md, made from the committed results.

    python benchmarks/papers/pages.py            # writes
    python benchmarks/papers/pages.py --check    # says which pages are not up to date

How the tables of a page are marked: docs/_marked.py.
"""

from __future__ import annotations

import cawley2003_tables
import mueller2006_tables
import richard2012_tables
import saadi2007_tables
import treder2019_tables
from tables import DOCS, RESULTS, Marked

PAPERS = (
    cawley2003_tables,
    saadi2007_tables,
    richard2012_tables,
    treder2019_tables,
    mueller2006_tables,
)
MARKED = Marked(
    DOCS / "papers",
    {function.__name__: function for paper in PAPERS for function in paper.TABLES},
    others=(RESULTS.parent / "papers.md",),
)

if __name__ == "__main__":
    MARKED.main()
