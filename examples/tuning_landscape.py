"""Everything that a fit tried: the criterion over kernel width and alpha, and the path along alpha
at the chosen width.

Each width costs one decomposition; all its alphas come with it.

    python examples/tuning_landscape.py
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from fitonce import KernelFisherDiscriminant
from fitonce.plotting import CriterionMapDisplay, RegularizationPathDisplay

X, y = load_breast_cancer(return_X_y=True)
model = KernelFisherDiscriminant().fit(scale(X), y)
widths = len(set(model.cv_results_["param_gamma"]))
print(
    f"{len(model.cv_results_['params'])} pairs from {widths} decompositions: gamma = "
    f"{model.gamma_:g}, alpha = {model.alpha_:g}"
)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
CriterionMapDisplay.from_estimator(model, ax=left)
RegularizationPathDisplay.from_estimator(model, ax=right)
plt.show()
