"""Held-out values for a smoother of your own: a smoothing spline with blocks of five neighbours
left out.

Any method whose fitted values are H y can be cross-validated by its matrix H alone. Leave-one-out
looks fine on noise that is alike in neighbouring rows; leaving out blocks shows that the wiggles
are noise.

    python examples/own_smoother.py
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import BSpline

from fitonce import held_out

rng = np.random.default_rng(3)
n = 150
x = np.linspace(0, 1, n)
truth = np.sin(2 * np.pi * x)
noise = np.convolve(rng.normal(size=n + 4), np.ones(5) / 5, mode="valid")  # neighbours share it
y = truth + noise

knots = np.r_[[0.0] * 3, np.linspace(0, 1, 40), [1.0] * 3]
B = BSpline.design_matrix(x, knots, 3, extrapolate=True).toarray()
D = np.diff(np.eye(B.shape[1]), 2, axis=0)
penalties = np.logspace(-4, 4, 33)
blocks = np.array_split(np.arange(n), n // 5)

errors: dict[str, list[float]] = {"leave-one-out": [], "blocks of five": [], "the truth itself": []}
for penalty in penalties:
    H = B @ np.linalg.solve(B.T @ B + penalty * D.T @ D + 1e-9 * np.eye(B.shape[1]), B.T)
    single = np.concatenate(held_out(H, y, [[i] for i in range(n)]))
    block = np.concatenate(held_out(H, y, blocks))
    for name, value in (
        ("leave-one-out", single - y),
        ("blocks of five", block - y),
        ("the truth itself", H @ y - truth),
    ):
        errors[name].append(float(np.mean(value**2)))

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for (name, curve), colour in zip(errors.items(), ("#D55E00", "#0072B2", "#555555"), strict=True):
    best = int(np.argmin(curve))
    print(f"{name:<18} chooses a penalty of {penalties[best]:.3g}")
    left.loglog(penalties, curve, color=colour, label=name)
    left.plot(penalties[best], curve[best], "o", color=colour)
    if name != "the truth itself":
        H = B @ np.linalg.solve(
            B.T @ B + penalties[best] * D.T @ D + 1e-9 * np.eye(B.shape[1]), B.T
        )
        right.plot(x, H @ y, color=colour, label=f"chosen by {name}")
left.set(xlabel="penalty", ylabel="mean squared error", title="three judges")
left.legend(frameon=False)
right.plot(x, truth, color="#555555", linestyle="dashed", label="truth")
right.plot(x, y, ".", color="#999999", markersize=4, zorder=0)
right.set(xlabel="x", title="what they choose")
right.legend(frameon=False)
plt.show()
