"""Better than chance? Two scores under ten thousand relabellings, one with a signal and one
without.

python examples/permutation_null.py
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold

from fitonce import KernelFisherDiscriminant, permutation_test_score
from fitonce.plotting import PermutationNullDisplay

rng = np.random.default_rng(0)
noise = rng.normal(size=(80, 30))
y = np.arange(80) % 2
weak = noise + 0.6 * y[:, None] * (np.arange(30) < 5)

model = KernelFisherDiscriminant("linear", alpha=30.0)
cv = StratifiedKFold(8, shuffle=True, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for ax, X, title in (
    (axes[0], weak, "a weak signal in 5 of 30 features"),
    (axes[1], noise, "noise"),
):
    start = perf_counter()
    test = permutation_test_score(model, X, y, cv=cv, permute="within-folds", n_permutations=10_000)
    print(
        f"{title}: accuracy {test.score:.3f}, p = {test.pvalue:.4f} ({perf_counter() - start:.2f} "
        "s)"
    )
    PermutationNullDisplay.from_predictions(test, ax=ax)
    ax.set_title(title)
plt.show()
