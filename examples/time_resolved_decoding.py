"""When does the brain tell two stimuli apart? Simulated epochs with a known answer.

200 epochs of 32 channels and 121 times from -0.2 to 1 s. Noise is smooth in time and shared by
channels. Two effects are planted: a pattern that comes and goes between 0.1 and 0.25 s, and another
that holds from 0.4 to 0.7 s. Decoded at every time with 1000 permutations, then trained at each
time and tested at all others. The figure shows both: the pattern that holds is a square, and
neither pattern helps to find the other.

    python examples/time_resolved_decoding.py [figure.png]
"""

from __future__ import annotations

import sys
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter1d
from sklearn.model_selection import StratifiedKFold

from fitonce import KernelFisherDiscriminant
from fitonce.plotting import GeneralizationDisplay, TimeCourseDisplay
from fitonce.positions import generalize, permutation_test

rng = np.random.default_rng(0)
times = np.linspace(-0.2, 1.0, 121)
n_epochs, n_channels = 200, 32

y = rng.permutation(np.arange(n_epochs) % 2)
mixing = np.eye(n_channels) + 0.3 * rng.normal(size=(n_channels, n_channels))
noise = gaussian_filter1d(rng.normal(size=(n_epochs, n_channels, len(times))), 2.0, axis=2)
X = np.einsum("cd,ndt->nct", mixing, noise / noise.std())
for begin, end in ((0.1, 0.25), (0.4, 0.7)):
    pattern = mixing @ rng.normal(size=n_channels)
    window = gaussian_filter1d(((times >= begin) & (times <= end)).astype(float), 2.0)
    X += 0.11 * np.where(y == 1, 1.0, -1.0)[:, None, None] * pattern[:, None] * window

# an alpha of the size of the eigenvalues of the within-class scatter shrinks; "tune" would choose
# one at every time and fold
model = KernelFisherDiscriminant("linear", alpha=30.0)
cv = StratifiedKFold(5, shuffle=True, random_state=0)

start = perf_counter()
test = permutation_test(
    model,
    X,
    y,
    cv=cv,
    permute="within-folds",
    n_permutations=1000,
    scoring="roc_auc",
    cluster_pvalue=0.01,
    verbose=1,
)
print(
    f"{len(times)} times, 1000 permutations, 5 folds: {perf_counter() - start:.1f} s ({test.route})"
)
for cluster in test.clusters:
    if cluster.pvalue <= 0.05:
        span = times[cluster.positions]
        print(f"cluster from {span[0]:.2f} to {span[-1]:.2f} s, p = {cluster.pvalue:.3f}")
found = times[test.pvalue_max <= 0.05]
print(f"by the maximum statistic: {len(found)} times, {found.min():.2f} to {found.max():.2f} s")

start = perf_counter()
matrix = generalize(model, X, y, cv=cv, scoring="roc_auc")
print(f"{len(times)} x {len(times)} generalisation matrix: {perf_counter() - start:.1f} s")

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1.35, 1]
)
TimeCourseDisplay.from_predictions(test, times=times, name="AUC", ax=left)
for begin, end in ((0.1, 0.25), (0.4, 0.7)):
    left.axvspan(begin, end, color="#E69F00", alpha=0.12, linewidth=0, zorder=0)
left.set(xlabel="time (s)", title="decoding; planted effects shaded", xlim=(times[0], times[-1]))
GeneralizationDisplay.from_predictions(matrix, times=times, chance=0.5, name="AUC", ax=right)
right.set(xlabel="tested at (s)", ylabel="trained at (s)", title="generalisation")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
