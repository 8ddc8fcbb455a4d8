"""Model files of a release, to be read by all later ones.

Once per release, with the oldest and the newest NumPy that it supports:

    python tests/io/released.py

Each file carries rows and what its model says of them. Files that are there already stay; those of
a version that has not been released yet may be deleted and made again.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC, __version__, save

DATA = Path(__file__).parent / "data"


def models():
    """A tuned discriminant of three classes, sparse rows with steps, landmarks and two targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.array(["few", "many", "some"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=30), [-1, 0])]
    few = np.where(np.abs(X) > 0.6, X, 0.0)
    alphas = [0.01, 0.1, 1.0]
    yield "fisher", KernelFisherDiscriminant(alpha=alphas).fit(X, y), X
    steps = LeastSquaresSVC(gamma=0.5, alpha=alphas, calibration="isotonic")
    yield "svc", steps.fit(sp.csr_matrix(few), y == "many"), few
    ridge = KernelRidge(gamma=0.5, alpha=alphas, landmarks=10, random_state=0)
    yield "ridge", ridge.fit(X, X[:, :2] ** 2), X


def outputs(model, rows):
    names = ("decision_function", "predict_proba") if is_classifier(model) else ("predict",)
    return {name: getattr(model, name)(rows) for name in names}


def main():
    numpy = ".".join(np.__version__.split(".")[:2])
    for name, model, rows in models():
        path = DATA / f"{__version__}-numpy-{numpy}-{name}.skops"
        if not path.exists():
            save(model, path, metadata={"rows": rows, "outputs": outputs(model, rows)})


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
