"""Is it the stimulus or the session? A permutation test that respects how the labels came about.

Twelve sessions of ten rows. Every session has its own offset in all features, and more rows of one
class than of the other, so that telling sessions apart is telling classes apart, a little. There is
no other signal. Labels permuted over all rows break the tie between session and class, and the test
cries wolf; permuted within sessions they keep it, and the test stays silent.

    python examples/permutation_groups.py
"""

import warnings
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from fitonce import KernelFisherDiscriminant, permutation_test_score
from fitonce.plotting import PermutationNullDisplay

rng = np.random.default_rng(1)
sessions = np.repeat(np.arange(12), 10)
more_of_one = np.where(np.arange(12) % 2 == 0, 8, 2)
y = np.concatenate([rng.permutation(np.arange(10) < count) for count in more_of_one]).astype(int)
X = rng.normal(size=(120, 6)) + 1.5 * rng.normal(size=(12, 6))[sessions]

model = KernelFisherDiscriminant(gamma=0.05, alpha=1.0)
# KFold ignores the labels, so that they may move freely over the rows; it ignores the groups too,
# which say what may be exchanged
cv = KFold(10, shuffle=True, random_state=0)
warnings.filterwarnings("ignore", message="The groups parameter is ignored by KFold")
start = perf_counter()
free = permutation_test_score(model, X, y, cv=cv, n_permutations=2000, random_state=0)
within = permutation_test_score(
    model, X, y, groups=sessions, cv=cv, n_permutations=2000, random_state=0
)
seconds = perf_counter() - start
print(f"accuracy {free.score:.3f}")
print(
    f"labels exchanged over all rows:   p = {free.pvalue:.4f} ({free.exchange})   wrong: rows of "
    "a session are alike"
)
print(f"labels exchanged within sessions: p = {within.pvalue:.4f} ({within.exchange})")
print(f"4000 permutations in {seconds:.1f} s")

figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.4), sharex=True, layout="constrained")
for ax, test, title in zip(axes, (free, within), ("over all rows", "within sessions"), strict=True):
    PermutationNullDisplay.from_predictions(test, name=f"accuracy, labels exchanged {title}", ax=ax)
