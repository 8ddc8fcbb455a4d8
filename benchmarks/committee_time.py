"""Processor time of the default committee beside scikit-learn's SVC on a grid.

The grid has 13 × 16 values and 10 folds; 400 rows of 20 features, two classes, one thread, all in
one process.

    python benchmarks/committee_time.py
"""

from __future__ import annotations

import time
import warnings

import common
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fitonce import KernelCommitteeClassifier, KernelFisherDiscriminant

GRID = {"gamma": 2.0 ** np.arange(-12, 4), "C": 2.0 ** np.arange(-4, 9)}


def main() -> None:
    warnings.simplefilter("ignore")
    X, y = make_classification(400, 20, n_informative=6, random_state=0)
    X = StandardScaler().fit_transform(X)
    seconds = common.interleaved(
        2,
        time.process_time,
        committee=lambda: KernelCommitteeClassifier().fit(X, y),
        rbf=lambda: KernelFisherDiscriminant().fit(X, y),
        tuned_kernel=lambda: KernelFisherDiscriminant("tune").fit(X, y),
    )
    grid = GridSearchCV(SVC(), GRID, cv=10)
    seconds |= common.interleaved(1, time.process_time, svc_grid=lambda: grid.fit(X, y))
    print(seconds)
    common.write(__file__, {"seconds": seconds})


if __name__ == "__main__":
    main()
