"""How long a report takes to write and how large it is, by the number of rows.

python benchmarks/report_page.py [rows …]     # writes benchmarks/results/report_page.json
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import common
from sklearn.datasets import make_classification

from fitonce import KernelFisherDiscriminant
from fitonce.report import write_report

KINDS = ((2, 12), (2, 2), (5, 12))  # classes, features


def main() -> None:
    warnings.simplefilter("ignore")
    sizes = [int(text) for text in sys.argv[1:]] or [150, 500, 1000, 2000]
    results = [measured(n, *kind) for n in sizes for kind in KINDS]
    print(common.write(__file__, {"pages": results}))


def measured(n: int, n_classes: int, n_features: int) -> dict[str, Any]:
    """Seconds of CPU of the fit, of the whole page and of its explorer; the size of the page."""
    X, y = make_classification(
        n,
        n_features,
        n_informative=min(n_features, 8),
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.7,
        random_state=0,
    )
    start = time.process_time()
    model = KernelFisherDiscriminant().fit(X, y)
    fitted = time.process_time()
    stops: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write_report(path, model, X, y, progress=lambda *_: stops.append(time.process_time()))
        written = time.process_time()
        result = {
            "rows": n,
            "classes": n_classes,
            "features": n_features,
            "fit": round(fitted - start, 2),
            "page": round(written - fitted, 2),
            "explorer": round(stops[-1] - stops[0], 2),
            "stops": len(stops),
            "megabytes": round(path.stat().st_size / 1e6, 2),
        }
    print(result, flush=True)
    return result


if __name__ == "__main__":
    main()
