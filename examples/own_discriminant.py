"""A discriminant on a smoother of your own: additive splines tell three kinds of wine apart.

Every feature has a curve of its own, a penalized spline, and the class indicators are fitted by the
sum of the curves. The hat matrix of that fit is all that held-out discriminant projections need
(Treder 2019, algorithm 1). One fold is fitted again literally, to compare.

    python examples/own_discriminant.py
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
from scipy.interpolate import BSpline
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold

from fitonce import held_out_discriminant

X, y = load_wine(return_X_y=True)
X = X[:, [0, 6, 9, 12]]  # alcohol, flavonoids, color, proline
X = (X - X.min(axis=0)) / np.ptp(X, axis=0)

knots = np.r_[[0.0] * 3, np.linspace(0, 1, 8), [1.0] * 3]
curves = [BSpline.design_matrix(x, knots, 3).toarray() for x in X.T]
differences = np.diff(np.eye(curves[0].shape[1]), 2, axis=0)
roughness = differences.T @ differences + 1e-3 * np.eye(len(differences.T))
Z = np.hstack([np.ones((len(y), 1)), *curves])
penalty = scipy.linalg.block_diag([[0.0]], *[2.0 * roughness] * len(curves))  # a free constant
H = Z @ np.linalg.solve(Z.T @ Z + penalty, Z.T)
H = 0.5 * (H + H.T)  # symmetric to the last digit

test_sets = [test for _, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y)]
found = held_out_discriminant(H, y, test_sets)
right = np.concatenate(
    [part.predicted == y[rows] for part, rows in zip(found, test_sets, strict=True)]
)
print(f"10 folds: {right.mean():.3f} of the wines in the right class")

# the first fold once more: fit the others, solve the eigenproblem, project
test, train = test_sets[0], np.setdiff1d(np.arange(len(y)), test_sets[0])
Y = np.eye(3)[y]
B = np.linalg.solve(Z[train].T @ Z[train] + penalty, Z[train].T @ Y[train])
a2, theta = scipy.linalg.eigh((Z[train] @ B).T @ Y[train], np.diag(Y[train].sum(axis=0)))
a2, theta = a2[1::-1], theta[:, 1::-1]  # without the constant, whose a² is 1
axes = theta * np.sqrt(len(train) - 3) / np.sqrt(a2 * (1 - a2))
literal = Z[test] @ B @ axes
literal *= np.sign(np.sum(literal * found[0].projections, axis=0))  # directions are free
print(f"largest difference from a literal fit: {np.abs(literal - found[0].projections).max():.1e}")

figure, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
colors = np.array(["#0072B2", "#D55E00", "#009E73"])
for rows, part in zip(test_sets, found, strict=True):
    ax.scatter(*part.projections.T, c=colors[y[rows]], s=18)
    ax.scatter(*part.centroids.T, c=colors, marker="x", s=45, linewidths=1.0)
for kind, color in enumerate(colors):
    ax.scatter([], [], c=color, s=18, label=f"wine {kind + 1}")
ax.scatter([], [], c="#555555", marker="x", label="class means, ten folds")
ax.set(xlabel="first axis", ylabel="second axis", title="Held-out rows on the axes of their fold")
ax.legend(frameon=False)
plt.show()
