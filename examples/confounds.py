"""Age and site as confounds: a score that has found them, and one that cannot.

Patients and controls come from three clinics. The markers change with age and differ between
clinics. Patients are older, and one clinic recruited more of them. In the first table the markers
know nothing of the diagnosis; plain cross-validation finds an accuracy far above chance, with a
small p-value. With age and clinic removed from the features on the training rows of every fold,
nothing is left. In the second table one marker follows the diagnosis, and its accuracy stays.

    python examples/confounds.py
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fitonce import KernelFisherDiscriminant, assess
from fitonce.inference.exchange import ValidityWarning


def clinics(effect, seed=1, n=180):
    """Markers, diagnosis, and the confounds; `effect` of the diagnosis on the first marker."""
    rng = np.random.default_rng(seed)
    clinic = np.array(["Leipzig", "Lyon", "Lund"])[rng.integers(3, size=n)]
    age = rng.normal(50.0, 12.0, n)
    odds = 0.08 * (age - 50.0) + 1.5 * (clinic == "Lyon") - 0.5
    patient = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-odds))
    markers = rng.normal(size=(n, 6))
    markers += 0.05 * (age - 50.0)[:, None] + 1.0 * (clinic == "Lyon")[:, None]
    markers[:, 0] += effect * patient
    diagnosis = np.where(patient, "patient", "control")
    return markers, diagnosis, pd.DataFrame({"age": age, "clinic": clinic})


model = KernelFisherDiscriminant(gamma=0.05, alpha=1.0)
found = {}
for effect, title in ((0.0, "markers know nothing"), (1.5, "one marker does")):
    X, y, confounds = clinics(effect)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ValidityWarning)  # age is a number: the test is approximate
        found[title, "plain"] = assess(model, X, y, permutations=199)
        found[title, "confounds removed"] = assess(
            model, X, y, confounds=confounds, permutations=199
        )

for (title, name), answer in found.items():
    print(
        f"{title}, {name}: balanced accuracy {answer.metrics['balanced_accuracy']:.2f}, "
        f"p = {answer.permutation.pvalues['balanced_accuracy']:.3f}"
    )

# Balanced accuracy of held-out rows, with chance as the dashed line.
fig, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
names = [f"{title}\n{name}" for title, name in found]
values = [answer.metrics["balanced_accuracy"] for answer in found.values()]
colours = ["#a8400b" if name == "plain" else "#00704f" for _, name in found]
ax.barh(names, values, color=colours, height=0.6)
ax.axvline(0.5, color="black", linestyle="--", linewidth=1)
ax.invert_yaxis()
ax.set(xlim=(0.3, 1.0), xlabel="balanced accuracy, held out")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
