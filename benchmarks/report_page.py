"""How long a report takes to write and how large it is, by the number of rows.

python benchmarks/report_page.py [rows …]
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

from sklearn.datasets import make_classification

from fitonce import KernelFisherDiscriminant
from fitonce.report import write_report


def main() -> None:
    warnings.simplefilter("ignore")
    print("rows  classes  features  fit, s  page, s  explorer, s    MB  stops")
    for n in [int(text) for text in sys.argv[1:]] or [150, 500, 1000, 2000]:
        for n_classes, n_features in ((2, 12), (2, 2), (5, 12)):
            print(row(n, n_classes, n_features), flush=True)


def row(n: int, n_classes: int, n_features: int) -> str:
    """One line: with an explorer, and with room for nothing but the rest of the page."""
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
    times = [time.perf_counter()]
    model = KernelFisherDiscriminant().fit(X, y)
    times.append(time.perf_counter())
    calls: list[tuple[float, int]] = []

    def progress(_: str, done: int, total: int) -> None:
        calls.append((time.perf_counter(), total))

    with tempfile.TemporaryDirectory() as folder:
        page = write_report(Path(folder) / "page.html", model, X, y, progress=progress)
        times.append(time.perf_counter())
        size = page.stat().st_size / 1e6
    fit, whole = times[1] - times[0], times[2] - times[1]
    explorer = calls[-1][0] - calls[0][0] if calls else 0.0
    stops = calls[-1][1] if calls else 0
    return (
        f"{n:4d}  {n_classes:7d}  {n_features:8d}  {fit:6.1f}  {whole:7.1f}  {explorer:11.1f}  "
        f"{size:4.1f}  {stops:5d}"
    )


if __name__ == "__main__":
    main()
