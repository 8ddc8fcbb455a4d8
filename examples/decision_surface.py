"""A decision surface with leave-one-out in view: rows drawn by what the model that had not seen
them said.

300 points around and inside a circle, with the best boundary known. One fit chooses the kernel
width and alpha; the crosses are rows that their own leave-one-out model misclassifies.

    python examples/decision_surface.py
"""

import matplotlib.pyplot as plt
import numpy as np

from fitonce import KernelFisherDiscriminant
from fitonce.datasets import make_torus, torus_bayes

X, y = make_torus(300, random_state=1)
model = KernelFisherDiscriminant().fit(X, y)
wrong = (model.held_out_decision_ > 0) != (y == model.classes_[1])
print(
    f"gamma = {model.gamma_:g}, alpha = {model.alpha_:g}, {len(model.cv_results_['params'])} "
    "pairs tried"
)
print(
    f"leave-one-out error {wrong.mean():.3f}, training error {np.mean(model.predict(X) != y):.3f}"
)

reach = 6.0
grid = np.linspace(-reach, reach, 200)
points = np.column_stack([axis.ravel() for axis in np.meshgrid(grid, grid)])
probability = model.predict_proba(points)[:, 1].reshape(200, 200)
best = torus_bayes(points).reshape(200, 200)  # log-odds

figure, ax = plt.subplots(figsize=(6.2, 5.2), layout="constrained")
shades = ax.contourf(grid, grid, probability, levels=np.linspace(0, 1, 11), cmap="RdBu", alpha=0.55)
ax.contour(grid, grid, probability, levels=[0.5], colors="black", linewidths=1.6)
ax.contour(grid, grid, best, levels=[0.0], colors="black", linewidths=1.0, linestyles="dashed")
for label, colour in zip(model.classes_, ("#8c1d18", "#0b3d91"), strict=True):
    right = (y == label) & ~wrong
    ax.scatter(*X[right].T, s=12, color=colour, linewidths=0)
    ax.scatter(*X[(y == label) & wrong].T, s=40, color=colour, marker="x", linewidths=1.8)
figure.colorbar(shades, label=f"probability of class {model.classes_[1]}")
ax.set(
    title="boundary (line), best boundary (dashed),\nwrong when held out (crosses)",
    aspect="equal",
    xticks=[],
    yticks=[],
    xlim=(-reach, reach),
    ylim=(-reach, reach),
)
plt.show()
