"""Table 1 of Richard (2012).

Kernel Fisher discriminant against support vector machine, linear kernel.
"""

from __future__ import annotations

import richard2012

PUBLISHED = [("ionosphere", 76.190, 78.571), ("iris", 96.970, 96.970), ("wine", 48.936, 91.489)]


def main() -> None:
    run = richard2012.start(__file__, __doc__, {"draws": 50}, {"draws": 2})
    richard2012.finish(run, richard2012.rows_of(run, "linear", [()]), PUBLISHED)


if __name__ == "__main__":
    main()
