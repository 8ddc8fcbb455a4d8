"""How much more than one eigendecomposition does a whole tuned fit cost?

`LeastSquaresSVC` with 21 candidate alphas, n = 2000: kernel matrix, decomposition, leave-one-out
predictions for all candidates, choice, model, calibration; against `scipy.linalg.eigh` (divide and
conquer) of the same kernel matrix, in turn in one process. `KernelRidge`
with one fixed alpha, which needs no eigenvectors. The ratio is printed last.
"""

from __future__ import annotations

import argparse

import common
import numpy as np
import scipy.linalg
from sklearn.metrics.pairwise import rbf_kernel

from fitonce import KernelFisherDiscriminant, KernelRidge, LeastSquaresSVC


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, arguments.n)
    X = rng.normal(size=(arguments.n, 10)) + 0.5 * y[:, None]
    alphas = 2.0 ** np.arange(-10, 11)
    K = rbf_kernel(X, gamma=0.1)
    models = {
        "LeastSquaresSVC": LeastSquaresSVC(gamma=0.1, alpha=alphas),
        "LeastSquaresSVC, dual": LeastSquaresSVC(gamma=0.1, alpha=alphas, penalty="dual"),
        "KernelFisherDiscriminant": KernelFisherDiscriminant(gamma=0.1, alpha=alphas),
    }
    fixed = KernelRidge(alpha=1.0, gamma=0.1)
    tasks = {name: (lambda model=model: model.fit(X, y)) for name, model in models.items()}
    seconds = common.interleaved(
        arguments.repeats,
        eigh=lambda: scipy.linalg.eigh(
            K.T.copy(order="F"), driver="evd", overwrite_a=True, check_finite=False
        ),
        **tasks,
        **{"one alpha": lambda: fixed.fit(X, y)},
    )
    ratios = {name: seconds[name] / seconds["eigh"] for name in models}
    one_alpha = seconds["one alpha"] / seconds["eigh"]
    for name, value in seconds.items():
        print(
            f"{name:28s} {value:7.3f} s"
            + (f"   {ratios[name]:.3f} x eigh" if name in ratios else "")
        )
    made = {"n": arguments.n, "candidates": len(alphas), "seconds": seconds, "ratios": ratios}
    path = common.write(__file__, made | {"one_alpha": one_alpha})
    print(f"one fixed alpha: {one_alpha:.2f} x eigh; written to {path.name}")
    print(f"ratio {ratios['LeastSquaresSVC']:.3f}")


if __name__ == "__main__":
    main()
