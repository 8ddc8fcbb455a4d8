"""A paper's setting in this library: the synthetic problem of Cawley and Talbot (2003), their
model, and their approximation.

Their kernel Fisher discriminant penalises the dual coefficients (μ‖α‖²) beside a free bias;
`conversions.from_papers` turns their μ and kernel width σ into keyword arguments. Their
leave-one-out deletes a row but keeps its kernel function; the exact one deletes both, as fitting
again without the row does. The figure shows the decision boundary beside Bayes's.

    python examples/paper_setting.py
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from fitonce import LeastSquaresSVC
from fitonce.conversions import from_papers
from fitonce.datasets import make_torus, torus_bayes

X, y = make_torus(80, random_state=0)
model = LeastSquaresSVC(**from_papers(mu=0.1, sigma=1.5), calibration=None).fit(X, y)
print(f"their mu = 0.1 and sigma = 1.5 are {from_papers(mu=0.1, sigma=1.5)}")

literal = np.array(
    [
        clone(model).fit(np.delete(X, i, 0), np.delete(y, i)).decision_function(X[[i]])[0]
        for i in range(len(y))
    ]
)
exact = model.held_out_decision_
# the paper's: the kernel functions of all rows stay, so that 1 / (1 - leverage) repairs a residual
design = np.column_stack([rbf_kernel(X, gamma=model.gamma_), np.ones(len(y))])
penalty = np.diag([model.alpha_] * len(y) + [0.0])
H = design @ np.linalg.solve(design.T @ design + penalty, design.T)
approximate = y - (y - H @ y) / (1.0 - np.diag(H))
print(f"\nleave-one-out, {len(y)} rows, against {len(y)} literal refits:")
for name, values in (("exact", exact), ("the paper's", approximate)):
    error, deviation = np.mean((values > 0) != (y > 0)), np.abs(values - literal).max()
    print(f"{name:<14} error rate {error:.4f}   largest deviation of a value {deviation:.1e}")
assert np.abs(exact - literal).max() < 1e-8

X_new, y_new = make_torus(20_000, random_state=1)
bayes = np.where(torus_bayes(X_new) > 0, 1, -1)
print(
    f"\n20,000 new rows: error {np.mean(model.predict(X_new) != y_new):.4f}, Bayes's rule "
    f"{np.mean(bayes != y_new):.4f}"
)

grid = np.linspace(-7.0, 7.0, 120)
points = np.column_stack([axis.ravel() for axis in np.meshgrid(grid, grid)])
figure, ax = plt.subplots(figsize=(5.0, 4.4), layout="constrained")
ax.contour(
    grid,
    grid,
    model.decision_function(points).reshape(120, 120),
    [0.0],
    colors="#222222",
    linewidths=1.8,
)
ax.contour(
    grid, grid, torus_bayes(points).reshape(120, 120), [0.0], colors="#8a8a8a", linestyles="--"
)
for label, colour, marker in ((1, "#0072B2", "o"), (-1, "#D55E00", "s")):
    ax.scatter(*X[y == label].T, s=20, color=colour, marker=marker, label=f"class {label:+d}")
ax.plot([], [], color="#222222", linewidth=1.8, label="the model")
ax.plot([], [], color="#8a8a8a", linestyle="--", label="Bayes")
ax.set_aspect("equal")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
