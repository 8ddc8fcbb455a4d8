"""k folds for many alphas: which way is the cheapest?

Held-out values of kernel ridge, n = 2000, 5 folds, 21 alphas, from one decomposition of all rows
(blocks of H as symmetric products, as `KernelRidge(cv=5)` has them); from a decomposition of every
training set; and by `GridSearchCV` on scikit-learn's `KernelRidge`. CPU time, in turn in one
process; the largest difference of the first two relative to the targets. How many times faster than
the grid the whole fit is, is printed last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np
import sklearn.kernel_ridge
from sklearn.model_selection import GridSearchCV, KFold

from fitonce import KernelRidge
from fitonce.kernels import Kernel
from fitonce.tuning.decompose import decompose

N, FOLDS, GAMMA = 2000, 5, 0.05
ALPHAS = 2.0 ** np.arange(-10, 11)
RBF = Kernel("rbf", {"gamma": GAMMA})


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = task()
    return time.process_time() - start, result


def per_fold(X: np.ndarray, Y: np.ndarray, splits: list[Any]) -> np.ndarray:
    """Held-out values (alphas, n, 1), fold after fold, each from its own decomposition."""
    parts = []
    for train, test in splits:
        smoother = decompose(X[train], RBF, "function", True, None)
        targets = smoother.project(Y[train])
        K, values = RBF(X[test], X[train]), []
        for mu in map(float, ALPHAS):
            fitted = smoother.fit(targets, mu)
            dual = smoother.dual_coef(fitted, mu)
            bias = smoother.bias_coef(fitted.Y, dual)[0, :] / np.sqrt(len(train))
            values.append(K @ dual + bias)
        parts.append(np.stack(values))
    return np.concatenate(parts, axis=1)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 10))
    Y = np.sin(X[:, :1]) + 0.3 * rng.normal(size=(N, 1))
    cv = KFold(FOLDS, shuffle=True, random_state=0)
    splits = list(cv.split(X))
    deletions = [(test, np.arange(len(test))) for _, test in splits]
    seconds: dict[str, float] = {}
    seconds["decomposition"], smoother = timed(lambda: decompose(X, RBF, "function", True, None))
    targets = smoother.project(Y)
    seconds["folds from it"], ours = timed(
        lambda: smoother.held_out_folds(targets, ALPHAS, deletions)
    )
    seconds["a decomposition per fold"], other = timed(lambda: per_fold(X, Y, splits))
    difference = float(np.abs(ours - other).max() / np.abs(Y).max())
    model = KernelRidge(ALPHAS, gamma=GAMMA, cv=cv)
    seconds["whole fit"], fitted = timed(lambda: model.fit(X, Y[:, 0]))
    grid = GridSearchCV(
        sklearn.kernel_ridge.KernelRidge(kernel="rbf", gamma=GAMMA),
        {"alpha": ALPHAS},
        cv=cv,
        scoring="neg_mean_squared_error",
    )
    seconds["GridSearchCV"], found = timed(lambda: grid.fit(X, Y[:, 0]))
    ratio = seconds["GridSearchCV"] / seconds["whole fit"]
    for name, value in seconds.items():
        print(f"{name:26s} {value:7.2f} s")
    print(f"largest difference {difference:.1e}; alpha {fitted.alpha_}, {found.best_params_}")
    common.write(
        __file__,
        {
            "n": N,
            "folds": FOLDS,
            "alphas": len(ALPHAS),
            "seconds": seconds,
            "largest difference": difference,
            "times faster than the grid": ratio,
        },
    )
    print(f"times faster {ratio:.1f}")


if __name__ == "__main__":
    main()
