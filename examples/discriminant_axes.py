"""Three cultivars of wine on two discriminant axes, as fitted and as held out.

The fitted rows look better separated than they are. The held-out projections, each from the model
without its row, are what new rows would look like.

    python examples/discriminant_axes.py
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from fitonce import KernelFisherDiscriminant
from fitonce.plotting import ProjectionDisplay

wine = load_wine()
X, y = scale(wine.data), wine.target
model = KernelFisherDiscriminant(gamma=0.05, alpha=0.3).fit(X, y)
fitted = np.mean(model.predict(X) == y)
held_out = np.mean(model.held_out_decision_.argmax(axis=1) == y)
print(f"accuracy of the fitted rows {fitted:.3f}, held out {held_out:.3f}")

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.6), layout="constrained", sharex=True, sharey=True
)
Z = model.transform(X)
for label, (colour, marker) in enumerate((("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"))):
    left.scatter(
        *Z[y == label].T, s=30, color=colour, marker=marker, edgecolors="white", linewidths=0.5
    )
left.set(title="fitted", xlabel="discriminant axis 1", ylabel="discriminant axis 2")
left.grid(alpha=0.4)
ProjectionDisplay.from_estimator(model, ax=right)
right.set_title("held out")
plt.show()
