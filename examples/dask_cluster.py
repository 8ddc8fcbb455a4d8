"""One model from rows that lie on several machines: a Dask collection is passed as it is, every
worker reduces its own rows to sums, and only these come back.

Run it: python examples/dask_cluster.py

Needs `dask` and `distributed`. Here the cluster is this process; on a real one, give `Client` the
address of its scheduler.
"""

from __future__ import annotations

import numpy as np

from fitonce import LeastSquaresSVC, cross_val_score
from fitonce.datasets import make_ringnorm

ROWS = 20_000


def main() -> None:
    try:
        import dask.array as da
        from dask.distributed import Client
    except ImportError:
        print("this example needs Dask: install fitonce with its extra dask")
        return
    X, y = make_ringnorm(ROWS, random_state=0)
    X_new, y_new = make_ringnorm(5000, random_state=2)
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        rows = da.from_array(X, chunks=(4000, X.shape[1]))  # in earnest: da.from_zarr, dd.read_…
        model = LeastSquaresSVC(gamma=0.05, landmarks=200, random_state=0).fit(rows, y)
        print(f"rows: {ROWS} in {rows.numblocks[0]} partitions")
        left_out = np.mean((model.held_out_decision_ > 0) == (y == model.classes_[1]))
        print(f"alpha {model.alpha_:g}, leave-one-out accuracy {left_out:.4f}")
        scores = cross_val_score(model, rows, y, cv=5)
        print(f"five folds: {scores.mean():.4f} +- {scores.std():.4f}")
        lazy = model.predict(da.from_array(X_new, chunks=(1000, X.shape[1])))
        print(f"accuracy on new rows {np.mean(lazy.compute() == y_new):.4f}")


if __name__ == "__main__":
    main()
