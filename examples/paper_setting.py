"""A paper's setting in this library: the synthetic problem of Cawley and Talbot (2003), their
model, and their approximation.

Their kernel Fisher discriminant penalises the dual coefficients (μ‖α‖²) beside a free bias;
`conversions.from_papers` turns their μ and kernel width σ into keyword arguments. Their targets are
n/n₁ for the first class and -n/n₂ for the second; with ±1 the model is the same, its threshold
elsewhere. Saadi et al. (2007) also name a bias that is penalised like the coefficients, for which
targets do matter. Their leave-one-out deletes a row but keeps its kernel function; the exact one
deletes both, as fitting again without the row does. The figure shows the decision boundary beside
Bayes's.

    python examples/paper_setting.py
    python examples/paper_setting.py --targets fisher --bias penalized
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from fitonce import KernelRidge
from fitonce.conversions import from_papers
from fitonce.datasets import make_torus, torus_bayes

parser = argparse.ArgumentParser()
parser.add_argument("--targets", choices=("signs", "fisher"), default="signs")
parser.add_argument("--bias", choices=("free", "penalized"), default="free")
options = parser.parse_known_args()[0]


def scores(sizes, targets):
    """The targets of the two classes, given how many rows they have: (..., 2)."""
    if targets == "signs":
        return np.ones_like(sizes) * [1.0, -1.0]
    return sizes.sum(axis=-1, keepdims=True) / sizes * [1.0, -1.0]


# models are linear in their targets: one fit to the indicators of the classes serves all of them
X, y = make_torus(80, random_state=0)
indicators = np.column_stack([y > 0, y < 0]).astype(float)
sizes = indicators.sum(axis=0)
settings = from_papers(mu=0.1, sigma=1.5, penalized_bias=options.bias == "penalized")
model = KernelRidge(**settings).fit(X, indicators)
print(f"their mu = 0.1 and sigma = 1.5, {options.bias} bias, are {settings}")


def decision(rows):
    return model.predict(rows) @ scores(sizes, options.targets)


# held out, by the targets of the rows that are left
without = scores(sizes - indicators, options.targets)
exact = np.sum(model.held_out_prediction_ * without, axis=1)

K = rbf_kernel(X, gamma=model.gamma_)
penalty = np.append(np.full(len(y), 0.1), 0.1 if options.bias == "penalized" else 0.0)


def literal(i):
    """Equation (4) of the paper without row i: no part of this library."""
    rest = np.delete(np.arange(len(y)), i)
    design = np.column_stack([K[np.ix_(rest, rest)], np.ones(len(rest))])
    system = design.T @ design + np.diag(np.delete(penalty, i))
    targets = indicators[rest] @ without[i]
    return np.append(K[i, rest], 1.0) @ np.linalg.solve(system, design.T @ targets)


refits = np.array([literal(i) for i in range(len(y))])
# the paper's: the kernel functions of all rows stay, so that 1 / (1 - leverage) repairs a residual
design = np.column_stack([K, np.ones(len(y))])
H = design @ np.linalg.solve(design.T @ design + np.diag(penalty), design.T)
targets = indicators @ scores(sizes, options.targets)
approximate = targets - (targets - H @ targets) / (1.0 - np.diag(H))
print(f"\nleave-one-out, {len(y)} rows, targets {scores(sizes, options.targets).round(3)}, against")
print(f"{len(y)} literal refits:")
for name, values in (("exact", exact), ("the paper's", approximate)):
    error, deviation = np.mean((values > 0) != (y > 0)), np.abs(values - refits).max()
    print(f"{name:<14} error rate {error:.4f}   largest deviation of a value {deviation:.1e}")
assert np.abs(exact - refits).max() < 1e-8

X_new, y_new = make_torus(20_000, random_state=1)
bayes = np.where(torus_bayes(X_new) > 0, 1, -1)
print(
    f"\n20,000 new rows: error {np.mean((decision(X_new) > 0) != (y_new > 0)):.4f}, Bayes's rule "
    f"{np.mean(bayes != y_new):.4f}"
)

grid = np.linspace(-7.0, 7.0, 120)
points = np.column_stack([axis.ravel() for axis in np.meshgrid(grid, grid)])
figure, ax = plt.subplots(figsize=(5.0, 4.4), layout="constrained")
ax.contour(grid, grid, decision(points).reshape(120, 120), [0.0], colors="#222222", linewidths=1.8)
ax.contour(
    grid, grid, torus_bayes(points).reshape(120, 120), [0.0], colors="#8a8a8a", linestyles="--"
)
for label, colour, marker in ((1, "#0072B2", "o"), (-1, "#D55E00", "s")):
    ax.scatter(*X[y == label].T, s=20, color=colour, marker=marker, label=f"class {label:+d}")
ax.plot([], [], color="#222222", linewidth=1.8, label="the model")
ax.plot([], [], color="#8a8a8a", linestyle="--", label="Bayes")
ax.set_aspect("equal")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
