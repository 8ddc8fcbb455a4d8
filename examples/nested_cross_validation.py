"""How optimistic is a tuned score? Nested cross-validation on pure noise and on data with a signal.

Tuning picks the settings whose held-out score happens to be best, so that this score is too good.
Nested cross-validation tunes again inside every training set, and the outer rows judge. Here both
come from closed forms: each outer training set is decomposed once for each width, and nothing is
refitted.

    python examples/nested_cross_validation.py
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fitonce
from fitonce.datasets import make_twonorm

rng = np.random.default_rng(0)
n, repeats = 60, 8


def noise() -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, 10)), rng.permutation(np.arange(n) % 2)


def signal() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_twonorm(n, random_state=int(rng.integers(1 << 31)))
    return X + rng.normal(size=X.shape), (y > 0).astype(int)


tuned: dict[str, list[float]] = {}
nested: dict[str, list[float]] = {}
start = perf_counter()
for name, draw in (("noise: truth 50 %", noise), ("signal", signal)):
    tuned[name], nested[name] = [], []
    for _ in range(repeats):
        X, y = draw()
        estimator = fitonce.KernelFisherDiscriminant(criterion="error")
        held_out = clone(estimator).fit(X, y).held_out_decision_ > 0
        tuned[name].append(float(np.mean(held_out == y)))
        nested[name].append(fitonce.cross_val_score(estimator, X, y, cv=5).mean())
    print(
        f"{name:<20} tuned score {np.mean(tuned[name]):.3f}, nested {np.mean(nested[name]):.3f}, "
        f"mean of {repeats} data sets"
    )
print(f"{2 * repeats} nested cross-validations in {perf_counter() - start:.1f} s")

# In a pipeline the preprocessing is repeated on each outer training set as well; the result says by
# which route it was computed.
X, y = signal()
result = fitonce.cross_validate(
    make_pipeline(StandardScaler(), fitonce.KernelFisherDiscriminant()), X, y, cv=5
)
print(f"\npipeline: nested accuracy {np.mean(result['test_score']):.3f}; route: {result.route}")

figure, ax = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
for column, name in enumerate(tuned):
    for first, second in zip(tuned[name], nested[name], strict=True):
        ax.plot([3 * column, 3 * column + 1], [first, second], color="#8a8a8a", linewidth=1)
    ax.scatter(
        np.full(repeats, 3 * column),
        tuned[name],
        color="#D55E00",
        marker="s",
        label="tuned" if column == 0 else None,
        zorder=3,
    )
    ax.scatter(
        np.full(repeats, 3 * column + 1),
        nested[name],
        color="#0072B2",
        label="nested" if column == 0 else None,
        zorder=3,
    )
ax.axhline(0.5, color="#222222", linestyle="--", linewidth=1)
ax.set_xticks([0.5, 3.5], list(tuned))
ax.set_ylabel("accuracy")
ax.legend(frameon=False, loc="lower right")
