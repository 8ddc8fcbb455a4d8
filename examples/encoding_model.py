"""An encoding model: which of two feature spaces does each part of a brain follow?

Somebody watches a film in four runs (simulated). Sixty voxels respond to its sound, its motion or
both, a few seconds late. Features are delayed inside their runs, each space gets a kernel and a
weight of its own, whole runs are left out, and a fifth run, measured six times, gives the noise
ceiling.

    python examples/encoding_model.py
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import LeaveOneGroupOut

from fitonce import KernelRidge, KernelSum, kernel_shares
from fitonce.encoding import delayed, noise_ceiling

rng = np.random.default_rng(0)
n_runs, length, width, grid = 4, 90, 15, (6, 10)
n_voxels = grid[0] * grid[1]
runs = np.repeat(np.arange(n_runs + 1), length)  # the last one is the test run


def film(n_features: int) -> np.ndarray:
    """Features that change slowly."""
    steps = rng.standard_normal((len(runs) + 3, n_features))
    return sum(steps[lag : lag + len(runs)] for lag in range(4)) / 2.0


sound, motion = film(width), film(width)
response = np.array([0.0, 0.3, 0.8, 0.6, 0.2])  # of a voxel, 0 to 4 rows after the feature
column = np.indices(grid)[1].ravel() / (grid[1] - 1)  # sound on the left, motion on the right
weights = rng.standard_normal((2, width, n_voxels)) * np.sqrt([1 - column, column])[:, None]
signal = sum(
    strength
    * (delayed(sound, [lag], runs) @ weights[0] + delayed(motion, [lag], runs) @ weights[1])
    for lag, strength in enumerate(response)
)
signal /= signal.std(axis=0)
train, test = runs < n_runs, runs == n_runs
Y = signal[train] + 1.5 * rng.standard_normal((train.sum(), n_voxels))
repeats = signal[test] + 1.5 * rng.standard_normal((6, length, n_voxels))

# features of the last four rows, never from another run
X = np.hstack([delayed(space, [1, 2, 3, 4], runs) for space in (sound, motion)])
half = X.shape[1] // 2
kernel = KernelSum([("sound", "linear", slice(0, half)), ("motion", "linear", slice(half, None))])
model = KernelRidge(kernel=kernel, criterion="r2").fit(X[train], Y, groups=runs[train])
print("weights:", {name: round(value, 4) for name, value in model.kernel_.weights.items()})

# how good on the test run, and how good could it be?
mean = repeats.mean(axis=0)
error = np.sum((mean - model.predict(X[test])) ** 2, axis=0)
r2 = 1 - error / np.sum((mean - mean.mean(axis=0)) ** 2, axis=0)
ceiling = noise_ceiling(repeats).r2
print(f"R² on the test run {r2.mean():.2f}, noise ceiling {ceiling.mean():.2f}")

# which space explains it? Every run is predicted by models of the others
shares = kernel_shares(
    KernelRidge(kernel=kernel, criterion="r2"),
    X[train],
    Y,
    groups=runs[train],
    cv=LeaveOneGroupOut(),
    params={"groups": runs[train]},
)
print(shares)
left = shares.product[:, column < 0.3].mean(axis=1)
right = shares.product[:, column > 0.7].mean(axis=1)
print(f"on the left sound {left[0]:.2f}, motion {left[1]:.2f}")
print(f"on the right sound {right[0]:.2f}, motion {right[1]:.2f}")

figure, axes = plt.subplots(1, len(shares.names), figsize=(10, 2.6), layout="constrained")
for ax, name, share in zip(axes, shares.names, shares.product, strict=True):
    drawn = ax.imshow(share.reshape(grid), cmap="RdBu_r", vmin=-0.5, vmax=0.5)
    ax.set(title=f"{name}: mean {share.mean():.2f}", xticks=[], yticks=[])
figure.colorbar(drawn, ax=axes, label="share of held-out R²")
plt.show()
